"""LLP-MM: the shared network, trained to match the factorial moments of bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench import Bags, FloatArray, IntArray, Monitor
from llpbench_methods.llp_mm.loss import RowGroups, groups_for, moment_losses, row_laws, subset_sums
from llpbench_methods.llp_mm.terms import Terms
from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.batches import power_of_two
from llpbench_methods.nets.losses import weighted_mean
from llpbench_methods.nets.method import NetworkMethod
from llpbench_methods.nets.network import loss_of_logits
from llpbench_methods.nets.training import Batch, TrainingData
from llpbench_methods.shared.counts import whole_counts

TWO_CLASSES, SEVERAL_CLASSES = 8, 3
"""The orders that ``orders=auto`` stands for."""

COMPOSITION_ORDERS, COMPOSITION_CELLS = 3, 1000
"""Compositions of r rows over C > 2 classes are counted up to this r, and while C^r is no more than this."""


@dataclass(frozen=True)
class LabelView:
    """One way of looking at labels: all classes at once, or each against the rest.

    Attributes:
        terms: the compositions that are counted.
        first: the lowest order that counts in the loss; the highest is that of the terms.
        one_vs_rest: whether each class is looked at alone, as "another class, this one".
    """

    terms: Terms
    first: int
    one_vs_rest: bool = False

    def targets(self, counts: IntArray) -> FloatArray:
        """(bags, views, terms) known laws of the orders of this view.

        Args:
            counts: (bags, C) rows of every class.
        """
        seen = counts[:, None, :]
        if self.one_vs_rest:
            seen = np.stack([counts.sum(axis=1, keepdims=True) - counts, counts], axis=-1)
        return np.where(self.terms.degrees >= max(self.first, 1), self.terms.targets(seen), 0.0)


def views_for(classes: int, orders: int) -> list[LabelView]:
    """The views of a problem: compositions, and beyond order 3 of several classes each class against the rest."""
    if classes == 2:
        return [LabelView(Terms(2, orders), 1)]
    whole = max(r for r in range(1, COMPOSITION_ORDERS + 1) if r == 1 or classes**r <= COMPOSITION_CELLS)
    whole = min(whole, orders)
    rest = [LabelView(Terms(2, orders), whole + 1, one_vs_rest=True)] if orders > whole else []
    return [LabelView(Terms(classes, whole), 1), *rest]


class LLPMM(NetworkMethod):
    """Learns from the composition of every few rows of a bag; noisy counts are rounded to whole ones that fit.

    Args:
        orders: most rows that are looked at together; ``auto`` is 8 for two classes and 3 for more.
        smoothing: share of the uniform law in the prediction.
        **network: the shared settings of ``NetworkSettings``.
    """

    def __init__(self, orders: int | str = "auto", smoothing: float = 1e-4, **network: Any) -> None:
        self.orders, self.smoothing = orders, smoothing
        super().__init__(**network)

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> LLPMM:
        """Train on whole bags."""
        asked = int(self.orders) if self.orders != "auto" else TWO_CLASSES if bags.classes == 2 else SEVERAL_CLASSES
        largest = int(bags.sizes.max())
        views = views_for(bags.classes, min(asked, largest))
        even = np.count_nonzero(bags.sizes != largest) <= 1
        groups = groups_for(largest if even else power_of_two(largest))

        def loss(net: Any, batch: Batch) -> Any:
            def of_logits(logits: Any) -> Any:
                return weighted_mean(_losses(logits, batch, views, groups, self.smoothing), batch.bag_mask)

            return loss_of_logits(net, batch, of_logits)

        counts = whole_counts(bags)
        counts = np.concatenate([bags.sizes[:, None] - counts, counts], axis=1) if bags.classes == 2 else counts
        used = np.minimum(asked, bags.sizes)[:, None, None]
        per_bag: dict[str, FloatArray] = {}
        for i, view in enumerate(views):
            per_bag[f"targets_{i}"] = view.targets(counts) / used
            per_bag[f"factors_{i}"] = view.terms.factors(bags.sizes)
        position = np.arange(len(bags.X)) - bags.offsets[bags.bag_of]
        data = TrainingData(bags.X, rows={"position": position}, bags=per_bag)
        return self.train(bags, loss, data, monitor=monitor, seed=seed)


def _losses(logits: Any, batch: Batch, views: list[LabelView], groups: RowGroups, smoothing: float) -> Any:
    """(bags,) mean over orders of the cross-entropy between the known and the predicted law."""
    total = ops.zeros_like(batch.sizes)
    for i, view in enumerate(views):
        laws = row_laws(logits, one_vs_rest=view.one_vs_rest)
        sums = subset_sums(laws, batch.bag_of, batch.rows["position"], batch.sizes, view.terms, groups)
        uniform = ops.convert_to_tensor(view.terms.uniform.astype(np.float32))
        total = total + moment_losses(sums, batch.bags[f"factors_{i}"], batch.bags[f"targets_{i}"], uniform, smoothing)
    return total
