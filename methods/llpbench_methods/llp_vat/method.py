"""LLP-VAT: the shared network, trained by the bag cross-entropy and virtual adversarial consistency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from llpbench import Bags, Monitor
from llpbench_methods.llp_vat import NETWORK
from llpbench_methods.llp_vat.loss import adversarial_directions, divergences, ramp
from llpbench_methods.nets.backend import backend, ops
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.chunked import loss_in_chunks
from llpbench_methods.nets.losses import bag_cross_entropy
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import IMAGE_ROWS, is_image, proportion_loss
from llpbench_methods.nets.training import Batch, TrainingData, frozen_state
from llpbench_methods.nets.wrn import augment

FEATURE_ROWS = 8192


class LLPVAT(NetworkMethod):
    """Learns from bag means and from its own predictions around each row (proportions forced into [0, 1]).

    One forward pass serves the bag term and the clean predictions; only it changes running statistics.

    Args:
        weight: weight of the consistency after the ramp.
        epsilon: length of the adversarial change.
        xi: length of the probe in a power iteration.
        iterations: power iterations.
        ramp: share of all steps in which the weight rises.
        official_numerics: the published normalisation of the probe's gradient.
        chunk_rows: rows worked on at once; 0 chooses by the kind of input.
        **network: the shared settings of ``NetworkSettings``.
    """

    defaults = NETWORK

    def __init__(
        self,
        weight: float = 0.05,
        epsilon: float = 1.0,
        xi: float = 1e-2,
        iterations: int = 1,
        ramp: float = 0.4,
        official_numerics: bool = False,
        chunk_rows: int = 0,
        **network: Any,
    ) -> None:
        self.weight, self.epsilon, self.xi, self.iterations = weight, epsilon, xi, iterations
        self.ramp, self.official_numerics, self.chunk_rows = ramp, official_numerics, chunk_rows
        super().__init__(**network)

    def batch_loss(self, net: Any, batch: Batch) -> Any:
        """``L_bags + ω(t) (1/N) Σ_i KL(f(x_i) ‖ f(x_i + r_i))``."""
        if self.weight == 0:
            return proportion_loss(net, batch)
        rows = ops.sum(batch.row_mask)
        factor = batch.shared["weight"][0] * ramp(batch.step, batch.shared["ramp_steps"][0]) / rows
        X = augment(batch.X, batch.key) if is_image(batch.X) else batch.X
        noise = backend().normal(batch.key + ops.convert_to_tensor(np.array([1, 0], np.int32)), X.shape)
        chunk = self.chunk_rows or (IMAGE_ROWS if is_image(X) else FEATURE_ROWS)

        def consistency(net: Any, parts: Sequence[Any], logits: Any) -> Any:
            X, mask, noise = parts
            clean = ops.stop_gradient(logits)

            def logits_of(x: Any) -> Any:
                with frozen_state(net):
                    return net(x, training=True)

            direction = adversarial_directions(
                logits_of,
                X,
                clean,
                noise,
                mask=mask,
                rows=rows,
                xi=self.xi,
                iterations=self.iterations,
                official=self.official_numerics,
            )
            shifted = logits_of(X + batch.shared["epsilon"] * direction)
            return factor * ops.sum(mask * divergences(clean, shifted))

        return loss_in_chunks(
            net,
            (X, batch.row_mask, noise),
            lambda z: bag_cross_entropy(z, batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bag_mask),
            rows_at_once=chunk,
            row_terms=consistency,
        )

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> LLPVAT:
        """Train on whole bags."""
        batches = BagBatches(bags.sizes, self.settings.batch_rows)
        steps = self.settings.epochs * sum(p.n_batches for p in batches.plans(np.random.default_rng(0)))
        shared = {
            "weight": np.array([self.weight], float),
            "epsilon": np.array([self.epsilon], float),
            "ramp_steps": np.array([self.ramp * steps], float),
        }
        data = TrainingData(bags.X, bags={"proportions": bags.clipped_proportions}, shared=shared)
        return self.train(bags, self.batch_loss, data, monitor=monitor, seed=seed, batches=batches)
