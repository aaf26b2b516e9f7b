"""count-nll: the shared network, trained by the likelihood of bag counts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, softmax

from llpbench import Bags, FloatArray, Monitor
from llpbench_methods.count_nll.loss import count_losses
from llpbench_methods.nets.losses import weighted_mean
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits
from llpbench_methods.nets.training import Batch, TrainingData
from llpbench_methods.shared.bag_effect import effect_scale, spectral_effect
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.counts import whole_counts
from llpbench_methods.shared.mean_regression import Array, smoothed_rate
from llpbench_methods.shared.spectrum import Spectrum, principal_components

LARGEST_TAU = 2.0
"""Most that ``auto`` takes: beyond, the nodes of the integral lie too far apart."""


def usable_counts(bags: Bags) -> FloatArray:
    """Counts as the likelihood needs them: as they are under known noise, else whole numbers from 0 to the size."""
    if bags.count_sd > 0:
        return bags.counts
    return whole_counts(bags).astype(np.float64)


def bag_effect_scales(bags: Bags) -> tuple[float, ...]:
    """(classes,) ``τ`` of each class by the evidence of a regression on bag means; zeros for random bags."""

    @cache
    def features() -> tuple[Array, Spectrum]:
        table = bags.X if bags.X.ndim == 2 else bags.X.mean(axis=(1, 2))  # of images: the channels' means
        return bag_means(table, bags.offsets), principal_components(table)

    found = []
    for c in range(bags.counts.shape[1]):
        rate = smoothed_rate(bags.counts[:, c], len(bags.X))
        proportions = bags.proportions[:, c].astype(np.float64)
        effect = spectral_effect(proportions, bags.sizes, rate, bags.count_sd, features)
        found.append(min(effect_scale(effect, rate), LARGEST_TAU))
    return tuple(found)


class CountNLL(NetworkMethod):
    """Learns from the likelihood of each bag's count; noise of known size on counts is part of the likelihood.

    So is a bag effect, ``u_b ~ N(0, τ²)`` on the log-odds of all rows of a bag, which is integrated out.

    Args:
        exact_rows: largest bag whose likelihood is exact.
        outputs: ``softmax``, or ``ovr`` for a sigmoid of each class.
        tau: standard deviation of the bag effect in log-odds, or ``auto``.
        **network: the shared settings of ``NetworkSettings``.
    """

    def __init__(
        self, exact_rows: int = 64, outputs: str = "softmax", tau: float | str = "auto", **network: Any
    ) -> None:
        self.exact_rows, self.outputs, self.tau = exact_rows, outputs, tau
        super().__init__(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> CountNLL:
        """Train on whole bags."""
        small = bags.sizes[bags.sizes <= self.exact_rows]
        exact_rows = int(small.max(initial=0))
        gaussian = len(small) < len(bags)
        noise_sd = float(bags.count_sd)
        with monitor.phase("bag effect"):
            tau = bag_effect_scales(bags) if self.tau == "auto" else (float(self.tau),) * bags.counts.shape[1]
        monitor.note("tau", max(tau))

        def loss(net: Any, batch: Batch) -> Any:
            def of_logits(logits: Any) -> Any:
                losses = count_losses(
                    logits,
                    batch.bag_of,
                    batch.rows["position"],
                    batch.sizes,
                    batch.bags["counts"],
                    exact_rows=exact_rows,
                    gaussian=gaussian,
                    noise_sd=noise_sd,
                    one_vs_rest=self.outputs == "ovr",
                    tau=tau,
                )
                return weighted_mean(losses, batch.bag_mask)

            return loss_of_logits(net, batch, of_logits)

        position = np.arange(len(bags.X)) - bags.offsets[bags.bag_of]
        data = TrainingData(bags.X, rows={"position": position}, bags={"counts": usable_counts(bags)})
        return self.train(bags, loss, data, monitor=monitor, seed=seed)

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, or of every class: sigmoids of several classes are divided by their sum."""
        if self.outputs == "softmax":
            return super().predict_scores(X)
        logits = self.trainer_.predict(X).astype(np.float64)
        if logits.ndim == 1:
            return np.asarray(expit(logits))
        return np.asarray(softmax(log_expit(logits - np.log(logits.shape[1] - 1.0)), axis=1))
