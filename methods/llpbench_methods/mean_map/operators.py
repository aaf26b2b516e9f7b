"""The mean operator, the sums of rows by class: a sufficient statistic of the labels in logistic regression.

``m_c = (1/N) Σ_{i: y_i = c} x_i = π_c μ_c``. Bags tell their own means ``x̄_b = Σ_c α_bc μ_bc``; what is assumed of the
class means ``μ_bc`` inside bags makes the variants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.spatial.distance import cdist

Array = NDArray[np.float64]

RIDGE = 1e-9
"""Added to the diagonal of the Laplacian system (relative to its mean): a class may be in no bag."""


def mean_map(means: Array, shares: Array, weights: Array, rates: Array) -> Array:
    """(C, d) operator of MM: all bags have the same class means, ``x̄_b = Σ_c α_bc μ_c``, by weighted least squares.

    Written with ``x̄`` and ``ᾱ``, the weighted means over bags: ``x̄_b − x̄ = (α_b − ᾱ) Δ`` has the same solution
    ``μ_c = x̄ + (e_c − ᾱ) Δ`` where the shares of bags differ. Where they do not, the smallest ``Δ`` is taken: what no
    bag tells about a class is the mean of all rows.

    Args:
        means: (bags, d) bag means.
        shares: (bags, C) class shares of bags, all classes.
        weights: (bags,) weights of bags.
        rates: (C,) shares of the classes over all rows.
    """
    weights = weights / weights.sum()
    centre, level = weights @ means, weights @ shares
    root = np.sqrt(weights)[:, None]
    slopes = np.linalg.lstsq(root * (shares - level), root * (means - centre), rcond=1e-9)[0]
    class_means = centre + (np.eye(len(rates)) - level) @ slopes
    return np.asarray(rates[:, None] * class_means)


def laplacian_mean_map(
    means: Array, shares: Array, weights: Array, rates: Array, *, gamma: float, sigma: float
) -> Array:
    """(C, d) operator of LMM: every bag has class means of its own, alike in bags that are alike.

    ``(Πᵀ D Π + γ blockdiag(L, …, L)) μ = Πᵀ D X̄`` with ``Π = [diag α_1 | … | diag α_C]`` and ``D`` the weights, then
    ``m_c = π_c Σ_b P(b | c) μ_bc``, ``P(b | c) ∝ D_b α_bc``.

    Args:
        means: (bags, d) bag means.
        shares: (bags, C) class shares of bags, all classes.
        weights: (bags,) weights of bags; their mean is taken as 1.
        rates: (C,) shares of the classes over all rows.
        gamma: weight of the Laplacian.
        sigma: distance scale of the similarity of bags.
    """
    bags, classes = shares.shape
    weights = weights * (bags / weights.sum())
    system = np.zeros((classes, bags, classes, bags))
    every, laplacian = np.arange(bags), bag_laplacian(means, sigma)
    for c in range(classes):
        system[c, :, c, :] += gamma * laplacian
        for other in range(classes):
            system[c, every, other, every] += weights * shares[:, c] * shares[:, other]
    matrix = system.reshape(classes * bags, classes * bags)
    matrix[np.diag_indices_from(matrix)] += RIDGE * float(np.trace(matrix)) / len(matrix)
    right = ((weights[:, None] * shares).T[:, :, None] * means).reshape(classes * bags, -1)
    own = np.asarray(solve(matrix, right, assume_a="pos", overwrite_a=True)).reshape(classes, bags, -1)
    mass = (weights[:, None] * shares).T
    chance = mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(rates[:, None] * np.einsum("cb,cbd->cd", chance, own))


def bag_laplacian(means: Array, sigma: float) -> Array:
    """``L = diag(Σ_b' s_bb') − s`` with ``s_bb' = exp(−|x̄_b − x̄_b'| / σ)``, and 0 on the diagonal of ``s``."""
    similarity = np.exp(-cdist(means, means) / sigma)
    np.fill_diagonal(similarity, 0.0)
    return np.asarray(np.diag(similarity.sum(axis=1)) - similarity)


def labelled_means(X: NDArray[Any], labels: NDArray[Any], classes: int) -> Array:
    """(C, d) operator of rows with labels: ``m_c = (1/N) Σ_{i: y_i = c} x_i``."""
    return np.stack([(labels == c).astype(np.float64) @ X for c in range(classes)]) / len(X)
