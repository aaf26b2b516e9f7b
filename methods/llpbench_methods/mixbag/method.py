"""MixBag: the shared network, trained on bags and on mixtures of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench import Bags, Monitor, Skip
from llpbench_methods.mixbag import NETWORK
from llpbench_methods.mixbag.loss import tolerant_cross_entropy
from llpbench_methods.mixbag.mixing import MixedBags, mix
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits
from llpbench_methods.nets.training import Batch, TrainingData


def loss(net: Any, batch: Batch) -> Any:
    """Mean cross-entropy of the batch's bags, mixed or not."""
    given = (batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bags["tolerances"], batch.bag_mask)
    return loss_of_logits(net, batch, lambda z: tolerant_cross_entropy(z, *given))


class MixBag(NetworkMethod):
    """Learns from bags and from mixtures of two, drawn anew in every epoch (proportions forced into [0, 1]).

    Args:
        share: share of bags that are mixed.
        tolerance: standard errors by which a mixture may miss its target.
        **network: the shared settings of ``NetworkSettings``.
    """

    defaults = NETWORK

    def __init__(self, share: float = 0.5, tolerance: float = 2.576, **network: Any) -> None:
        self.share, self.tolerance = share, tolerance
        super().__init__(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> MixBag:
        """Train on whole bags and mixtures."""
        if len(bags) < 2:
            raise Skip("mixing needs at least two bags, got one")
        proportions = bags.clipped_proportions
        batches = BagBatches(bags.sizes, self.settings.batch_rows)
        rng = np.random.default_rng([seed, 1])

        def drawn(share: float) -> tuple[TrainingData, MixedBags]:
            found = mix(batches.plans(rng), bags.offsets, proportions, rng, share=share, width=self.tolerance)
            given = {"proportions": found.proportions, "tolerances": found.tolerances}
            return TrainingData(bags.X, bags=given), found

        data, first = drawn(self.share)
        return self.train(
            bags,
            loss,
            data,
            monitor=monitor,
            seed=seed,
            batches=first,
            refresh=lambda epoch: drawn(self.share) if epoch else None,
        )
