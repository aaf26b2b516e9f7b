"""EasyLLP: the shared network, trained by the debiased instance loss."""

from __future__ import annotations

from typing import Any

from llpbench import Bags, Monitor
from llpbench_methods.easyllp.loss import (
    apply_remedy,
    batch_loss,
    debiased_targets,
    one_row_of_each_bag,
    row_losses,
)
from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.batches import RowBatches
from llpbench_methods.nets.losses import weighted_mean
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits
from llpbench_methods.nets.training import Batch, TrainingData


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
        **network: the shared settings of ``NetworkSettings``.
    """

    def __init__(
        self,
        reduction: str = "rows",
        loss: str = "log",
        remedy: str = "none",
        logit_clip: float = 0.0,
        correction: bool = False,
        **network: Any,
    ) -> None:
        self.reduction, self.loss, self.remedy = reduction, loss, remedy
        self.logit_clip, self.correction = logit_clip, correction
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

        def of_logits(logits: Any) -> Any:
            if self.logit_clip > 0:
                logits = ops.clip(logits, -self.logit_clip, self.logit_clip)
            per_row = row_losses(logits, targets, square=self.loss == "square")
            if self.reduction == "rows":
                return apply_remedy(weighted_mean(per_row, batch.row_mask), self.remedy)
            return batch_loss(per_row, batch.bag_of, batch.sizes, batch.bag_mask, chosen=chosen, remedy=self.remedy)

        return loss_of_logits(net, batch, of_logits)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> EasyLLP:
        """Train on shuffled rows, or on whole bags."""
        targets = debiased_targets(bags.counts, bags.sizes, bags.prior, without_replacement=self.correction)
        if self.reduction == "rows":
            data = TrainingData(bags.X, rows={"targets": targets[bags.bag_of]})
            batches = RowBatches(len(bags.X), self.settings.batch_rows)
            return self.train(bags, self.batch_loss, data, monitor=monitor, seed=seed, batches=batches)
        data = TrainingData(bags.X, bags={"targets": targets})
        return self.train(bags, self.batch_loss, data, monitor=monitor, seed=seed)
