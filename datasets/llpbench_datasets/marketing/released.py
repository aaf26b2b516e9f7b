"""The matrix that the authors of Havaldar et al. (ICLR 2024) released, derived from ``bank-full.csv``.

Their files ``data/{x,y}_{train,val,test}.csv`` (github.com/google-deepmind/llp_bp) are reproduced in every value and in
the order of the rows:

- rows: shuffled by NumPy's legacy generator with seed 0, then cut at 60 % and 80 %;
- a category is the alphabetical index of its value, starting at 0;
- the matrix is standardised **as a whole**, by one mean and one population standard deviation over all entries of the
  training rows, and rounded to two decimals. Nothing is clipped. Balance and duration dominate the scale, so that the
  seven categories with at most four values become constant.
"""

from __future__ import annotations

import numpy as np

from llpbench import Column, FloatArray, IntArray, Numbers, Part, Split
from llpbench_datasets.tables import LabelledTable

SEED = 0
DECIMALS = 2


def released_split(table: LabelledTable) -> Split:
    """The released training, validation and test rows of the whole table, encoded as released."""
    rows = released_rows(len(table))
    matrix = np.column_stack(
        [c.values if isinstance(c, Numbers) else c.codes.astype(np.float64) for c in table.columns]
    )
    X = standardise_as_one(matrix, rows[0])
    train, valid, test = (Part(X[part], table.labels[part]) for part in rows)
    return Split(train, valid, test, columns=tuple(Column(column.name, "numeric") for column in table.columns))


def released_rows(n: int) -> list[IntArray]:
    """Numbers of the training, validation and test rows, in the released order."""
    return np.split(np.random.RandomState(SEED).permutation(n), [int(0.6 * n), int(0.8 * n)])


def standardise_as_one(matrix: FloatArray, fit_rows: IntArray) -> FloatArray:
    """A float64 matrix standardised by one mean and one standard deviation of some rows, rounded, as float32."""
    fitted = matrix[fit_rows]
    standardised: FloatArray = np.round((matrix - fitted.mean()) / fitted.std(), DECIMALS)
    return standardised.astype(np.float32)
