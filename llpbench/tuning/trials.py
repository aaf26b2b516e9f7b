"""Trials as work for the driver: cells that are kept in the store, and pruned if they lag.

One trial of a study runs at a time (more with ``at_once``), and studies run in parallel, so that the history of a study
does not depend on the number of processes. A cell that is already stored is not run again, so that studies of different
rules share trials with equal parameters; ``shared`` studies share all trials.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean

import msgspec

from llpbench.contracts.errors import StoreError
from llpbench.contracts.job import Job, Prune
from llpbench.contracts.result import CellResult
from llpbench.execution.driver import Task
from llpbench.execution.jobs import make_jobs
from llpbench.experiment.judge import pruned_by
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.tuned import Chosen, Trial, write_chosen, write_history
from llpbench.plugins.options import format_options
from llpbench.plugins.registry import Registry
from llpbench.results.provenance import Provenance
from llpbench.results.request import Command
from llpbench.results.store import Store
from llpbench.tuning.pruning import cut_where_given_up, pruning_limits
from llpbench.tuning.searches import Search
from llpbench.tuning.study import Asked, locked


@dataclass(eq=False)
class _RunningTrial:
    """A running trial of this process: its results so far, one per seed, and the limits of its next cell."""

    search: Search
    asked: Asked
    results: list[CellResult] = field(default_factory=list)
    prune: tuple[Prune, ...] = ()


@dataclass(frozen=True)
class _TrialTask(Task):
    """The next cell of a trial."""

    trial: _RunningTrial


class Trials:
    """The work of finishing all searches (see ``execution.driver.Work``).

    Args:
        searches: the studies.
        store: where cells are kept.
        registry: what is registered.
        settings: how cells are run.
        on_trial: told of every trial as it ends.
        request: what was asked for, for the manifest.
        version: that of llpbench, for the manifest.
    """

    def __init__(
        self,
        searches: list[Search],
        store: Store,
        registry: Registry,
        settings: RunSettings,
        *,
        on_trial: Callable[[Search, Trial], None],
        request: Command,
        version: str,
    ) -> None:
        self.searches, self.store, self.registry = searches, store, registry
        self.settings, self.on_trial = settings, on_trial
        self.request, self.version = request, version
        self._due: deque[_RunningTrial] = deque()  # trials whose next cell may start
        self._begun: list[_RunningTrial] = []  # trials that have not ended
        self._planned: set[str] = set()  # cells that the manifest has
        self._provenance = Provenance(registry)
        self._refuse_outdated()

    @property
    def over(self) -> bool:
        """Whether all trials of every study are finished, including those of other processes."""
        return all(search.ended for search in self.searches)

    def next(self) -> Task | None:
        """The next cell of a waiting trial, or of a new one."""
        for _ in range(len(self._due)):
            task = self._next_cell(self._due.popleft())
            if task is not None:
                return task
        for search in self.searches:
            while (trial := self._new_trial(search)) is not None:
                task = self._next_cell(trial)
                if task is not None:
                    return task
        return None

    def put_back(self, task: Task) -> None:
        """Try again later: another process or study is running this cell."""
        assert isinstance(task, _TrialTask)
        self._due.append(task.trial)

    def finished(self, task: Task, result: CellResult) -> None:
        """Keep the result, and continue with the next cell of the trial."""
        assert isinstance(task, _TrialTask)
        if self._serves(result, task.trial.search):
            self._keep(task.trial, result)
        self._due.append(task.trial)

    def release(self) -> None:
        """Release unfinished trials, so that other processes can continue them."""
        for trial in self._begun:
            trial.asked.claim.release()

    def _refuse_outdated(self) -> None:
        """Reject studies whose trials were computed by other code, since values are not comparable."""
        for search in self.searches:
            for cell_id in dict.fromkeys(cell for trial in search.study.trials() for cell in trial.cells):
                result = self.store.sound(cell_id)
                reason = "" if result is None else self._provenance.outdated(result)
                if reason:
                    raise StoreError(
                        f"{self.store.root} holds a study of {search.method_name} whose trials {reason}. "
                        "Tune into another folder (--out), or remove this one."
                    )

    def _new_trial(self, search: Search) -> _RunningTrial | None:
        """Start a trial of a study if it needs another one; mark the study as ended if it does not."""
        if search.ended or search.running >= search.spec.at_once:
            return None
        declined = any(t.number == 0 and t.status == "skipped" for t in search.study.trials())
        asked = None if declined else search.study.ask(search.wanted)
        if asked is None:
            others = any(t.status == "running" for t in search.study.trials())
            search.ended = search.running == 0 and not others
            return None
        search.running += 1
        trial = _RunningTrial(search, asked)
        self._begun.append(trial)
        return trial

    def _next_cell(self, trial: _RunningTrial) -> Task | None:
        """The task of the trial's next cell that is not stored yet; None if the trial has ended."""
        seeds = trial.search.setting.seeds
        while len(trial.results) < len(seeds) and all(r.status == "ok" for r in trial.results):
            plan = self._plan(trial, seeds[len(trial.results)])
            trial.prune = self._prune(trial, plan)
            before = self.store.stamp(plan.cell.id)
            known = self._known(plan.cell.id, trial.search)
            if known is None:
                return _TrialTask(self._job(trial, plan), before, trial)
            self._keep(trial, known)
        self._end(trial)
        return None

    def _plan(self, trial: _RunningTrial, seed: int) -> Planned:
        search = trial.search
        params = search.params(trial.asked.params)
        cell = msgspec.structs.replace(search.setting.cell, params=params, seed=seed, tuning=True)
        name = format_options(search.method.name, search.method.changed(params))
        return Planned(cell=cell, method_name=name, dataset_name=search.dataset_name, oracle=search.method.oracle)

    def _job(self, trial: _RunningTrial, plan: Planned) -> Job:
        if plan.cell.id not in self._planned:
            self.store.plan([plan], self.request, self.version)
            self._planned.add(plan.cell.id)
        (job,) = make_jobs([plan], self.store, self.registry, self.settings)
        return msgspec.structs.replace(job, prune=trial.prune)

    def _known(self, cell_id: str, search: Search) -> CellResult | None:
        """A stored result that the study can use."""
        result = self.store.sound(cell_id)
        if result is None or self._provenance.outdated(result):
            return None
        return result if self._serves(result, search) else None

    def _serves(self, result: CellResult, search: Search) -> bool:
        """Whether a study can use a result; not if it was pruned under other rules."""
        return result.status != "pruned" or result.notes.get("pruned_by") == pruned_by(
            r.name for r in search.prune_rules
        )

    def _keep(self, trial: _RunningTrial, result: CellResult) -> None:
        if result.status == "ok":
            directions = {rule.name: rule.higher_is_better for rule in trial.search.prune_rules}
            result = cut_where_given_up(result, trial.prune, directions)
        trial.results.append(result)

    def _prune(self, trial: _RunningTrial, plan: Planned) -> tuple[Prune, ...]:
        """The pruning limits of a trial; none for the defaults, which are never pruned."""
        search = trial.search
        if not search.spec.prune or trial.asked.number == 0:
            return ()
        place = search.setting.seeds.index(plan.cell.seed)
        finished = [self._known(t.cells[place], search) for t in search.study.trials() if t.status == "ok"]
        histories = [result.history for result in finished if result is not None]
        found = []
        for rule in search.prune_rules:
            values = [[report.get(rule.name) for report in history] for history in histories]
            found.append(Prune(rule=rule.name, limits=pruning_limits(values, rule.higher_is_better)))
        return tuple(found) if all(prune.limits for prune in found) else ()

    def _end(self, trial: _RunningTrial) -> None:
        search = trial.search
        done = summarise(trial.asked, trial.results, search.rule.name)
        search.study.tell(trial.asked, done)
        search.running -= 1
        self._begun.remove(trial)
        write_history(self.store.root, search.history())
        self.on_trial(search, done)


def summarise(asked: Asked, results: list[CellResult], rule: str) -> Trial:
    """The result of a trial from its cells: the mean value over seeds, or why there is none."""
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


def write_searches(store: Store, searches: list[Search]) -> list[Chosen]:
    """Write the histories and the chosen parameters; return those of the given searches."""

    def code_of(trial: Trial) -> dict[str, str]:
        results = map(store.sound, trial.cells)
        return {part: line for result in results if result is not None for part, line in result.code.items()}

    for search in searches:
        write_history(store.root, search.history())
    with locked(store.root / "claims" / "tuned.lock"):
        chosen = write_chosen(store.root, code_of)
    names = {search.name for search in searches}
    return [c for c in chosen if c.study in names]
