"""The seeds on which methods are compared: one rule for every mark, rank and claim.

A mean over ten seeds and a mean over three are not comparable, because some splits are easier. Therefore:

1. The *usual* seeds of a column are those that more than half of its methods have a number for. Variants of a method
   (other parameters, another backend) share one vote. On a leaderboard only the methods of llpbench vote, if there are
   any.
2. A method is *compared* if it has all usual seeds. Other methods are shown without a mark, a rank or a claim.
3. Methods are compared by their means over the usual seeds only, even if they have more seeds.
4. Controls are reference values: they have no vote, mark, rank or claim. Their means over the usual seeds are shown.
5. Parameters that a search chose by the values of one rule are compared under that rule only. Under another rule they
   could have an advantage (labels of held-out rows, say).

Ranks over several bag sizes follow the same rule, with (noise, bag size, seed) in place of a seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
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
    """Which methods are controls, and which are guests (of another package, without a vote)."""

    controls: frozenset[str] = frozenset()
    guests: frozenset[str] = frozenset()

    def voters(self, methods: Iterable[str]) -> frozenset[str]:
        """The methods that decide which seeds are usual; guests only if there are no others."""
        rivals = frozenset(methods) - self.controls
        return rivals - self.guests or rivals


RIVALS = Roles()
"""No controls and no guests."""


def may_compare(origin: str, rule: str) -> bool:
    """Whether parameters of an origin (``tuned-instances``, ``paper``, or none) are compared under a rule (point 5)."""
    return not origin.startswith(SEARCHED) or origin == SEARCHED + rule


def shared_keys(
    keys_of: Mapping[str, Collection[K]],
    variant_of: Mapping[str, str] | None = None,
    roles: Roles = RIVALS,
) -> Shared[K]:
    """The seeds (or cells) on which methods are compared; methods without any number do not count.

    Args:
        keys_of: the seeds (or cells) of each method by display name.
        variant_of: the registered name of each; those of one name share a vote. By default each has its own.
        roles: the roles of methods.
    """
    there = {method: set(keys) for method, keys in keys_of.items() if keys}
    base = {method: (variant_of or {}).get(method, method) for method in there}
    voters = roles.voters(there)
    family = Counter(base[method] for method in voters)
    vote = math.lcm(*family.values())  # of a family, so that shares of it are whole numbers
    votes: Counter[K] = Counter()
    for method in voters:
        share = vote // family[base[method]]
        for key in there[method]:
            votes[key] += share
    usual = frozenset(key for key, n in votes.items() if 2 * n > vote * len(family))
    return Shared(usual, tuple(m for m, keys in there.items() if usual and usual <= keys))


def shared_means(
    values_of: Mapping[str, Mapping[K, float]],
    variant_of: Mapping[str, str] | None = None,
    roles: Roles = RIVALS,
) -> dict[str, float]:
    """The means over the usual seeds of all methods and controls that have them."""
    shared = shared_keys(values_of, variant_of, roles)
    return {m: math.fsum(values_of[m][key] for key in shared.keys) / len(shared.keys) for m in shared.methods}


def unbeaten_control(means: Mapping[str, float], controls: Collection[str], higher: bool) -> str | None:
    """The best control of a column if no method is better than it, by the means of ``shared_means``; else None."""
    sign = 1.0 if higher else -1.0
    rivals = [sign * mean for method, mean in means.items() if method not in controls]
    found = {method: sign * mean for method, mean in means.items() if method in controls}
    best = max(sorted(found), key=lambda method: found[method], default=None)
    return best if best is not None and rivals and found[best] >= max(rivals) else None


def usual_number(numbers: Iterable[int]) -> int:
    """The most frequent number of seeds in a column (the smaller one of a tie); 0 if there are none."""
    counts = Counter(n for n in numbers if n)
    return min(counts, key=lambda n: (-counts[n], n), default=0)


def seeds_note(seeds: Collection[int], usual: int) -> str:
    """The note beside a mean: its number of seeds if that is not usual, or its seeds if they are not the first ones.

    For example ``5 seeds``, ``seeds 3, 11, 27 of 28``, ``seeds 100-107``.
    """
    there = sorted(seeds)
    if not there:
        return ""
    if there == list(range(len(there))):
        return "" if len(there) == usual else f"{len(there)} seed{'' if len(there) == 1 else 's'}"
    return name_seeds(there)


def name_seeds(seeds: Collection[int]) -> str:
    """Seeds in words: ``seeds 0-2``, ``seeds 100-107``, ``seeds 3, 11, 27 of 28``."""
    there = sorted(set(seeds))
    if len(there) > 2 and there[-1] - there[0] + 1 == len(there):
        return f"seeds {there[0]}-{there[-1]}"
    shown = ", ".join(map(str, there[:_MANY])) + (f" and {len(there) - _MANY} more" if len(there) > _MANY else "")
    end = "" if there == list(range(len(there))) else f" of {there[-1] + 1}"
    return f"seed{'' if len(there) == 1 else 's'} {shown}{end}"
