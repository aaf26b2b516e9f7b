"""The search itself: trials as ordinary cells, each in its own process, kept in the store and given up when they lag.

One trial of a study runs at a time (more with ``at_once``), and studies run side by side: a study's history then does
not depend on how many processes work beside it. A cell that is in the store already is not run again, so that studies
that differ in their rule alone share the trials that have equal parameters.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

import msgspec

from llpbench.contracts.executor import Executor, Outcome
from llpbench.contracts.job import Prune
from llpbench.contracts.result import CellResult, Selected
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.execution.driver import Context, Limits, make_jobs, settle, stamp, unreadable
from llpbench.experiment.grid import RunSpec, plan_cells
from llpbench.experiment.monitor import Pruned
from llpbench.experiment.plan import Planned
from llpbench.plugins.options import expand, format_options, parse_options
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import Damaged
from llpbench.results.store import Store
from llpbench.system.locks import Claim
from llpbench.tuning.chosen import HIGHER_IS_BETTER, Chosen, History, Setting, Trial, bare, write_chosen, write_history
from llpbench.tuning.space import Dimension, search_space, space_digest
from llpbench.tuning.study import Asked, Journal, Study, locked

FIRST_TRIALS = 5
"""Trials that must have finished before others are held to their median."""

FIRST_REPORTS = 5
"""Reports that every trial may make."""


@dataclass(frozen=True)
class TuneSpec:
    """What to tune, and how: the grid's settings, the rules, the number of trials, the seeds."""

    run: RunSpec
    rules: tuple[str, ...]
    trials: int = 20
    per_seed: bool = False
    sampler: str = "tpe"
    seed: int = 0
    prune: bool = True
    at_once: int = 1


@dataclass
class Search:
    """One study, what it is of, and the trials of it that this process runs."""

    setting: Setting
    method: MethodSpec
    label: str
    dataset_label: str
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

    def history(self) -> History:
        """The study as it stands."""
        return History(
            study=self.name,
            setting=self.setting,
            space={d.name: d.describe() for d in self.space},
            sampler=self.spec.sampler,
            sampler_seed=self.spec.seed,
            wanted=self.wanted,
            trials=self.study.trials(),
        )


@dataclass
class _Running:
    """A trial of this process: the results so far, one for each seed, and the cell that runs now."""

    search: Search
    asked: Asked
    results: list[CellResult] = field(default_factory=list)
    claim: Claim | None = None
    before: tuple[int, int] = (0, 0)


def plan_searches(spec: TuneSpec, registry: Registry, journal: Journal) -> list[Search]:
    """A study for every method, setting and rule (and seed, when each has its own)."""
    searches: dict[str, Search] = {}
    for text in spec.run.methods:
        name, options = parse_options(text)
        method = registry.methods[name]
        for fixed in expand(method, options):
            one = msgspec.structs.replace(spec.run, methods=[format_options(name, fixed)], seeds=1)
            for plan in plan_cells(one, registry):
                for rule in spec.rules:
                    for seeds in _seed_sets(spec):
                        search = _search(spec, method, fixed, plan, rule, seeds, journal)
                        searches.setdefault(search.name, search)
    return list(searches.values())


def _seed_sets(spec: TuneSpec) -> list[list[int]]:
    seeds = list(range(spec.run.seeds))
    return [[seed] for seed in seeds] if spec.per_seed else [seeds]


def _search(
    spec: TuneSpec,
    method: MethodSpec,
    fixed: dict[str, Scalar],
    plan: Planned,
    rule: str,
    seeds: list[int],
    journal: Journal,
) -> Search:
    cell = bare(plan.cell)
    setting = Setting(cell=cell, fixed=fixed, rule=rule, seeds=seeds, own=spec.per_seed)
    space = search_space(method, fixed)
    identity = msgspec.json.encode([setting, space_digest(space), spec.sampler, spec.seed], order="sorted")
    key = hashlib.sha256(identity).hexdigest()[:8]
    noise = "" if cell.noise == "none" else f" noise {cell.noise}"
    own = f" seed {seeds[0]}" if spec.per_seed else ""
    name = f"{plan.label} {plan.dataset_label} bag {cell.bag_size}{noise}{own} {rule} {key}"
    start = method.resolve(fixed)
    study = Study(journal, name, key=key, rule=rule, space=space, start=start, sampler=spec.sampler, seed=spec.seed)
    wanted = spec.trials if space else 1
    return Search(setting, method, plan.label, plan.dataset_label, space, name, study, wanted, spec)


