"""From a table to features. Everything is fitted on the training rows alone.

``onehot``: numbers are standardised and clipped at four standard deviations; a category becomes a block of
0/1 columns, one for each level that the training rows show, and is left as it is (rescaling rare levels to
unit variance costs one to five points at large bags). ``ordinal``: a category becomes its level's place in
alphabetical order, treated like a number; one column for each original column.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llpbench import Column, FloatArray, IntArray, Part, Split, UnknownNameError, random_split
from llpbench_datasets.tables import Categories, Numbers, Table

CLIP = 4.0
"""Standard deviations beyond which a number is cut off."""
ENCODINGS = ("onehot", "ordinal")


def encode(table: Table, fit_rows: IntArray, encoding: str) -> tuple[FloatArray, tuple[Column, ...]]:
    """Encode all rows of a table by what ``fit_rows`` alone tell.

    Args:
        table: the table.
        fit_rows: numbers of the training rows.
        encoding: ``"onehot"`` or ``"ordinal"``.

    Returns:
        float32 features of all rows in their order, and the columns they come from. A level that no
        training row has gives an all-zero block (``onehot``) or a code after all others (``ordinal``). An
        ordinal column is described as numeric: its features are standardised numbers, not a one-hot block.
    """
    if encoding not in ENCODINGS:
        raise UnknownNameError("encoding", encoding, ENCODINGS)
    columns = tuple(_describe(column, fit_rows, encoding) for column in table.columns)
    X = np.zeros((len(table), sum(column.width for column in columns)), dtype=np.float32)
    start = 0
    for source, column in zip(table.columns, columns, strict=True):
        if isinstance(source, Numbers):
            X[:, start] = standardise(source.values, fit_rows)
        elif encoding == "ordinal":
            X[:, start] = standardise(_places(source, fit_rows).astype(np.float64), fit_rows)
        else:
            _fill_block(X[:, start : start + column.width], _places(source, fit_rows))
        start += column.width
    return X, columns


def encoded_split(table: Table, shares: Sequence[float], *, seed: int, encoding: str) -> Split:
    """Split a table at random into training, validation and test rows of the given shares, and encode it."""
    parts = random_split(len(table), shares, seed)
    ordered = table.take(np.concatenate(parts))  # the narrow table is put in order, not the wide features
    X, columns = encode(ordered, np.arange(len(parts[0])), encoding)
    cuts = np.cumsum([len(rows) for rows in parts])[:-1]
    features, labels = np.split(X, cuts), np.split(ordered.labels, cuts)
    train, valid, test = map(Part, features, labels)
    return Split(train, valid, test, columns=columns)


def standardise(values: FloatArray, fit_rows: IntArray) -> FloatArray:
    """Subtract the training rows' mean, divide by their standard deviation, clip at ``CLIP``.

    A column that is constant on the training rows only has its mean subtracted there: it becomes 0, and
    rows that differ from it are cut off at the clip.
    """
    fitted = values[fit_rows]
    mean, sd = float(fitted.mean()), float(fitted.std())
    if fitted.min() == fitted.max():  # rounding can make the computed deviation of equal numbers non-zero
        mean, sd = float(fitted[0]), 1.0
    scaled: FloatArray = np.clip((values - mean) / sd, -CLIP, CLIP).astype(np.float32)
    return scaled


def _describe(column: Numbers | Categories, fit_rows: IntArray, encoding: str) -> Column:
    if isinstance(column, Numbers) or encoding == "ordinal":
        return Column(column.name, "numeric")
    return Column(column.name, "category", width=len(np.unique(column.codes[fit_rows])))


def _places(column: Categories, fit_rows: IntArray) -> IntArray:
    """Each row's place among the levels of the training rows; after the last for any other level."""
    known = np.zeros(len(column.levels), dtype=bool)
    known[column.codes[fit_rows]] = True
    place = np.where(known, np.cumsum(known) - 1, int(known.sum()))
    places: IntArray = place[column.codes]
    return places


def _fill_block(block: FloatArray, places: IntArray) -> None:
    rows = np.flatnonzero(places < block.shape[1])
    block[rows, places[rows]] = 1.0
