"""Families of priors over the weights of a regression on bag means, averaged by their evidence.

One model is ``w ~ N(0, R² p(1−p) diag(v))`` in some basis, ``v`` scaled so that ``(x − x̄)·w`` has variance
``R² p(1−p)`` for a random row: ``R²`` is the share of the labels' variance that the model explains. The labels' noise
in a bag's proportion is then ``(1 − R²) p(1−p)/B``, and at most the full ``p(1−p)/B``; that of a noisy count and of a
bag effect is added to either. A member is weighed by its evidence under the first noise, which separates priors better;
given the member, weights are estimated under the full noise, which shrinks more where bags are few. Families of ``v``:

* ``A``, the spectrum: ``v_j ∝ λ_j^(γ−1)`` over principal components;
* ``B``, column groups: shares of variance of the original columns from a Dirichlet law, so that a whole one-hot
  block is in or out together;
* ``N``, as B with every numeric column also in hat functions;
* ``E``, for features that are no table: a mixture of a spectrum and sparse draws of components.

Each family has the same prior mass, its members share it equally.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from llpbench_methods.shared.mean_regression import Array, Decomposition, Regression, decompose
from llpbench_methods.shared.spectrum import Spectrum

Ints = NDArray[np.int64]

GAMMAS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
SHARES = np.geomspace(0.01, 0.8, 15)
CONCENTRATIONS = (0.1, 0.3, 1.0)
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Family:
    """Priors that are diagonal in one basis.

    Attributes:
        name: letter of the family.
        basis: (D, r) columns of the basis in which the weights are independent; None for the features themselves.
        variances: (members, r) prior variances, each scaled to unit variance of ``(x − x̄)·w``.
    """

    name: str
    basis: Array | None
    variances: Array

    def thinned(self, members: int) -> Family:
        """About that many of its members, evenly taken."""
        return replace(self, variances=self.variances[:: max(1, len(self.variances) // members)])


def spectrum_family(spectrum: Spectrum, width: int, gammas: Sequence[float] = GAMMAS) -> Family:
    """Family A: ``v_j = λ_j^(γ−1) / Σ_k λ_k^γ``, one member for each γ; ``width`` features in all."""
    return Family("A", _padded(spectrum.components, width), spectral_variances(spectrum.variances, gammas))


def spectral_variances(eigenvalues: Array, gammas: Sequence[float]) -> Array:
    """(gammas, r) variances ``λ_j^(γ−1) / Σ_k λ_k^γ``, without overflow for small eigenvalues."""
    if not len(eigenvalues):
        return np.zeros((len(gammas), 0))
    relative = eigenvalues / eigenvalues[0]
    return np.array([relative ** (g - 1.0) / np.sum(relative**g) / eigenvalues[0] for g in gammas])


def group_family(name: str, feature_variances: Array, group_of: Ints, draws: int, rng: np.random.Generator) -> Family:
    """Families B and N: Dirichlet shares of variance over groups of features.

    Within a group of share ``q`` the weights are independent with the variance ``q / Σ_{j in group} var x_j``.

    Args:
        name: letter of the family.
        feature_variances: (D,) variance of each feature over rows.
        group_of: (D,) group of each feature, −1 for features this family leaves out.
        draws: draws for each concentration.
        rng: draws the shares.
    """
    used = group_of >= 0
    n_groups = int(group_of.max(initial=-1)) + 1
    totals = np.bincount(group_of[used], weights=feature_variances[used], minlength=n_groups)
    alive = np.flatnonzero(totals > 0)
    members = []
    for shares in dirichlet_draws(len(alive), draws, rng):
        per_group = np.zeros(n_groups)
        per_group[alive] = shares / totals[alive]
        members.append(np.where(used, per_group[np.maximum(group_of, 0)], 0.0))
    return Family(name, None, np.array(members).reshape(len(members), len(feature_variances)))


def sparse_family(spectrum: Spectrum, width: int, draws: int, rng: np.random.Generator) -> Family:
    """Family E: ``β`` times a spectrum plus ``1 − β`` times a sparse draw of components, ``β`` uniform."""
    eigenvalues = spectrum.variances
    members = []
    for shares in dirichlet_draws(len(eigenvalues), draws, rng):
        smooth = spectral_variances(eigenvalues, [float(rng.choice(GAMMAS))])[0]
        beta = rng.uniform()
        members.append(beta * smooth + (1.0 - beta) * shares / eigenvalues)
    return Family("E", _padded(spectrum.components, width), np.array(members).reshape(len(members), len(eigenvalues)))


def dirichlet_draws(n: int, draws: int, rng: np.random.Generator) -> Iterable[Array]:
    """Shares of ``n`` parts: ``draws`` from the Dirichlet law of each concentration, by normalised gammas."""
    if n == 0:
        return
    for concentration in CONCENTRATIONS:
        for _ in range(draws):
            # log of Gamma(a) as log Gamma(a + 1) + log(U)/a: a small concentration would underflow otherwise.
            logs = np.log(rng.standard_gamma(concentration + 1.0, n)) + np.log(rng.uniform(size=n)) / concentration
            yield np.exp(logs - logsumexp(logs))


@dataclass(frozen=True)
class Average:
    """Mean and covariance of the weights under the average of all models.

    Attributes:
        weights: (D,) posterior mean.
        factor: (D, k) ``F`` with posterior covariance ``F Fᵀ``.
        centre: (D,) row at which the predictor is the intercept.
        intercept: proportion at the centre.
        log_evidence: log of the averaged evidence.
        family_mass: posterior mass of each family by name.
        explained: posterior mean of ``R²``.
    """

    weights: Array
    factor: Array
    centre: Array
    intercept: float
    log_evidence: float
    family_mass: dict[str, float]
    explained: float

    def offset(self, features: NDArray[Any]) -> Array:
        """``(x − x̄)·w`` for each row."""
        result: Array = features @ self.weights - float(self.centre @ self.weights)
        return result

    def variance(self, features: NDArray[Any]) -> Array:
        """Posterior variance of ``(x − x̄)·w`` for each row."""
        result: Array = np.sum(((features - self.centre) @ self.factor) ** 2, axis=1)
        return result


def noise_factors(shares: Array, label_noise: Array | float) -> Array:
    """``ν = 1 − R² · label_noise``: noise left when a share ``R²`` of the labels' variance is explained.

    ``label_noise`` is the part of a bag's noise variance that comes from labels: 1 without count noise.
    """
    return np.asarray(1.0 - shares * label_noise)


def log_evidences(seen: Decomposition, scales: Array, noise: Array) -> Array:
    """Log evidence for each pair of prior variance ``s²`` and noise factor ``ν``.

    ``log p = log p_{unit noise}(y/√ν | s²/ν) − ½ (n−1) log ν`` on the ``n − 1`` dimensions that no intercept
    reaches; the part of ``base`` is the same for all.
    """
    t2 = seen.coordinates**2
    problem = seen.regression
    unreached = max(float(problem.targets @ problem.targets) + problem.residual - float(t2.sum()), 0.0)
    grown = (scales / noise)[:, None] * seen.strengths
    quadratic = (np.sum(t2 / (1.0 + grown), axis=1) + unreached) / noise
    return np.asarray(problem.log_density_base - 0.5 * (np.log1p(grown).sum(axis=1) + quadratic))


@dataclass(frozen=True)
class _Member:
    """One prior seen through the bags.

    Attributes:
        family: where it belongs.
        seen: the regression in its coordinates.
        log_mass: log of its prior mass times its evidence, summed over the grid of ``R²``.
        weights: (grid,) law of ``R²`` under which weights are estimated.
        explained: mean of ``R²`` under the law that weighs the member.
    """

    family: Family
    seen: Decomposition
    log_mass: float
    weights: Array
    explained: float


def average(
    problem: Regression,
    families: Sequence[Family],
    *,
    rate: float,
    dimensions: int,
    label_noise: float = 1.0,
    shares: Array = SHARES,
) -> Average:
    """Average the posteriors of all members of all families over the grid of ``R²`` by their evidence.

    Args:
        problem: regression with unit noise and no intercept, over the D features.
        families: priors; a family without members is left out.
        rate: share of the class.
        dimensions: ``n − 1`` for n bags.
        label_noise: see ``noise_factors``.
        shares: grid of ``R²``, equal mass each.
    """
    scales = shares * rate * (1.0 - rate)
    noise = noise_factors(shares, label_noise)
    jacobian = -0.5 * dimensions * np.log(noise)
    members: list[_Member] = []
    for family, seen in _seen_members(problem, families):
        evidence = log_evidences(seen, scales, noise) + jacobian
        full = log_evidences(seen, scales, np.ones_like(noise))
        members.append(
            _Member(
                family,
                seen,
                float(logsumexp(evidence)) - np.log(len(family.variances) * len(shares)),
                np.exp(full - logsumexp(full)),
                float(np.exp(evidence - logsumexp(evidence)) @ shares),
            )
        )
    return _mixture(problem, members, scales)


def log_evidence(
    problem: Regression,
    families: Sequence[Family],
    *,
    rate: float,
    dimensions: int,
    label_noise: float = 1.0,
    shares: Array = SHARES,
) -> float:
    """The log of the averaged evidence alone: what ``average`` gives with it, for a fraction of the work."""
    scales = shares * rate * (1.0 - rate)
    noise = noise_factors(shares, label_noise)
    jacobian = -0.5 * dimensions * np.log(noise)
    parts = [
        float(logsumexp(log_evidences(seen, scales, noise) + jacobian)) - np.log(len(family.variances) * len(shares))
        for family, seen in _seen_members(problem, families)
    ]
    return float(logsumexp(parts)) if parts else problem.log_density_base


def _seen_members(problem: Regression, families: Sequence[Family]) -> Iterator[tuple[Family, Decomposition]]:
    """Every member of every family: where it belongs, and the regression in its coordinates."""
    for family in (f for f in families if len(f.variances) and f.variances.shape[1]):
        rotated = problem if family.basis is None else replace(problem, rows=problem.rows @ family.basis)
        for variances in family.variances:
            used = np.flatnonzero(variances > _NEGLIGIBLE * variances.max())
            factor = np.zeros((len(variances), len(used)))
            factor[used, np.arange(len(used))] = np.sqrt(variances[used])
            yield family, decompose(rotated, factor)


def _mixture(problem: Regression, members: Sequence[_Member], scales: Array) -> Average:
    """Moments of the mixture: covariances add up, and so does the spread of the means."""
    width = problem.rows.shape[1]
    if not members:
        nothing = np.zeros((width, 0))
        return Average(np.zeros(width), nothing, problem.centre, problem.intercept, problem.log_density_base, {}, 0.0)
    logs = np.array([member.log_mass for member in members])
    total = float(logsumexp(logs))
    masses: dict[str, float] = {}
    explained = 0.0
    mean, second = np.zeros(width), np.zeros((width, width))
    for member, mass in zip(members, np.exp(logs - total), strict=True):
        family, seen = member.family, member.seen
        masses[family.name] = masses.get(family.name, 0.0) + float(mass)
        explained += float(mass) * member.explained
        if mass < _NEGLIGIBLE:
            continue
        part = mass * member.weights
        grown = scales[:, None] * seen.strengths
        gain = scales[:, None] * np.sqrt(seen.strengths) / (1.0 + grown)
        lift = seen.factor if family.basis is None else family.basis @ seen.factor
        known = lift @ seen.right
        means = known @ (gain * seen.coordinates).T
        mean += means @ part
        spent = (part * scales) @ (grown / (1.0 + grown))
        second += float(part @ scales) * (lift @ lift.T) - (known * spent) @ known.T
        second += (means * part) @ means.T
    values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
    kept = values > 1e-12 * max(float(values[-1]), 1e-300)
    factor = vectors[:, kept] * np.sqrt(values[kept])
    return Average(mean, factor, problem.centre, problem.intercept, total, masses, explained)


def _padded(components: Array, width: int) -> Array:
    """The components as directions of a space with more features behind."""
    return np.vstack([components, np.zeros((width - len(components), components.shape[1]))])
