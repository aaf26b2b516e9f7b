"""GenBags: the shared network, trained on generalised bags."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench import Bags, FloatArray, Monitor, Skip
from llpbench_methods.genbags import NETWORK
from llpbench_methods.genbags.covariance import iid_covariance, sdp_covariance
from llpbench_methods.genbags.loss import drawn_block_losses, drawn_weights, mean_block_losses, residuals
from llpbench_methods.nets.backend import backend, ops
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.losses import class_probabilities
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits
from llpbench_methods.nets.training import Batch, TrainingData


class GenBags(NetworkMethod):
    """Learns from signed weighted unions of ``block`` bags; counts are used as they are, noisy ones too.

    The loss of a block is divided by the mean bag size (squared error) or its root (absolute error) and averaged
    over blocks, so that it is of order 1 for every bag size. Several classes add up (an extension: the papers
    have two). Bags beyond the last whole block are not used in that pass.

    Args:
        block: bags in a generalised bag.
        covariance: ``iid``, ``sdp`` or ``independent``.
        ridge: added to the diagonal of the covariance.
        stochastic: draw weights at every step instead of the mean over all weights.
        draws: weight vectors of a block and step.
        norm: ``l2`` or ``l1``.
        sdp_features: principal components in the semidefinite programme.
        **network: the shared settings of ``NetworkSettings``.
    """

    defaults = NETWORK

    def __init__(
        self,
        block: int = 4,
        covariance: str = "iid",
        ridge: float = 0.011,
        stochastic: bool = False,
        draws: int = 60,
        norm: str = "l2",
        sdp_features: int = 6,
        **network: Any,
    ) -> None:
        self.block, self.covariance, self.ridge = block, covariance, ridge
        self.stochastic, self.draws, self.norm, self.sdp_features = stochastic, draws, norm, sdp_features
        super().__init__(**network)

    def batch_loss(self, net: Any, batch: Batch) -> Any:
        """The mean loss of the batch's blocks."""
        blocks = batch.bag_mask.shape[0] // self.block
        in_use = ops.maximum(ops.sum(batch.bag_mask) / self.block, 1.0)
        weights = None
        if self.stochastic:
            noise = backend().normal(batch.key, (blocks, self.draws, self.block))
            weights = drawn_weights(noise, batch.shared["factor"])

        def of_logits(logits: Any) -> Any:
            p = class_probabilities(logits) * batch.row_mask[:, None]
            d = residuals(p, batch.bag_of, batch.bags["counts"], batch.bag_mask)
            d = ops.reshape(d, (blocks, self.block, -1))
            if weights is None:
                losses = mean_block_losses(d, batch.shared["covariance"], norm=self.norm)
            else:
                losses = drawn_block_losses(d, weights, norm=self.norm) / self.draws
            return ops.sum(losses) / (in_use * batch.shared["scale"][0])

        return loss_of_logits(net, batch, of_logits)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> GenBags:
        """Train on blocks of whole bags."""
        if len(bags) < self.block:
            raise Skip(f"block={self.block} needs at least {self.block} bags, got {len(bags)}; choose a smaller block")
        with monitor.phase("covariance"):
            W = self._covariance(bags)
        size = float(bags.sizes.mean())
        shared = {
            "covariance": W,
            "factor": np.linalg.cholesky(W),
            "scale": np.array([size if self.norm == "l2" else np.sqrt(size)]),
        }
        data = TrainingData(bags.X, bags={"counts": bags.counts}, shared=shared)
        batches = BagBatches(bags.sizes, self.settings.batch_rows, block=self.block)
        return self.train(bags, self.batch_loss, data, monitor=monitor, seed=seed, batches=batches)

    def _covariance(self, bags: Bags) -> FloatArray:
        if self.covariance == "independent":
            return np.eye(self.block)
        if self.covariance == "iid":
            return iid_covariance(self.block, self.ridge)
        try:
            return sdp_covariance(bags, self.block, self.ridge, self.sdp_features)
        except ImportError:
            raise Skip("covariance=sdp needs cvxpy: pip install cvxpy clarabel") from None