def prune_bounds(histories: Iterable[Sequence[float | None]], higher_is_better: bool) -> tuple[float | None, ...]:
    """For every report, the median over finished trials of their best value up to it.

    A trial that made fewer reports counts with the best it had. No bound is set for the first reports, nor before
    enough trials have finished.
    """
    bests = ([best for best in best_so_far(history, higher_is_better) if best is not None] for history in histories)
    running = [best for best in bests if best]
    if len(running) < FIRST_TRIALS:
        return ()
    longest = max(map(len, running))
    medians = [median(best[min(r, len(best) - 1)] for best in running) for r in range(longest)]
    return tuple(None if r < FIRST_REPORTS else bound for r, bound in enumerate(medians))


def best_so_far(values: Sequence[float | None], higher_is_better: bool) -> list[float | None]:
    """The best of the values up to each; None before the first that is known."""
    better = max if higher_is_better else min
    found: list[float | None] = []
    for value in values:
        known = [v for v in (*found[-1:], value) if v is not None]
        found.append(better(known) if known else None)
    return found


def held_to(result: CellResult, prune: Prune) -> CellResult:
    """A result of the store as the study would have had it from a run of its own: cut where it would have given up.

    Without this the history of a study would depend on which other studies had run its cells before.
    """
    higher = HIGHER_IS_BETTER[prune.rule]
    bests = best_so_far([report.get(prune.rule) for report in result.history], higher)
    for number, best in enumerate(bests):
        bound = prune.bound(number)
        if best is not None and bound is not None and (best < bound if higher else best > bound):
            return msgspec.structs.replace(
                result,
                status="pruned",
                reason=str(Pruned(prune.rule, number, best, bound)),
                history=result.history[: number + 1],
                selected={prune.rule: Selected(report=number, value=best)},
            )
    return result


