"""Publishing: adding the results of a run to a leaderboard, after checking every one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from llpbench.board.audit import unused_machines, unused_searches
from llpbench.board.checks import (
    Arrays,
    check_commands,
    check_derived,
    check_metrics,
    check_traced,
    classes_of,
    registered,
)
from llpbench.board.content.bootstrap import Replicates, read_predictions, replicate
from llpbench.board.content.facts import (
    MachineFacts,
    SuiteAbout,
    check_facts,
    dataset_facts,
    method_facts,
    metric_facts,
    rule_facts,
)
from llpbench.board.content.folder import Content, read_machine
from llpbench.board.content.lines import check_result, compact, is_unreleased, seal
from llpbench.board.content.searches import find_search, is_tuned, read_histories
from llpbench.board.content.splits import Splits
from llpbench.board.validate import RESULT_BYTES, Unsound, read_plain, short_line
from llpbench.contracts.cell import USUAL, Cell
from llpbench.contracts.errors import LLPBenchError, StoreError, UsageError
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.contracts.specs import MethodSpec
from llpbench.experiment.grid import Schemes, Variant, shown_data
from llpbench.experiment.plan import Planned
from llpbench.experiment.suites.coverage import suite_coverage
from llpbench.experiment.suites.file import read_suite, suite_files
from llpbench.experiment.tuned import History
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import Damaged, decode_result
from llpbench.results.store import Store


@dataclass
class Added:
    """What happened to each result of a run: cell ids, with the reason if there is one."""

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
    """Add the results of a run to ``content``; invalid results are left out and reported.

    Args:
        run: a results folder.
        content: the leaderboard; it is changed.
        registry: what is installed; results of anything else are refused.
        replace: overwrite published cells.
        tuned: folders of the searches that chose parameters of this run.
    """
    manifest = Store(run).manifest()
    report = Added()
    reader = RunReader(run, content, registry, tuned)
    for cell_id, planned in manifest.planned.items():
        try:
            path = run / "cells" / f"{cell_id}.json"
            if not path.exists() and not path.is_symlink():
                report.missing += 1
                continue
            check_commands(manifest.commands)
            new = reader.read(cell_id, planned)
        except (Unsound, Damaged, RecursionError) as problem:
            report.refused.append((short_line(cell_id), short_line(str(problem))))
            continue
        if _publish(content, report, new, replace=replace):
            reader.splits.add(new.result, new.replicates)
    taken = [content.lines[cell_id].result for cell_id in (*report.added, *(cell_id for cell_id, _ in report.replaced))]
    _rename(content, report, registry, {planned.cell.method for planned in manifest.planned.values()})
    for name in unused_machines(content):
        del content.machines[name]
    for name in unused_searches(content, reader.splits):
        del content.searches[name]
    refresh_facts(content, registry, taken)
    refresh_suites(content, registry)
    try:
        check_facts(content.facts)
    except Unsound as problem:
        raise StoreError(f"nothing was published: {problem}. The package that provides it must rename it.") from None
    return report


@dataclass(frozen=True)
class CheckedResult:
    """A result that passed every check, with what is published beside it; ``source`` is the digest of its file."""

    result: CellResult
    source: str
    machine: MachineFacts
    replicates: Replicates | None = None
    search: History | None = None


class RunReader:
    """Reads the results of one run and checks them, each by itself and against the published cells."""

    def __init__(self, run: Path, content: Content, registry: Registry, tuned: Iterable[Path] = ()) -> None:
        self.run, self.content, self.registry = run, content, registry
        self.histories = read_histories(tuned)
        self.splits = Splits()
        for cell_id, line in content.lines.items():
            if line.result.status == "ok":
                self.splits.add(line.result, content.replicates.get(cell_id))

    def read(self, cell_id: str, planned: Planned) -> CheckedResult:
        """Return a result with what is published beside it; raise ``Unsound`` if it is invalid."""
        data = read_plain(self.run / "cells" / f"{cell_id}.json", RESULT_BYTES)
        result = decode_result(data)
        source: str = msgspec.json.decode(data)["digest"]
        if not cell_id == result.id == planned.cell.id:
            raise Unsound(f"its file holds the result of cell {result.id}")
        result.method_name, result.dataset_name = planned.method_name, planned.dataset_name
        if result.status != "ok":  # a cell that was stopped could not state it itself
            result.oracle = planned.oracle
        check_result(compact(result))
        if result.protocol != PROTOCOL:
            raise Unsound(f"it was made under protocol {result.protocol}, expected {PROTOCOL}")
        check_traced(result, self.registry)
        _set_names(result, self.registry)
        machine = self._machine(result)
        if result.status != "ok":
            return CheckedResult(result, source, machine)
        method = self.registry.methods[result.cell.method]
        arrays = self._predictions(result)
        check_derived(result, {classes_of(arrays[rule]) for rule in result.selected}, method.seed_name)
        check_metrics(result, arrays, method, self.registry.metrics.specs)
        replicates = replicate(result, arrays)
        self.splits.check(result, replicates)
        search = find_search(result, self.histories, self.splits, method) if is_tuned(result.cell) else None
        return CheckedResult(result, source, machine, replicates, search)

    def _machine(self, result: CellResult) -> MachineFacts:
        machine = read_machine(self.run / "machines" / f"{result.machine}.json")
        if self.content.machines.get(result.machine, machine) != machine:
            raise Unsound(f"its machine {result.machine} is published with a different description")
        return machine

    def _predictions(self, result: CellResult) -> Arrays:
        path = self.run / "predictions" / f"{result.id}.npz"
        if not path.exists():
            raise Unsound(
                "its predictions are missing, so its metrics cannot be recomputed; run without --no-predictions"
            )
        return read_predictions(path, result.selected)


def _publish(content: Content, report: Added, new: CheckedResult, *, replace: bool) -> bool:
    """Add a result or keep the published cell; return whether it was added."""
    result = new.result
    old = content.lines.get(result.id)
    if old is not None:
        had, has = old.result.status == "ok", result.status == "ok"
        if old.source == new.source and (not has or result.id in content.replicates):
            report.kept.append((result.id, "already published"))
            return False
        if had > has or (had == has and not replace):
            reason = "the published cell has a number" if had > has else "already published; --replace overwrites it"
            report.kept.append((result.id, reason))
            return False
        report.replaced.append((result.id, "--replace" if had == has else "the published cell had no number"))
    else:
        report.added.append(result.id)
    report.unreleased += is_unreleased(result)
    content.lines[result.id] = seal(compact(result), new.source)
    content.machines[result.machine] = new.machine
    content.replicates.pop(result.id, None)
    content.marks.pop(result.id, None)
    if new.replicates is not None:
        content.replicates[result.id] = new.replicates
    if new.search is not None:
        content.searches[new.search.study] = new.search
    return True


def name_today(cell: Cell, method: MethodSpec) -> str | None:
    """Return the name of a method with the settings of a cell under today's defaults; None if it has a preset.

    A name states what differs from the defaults: what was ``a`` under old defaults is ``a[lr=0.1]`` under new ones.
    """
    if cell.preset:
        return None
    try:
        complete = method.resolve(cell.params) == cell.params
    except LLPBenchError:
        return None
    return Variant(method, cell.params).name if complete else None


def _set_names(result: CellResult, registry: Registry) -> None:
    """Name a result after its settings, whatever its run called it."""
    cell = result.cell
    result.method_name = name_today(cell, registry.methods[cell.method]) or result.method_name
    dataset = Variant(registry.datasets[cell.dataset], cell.dataset_options)
    without = result.oracle and cell.split == USUAL.split
    if not without:
        for each in cell.schemes:
            registered(registry.schemes, each.scheme)
    scheme = None if without else Schemes.of(cell, registry.schemes)
    result.dataset_name = shown_data(cell, dataset, scheme)


def _rename(content: Content, report: Added, registry: Registry, methods: Iterable[str]) -> None:
    """Give the published cells of these methods the names that today's defaults give them."""
    for name in methods:
        if name not in registry.methods.entries:
            continue
        for cell_id, line in content.lines.items():
            today = name_today(line.result.cell, registry.methods[name]) if line.result.cell.method == name else None
            if today is not None and today != line.result.method_name:
                report.renamed.append((cell_id, f"{line.result.method_name} is now {today}"))
                line.result.method_name = today
                content.lines[cell_id] = seal(line.result, line.source)


