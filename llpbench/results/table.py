"""The one aggregation that tables, board and page are built from: results of cells in, means over seeds out.

``group_cells`` collects the seeds of a method in one setting, ``make_row`` averages one metric of a group under one
selection rule, and ``aggregate`` does both for a whole plan. Missing cells have a status instead of a number.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import msgspec

from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import USUAL, Cell, bag_words
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import Scalar
from llpbench.experiment.plan import Planned, without_trials
from llpbench.experiment.privacy import epsilon_of
from llpbench.results.metric_style import COSTS, MetricStyle
from llpbench.results.naming import home_backends, method_name, named_options, unusual_noise
from llpbench.results.shared import RIVALS, Roles, may_compare


class Setting(NamedTuple):
    """Where methods are compared: a dataset, the bag size and the noise on counts.

    ``dataset`` is the display name, ``base_dataset`` the registered one; ``split`` says whether rows or bags are split.
    """

    dataset: str
    bag_size: int
    noise: str
    delta: float
    mechanism: str
    base_dataset: str
    scheme: str = USUAL.scheme
    split: str = USUAL.split

    @property
    def bags_name(self) -> str:
        """The bags in a heading: ``bag 128``, or the scheme if it sizes its bags itself."""
        return bag_words(self.bag_size, self.scheme)

    @property
    def noise_name(self) -> str:
        """The noise level, with its mechanism and delta if these are not the defaults."""
        unusual = unusual_noise(self.mechanism, self.delta) if self.noise != "none" else []
        return ", ".join([self.noise, *unusual])


@dataclass(frozen=True)
class Group:
    """The cells of one method in one setting, one for each planned seed.

    Attributes:
        method: the display name; ``base_method`` is the registered one.
        options: the options in its name, as text: ``lr=0.01`` and the origin of parameters (``preset=paper``).
        settings_of: the date of its settings if the same name stands for newer ones here; empty otherwise.
        oracle: whether it is a bound, which is given labels. ``control`` and ``guest`` are its roles in comparisons
            (``results.shared``).
        plans: the planned cells; ``results`` has the result of each, or None.
    """

    setting: Setting
    method: str
    base_method: str
    options: dict[str, str]
    backend: str
    settings_of: str
    oracle: bool
    control: bool = False
    guest: bool = False
    plans: list[Planned] = field(default_factory=list)
    results: list[CellResult | None] = field(default_factory=list)

    @cached_property
    def cell_ids(self) -> list[str]:
        """Ids of the planned cells (cached, because they are hashes)."""
        return [plan.cell.id for plan in self.plans]

    @property
    def params(self) -> dict[str, Scalar]:
        """All parameters of the method."""
        return self.plans[0].cell.params if self.plans else {}

    @property
    def found(self) -> list[CellResult]:
        """The results that exist."""
        return [result for result in self.results if result is not None]

    @property
    def fine(self) -> list[CellResult]:
        """The results with numbers."""
        return [result for result in self.found if result.status == "ok"]

    @property
    def card(self) -> BagCard | None:
        """The bag card of the first seed that has one."""
        cards = {result.cell.seed: result.card for result in self.found if result.card is not None}
        return cards[min(cards)] if cards else None

    @property
    def groupings(self) -> dict[str, BagCard]:
        """The cards of several groupings, of the first seed that has them."""
        cards = {result.cell.seed: result.groupings for result in self.found if result.groupings}
        return cards[min(cards)] if cards else {}

    def compared_under(self, rule: str) -> bool:
        """Whether it is compared with other methods under a rule (``results.shared``)."""
        return may_compare(self.options.get("params", ""), rule)

    def status(self, numbers: int) -> str:
        """``ok`` if all planned seeds have a number, ``partial`` if some have, or the most frequent status."""
        if numbers:
            return "ok" if numbers == len(self.plans) else "partial"
        words = Counter("undefined" if result.status == "ok" else result.status for result in self.found)
        return words.most_common(1)[0][0] if words else "missing"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a table: a method in one setting, over its seeds, for one metric under one selection rule.

    Attributes:
        dataset, method: display names; ``base_dataset`` and ``base_method`` are the registered ones.
        noise: name of the noise on counts; ``epsilon``, ``delta`` and ``mechanism`` define it (None and empty
            without noise).
        mean: mean over the seeds that have a number, in ``unit`` (percent if the metric is a share).
        sd: sample standard deviation (n - 1); None for a single seed.
        seeds: number of seeds of the mean; ``values`` are their numbers and ``value_seeds`` the seeds.
        status: ``ok`` if all planned seeds have a number, ``partial`` if some have, or what happened to them.
        reasons: why seeds have no number.
        card: the bag card of the first seed.
        params: all parameters of the method; ``options`` are those in its name.
        paper: the published value of this entry, in the same unit, which was selected by ``paper_rule``.
    """

    dataset: str
    method: str
    bag_size: int
    noise: str
    rule: str
    metric: str
    mean: float | None
    sd: float | None
    seeds: int
    planned: int
    status: str
    unit: str
    digits: int = 2
    oracle: bool = False
    control: bool = False
    guest: bool = False
    values: list[float] = []
    value_seeds: list[int] = []
    reasons: list[str] = []
    epsilon: float | None = None
    delta: float | None = None
    mechanism: str = ""
    base_dataset: str = ""
    base_method: str = ""
    options: dict[str, str] = {}
    params: dict[str, Scalar] = {}
    backend: str = ""
    settings_of: str = ""
    cell_ids: list[str] = []
    paper: float | None = None
    paper_sd: float | None = None
    paper_rule: str = ""
    paper_source: str = ""
    scheme: str = USUAL.scheme
    split: str = USUAL.split
    card: BagCard | None = None

    @property
    def compared(self) -> bool:
        """Whether it is compared with other methods under its rule (``results.shared``)."""
        return may_compare(self.options.get("params", ""), self.rule)

    @property
    def bags_name(self) -> str:
        """The bags in a heading: ``bag 128``, or the scheme if it sizes its bags itself."""
        return bag_words(self.bag_size, self.scheme)


