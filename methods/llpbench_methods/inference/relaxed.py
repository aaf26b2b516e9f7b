"""The relaxed field: labels as real numbers that vary slowly along the graph and explain the bags' counts.

Binary labels on a graph either forget a count after a few neighbours or freeze into clusters. Real numbers do neither.
Let `f_i` be how far the probability of row `i` is from the known rate `p`, and `S` the graph's weights scaled so that
every row has a sum of 1 (`balance`). A lazy walk stays or goes to a neighbour, each with probability 1/2:
`W = (I + S) / 2`. Values that are independent at their start and averaged along such walks have covariance `W^t`, and

    f ~ N(0, R2 p(1-p) K),    K = mean over walk lengths t of W^t / (mean diagonal of W^t)

says that a share `R2` of the variance of the labels follows the graph, at several ranges at once. (The energy
`sum_ij w_ij (f_i - f_j)^2 + eps |f|^2` is a prior of the same family, with geometric lengths: its inverse is the sum of
`S^t / (1 + eps)^(t + 1)`. Most of these walks are short, which is why fixed lengths use few bags better.) A bag sees

    c_b - B_b p = sum of f_i over the bag + noise,    var = (1 - R2) p(1-p) B_b + (sd of the count's own noise)^2.

`W^64` takes no 64 products: as Chebyshev polynomials of `S` it has 28 terms that matter (`walk_coefficients`).
The posterior mean is `R2 p(1-p) K A^T a`, where `A` sums over bags and `a` solves a symmetric positive system with one
unknown per bag, by conjugate gradients. Several classes have one such field each, against the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llpbench_methods.inference.balance import balance, weight_matrix
from llpbench_methods.inference.counting import count_log_likelihood
from llpbench_methods.inference.graph import SimilarityGraph
from llpbench_methods.inference.model import bag_index, lambda_of_noise

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LENGTHS = (4, 16, 64)
"""Lengths of the walks."""
EXPLAINED = 0.5
"""The share `R2` of the variance of the labels that follows the graph."""
TAIL = 1e-6
"""Truncation error of `W^t`, as a share of its norm."""
FOLDS = 4
PROBES = 4
_LEAST = 0.05
"""No probability is taken below this share of the rate, nor one minus it below this share of one minus the rate."""
TOLERANCE = 1e-2
"""The norm of what the solve leaves over, as a share of the right-hand side."""
_STEPS = 100


@dataclass(frozen=True)
class WalkPrior:
    """The covariance `K = sum_k c_k T_k(S)`, as a function of a block of vectors.

    Attributes:
        scaled: `S`, in float32.
        coefficients: the `c_k`.
    """

    scaled: csr_array
    coefficients: tuple[float, ...]

    def __call__(self, x: NDArray[np.floating]) -> Floats:
        """`K x`, column by column."""
        parts = zip(self.coefficients, chebyshev(self.scaled, x, len(self.coefficients)), strict=True)
        return np.asarray(sum(c * part.astype(np.float64) for c, part in parts))


def chebyshev(matrix: csr_array, x: NDArray[np.floating], terms: int) -> Iterator[NDArray[np.float32]]:
    """`T_0(S) x, T_1(S) x, ...`, by `T_(k+1) = 2 S T_k - T_(k-1)`."""
    before = now = np.asarray(x, dtype=np.float32)
    for k in range(terms):
        if k == 1:
            now = matrix @ before
        elif k > 1:
            before, now = now, np.float32(2.0) * (matrix @ now) - before
        yield now


def walk_coefficients(length: int, tail: float = TAIL) -> Floats:
    """`a_k` with `((1 + s) / 2)^t = sum_k a_k T_k(s)`, up to where all that follow add up to less than `tail`.

    With `s = cos u` the left side is `cos(u / 2)^(2 t)`, so `a_k` is a binomial probability (twice that for `k > 0`),

        a_k = C(2 t, t + k) / 4^t,

    which is as good as 0 beyond a few times `sqrt(t / 2)`: far fewer products with `S` than `t`.
    """
    from scipy.special import gammaln

    k = np.arange(length + 1)
    log = gammaln(2 * length + 1) - gammaln(length + k + 1) - gammaln(length - k + 1) - 2 * length * np.log(2.0)
    a = np.where(k > 0, 2.0, 1.0) * np.exp(log)
    return np.asarray(a[: int(np.searchsorted(-np.cumsum(a[::-1])[::-1], -tail))])


def walk_prior(graph: SimilarityGraph, lengths: tuple[int, ...] = LENGTHS) -> WalkPrior:
    """The covariance of a graph; the mean diagonals are estimated from a few random signs (Hutchinson)."""
    scaled = weight_matrix(balance(graph)).astype(np.float32)
    each = [walk_coefficients(length) for length in lengths]
    terms = max(map(len, each))
    table = np.stack([np.pad(a, (0, terms - len(a))) for a in each])
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (graph.n, PROBES)).astype(np.float32)
    moments = np.array([float((signs * part).mean()) for part in chebyshev(scaled, signs, terms)])
    mean_diagonals = np.maximum(table @ moments, 1e-6)
    return WalkPrior(scaled, tuple((table / mean_diagonals[:, None]).mean(axis=0).tolist()))


@dataclass(frozen=True)
class Observed:
    """The observations: bags and their counts, one column of counts for each field.

    Attributes:
        bag_of: (n,) bag of each row, -1 for none.
        counts: (bags, fields) counts of class 1, or of every class.
        count_sd: standard deviation of the noise in a count.
    """

    bag_of: Ints
    counts: Floats
    count_sd: float = 0.0

    @cached_property
    def sums(self) -> csr_array:
        """`A`, (bags, n)."""
        from scipy.sparse import csr_array

        inside = np.flatnonzero(self.bag_of >= 0)
        shape = (len(self.counts), len(self.bag_of))
        return csr_array((np.ones(len(inside)), (self.bag_of[inside], inside)), shape=shape)

    @cached_property
    def sizes(self) -> Floats:
        """(bags,) members of each."""
        return np.bincount(self.bag_of[self.bag_of >= 0], minlength=len(self.counts)).astype(np.float64)

    @cached_property
    def rates(self) -> Floats:
        """(fields,) share of positives over all bags, kept off 0 and 1."""
        return np.asarray(np.clip(self.counts.sum(axis=0) / max(self.sizes.sum(), 1.0), 1e-6, 1.0 - 1e-6))

    def likelihood(self, probabilities: Floats) -> Floats:
        """(bags,) log-likelihood of the counts of each bag, added up over fields."""
        index = bag_index(self.bag_of, len(self.counts))
        odds = np.log(probabilities / (1.0 - probabilities))[index.members]
        strength = lambda_of_noise(self.count_sd)
        counts = np.round(self.counts) if self.count_sd == 0.0 else self.counts
        columns = range(self.counts.shape[1])
        each = [count_log_likelihood(odds[:, c], index.offsets, counts[:, c], strength) for c in columns]
        return np.asarray(np.sum(each, axis=0))


def solve_fields(
    prior: Callable[[Floats], Floats],
    seen: Observed,
    explained: float,
    kept: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
    trend: Floats | None = None,
) -> Floats:
    """Posterior mean `f` of every field, (n, fields); with `kept` (bags, fields) from the bags marked there alone.

    The field explains what the counts differ from those expected under the rates, or under the probabilities `trend`
    (n, fields).
    """
    binomial = seen.rates * (1.0 - seen.rates)
    noise = (1.0 - explained) * binomial * seen.sizes[:, None] + seen.count_sd**2
    used = np.ones_like(noise) if kept is None else np.asarray(kept, dtype=np.float64)
    scale = used / np.sqrt(np.maximum(noise, 1e-12))
    expected = seen.sizes[:, None] * seen.rates if trend is None else seen.sums @ trend
    gap = seen.counts - expected

    def spread(a: Floats) -> Floats:
        return np.asarray(explained * binomial * prior(seen.sums.T @ (scale * a)))

    def system(a: Floats) -> Floats:
        return np.asarray(a + scale * (seen.sums @ spread(a)))

    return spread(conjugate_gradients(system, np.asarray(scale * gap), tolerance))


def conjugate_gradients(matrix: Callable[[Floats], Floats], right: Floats, tolerance: float = TOLERANCE) -> Floats:
    """Solve `matrix(x) = right` for every column at once; the matrix is symmetric, positive and near the identity."""
    x, residual = np.zeros_like(right), right.copy()
    direction, size = residual.copy(), np.sum(residual**2, axis=0)
    enough = tolerance**2 * size
    for _ in range(_STEPS):
        if (size <= enough).all():
            break
        image = matrix(direction)
        step = size / np.maximum(np.sum(direction * image, axis=0), 1e-300)
        x += step * direction
        residual -= step * image
        before, size = size, np.sum(residual**2, axis=0)
        direction = residual + size / np.maximum(before, 1e-300) * direction
    return x


def probabilities_of(fields: Floats, rates: Floats) -> Floats:
    """`p + f`, kept off 0 and 1 by a twentieth of what the rate is."""
    return np.clip(rates + fields, _LEAST * rates, 1.0 - _LEAST * (1.0 - rates))


@dataclass(frozen=True)
class RelaxedField:
    """Result of the solver.

    Attributes:
        probabilities: (n, fields) `p + f`, each strictly between 0 and 1.
        gain: nats by which fields from other bags predict a bag's counts better than the rate alone, over all bags.
        error: the standard error of the gain, from how much it differs between bags.
    """

    probabilities: Floats
    gain: float
    error: float


def relaxed_field(
    graph: SimilarityGraph, seen: Observed, *, explained: float = EXPLAINED, folds: int = FOLDS, seed: int = 0
) -> RelaxedField:
    """The field of all bags, and how well fields of a part of the bags predict the others.

    Args:
        graph: the similarity graph; its weights are balanced here.
        seen: bags and counts.
        explained: the share `R2` of the variance of labels that follows the graph.
        folds: the bags are dealt into so many; the bags of each are predicted from the others.
        seed: which bags are dealt together.
    """
    prior = walk_prior(graph)
    fields, bags = seen.counts.shape[1], len(seen.counts)
    parts, own = _folds(seen, folds, seed)
    each = Observed(seen.bag_of, np.tile(seen.counts, (1, len(parts))), seen.count_sd)
    found = solve_fields(prior, each, explained, np.repeat(np.stack(parts, axis=1), fields, axis=1))
    blocks = found.reshape(len(found), len(parts), fields)
    unseen = probabilities_of(blocks[np.arange(len(found)), own], seen.rates)
    constant = np.broadcast_to(seen.rates, unseen.shape)
    gains = seen.likelihood(unseen) - seen.likelihood(np.asarray(constant))
    error = float(np.std(gains) * np.sqrt(bags))
    return RelaxedField(probabilities_of(blocks[:, 0], seen.rates), float(gains.sum()), error)


@dataclass(frozen=True)
class FieldOnTrend:
    """A trend of the rows' probabilities, the field of the residual counts, and the gain on held-out bags.

    Attributes:
        trend: (n, fields) probabilities under the trend alone.
        values: (n, fields) probabilities under trend and field; like the trend they may be outside of [0, 1].
        gain: nats by which trend and field from other bags predict counts better than the trend from other bags alone,
            with Gaussian counts of the variance `p(1-p) B_b + sd^2`.
        error: the standard error of the gain, from how much it differs between bags.
    """

    trend: Floats
    values: Floats
    gain: float
    error: float


def field_on_trend(
    graph: SimilarityGraph,
    seen: Observed,
    trend: Callable[[NDArray[np.bool_]], Floats],
    *,
    explained: float = EXPLAINED,
    folds: int = FOLDS,
    seed: int = 0,
) -> FieldOnTrend:
    """The field of the differences between the counts and those that a trend expects.

    Args:
        graph: the similarity graph; its weights are balanced here.
        seen: bags and counts.
        trend: gives the probabilities (n, fields) of all rows as learned from the marked bags (bags,); they may be
            outside of [0, 1].
        explained: the share `R2` of the variance of labels that follows the graph.
        folds: number of folds of bags; trend and field of the other folds predict the counts of each.
        seed: seed of the folds.
    """
    fields, bags = seen.counts.shape[1], len(seen.counts)
    parts, own = _folds(seen, folds, seed)
    base = np.concatenate([trend(part) for part in parts], axis=1)
    each = Observed(seen.bag_of, np.tile(seen.counts, (1, len(parts))), seen.count_sd)
    kept = np.repeat(np.stack(parts, axis=1), fields, axis=1)
    whole = base + solve_fields(walk_prior(graph), each, explained, kept, trend=base)

    def missed(values: Floats) -> Floats:
        unseen = values.reshape(len(values), len(parts), fields)[np.arange(len(values)), own]
        return np.asarray(seen.counts - seen.sums @ unseen)

    variance = seen.rates * (1.0 - seen.rates) * seen.sizes[:, None] + seen.count_sd**2
    gains = np.sum((missed(base) ** 2 - missed(whole) ** 2) / (2.0 * np.maximum(variance, 1e-12)), axis=1)
    return FieldOnTrend(base[:, :fields], whole[:, :fields], float(gains.sum()), float(np.std(gains) * np.sqrt(bags)))


def _folds(seen: Observed, folds: int, seed: int) -> tuple[list[NDArray[np.bool_]], Ints]:
    """The bags used by each solve (all of them, then all but each fold), and the solve that each row is unseen in."""
    bags = len(seen.counts)
    fold = np.random.default_rng(seed).permutation(bags) % max(2, min(folds, bags))
    parts = [np.ones(bags, dtype=bool), *(fold != part for part in range(fold.max(initial=0) + 1))]
    return parts, np.append(fold, 0)[seen.bag_of] + 1
