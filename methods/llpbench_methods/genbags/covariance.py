"""The covariance of the weights of a generalised bag: closed form, or a semidefinite programme."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from llpbench import Bags, FloatArray
from llpbench_methods.shared.bag_means import bag_sums


def iid_covariance(block: int, ridge: float) -> FloatArray:
    """``W = (q I − 11ᵀ)/(q − 1) + ridge · I``: unit variances and ``1ᵀW1 = 0``, right for bags of one law.

    Then ``dᵀWd = q/(q−1) Σ_j (d_j − d̄)² + ridge ‖d‖²``: the variance of the residuals in a block. One bag alone
    (q = 1) has ``W = 1``, the squared error of its count.
    """
    if block == 1:
        return np.ones((1, 1))
    contrast = (block * np.eye(block) - np.ones((block, block))) / (block - 1)
    return contrast + ridge * np.eye(block)


def solve_sdp(
    means: Sequence[FloatArray], moments: Sequence[FloatArray], penalty: float = 100.0
) -> tuple[FloatArray, float]:
    """The covariance that makes generalised bag sums isotropic, and the programme's value.

    ``min tr W + λ Σ_{u≤v} t_uv`` over ``W ⪰ 0`` such that
    ``|Σ_i W_ii A_i[u,v] + Σ_{i≠j} W_ij μ_i[u] μ_j[v] − 1{u=v}| ≤ t_uv``.

    Args:
        means: mean bag sum ``μ_i`` of each bag law, (n,) each.
        moments: second moments ``A_i`` of bag sums, (n, n) each.
        penalty: the factor λ.

    Raises:
        ImportError: cvxpy is not installed.
    """
    cvxpy: Any = importlib.import_module("cvxpy")
    q, n = len(means), len(means[0])
    W = cvxpy.Variable((q, q), PSD=True)
    mean = np.stack(means, axis=1)
    spread = [np.asarray(A) - np.outer(m, m) for A, m in zip(moments, means, strict=True)]
    second = mean @ W @ mean.T + sum(W[i, i] * spread[i] for i in range(q))
    second = (second + second.T) / 2
    off = second - np.eye(n)
    upper = np.triu(np.ones((n, n)))
    programme = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.trace(W) + penalty * cvxpy.sum(cvxpy.multiply(upper, cvxpy.abs(off))))
    )
    value = programme.solve(solver=cvxpy.CLARABEL)
    return (W.value + W.value.T) / 2, float(value)


def bag_moments(bags: Bags, n_features: int) -> tuple[FloatArray, FloatArray]:
    """Mean and second moment of bag sums: a constant, and the rows' leading principal components.

    Sums are divided by the root of the mean bag size, components have unit variance, so that the moments have the
    same scale for all data and bag sizes.
    """
    X = bags.X.reshape(len(bags.X), -1).astype(np.float64)
    X = X - X.mean(axis=0)
    _, scales, axes = np.linalg.svd(np.cov(X, rowvar=False).reshape(X.shape[1], -1))
    keep = scales[:n_features] > 1e-10 * max(float(scales[0]), 1e-300)
    components = X @ axes[:n_features][keep].T / np.sqrt(scales[:n_features][keep])
    rows = np.column_stack([np.ones(len(X)), components])
    sums = bag_sums(rows, bags.offsets) / np.sqrt(bags.sizes.mean())
    return sums.mean(axis=0), sums.T @ sums / len(sums)


def sdp_covariance(bags: Bags, block: int, ridge: float, n_features: int) -> FloatArray:
    """The programme's solution for a block of bags of one law, scaled to a mean variance of 1, plus the ridge."""
    mean, moment = bag_moments(bags, n_features)
    W, _ = solve_sdp([mean] * block, [moment] * block)
    scaled: FloatArray = W * block / max(float(np.trace(W)), 1e-12) + ridge * np.eye(block)
    return scaled
