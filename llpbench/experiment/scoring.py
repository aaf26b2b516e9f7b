"""Compute metrics from the scores of test rows, for new cells and for cells that are recomputed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.specs import NO_BAG, MetricSpec
from llpbench.experiment.decisions import decide
from llpbench.experiment.metrics import to_probabilities


@dataclass(frozen=True)
class Answers:
    """The truth about test rows.

    Attributes:
        labels: labels of the test rows.
        rate: the known overall rate: (1,) of class 1, or (C,) of every class; empty if unknown.
        bag_of: (n,) or (n, groupings) the bag of each test row (or ``NO_BAG``); None or empty if there are no bags.
    """

    labels: IntArray
    rate: FloatArray
    bag_of: IntArray | None = None

    def score(self, metric: MetricSpec, scores: FloatArray, kind: str) -> float:
        """The value of a metric for scores of a kind (``probability``, ``logit``, ``auto``).

        NaN if what the metric needs is unknown.
        """
        if metric.needs == "scores":
            return float(metric.load()(self.labels, scores))
        probabilities = to_probabilities(scores, kind)
        if metric.needs == "decisions":
            if not len(self.rate):
                return float("nan")
            return float(metric.load()(self.labels, decide(scores, probabilities, self.rate)))
        if metric.needs == "bag_shares":
            return float(metric.load()(*self._shares(probabilities)))
        return float(metric.load()(self.labels, probabilities))

    def _shares(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """True shares and mean predictions of the test bags: (bags, 1) of class 1, or (bags, C)."""
        columns = probabilities.reshape(len(probabilities), -1)
        classes = columns.shape[1]
        truth = (self.labels == 1)[:, None] if classes == 1 else self.labels[:, None] == np.arange(classes)
        bag_of = np.full(len(columns), NO_BAG) if self.bag_of is None or not len(self.bag_of) else self.bag_of
        there = bag_of != NO_BAG
        rows = np.nonzero(there)[0]
        place = np.unique(bag_of[there], return_inverse=True)[1].reshape(-1)
        sizes = np.bincount(place)

        def means(values: FloatArray) -> FloatArray:
            sums = [np.bincount(place, values[rows, c], minlength=len(sizes)) for c in range(classes)]
            return np.stack(sums, axis=1) / sizes[:, None]

        return means(truth.astype(np.float64)), means(columns)


def digest_of_labels(labels: IntArray) -> str:
    """The sha256 of test labels, in the dtype of predictions files."""
    return hashlib.sha256(np.ascontiguousarray(labels, "<i2").tobytes()).hexdigest()


def digest_of_bags(bag_of: IntArray) -> str:
    """The sha256 of the bags of test rows, in the dtype of predictions files."""
    return hashlib.sha256(np.ascontiguousarray(bag_of, "<i4").tobytes()).hexdigest()
