"""The shared network on random labels that fit the counts of each bag."""

from __future__ import annotations

import numpy as np

from llpbench import Bags, IntArray, Monitor
from llpbench_methods.nets.batches import RowBatches
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import label_loss
from llpbench_methods.nets.training import TrainingData
from llpbench_methods.shared.counts import whole_counts


def random_labels(bags: Bags, rng: np.random.Generator) -> IntArray:
    """(rows,) a label for each row, drawn at random such that each bag has its counts."""
    counts = whole_counts(bags)
    if bags.classes == 2:
        counts = np.hstack([bags.sizes[:, None] - counts, counts])
    in_order = np.repeat(np.tile(np.arange(bags.classes), len(bags)), counts.ravel())
    return in_order[np.lexsort((rng.random(len(in_order)), bags.bag_of))]


class RandomLabels(NetworkMethod):
    """Trains on random labels, drawn once; its result shows what bag shares and selection give without learning.

    Counts are rounded and forced to add up to the bag sizes.

    Args:
        **network: the shared settings of ``NetworkSettings``.
    """

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> RandomLabels:
        """Draw labels and train on shuffled rows."""
        labels = random_labels(bags, np.random.default_rng([seed, 1]))
        data = TrainingData(bags.X, rows={"labels": labels})
        batches = RowBatches(len(bags.X), self.settings.batch_rows)
        return self.train(bags, label_loss, data, monitor=monitor, seed=seed, batches=batches)
