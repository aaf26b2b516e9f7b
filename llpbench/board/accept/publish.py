"""Adding the results of a run to a leaderboard: each is checked; of two for one cell the better documented stays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from llpbench.board.checks.audit import protocol_of
from llpbench.board.checks.curve import check_curve
from llpbench.board.checks.derived import check_derived
from llpbench.board.checks.recompute import Arrays, check_metrics, classes_of
from llpbench.board.checks.trace import check_commands, check_stated, check_traced, name_today, set_names
from llpbench.board.checks.unused import drop_unused
from llpbench.board.content.bootstrap import Replicates, check_replicates, read_predictions, replicate
from llpbench.board.content.facts import (
    MachineFacts,
    check_facts,
    dataset_facts,
    method_facts,
    metric_facts,
    rule_facts,
)
from llpbench.board.content.folder import Content, read_machine
from llpbench.board.content.lines import check_result, compact, seal
from llpbench.board.content.origin import is_unreleased
from llpbench.board.content.searched import check_search, check_trials, is_tuned, read_studies
from llpbench.board.content.splits import Splits
from llpbench.board.schema.overall import SuiteAbout
from llpbench.board.validate import RESULT_BYTES, Unsound, check_id, plain_folder, read_plain, short_line
from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.experiment.plan import Planned
from llpbench.experiment.suites.coverage import suite_coverage
from llpbench.experiment.suites.file import read_suite, suite_files
from llpbench.experiment.tuned import History
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import Damaged, decode_result
from llpbench.results.store import Manifest


@dataclass
class Added:
    """What became of every result of a run: cell ids, with the reason where there is one."""

    added: list[str] = field(default_factory=list)
    replaced: list[tuple[str, str]] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    renamed: list[tuple[str, str]] = field(default_factory=list)
    unreleased: int = 0
    missing: int = 0


def add_results(
    run: Path, content: Content, registry: Registry, *, replace: bool = False, tuned: Iterable[Path] = ()
) -> Added:
    """Put the results of a run into ``content``. What is refused is left out, the rest goes in.

    Args:
        run: a results folder.
        content: what is published already; it is changed.
        registry: what is installed: results of anything else cannot be traced.
        replace: results of this run win over published ones that are no better documented.
        tuned: folders of searches that chose parameters of this run.
    """
    manifest = read_manifest(run)
    report = Added()
    desk = Desk(run, content, registry, tuned)
    for cell_id, planned in manifest.planned.items():
        try:
            check_id(cell_id)
            path = run / "cells" / f"{cell_id}.json"
            if not path.exists() and not path.is_symlink():
                report.missing += 1
                continue
            check_commands(manifest.commands)
            if planned.cell.id != cell_id:
                raise Unsound("its plan is of another cell")
            submission = desk.read(cell_id, planned)
        except (Unsound, Damaged, RecursionError) as problem:
            report.refused.append((short_line(cell_id), short_line(str(problem))))
            continue
        if take(content, report, submission, replace=replace):
            desk.splits.add(submission.result, submission.replicates)
            if submission.search is not None:
                content.searches[submission.search.study] = submission.search
    taken = [content.lines[cell_id].result for cell_id in (*report.added, *(cell_id for cell_id, _ in report.replaced))]
    _rename(content, report, registry, {planned.cell.method for planned in manifest.planned.values()})
    settle(content, registry, desk.splits, taken)
    return report


def settle(content: Content, registry: Registry, splits: Splits, taken: Iterable[CellResult] | None = None) -> None:
    """Bring what stands beside the cells up to date; ``StoreError`` where it could not be published.

    ``taken`` are the cells that are new, if only what these are of is to be described anew.
    """
    drop_unused(content, registry, splits)
    refresh_facts(content, registry, taken)
    refresh_suites(content, registry)
    try:
        check_facts(content.facts)
    except Unsound as problem:
        raise StoreError(
            f"nothing was published: {problem}. The package that brings it must name it otherwise."
        ) from None


@dataclass(frozen=True)
class Accepted:
    """A result that passed every check, and what is published beside it."""

    result: CellResult
    source: str
    machine: MachineFacts
    replicates: Replicates | None
    search: History | None


class Desk:
    """Where the results of one run are checked: each by itself, and beside what is published."""

    def __init__(self, run: Path, content: Content, registry: Registry, tuned: Iterable[Path] = ()) -> None:
        self.run, self.content, self.registry = run, content, registry
        self.protocol = protocol_of(content) or PROTOCOL
        self.studies = read_studies(tuned)
        self.splits = Splits()
        for cell_id, line in content.lines.items():
            if line.result.status == "ok":
                self.splits.add(line.result, content.replicates.get(cell_id))

    def read(self, cell_id: str, planned: Planned) -> Accepted:
        """A result with everything that is published beside it; ``Unsound`` with the reason when it is refused."""
        data = read_plain(self.run / "cells" / f"{cell_id}.json", RESULT_BYTES)
        result = decode_result(data)
        if result.id != cell_id:
            raise Unsound(f"it holds the result of cell {result.id}")
        result.method_name, result.dataset_name = planned.method_name, planned.dataset_name
        if result.status != "ok":  # a cell that was stopped could not say so itself
            result.oracle = planned.oracle
            result.protocol = result.protocol if result.versions else self.protocol
        check_result(result)
        if result.predictions_only:
            raise Unsound("predictions are published from the folder that was handed in, which is scored here")
        if result.cell.method in self.content.submissions:
            raise Unsound(f"{result.cell.method} is published as predictions only; these go before it is run")
        if result.protocol != self.protocol:
            raise Unsound(
                f"it was made under protocol {result.protocol}, this leaderboard is of protocol {self.protocol}"
            )
        check_traced(result, self.registry)
        set_names(result, self.registry)
        machine = self._machine(result)
        check_stated(result, machine)
        replicates, search = None, None
        if result.status == "ok":
            if self.protocol > 1 and not result.wall_seconds:
                raise Unsound("it does not say how long its process took (wall_seconds)")
            check_derived(result, (2, 3))
            arrays = self._arrays(result)
            check_derived(result, {classes_of(arrays[rule]) for rule in result.selected})
            method = self.registry.methods[result.cell.method]
            higher = {rule: self.registry.rules[rule].higher_is_better for rule in result.selected}
            check_curve(result, higher, kind_may_change=method.scores == "auto")
            fine = check_metrics(result, arrays, method, self.registry.metrics.specs)
            replicates = replicate(result, arrays) if fine else None
            if replicates is not None:
                check_replicates(result, replicates)
            self.splits.check(result, replicates)
            search = self._search(result) if is_tuned(result.cell) else None
        return Accepted(result, _source(data), machine, replicates, search)

    def _machine(self, result: CellResult) -> MachineFacts:
        machine = read_machine(self.run / "machines" / f"{result.machine}.json")
        if self.content.machines.get(result.machine, machine) != machine:
            raise Unsound(f"its machine {result.machine} is published with another description")
        return machine

    def _arrays(self, result: CellResult) -> Arrays:
        path = self.run / "predictions" / f"{result.id}.npz"
        if not path.exists() and not path.is_symlink():
            raise Unsound("it has no predictions, so its metrics cannot be recomputed (run without --no-predictions)")
        return read_predictions(path, result.selected)

    def _search(self, result: CellResult) -> History:
        method = self.registry.methods[result.cell.method]
        found = check_search(result, (shown.history for shown in self.studies), method, self.splits)
        check_trials(next(shown for shown in self.studies if shown.history is found))
        return found


def read_manifest(run: Path) -> Manifest:
    """The plan of a results folder that is really one."""
    try:
        for folder in (run, run / "cells"):
            plain_folder(folder)
        return msgspec.json.decode(read_plain(run / "manifest.json"), type=Manifest)
    except (Unsound, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"{run} is not a results folder that can be read: {error}.") from None


def _source(data: bytes) -> str:
    digest: str = msgspec.json.decode(data)["digest"]
    return digest


def take(content: Content, report: Added, new: Accepted, *, replace: bool) -> bool:
    """Put a submission in, or leave what is there; whether it went in."""
    result, replicates = new.result, new.replicates
    small = compact(result)
    old = content.lines.get(result.id)
    if old is not None:
        if old.source == new.source and (replicates is None or result.id in content.replicates):
            report.kept.append((result.id, "it is there already"))
            return False
        before = _documentation(old.result, result.id in content.replicates)
        now = _documentation(small, replicates is not None)
        why = next((name for name, a, b in zip(_ASPECTS, before, now, strict=True) if a != b), "")
        if now < before or (now == before and not replace):
            report.kept.append((result.id, why or "it was published first and is as well documented"))
            return False
        why = why or "asked for, and as well documented"
        report.replaced.append((result.id, why))
    else:
        report.added.append(result.id)
    report.unreleased += is_unreleased(result)
    content.lines[result.id] = seal(small, new.source)
    content.machines[result.machine] = new.machine
    content.replicates.pop(result.id, None)
    content.marks.pop(result.id, None)
    if replicates is not None:
        content.replicates[result.id] = replicates
    return True


_ASPECTS = ("only one has a number", "only one has replicates")


def _documentation(result: CellResult, replicates: bool) -> tuple[bool, bool]:
    """How well a result is documented, the weightiest part first. How much it lists is no merit."""
    return (result.status == "ok", replicates)


def _rename(content: Content, report: Added, registry: Registry, methods: Iterable[str]) -> None:
    """Give published cells of these methods the names that today's defaults give them; others are not touched."""
    named = set(methods)
    for cell_id, line in content.lines.items():
        if line.result.cell.method not in named:
            continue
        entry = registry.methods.entries.get(line.result.cell.method)
        name = None if entry is None else name_today(line.result.cell, entry.spec)
        if name is not None and name != line.result.method_name:
            report.renamed.append((cell_id, f"{line.result.method_name} is now {name}"))
            line.result.method_name = name
            content.lines[cell_id] = seal(line.result, line.source)


