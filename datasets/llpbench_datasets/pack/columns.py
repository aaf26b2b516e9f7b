"""From the columns of a file to numbers, categories, labels and groups, as a table of the pack declares them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from llpbench import Categories, DatasetError, IntArray, Numbers
from llpbench_datasets.pack.declared import DeclaredTable, Label
from llpbench_datasets.pack.pickled import AnyArray
from llpbench_datasets.tables import LabelledTable

GROUP = "group: "
"""Prefix of the names of group columns; rows without a group have the value None."""
_UNITS = {"year": "Y", "month": "M", "day": "D", "hour": "h"}


def to_table(table: DeclaredTable, found: Mapping[str, AnyArray]) -> LabelledTable:
    """Rows that have a label: their features in the declared order, then one column for each kind of group."""
    labels, kept = label_rows(table.label, found[table.label.column])
    features = table.features
    values = {name: _value(found, name)[kept] for name in table.used}
    columns: list[Numbers | Categories] = [_numbers(name, values[name]) for name in features.numbers]
    columns += [_categories(name, as_texts(values[name]), "?") for name in features.categories]
    if features.text:
        columns.append(_categories(features.text, as_texts(values[features.text]), ""))
    columns += [groups(GROUP + name, [as_texts(values[c]) for c in parts]) for name, parts in table.bags.items()]
    return LabelledTable(tuple(columns), labels)


def label_rows(rule: Label, values: AnyArray) -> tuple[IntArray, IntArray]:
    """Labels of the rows that have one, and their numbers."""
    absent = missing(values)
    if rule.present:
        return (~absent).astype(np.int64), np.arange(len(values))
    if rule.equals:
        positive = np.isin(as_texts(values).astype(str), rule.equals)
    elif rule.above is not None:
        positive = _floats(rule.column, values) > rule.above
    else:
        positive = _floats(rule.column, values) >= float(rule.at_least or 0)
    if rule.without:
        absent |= np.isin(as_texts(values).astype(str), rule.without)
    kept = np.flatnonzero(~absent)
    return positive[kept].astype(np.int64), kept


def missing(values: AnyArray) -> AnyArray:
    """Mask of missing values: None, NaN and NaT."""
    if values.dtype.kind == "O":
        return np.fromiter((value is None or value != value for value in values), bool, len(values))
    return np.isnat(values) if values.dtype.kind == "M" else np.not_equal(values, values)


def as_texts(values: AnyArray) -> AnyArray:
    """Values as text, whole numbers without decimals, missing ones as None."""
    if values.dtype.kind == "O":
        texts = values.copy()
        texts[missing(values)] = None
        return texts
    levels, codes = np.unique(values, return_inverse=True)
    return np.array([_text(level) for level in levels], object)[codes]


def _text(value: object) -> str | None:
    if isinstance(value, float):
        return None if np.isnan(value) else str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, np.datetime64) and np.isnat(value):
        return None
    return str(value)


def groups(name: str, parts: list[AnyArray]) -> Categories:
    """The group of each row, named by the values of its columns; None where one of them is missing."""
    joined = parts[0]
    for part in parts[1:]:
        known = ~(missing(joined) | missing(part))
        both = np.full(len(joined), None, object)
        both[known] = joined[known] + " · " + part[known]
        joined = both
    return Categories.from_texts(name, joined.tolist())


def _value(found: Mapping[str, AnyArray], name: str) -> AnyArray:
    """A column, or the part of a date that ``column:part`` names."""
    column, _, part = name.partition(":")
    if not part:
        return found[column]
    dates = found[column]
    if dates.dtype.kind == "O":
        dates = np.array([str(text).removesuffix("Z") for text in dates], "datetime64[s]")
    day = dates.astype("datetime64[D]")
    match part:
        case "day":
            return day
        case "weekday":
            return np.asarray(np.mod(day.astype(np.int64) + 3, 7))  # 1970-01-01 was a Thursday; Monday is 0
        case "year":
            return np.asarray(day.astype("datetime64[Y]").astype(np.int64) + 1970)
        case "month":
            return np.asarray(np.mod(day.astype("datetime64[M]").astype(np.int64), 12) + 1)
    return np.asarray((dates - day).astype("timedelta64[m]").astype(np.float64) / 60.0)


def _floats(name: str, values: AnyArray) -> AnyArray:
    if values.dtype.kind == "O":
        raise DatasetError(f"column {name!r} holds text; expected numbers.")
    return np.asarray(values, np.float64)


def _numbers(name: str, values: AnyArray) -> Numbers:
    return Numbers(name, _floats(name, values))


def _categories(name: str, texts: AnyArray, absent: str) -> Categories:
    return Categories.from_texts(name, [absent if text is None else text for text in texts.tolist()])
