"""DLLP: the shared network, trained by the bag cross-entropy."""

from __future__ import annotations

from functools import partial
from typing import Any

from llpbench import Bags, FloatArray, Monitor
from llpbench_methods.dllp.loss import bag_squared_error
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.losses import bag_cross_entropy
from llpbench_methods.nets.params import NetworkSettings
from llpbench_methods.nets.shared import loss_of_logits, trainer_for
from llpbench_methods.nets.state import NetworkState
from llpbench_methods.nets.training import Batch, Loss, TrainingData


def loss(net: Any, batch: Batch) -> Any:
    """Mean over the batch's bags of ``−α log p̄ − (1−α) log(1−p̄)``."""
    return loss_of_logits(
        net,
        batch,
        lambda z: bag_cross_entropy(z, batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bag_mask),
    )


def squared_loss(net: Any, batch: Batch, *, of_counts: bool) -> Any:
    """Mean over the batch's bags of ``(p̄ − α)²``, or ``(Σ p − c)²``."""
    given = (batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bag_mask)
    return loss_of_logits(net, batch, lambda z: bag_squared_error(z, *given, of_counts=of_counts))


LOSSES: dict[str, Loss] = {
    "cross-entropy": loss,
    "proportion-mse": partial(squared_loss, of_counts=False),
    "count-mse": partial(squared_loss, of_counts=True),
}


class DLLP(NetworkState):
    """Learns from the mean predicted probability of each bag.

    The cross-entropy needs proportions in [0, 1] and forces noisy ones there; squared errors take them as they are.

    Args:
        loss: the loss of a bag, by name.
        **network: the shared settings of ``NetworkSettings``.
    """

    def __init__(self, loss: str = "cross-entropy", **network: Any) -> None:
        self.loss = loss
        self.settings = NetworkSettings(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> DLLP:
        """Train on whole bags."""
        with monitor.phase("network"):
            self.trainer_ = trainer_for(bags, self.settings.mlp, LOSSES[self.loss])
            proportions = bags.clipped_proportions if self.loss == "cross-entropy" else bags.proportions
            data = TrainingData(bags.X, bags={"proportions": proportions})
            batches = BagBatches(bags.sizes, self.settings.batch_rows)
            self.trainer_.fit(data, batches, self.settings, monitor=monitor, seed=seed)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class."""
        return self.trainer_.probabilities(X)
