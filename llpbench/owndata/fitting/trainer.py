"""Fits of one method on some of a user's bags: the fit itself, and fits on halves of the bags that judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from llpbench.contracts.data import Bags, Column, FloatArray, IntArray, read_only
from llpbench.contracts.errors import LLPBenchError, UsageError
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.experiment.bags import bag_order
from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.fitting.training import BagMonitor, fit_and_choose
from llpbench.owndata.judging.assessment import Halves, UnseenBags
from llpbench.owndata.judging.calibration import calibrate
from llpbench.owndata.judging.predictor import Predictor
from llpbench.owndata.reading.arguments import is_share
from llpbench.owndata.reading.bag_counts import BagIds


@dataclass(frozen=True)
class Trained:
    """A model, the bags that it learned from and those that chose it.

    Attributes:
        predictor: the model.
        train: the bags it learned from.
        held: the bags that chose its report.
        monitor: what watched the fit.
    """

    predictor: Predictor
    train: Bags
    held: Bags
    monitor: BagMonitor


@dataclass(frozen=True)
class Trainer:
    """A user's bags and a method: all that a fit on some of the bags needs.

    Attributes:
        spec: the method.
        settings: its parameters.
        features: (n, d) all rows of the table, in its order.
        bags: the bag of each row.
        counts: (bags, 1 or C) known counts.
        classes: number of classes.
        count_sd: standard deviation of the noise in the counts.
        columns: the table's columns, as methods are told of them.
        seed: seed of everything random.
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

    def fit(self, train: IntArray, held: IntArray, seed: int) -> Trained:
        """Learn from the bags ``train``, watched on the bags ``held``.

        Args:
            train: numbers of the bags to learn from.
            held: numbers of the bags that choose the model.
            seed: seed of the method.
        """
        rng = np.random.default_rng(derive_seed("rows", seed=self.seed))
        watched = self.take(held, rng)
        learned = replace(self.take(train, rng), validation=watched)
        fitted, monitor = fit_and_choose(self.spec, self.settings, learned, seed)
        calibration = None
        if monitor.score_kind not in ("auto", "probability"):
            scores = fitted.predict_scores(learned.X), fitted.predict_scores(watched.X)
            calibration = calibrate(scores[0], learned, scores[1], watched)
        return Trained(Predictor(self.spec.name, fitted, self.classes, calibration), learned, watched, monitor)

    def take(self, chosen: IntArray, rng: np.random.Generator) -> Bags:
        """The chosen bags in the form in which a method gets them."""
        rows = np.flatnonzero(np.isin(self.bags.numbers, chosen))
        order, offsets = bag_order(self.bags.numbers[rows], len(rows), rng)
        return Bags(
            X=read_only(self.features[rows[order]]),
            offsets=read_only(offsets),
            counts=read_only(np.array(self.counts[chosen], np.float64)),
            classes=self.classes,
            count_sd=self.count_sd,
            columns=self.columns,
        )

    def halve(self, train: IntArray, held: IntArray, number: int) -> Halves | None:
        """Cut the bags into two halves of like proportions and fit on each, to be judged on the other.

        Args:
            train: numbers of the bags to learn from.
            held: numbers of the bags that choose the models.
            number: which cut; another number is another cut.

        Returns:
            The two fits; None where there are fewer than two bags, or the method declines half of them.
        """
        if len(train) < 2:
            return None
        rng = np.random.default_rng(derive_seed("halves", seed=self.seed, number=number))
        first, second = cut_in_halves(train, self.counts / self.bags.sizes[:, None], rng)
        made: list[UnseenBags] = []
        for learn, judge in ((first, second), (second, first)):
            seed = derive_seed("half", seed=self.seed, method=self.spec.name, number=number, part=len(made))
            try:
                trained = self.fit(learn, held, seed)
            except LLPBenchError:
                return None
            made.append(UnseenBags.of(trained.predictor, trained.train, self.take(judge, rng)))
        return Halves(made[0], made[1])


def cut_in_halves(chosen: IntArray, proportions: FloatArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Two disjoint halves of bags in which the proportions are alike, so that few bags give halves that both can learn.

    Bags are ordered by the proportion that differs most and cut at random inside each pair of neighbours.

    Args:
        chosen: numbers of the bags.
        proportions: (bags, 1 or C) of all bags.
        rng: what decides.
    """
    own = proportions[chosen]
    mixed = rng.permutation(len(chosen))  # equal proportions in any order
    order = mixed[np.argsort(own[mixed, int(own.std(axis=0).argmax())], kind="stable")]
    swap = rng.random(-(-len(order) // 2)) < 0.5
    place = (np.arange(len(order)) + np.repeat(swap, 2)[: len(order)]) % 2
    if place.all() or not place.any():  # one bag has no neighbour to be told from
        place[0] = 1 - place[0]
    return np.sort(chosen[order[place == 0]]), np.sort(chosen[order[place == 1]])


def hold_back(n: int, share: float, seed: int) -> tuple[IntArray, IntArray]:
    """Draw the bags that are held back: numbers of the bags to learn from, and of those held back.

    Args:
        n: number of bags.
        share: share of the bags to hold back.
        seed: seed of the draw.
    """
    if not is_share(share):
        raise UsageError(
            f"validation must be a share of the bags between 0 and 1, not {share!r}: they choose the model."
        )
    if n < 2:
        raise UsageError(f"there is {n} bag; at least two are needed, one of them to choose the model.")
    held = min(max(round(share * n), 1), n - 1)
    order = np.random.default_rng(derive_seed("validation", seed=seed)).permutation(n)
    return np.sort(order[held:]), np.sort(order[:held])