def aggregate(
    planned: Iterable[Planned],
    results: Iterable[CellResult],
    metrics: Iterable[MetricStyle],
    rules: Iterable[str],
    roles: Roles = RIVALS,
) -> list[Row]:
    """Rows for every method and setting of a plan, every metric and every rule.

    A method on several backends, a noise level with several deltas, and a name that stood for other settings in the
    past give separate rows. ``roles`` are those of registered names.
    """
    return make_rows(group_cells(planned, results, roles=roles), metrics, rules)


def make_rows(groups: Iterable[Group], metrics: Iterable[MetricStyle], rules: Iterable[str]) -> list[Row]:
    """Rows of groups; a bound is repeated in every setting that it applies to."""
    metrics, rules = list(metrics), list(rules)
    return [make_row(g, metric, rule) for g in repeat_bounds(groups) for metric in metrics for rule in rules]


def group_cells(
    planned: Iterable[Planned],
    results: Iterable[CellResult],
    older: Mapping[str, str] | None = None,
    roles: Roles = RIVALS,
) -> list[Group]:
    """The cells of a plan, grouped by everything except their seed.

    Args:
        planned: the plan, whose order is kept. Trials of a search are omitted (``without_trials``).
        results: results in any order.
        older: for cells whose name stands for newer settings, the date of theirs (``older_settings`` by default).
        roles: the roles of registered names.
    """
    planned = without_trials(planned)
    by_id = {result.id: result for result in results}
    days = older_settings(planned, by_id) if older is None else older
    homes = home_backends(planned)
    groups: dict[tuple[Setting, str, str, str, bool], Group] = {}
    for plan in planned:
        cell_id = plan.cell.id
        backend, day = plan.cell.backend, days.get(cell_id, "")
        key = (setting_of(plan), plan.method_name, day, backend, plan.oracle)
        if key not in groups:
            away = backend != homes[plan.method_name]
            groups[key] = Group(
                setting=key[0],
                method=method_name(plan.method_name, day, (backend or "no backend") if away else ""),
                base_method=plan.cell.method,
                options=named_options(plan.method_name),
                backend=backend,
                settings_of=day,
                oracle=plan.oracle,
                control=plan.cell.method in roles.controls,
                guest=plan.cell.method in roles.guests,
            )
        groups[key].plans.append(plan)
        groups[key].results.append(by_id.get(cell_id))
    return list(groups.values())


def roles_of(shown: Iterable[Group | Row]) -> Roles:
    """The roles of groups or rows by their display names."""
    shown = list(shown)
    controls, guests = ([of.method for of in shown if getattr(of, role)] for role in ("control", "guest"))
    return Roles(frozenset(controls), frozenset(guests))


def setting_of(plan: Planned | CellResult) -> Setting:
    """The setting of a cell."""
    cell = plan.cell
    noise = (cell.noise, cell.delta, cell.mechanism)
    return Setting(plan.dataset_name, cell.bag_size, *noise, cell.dataset, cell.scheme_name, cell.split)


