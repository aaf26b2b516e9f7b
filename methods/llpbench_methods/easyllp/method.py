"""EasyLLP: the shared network, trained by the debiased instance loss."""

from __future__ import annotations

from typing import Any

from llpbench import Bags, Monitor
from llpbench_methods.easyllp import NETWORK
from llpbench_methods.easyllp.loss import (
    apply_remedy,
    debiased_targets,
    mean_over_bags,
    one_row_of_each_bag,
    reference_excess,
    row_losses,
)
from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.batches import RowBatches
from llpbench_methods.nets.losses import weighted_mean
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits, reference_rows
from llpbench_methods.nets.training import Batch, TrainingData
from llpbench_methods.shared.counts import mean_counts


class EasyLLP(NetworkMethod):
    """Learns from each row with its bag's debiased target; counts are used as they are, noisy ones too.

    The target of one bag is far off, right only in the mean over bags, so a batch must hold many bags: by default it is
    a shuffle of rows of all of them, which costs the same at every bag size. Then every row weighs the same; with whole
    bags every bag does.

    Args:
        reduction: ``rows``, ``bag_mean`` or ``sample_one``.
        loss: ``log`` or ``square``.
        remedy: ``none``, ``absolute`` or ``relu`` of the batch's loss.
        logit_clip: bound of the logits in the loss; 0 for none.
        correction: undo the shrinkage of bags drawn without replacement.
        center: ``batch``, or ``reference`` for losses less their mean on fixed rows.
        **network: the shared settings of ``NetworkSettings``.
    """

    defaults = NETWORK

    def __init__(
        self,
        reduction: str = "rows",
        loss: str = "log",
        remedy: str = "none",
        logit_clip: float = 0.0,
        correction: bool = False,
        center: str = "batch",
        **network: Any,
    ) -> None:
        self.reduction, self.loss, self.remedy = reduction, loss, remedy
        self.logit_clip, self.correction, self.center = logit_clip, correction, center
        super().__init__(**network)

    def batch_loss(self, net: Any, batch: Batch) -> Any:
        """The loss of a batch of rows or of whole bags."""
        chosen = None
        if self.reduction == "rows":
            targets = batch.rows["targets"]
        else:
            n_bags = batch.sizes.shape[0]
            targets = ops.take(batch.bags["targets"], ops.minimum(batch.bag_of, n_bags - 1), axis=0)
            if self.reduction == "sample_one":
                chosen = one_row_of_each_bag(batch.bag_of, n_bags, batch.key)

        square, n_rows = self.loss == "square", batch.X.shape[0]

        def of_logits(logits: Any) -> Any:
            if self.logit_clip > 0:
                logits = ops.clip(logits, -self.logit_clip, self.logit_clip)
            per_row = row_losses(logits[:n_rows], targets, square=square)
            if self.reduction == "rows":
                loss = weighted_mean(per_row, batch.row_mask)
            else:
                loss = mean_over_bags(per_row, batch.bag_of, batch.sizes, batch.bag_mask, chosen=chosen)
            if self.center == "reference":
                by_row = self.reduction == "rows"
                weighed = (targets, batch.row_mask) if by_row else (batch.bags["targets"], batch.bag_mask)
                loss = loss - reference_excess(logits[n_rows:], *weighed, batch.shared["prior"], square=square)
            return apply_remedy(loss, self.remedy)

        return loss_of_logits(net, batch, of_logits, beside=batch.shared.get("reference"))

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> EasyLLP:
        """Train on shuffled rows, or on whole bags."""
        prior = mean_counts(bags)
        targets = debiased_targets(bags.counts, bags.sizes, prior, without_replacement=self.correction)
        shared = {}
        if self.center == "reference":
            shared = {"prior": prior, "reference": reference_rows(bags.X, seed)}
        if self.reduction == "rows":
            data = TrainingData(bags.X, rows={"targets": targets[bags.bag_of]}, shared=shared)
            batches = RowBatches(len(bags.X), self.settings.batch_rows)
            return self.train(bags, self.batch_loss, data, monitor=monitor, seed=seed, batches=batches)
        data = TrainingData(bags.X, bags={"targets": targets}, shared=shared)
        return self.train(bags, self.batch_loss, data, monitor=monitor, seed=seed)
