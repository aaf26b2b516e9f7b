"""Fields and counts: posteriors of the rows of a bag and likelihood of its count.

Fields are (n, 1) log-odds for two classes, and (n, C) log-probabilities up to a constant for several. With several
classes a label is one C-state variable with a counting factor for each class; the likelihood of the counts is the
product of the classes' own (one against the rest), which needs no sum over joint counts.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, softmax

from llpbench import Bags
from llpbench_methods.inference import (
    LARGEST_FIELD,
    Decoded,
    OscillationWarning,
    SimilarityGraph,
    bag_posterior,
    decode,
    effect_log_likelihood,
    fitted_tau,
    gibbs_model,
    lambda_of_noise,
    marginals,
    potts_model,
)
from llpbench_methods.shared.counts import whole_counts

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CountedBags:
    """Bags without their features: sizes and counts.

    Attributes:
        offsets: (bags + 1,) row offsets.
        counts: (bags, 1) or (bags, C); whole numbers that a bag can hold when ``lambda_b`` is infinite.
        lambda_b: weight of the counting factors, ``1/(2 sd²)`` for counts with noise, infinite for exact ones.
        members: the row of each entry, if bags overlap; offsets are then those of entries.
        grouping_of: the grouping of each bag, if bags overlap.
    """

    offsets: Ints
    counts: Array
    lambda_b: float
    members: Ints | None = None
    grouping_of: Ints | None = None

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def sizes(self) -> Ints:
        """(bags,) rows of each bag."""
        return np.diff(self.offsets)

    @property
    def bag_of(self) -> Ints:
        """(n,) bag of each row."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def entries(self, values: Array) -> Array:
        """Values of rows, bag after bag."""
        return values if self.members is None else values[self.members]

    @property
    def shares(self) -> Array:
        """(1,) or (C,) shares of the classes by the counts, never 0 or 1: ``(Σ c_b + ½) / (N + 1)``."""
        rows = int(self.offsets[-1])
        share: Array = (np.clip(self.counts.sum(axis=0), 0.0, rows) + 0.5) / (rows + 1.0)
        return share if len(share) == 1 else share / share.sum()

    @classmethod
    def of(cls, bags: Bags) -> CountedBags:
        """The counts of bags; counts without noise are made whole numbers that the bag can hold."""
        counts = np.array(whole_counts(bags) if bags.count_sd == 0.0 else bags.counts, np.float64)
        members = None if bags.overlap is None else np.array(bags.members, np.int64)
        grouping_of = None if bags.overlap is None else np.array(bags.grouping_of, np.int64)
        offsets, lambda_b = np.array(bags.offsets, np.int64), float(lambda_of_noise(bags.count_sd))
        return cls(offsets, counts, lambda_b, members, grouping_of)

    def take(self, chosen: Ints) -> tuple[CountedBags, Ints]:
        """Some of the bags, and the numbers of their rows in order (of overlapping bags: ascending)."""
        sizes = self.sizes[chosen]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.offsets[chosen] - offsets[:-1], sizes) + np.arange(offsets[-1])
        if self.members is None or self.grouping_of is None:
            return CountedBags(offsets, self.counts[chosen], self.lambda_b), rows
        rows, members = np.unique(self.members[rows], return_inverse=True)
        own = (members.reshape(-1), self.grouping_of[chosen])
        return CountedBags(offsets, self.counts[chosen], self.lambda_b, *own), rows


def limit_fields(fields: Array) -> Array:
    """Fields within the largest that are used; several classes relative to their most probable one."""
    if fields.shape[1] == 1:
        return np.clip(fields, -LARGEST_FIELD, LARGEST_FIELD)
    return np.asarray(np.maximum(log_softmax(fields, axis=1), -LARGEST_FIELD))


def probabilities(fields: Array) -> Array:
    """``σ(θ)``, (n, 1), or the softmax over classes, (n, C)."""
    return np.asarray(expit(fields) if fields.shape[1] == 1 else softmax(fields, axis=1))


def posterior(fields: Array, bags: CountedBags, graph: SimilarityGraph | None = None, similarity: float = 0.0) -> Array:
    """Probability of each row's label given its field, its bag's count and, if asked, its neighbours.

    Without neighbours, overlap and further classes this is exact; otherwise belief propagation with counting factors.
    """
    if bags.members is not None:
        return overlapping_posterior(fields, bags, graph, similarity).probabilities
    theta = limit_fields(fields)
    coupled = graph if similarity > 0.0 else None
    if theta.shape[1] == 1 and coupled is None:
        return bag_posterior(theta[:, 0], bags.offsets, bags.counts[:, 0], bags.lambda_b)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OscillationWarning)
        if theta.shape[1] == 1:
            model = gibbs_model(
                coupled,
                bags.bag_of,
                bags.counts[:, 0],
                lambda_b=bags.lambda_b,
                lambda_s=similarity,
                fields=theta[:, 0],
            )
            return marginals(model, "count", rounds=20, tol=1e-2).beliefs[:, None]
        several = potts_model(
            coupled, bags.bag_of, bags.counts, lambda_b=bags.lambda_b, lambda_s=similarity, fields=theta
        )
        return marginals(several, "count", rounds=20, tol=1e-2).beliefs


def overlapping_posterior(
    fields: Array, bags: CountedBags, graph: SimilarityGraph | None = None, similarity: float = 0.0
) -> Decoded:
    """Posterior by belief propagation over the counts of all groupings; several classes each against the rest."""
    assert bags.members is not None
    assert bags.grouping_of is not None
    return decode(
        fields if fields.shape[1] == 1 else _against_the_rest(fields),
        bags.members,
        bags.offsets,
        bags.grouping_of,
        bags.counts,
        np.full(len(bags), bags.lambda_b),
        bags.shares,
        graph if similarity > 0.0 else None,
        similarity,
    )


def log_likelihood(fields: Array, bags: CountedBags, *, effect: bool = False) -> Array:
    """(bags,) log-probability of each bag's count; for several classes the sum over classes, each against the rest.

    With ``effect`` every bag has an effect of its own, ``u_b ~ N(0, τ²)`` added to all its fields, that is integrated
    out; ``τ`` is the one under which these counts are most likely.
    """
    theta = limit_fields(bags.entries(fields))
    if theta.shape[1] > 1:
        theta = _against_the_rest(theta)
    return np.asarray(np.sum([_one_class(theta[:, c], bags, c, effect) for c in range(theta.shape[1])], axis=0))


def _against_the_rest(fields: Array) -> Array:
    """(n, C) log-odds of each class against all others."""
    p = np.clip(probabilities(fields), 1e-12, 1.0 - 1e-12)
    return np.asarray(np.clip(np.log(p) - np.log1p(-p), -LARGEST_FIELD, LARGEST_FIELD))


def _one_class(theta: Array, bags: CountedBags, column: int, effect: bool) -> Array:
    given = np.ascontiguousarray(theta), bags.offsets, bags.counts[:, column], bags.lambda_b
    return effect_log_likelihood(*given, tau=fitted_tau(*given) if effect else 0.0)


def row_values(values: NDArray[Any]) -> NDArray[Any]:
    """(n,) for two classes, (n, C) for several: the form a method hands out."""
    return values[:, 0] if values.shape[1] == 1 else values
