"""Published results by dataset, method and setting, including the cells that should be there and are missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import msgspec

from llpbench.board.content.facts import DatasetAbout
from llpbench.board.content.searches import is_tuned
from llpbench.contracts.cell import BOUND_BAGS, USUAL, Cell
from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.experiment.privacy import epsilon_of
from llpbench.plugins.options import JOIN
from llpbench.results.shared import RIVALS, Roles, shared_keys
from llpbench.results.table import Group, Setting, data_key, group_cells, older_settings, roles_of, setting_of
from llpbench.results.worth import is_label_bound


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


NoiseAndBag = tuple[str, int]
"""The noise level and bag size of a column."""
UNSEEN = "unseen"
"""The block of datasets for evaluation only."""
BLOCKS = (UNSEEN, "tables", "random", "natural", "privacy", "images")
"""The parts of a leaderboard, by what its rows, bags and counts are."""
NO_NOISE = "none"


def block_of(setting: Setting, data: DatasetAbout | None) -> str:
    """The block of a column.

    Datasets for evaluation only are unseen. Of the others, columns with several groupings of the rows are tables, those
    with noise on counts privacy, those without random bags natural, and the rest images or random.
    """
    data = data or DatasetAbout()
    if data.evaluation_only:
        return UNSEEN
    if setting.scheme == "margins" or JOIN in setting.scheme or "random[times=" in setting.dataset:
        return "tables"
    if setting.noise != NO_NOISE:
        return "privacy"
    return "natural" if setting.scheme != USUAL.scheme else "images" if data.images else "random"


@dataclass(frozen=True)
class DatasetGroups:
    """The groups of one dataset by method, noise level and bag size; the methods in the order of their names.

    ``sample`` is any of its groups. ``bounds`` are the methods that were trained on labels, by the bag size of their
    test rows, or ``BOUND_BAGS`` where all bag sizes have the same rows.
    """

    sample: Group
    methods: dict[str, dict[NoiseAndBag, Group]]
    bounds: dict[str, dict[int, Group]]

    @cached_property
    def groups(self) -> list[Group]:
        """All groups of its methods."""
        return [group for found in self.methods.values() for group in found.values()]

    @cached_property
    def roles(self) -> Roles:
        """The controls and guests among its methods as displayed."""
        return roles_of(self.groups)

    @cached_property
    def rows(self) -> set[str]:
        """The sets of test rows: one, or one for each bag size where whole bags are split."""
        return {data_key(g.plans[0].cell) for g in (self.groups or [self.sample]) if g.plans}

    @property
    def same_rows(self) -> bool:
        """Whether its methods are tested on the same rows at every bag size."""
        return len(self.rows) == 1

    def bounds_at(self, bag: int) -> dict[str, Group]:
        """The bounds of a bag size that are given all labels, by method."""
        return {group.method: group for group in self._bounds_at(bag) if not is_label_bound(group)}

    def label_bounds_at(self, bag: int) -> list[Group]:
        """The bounds of a bag size that are given a number of labelled rows."""
        return [group for group in self._bounds_at(bag) if is_label_bound(group)]

    def _bounds_at(self, bag: int) -> list[Group]:
        size = BOUND_BAGS if self.same_rows else bag
        return [found[size] for found in self.bounds.values() if size in found]

    @cached_property
    def epsilons(self) -> dict[str, float | None]:
        """The noise levels: none first, then falling epsilon."""
        settings = {g.setting.noise_name: g.setting for g in self.groups}
        epsilons = {name: epsilon_of(setting.noise) for name, setting in settings.items()}
        return dict(sorted(epsilons.items(), key=lambda item: (-(item[1] or float("inf")), item[0])))

    @cached_property
    def bags(self) -> list[int]:
        """The bag sizes."""
        return sorted({bag for found in self.methods.values() for _, bag in found})

    def group(self, method: str, noise: str, bag: int) -> Group:
        """The cells of a method in a setting; an empty group if there are none."""
        found = self.methods[method]
        if (noise, bag) in found:
            return found[noise, bag]
        level = next(g.setting for groups in self.methods.values() for (n, _), g in groups.items() if n == noise)
        some = next(iter(found.values()))
        return replace(some, setting=level._replace(bag_size=bag), plans=[], results=[])


def by_dataset(groups: list[Group]) -> list[DatasetGroups]:
    """The datasets by name. A bound belongs to every dataset with its test rows."""
    datasets: dict[str, DatasetGroups] = {}
    bounded = {data_key(g.plans[0].cell) for g in groups if not g.oracle}
    for g in sorted(groups, key=lambda g: (g.setting.dataset, g.method)):
        if not g.oracle or data_key(g.plans[0].cell) not in bounded:
            dataset = datasets.setdefault(g.setting.dataset, DatasetGroups(g, {}, {}))
            if not g.oracle:
                dataset.methods.setdefault(g.method, {})[g.setting.noise_name, g.setting.bag_size] = g
    for g in sorted((g for g in groups if g.oracle), key=lambda g: g.method):
        for dataset in datasets.values():
            cell = g.plans[0].cell
            if data_key(cell) in dataset.rows:
                dataset.bounds.setdefault(g.method, {})[BOUND_BAGS if dataset.same_rows else cell.bag_size] = g
    return list(datasets.values())
