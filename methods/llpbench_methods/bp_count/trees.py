"""Boosted trees as plain arrays: written down without pickle, predicting bit for bit what scikit-learn predicts.

Histogram boosting of scikit-learn first codes each categorical column by the place of its value among those of the
training rows (any other is missing) and puts these columns in front; a tree then asks of a number whether it is at
most a threshold, of a code whether its bit is set. The sum starts at the baseline and takes tree after tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from llpbench import FloatArray, MethodError, State
from llpbench_methods.bp_count.features import TableView

Array = NDArray[np.float64]

_CODES = 256
"""Codes a categorical split can distinguish."""


@dataclass(frozen=True)
class TreeArrays:
    """All trees of a boosted model; nodes lie tree after tree, each before its children.

    Attributes:
        baseline: (K,) where the sums start; tree ``t`` adds to sum ``t mod K``.
        starts: (trees + 1,) first node of each tree.
        feature: (nodes,) column asked, in the order of ``order``.
        threshold: (nodes,) a number goes left when it is at most this.
        left: (nodes,) number of the left child in its tree, 0 for a leaf.
        right: (nodes,) number of the right child.
        value: (nodes,) what a leaf adds.
        leaf: (nodes,) whether it is one.
        missing_left: (nodes,) whether a missing value goes left.
        bits: (nodes,) row of ``go_left`` for a categorical question, -1 for a number's.
        go_left: (questions, 256) whether a code goes left.
        order: (columns,) column of the table at each place.
        categories: the values of the categorical columns, the first places of ``order``, one after the other.
        category_starts: (categorical columns + 1,) where each column's values start.
    """

    baseline: Array
    starts: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Array
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: Array
    leaf: NDArray[np.bool_]
    missing_left: NDArray[np.bool_]
    bits: NDArray[np.int64]
    go_left: NDArray[np.bool_]
    order: NDArray[np.int64]
    categories: Array
    category_starts: NDArray[np.int64]

    @classmethod
    def of(cls, model: Any) -> TreeArrays:
        """Take a fitted ``HistGradientBoostingClassifier`` apart.

        scikit-learn has no public way to its trees, so private attributes are read; pyproject.toml bounds its version.

        Raises:
            MethodError: this version of scikit-learn has not got those attributes.
        """
        try:
            return cls._of_private_parts(model)
        except (AttributeError, KeyError, ValueError) as error:
            import sklearn

            raise MethodError(
                f"scikit-learn {sklearn.__version__} keeps boosted trees in a form that bp-count cannot write down "
                f"({error}). Install scikit-learn 1.5 to 1.9 to save this model."
            ) from error

    @classmethod
    def _of_private_parts(cls, model: Any) -> TreeArrays:
        trees = [tree for iteration in model._predictors for tree in iteration]
        nodes = np.concatenate([tree.nodes for tree in trees])
        sets = [np.asarray(tree.raw_left_cat_bitsets, np.uint32).reshape(-1, _CODES // 32) for tree in trees]
        first_set = np.repeat(np.cumsum([0, *(len(s) for s in sets[:-1])]), [len(tree.nodes) for tree in trees])
        asked = (nodes["is_categorical"] != 0) & (nodes["is_leaf"] == 0)
        flags = np.zeros(model.n_features_in_, bool)
        if model.is_categorical_ is not None:
            flags |= model.is_categorical_
        known = model._preprocessor.named_transformers_["encoder"].categories_ if flags.any() else []
        return cls(
            baseline=np.asarray(model._baseline_prediction, np.float64).reshape(-1),
            starts=np.cumsum([0, *(len(tree.nodes) for tree in trees)]),
            feature=nodes["feature_idx"].astype(np.int64),
            threshold=nodes["num_threshold"].astype(np.float64),
            left=nodes["left"].astype(np.int64),
            right=nodes["right"].astype(np.int64),
            value=nodes["value"].astype(np.float64),
            leaf=nodes["is_leaf"] != 0,
            missing_left=nodes["missing_go_to_left"] != 0,
            bits=np.where(asked, nodes["bitset_idx"].astype(np.int64) + first_set, -1),
            go_left=_unpacked(np.concatenate(sets)),
            order=np.concatenate([np.flatnonzero(flags), np.flatnonzero(~flags)]),
            categories=np.concatenate([np.zeros(0), *known]).astype(np.float64),
            category_starts=np.cumsum([0, *(len(values) for values in known)]),
        )

    @classmethod
    def restored(cls, state: State, prefix: str) -> TreeArrays:
        """Read the arrays back, and make sure that every path through them ends."""
        trees = cls(**{f.name: np.asarray(state[prefix + f.name]) for f in fields(cls)})
        trees.check()
        return trees

    def state(self, prefix: str) -> dict[str, Any]:
        """The arrays by name."""
        return {prefix + f.name: getattr(self, f.name) for f in fields(self)}

    def check(self) -> None:
        """Raise ``ValueError`` unless indices stay inside and children come after their parents."""
        n, columns, categorical = len(self.feature), len(self.order), len(self.category_starts) - 1
        per_node = (self.threshold, self.left, self.right, self.value, self.leaf, self.missing_left, self.bits)
        whole = (self.starts, self.feature, self.left, self.right, self.bits, self.order, self.category_starts)
        inner = np.flatnonzero(~self.leaf.astype(bool)) if self.leaf.shape == (n,) else np.zeros(0, np.int64)
        sound = (
            all(a.shape == (n,) for a in per_node)
            and all(a.ndim == 1 and a.dtype.kind in "iu" for a in whole)
            and self.leaf.dtype == bool
            and self.go_left.dtype == bool
            and self.go_left.ndim == 2
            and self.go_left.shape[1] == _CODES
            and self.baseline.ndim == 1
            and len(self.baseline) > 0
            and _rising(self.starts, n)
            and _rising(self.category_starts, len(self.categories))
            and categorical <= columns
            and bool(np.all(np.sort(self.order) == np.arange(columns)))
        )
        if sound and n:
            tree = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
            own, size = inner - self.starts[tree[inner]], np.diff(self.starts)[tree[inner]]
            sound = bool(
                np.all(np.diff(self.starts) > 0)
                and all(np.all((child[inner] > own) & (child[inner] < size)) for child in (self.left, self.right))
                and np.all((self.feature[inner] >= 0) & (self.feature[inner] < columns))
                and np.all((self.bits >= -1) & (self.bits < len(self.go_left)))
                and np.all(self.feature[inner][self.bits[inner] >= 0] < categorical)
            )
        if not sound:
            raise ValueError("the arrays of the boosted trees do not fit together")

    def __call__(self, table: NDArray[Any]) -> Array:
        """(n, K) sums for the rows of a table."""
        X = self._coded(table)
        sums = np.zeros((len(X), len(self.baseline))) + self.baseline
        for t in range(len(self.starts) - 1):
            sums[:, t % len(self.baseline)] += self._tree(X, int(self.starts[t]))
        return sums

    def _coded(self, table: NDArray[Any]) -> Array:
        """Columns in the trees' order; categories as places among the known, NaN for others."""
        X = np.asarray(table, np.float64)[:, self.order]
        for j in range(len(self.category_starts) - 1):
            known = self.categories[self.category_starts[j] : self.category_starts[j + 1]]
            place = np.minimum(np.searchsorted(known, X[:, j]), max(len(known) - 1, 0))
            X[:, j] = np.where(known[place] == X[:, j], place, np.nan) if len(known) else np.nan
        return X

    def _tree(self, X: Array, start: int) -> Array:
        """What one tree adds to each row: all rows walk down together."""
        at = np.full(len(X), start)
        walking = np.flatnonzero(~self.leaf[at])
        while len(walking):
            node = at[walking]
            x = X[walking, self.feature[node]]
            missing, bits = np.isnan(x), self.bits[node]
            left = x <= self.threshold[node]
            coded = (bits >= 0) & ~missing
            left[coded] = self.go_left[bits[coded], x[coded].astype(np.int64) % _CODES]
            left = np.where(missing, self.missing_left[node], left)
            at[walking] = start + np.where(left, self.left[node], self.right[node])
            walking = walking[~self.leaf[at[walking]]]
        return np.asarray(self.value[at])


