"""``llpbench.LLPClassifier``: a scikit-learn classifier that is fitted to bags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, assert_all_finite, check_is_fitted, column_or_1d
from sklearn.utils.validation import validate_data as _validate_data

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.specs import Scalar
from llpbench.owndata.fit import fit
from llpbench.owndata.judging.held_out import sum_predictions
from llpbench.owndata.reading.arguments import are_names, check_column
from llpbench.owndata.reading.bag_ids import read_bag_ids
from llpbench.owndata.reading.bagged_table import read_bagged_table
from llpbench.owndata.reading.forms import as_frame, to_pandas
from llpbench.owndata.report import Report

if TYPE_CHECKING:
    import pandas as pd

Target = Literal["counts", "proportions", "labels"]
TARGETS = ("counts", "proportions", "labels")
_SPARSE = ["csr", "csc", "coo"]


class LLPClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of rows that is fitted to the counts of bags.

    ``fit(X, y, bag_of=...)``: ``y`` is the count of each bag, in any form that ``llpbench.fit`` accepts. If ``y`` must
    have one value per row (pipelines, cross-validation), repeat the bag's value in all its rows. With
    ``target="labels"`` ``y`` is the label of each row, and without ``bag_of`` every row is a bag. Several tables of
    counts about the same rows are passed as ``fit(X, counts=[by_job, by_region])``, without ``y`` and ``bag_of``.

    Args:
        method: a registered method; by default that of ``llpbench.fit``.
        params: its parameters.
        target: what ``y`` is: ``counts`` or ``proportions`` of bags, or ``labels`` of rows, of which only each bag's
            counts are used.
        classes: names of the classes, for counts and proportions.
        count_sd: standard deviation of noise in the counts, or one for each bag.
        validation: share of the bags to hold out for selecting the model.
        random_state: seed of everything random: a number, or a generator to draw one from.
        backend: backend of the networks.
        encoding: ``table``, or ``none`` for features of one space.
        plugins: single-file plugins to load first.
        verbose: whether to report the progress of fits; by default above 100,000 rows.

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
        count_sd: Any = 0.0,
        validation: float = 0.1,
        random_state: Any = 0,
        backend: str = "",
        encoding: str = "table",
        plugins: str | Path | Sequence[str | Path] = (),
        verbose: bool | None = None,
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
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, bag_of: Any = None, counts: Any = None) -> Self:
        """Fit the classifier to bags.

        Args:
            X: the table.
            y: counts of bags, or what ``target`` says.
            bag_of: the bag of each row, or the name of a column of X, which is then not a feature. Required unless
                ``target`` is ``labels``.
            counts: instead of ``y`` and ``bag_of``, a list of tables of counts, as for ``llpbench.fit``; of proportions
                if ``target`` says so.
        """
        if counts is not None:
            if y is not None or bag_of is not None or self.target == "labels":
                raise ValueError("counts, a list of tables, replaces y and bag_of; target must not be labels.")
            y = counts
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: pass the counts of the bags "
                "with bag_of."
            )
        if self.target not in TARGETS:
            raise ValueError(str(UnknownNameError("target", str(self.target), TARGETS)))
        labelled = self.target == "labels"
        if bag_of is None and counts is None and not labelled:
            raise ValueError(
                f"bag_of, the bag of each row, is missing: y contains {self.target} of bags. In cross-validation and "
                "pipelines pass it by metadata routing (set_fit_request(bag_of=True)). If y contains the label of each "
                'row, use target="labels".'
            )
        table, bag_of = self._take_bags(X, bag_of)
        counted = [] if labelled else _columns_of_counts(table, y)
        checked = self._check(table.drop(columns=counted) if counted else table, reset=True)
        table = table if counted else checked
        with _value_errors():
            given = self._counts_of_labels(table, y, bag_of) if labelled else {"bag_of": bag_of, self.target: y}
            self.model_ = fit(
                table,
                **{"classes": self.classes, **given},
                method=self.method,
                params=self.params,
                count_sd=self.count_sd,
                validation=self.validation,
                seed=self._seed(),
                backend=self.backend,
                encoding=self.encoding,
                plugins=self.plugins,
                progress=self.verbose,
            )
        if not labelled:
            self.classes_ = self.model_.classes_
        return self

    @property
    def labels_(self) -> np.ndarray[Any, Any]:
        """(n,) the most probable class of each row of the fit, given the counts of the bags."""
        return self.predict()

    def predict_proba(self, X: Any = None, bag_of: Any = None, counts: Any = None) -> FloatArray:
        """(n, C) probability of each class, given the counts of the bags if they are known.

        Args:
            X: the table; None for the table of the fit, with its bags and counts.
            bag_of: the bag of each row, or the name of a column, if counts are known.
            counts: the counts of the bags in the form of ``y`` in ``fit``, or a list of tables without ``bag_of``;
                proportions if ``target`` says so.
        """
        check_is_fitted(self)
        with _value_errors():
            if X is None:
                return self.model_.predict_proba(bag_of=bag_of, counts=counts)
            table, bag_of = self._take_bags(X, bag_of)
            table = self._table(table)
            if bag_of is None and counts is None:
                return self.model_.predict_proba(table)
            known = {"proportions" if self.target == "proportions" else "counts": counts}
            return self.model_.predict_proba(table, bag_of=bag_of, count_sd=self.count_sd, **known)

    def predict_log_proba(self, X: Any = None, bag_of: Any = None, counts: Any = None) -> FloatArray:
        """(n, C) logarithm of ``predict_proba``."""
        with np.errstate(divide="ignore"):  # counts may leave a class no row
            return np.asarray(np.log(self.predict_proba(X, bag_of, counts)))

    def decision_function(self, X: Any) -> FloatArray:
        """(n,) log-odds of the second of two classes, or (n, C) log-probabilities of more."""
        table = self._table(X)
        with _value_errors():
            return self.model_.decision_function(table)

    def predict(self, X: Any = None, bag_of: Any = None, counts: Any = None) -> np.ndarray[Any, Any]:
        """(n,) the most probable class of each row; arguments as those of ``predict_proba``."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X, bag_of, counts).argmax(axis=1)])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, bag_of: Any = None, counts: Any = None) -> float:
        """Accuracy on labels of rows, or mean log-likelihood of the counts of bags. Higher is better.

        Args:
            X: the table.
            y: labels of rows, or counts or proportions of bags as in ``fit``.
            sample_weight: weights of the rows; a bag has the sum of its rows' weights.
            bag_of: the bag of each row; the score is then the mean log-likelihood of the bags' counts
                (``owndata/judging/held_out.py``), unless ``target`` is ``labels``.
            counts: instead of ``y`` and ``bag_of``, a list of tables of counts.
        """
        if counts is not None:
            y = counts
        elif bag_of is None or self.target == "labels":
            check_is_fitted(self)
            if bag_of is None and not np.isin(np.asarray(y), self.classes_).all():
                raise ValueError(
                    f"y must contain labels of rows ({_listing(self.classes_)}) if bag_of is missing. To score counts "
                    "of bags pass bag_of, in cross-validation by metadata routing (set_score_request(bag_of=True))."
                )
            return float(super().score(self._take_bags(X, bag_of)[0], y, sample_weight))
        table, bag_of = self._take_bags(X, bag_of)
        with _value_errors():
            named = {"counts": None, "proportions": None, self.target: y}
            known = read_bagged_table(
                table, bag_of, **named, classes=list(self.classes_), count_sd=self.count_sd, to_learn=False
            )
        p = self.predict_proba(table)[known.rows]
        sums = sum_predictions(known.bags.entries(p), known.bags.numbers, known.counts, known.bags.sizes, known.noise)
        weights = None
        if sample_weight is not None:
            own = _check_sample_weight(sample_weight, table)[known.rows]
            weights = np.bincount(known.bags.numbers, known.bags.entries(own))
        return float(np.average(sums.log_likelihoods(), weights=weights))

    def report(self) -> Report:
        """How good the model is, as ``LLPModel.report``."""
        check_is_fitted(self)
        return self.model_.report()

    def subgroup_totals(self, X: Any = None, by: Any = None, **options: Any) -> pd.DataFrame:
        """Expected number of rows of each class in subgroups; arguments as those of ``LLPModel.subgroup_totals``."""
        check_is_fitted(self)
        with _value_errors():
            return self.model_.subgroup_totals(X, by, **options)

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
            raise UsageError(f"y must have one value for each of the {rows:,} rows, got {len(labels):,}.")
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise UsageError(f"y must have at least two classes, got only one class ({self.classes_[0]}).")
        bags = read_bag_ids(np.arange(len(labels)) if bag_of is None else bag_of, len(labels))
        counts = np.zeros((len(bags.ids), len(self.classes_)))
        np.add.at(counts, (bags.numbers, codes), 1.0)
        by_bag = dict(enumerate(counts.tolist()))
        return {"bag_of": bags.numbers, "counts": by_bag, "classes": self.classes_.tolist()}


def _listing(classes: np.ndarray[Any, Any]) -> str:
    return ", ".join(map(repr, classes.tolist()[:5])) + (", ..." if len(classes) > 5 else "")


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
