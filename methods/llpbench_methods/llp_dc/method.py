"""LLP-DC: the shared network, trained by bags first, then by bags and by labels of its own that fit the counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from llpbench import Bags, IntArray, Monitor, derive_seed
from llpbench_methods.llp_dc import NETWORK
from llpbench_methods.llp_dc.loss import dual_loss
from llpbench_methods.nets.batches import BagBatches, Batches
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits, trainer_for
from llpbench_methods.nets.training import Batch, TrainingData
from llpbench_methods.shared.assignment import fitting_labels
from llpbench_methods.shared.counts import whole_counts


def loss(net: Any, batch: Batch) -> Any:
    """Cross-entropy of the batch's bags, and of its rows' hard labels where there are any."""
    bags = (batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bag_mask)
    weight, threshold = batch.shared["weight"][0], batch.shared["threshold"][0]
    return loss_of_logits(
        net,
        batch,
        lambda z: dual_loss(z, batch.rows["labels"], batch.row_mask, bags, weight=weight, threshold=threshold),
    )


class LLPDC(NetworkMethod):
    """Learns from bags alone, and then from bags and from hard labels that it makes itself before every epoch.

    A first stage trains on bags for ``warmup`` steps. The second begins at the weights that held-back bags like best,
    reports them, and goes on with hard labels; where these make held-back bags no better, the first model stands.
    Hard labels amplify what the network believes, also where it is wrong. Proportions are forced into [0, 1];
    labels fit counts rounded to whole numbers.

    Args:
        weight: weight of the hard labels' cross-entropy.
        threshold: least probability of a hard label that counts.
        warmup: steps of the first stage, which takes half of the ``epochs`` at most; the second has the rest.
        **network: the shared settings of ``NetworkSettings``.
    """

    defaults = NETWORK

    def __init__(self, weight: float = 0.67, threshold: float = 0.0, warmup: int = 800, **network: Any) -> None:
        self.weight, self.threshold, self.warmup = weight, threshold, warmup
        super().__init__(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> LLPDC:
        """Train in two stages."""
        batches = BagBatches(bags.sizes, self.settings.batch_rows)
        first = self._warmup_epochs(batches)
        with monitor.phase("network"):
            self.trainer_ = trainer_for(bags, self.settings.mlp, loss)
            if first:
                data = self._data(bags, np.zeros(len(bags.X), np.int64), weight=0.0)
                settings = replace(self.settings, epochs=first)
                self.trainer_.fit(data, batches, settings, monitor=monitor, seed=seed, stage="bags")
            self._add_labels(bags, batches, first, monitor, seed)
        return self

    def _warmup_epochs(self, batches: BagBatches) -> int:
        """Epochs of the first stage: as many as have ``warmup`` steps, and half of all at most."""
        steps = sum(plan.n_batches for plan in batches.plans(np.random.default_rng(0)))
        return min(-(-self.warmup // steps), self.settings.epochs // 2)

    def _add_labels(self, bags: Bags, batches: BagBatches, done: int, monitor: Monitor, seed: int) -> None:
        """The second stage, from the weights of the first (fresh ones where there was none)."""
        counts = whole_counts(bags)

        def refresh(epoch: int) -> tuple[TrainingData, Batches]:
            with monitor.phase("labels"):
                labels = fitting_labels(self.trainer_.predict(bags.X), bags.offsets, counts)
            if epoch == 0:
                shown = labels if bags.classes == 2 else np.eye(bags.classes)[labels]
                monitor.pseudo_labels(shown.astype(np.float64))
            return self._data(bags, labels, weight=self.weight), batches

        self.trainer_.fit(
            self._data(bags, np.zeros(len(bags.X), np.int64), weight=0.0),
            batches,
            replace(self.settings, epochs=self.settings.epochs - done),
            monitor=monitor,
            seed=seed if done == 0 else derive_seed("llp-dc", seed=seed),
            stage="labels",
            refresh=refresh,
            keep_weights=done > 0,
            report_start=done > 0,
        )

    def _data(self, bags: Bags, labels: IntArray, *, weight: float) -> TrainingData:
        return TrainingData(
            bags.X,
            rows={"labels": labels},
            bags={"proportions": bags.clipped_proportions},
            shared={"weight": np.array([weight], float), "threshold": np.array([self.threshold], float)},
        )
