"""The shared network on the true labels."""

from __future__ import annotations

from typing import Any

from llpbench import Bags, FloatArray, IntArray, Monitor
from llpbench_methods.nets.batches import RowBatches
from llpbench_methods.nets.losses import instance_cross_entropy
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.shared import loss_of_logits, trainer_for
from llpbench_methods.nets.state import NetworkState
from llpbench_methods.nets.training import Batch, TrainingData


def loss(net: Any, batch: Batch) -> Any:
    """Mean cross-entropy of the batch's rows."""
    return loss_of_logits(net, batch, lambda z: instance_cross_entropy(z, batch.rows["labels"], batch.row_mask))


class Supervised(NetworkState):
    """Learns from the label of every training row; bags play no part.

    Args:
        **network: the shared settings of ``NetworkSettings``.
    """

    def __init__(self, **network: Any) -> None:
        self.settings = NetworkSettings(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int, labels: IntArray) -> Supervised:
        """Train on shuffled rows with the labels given beside the bags."""
        with monitor.phase("network"):
            self.trainer_ = trainer_for(bags, self.settings.mlp, loss)
            data = TrainingData(bags.X, rows={"labels": labels})
            batches = RowBatches(len(bags.X), self.settings.batch_rows)
            self.trainer_.fit(data, batches, self.settings, monitor=monitor, seed=seed)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class."""
        return self.trainer_.probabilities(X)
