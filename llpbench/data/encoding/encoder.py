"""Encode the columns of a table as features, for ``llpbench.fit`` and the tabular datasets.

Everything is fitted on training rows only.

**Numbers** are standardised by the mean and the standard deviation of the known training values, and clipped at four
standard deviations. A missing number counts as the mean. A column that lacks values in training rows gets one more
feature: 1 where the number is missing, 0 elsewhere.

**Categories**, ``onehot``: one 0/1 feature for each level that training rows have, in the order of the levels. A
category of more than 200 levels keeps the 200 most frequent ones (the first in order among equals), and all its other
levels share one more feature. A level that no training row has goes to that shared feature too; where there is none,
all features of the category are 0. The features stay 0 or 1: rescaling rare levels to unit variance costs one to five
points of AUROC at large bags.

**Categories**, ``ordinal``: the level's place among the same levels, then treated like a number. All levels without a
place of their own share the place after the last.

**Dates** become up to five numbers (``dates.py``), those that differ between training rows, each
treated like a number. A column that lacks dates in training rows gets one more feature, as numbers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from llpbench.contracts.data import Column, FloatArray, IntArray
from llpbench.contracts.errors import UnknownNameError
from llpbench.data.encoding.dates import Dates, PartOfDate, parts_of

CLIP = 4.0
"""Standard deviations at which numbers are clipped."""
LEVELS = 200
"""Maximum number of levels of a category that get their own feature or place."""
ENCODINGS = ("onehot", "ordinal")


@dataclass(frozen=True)
class Numbers:
    """A numeric column: float64 values, NaN if missing."""

    name: str
    values: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: IntArray) -> Numbers:
        """The given rows, in the given order."""
        return Numbers(self.name, self.values[rows])


@dataclass(frozen=True)
class Categories:
    """A categorical column: its levels in alphabetical order (None, a missing value, is last), and each row's place."""

    name: str
    codes: IntArray
    levels: tuple[str | None, ...]

    @classmethod
    def from_texts(cls, name: str, texts: Sequence[str | None]) -> Categories:
        """A column from the text of each row."""
        levels = sorted(set(texts), key=lambda level: (level is None, level or ""))
        place = {level: code for code, level in enumerate(levels)}
        return cls(name, np.fromiter(map(place.__getitem__, texts), np.int32, len(texts)), tuple(levels))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: IntArray) -> Categories:
        """The given rows, in the given order."""
        return Categories(self.name, self.codes[rows], self.levels)


class NumberColumn(msgspec.Struct, frozen=True, tag="number", forbid_unknown_fields=True):
    """The fitted state of a numeric column: its mean, its standard deviation, whether missing values have a feature."""

    name: str
    mean: float
    sd: float
    missing: bool = False


class CategoryColumn(msgspec.Struct, frozen=True, tag="category", forbid_unknown_fields=True):
    """The fitted state of a category: the levels that have a feature of their own, and whether others share one."""

    name: str
    levels: tuple[str | None, ...]
    other: bool = False


class OrdinalColumn(msgspec.Struct, frozen=True, tag="ordinal", forbid_unknown_fields=True):
    """A category as one number: mean and standard deviation of the levels' places."""

    category: CategoryColumn
    mean: float
    sd: float

    @property
    def name(self) -> str:
        """The column's name."""
        return self.category.name


class DatePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One number of a date (``month``): its mean and its standard deviation."""

    part: PartOfDate
    mean: float
    sd: float


class DateColumn(msgspec.Struct, frozen=True, tag="date", forbid_unknown_fields=True):
    """The fitted state of a column of dates: the numbers derived from them, whether missing dates have a feature."""

    name: str
    parts: tuple[DatePart, ...]
    missing: bool = False

    @property
    def sd(self) -> float:
        """The smallest of the parts' standard deviations."""
        return min((part.sd for part in self.parts), default=0.0)


RawColumn = Numbers | Categories | Dates
FittedColumn = NumberColumn | CategoryColumn | OrdinalColumn | DateColumn


class TableEncoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the columns of a table become features.

    Attributes:
        columns: what was learned of each column, in the order of the table.
    """

    columns: tuple[FittedColumn, ...]

    @classmethod
    def fit(cls, table: Sequence[RawColumn], rows: IntArray, encoding: str = "onehot") -> TableEncoder:
        """Learn an encoder from some rows of a table.

        Args:
            table: the columns.
            rows: numbers of the training rows.
            encoding: of categories, ``"onehot"`` or ``"ordinal"``.
        """
        if encoding not in ENCODINGS:
            raise UnknownNameError("encoding", encoding, ENCODINGS)
        return cls(tuple(_fit_column(column, rows, encoding) for column in table))

    @property
    def width(self) -> int:
        """Number of features."""
        return sum(column.width for column in self.described())

    def described(self) -> tuple[Column, ...]:
        """Descriptions of the columns for methods. An ordinal column is described as numeric, since its feature is."""
        return tuple(described for column in self.columns for described in _describe(column))

    def transform(self, table: Sequence[RawColumn]) -> FloatArray:
        """(n, features) float32 rows of a table with the same columns in the same order."""
        features = np.zeros((len(table[0]), self.width), np.float32)
        start = 0
        for column, values in zip(self.columns, table, strict=True):
            end = start + sum(described.width for described in _describe(column))
            _fill(features[:, start:end], column, values)
            start = end
        return features


def _fit_column(column: RawColumn, rows: IntArray, encoding: str) -> FittedColumn:
    if isinstance(column, Numbers):
        values = column.values[rows]
        known = values[~np.isnan(values)]
        return NumberColumn(column.name, *_mean_and_sd(known), missing=len(known) < len(values))
    if isinstance(column, Dates):
        return _fit_dates(column.take(rows))
    counts = np.bincount(column.codes[rows], minlength=len(column.levels))
    seen = np.flatnonzero(counts)
    kept = np.sort(seen[np.argsort(-counts[seen], kind="stable")[:LEVELS]])
    category = CategoryColumn(column.name, tuple(column.levels[i] for i in kept), other=len(seen) > LEVELS)
    if encoding == "onehot":
        return category
    return OrdinalColumn(category, *_mean_and_sd(_places(category, column)[rows].astype(np.float64)))


def _fit_dates(dates: Dates) -> DateColumn:
    """The parts that differ between training rows; the year alone where none does."""
    values = parts_of(dates)
    known = ~np.isnat(dates.values)
    found = {part: _mean_and_sd(numbers[known]) for part, numbers in values.items()}
    differ = {part for part in found if len(np.unique(values[part][known])) > 1} or {"year"}
    parts = tuple(DatePart(part, *numbers) for part, numbers in found.items() if part in differ)
    return DateColumn(dates.name, parts, bool(not known.all()))


def _mean_and_sd(known: FloatArray) -> tuple[float, float]:
    """What numbers are standardised by; equal numbers, or none, keep their scale."""
    if not len(known):
        return 0.0, 1.0
    mean, sd = float(known.mean()), float(known.std())
    if known.min() == known.max() or not 0.0 < sd < np.inf:  # rounding can make the sd of equal numbers non-zero
        return float(known[0]), 1.0
    return mean, sd


def _describe(column: FittedColumn) -> tuple[Column, ...]:
    if isinstance(column, CategoryColumn):
        return (Column(column.name, "category", width=len(column.levels) + column.other),)
    names = [f"{column.name}: {p.part}" for p in column.parts] if isinstance(column, DateColumn) else [column.name]
    if isinstance(column, NumberColumn | DateColumn) and column.missing:
        names.append(f"{column.name} is missing")
    return tuple(Column(name, "numeric") for name in names)


def _fill(block: FloatArray, column: FittedColumn, values: RawColumn) -> None:
    """Write the features of a column into its block of zeros."""
    if isinstance(column, NumberColumn):
        assert isinstance(values, Numbers)
        absent = np.isnan(values.values)
        block[:, 0] = np.where(absent, 0.0, _standardise(values.values, column.mean, column.sd))
        if column.missing:
            block[:, 1] = absent
        return
    if isinstance(column, DateColumn):
        assert isinstance(values, Dates)
        absent, numbers = np.isnat(values.values), parts_of(values)
        for j, fitted in enumerate(column.parts):
            block[:, j] = np.where(absent, 0.0, _standardise(numbers[fitted.part], fitted.mean, fitted.sd))
        if column.missing:
            block[:, -1] = absent
        return
    assert isinstance(values, Categories)
    if isinstance(column, OrdinalColumn):
        block[:, 0] = _standardise(_places(column.category, values).astype(np.float64), column.mean, column.sd)
        return
    places = _places(column, values)
    rows = np.flatnonzero(places < block.shape[1])
    block[rows, places[rows]] = 1.0


def _standardise(values: FloatArray, mean: float, sd: float) -> FloatArray:
    scaled: FloatArray = np.clip((values - mean) / sd, -CLIP, CLIP)
    return scaled


def _places(column: CategoryColumn, values: Categories) -> IntArray:
    """Each row's place among the fitted levels; the place after the last for any other level."""
    place = {level: i for i, level in enumerate(column.levels)}
    of_level = np.array([place.get(level, len(place)) for level in values.levels], np.int64)
    return of_level[values.codes]
