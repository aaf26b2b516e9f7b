"""Fields of scikit-learn's boosted trees, and how such a model is saved without pickle (by skops)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from llpbench import FloatArray, MethodError
from llpbench_methods.shared.columns import TableView

Array = NDArray[np.float64]

_TRUSTED = (
    "functools.partial",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.utils.validation.check_array",
)
"""Types in a saved model that skops does not trust by itself."""


@dataclass(frozen=True)
class TreeFields:
    """Fields of boosted trees on a table's own columns, numbers as the bins they fall in.

    Attributes:
        model: a fitted ``HistGradientBoostingClassifier``.
        view: the table's own columns.
        cuts: cuts between the bins of each numeric column.
        n_fields: 1, or the number of classes.
        present: the classes that the trees know.
        saved: the model as ``load_trees`` read it; empty if it was fitted here.
    """

    model: Any
    view: TableView
    cuts: Mapping[int, NDArray[Any]]
    n_fields: int
    present: NDArray[np.int64]
    saved: bytes = b""

    def __call__(self, X: FloatArray) -> Array:
        """(n, 1) or (n, C) fields; a class the trees do not know gets almost no probability."""
        table = self.view.transform(X)
        for column, cuts in self.cuts.items():
            table[:, column] = np.searchsorted(cuts, table[:, column])
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


def dump_trees(fields: TreeFields) -> NDArray[np.uint8]:
    """The trees as bytes.

    Raises:
        MethodError: if they contain types that ``load_trees`` would reject.
    """
    import skops.io

    data = fields.saved or skops.io.dumps(fields.model)
    unknown = sorted(set(skops.io.get_untrusted_types(data=data)) - set(_TRUSTED))
    if unknown:
        import sklearn

        raise MethodError(
            f"Boosted trees of scikit-learn {sklearn.__version__} contain types that bp-count does not know how to "
            f"save: {', '.join(unknown)}."
        )
    return np.frombuffer(data, np.uint8)


def load_trees(array: NDArray[Any]) -> tuple[Any, bytes]:
    """The model and its bytes.

    Raises:
        ValueError: if the bytes are not a saved model, or contain other types than ``dump_trees`` writes.
    """
    import skops.io
    from sklearn.ensemble import HistGradientBoostingClassifier

    data = np.asarray(array, np.uint8).tobytes()
    try:
        model = skops.io.loads(data, trusted=list(_TRUSTED))
    except Exception as error:  # whatever a damaged file makes skops raise
        raise ValueError(f"the boosted trees cannot be read: {error}") from error
    if not isinstance(model, HistGradientBoostingClassifier):
        raise ValueError(f"expected boosted trees, got {type(model).__name__}")
    return model, data