def older_settings(plans: Iterable[Planned | CellResult], results: Mapping[str, CellResult]) -> dict[str, str]:
    """The date of the settings, by cell id, of cells whose name stands for other settings now.

    A name has the options that differ from the defaults, and defaults change. If a method has the same name and seed
    twice in one setting, the cells that ran last or have yet to run keep the name. Several older settings of one date
    are distinguished by digits of a hash.
    """
    places: dict[tuple[Setting, str, str], dict[str, list[Cell]]] = {}
    for plan in plans:
        cell = plan.cell
        kind = repr((sorted(cell.params.items()), cell.preset, cell.dataset_options, cell.scheme_options, *cell.joined))
        places.setdefault((setting_of(plan), plan.method_name, cell.backend), {}).setdefault(kind, []).append(cell)

    def newest(cells: list[Cell]) -> tuple[str, str]:
        last = max((results[cell.id].started for cell in cells if cell.id in results), default="not run")
        return last, max(cell.id for cell in cells)

    older: list[tuple[tuple[str, str, str, str], str, list[Cell]]] = []
    for (setting, name, backend), kinds in places.items():
        taken: set[int] = set()
        for kind, cells in sorted(kinds.items(), key=lambda item: newest(item[1]), reverse=True):
            seeds = {cell.seed for cell in cells}
            if seeds & taken:
                older.append(((setting.dataset, name, backend, newest(cells)[0][:10]), kind, cells))
            else:
                taken |= seeds
    often = Counter(label for label, _ in {(label, kind) for label, kind, _ in older})
    return {
        cell.id: label[-1] + (f", {hashlib.sha256(kind.encode()).hexdigest()[:4]}" if often[label] > 1 else "")
        for label, kind, cells in older
        for cell in cells
    }


def data_key(cell: Cell) -> str:
    """The rows of a dataset that a bound depends on, independent of bags and noise on counts.

    If whole bags are split, the bags decide which rows are test rows.
    """
    split = () if cell.split == USUAL.split else (cell.split, *bags_key(cell))
    return repr((cell.dataset, sorted(cell.dataset_options.items()), cell.feature_noise, *split))


def bags_key(cell: Cell) -> tuple[object, ...]:
    """The bags of a cell, apart from its data and seed."""
    return (cell.bag_size, cell.scheme, sorted(cell.scheme_options.items()), *cell.joined)


def repeat_bounds(groups: Iterable[Group]) -> list[Group]:
    """The groups, with every bound repeated in each setting with the same rows."""
    groups = list(groups)
    settings: dict[str, dict[Setting, None]] = {}
    for group in groups:
        if not group.oracle:
            settings.setdefault(data_key(group.plans[0].cell), {})[group.setting] = None
    repeated = []
    for group in groups:
        bounded = settings.get(data_key(group.plans[0].cell), {}) if group.oracle else {}
        repeated += [replace(group, setting=setting) for setting in bounded] or [group]
    return repeated


def make_row(group: Group, metric: MetricStyle, rule: str) -> Row:
    """The mean of one metric over the seeds of a group, under one rule."""
    numbers = {r.cell.seed: v * metric.scale for r in group.found if (v := value_of(r, metric.name, rule)) is not None}
    values = list(numbers.values())
    mean, sd = mean_sd(values)
    setting = group.setting
    epsilon = epsilon_of(setting.noise)
    return Row(
        dataset=setting.dataset,
        base_dataset=setting.base_dataset,
        bag_size=setting.bag_size,
        noise=setting.noise_name,
        epsilon=epsilon,
        delta=None if epsilon is None else setting.delta,
        mechanism="" if epsilon is None else setting.mechanism,
        method=group.method,
        base_method=group.base_method,
        options=group.options,
        params=group.params,
        backend=group.backend,
        settings_of=group.settings_of,
        oracle=group.oracle,
        control=group.control,
        guest=group.guest,
        rule=rule,
        metric=metric.name,
        unit=metric.unit,
        digits=metric.digits,
        mean=mean,
        sd=sd,
        seeds=len(values),
        values=values,
        value_seeds=list(numbers),
        planned=len(group.plans),
        status=group.status(len(values)),
        reasons=list(dict.fromkeys(result.reason for result in group.found if result.reason)),
        cell_ids=group.cell_ids,
        scheme=setting.scheme,
        split=setting.split,
        card=group.card,
    )


def value_of(result: CellResult, metric: str, rule: str) -> float | None:
    """The number a result holds for a metric under a rule; None if it has none."""
    if result.status != "ok":
        return None
    if metric in COSTS:
        return float(getattr(result, metric))
    chosen = result.selected.get(rule)
    return None if chosen is None else chosen.metrics.get(metric)


def mean_sd(values: list[float]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation (n - 1); None if there are too few values."""
    if not values:
        return None, None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))
