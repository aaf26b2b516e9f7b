"""The Gibbs law of the labels given similarity edges and bag counts, for two classes and for many.

Binary, over unordered pairs:

    log P(y) = sum_i h_i y_i + sum_{i<j} J_ij y_i y_j - sum_b lambda_b (sum_{i in S_b} y_i - c_b)^2 + const

where a similarity weight `w = lambda_s m k` on a pair (the term `-w (y_i - y_j)^2`) adds `-w` to the fields of *both*
ends and `2 w` to their coupling. The bag term stays apart: the counting engine needs it whole, the pairwise engines
expand it with `clique_fields` and `-2 lambda_b` per pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llpbench_methods.inference.graph import SimilarityGraph
from llpbench_methods.inference.messages import sum_at

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Potentials = Literal["exact", "printed"]


@dataclass(frozen=True)
class BagIndex:
    """Rows grouped by bag: the members of bag `b` are `members[offsets[b]:offsets[b + 1]]`, in row order."""

    offsets: Ints
    members: Ints

    @property
    def sizes(self) -> Ints:
        """Members per bag."""
        return np.diff(self.offsets)


@dataclass(frozen=True)
class GibbsModel:
    """A binary model. Build it with `gibbs_model`, or directly from any fields and couplings.

    Attributes:
        fields: `(n,)` node terms without the bag term.
        edges: `(E, 2)`, `i < j`, each pair at most once.
        couplings: `(E,)` pair terms without the bag term.
        bag_of: `(n,)` bag of each row, `-1` for a row in no bag.
        counts: `(n_bags,)` known counts of label 1; noisy counts may be fractional or out of range.
        lambda_b: `(n_bags,)` weight of each bag; `inf` makes the count hard.
    """

    fields: Floats
    edges: Ints
    couplings: Floats
    bag_of: Ints
    counts: Floats
    lambda_b: Floats

    def __post_init__(self) -> None:
        if self.fields.ndim != 1 or self.bag_of.shape != self.fields.shape:
            raise ValueError("fields and bag_of must be vectors of the same length")
        _check_common(len(self.fields), self.edges, self.couplings, self.bag_of, self.lambda_b)
        if self.counts.shape != self.lambda_b.shape:
            raise ValueError("counts and lambda_b must hold one number per bag")
        _check_finite(fields=self.fields, couplings=self.couplings, counts=self.counts)
        _check_hard(self.counts[:, None], self.lambda_b, self.bags.sizes)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.fields)

    @cached_property
    def bags(self) -> BagIndex:
        """The rows of each bag."""
        return bag_index(self.bag_of, len(self.lambda_b))

    @cached_property
    def same_bag(self) -> NDArray[np.bool_]:
        """Mask of the edges between two rows of one bag."""
        left, right = self.bag_of[self.edges[:, 0]], self.bag_of[self.edges[:, 1]]
        return np.asarray((left == right) & (left >= 0))

    def clique_fields(self) -> Floats:
        """Fields with the bag term expanded: `h_i + lambda_b (2 c_b - 1)`."""
        if np.isinf(self.lambda_b).any():
            raise ValueError("hard counts (lambda_b = inf) have no pairwise form: use engine='count'")
        extra = np.append(self.lambda_b * (2.0 * self.counts - 1.0), 0.0)
        return np.asarray(self.fields + extra[self.bag_of])

    def merged_couplings(self) -> Floats:
        """Couplings of the edges, an edge inside a bag carrying the bag's `-2 lambda_b` too: one factor per pair."""
        extra = np.append(-2.0 * self.lambda_b, 0.0)
        bag = np.where(self.same_bag, self.bag_of[self.edges[:, 0]], -1)
        return np.asarray(self.couplings + extra[bag])


