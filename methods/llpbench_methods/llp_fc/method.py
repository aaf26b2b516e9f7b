"""LLP-FC: the shared network, trained on the places of bags in random groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench import Bags, Monitor, Skip
from llpbench_methods.llp_fc import NETWORK
from llpbench_methods.llp_fc.groups import form_groups
from llpbench_methods.llp_fc.loss import forward_loss
from llpbench_methods.nets.batches import RowBatches
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits
from llpbench_methods.nets.training import Batch, TrainingData
from llpbench_methods.shared.shares import all_classes


def loss(net: Any, batch: Batch) -> Any:
    """Forward-corrected cross-entropy of the batch's rows."""
    weights = batch.rows["weights"] * batch.row_mask
    return loss_of_logits(net, batch, lambda z: forward_loss(z, batch.rows["mixtures"], weights))


class LLPFC(NetworkMethod):
    """Learns from single rows with noisy labels; bags are grouped afresh every few epochs.

    Proportions are forced onto the simplex (noisy counts too). Needs as many bags as there are classes.
    Predictions are the network's own, without correction.

    Args:
        noisy_prior: ``uniform``, ``approx`` or ``approx_official``.
        regroup: epochs between two groupings.
        informative: weigh groups by ``|det T|``.
        **network: the shared settings of ``NetworkSettings``.
    """

    defaults = NETWORK

    def __init__(
        self, noisy_prior: str = "uniform", regroup: int = 20, informative: bool = False, **network: Any
    ) -> None:
        self.noisy_prior, self.regroup, self.informative = noisy_prior, regroup, informative
        super().__init__(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> LLPFC:
        """Train on rows of grouped bags."""
        if len(bags) < bags.classes:
            raise Skip(f"needs at least one bag for each of the {bags.classes} classes, got {len(bags)} bags")
        shares, prior = all_classes(bags.clipped_proportions), all_classes(bags.prior)
        rng = np.random.default_rng([seed, 1])

        def grouped() -> tuple[TrainingData, RowBatches]:
            groups = form_groups(
                shares, bags.sizes, prior, rng, noisy_prior=self.noisy_prior, informative=self.informative
            )
            mixtures, weights = np.zeros_like(shares), np.zeros(len(bags))
            mixtures[groups.bags] = groups.transitions
            weights[groups.bags] = groups.weights
            in_use = np.zeros(len(bags), bool)
            in_use[groups.bags] = True
            rows = {"mixtures": mixtures[bags.bag_of], "weights": weights[bags.bag_of]}
            subset = np.flatnonzero(in_use[bags.bag_of])
            return TrainingData(bags.X, rows=rows), RowBatches(len(bags.X), self.settings.batch_rows, subset)

        def refresh(epoch: int) -> tuple[TrainingData, RowBatches] | None:
            return grouped() if epoch and epoch % self.regroup == 0 else None

        data, batches = grouped()
        return self.train(bags, loss, data, monitor=monitor, seed=seed, batches=batches, refresh=refresh)