def refresh_facts(content: Content, registry: Registry, of: Iterable[CellResult] | None = None) -> None:
    """What registered things say of themselves now; what is not installed stays as it was.

    Args:
        content: the leaderboard; its facts are changed.
        registry: what is installed.
        of: results whose methods, datasets, metrics and rules are described anew; all of the leaderboard's when it is
            None. Who adds cells with another release of llpbench describes nothing else: that is not theirs to say.
    """
    facts = content.facts
    results = [line.result for line in content.lines.values()] if of is None else list(of)
    for name in {r.cell.method for r in results} & set(registry.methods.entries):
        entry = registry.methods.entries[name]
        facts.methods[name] = method_facts(entry.spec, entry.plugin.origin)
    for name in {r.cell.dataset for r in results} & set(registry.datasets.entries):
        found = registry.datasets.entries[name]
        facts.datasets[name] = dataset_facts(found.spec, found.plugin.origin)
    stated = {m for r in results for s in r.selected.values() for m in s.metrics}
    for name in stated & set(registry.metrics.entries):
        facts.metrics[name] = metric_facts(registry.metrics[name])
    rules = {rule for r in results for rule in r.selected if r.protocol > 1} & set(registry.rules.entries)
    stored = facts.rules if isinstance(facts.rules, dict) else {}
    facts.rules = {**stored, **{name: rule_facts(registry.rules[name]) for name in rules}}
    datasets = {r.cell.dataset for r in results}
    if of is None or any(r.dataset in datasets and r not in facts.references for r in registry.references()):
        _refresh_references(content, registry)


def _refresh_references(content: Content, registry: Registry) -> None:
    """Numbers of publications as they are installed, of all datasets: several are of one source."""
    facts, installed = content.facts, registry.references()
    published = {line.result.cell.dataset for line in content.lines.values()}
    given = [r for r in installed if r.dataset in published]
    sources = {r.source for r in given}
    facts.references = [r for r in facts.references if r.source not in sources] + given


def refresh_suites(content: Content, registry: Registry) -> None:
    """How much there is of every suite that is installed; what was said of others, or cannot be planned here, stays."""
    results = [line.result for line in content.lines.values()]
    for name, path in suite_files(registry).items():
        with contextlib.suppress(UsageError):  # made for other versions than these
            suite = read_suite(path)
            parts = suite_coverage(suite, registry, results)
            if any(part.done for part in parts):
                lines = tuple(part.line for part in parts)
                content.facts.suites[name] = SuiteAbout(title=suite.title, state=suite.state, parts=lines)
