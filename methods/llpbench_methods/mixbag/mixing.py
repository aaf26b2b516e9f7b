"""Mixed bags: plans whose bags are, by chance, made of rows of two bags, with their targets and tolerances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llpbench import FloatArray, IntArray
from llpbench_methods.nets.batches import Plan


@dataclass(frozen=True)
class MixedBags:
    """Batches of one epoch, mixed, and what its bags are to have; bags are numbered in the order of the batches.

    Attributes:
        plan_list: the batches.
        proportions: (bags, 1) or (bags, C) targets.
        tolerances: the same shape; 0 for a bag that is not mixed.
    """

    plan_list: list[Plan]
    proportions: FloatArray
    tolerances: FloatArray

    def plans(self, rng: np.random.Generator) -> list[Plan]:  # noqa: ARG002
        """The batches, drawn already."""
        return self.plan_list


def mixed_targets(
    proportions: FloatArray, partners: FloatArray, own: IntArray, theirs: IntArray, width: float
) -> tuple[FloatArray, FloatArray]:
    """Target and tolerance of bags with ``own`` rows of one bag and ``theirs`` of another, drawn at random.

    With the row shares ``a = n_1/(n_1 + n_2)`` and ``b = 1 − a``: the target is ``a α_1 + b α_2`` and the tolerance
    ``t [a sqrt(α_1 (1 − α_1)/n_1) + b sqrt(α_2 (1 − α_2)/n_2)]``.

    Args:
        proportions: (bags, k) α of the first bags, in [0, 1].
        partners: (bags, k) α of the second ones.
        own: (bags,) n_1.
        theirs: (bags,) n_2; one of the two may be 0.
        width: t.
    """
    n1, n2 = own[:, None], theirs[:, None]
    a = n1 / (n1 + n2)
    first, second = (np.sqrt(p * (1.0 - p) / np.maximum(n, 1)) for p, n in ((proportions, n1), (partners, n2)))
    return a * proportions + (1.0 - a) * partners, width * (a * first + (1.0 - a) * second)


def mix(
    plans: Sequence[Plan],
    offsets: IntArray,
    proportions: FloatArray,
    rng: np.random.Generator,
    *,
    share: float,
    width: float,
) -> MixedBags:
    """Replace rows of some bags of an epoch by rows of other bags.

    A mixed bag keeps ``n_1 = 1 … B_1 − 1`` of its rows, each number as likely, and gets ``n_2 = B_1 − n_1`` of
    another bag's (all of them, where it has no more), drawn without replacement. So it has no more rows than before,
    and plans keep their shapes. Bags of one row stay as they are.

    Args:
        plans: batches of whole bags.
        offsets: (bags + 1,) where bags begin and end in the rows.
        proportions: (bags, 1) or (bags, C), in [0, 1].
        rng: draws everything.
        share: chance of a bag to be mixed.
        width: standard errors of the tolerance.
    """
    sizes, n_bags = np.diff(offsets), len(offsets) - 1
    found, targets, tolerances, start = [], [], [], 0
    for plan in plans:
        used = plan.bags >= 0
        used[plan.n_batches :] = False
        bags = plan.bags[used]
        whole = rng.random(len(bags)) >= share
        partner = (bags + rng.integers(1, max(n_bags, 2), len(bags))) % n_bags
        own = np.minimum(1 + np.floor(rng.random(len(bags)) * (sizes[bags] - 1)).astype(np.int64), sizes[bags])
        own = np.where(whole | (sizes[bags] == 1), sizes[bags], own)
        theirs = np.minimum(sizes[bags] - own, sizes[partner])
        target, tolerance = mixed_targets(proportions[bags], proportions[partner], own, theirs, width)
        mixed = (theirs > 0)[:, None]
        targets.append(np.where(mixed, target, proportions[bags]))
        tolerances.append(np.where(mixed, tolerance, 0.0))

        number = np.full(plan.bags.shape, -1, plan.bags.dtype)
        number[used] = start + np.arange(len(bags))
        start += len(bags)
        found.append(_with_partners(plan, number, offsets, (bags, partner, own, theirs), rng))
    return MixedBags(found, np.concatenate(targets), np.concatenate(tolerances))


def _with_partners(
    plan: Plan,
    number: IntArray,
    offsets: IntArray,
    drawn: tuple[IntArray, IntArray, IntArray, IntArray],
    rng: np.random.Generator,
) -> Plan:
    """The plan with its bags numbered anew and their last rows replaced by rows of their partners."""
    bags, partner, own, theirs = drawn
    width = plan.bags.shape[1]
    batch, slot = np.nonzero((plan.bag_of < width) & (np.arange(len(plan.rows)) < plan.n_batches)[:, None])
    which = number[batch, plan.bag_of[batch, slot]] - number.max(initial=-1) + len(bags) - 1
    place = plan.rows[batch, slot] - offsets[bags[which]]
    mine, others = (_shuffled_inside(offsets, rng) for _ in range(2))
    beyond = place - own[which]
    from_partner = np.minimum(offsets[partner[which]] + np.maximum(beyond, 0), offsets[partner[which] + 1] - 1)
    rows, bag_of = plan.rows.copy(), plan.bag_of.copy()
    rows[batch, slot] = np.where(beyond < 0, mine[offsets[bags[which]] + place], others[from_partner])
    bag_of[batch, slot] = np.where(beyond < theirs[which], bag_of[batch, slot], width)
    return Plan(rows, bag_of, number, plan.n_batches)


def _shuffled_inside(offsets: IntArray, rng: np.random.Generator) -> IntArray:
    """Row numbers, in a random order inside each bag."""
    bag_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.lexsort((rng.random(len(bag_of)), bag_of))
