"""On which seeds methods are compared: one rule for every mark, rank, front and claim.

A mean over ten seeds and a mean over three are not comparable: some splits are easy. So:

1. The *usual* seeds of a column are those that more than half of its methods have a number for. Variants of a method
   (other parameters, another backend) share its one vote: many of them do not decide for everyone.
2. A method is *compared* when it has all usual seeds. Others are shown, without a mark, a rank or a claim.
3. Compared methods are compared by their means over the usual seeds alone, whatever else they have.

4. Parameters that a search chose by the values of one rule are compared under that rule alone: under another one they
   would have seen what their neighbours did not (labels of held-back rows, say).

Seeds that a method has beyond the usual ones change nothing, for it or for others; leaving out an unlucky usual seed
takes it out of the comparison. Ranks over several bag sizes follow the same rule, with (noise, bag size, seed) in the
place of a seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from llpbench.contracts.cell import SEARCHED

K = TypeVar("K", bound=Hashable)
_MANY = 6


@dataclass(frozen=True)
class Shared(Generic[K]):
    """The usual seeds (or cells), and the methods that have all of them, in the order given."""

    keys: frozenset[K]
    methods: tuple[str, ...]


def may_compare(origin: str, rule: str) -> bool:
    """Whether parameters of an origin (``tuned-instances``, ``paper``, or none) are compared under a rule: point 4."""
    return not origin.startswith(SEARCHED) or origin == SEARCHED + rule


def shared_keys(keys_of: Mapping[str, Collection[K]], variant_of: Mapping[str, str] | None = None) -> Shared[K]:
    """What methods are compared on (see the module); methods without any number are not counted.

    Args:
        keys_of: the seeds (or cells) of each method as it is shown.
        variant_of: the registered name of each; those of one name share a vote. Every one has its own when not given.
    """
    there = {method: set(keys) for method, keys in keys_of.items() if keys}
    base = {method: (variant_of or {}).get(method, method) for method in there}
    family = Counter(base.values())
    votes: dict[K, Fraction] = {}
    for method, keys in there.items():
        for key in keys:
            votes[key] = votes.get(key, Fraction(0)) + Fraction(1, family[base[method]])
    usual = frozenset(key for key, n in votes.items() if 2 * n > len(family))
    return Shared(usual, tuple(m for m, keys in there.items() if usual and usual <= keys))


def shared_means(
    values_of: Mapping[str, Mapping[K, float]], variant_of: Mapping[str, str] | None = None
) -> dict[str, float]:
    """The means that are compared: of each compared method, over the usual seeds."""
    shared = shared_keys({method: list(values) for method, values in values_of.items()}, variant_of)
    return {m: math.fsum(values_of[m][key] for key in shared.keys) / len(shared.keys) for m in shared.methods}


def usual_number(numbers: Iterable[int]) -> int:
    """The number of seeds that most means of a column rest on, the smaller one when two are as frequent; 0 of none."""
    counts = Counter(n for n in numbers if n)
    return min(counts, key=lambda n: (-counts[n], n), default=0)


def seeds_note(seeds: Collection[int], usual: int) -> str:
    """What must be said beside a mean: how many seeds it rests on where that is not usual, and which where picked.

    Seeds are picked when they are not the first ones: ``seeds 3, 11, 27 of 28``, ``seeds 100-107``.
    """
    there = sorted(seeds)
    if not there:
        return ""
    if there == list(range(len(there))):
        return "" if len(there) == usual else f"{len(there)} seed{'' if len(there) == 1 else 's'}"
    return name_seeds(there)


def name_seeds(seeds: Collection[int]) -> str:
    """Seeds by name: ``seeds 0-2``, ``seeds 100-107``; of others the end too: ``seeds 3, 11, 27 of 28``."""
    there = sorted(seeds)
    if len(there) > 2 and there == list(range(there[0], there[-1] + 1)):
        return f"seeds {there[0]}-{there[-1]}"
    shown = ", ".join(map(str, there[:_MANY])) + (f" and {len(there) - _MANY} more" if len(there) > _MANY else "")
    end = "" if there == list(range(len(there))) else f" of {there[-1] + 1}"
    return f"seed{'' if len(there) == 1 else 's'} {shown}{end}"
