"""The bag cross-entropy and that of hard labels, in one."""

from __future__ import annotations

from typing import Any

from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.losses import bag_cross_entropy, row_cross_entropy

Tensor = Any


def dual_loss(
    logits: Tensor,
    labels: Tensor,
    row_mask: Tensor,
    bags: tuple[Tensor, Tensor, Tensor, Tensor],
    *,
    weight: Tensor,
    threshold: Tensor,
) -> Tensor:
    """``L_bags + w (1/N) Σ_i 1[p_i(t_i) ≥ θ] CE(z_i, t_i)``, with the condition held constant in the gradient.

    Args:
        logits: (rows,) or (rows, C).
        labels: (rows,) hard labels as whole numbers.
        row_mask: (rows,) 0 for padding.
        bags: ``bag_of, sizes, proportions, weights`` of ``bag_cross_entropy``.
        weight: w.
        threshold: θ.
    """
    per_row = row_cross_entropy(logits, labels)
    confident = ops.cast(ops.stop_gradient(ops.exp(-per_row)) >= threshold, "float32")
    rows = ops.sum(row_mask * confident * per_row) / ops.maximum(ops.sum(row_mask), 1.0)
    return bag_cross_entropy(logits, *bags) + weight * rows