class Tuner:
    """Runs searches to their end through an executor.

    Args:
        store: where cells are kept.
        registry: what is registered.
        executor: where cells run.
        limits: what each cell is given.
        context: where cells find data and plugins.
        heard: told of every trial as it ends.
        command: the command line, for the manifest.
        version: that of llpbench, for the manifest.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        executor: Executor,
        limits: Limits,
        context: Context,
        *,
        heard: Callable[[Search, Trial], None],
        command: str,
        version: str,
    ) -> None:
        self.store, self.registry, self.executor = store, registry, executor
        self.limits, self.context, self.heard = limits, context, heard
        self.command, self.version = command, version
        self._running: dict[str, _Running] = {}
        self._blocked: list[_Running] = []

    def go(self, searches: list[Search]) -> list[Chosen]:
        """Run until every study has its trials, also those that other processes run; returns what was chosen."""
        try:
            while not all(search.ended for search in searches):
                self._retry_blocked()
                for search in searches:
                    self._start_trials(search)
                outcomes = self.executor.wait(0.5 if self._running else 0.0)
                for outcome in outcomes:
                    self._finish_cell(outcome)
                if not outcomes and not self._running:
                    time.sleep(0.2)  # others run what is left
        finally:
            self.executor.close()
            for trial in (*self._running.values(), *self._blocked):
                trial.asked.claim.release()
                if trial.claim is not None:
                    trial.claim.release()
        return publish(self.store.root, searches)

    def _start_trials(self, search: Search) -> None:
        while not search.ended and search.running < search.spec.at_once and self.executor.slots > 0:
            asked = None if self._declined(search) else search.study.ask(search.wanted)
            if asked is None:
                others = any(t.status == "running" for t in search.study.trials())
                search.ended = search.running == 0 and not others
                return
            search.running += 1
            self._advance(_Running(search, asked))

    def _declined(self, search: Search) -> bool:
        """Whether the method declined the setting at its defaults: it would again."""
        return any(t.number == 0 and t.status == "skipped" for t in search.study.trials())

    def _retry_blocked(self) -> None:
        blocked, self._blocked = self._blocked, []
        for trial in blocked:
            self._advance(trial)

    def _advance(self, trial: _Running) -> None:
        """Take the trial's next cell: from the store, or to the executor; end the trial when it has all."""
        search, seeds = trial.search, trial.search.setting.seeds
        while len(trial.results) < len(seeds) and all(r.status == "ok" for r in trial.results):
            plan = self._plan(trial, seeds[len(trial.results)])
            claim = self.store.claim(plan.cell.id)
            if claim is None or self.executor.slots < 1:
                if claim is not None:
                    claim.release()
                self._blocked.append(trial)  # another process or another study runs this very cell
                return
            known = self._known(plan.cell.id, search.setting.rule)
            if known is None:
                trial.claim = claim
                self._submit(trial, plan)
                return
            claim.release()
            prune = self._prune(trial, plan) if known.status == "ok" else None
            trial.results.append(known if prune is None else held_to(known, prune))
        self._end(trial)

    def _plan(self, trial: _Running, seed: int) -> Planned:
        search = trial.search
        params = search.params(trial.asked.params)
        changed = {p.name: params[p.name] for p in search.method.params if params[p.name] != p.default}
        cell = msgspec.structs.replace(search.setting.cell, params=params, seed=seed, tuning=True)
        label = format_options(search.method.name, changed)
        return Planned(cell=cell, label=label, dataset_label=search.dataset_label, oracle=search.method.oracle)

    def _known(self, cell_id: str, rule: str) -> CellResult | None:
        """A result that serves a study of this rule; a cell given up under another rule does not."""
        try:
            result = self.store.read(cell_id)
        except Damaged:
            return None
        if result is not None and result.status == "pruned" and result.notes.get("pruned_by") != rule:
            return None
        return result

    def _submit(self, trial: _Running, plan: Planned) -> None:
        self.store.plan([plan], self.command, self.version)
        trial.before = stamp(self.store.result_path(plan.cell.id))
        (job,) = make_jobs([plan], self.store, self.registry, self.limits, self.context)
        self._running[plan.cell.id] = trial
        self.executor.submit(msgspec.structs.replace(job, prune=self._prune(trial, plan)))

    def _prune(self, trial: _Running, plan: Planned) -> Prune | None:
        """What the trial must reach; nothing for the defaults, which are always seen to their end."""
        search, rule = trial.search, trial.search.setting.rule
        if not search.spec.prune or trial.asked.number == 0:
            return None
        place = search.setting.seeds.index(plan.cell.seed)
        histories = []
        for t in search.study.trials():
            result = self._known(t.cells[place], rule) if t.status == "ok" else None
            if result is not None:
                histories.append([report.get(rule) for report in result.history])
        bounds = prune_bounds(histories, HIGHER_IS_BETTER[rule])
        return Prune(rule=rule, bounds=bounds) if bounds else None

    def _finish_cell(self, outcome: Outcome) -> None:
        trial = self._running.pop(outcome.job.cell.id)
        trial.results.append(self._result(outcome, trial))
        assert trial.claim is not None
        trial.claim.release()
        trial.claim = None
        self._advance(trial)

    def _result(self, outcome: Outcome, trial: _Running) -> CellResult:
        try:
            return settle(self.store, outcome, trial.before)
        except Damaged as damage:
            result = unreadable(outcome, damage)
            result.wall_seconds = outcome.seconds
            self.store.write(result)  # other studies share the cell: they are not to run it again
            return result

    def _end(self, trial: _Running) -> None:
        search = trial.search
        done = summarise(trial.asked, trial.results, search.setting.rule)
        search.study.tell(trial.asked, done)
        search.running -= 1
        write_history(self.store.root, search.history())
        self.heard(search, done)


def summarise(asked: Asked, results: list[CellResult], rule: str) -> Trial:
    """A trial from its cells: the mean value over seeds, or why there is none."""
    last = results[-1]
    values = [r.selected[rule].value for r in results if rule in r.selected]
    known = [v for v in values if v is not None]
    status, reason = str(last.status), last.reason
    if status == "ok" and len(known) < len(results):
        status, reason = "failed", f"no value under rule {rule}"
    return Trial(
        number=asked.number,
        params=asked.params,
        status=status,
        value=fmean(known) if known and status in ("ok", "pruned") else None,
        seconds=sum(r.wall_seconds for r in results),
        reports=sum(len(r.history) for r in results),
        cells=[r.id for r in results],
        reason=reason,
    )


def publish(out: Path, searches: list[Search]) -> list[Chosen]:
    """Write every study's history and the chosen parameters; returns those of the given searches."""
    for search in searches:
        write_history(out, search.history())
    with locked(out / "claims" / "tuned.lock"):
        chosen = write_chosen(out)
    names = {search.name for search in searches}
    return [c for c in chosen if c.study in names]
