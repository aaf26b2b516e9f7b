r"""NT-Xent, the contrastive loss of SimCLR.

Rows 0 … n−1 are first views, rows n … 2n−1 second views of the same images. With ``s_ij`` the cosine similarity,
:math:`\ell_i = -\log \frac{\exp(s_{i,p(i)}/\tau)}{\sum_{k \ne i} \exp(s_{ik}/\tau)}`, where ``p(i)`` is the other view
of the image of row i.
"""

from __future__ import annotations

from typing import Any

from llpbench_datasets.keras_backend import ops

Tensor = Any


def nt_xent(projections: Tensor, temperature: float) -> Tensor:
    """The loss of each row, (2n,), of projections (2n, d)."""
    rows = projections.shape[0]
    unit = projections / ops.sqrt(ops.sum(projections * projections, axis=1, keepdims=True) + 1e-12)
    similarity = ops.matmul(unit, ops.transpose(unit)) / temperature
    others = ops.where(ops.eye(rows, dtype="bool"), -1e9, similarity)
    partners = ops.concatenate([unit[rows // 2 :], unit[: rows // 2]], axis=0)
    return ops.logsumexp(others, axis=1) - ops.sum(unit * partners, axis=1) / temperature
