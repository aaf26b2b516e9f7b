"""Fits of one method on some of a user's bags: the model itself, and fits on halves of the bags that assess it."""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import Bags, Column, FloatArray, IntArray, read_only
from llpbench.contracts.errors import LLPBenchError, MethodError, Skip, UnknownNameError, UsageError
from llpbench.contracts.protocols import Method, Predict
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.contracts.state import HOW_TO, is_restorable
from llpbench.experiment.bags import bag_order
from llpbench.experiment.judge import Best, patience_of
from llpbench.experiment.monitor import HarnessMonitor, fit_method
from llpbench.experiment.rules import make_rules
from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.judging.assessment import Halves, UnseenBags
from llpbench.owndata.judging.predictor import Predictor, calibrate
from llpbench.owndata.progress import say_nothing
from llpbench.owndata.reading.bag_counts import KnownCounts
from llpbench.owndata.reading.bag_ids import BagIds
from llpbench.owndata.reading.bagged_table import is_share
from llpbench.owndata.threads import one_thread
from llpbench.plugins.registry import Entry, Registry, unmet_needs

if TYPE_CHECKING:
    import pandas as pd


def find_method(registry: Registry, name: str) -> Entry[MethodSpec]:
    """The method of that name; raises ``UsageError`` if it needs the label of every row."""
    entry = registry.methods.entry(name)
    if entry.spec.oracle:
        raise UsageError(f"{name} needs the label of every row: it is an upper bound for benchmarks.")
    return entry


def choose_backend(entry: Entry[MethodSpec], wanted: str, usual: str = "") -> str:
    """Choose the backend of a method's networks and set ``KERAS_BACKEND`` to it.

    The first of these that is set: ``wanted``, the backend that Keras runs on in this process, ``usual``, the variable
    ``KERAS_BACKEND``, the first backend that the method declares.

    Args:
        entry: the method.
        wanted: the backend that the user asked for, or empty.
        usual: the backend that a saved model was fitted with, or empty.

    Returns:
        The backend; empty for a method without networks.

    Raises:
        UsageError: the method cannot run here, with what is missing.
    """
    spec = entry.spec
    backend = ""
    if spec.backends:
        keras = sys.modules.get("keras")
        running = str(keras.backend.backend()) if keras is not None else ""
        backend = wanted or running or usual or os.environ.get("KERAS_BACKEND", "") or spec.backends[0]
        if backend not in spec.backends:
            raise UnknownNameError(f"backend of {spec.name}:", backend, spec.backends)
        if running and running != backend:
            raise UsageError(f"Keras already runs on {running} in this process; start a new process for {backend}.")
    elif wanted:
        raise UsageError(f"{spec.name} has no networks; remove backend={wanted!r}.")
    needs = unmet_needs(entry, backend)
    if needs:
        raise UsageError(needs)
    if backend:
        os.environ["KERAS_BACKEND"] = backend
    return backend


