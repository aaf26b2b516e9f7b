"""A table of a dataset, split at random and encoded by its training rows (``llpbench.TableEncoder``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llpbench import Column, FloatArray, IntArray, Part, Split, TableEncoder, random_split
from llpbench_datasets.tables import LabelledTable


def encode(table: LabelledTable, fit_rows: IntArray, encoding: str) -> tuple[FloatArray, tuple[Column, ...]]:
    """Encode all rows of a table; what is learned for this is learned from ``fit_rows`` alone.

    Args:
        table: the table.
        fit_rows: numbers of the training rows.
        encoding: of categories, ``"onehot"`` or ``"ordinal"``.

    Returns:
        float32 features of all rows in their order, and the columns they come from.
    """
    encoder = TableEncoder.fit(table.columns, fit_rows, encoding)
    return encoder.transform(table.columns), encoder.described()


def encoded_split(table: LabelledTable, shares: Sequence[float], *, seed: int, encoding: str) -> Split:
    """Split a table at random into training, validation and test rows of the given shares, and encode it."""
    return encode_parts(table, random_split(len(table), shares, seed), encoding)


def encode_parts(
    table: LabelledTable, rows: Sequence[IntArray], encoding: str, *, classes: int = 2, bag_of: IntArray | None = None
) -> Split:
    """The split of a table into the given rows, encoded by the first of them.

    Args:
        table: the table.
        rows: numbers of the training, validation and test rows.
        encoding: of categories, ``"onehot"`` or ``"ordinal"``.
        classes: number of classes.
        bag_of: the bag of each row of the table, if it has bags of its own.
    """
    ordered = table.take(np.concatenate(rows))  # the narrow table is put in order, not the wide features
    X, columns = encode(ordered, np.arange(len(rows[0])), encoding)
    cuts = np.cumsum([len(part) for part in rows])[:-1]
    train, valid, test = (
        Part(x, y, None if bag_of is None else bag_of[part])
        for x, y, part in zip(np.split(X, cuts), np.split(ordered.labels, cuts), rows, strict=True)
    )
    return Split(train, valid, test, classes=classes, columns=columns)
