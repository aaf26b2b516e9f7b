"""Read a CSV file, split it, encode it by its training rows.

A column is numeric when every value that is not missing is a number; a missing category is a category. Features are
those of ``llpbench.TableEncoder``, as in ``llpbench.fit``: a missing number counts as the mean of the training rows,
and a column that lacks some there gets a 0/1 column that says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from llpbench import Categories, DatasetError, Files, IntArray, Numbers, Split
from llpbench_datasets.csv_table.source import read
from llpbench_datasets.csv_table.text import CsvText, class_numbers, missing, read_text
from llpbench_datasets.dealing import deal_rows
from llpbench_datasets.encoding import encode_parts
from llpbench_datasets.tables import LabelledTable, cached_table


def load(
    files: Files,
    *,
    seed: int,
    path: str = "",
    label: str = "",
    bag: str = "",
    positive: str = "",
    test: float = 0.1,
    validation: float = 0.1,
    separator: str = "auto",
    encoding: str = "onehot",
) -> Split:
    """Load a table of the user's own.

    Args:
        files: where the compact form is kept.
        seed: seed of the split.
        path: the file, if wanted with the checksum of its content behind ``#``.
        label: the label column.
        bag: the column whose values are the bags; empty when bags are to be drawn.
        positive: the label of class 1; by default the last of two labels, or several classes.
        test: share of the rows, or of the bags, for the test.
        validation: share for validation.
        separator: between fields, by name.
        encoding: ``"onehot"`` or ``"ordinal"``.
    """
    name, content, digest = read(path)
    key = [digest, "csv", label, bag, positive, separator]
    table = cached_table(files.cache, key, lambda: to_table(read_text(content, name, separator), label, bag, positive))
    bag_of = None
    if bag:
        *features, bags = table.columns
        assert isinstance(bags, Categories)
        table, bag_of = LabelledTable(tuple(features), table.labels), bags.codes.astype(np.int64)
    parts = deal_rows(len(table), bag_of, (1.0 - test - validation, validation, test), seed, f"column {bag!r}")
    classes = max(int(table.labels.max()) + 1, 2)
    return encode_parts(table, parts, encoding, classes=classes, bag_of=bag_of)


def to_table(text: CsvText, label: str, bag: str, positive: str) -> LabelledTable:
    """Columns of numbers and categories, and the labels; the bags, if any, are the last column."""
    labels = _labels(text, label, positive)
    columns = [_column(name, text.column(name)) for name in text.names if name not in (label, bag)]
    if not columns:
        raise DatasetError(f"{text.path}: no feature columns besides {label!r}.")
    if bag:
        if bag == label:
            raise DatasetError(f"{text.path}: column {label!r} cannot be both label and bag.")
        bags = text.column(bag)
        absent = sum(map(missing, bags))
        if absent:
            raise DatasetError(f"{text.path}: the bag {bag!r} is missing in {absent:,} rows.")
        columns.append(_categories(bag, bags))
    return LabelledTable(tuple(columns), labels)


def _column(name: str, texts: Sequence[str]) -> Numbers | Categories:
    """Numbers where all values that are there are finite numbers, categories otherwise."""
    values = np.full(len(texts), np.nan)
    for i, text in enumerate(texts):
        if missing(text):
            continue
        try:
            values[i] = float(text)
        except ValueError:
            return _categories(name, texts)
        if not math.isfinite(values[i]) or "_" in text:
            return _categories(name, texts)
    return _categories(name, texts) if np.isnan(values).all() else Numbers(name, values)


def _categories(name: str, texts: Sequence[str]) -> Categories:
    return Categories.from_texts(name, ["?" if missing(text) else text for text in texts])


def _labels(text: CsvText, label: str, positive: str) -> IntArray:
    if not label:
        raise DatasetError(f"{text.path}: the label column is missing: set label=NAME. Columns: {text.listing}.")
    return class_numbers(text.column(label), text, label, positive)
