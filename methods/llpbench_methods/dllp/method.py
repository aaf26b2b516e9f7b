"""DLLP: the shared network, trained by the bag cross-entropy."""

from __future__ import annotations

from typing import Any

from llpbench import Bags, FloatArray, Monitor
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.losses import bag_cross_entropy
from llpbench_methods.nets.mlp import network_for
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.training import Batch, Trainer, TrainingData


def loss(net: Any, batch: Batch) -> Any:
    """Mean over the batch's bags of ``−α log p̄ − (1−α) log(1−p̄)``."""
    logits = net(batch.X, training=True)
    return bag_cross_entropy(logits, batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bag_mask)


class DLLP:
    """Learns from the mean predicted probability of each bag (proportions forced into [0, 1]).

    Args:
        **network: the shared settings of ``NetworkSettings``.
    """

    def __init__(self, **network: Any) -> None:
        self.settings = NetworkSettings(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> DLLP:
        """Train on whole bags."""
        with monitor.phase("network"):
            self.trainer_ = Trainer(network_for(bags, self.settings.mlp), loss)
            data = TrainingData(bags.X, bags={"proportions": bags.clipped_proportions})
            batches = BagBatches(bags.sizes, self.settings.batch_rows)
            self.trainer_.fit(data, batches, self.settings, monitor=monitor, seed=seed)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class."""
        return self.trainer_.probabilities(X)
