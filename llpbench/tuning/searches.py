"""Plan searches: one study for every method, setting and rule."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from llpbench.contracts.specs import MethodSpec, RuleSpec, Scalar
from llpbench.experiment.grid import USUAL_FOLDS, plan_cells
from llpbench.experiment.plan import Planned
from llpbench.experiment.tuned import History, Setting, bare
from llpbench.plugins.options import expand, format_options, parse_options
from llpbench.plugins.registry import Registry
from llpbench.tuning.settings import TuneSettings
from llpbench.tuning.space import Dimension, check_ranges, narrowed, ranges_of, search_space, space_digest
from llpbench.tuning.study import Journal, Study


@dataclass
class Search:
    """One study and the trials of it that this process runs.

    A trial is pruned if it lags under all of ``prune_rules``: the study's own rule, and those it shares trials with.
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
    spec: TuneSettings
    running: int = 0
    ended: bool = False

    def params(self, searched: dict[str, Scalar]) -> dict[str, Scalar]:
        """All parameters of the method, validated."""
        return self.method.resolve({**self.setting.fixed, **searched})

    @property
    def shared(self) -> list[str]:
        """The rules that share these trials; empty if they are not shared."""
        return [rule.name for rule in self.prune_rules] if self.spec.shared else []

    def history(self) -> History:
        """The current history of the study."""
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


def judged_by(settings: TuneSettings, registry: Registry) -> TuneSettings:
    """The settings with every rule by name, and with the folds that cross-validated rules need.

    ``all`` stands for the rules that need not be named, those on folds only where the grid has folds.
    """
    if settings.rule == ["all"]:
        shown = [spec for spec in registry.rules.specs if spec.name not in registry.rules_on_request]
        rules = [spec for spec in shown if settings.folds or not spec.cross_validated]
    else:
        rules = [registry.rules[name] for name in settings.rule]
    needs_folds = any(spec.cross_validated for spec in rules) and not settings.folds
    return settings.replace(rule=[spec.name for spec in rules], folds=USUAL_FOLDS if needs_folds else settings.folds)


def plan_searches(spec: TuneSettings, registry: Registry, journal: Journal) -> list[Search]:
    """A study for every method, setting and rule (and seed, when each has its own)."""
    check_ranges(spec.ranges, registry.methods.specs)
    rules = [registry.rules[name] for name in dict.fromkeys(spec.rule)]
    seed_sets = [[seed] for seed in spec.seed_list] if spec.per_seed else [spec.seed_list]
    searches: dict[str, Search] = {}
    for text in spec.methods:
        name, options = parse_options(text)
        method = registry.methods[name]
        for given in expand(method, options):
            stated = method.resolve(given)
            fixed = {key: value for key, value in given.items() if key in stated}
            one = spec.replace(methods=[format_options(name, fixed)], seeds=1)
            for plan in plan_cells(one, registry):
                for rule, seeds in itertools.product(rules, seed_sets):
                    prune_rules = sorted(rules, key=lambda r: r.name) if spec.shared else [rule]
                    search = _make_search(spec, method, fixed, plan, rule, prune_rules, seeds, journal)
                    searches.setdefault(search.name, search)
    return list(searches.values())


def _make_search(
    spec: TuneSettings,
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
