"""Published results by dataset, method, noise level and bag size."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llpbench.contracts.cell import BOUND_BAGS, USUAL
from llpbench.experiment.privacy import epsilon_of
from llpbench.results.shared import Roles
from llpbench.results.table import Group, data_key, roles_of

NoiseAndBag = tuple[str, int]
"""The noise level and bag size of a column."""
BLOCKS = ("random", "natural", "privacy", "images")
"""The parts of a leaderboard, by what its bags, counts and rows are."""
NO_NOISE = "none"


def block_of(scheme: str, noise: str, images: bool) -> str:
    """The block of a column: privacy with noise on counts, else natural without random bags, else images or random."""
    if noise != NO_NOISE:
        return "privacy"
    return "natural" if scheme != USUAL.scheme else "images" if images else "random"


@dataclass(frozen=True)
class DatasetGroups:
    """The groups of one dataset by method, noise level and bag size; the methods in the order of their names.

    ``sample`` is any of its groups. ``bounds`` are the methods that were trained on labels, by the bag size of their
    test rows, or ``BOUND_BAGS`` where all bag sizes have the same rows.
    """

    sample: Group
    methods: dict[str, dict[NoiseAndBag, Group]]
    bounds: dict[str, dict[int, Group]]

    @property
    def groups(self) -> list[Group]:
        """All groups of its methods."""
        return [group for found in self.methods.values() for group in found.values()]

    @property
    def roles(self) -> Roles:
        """The controls and guests among its methods as displayed."""
        return roles_of(self.groups)

    @property
    def rows(self) -> set[str]:
        """The sets of test rows: one, or one for each bag size where whole bags are split."""
        return {data_key(g.plans[0].cell) for g in (self.groups or [self.sample]) if g.plans}

    @property
    def same_rows(self) -> bool:
        """Whether its methods are tested on the same rows at every bag size."""
        return len(self.rows) == 1

    def bounds_at(self, bag: int) -> dict[str, Group]:
        """The bounds of a bag size, by method."""
        size = BOUND_BAGS if self.same_rows else bag
        return {method: found[size] for method, found in self.bounds.items() if size in found}

    @property
    def epsilons(self) -> dict[str, float | None]:
        """The noise levels: none first, then falling epsilon."""
        settings = {g.setting.noise_name: g.setting for g in self.groups}
        epsilons = {name: epsilon_of(setting.noise) for name, setting in settings.items()}
        return dict(sorted(epsilons.items(), key=lambda item: (-(item[1] or float("inf")), item[0])))

    @property
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
