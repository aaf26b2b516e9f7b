"""The shared network on the true labels."""

from __future__ import annotations

from llpbench import Bags, IntArray, Monitor
from llpbench_methods.nets.batches import RowBatches
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import label_loss
from llpbench_methods.nets.training import TrainingData


class Supervised(NetworkMethod):
    """Learns from the label of every training row; bags are not used.

    Args:
        **network: the shared settings of ``NetworkSettings``.
    """

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int, labels: IntArray) -> Supervised:
        """Train on shuffled rows with the labels given beside the bags."""
        data = TrainingData(bags.X, rows={"labels": labels})
        batches = RowBatches(len(bags.X), self.settings.batch_rows)
        return self.train(bags, label_loss, data, monitor=monitor, seed=seed, batches=batches)
