"""The text of a CSV file: rows of fields under unique names, or an error with the line that is wrong."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench import DatasetError, IntArray, UnknownNameError

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
MOST_CLASSES = 100


@dataclass(frozen=True)
class CsvText:
    """Names of the columns and rows of as many fields, spaces around them removed."""

    path: str
    names: list[str]
    rows: list[list[str]]

    @property
    def listing(self) -> str:
        """The columns' names, for errors."""
        return ", ".join(self.names)

    def column(self, name: str) -> list[str]:
        """The fields of a column, or an error that lists the columns."""
        if name not in self.names:
            raise UnknownNameError(f"column of {self.path}:", name, self.names)
        place = self.names.index(name)
        return [row[place] for row in self.rows]


def missing(text: str) -> bool:
    """Whether a field stands for a missing value."""
    return text.lower() in MISSING


def read_text(content: bytes, path: str, separator: str = "auto") -> CsvText:
    """Read the file's bytes.

    Args:
        content: the bytes.
        path: the file's name, for errors.
        separator: name of the separator, or ``auto``.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path} is not UTF-8 text (byte {error.start:,}).") from None
    delimiter = delimiter_of(text.partition("\n")[0], separator)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        rows = _fields(reader, path)
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: {error}.") from None
    if len(rows) < 2:
        raise DatasetError(f"{path} has no rows below its first line, which names the columns.")
    names = rows.pop(0)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or "" in names:
        what = f"several columns of the name {twice[0]!r}" if twice and twice[0] else "a column without a name"
        raise DatasetError(f"{path} has {what} in its first line.")
    return CsvText(path, names, rows)


def _fields(reader: Any, path: str) -> list[list[str]]:
    """All lines that are not blank, each with as many fields as the first."""
    rows: list[list[str]] = []
    for fields in reader:
        if not fields:
            continue
        if rows and len(fields) != len(rows[0]):
            raise DatasetError(
                f"{path}, line {reader.line_num}: {len(fields)} fields, but the first line names {len(rows[0])}."
            )
        rows.append([field.strip() for field in fields])
    return rows


def delimiter_of(first: str, separator: str) -> str:
    """The character that a separator names; for ``auto`` the most frequent one of the first line."""
    return SEPARATORS.get(separator) or max(SEPARATORS.values(), key=first.count)


def class_numbers(texts: Sequence[str], text: CsvText, label: str, positive: str) -> IntArray:
    """Numbers of the classes: 1 for ``positive`` and 0 for others, or the labels' places in their order.

    Raises:
        DatasetError: a label is missing, there is one label only, or so many that they are no classes.
    """
    absent = [i for i, value in enumerate(texts) if missing(value)]
    where = f"{text.path}: the label {label!r}"
    if absent:
        raise DatasetError(f"{where} is missing in {len(absent):,} rows (the first is row {absent[0] + 1:,}).")
    labels = _in_order(set(texts))
    if len(labels) < 2:
        raise DatasetError(f"{where} has only one value ({labels[0]!r}); at least two are needed.")
    if positive:
        if positive not in labels:
            raise UnknownNameError(f"value of the label {label!r}:", positive, labels[:MOST_CLASSES])
        return np.fromiter((value == positive for value in texts), np.int64, len(texts))
    if len(labels) > MOST_CLASSES:
        raise DatasetError(
            f"{where} has {len(labels):,} different values, at most {MOST_CLASSES} are allowed. "
            "Choose one of them with positive=."
        )
    place = {value: number for number, value in enumerate(labels)}
    return np.fromiter(map(place.__getitem__, texts), np.int64, len(texts))


def _in_order(labels: set[str]) -> list[str]:
    """Labels in the order of their numbers where all are numbers, in alphabetical order otherwise."""
    try:
        return sorted(labels, key=lambda value: (float(value), value))
    except ValueError:
        return sorted(labels)
