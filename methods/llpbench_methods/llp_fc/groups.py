"""Groups of bags as noisy classes: priors, transition matrices and weights, in numpy.

A group has as many bags as there are classes, C. ``Γ[i, j]`` is the share of class j in the group's bag i; the bag's
place i is the noisy label of all its rows. Arrays of several groups have the groups on the first axis.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from llpbench import FloatArray, IntArray

TINY = 1e-12


class BagGroups(NamedTuple):
    """A grouping of the bags.

    Attributes:
        bags: (groups, C) bag numbers; bags that are left over are in none.
        transitions: (groups, C, C) ``T[i, j] = P(noisy label i | class j)``.
        weights: (groups, C) weight of each row of the bag.
    """

    bags: IntArray
    transitions: FloatArray
    weights: FloatArray


def form_groups(
    shares: FloatArray,
    sizes: IntArray,
    clean_prior: FloatArray,
    rng: np.random.Generator,
    *,
    noisy_prior: str = "uniform",
    informative: bool = False,
) -> BagGroups:
    """Put the bags into random groups of C, in random order; ``n mod C`` bags are left out.

    Args:
        shares: (bags, C) class shares of each bag, on the simplex.
        sizes: (bags,) rows of each bag.
        clean_prior: (C,) class shares of all rows.
        rng: draws the grouping.
        noisy_prior: ``uniform``, ``approx`` or ``approx_official``.
        informative: multiply a group's weights by ``|det T|``.
    """
    classes = shares.shape[1]
    n_groups = len(shares) // classes
    bags = rng.permutation(len(shares))[: n_groups * classes].reshape(n_groups, classes)
    Gamma = shares[bags]
    prior = noisy_priors(Gamma, clean_prior, noisy_prior)
    T = transition_matrices(Gamma, prior)
    weights = row_weights(prior, sizes[bags])
    if informative:
        weights = weights * np.abs(np.linalg.det(T))[:, None]
    return BagGroups(bags, T, weights)


def noisy_priors(Gamma: FloatArray, clean_prior: FloatArray, kind: str = "uniform") -> FloatArray:
    """Share ``a`` of each noisy label in each group, (groups, C), on the simplex.

    ``uniform``: 1/C. ``approx``: ``min ‖Γᵀa − π‖²``, so that the group has the class shares of all rows.
    ``approx_official``: ``min ‖Γa − π‖²``, which the published code solves by a slip (its transpose is undone).
    """
    n_groups, classes, _ = Gamma.shape
    if kind == "uniform":
        return np.full((n_groups, classes), 1.0 / classes)
    A = Gamma if kind == "approx_official" else np.swapaxes(Gamma, 1, 2)
    if classes == 2:
        return _two_on_the_simplex(A, clean_prior)
    return np.stack([_on_the_simplex(matrix, clean_prior) for matrix in A])


def _two_on_the_simplex(A: FloatArray, target: FloatArray) -> FloatArray:
    """``min ‖A a − t‖²`` over ``a = (s, 1 − s)``: ``s = clip(uᵀ(t − A₁)/uᵀu, 0, 1)``, ``u = A₀ − A₁``; 1/2 if u = 0."""
    u = A[:, :, 0] - A[:, :, 1]
    along, square = ((target - A[:, :, 1]) * u).sum(axis=1), (u * u).sum(axis=1)
    s = np.where(square > TINY, np.clip(along / np.maximum(square, TINY), 0.0, 1.0), 0.5)
    return np.column_stack([s, 1.0 - s])


def _on_the_simplex(A: FloatArray, target: FloatArray, pull: float = 1e-4, force: float = 1e3) -> FloatArray:
    """``min ‖A a − t‖²`` with ``a ≥ 0, Σa = 1``, by non-negative least squares.

    A heavy row holds the sum; a light pull towards equal weights decides between equally good solutions.
    """
    classes = A.shape[1]
    matrix = np.vstack([A, np.full((1, classes), force), pull * np.eye(classes)])
    values = np.concatenate([target, [force], np.full(classes, pull / classes)])
    a = nnls(matrix, values)[0]
    on_simplex: FloatArray = a / a.sum()
    return on_simplex


def transition_matrices(Gamma: FloatArray, prior: FloatArray) -> FloatArray:
    """``T[i, j] = Γ[i, j] a_i / π̂_j`` with ``π̂ = Γᵀ a``; columns add up to 1.

    A class that no bag of the group has (``π̂_j = 0``) says nothing about the bags: its column is ``a``.
    """
    joint = Gamma * prior[:, :, None]
    implied = joint.sum(axis=1, keepdims=True)
    missing = np.broadcast_to(prior[:, :, None], joint.shape)
    T: FloatArray = np.where(implied > TINY, joint / np.maximum(implied, TINY), missing)
    return T


def row_weights(prior: FloatArray, sizes: IntArray) -> FloatArray:
    """``v_i ∝ a_i / r_i`` with the bag's share of rows ``r_i = B_i / Σ B``; adds up to 1 over a group's bags."""
    raw = prior / (sizes / sizes.sum(axis=1, keepdims=True))
    weights: FloatArray = raw / raw.sum(axis=1, keepdims=True)
    return weights