@dataclass(frozen=True)
class PottsModel:
    """A model of C-state labels, one counting factor per bag and class.

    `log P(x) = sum_i f_i(x_i) - 2 sum_ij w_ij 1[x_i != x_j] - sum_b lambda_b sum_c (n_bc - c_bc)^2`, with `n_bc` the
    number of members of bag `b` with label `c`.

    Attributes:
        fields: `(n, C)` node terms.
        edges: `(E, 2)`, `i < j`, each pair at most once.
        weights: `(E,)` similarity weights `w = lambda_s m k`.
        bag_of: `(n,)`, `-1` for a row in no bag.
        counts: `(n_bags, C)`.
        lambda_b: `(n_bags,)`.
        lambda_o: weight of "exactly one label" when the model is expanded into indicators (`one_hot`).
    """

    fields: Floats
    edges: Ints
    weights: Floats
    bag_of: Ints
    counts: Floats
    lambda_b: Floats
    lambda_o: float = 1.0

    def __post_init__(self) -> None:
        if self.fields.ndim != 2 or self.fields.shape[1] < 2:
            raise ValueError("fields must be (rows, classes) with at least two classes")
        _check_common(len(self.fields), self.edges, self.weights, self.bag_of, self.lambda_b)
        if self.counts.shape != (len(self.lambda_b), self.fields.shape[1]):
            raise ValueError("counts must be (bags, classes)")
        _check_finite(fields=self.fields, weights=self.weights, counts=self.counts)
        _check_hard(self.counts, self.lambda_b, self.bags.sizes)
        hard = np.isinf(self.lambda_b)
        if (self.counts.sum(axis=1)[hard] != self.bags.sizes[hard]).any():
            raise ValueError("hard counts of a bag must sum to its size")

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.fields)

    @property
    def n_classes(self) -> int:
        """Number of states C."""
        return int(self.fields.shape[1])

    @cached_property
    def bags(self) -> BagIndex:
        """The rows of each bag."""
        return bag_index(self.bag_of, len(self.lambda_b))


def gibbs_model(
    graph: SimilarityGraph | None,
    bag_of: ArrayLike,
    counts: ArrayLike,
    *,
    lambda_b: ArrayLike,
    lambda_s: float = 1.0,
    fields: ArrayLike | None = None,
    potentials: Potentials = "exact",
    edge_filter_max_count: float | None = None,
) -> GibbsModel:
    """Build the binary model of a similarity graph and bag counts.

    Args:
        graph: similarity pairs, or `None` for none.
        bag_of: bag of each row.
        counts: count of label 1 per bag.
        lambda_b: weight of the bag term, one number or one per bag.
        lambda_s: weight of the similarity term.
        fields: prior log-odds per row (0 by default).
        potentials: `exact` follows from the energy. `printed` takes the field of the published formula, whose
            similarity sum runs over a row's own choices only, with couplings counted as in the rule `sum`; it is not
            the stated law and is here for study.
        edge_filter_max_count: use only neighbour choices of rows whose bag count is at most this (off by default).
    """
    bags = np.asarray(bag_of, dtype=np.int64)
    count = np.asarray(counts, dtype=np.float64)
    per_bag = np.broadcast_to(np.asarray(lambda_b, dtype=np.float64), count.shape).copy()
    node = np.zeros(len(bags)) if fields is None else np.array(fields, dtype=np.float64)
    graph = _graph_for(graph, bags, count, edge_filter_max_count)
    left, right = graph.edges.T
    if potentials == "exact":
        weights = lambda_s * graph.weights
        node = node - sum_at(left, weights, graph.n) - sum_at(right, weights, graph.n)
    elif potentials == "printed":
        single = lambda_s * graph.similarity
        weights = single * (graph.forward.astype(np.float64) + graph.backward)
        node = node - sum_at(left, single * graph.forward, graph.n)
        node = node - sum_at(right, single * graph.backward, graph.n)
    else:
        raise ValueError(f"unknown potentials {potentials!r}: choose 'exact' or 'printed'")
    return GibbsModel(node, graph.edges, 2.0 * weights, bags, count, per_bag)


def potts_model(
    graph: SimilarityGraph | None,
    bag_of: ArrayLike,
    counts: ArrayLike,
    *,
    lambda_b: ArrayLike,
    lambda_s: float = 1.0,
    lambda_o: float = 1.0,
    fields: ArrayLike | None = None,
) -> PottsModel:
    """Build the multiclass model; `counts` is `(bags, classes)`, `fields` `(rows, classes)` log-potentials."""
    bags = np.asarray(bag_of, dtype=np.int64)
    count = np.asarray(counts, dtype=np.float64)
    per_bag = np.broadcast_to(np.asarray(lambda_b, dtype=np.float64), (len(count),)).copy()
    node = np.zeros((len(bags), count.shape[1])) if fields is None else np.array(fields, dtype=np.float64)
    graph = _graph_for(graph, bags, count, None)
    return PottsModel(node, graph.edges, lambda_s * graph.weights, bags, count, per_bag, lambda_o)


