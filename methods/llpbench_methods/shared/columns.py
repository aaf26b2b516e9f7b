"""Two other forms of the features: hat functions of numeric columns (regression), categories as codes (trees)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench import Column, State

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class ColumnGroups:
    """The original column of each feature, and which columns are numeric.

    Attributes:
        first: (columns,) first feature of each column.
        width: (columns,) number of its features.
        numeric: (columns,) whether it is a number.
    """

    first: Ints
    width: Ints
    numeric: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Sequence[Column], n_features: int) -> ColumnGroups:
        """The groups of a table; without columns every feature is a numeric column of its own."""
        if not columns:
            return cls(np.arange(n_features), np.ones(n_features, np.int64), np.ones(n_features, bool))
        width = np.array([c.width for c in columns], np.int64)
        first = np.concatenate([[0], np.cumsum(width)[:-1]])
        return cls(first, width, np.array([c.kind == "numeric" for c in columns]))

    @property
    def group_of(self) -> Ints:
        """(features,) column of each feature."""
        return np.repeat(np.arange(len(self.width)), self.width)


@dataclass(frozen=True)
class HatFunctions:
    """Piecewise linear functions of numeric columns, one for each knot.

    ``φ_k(x)`` is 1 at knot ``k``, 0 at the others and linear between; beyond the last knots it stays. The
    functions of a column add up to 1.

    Attributes:
        features: (columns,) feature each set of knots belongs to.
        knots: for each of them its rising knots, at quantiles of the training rows.
        groups: (columns,) number of the original column.
    """

    features: tuple[int, ...]
    knots: tuple[Array, ...]
    groups: tuple[int, ...]

    @classmethod
    def of(cls, X: NDArray[Any], groups: ColumnGroups, count: int = 7, most: int = 1024) -> HatFunctions:
        """Knots at ``count`` equally spaced quantiles of every numeric column (none above ``most`` functions)."""
        features, knots, owners = [], [], []
        columns = np.flatnonzero(groups.numeric)
        if len(columns) * count > most:
            return cls((), (), ())
        levels = np.linspace(0.0, 1.0, count)
        for column in columns:
            feature = int(groups.first[column])
            places = np.unique(np.quantile(X[:, feature].astype(np.float64), levels))
            if len(places) > 2:
                features.append(feature)
                knots.append(places)
                owners.append(int(column))
        return cls(tuple(features), tuple(knots), tuple(owners))

    @property
    def group_of(self) -> Ints:
        """(functions,) original column of each function."""
        return np.repeat(np.array(self.groups, np.int64), [len(k) for k in self.knots])

    def transform(self, X: NDArray[Any]) -> Array:
        """(n, functions) values, column after column."""
        parts = []
        for feature, places in zip(self.features, self.knots, strict=True):
            x = X[:, feature].astype(np.float64)
            parts.append(np.column_stack([np.interp(x, places, unit) for unit in np.eye(len(places))]))
        return np.hstack(parts) if parts else np.zeros((len(X), 0))

    def extend(self, X: NDArray[Any]) -> Array:
        """(n, d + functions): the features and, behind them, the functions."""
        return np.hstack([X.astype(np.float64), self.transform(X)])


NO_HATS = HatFunctions((), (), ())


def hats_state(hats: HatFunctions) -> dict[str, Any]:
    """Hat functions as plain arrays."""
    return {
        "hats.features": np.array(hats.features, np.int64),
        "hats.groups": np.array(hats.groups, np.int64),
        "hats.lengths": np.array([len(places) for places in hats.knots], np.int64),
        "hats.knots": np.concatenate([np.zeros(0), *hats.knots]),
    }


def restored_hats(state: State) -> HatFunctions:
    """The hat functions of a state; none if it has none.

    Raises:
        ValueError: the arrays do not fit together.
    """
    if not any(name.startswith("hats.") for name in state):
        return NO_HATS
    features, groups, lengths = (np.asarray(state[f"hats.{name}"]) for name in ("features", "groups", "lengths"))
    knots = np.asarray(state["hats.knots"], np.float64)
    whole = all(each.ndim == 1 and np.issubdtype(each.dtype, np.integer) for each in (features, groups, lengths))
    if not whole or not len(features) == len(groups) == len(lengths) or (len(features) and features.min() < 0):
        raise ValueError("the hat functions have inconsistent shapes")
    if (lengths < 0).any() or knots.shape != (int(lengths.sum()),):
        raise ValueError(f"hats.knots has shape {knots.shape}, expected {(int(lengths.sum()),)}")
    parts = np.split(knots, np.cumsum(lengths)[:-1])
    return HatFunctions(tuple(map(int, features)), tuple(parts[: len(features)]), tuple(map(int, groups)))


@dataclass(frozen=True)
class TableView:
    """The table's own columns: numbers as they are, a one-hot block as one integer code.

    Attributes:
        groups: the columns.
        categorical: (columns,) which are codes (blocks of at most ``most`` values; wider ones stay features).
    """

    groups: ColumnGroups
    categorical: NDArray[np.bool_]

    @classmethod
    def of(cls, columns: Sequence[Column], n_features: int, most: int = 200) -> TableView:
        """The view; ``most`` is how many values histogram trees can distinguish."""
        groups = ColumnGroups.of(columns, n_features)
        return cls(groups, ~groups.numeric & (groups.width > 1) & (groups.width <= most))

    @property
    def categorical_columns(self) -> NDArray[np.bool_]:
        """Mask of the columns of ``transform`` that are codes."""
        flags = [[True] if c else [False] * int(w) for c, w in zip(self.categorical, self.groups.width, strict=True)]
        return np.array([flag for part in flags for flag in part], bool)

    def transform(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """(n, columns) values; a row with no value in a block gets the code after the last."""
        parts: list[NDArray[Any]] = []
        for coded, first, width in zip(self.categorical, self.groups.first, self.groups.width, strict=True):
            block = X[:, first : first + width]
            if coded:
                code = np.where(block.max(axis=1) > 0, block.argmax(axis=1), width)
                parts.append(code[:, None])
            else:
                parts.append(block)
        return np.hstack(parts).astype(np.float32)
