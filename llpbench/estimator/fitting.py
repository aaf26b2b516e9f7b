"""The steps of a fit on a user's own bags: taking the table apart, holding bags back, watching the method."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import Bags, Column, FloatArray
from llpbench.contracts.errors import MethodError, Skip, UnknownNameError, UsageError
from llpbench.contracts.protocols import Method, Predict
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.contracts.state import HOW_TO, is_restorable
from llpbench.estimator.bag_counts import BagIds
from llpbench.experiment.bags import bag_order, read_only
from llpbench.experiment.fit_cell import fit_method
from llpbench.experiment.monitor import Best, HarnessMonitor
from llpbench.experiment.rules import make_rules
from llpbench.experiment.seeds import derive_seed

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class BagMonitor(HarnessMonitor):
    """The harness's monitor under the rule ``bags`` alone: there are no labels to judge anything else by.

    Keeps the method as it was at the best report, so that what predicts in the end is what was chosen.

    Attributes:
        method: the method that is watched.
        kept: its state at the best report, or a copy of it; None when neither could be had.
    """

    method: Any = None
    kept: Any = None

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """As in the harness; a report that is the best of all stages is kept."""
        improved = super().report(predict, stage=stage)
        if self.winner(self.rules[0]).report == len(self.history) - 1:
            with self.clock.phase("report"):
                self.kept = self._snapshot()
        return improved

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Nothing to compare them with."""

    def _snapshot(self) -> Any:
        try:
            if is_restorable(self.method):
                return {name: copy.copy(value) for name, value in self.method.state().items()}
            return copy.deepcopy(self.method)
        except Exception:  # a method may report before its state is whole; its last model may still be the best one
            return None


def fit_and_choose(spec: MethodSpec, settings: Mapping[str, Scalar], train: Bags, seed: int) -> tuple[Any, BagMonitor]:
    """Fit a method, and the model of its best report."""
    assert train.validation is not None
    method: Method = spec.load()(**settings)
    monitor = BagMonitor(
        rules=[rule for rule in make_rules(train.validation, np.zeros(0, np.int64)) if rule.name == "bags"],
        valid=train.validation,
        test_rows=train.validation.X,
        train_labels=np.zeros(0, np.int64),
        classes=train.classes,
        score_kind=spec.scores,
        patience=int(settings.get("patience") or 20),
        method=method,
    )
    try:
        fit_method(method, train, monitor, seed)
    except Skip as skip:
        raise UsageError(f"{spec.name} declines these bags: {skip}") from None
    best = monitor.winner(monitor.rules[0])
    if _agrees(method, train.validation, best):
        return method, monitor
    kept = monitor.kept
    if isinstance(kept, dict) and is_restorable(method):
        kept = spec.load()(**settings).restore(kept)
    if kept is None or not _agrees(kept, train.validation, best):
        raise MethodError(
            f"{spec.name}: the model that stands after fit is not that of its best report, "
            f"and that one is lost; {HOW_TO}."
        )
    return kept, monitor


def _agrees(method: Any, held: Bags, best: Best) -> bool:
    """Whether a model gives the scores of the best report."""
    assert best.scores is not None
    scores = np.asarray(method.predict_scores(held.X), np.float64)
    reach = 1e-6 * (1.0 + float(np.abs(best.scores).max(initial=0.0)))
    return scores.shape == best.scores.shape and bool((np.abs(scores - best.scores) <= reach).all())


@dataclass(frozen=True)
class Separated:
    """A user's table taken apart.

    Attributes:
        features: the columns that are left to learn from.
        bag_of: the bag of each row.
        values: counts or proportions.
        proportions: which of the two.
        per_row: whether they came from columns of the table.
    """

    features: pd.DataFrame
    bag_of: Any
    values: Any
    proportions: bool
    per_row: bool


def separate(frame: pd.DataFrame, bag_of: Any, counts: Any, proportions: Any) -> Separated:
    """Columns that were given by name are taken out of the features."""
    if (counts is None) == (proportions is None):
        raise UsageError("give either counts or proportions.")
    values = counts if counts is not None else proportions
    taken: list[str] = []

    def column(name: str) -> str:
        if name not in frame.columns:
            raise UnknownNameError("column of the table:", name, map(str, frame.columns))
        taken.append(name)
        return name

    if isinstance(bag_of, str):
        bag_of = frame[column(bag_of)]
    names = [values] if isinstance(values, str) else values
    per_row = isinstance(names, list | tuple) and len(names) > 0 and all(isinstance(name, str) for name in names)
    if per_row:
        values = frame[[column(name) for name in names]]
    return Separated(frame.drop(columns=taken), bag_of, values, counts is None, per_row)


def hold_back(n: int, share: float, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Numbers of the bags to learn from, and of those that are held back."""
    if not 0.0 < share < 1.0:
        raise UsageError(
            f"validation must be a share of the bags between 0 and 1, not {share!r}: they choose the model."
        )
    if n < 2:
        raise UsageError(f"there is {n} bag; at least two are needed, one of them to choose the model.")
    held = min(max(round(share * n), 1), n - 1)
    order = np.random.default_rng(derive_seed("validation", seed=seed)).permutation(n)
    return np.sort(order[held:]), np.sort(order[:held])


def chosen_bags(
    features: FloatArray,
    ids: BagIds,
    chosen: np.ndarray[Any, Any],
    counts: FloatArray,
    *,
    classes: int,
    count_sd: float,
    columns: tuple[Column, ...],
    rng: np.random.Generator,
) -> Bags:
    """The chosen bags as a method gets them."""
    rows = np.flatnonzero(np.isin(ids.numbers, chosen))
    order, offsets = bag_order(ids.numbers[rows], len(rows), rng)
    return Bags(
        X=read_only(features[rows[order]]),
        offsets=read_only(offsets),
        counts=read_only(np.array(counts[chosen], np.float64)),
        classes=classes,
        count_sd=count_sd,
        columns=columns,
    )
