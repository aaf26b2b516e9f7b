"""few-labels: any method on bags of one row."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from llpbench import Bags, IntArray, Monitor, QuietMonitor, Skip
from llpbench_methods.shared.other_method import OtherMethod


def labelled_rows(bags: Bags, labels: IntArray, chosen: IntArray) -> Bags:
    """Bags of one row each: the chosen rows with their labels as counts, and no held-out bags."""
    y = labels[chosen]
    counts = y[:, None].astype(np.float64) if bags.classes == 2 else np.eye(bags.classes)[y]
    return Bags(bags.X[chosen], np.arange(len(chosen) + 1), counts, bags.classes, columns=bags.columns)


class FewLabels(OtherMethod):
    """Runs a method on ``labels`` training rows with their labels; all other rows and all bags are ignored.

    A label is the count of a bag of one row, so the learner is the same as that of bags. The rows of a smaller number
    of labels are among those of a larger one with the same seed.

    Args:
        labels: number of labelled rows.
        method: name of an installed method; neither a bound nor a control that runs another method.
    """

    control: ClassVar[str] = "few-labels"

    def __init__(self, labels: int = 128, method: str = "average") -> None:
        super().__init__(method)
        self.labels = labels

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int, labels: IntArray | None = None) -> FewLabels:
        """Draw rows, fit the method on them and report once."""
        assert labels is not None, "a bound is given labels"
        if self.labels > len(bags.X):
            raise Skip(f"{self.labels:,} labelled rows are wanted, and there are {len(bags.X):,} training rows")
        chosen = np.sort(np.random.default_rng([seed, 1]).permutation(len(bags.X))[: self.labels])
        super().fit(labelled_rows(bags, labels, chosen), monitor=QuietMonitor(), seed=seed)
        monitor.report(self.predict_scores)
        return self
