"""The cells that a leaderboard should have: every method in every setting of its dataset, with the usual seeds."""

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
    """The cells of a board; ``older`` dates cells (by id) whose method name now stands for newer settings."""

    cells: list[Planned]
    older: dict[str, str]


def board_groups(results: Iterable[CellResult], roles: Roles = RIVALS) -> list[Group]:
    """Published results by method and setting, including missing ones; independent of the order of the results.

    ``roles`` are the roles of registered methods.
    """
    results = list(results)
    plan = board_plan(results)
    return group_cells(plan.cells, results, plan.older, roles)


def board_plan(results: Iterable[CellResult]) -> BoardPlan:
    """The cells that a table of these results should have."""
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
    """For each setting, the seeds that more than half of its methods have (``results.shared``).

    ``older`` distinguishes methods of the same name.
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
