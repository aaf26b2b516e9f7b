"""On which seeds methods are compared: one rule for every mark, rank, front and claim.

A mean over ten seeds and a mean over three are not comparable: some splits are easy. So:

1. The *usual* seeds of a column are those that more than half of its methods have a number for. Variants of a method
   (other parameters, another backend) share its one vote: many of them do not decide for everyone. On a leaderboard
   the methods that come with llpbench vote, where there are such: who hands in many methods decides nothing either.
2. A method is *compared* when it has all usual seeds. Others are shown, without a mark, a rank or a claim.
3. Compared methods are compared by their means over the usual seeds alone, whatever else they have.

4. Controls are yardsticks, not rivals: they have no vote, no mark, no rank and no claim. Their means over the usual
   seeds are stated, so that a method can be held to them.

5. Parameters that a search chose by the values of one rule are compared under that rule alone: under another one they
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


@dataclass(frozen=True)
class Roles:
    """Who among methods is no rival but a control, and who is a guest: of another package, without a vote."""

    controls: frozenset[str] = frozenset()
    guests: frozenset[str] = frozenset()

    def voters(self, methods: Iterable[str]) -> frozenset[str]:
        """Those who decide which seeds are usual; guests only among themselves."""
        rivals = frozenset(methods) - self.controls
        return rivals - self.guests or rivals


RIVALS = Roles()
"""All are rivals, and all have a vote."""


def may_compare(origin: str, rule: str) -> bool:
    """Whether parameters of an origin (``tuned-instances``, ``paper``, or none) are compared under a rule: point 5."""
    return not origin.startswith(SEARCHED) or origin == SEARCHED + rule


def shared_keys(
    keys_of: Mapping[str, Collection[K]],
    variant_of: Mapping[str, str] | None = None,
    roles: Roles = RIVALS,
) -> Shared[K]:
    """What methods are compared on (see the module); methods without any number are not counted.

    Args:
        keys_of: the seeds (or cells) of each method as it is shown.
        variant_of: the registered name of each; those of one name share a vote. Every one has its own when not given.
        roles: who of them has a vote.
    """
    there = {method: set(keys) for method, keys in keys_of.items() if keys}
    base = {method: (variant_of or {}).get(method, method) for method in there}
    voters = roles.voters(there)
    family = Counter(base[method] for method in voters)
    votes: dict[K, Fraction] = {}
    for method in voters:
        for key in there[method]:
            votes[key] = votes.get(key, Fraction(0)) + Fraction(1, family[base[method]])
    usual = frozenset(key for key, n in votes.items() if 2 * n > len(family))
    return Shared(usual, tuple(m for m, keys in there.items() if usual and usual <= keys))


def shared_means(
    values_of: Mapping[str, Mapping[K, float]],
    variant_of: Mapping[str, str] | None = None,
    roles: Roles = RIVALS,
) -> dict[str, float]:
    """The means that are compared, and those of controls: of each method that has the usual seeds, over these."""
    shared = shared_keys({method: list(values) for method, values in values_of.items()}, variant_of, roles)
    return {m: math.fsum(values_of[m][key] for key in shared.keys) / len(shared.keys) for m in shared.methods}


def unbeaten_control(means: Mapping[str, float], controls: Collection[str], higher: bool) -> str | None:
    """The best control of a column where no method is better than it, by the means of ``shared_means``; else None."""
    sign = 1.0 if higher else -1.0
    rivals = [sign * mean for method, mean in means.items() if method not in controls]
    found = {method: sign * mean for method, mean in means.items() if method in controls}
    best = max(sorted(found), key=lambda method: found[method], default=None)
    return best if best is not None and rivals and found[best] >= max(rivals) else None


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
    there = sorted(set(seeds))
    if len(there) > 2 and there[-1] - there[0] + 1 == len(there):
        return f"seeds {there[0]}-{there[-1]}"
    shown = ", ".join(map(str, there[:_MANY])) + (f" and {len(there) - _MANY} more" if len(there) > _MANY else "")
    end = "" if there == list(range(len(there))) else f" of {there[-1] + 1}"
    return f"seed{'' if len(there) == 1 else 's'} {shown}{end}"