def refresh_facts(content: Content, registry: Registry, of: Iterable[CellResult] | None = None) -> None:
    """Update the descriptions of methods, datasets, metrics and rules; what is not installed keeps its description.

    Args:
        content: the leaderboard; its facts are changed.
        registry: what is installed.
        of: results whose methods, datasets, metrics and rules are updated; by default those of all published cells.
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
    rules = {rule for r in results for rule in r.selected} & set(registry.rules.entries)
    stored = facts.rules if isinstance(facts.rules, dict) else {}
    facts.rules = {**stored, **{name: rule_facts(registry.rules[name]) for name in rules}}
    datasets = {r.cell.dataset for r in results}
    if of is None or any(r.dataset in datasets and r not in facts.references for r in registry.references()):
        _refresh_references(content, registry)


def _refresh_references(content: Content, registry: Registry) -> None:
    """Take the numbers of publications from the installed packages, for all published datasets."""
    facts, installed = content.facts, registry.references()
    published = {line.result.cell.dataset for line in content.lines.values()}
    given = [r for r in installed if r.dataset in published]
    sources = {r.source for r in given}
    facts.references = [r for r in facts.references if r.source not in sources] + given


def refresh_suites(content: Content, registry: Registry) -> None:
    """Update how much of each frozen suite is published; suites that cannot be planned here are left as they are."""
    results = [line.result for line in content.lines.values()]
    for name, path in suite_files(registry).items():
        with contextlib.suppress(UsageError):  # it was frozen with other versions
            suite = read_suite(path)
            parts = suite_coverage(suite, registry, results) if suite.published else ()
            if any(part.done for part in parts):
                lines = tuple(part.line for part in parts)
                content.facts.suites[name] = SuiteAbout(title=suite.title, state=suite.state, parts=lines)
