"""DSQ: the shared network, trained by the debiased squared loss."""

from __future__ import annotations

from typing import Any

from llpbench import Bags, Monitor, Skip
from llpbench_methods.dsq import NETWORK
from llpbench_methods.dsq.loss import debiased_square, mean_of_other_bags
from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.batches import BagBatches
from llpbench_methods.nets.losses import class_probabilities
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits, reference_rows
from llpbench_methods.nets.training import Batch, TrainingData
from llpbench_methods.shared.counts import mean_counts


class DSQ(NetworkMethod):
    """Learns from squared errors of bag means that are brought to the level of all data; counts are used as they are.

    Args:
        mean: where ``μ``, the mean prediction, comes from: ``reference`` rows or the ``other-bags`` of a batch.
        **network: the shared settings of ``NetworkSettings``.
    """

    defaults = NETWORK

    def __init__(self, mean: str = "reference", **network: Any) -> None:
        self.mean = mean
        super().__init__(**network)

    def batch_loss(self, net: Any, batch: Batch) -> Any:
        """The mean loss of the batch's bags."""
        rows = batch.X.shape[0]

        def of_logits(logits: Any) -> Any:
            p = class_probabilities(logits)
            if self.mean == "reference":
                p, mean = p[:rows], ops.mean(p[rows:], axis=0, keepdims=True)
            else:
                mean = mean_of_other_bags(p, batch.bag_of, batch.sizes)
            given = (batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bag_mask)
            return debiased_square(p, *given, prior=batch.shared["prior"], mean=mean)

        return loss_of_logits(net, batch, of_logits, beside=batch.shared.get("reference"))

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> DSQ:
        """Train on whole bags, with fixed unlabelled rows for the mean prediction."""
        shared = {"prior": mean_counts(bags)}
        if self.mean == "reference":
            shared["reference"] = reference_rows(bags.X, seed)
        elif len(bags) < 2:
            raise Skip("mean=other-bags needs two bags; mean=reference works with one")
        data = TrainingData(bags.X, bags={"proportions": bags.proportions}, shared=shared)
        batches = BagBatches(bags.sizes, self.settings.batch_rows, block=1 if self.mean == "reference" else 2)
        return self.train(bags, self.batch_loss, data, monitor=monitor, seed=seed, batches=batches)
