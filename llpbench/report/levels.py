"""Compare the noise levels of a method on the seeds that all levels have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from llpbench.results.table import Row, mean_sd

NO_SEED = "no shared seed"
"""The status of a method whose noise levels have no common seed."""


def common_seeds(levels: Iterable[Collection[int]]) -> frozenset[int]:
    """The seeds that a method has at every noise level where it has any."""
    there = [frozenset(seeds) for seeds in levels if seeds]
    return frozenset.intersection(*there) if there else frozenset()


def across_levels(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows by dataset, rule and bag size, if these have several noise levels. Bounds are omitted."""
    places: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if not row.oracle:
            places.setdefault((row.dataset, row.rule, row.bag_size), []).append(row)
    return [place for place in places.values() if len({row.noise for row in place}) > 1]


def on_common_seeds(rows: list[Row]) -> list[Row]:
    """Rows of several noise levels, each restricted to the common seeds of its method."""
    levels: dict[str, list[list[int]]] = {}
    for row in rows:
        levels.setdefault(row.method, []).append(row.value_seeds)
    common = {method: common_seeds(seeds) for method, seeds in levels.items()}
    return [_on_seeds(row, common[row.method]) for row in rows]


def _on_seeds(row: Row, seeds: Collection[int]) -> Row:
    """A row restricted to some of its seeds."""
    kept = {seed: value for seed, value in zip(row.value_seeds, row.values, strict=True) if seed in seeds}
    if len(kept) == len(row.value_seeds):
        return row
    mean, sd = mean_sd(list(kept.values()))
    return msgspec.structs.replace(
        row,
        mean=mean,
        sd=sd,
        seeds=len(kept),
        planned=len(kept),
        values=list(kept.values()),
        value_seeds=list(kept),
        status="ok" if kept else NO_SEED,
    )


def usual_seeds(rows: Iterable[Row]) -> tuple[int, ...]:
    """The most frequent set of seeds."""
    counts = Counter(tuple(sorted(row.value_seeds)) for row in rows if row.value_seeds)
    return counts.most_common(1)[0][0] if counts else ()