@dataclass(frozen=True)
class TreeFields:
    """Fields of boosted trees on a table's own columns, numbers as the bins they fall in.

    Attributes:
        model: scikit-learn's model, or the same trees as plain arrays.
        view: the table's own columns.
        cuts: cuts between the bins of each numeric column.
        n_fields: 1, or the number of classes.
        present: the classes that the trees know.
    """

    model: Any
    view: TableView
    cuts: Mapping[int, NDArray[Any]]
    n_fields: int
    present: NDArray[np.int64]

    def __call__(self, X: FloatArray) -> Array:
        """(n, 1) or (n, C) fields; a class the trees do not know gets almost no probability."""
        table = self.view.transform(X)
        for column, cuts in self.cuts.items():
            table[:, column] = np.searchsorted(cuts, table[:, column])
        if isinstance(self.model, TreeArrays):
            raw = self.model(table)
            raw = raw[:, 0] if raw.shape[1] == 1 else raw
        else:
            raw = np.asarray(self.model.decision_function(table), np.float64)
        if self.n_fields == 1:
            return raw[:, None]
        if raw.ndim == 1:
            raw = np.column_stack([np.zeros(len(raw)), raw])
        full = np.full((len(raw), self.n_fields), -20.0)
        full[:, self.present] = log_softmax(raw, axis=1)
        return full


@dataclass(frozen=True)
class ConstantFields:
    """The same fields, (1,) or (C,), for every row."""

    value: Array

    def __call__(self, X: FloatArray) -> Array:
        """The fields, once for each row."""
        return np.tile(self.value, (len(X), 1))


def _unpacked(words: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """(sets, 256) bits of (sets, 8) words of 32."""
    bits = (words[:, :, None] >> np.arange(32, dtype=np.uint32)) & np.uint32(1)
    return bits.reshape(len(words), _CODES).astype(bool)


def _rising(starts: NDArray[Any], end: int) -> bool:
    """Whether these are offsets from 0 to ``end``."""
    return len(starts) > 0 and starts[0] == 0 and starts[-1] == end and bool(np.all(np.diff(starts) >= 0))