def one_hot(model: PottsModel) -> GibbsModel:
    """Expand C-state labels into indicators `y_i^c` (row `i * C + c`), one label per row held by `lambda_o` alone.

    The energy gains `lambda_o (sum_c y_i^c - 1)^2`: a field `+lambda_o` on every indicator and a coupling
    `-2 lambda_o` between the indicators of one row.
    """
    n, classes = model.fields.shape
    states = np.arange(classes)
    similar = (model.edges[:, :, None] * classes + states).transpose(0, 2, 1).reshape(-1, 2)
    weights = np.repeat(model.weights, classes)
    a, b = np.triu_indices(classes, 1)
    first = (np.arange(n) * classes)[:, None]
    exclusive = np.stack([(first + a).ravel(), (first + b).ravel()], axis=1)
    node = model.fields.ravel() + model.lambda_o
    node = node - sum_at(similar[:, 0], weights, n * classes) - sum_at(similar[:, 1], weights, n * classes)
    bag_of = np.where(model.bag_of[:, None] >= 0, model.bag_of[:, None] * classes + states, -1).ravel()
    edges, couplings = canonical_edges(
        np.concatenate([similar, exclusive]),
        np.concatenate([2.0 * weights, np.full(len(exclusive), -2.0 * model.lambda_o)]),
    )
    return GibbsModel(node, edges, couplings, bag_of, model.counts.ravel(), np.repeat(model.lambda_b, classes))


def lambda_of_noise(count_sd: ArrayLike) -> Floats:
    """The `lambda_b` of counts with Gaussian noise of known standard deviation: `1 / (2 sd^2)`, `inf` for none."""
    sd = np.asarray(count_sd, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / (2.0 * sd * sd))


def canonical_edges(edges: ArrayLike, couplings: ArrayLike) -> tuple[Ints, Floats]:
    """Sort pairs as `i < j` and add up the couplings of repeated pairs: one pair is one factor."""
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    values = np.asarray(couplings, dtype=np.float64)
    pairs = np.sort(pairs, axis=1)
    span = int(pairs.max(initial=0)) + 1
    key, place = np.unique(pairs[:, 0] * span + pairs[:, 1], return_inverse=True)
    merged = np.stack([key // span, key % span], axis=1)
    return merged.astype(np.int64), sum_at(place, values, len(key))


def bag_index(bag_of: Ints, n_bags: int) -> BagIndex:
    """Group rows by bag; rows in no bag (`-1`) are left out."""
    order = np.argsort(bag_of, kind="stable")
    sizes = np.bincount(bag_of[bag_of >= 0], minlength=n_bags)
    return BagIndex(np.concatenate([[0], np.cumsum(sizes)]), order[len(bag_of) - int(sizes.sum()) :])


def _graph_for(graph: SimilarityGraph | None, bags: Ints, counts: Floats, max_count: float | None) -> SimilarityGraph:
    if graph is None:
        none = np.zeros(0)
        return SimilarityGraph(len(bags), np.zeros((0, 2), dtype=np.int64), none, none.astype(bool), none.astype(bool))
    if graph.n != len(bags):
        raise ValueError(f"the graph has {graph.n} rows, bag_of {len(bags)}")
    if max_count is not None:
        return graph.from_rows(np.append(counts, np.inf)[bags] <= max_count)
    return graph


def _check_common(n: int, edges: Ints, strength: Floats, bag_of: Ints, lambda_b: Floats) -> None:
    if edges.ndim != 2 or edges.shape[1] != 2 or strength.shape != (len(edges),):
        raise ValueError("edges must be (E, 2) with one coupling each")
    if len(edges):
        if edges.min() < 0 or edges.max() >= n:
            raise ValueError("an edge refers to a row that does not exist")
        key = edges[:, 0] * n + edges[:, 1]
        if (edges[:, 0] >= edges[:, 1]).any() or ((np.diff(key) <= 0).any() and len(np.unique(key)) != len(key)):
            raise ValueError("edges must be pairs i < j, each at most once: see canonical_edges")
    if len(bag_of) and (bag_of.min() < -1 or bag_of.max() >= len(lambda_b)):
        raise ValueError("bag_of refers to a bag that does not exist")
    if np.isnan(lambda_b).any() or (lambda_b < 0).any():
        raise ValueError("lambda_b must not be negative")


def _check_finite(**arrays: Floats) -> None:
    for name, values in arrays.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite")


def _check_hard(counts: Floats, lambda_b: Floats, sizes: Ints) -> None:
    hard = np.isinf(lambda_b)
    if hard.any():
        c, size = counts[hard], sizes[hard][:, None]
        if (c != np.round(c)).any() or (c < 0).any() or (c > size).any():
            raise ValueError("hard counts (lambda_b = inf) must be whole numbers between 0 and the bag size")
