"""Learners of soft labels: boosted trees on a table's own columns, or the shared network.

A learner is made once for the training rows and fitted many times, each time on some of the rows; what it returns
gives fields (log-odds, or log-probabilities of several classes) for any rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from llpbench import Column, FloatArray, QuietMonitor
from llpbench_methods.bp_count.trees import ConstantFields, TreeFields
from llpbench_methods.shared.columns import TableView
from llpbench_methods.shared.shares import all_classes

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Fields = Callable[[FloatArray], Array]

_LEAST_WEIGHT = 1e-3


class Learner(Protocol):
    """Learns fields from soft labels."""

    def fit(self, rows: Ints, targets: Array, seed: int) -> Fields:
        """Fit on the given training rows.

        Args:
            rows: numbers of the rows in use.
            targets: (all rows, 1) probability of class 1, or (all rows, C).
            seed: of whatever is random.

        Returns:
            A function from rows of features to fields, (n, 1) or (n, C).
        """
        ...


def make_learner(kind: str, X: FloatArray, columns: Sequence[Column], *, trees: int, epochs: int) -> Learner:
    """The learner of that name; ``auto`` is trees for tables (features with columns), the network otherwise."""
    if kind == "trees" or (kind == "auto" and columns):
        return BoostedTrees(X, columns, trees)
    return Network(X, epochs)


def soft_label_rows(targets: Array) -> tuple[Ints, Ints, Array]:
    """Soft labels as weighted copies: row numbers, hard labels and weights, copies of almost no weight are left out.

    The weighted cross-entropy of the copies equals ``−Σ_c t_c log p_c`` of the row.
    """
    table = all_classes(targets)
    label, row = np.nonzero(table.T >= _LEAST_WEIGHT)
    return row, label, table[row, label]


def bin_cuts(values: NDArray[Any], most: int = 200) -> NDArray[Any]:
    """Rising cuts between bins: between all distinct values where they are few, at quantiles otherwise."""
    distinct = np.unique(values)
    if len(distinct) <= most:
        return np.asarray(0.5 * (distinct[:-1] + distinct[1:]))
    return np.unique(np.quantile(values, np.linspace(0.0, 1.0, most + 1)[1:-1]))


class BoostedTrees:
    """Histogram gradient boosting of trees with 15 leaves on the table's columns, categories as categories."""

    def __init__(self, X: FloatArray, columns: Sequence[Column], trees: int) -> None:
        self._view = TableView.of(columns, X.shape[1])
        table = self._view.transform(X)
        numbers = np.flatnonzero(~self._view.categorical_columns)
        self._cuts = {int(column): bin_cuts(table[:, column]) for column in numbers}
        self._train = self._binned(table)
        self._trees = trees

    def _binned(self, table: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers as the bins they fall in, found once: the library would seek them anew at every fit."""
        for column, cuts in self._cuts.items():
            table[:, column] = np.searchsorted(cuts, table[:, column])
        return table

    def fit(self, rows: Ints, targets: Array, seed: int) -> Fields:
        """Boost on weighted copies of the rows; a single label everywhere gives a constant."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        copies, labels, weights = soft_label_rows(targets[rows])
        n_fields = targets.shape[1]
        present = np.unique(labels)
        if len(present) < 2:
            return _constant(present, n_fields)
        model = HistGradientBoostingClassifier(
            max_iter=self._trees,
            max_leaf_nodes=15,
            learning_rate=0.15,
            min_samples_leaf=40,
            l2_regularization=1.0,
            categorical_features=self._view.categorical_columns,
            early_stopping=False,
            random_state=seed % 2**31,
        )
        model.fit(self._train[rows[copies]], labels, sample_weight=weights)
        return TreeFields(model, self._view, self._cuts, n_fields, present)


def _constant(present: Ints, n_fields: int) -> Fields:
    """Fields when all labels are one class (or there are none)."""
    value = np.zeros(n_fields)
    if n_fields == 1:
        value[0] = 0.0 if not len(present) else (20.0 if present[0] == 1 else -20.0)
    elif len(present):
        value[:] = -20.0
        value[present] = 0.0
    return ConstantFields(value)


@dataclass(frozen=True)
class _Layers:
    """Hidden ReLU layers and a linear output, on centred features in one common scale."""

    centre: Array
    scale: float
    weights: tuple[NDArray[Any], ...]

    def __call__(self, X: FloatArray) -> Array:
        values = ((X - self.centre) / self.scale).astype(np.float32)
        pairs = list(zip(self.weights[::2], self.weights[1::2], strict=True))
        for kernel, bias in pairs[:-1]:
            values = np.maximum(values @ kernel + bias, 0.0)
        kernel, bias = pairs[-1]
        raw = np.asarray(values @ kernel + bias, np.float64)
        return raw if raw.shape[1] == 1 else np.asarray(log_softmax(raw, axis=1))


class Network:
    """The shared 256-128-64 network for a few epochs of a decaying rate, from fresh weights at every fit.

    Features are centred and divided by one common number: their relative scales carry information.
    """

    def __init__(self, X: FloatArray, epochs: int) -> None:
        self._centre = X.mean(axis=0, dtype=np.float64)
        variance = float(np.mean(X.var(axis=0, dtype=np.float64)))
        self._scale = float(np.sqrt(variance)) if variance > 0 else 1.0
        self._X = ((X - self._centre) / self._scale).astype(np.float32)
        self._epochs = epochs
        self._trainer: Any = None

    def fit(self, rows: Ints, targets: Array, seed: int) -> Fields:
        """Train on the soft labels of the given rows; the compiled step serves every fit."""
        from llpbench_methods.bp_count.network import soft_label_trainer, train_on_soft_labels

        if self._trainer is None:
            self._trainer = soft_label_trainer(self._X.shape[1], targets.shape[1])
        weights = train_on_soft_labels(
            self._trainer, self._X, targets, rows, epochs=self._epochs, seed=seed, monitor=QuietMonitor()
        )
        return _Layers(self._centre, self._scale, tuple(weights))
