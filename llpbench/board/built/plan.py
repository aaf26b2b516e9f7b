"""What a leaderboard is meant to hold: every method in every setting of its dataset, with the usual seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from llpbench.board.content.searches import is_tuned
from llpbench.contracts.cell import Cell
from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.results.shared import RIVALS, Roles, shared_keys
from llpbench.results.table import Group, Setting, group_cells, older_settings, setting_of


class BoardPlan(NamedTuple):
    """The cells of a board, and for those whose name stands for newer settings the day of theirs (by cell id)."""

    cells: list[Planned]
    older: dict[str, str]


def board_groups(results: Iterable[CellResult], roles: Roles = RIVALS) -> list[Group]:
    """Published results by method and setting, with what is missing; the same for any order of the results.

    ``roles`` are those of registered names.
    """
    results = list(results)
    plan = board_plan(results)
    return group_cells(plan.cells, results, plan.older, roles)


def board_plan(results: Iterable[CellResult]) -> BoardPlan:
    """What a table of these results is meant to hold: every method in every setting of its dataset."""
    results = sorted(
        results, key=lambda r: (r.dataset_name, r.oracle, r.method_name, r.cell.bag_size, r.cell.seed, r.id)
    )
    older = older_settings(results, {r.id: r for r in results})
    planned = {r.id: Planned.of(r) for r in results}
    methods: dict[tuple[str, str, str, str], list[CellResult]] = {}
    for r in results:
        if _is_expected(r):
            methods.setdefault((r.dataset_name, r.method_name, r.cell.backend, older.get(r.id, "")), []).append(r)
    expected = expected_seeds(results, older)
    for (dataset, _, _, day), found in methods.items():
        there = {(setting_of(r), r.cell.seed) for r in found}
        for setting, seeds in expected.items():
            lacking = [seed for seed in sorted(seeds) if (setting, seed) not in there]
            for seed in lacking if setting.dataset == dataset else ():
                cell = _moved(found[0].cell, setting, seed)
                planned.setdefault(cell.id, msgspec.structs.replace(Planned.of(found[0]), cell=cell))
                older.update({cell.id: day} if day else {})
    return BoardPlan(list(planned.values()), older)


def expected_seeds(results: Iterable[CellResult], older: Mapping[str, str] | None = None) -> dict[Setting, set[int]]:
    """For each setting, its usual seeds (``results.shared``): those that more than half of its methods have.

    Whoever publishes more seeds than others does not make theirs incomplete. ``older`` tells methods of one name apart.
    """
    seeds: dict[Setting, dict[str, set[int]]] = {}
    registered: dict[str, str] = {}
    for r in results:
        if _is_expected(r):
            method = repr((r.method_name, r.cell.backend, (older or {}).get(r.id, "")))
            registered[method] = r.cell.method
            seeds.setdefault(setting_of(r), {}).setdefault(method, set()).add(r.cell.seed)
    return {setting: set(shared_keys(of_method, registered).keys) for setting, of_method in seeds.items()}


def _is_expected(r: CellResult) -> bool:
    """Whether its method is expected in every setting: neither a bound nor what one search chose."""
    return not (r.oracle or is_tuned(r.cell))


def _moved(cell: Cell, setting: Setting, seed: int) -> Cell:
    """The same method and data in another setting."""
    return msgspec.structs.replace(
        cell,
        noise=setting.noise,
        delta=setting.delta,
        mechanism=setting.mechanism,
        bag_size=setting.bag_size,
        seed=seed,
    )
