"""DLLP: the shared network, trained by the bag cross-entropy."""

from __future__ import annotations

from functools import partial
from typing import Any

from llpbench import Bags, Monitor
from llpbench_methods.dllp.loss import bag_squared_error
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits, proportion_loss
from llpbench_methods.nets.training import Batch, Loss, TrainingData


def squared_loss(net: Any, batch: Batch, *, of_counts: bool) -> Any:
    """Mean over the batch's bags of ``(p̄ − α)²``, or ``(Σ p − c)²``."""
    given = (batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bag_mask)
    return loss_of_logits(net, batch, lambda z: bag_squared_error(z, *given, of_counts=of_counts))


LOSSES: dict[str, Loss] = {
    "cross-entropy": proportion_loss,
    "proportion-mse": partial(squared_loss, of_counts=False),
    "count-mse": partial(squared_loss, of_counts=True),
}


class DLLP(NetworkMethod):
    """Learns from the mean predicted probability of each bag.

    The cross-entropy needs proportions in [0, 1] and forces noisy ones there; squared errors take them as they are.

    Args:
        loss: the loss of a bag, by name.
        **network: the shared settings of ``NetworkSettings``.
    """

    def __init__(self, loss: str = "cross-entropy", **network: Any) -> None:
        self.loss = loss
        super().__init__(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> DLLP:
        """Train on whole bags."""
        proportions = bags.clipped_proportions if self.loss == "cross-entropy" else bags.proportions
        data = TrainingData(bags.X, bags={"proportions": proportions})
        return self.train(bags, LOSSES[self.loss], data, monitor=monitor, seed=seed)
