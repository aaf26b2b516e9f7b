"""What is searched for: one study for every method, setting and rule."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.specs import MethodSpec, RuleSpec, Scalar
from llpbench.experiment.grid import USUAL_FOLDS, RunSpec, plan_cells
from llpbench.experiment.plan import Planned
from llpbench.experiment.tuned import UNSTEERED, History, Setting, bare
from llpbench.plugins.options import expand, format_options, parse_options
from llpbench.plugins.registry import Registry
from llpbench.tuning.space import Dimension, check_ranges, narrowed, ranges_of, search_space, space_digest
from llpbench.tuning.study import SAMPLERS, STEERED, Journal, Study


@dataclass(frozen=True)
class TuneSpec:
    """What to tune, and how: the grid's settings, the rules, the number of trials, how they are drawn.

    Attributes:
        shared: one set of trials serves all rules. None of them may steer the draws, so these are random; and a trial
            is given up only where it lags under each of them.
        ranges: what is searched, where it is not all that methods declare (``space.Ranges``).
    """

    run: RunSpec
    rules: tuple[str, ...]
    trials: int = 20
    per_seed: bool = False
    shared: bool = False
    sampler: str = STEERED
    sampler_seed: int = 0
    prune: bool = True
    at_once: int = 1
    ranges: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLERS:
            raise UnknownNameError("sampler", self.sampler, SAMPLERS)
        for name in ("trials", "at_once"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.shared and self.sampler != UNSTEERED:
            raise UsageError(
                f"the sampler {self.sampler!r} follows the values of one rule, which would favour it in trials that "
                f"several rules share. Shared trials are drawn with --sampler {UNSTEERED}."
            )
        if self.shared and len(set(self.rules)) < 2:
            raise UsageError(
                f"trials are shared by several rules, and only {', '.join(self.rules)} judges. "
                "Name more (--rule all, --rule instances,bags), or leave --shared out."
            )


@dataclass
class Search:
    """One study, what it is of, and the trials of it that this process runs.

    ``prune_rules`` are those under all of which a trial must lag to be given up: its own, and those it is shared with.
    """

    setting: Setting
    method: MethodSpec
    rule: RuleSpec
    prune_rules: tuple[RuleSpec, ...]
    method_name: str
    dataset_name: str
    space: tuple[Dimension, ...]
    name: str
    study: Study
    wanted: int
    spec: TuneSpec
    running: int = 0
    ended: bool = False

    def params(self, searched: dict[str, Scalar]) -> dict[str, Scalar]:
        """All parameters of the method, checked against what it declares."""
        return self.method.resolve({**self.setting.fixed, **searched})

    @property
    def shared(self) -> list[str]:
        """The rules that have these trials; none when they are this study's own."""
        return [rule.name for rule in self.prune_rules] if self.spec.shared else []

    def history(self) -> History:
        """The study as it stands."""
        return History(
            study=self.name,
            setting=self.setting,
            space={d.name: d.describe() for d in self.space},
            sampler=self.spec.sampler,
            sampler_seed=self.spec.sampler_seed,
            wanted=self.wanted,
            higher_is_better=self.rule.higher_is_better,
            trials=self.study.trials(),
            shared=self.shared,
        )


def judged_by(run: RunSpec, names: Sequence[str] | None, registry: Registry) -> tuple[RunSpec, tuple[str, ...]]:
    """The rules that judge trials, and the grid with the folds that they need.

    Args:
        run: the grid.
        names: of the rules; None for all that need not be named, those on folds only where the grid has folds.
        registry: what is registered.
    """
    if names is None:
        shown = [spec for spec in registry.rules.specs if spec.name not in registry.rules_on_request]
        rules = [spec for spec in shown if run.folds or not spec.cross_validated]
    else:
        rules = [registry.rules[name] for name in names]
    if any(spec.cross_validated for spec in rules) and not run.folds:
        run = msgspec.structs.replace(run, folds=USUAL_FOLDS)
    return run, tuple(spec.name for spec in rules)


def plan_searches(spec: TuneSpec, registry: Registry, journal: Journal) -> list[Search]:
    """A study for every method, setting and rule (and seed, when each has its own)."""
    check_ranges(spec.ranges, registry.methods.specs)
    searches: dict[str, Search] = {}
    for text in spec.run.methods:
        name, options = parse_options(text)
        method = registry.methods[name]
        for given in expand(method, options):
            stated = method.resolve(given)
            fixed = {key: value for key, value in given.items() if key in stated}
            one = msgspec.structs.replace(spec.run, methods=[format_options(name, fixed)], seeds=1)
            for plan in plan_cells(one, registry):
                rules = [registry.rules[name] for name in dict.fromkeys(spec.rules)]
                for rule in rules:
                    for seeds in _seed_sets(spec):
                        prune_rules = sorted(rules, key=lambda r: r.name) if spec.shared else [rule]
                        search = _make_search(spec, method, fixed, plan, rule, prune_rules, seeds, journal)
                        searches.setdefault(search.name, search)
    return list(searches.values())


def _seed_sets(spec: TuneSpec) -> list[list[int]]:
    seeds = spec.run.seed_list
    return [[seed] for seed in seeds] if spec.per_seed else [seeds]


def _make_search(
    spec: TuneSpec,
    method: MethodSpec,
    fixed: dict[str, Scalar],
    plan: Planned,
    rule: RuleSpec,
    prune_rules: Sequence[RuleSpec],
    seeds: list[int],
    journal: Journal,
) -> Search:
    cell = bare(plan.cell)
    setting = Setting(cell=cell, fixed=fixed, rule=rule.name, seeds=seeds, own=spec.per_seed)
    start = method.resolve(fixed)
    space = narrowed(search_space(method, fixed), ranges_of(spec.ranges, method.name), start)
    facts = [setting, space_digest(space), spec.sampler, spec.sampler_seed]
    if spec.shared:
        facts.append([r.name for r in prune_rules])
    key = hashlib.sha256(msgspec.json.encode(facts, order="sorted")).hexdigest()[:8]
    noise = "" if cell.noise == "none" else f" noise {cell.noise}"
    own = f" seed {seeds[0]}" if spec.per_seed else ""
    name = f"{plan.method_name} {plan.dataset_name} {cell.bags_name}{noise}{own} {rule.name} {key}"
    study = Study(
        journal,
        name,
        key=key,
        higher_is_better=rule.higher_is_better,
        space=space,
        start=start,
        sampler=spec.sampler,
        seed=spec.sampler_seed,
    )
    wanted = spec.trials if space else 1
    return Search(
        setting,
        method,
        rule,
        tuple(prune_rules),
        plan.method_name,
        plan.dataset_name,
        space,
        name,
        study,
        wanted,
        spec,
    )
