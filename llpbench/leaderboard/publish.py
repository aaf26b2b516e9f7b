"""Adding the results of a run to a leaderboard: each is checked; of two for one cell the better documented stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult
from llpbench.leaderboard.bootstrap import Replicates, replicate
from llpbench.leaderboard.facts import DatasetFacts, MachineFacts, MethodFacts, metric_facts, rule_facts
from llpbench.leaderboard.folder import Content, read_machine
from llpbench.leaderboard.lines import check_result, compact, seal
from llpbench.leaderboard.trace import check_commands, check_traced, name_today, set_names
from llpbench.leaderboard.validate import RESULT_BYTES, Unsound, check_id, plain_folder, read_plain, short_line
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
    without_predictions: int = 0
    missing: int = 0


def add_results(run: Path, content: Content, registry: Registry, *, replace: bool = False) -> Added:
    """Put the results of a run into ``content``. What is refused is left out, the rest goes in.

    Args:
        run: a results folder.
        content: what is published already; it is changed.
        registry: what is installed: results of anything else cannot be traced.
        replace: results of this run win over published ones that are no better documented.
    """
    manifest = _manifest(run)
    report = Added()
    for cell_id, planned in manifest.planned.items():
        try:
            check_id(cell_id)
            path = run / "cells" / f"{cell_id}.json"
            if not path.exists() and not path.is_symlink():
                report.missing += 1
                continue
            check_commands(manifest.commands)
            data = read_plain(path, RESULT_BYTES)
            result = decode_result(data)
            if result.id != cell_id:
                raise Unsound(f"it holds the result of cell {result.id}")
            result.method_name, result.dataset_name = planned.method_name, planned.dataset_name
            if result.status != "ok":  # a cell that was stopped could not say so itself
                result.oracle = planned.oracle
            check_result(result)
            check_traced(result, registry)
            set_names(result, registry)
            machine = read_machine(run / "machines" / f"{result.machine}.json")
            replicates = _replicates(run, result)
        except (Unsound, Damaged, RecursionError) as problem:
            report.refused.append((short_line(cell_id), short_line(str(problem))))
            continue
        _take(content, report, result, _source(data), machine, replicates, replace=replace)
    _rename(content, report, registry)
    _refresh_facts(content, registry)
    return report


def _manifest(run: Path) -> Manifest:
    try:
        for folder in (run, run / "cells"):
            plain_folder(folder)
        return msgspec.json.decode(read_plain(run / "manifest.json"), type=Manifest)
    except (Unsound, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"{run} is not a results folder that can be read: {error}.") from None


def _source(data: bytes) -> str:
    digest: str = msgspec.json.decode(data)["digest"]
    return digest


def _replicates(run: Path, result: CellResult) -> Replicates | None:
    path = run / "predictions" / f"{result.id}.npz"
    if result.status != "ok" or (not path.exists() and not path.is_symlink()):
        return None
    return replicate(result, path)


def _take(
    content: Content,
    report: Added,
    result: CellResult,
    source: str,
    machine: MachineFacts,
    replicates: Replicates | None,
    *,
    replace: bool,
) -> None:
    small = compact(result)
    line = seal(small, source)
    old = content.lines.get(result.id)
    report.without_predictions += result.status == "ok" and replicates is None
    if old is not None:
        if old.source == source and (replicates is None or result.id in content.replicates):
            report.kept.append((result.id, "it is there already"))
            return
        before = _documentation(old.result, result.id in content.replicates)
        now = _documentation(small, replicates is not None)
        why = next((name for name, a, b in zip(_ASPECTS, before, now, strict=True) if a != b), "")
        if now < before or (now == before and not replace):
            report.kept.append((result.id, why or "it was published first and is as well documented"))
            return
        why = why or "asked for, and as well documented"
        report.replaced.append((result.id, why))
    else:
        report.added.append(result.id)
    content.lines[result.id] = line
    content.machines[result.machine] = machine
    content.replicates.pop(result.id, None)
    if replicates is not None:
        content.replicates[result.id] = replicates


_ASPECTS = ("only one has a number", "only one has predictions", "one names more versions")


def _documentation(result: CellResult, predictions: bool) -> tuple[bool, bool, int]:
    """How well a result is documented, the weightiest part first."""
    return (result.status == "ok", predictions, len(result.versions))


def _rename(content: Content, report: Added, registry: Registry) -> None:
    """Give published cells the names that today's defaults give them."""
    for cell_id, line in content.lines.items():
        entry = registry.methods.entries.get(line.result.cell.method)
        name = None if entry is None else name_today(line.result.cell, entry.spec)
        if name is not None and name != line.result.method_name:
            report.renamed.append((cell_id, f"{line.result.method_name} is now {name}"))
            line.result.method_name = name
            content.lines[cell_id] = seal(line.result, line.source)


def _refresh_facts(content: Content, registry: Registry) -> None:
    """What registered things say of themselves now; what is not installed stays as it was."""
    facts = content.facts
    results = [line.result for line in content.lines.values()]
    for name in {r.cell.method for r in results} & set(registry.methods.entries):
        entry = registry.methods.entries[name]
        spec, origin = entry.spec, entry.plugin.origin
        facts.methods[name] = MethodFacts(summary=spec.summary, origin=origin, oracle=spec.oracle, control=spec.control)
    datasets = {r.cell.dataset for r in results}
    for name in datasets & set(registry.datasets.entries):
        found = registry.datasets.entries[name]
        facts.datasets[name] = DatasetFacts(
            summary=found.spec.summary, origin=found.plugin.origin, task=found.spec.task
        )
    stated = {m for r in results for s in r.selected.values() for m in s.metrics}
    for name in stated & set(registry.metrics.entries):
        facts.metrics[name] = metric_facts(registry.metrics[name])
    rules = {rule for r in results for rule in r.selected} & set(registry.rules.entries)
    stored = facts.rules if isinstance(facts.rules, dict) else {}
    facts.rules = {**stored, **{name: rule_facts(registry.rules[name]) for name in rules}}
    given = [r for r in registry.references() if r.dataset in datasets]
    sources = {r.source for r in given}
    facts.references = [r for r in facts.references if r.source not in sources] + given