@dataclass
class BagMonitor(HarnessMonitor):
    """The harness's monitor with the rule ``bags`` only, since the other rules need labels of rows.

    Attributes:
        method: the method that is fitted.
        kept: its state at the best report, or a copy of the method; None if neither could be made.
    """

    method: Any = None
    kept: Any = None

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """Judge a report, and keep the model if it is the best of all stages."""
        improved = super().report(predict, stage=stage)
        if self.best.report == len(self.history) - 1:
            with self.clock.phase("report"):
                self.kept = self._copy_of_model()
        return improved

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Ignored: there are no labels to compare them with."""

    @property
    def best(self) -> Best:
        """The report that the rule selects."""
        return self.winner(self.rules[0])

    def _copy_of_model(self) -> Any:
        try:
            if is_restorable(self.method):
                return {name: copy.copy(value) for name, value in self.method.state().items()}
            return copy.deepcopy(self.method)
        except Exception:  # a method may report before its state is complete; its last model may still be the best
            return None


def fit_and_choose(spec: MethodSpec, settings: Mapping[str, Scalar], train: Bags, seed: int) -> tuple[Any, BagMonitor]:
    """Fit a method; return the model of its best report, and the monitor."""
    assert train.validation is not None
    method: Method = spec.load()(**settings)
    monitor = BagMonitor(
        rules=[rule for rule in make_rules(train.validation, np.zeros(0, np.int64)) if rule.name == "bags"],
        valid=train.validation,
        test_rows=train.validation.X,
        train_labels=np.zeros(0, np.int64),
        classes=train.classes,
        score_kind=spec.scores,
        patience=patience_of(settings),
        method=method,
    )
    try:
        fit_method(method, train, monitor, seed, overlapping=spec.overlapping)
    except Skip as skip:
        raise UsageError(f"{spec.name} does not support these bags: {skip}") from None
    if _gives_scores_of(method, train.validation, monitor.best):
        return method, monitor
    kept = monitor.kept
    if isinstance(kept, dict) and is_restorable(method):
        kept = spec.load()(**settings).restore(kept)
    if kept is None or not _gives_scores_of(kept, train.validation, monitor.best):
        raise MethodError(
            f"{spec.name}: the model after fit is not the one of its best report, and that one could not be kept; "
            f"{HOW_TO}."
        )
    return kept, monitor


def _gives_scores_of(method: Any, held_out: Bags, best: Best) -> bool:
    assert best.scores is not None
    scores = np.asarray(method.predict_scores(held_out.X), np.float64)
    reach = 1e-6 * (1.0 + float(np.abs(best.scores).max(initial=0.0)))
    return scores.shape == best.scores.shape and bool((np.abs(scores - best.scores) <= reach).all())


@dataclass(frozen=True)
class Trained:
    """A model, the bags it was fitted on, the held-out bags that selected its report, and the monitor of the fit."""

    predictor: Predictor
    train: Bags
    held_out: Bags
    monitor: BagMonitor


@dataclass(frozen=True)
class BagTrainer:
    """A user's bags and a method: everything that a fit on some of the bags needs.

    Attributes:
        spec: the method.
        settings: its parameters.
        features: (n, d) all rows of the table, in its order.
        bags: the bag of each row.
        counts: (bags, 1 or C) known counts.
        classes: number of classes.
        count_sd: standard deviation of the noise in the counts.
        columns: descriptions of the table's columns for the method.
        seed: seed of everything random.
        say: gets a line before and after each fit.
    """

    spec: MethodSpec
    settings: Mapping[str, Scalar]
    features: FloatArray
    bags: BagIds
    counts: FloatArray
    classes: int
    count_sd: float
    columns: tuple[Column, ...]
    seed: int
    say: Callable[[str], None] = say_nothing

    def fit(self, train: IntArray, held_out: IntArray, seed: int) -> Trained:
        """Fit on the bags numbered ``train`` with one thread; the bags numbered ``held_out`` select the report."""
        rng = np.random.default_rng(derive_seed("rows", seed=self.seed))
        watched = self.take(held_out, rng)
        learned = replace(self.take(train, rng), validation=watched)
        self.say(f"{self.spec.name}: fitting {len(learned):,} bags of {len(learned.X):,} rows")
        began = time.perf_counter()
        with one_thread():
            fitted, monitor = fit_and_choose(self.spec, self.settings, learned, seed)
            calibration = None
            if monitor.score_kind not in ("auto", "probability"):
                scores = fitted.predict_scores(learned.X), fitted.predict_scores(watched.X)
                calibration = calibrate(scores[0], learned, scores[1], watched)
        self.say(f"{self.spec.name}: done in {time.perf_counter() - began:.1f} s")
        return Trained(Predictor(self.spec.name, fitted, self.classes, calibration), learned, watched, monitor)

    def take(self, chosen: IntArray, rng: np.random.Generator) -> Bags:
        """The chosen bags as methods get them."""
        rows, own = self.bags.rows_of(chosen), self.bags.take(chosen)
        if own.overlap is None:
            order, offsets = bag_order(own.numbers, len(rows), rng)
            overlap = None
        else:
            order = rng.permutation(len(rows))
            entries = np.argsort(own.numbers, kind="stable")
            offsets = np.concatenate([[0], np.cumsum(own.sizes)])
            members = np.argsort(order)[own.overlap.members[entries]]
            overlap = replace(own.overlap, members=read_only(members))
        return Bags(
            X=read_only(self.features[rows[order]]),
            offsets=read_only(offsets),
            counts=read_only(np.array(self.counts[chosen], np.float64)),
            classes=self.classes,
            count_sd=self.count_sd,
            columns=self.columns,
            overlap=overlap,
        )

    def halve(self, train: IntArray, held_out: IntArray, number: int) -> Halves | None:
        """Split the bags into two halves with similar proportions, and fit on each half.

        Args:
            train: numbers of the bags to split.
            held_out: numbers of the bags that select the reports.
            number: which split; each number gives a different one.

        Returns:
            The two fits, each with the bags of the other half; None if there are fewer than two bags, or the method
            does not support half of them.
        """
        if len(train) < 2:
            return None
        rng = np.random.default_rng(derive_seed("halves", seed=self.seed, number=number))
        first, second = cut_in_halves(train, self.counts / self.bags.sizes[:, None], rng, self.bags.grouping_of)
        made: list[UnseenBags] = []
        for learn, judge in ((first, second), (second, first)):
            seed = derive_seed("half", seed=self.seed, method=self.spec.name, number=number, part=len(made))
            try:
                trained = self.fit(learn, held_out, seed)
            except LLPBenchError:
                return None
            made.append(UnseenBags.of(trained.predictor, trained.train, self.take(judge, rng)))
        return made[0], made[1]


def cut_in_halves(
    chosen: IntArray, proportions: FloatArray, rng: np.random.Generator, grouping_of: IntArray | None = None
) -> tuple[IntArray, IntArray]:
    """Two disjoint halves of bags with similar proportions.

    Bags are sorted by the proportion with the largest spread, and each pair of neighbours is split at random.

    Args:
        chosen: numbers of the bags.
        proportions: (bags, 1 or C) of all bags.
        rng: random generator.
        grouping_of: (bags,) the grouping of each bag, if there are several; each is cut in halves.
    """
    own = proportions[chosen]
    mixed = rng.permutation(len(chosen))  # equal proportions in any order
    order = mixed[np.argsort(own[mixed, int(own.std(axis=0).argmax())], kind="stable")]
    if grouping_of is not None:
        order = order[np.argsort(grouping_of[chosen[order]], kind="stable")]
    swap = rng.random(-(-len(order) // 2)) < 0.5
    place = (np.arange(len(order)) + np.repeat(swap, 2)[: len(order)]) % 2
    if place.all() or not place.any():  # a single bag has no neighbour
        place[0] = 1 - place[0]
    return np.sort(chosen[order[place == 0]]), np.sort(chosen[order[place == 1]])


def hold_out(n: int, share: float, seed: int, grouping_of: IntArray | None = None) -> tuple[IntArray, IntArray]:
    """Draw a share of ``n`` bags to hold out; return the numbers of the training bags and of the held-out bags.

    Of several groupings, each is held out by about this share.
    """
    if not is_share(share):
        raise UsageError(f"validation must be between 0 and 1 (a share of the bags), got {share!r}.")
    if n < 2:
        raise UsageError(f"at least two bags are needed (one of them to select the model), got {n}.")
    held = min(max(round(share * n), 1), n - 1)
    order = np.random.default_rng(derive_seed("validation", seed=seed)).permutation(n)
    if grouping_of is not None:
        order = order[np.argsort(grouping_of[order], kind="stable")]
        spread = np.argsort((np.arange(n) * held + held // 2) % n, kind="stable")  # every (n / held)-th comes first
        order = order[spread]
    return np.sort(order[held:]), np.sort(order[:held])


@dataclass(frozen=True)
class FitRecord:
    """What a fitted model keeps in memory, and not in its file: the user's table and the fits that assessed it.

    Attributes:
        trainer: features, bags and counts, and how to fit again.
        table: the rows that were used, with all columns.
        rows: number of each of these rows in the table that was given.
        every_row: the feature columns of all rows that were given.
        known: what is known about the counts of the bags.
        train: numbers of the training bags.
        held_out: numbers of the held-out bags.
        main: the model, with the bags that it was not fitted on.
        halves: fits on halves of the bags.
    """

    trainer: BagTrainer
    table: pd.DataFrame
    rows: IntArray
    every_row: pd.DataFrame
    known: KnownCounts
    train: IntArray
    held_out: IntArray
    main: UnseenBags
    halves: tuple[Halves, ...]
