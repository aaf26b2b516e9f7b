"""Memory layout of rows, bags and messages for the pairwise kernels.

Nodes are numbered anew: first blocks of 16 bags of nearly equal size (member by member, lane by lane, padded to the
largest), then the other bags one after the other, then rows that no clique holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench_methods.inference.compiled.cliques_in_odds import LANES
from llpbench_methods.inference.messages import sum_at
from llpbench_methods.inference.model import GibbsModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_LEAST_LANES = 8
_PRODUCT = 60.0


@dataclass(frozen=True)
class Cliques:
    """One kind of clique storage, blocks of lanes or single bags.

    Attributes:
        sizes: members of each block or bag.
        node_start: its first node, and the end.
        pair_start: its first message, and the end.
        stretch: how many messages may be multiplied in float32.
    """

    sizes: Ints
    node_start: Ints
    pair_start: Ints
    stretch: Ints


@dataclass(frozen=True)
class PairLayout:
    """The whole arrangement.

    Attributes:
        place: node of each row.
        nodes: number of nodes, padding included.
        real: which nodes are rows.
        coupling: `J = -2 lambda_b` of each node's bag, 0 without.
        lanes: blocks of small bags.
        rows: the other bags.
        left: node of each edge's first row.
        right: node of its second.
        weights: half of each edge's merged coupling.
        fields: fields that centred edge messages leave, 0 for padding.
        edge_reach: largest sum of `|w|` at a node.
        reach: largest `|h| + sum |w| + (B - 1) |J|` at a node.
        held_low: for edges inside a clique, the node of the lower member,
        held_high: of the higher member,
        held_at: and the place of their message; even numbers `2 p` in the lanes' store, `2 p + 1` in the rows'.
    """

    place: Ints
    nodes: int
    real: NDArray[np.bool_]
    coupling: Floats
    lanes: Cliques
    rows: Cliques
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    weights: Floats
    fields: Floats
    edge_reach: float
    reach: float
    held_low: Ints
    held_high: Ints
    held_at: Ints


def arrange(model: GibbsModel, lane_limit: int) -> PairLayout:
    """Lay a model out; bags of up to `lane_limit` rows go side by side."""
    bags = model.bags
    sizes = bags.sizes
    bound = np.flatnonzero((sizes >= 2) & (model.lambda_b > 0))
    bound = bound[np.argsort(-sizes[bound], kind="stable")]
    small = bound[sizes[bound] <= lane_limit]
    spare = len(small) % LANES
    in_lanes = small[: len(small) - spare] if spare < _LEAST_LANES else small
    alone = np.concatenate([bound[sizes[bound] > lane_limit], small[len(in_lanes) :]])

    lanes = _block_cliques(in_lanes, sizes, model.lambda_b)
    rows = _bag_cliques(alone, sizes, model.lambda_b, int(lanes.node_start[-1]))
    first = np.full(len(sizes), -1)
    step = np.ones(len(sizes), dtype=np.int64)
    position = np.arange(len(in_lanes))
    first[in_lanes] = lanes.node_start[position // LANES] + position % LANES
    step[in_lanes] = LANES
    first[alone] = rows.node_start[:-1]
    held = np.append(first >= 0, False)[model.bag_of]
    member = np.empty(model.n, dtype=np.int64)
    member[bags.members] = np.arange(len(bags.members)) - np.repeat(bags.offsets[:-1], sizes)
    place = np.empty(model.n, dtype=np.int64)
    place[held] = first[model.bag_of[held]] + member[held] * step[model.bag_of[held]]
    loose = np.flatnonzero(~held)
    place[loose] = rows.node_start[-1] + np.arange(len(loose))
    nodes = int(rows.node_start[-1]) + len(loose)

    weights = 0.5 * model.merged_couplings()
    left, right = place[model.edges[:, 0]], place[model.edges[:, 1]]
    size_of_row = np.append(sizes, 1)[model.bag_of]
    coupling_of_row = np.append(-2.0 * model.lambda_b, 0.0)[model.bag_of]
    coupling = np.zeros(nodes)
    coupling[place] = coupling_of_row
    pull = _at_nodes(left, right, weights, nodes)
    strength = _at_nodes(left, right, np.abs(weights), nodes)
    fields = np.zeros(nodes)
    fields[place] = model.clique_fields()
    fields += pull
    real = np.zeros(nodes, dtype=bool)
    real[place] = True
    reach = np.abs(fields[place]) + strength[place] - coupling_of_row * (size_of_row - 1)
    low, high, at = _held_pairs(model, held, member, first, in_lanes, alone, lanes, rows)
    return PairLayout(
        place=place,
        nodes=nodes,
        real=real,
        coupling=coupling,
        lanes=lanes,
        rows=rows,
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        weights=weights,
        fields=fields,
        edge_reach=float(strength.max(initial=0.0)),
        reach=float(reach.max(initial=0.0)),
        held_low=place[low],
        held_high=place[high],
        held_at=at,
    )


def _at_nodes(left: Ints, right: Ints, values: Floats, nodes: int) -> Floats:
    return sum_at(left, values, nodes) + sum_at(right, values, nodes)


def _starts(lengths: Ints, begin: int = 0) -> Ints:
    return np.concatenate([[begin], begin + np.cumsum(lengths)]).astype(np.int64)


def _stretch(strongest: Floats) -> Ints:
    return np.maximum(1, np.minimum(_PRODUCT / np.maximum(strongest, 1e-3), 1 << 20)).astype(np.int64)


def _block_cliques(bags: Ints, sizes: Ints, lambda_b: Floats) -> Cliques:
    size = sizes[bags[::LANES]]
    strongest = np.zeros(len(size) * LANES)
    strongest[: len(bags)] = 2.0 * lambda_b[bags]
    strongest = strongest.reshape(-1, LANES).max(axis=1, initial=0.0)
    return Cliques(size, _starts(size * LANES), _starts(size * (size - 1) // 2 * LANES), _stretch(strongest))


def _bag_cliques(bags: Ints, sizes: Ints, lambda_b: Floats, begin: int) -> Cliques:
    size = sizes[bags]
    return Cliques(size, _starts(size, begin), _starts(size * (size - 1) // 2), _stretch(2.0 * lambda_b[bags]))


def _held_pairs(
    model: GibbsModel,
    held: NDArray[np.bool_],
    member: Ints,
    first: Ints,
    in_lanes: Ints,
    alone: Ints,
    lanes: Cliques,
    rows: Cliques,
) -> tuple[Ints, Ints, Ints]:
    """Edges whose pair also lies in a clique: their rows in member order, and where the clique keeps the message."""
    inside = np.flatnonzero(model.same_bag & held[model.edges[:, 0]])
    ends = model.edges[inside]
    swapped = member[ends[:, 0]] > member[ends[:, 1]]
    low = np.where(swapped, ends[:, 1], ends[:, 0])
    high = np.where(swapped, ends[:, 0], ends[:, 1])
    bag = model.bag_of[low]
    a, b = member[low], member[high]
    rank = np.zeros(len(first), dtype=np.int64)
    rank[in_lanes] = np.arange(len(in_lanes))
    rank[alone] = np.arange(len(alone))
    side_by_side = np.zeros(len(first), dtype=bool)
    side_by_side[in_lanes] = True
    at = np.empty(len(inside), dtype=np.int64)
    for chosen, cliques, width in ((side_by_side[bag], lanes, LANES), (~side_by_side[bag], rows, 1)):
        order = rank[bag[chosen]]
        group, lane = order // width, order % width
        i, j, size = a[chosen], b[chosen], cliques.sizes[group]
        pair = i * size - i * (i + 1) // 2 + (j - i - 1)
        at[chosen] = 2 * (cliques.pair_start[group] + pair * width + lane) + (width == 1)
    return low, high, at
