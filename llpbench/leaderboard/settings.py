"""Settings of a leaderboard (dataset, noise, bag size) and the seeds that a method is expected to have there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from llpbench.contracts.cell import Cell
from llpbench.contracts.result import CellResult


class Setting(NamedTuple):
    """Where methods meet: a dataset's label, the noise on counts and the bag size."""

    dataset: str
    noise: str
    delta: float
    mechanism: str
    bag_size: int

    def holds(self, result: CellResult) -> bool:
        """Whether a result is of this setting."""
        return setting_of(result) == self


def setting_of(result: CellResult) -> Setting:
    """The setting of a result."""
    cell = result.cell
    return Setting(result.dataset_label, cell.noise, cell.delta, cell.mechanism, cell.bag_size)


def expected_seeds(results: Iterable[CellResult]) -> dict[Setting, set[int]]:
    """For each setting, the seeds that at least half of its methods have.

    Whoever publishes more seeds than others does not make theirs incomplete.
    """
    methods: dict[Setting, set[tuple[str, str]]] = {}
    seeds: dict[Setting, Counter[int]] = {}
    for r in results:
        if not r.oracle:
            setting = setting_of(r)
            methods.setdefault(setting, set()).add((r.label, r.cell.backend))
            seeds.setdefault(setting, Counter())[r.cell.seed] += 1
    return {s: {seed for seed, n in seeds[s].items() if 2 * n >= len(methods[s])} for s in seeds}


def shown_results(results: Iterable[CellResult]) -> list[CellResult]:
    """Results with labels under which no two different cells share a place, in the order of their ids.

    A label may have stood for other settings in the past (for a method that is no longer installed, nobody can say
    which). Where one setting holds a method and seed twice, the newest settings keep the label and older ones carry
    their date.
    """
    found = [msgspec.structs.replace(r) for r in sorted(results, key=lambda r: r.id)]
    places: dict[tuple[Setting, str, str], dict[str, list[CellResult]]] = {}
    for r in found:
        kind = repr((sorted(r.cell.params.items()), r.cell.preset, r.cell.dataset_options, r.cell.scheme_options))
        places.setdefault((setting_of(r), r.label, r.cell.backend), {}).setdefault(kind, []).append(r)
    for kinds in places.values():
        newest_first = sorted(kinds.values(), key=lambda rs: max((r.started, r.id) for r in rs), reverse=True)
        for older in newest_first[1:]:
            day = max(r.started for r in older)[:10]
            for r in older:
                r.label = f"{r.label} (settings of {day})"
    return found


def variant(cell: Cell, setting: Setting, seed: int) -> Cell:
    """The same method and data in another setting."""
    return msgspec.structs.replace(
        cell,
        noise=setting.noise,
        delta=setting.delta,
        mechanism=setting.mechanism,
        bag_size=setting.bag_size,
        seed=seed,
    )
