"""``llpbench.LLPClassifier``: a scikit-learn classifier that is fitted to bags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d
from sklearn.utils.validation import validate_data as _validate_data

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.specs import Scalar
from llpbench.data.encoding.forms import as_frame, to_pandas
from llpbench.owndata.fit import fit
from llpbench.owndata.judging.held_out import sum_predictions
from llpbench.owndata.reading.bag_counts import read_bag_ids
from llpbench.owndata.reading.bagged_table import are_names, check_column, read_bagged_table

Target = Literal["counts", "proportions", "labels"]
TARGETS = ("counts", "proportions", "labels")
_SPARSE = ["csr", "csc", "coo"]


class LLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of rows that is fitted to the counts of bags.

    ``fit(X, y, bag_of=...)``: ``y`` is the count of each bag, in any form that ``llpbench.fit`` accepts. If ``y`` must
    have one value per row (pipelines, cross-validation), repeat the bag's value in all its rows. Without ``bag_of``,
    ``y`` is the label of each row, and every row is a bag.

    Args:
        method: a registered method; by default that of ``llpbench.fit``.
        params: its parameters.
        target: what ``y`` is if ``bag_of`` is given: ``counts``, ``proportions``, or ``labels`` of rows, of which
            only each bag's counts are used.
        classes: names of the classes, for counts and proportions.
        count_sd: standard deviation of noise in the counts.
        validation: share of the bags to hold out for selecting the model.
        random_state: seed of everything random: a number, or a generator to draw one from.
        backend: backend of the networks.
        encoding: ``table``, or ``none`` for features of one space.
        plugins: single-file plugins to load first.

    Attributes:
        model_: the fitted ``LLPModel``, which can be saved.
        classes_: the classes.
        n_features_in_: number of feature columns.
        feature_names_in_: their names, if they have any.
    """

    def __init__(
        self,
        method: str | None = None,
        *,
        params: Mapping[str, Scalar] | None = None,
        target: Target = "counts",
        classes: Sequence[Any] | None = None,
        count_sd: float = 0.0,
        validation: float = 0.1,
        random_state: Any = 0,
        backend: str = "",
        encoding: str = "table",
        plugins: str | Path | Sequence[str | Path] = (),
    ) -> None:
        self.method = method
        self.params = params
        self.target = target
        self.classes = classes
        self.count_sd = count_sd
        self.validation = validation
        self.random_state = random_state
        self.backend = backend
        self.encoding = encoding
        self.plugins = plugins

    def fit(self, X: Any, y: Any = None, bag_of: Any = None) -> Self:
        """Fit the classifier to bags.

        Args:
            X: the table.
            y: counts of bags (or what ``target`` says); labels of rows without ``bag_of``.
            bag_of: the bag of each row, or the name of a column of X, which is then not a feature.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: pass the counts of the bags "
                "(with bag_of), or the label of each row."
            )
        table, bag_of = self._take_bags(X, bag_of)
        labelled = bag_of is None or self.target == "labels"
        counted = [] if labelled else _columns_of_counts(table, y)
        checked = self._check(table.drop(columns=counted) if counted else table, reset=True)
        table = table if counted else checked
        with _value_errors():
            if self.target not in TARGETS:
                raise UnknownNameError("target", str(self.target), TARGETS)
            given = self._counts_of_labels(table, y, bag_of) if labelled else {"bag_of": bag_of, self.target: y}
            chosen: dict[str, Any] = {} if self.method is None else {"method": self.method}
            self.model_ = fit(
                table,
                **{"classes": self.classes, **given},
                **chosen,
                params=self.params,
                count_sd=self.count_sd,
                validation=self.validation,
                seed=self._seed(),
                backend=self.backend,
                encoding=self.encoding,
                plugins=self.plugins,
            )
        if not labelled:
            self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """(n, C) probability of each class."""
        table = self._table(X)
        with _value_errors():
            return self.model_.predict_proba(table)

    def decision_function(self, X: Any) -> FloatArray:
        """(n,) log-odds of the second of two classes, or (n, C) log-probabilities of more."""
        table = self._table(X)
        with _value_errors():
            return self.model_.decision_function(table)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """(n,) the most probable class of each row."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, bag_of: Any = None) -> float:
        """Accuracy on labels of rows, or mean log-likelihood of the counts of bags. Higher is better.

        Args:
            X: the table.
            y: labels of rows, or counts or proportions of bags as in ``fit``.
            sample_weight: weights of the rows, for accuracy.
            bag_of: the bag of each row; the score is then the mean log-likelihood of the bags' counts
                (``owndata/judging/held_out.py``), unless ``target`` is ``labels``.
        """
        if bag_of is None or self.target == "labels":
            return float(super().score(self._take_bags(X, bag_of)[0], y, sample_weight))
        check_is_fitted(self)
        table, bag_of = self._take_bags(X, bag_of)
        with _value_errors():
            named = {"counts": None, "proportions": None, self.target: y}
            known = read_bagged_table(
                table, bag_of, **named, classes=list(self.classes_), count_sd=self.count_sd, to_learn=False
            )
        p = self.predict_proba(table)[known.rows]
        sums = sum_predictions(p, known.bags.numbers, known.counts, known.bags.sizes, known.count_sd)
        return float(sums.log_likelihoods().mean())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _take_bags(self, X: Any, bag_of: Any) -> tuple[Any, Any]:
        """The table without the column that names the bags, and the bags."""
        X = to_pandas(X)
        if isinstance(bag_of, str):
            with _value_errors():
                frame = as_frame(X)
                check_column(bag_of, frame)
            return frame.drop(columns=bag_of), frame[bag_of]
        return X, bag_of

    def _check(self, X: Any, *, reset: bool) -> Any:
        """Validate a table as scikit-learn does; DataFrames keep their column types."""
        if hasattr(X, "iloc"):
            _validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        return _validate_data(self, X, reset=reset, dtype=None, accept_sparse=_SPARSE, ensure_all_finite="allow-nan")

    def _table(self, X: Any) -> Any:
        """A validated table; columns that were not fitted (that of the bags) are dropped."""
        check_is_fitted(self)
        X = to_pandas(X)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "iloc") and set(names) < set(X.columns):
            X = X[[name for name in X.columns if name in set(names)]]
        return self._check(X, reset=False)

    def _counts_of_labels(self, table: Any, y: Any, bag_of: Any) -> dict[str, Any]:
        """Counts of bags from labels of rows; without ``bag_of`` every row is a bag."""
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        rows = table.shape[0]
        if len(labels) != rows:
            hint = "" if bag_of is not None else " (without bag_of, y is the label of each row)"
            raise UsageError(f"y must have one value for each of the {rows:,} rows, got {len(labels):,}{hint}.")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise UsageError(f"y must have at least two classes, got only one class ({self.classes_[0]}).")
        bags = read_bag_ids(np.arange(len(labels)) if bag_of is None else bag_of, len(labels))
        counts = np.zeros((len(bags.ids), len(self.classes_)))
        np.add.at(counts, (bags.numbers, codes), 1.0)
        by_bag = dict(enumerate(counts.tolist()))
        return {"bag_of": bags.numbers, "counts": by_bag, "classes": self.classes_.tolist()}


def _columns_of_counts(table: Any, y: Any) -> list[str]:
    """The columns of a table that ``y`` names as counts, which are not features."""
    names = [y] if isinstance(y, str) else y
    if not hasattr(table, "iloc") or not are_names(names, table):
        return []
    return [name for name in names if name in table.columns]


@contextmanager
def _value_errors() -> Iterator[None]:
    """Turn ``UsageError`` into ``ValueError``, as scikit-learn's users expect."""
    try:
        yield
    except UsageError as error:
        raise ValueError(str(error)) from error
