"""LLP-DC: the shared network, trained by bags first, then by bags and by labels of its own that fit the counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from llpbench import Bags, FloatArray, IntArray, Monitor, State, derive_seed
from llpbench_methods.llp_dc import NETWORK
from llpbench_methods.llp_dc.loss import dual_loss
from llpbench_methods.nets.batches import BagBatches, Batches
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits, trainer_for
from llpbench_methods.nets.tempering import Tempering
from llpbench_methods.nets.training import Batch, TrainingData
from llpbench_methods.shared.assignment import fitting_labels
from llpbench_methods.shared.counts import whole_counts
from llpbench_methods.shared.temperature import checked_temperature, tempered


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

    A first stage trains on bags until held-out bags stop improving. The second starts at the weights with the best
    held-out score, reports them, and adds hard labels; if these do not improve held-out bags, the first model
    stands.
    Hard labels amplify what the network believes, also where it is wrong, and make it too sure: in the second stage
    logits are divided by a temperature fitted on held-out bags. Proportions are forced into [0, 1]; labels fit counts
    rounded to whole numbers.

    Args:
        weight: weight of the hard labels' cross-entropy.
        threshold: least probability of a hard label that counts.
        warmup: share of the ``epochs`` that the first stage may take; the second has what is left.
        **network: the shared settings of ``NetworkSettings``.
    """

    defaults = NETWORK

    def __init__(self, weight: float = 0.67, threshold: float = 0.0, warmup: float = 0.5, **network: Any) -> None:
        self.weight, self.threshold, self.warmup = weight, threshold, warmup
        super().__init__(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> LLPDC:
        """Train in two stages."""
        self.temperature_ = 1.0
        first = int(self.warmup * self.settings.epochs)
        batches = BagBatches(bags.sizes, self.settings.batch_rows)
        with monitor.phase("network"):
            self.trainer_ = trainer_for(bags, self.settings.mlp, loss)
            if first:
                data = self._data(bags, np.zeros(len(bags.X), np.int64), weight=0.0)
                settings = replace(self.settings, epochs=first)
                self.trainer_.fit(data, batches, settings, monitor=monitor, seed=seed, stage="bags")
            self._add_labels(bags, batches, first, monitor, seed)
        monitor.note("temperature", self.temperature_)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class, at the temperature of the fit."""
        return tempered(self.trainer_.predict(X), self.temperature_)

    def state(self) -> State:
        """The network's state, and the temperature."""
        return {**super().state(), "temperature": self.temperature_}

    def restore(self, state: State) -> LLPDC:
        """Build the network anew, with the saved weights and temperature."""
        self.temperature_ = checked_temperature(state["temperature"])
        return super().restore(state)

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

        watch = Tempering(self.trainer_, bags.validation, monitor)
        self.trainer_.fit(
            self._data(bags, np.zeros(len(bags.X), np.int64), weight=0.0),
            batches,
            replace(self.settings, epochs=self.settings.epochs - done),
            monitor=watch,
            seed=seed if done == 0 else derive_seed("llp-dc", seed=seed),
            stage="labels",
            refresh=refresh,
            keep_weights=done > 0,
            report_start=done > 0,
        )
        self.temperature_ = watch.best

    def _data(self, bags: Bags, labels: IntArray, *, weight: float) -> TrainingData:
        return TrainingData(
            bags.X,
            rows={"labels": labels},
            bags={"proportions": bags.clipped_proportions},
            shared={"weight": np.array([weight], float), "threshold": np.array([self.threshold], float)},
        )
