"""All checks of a published leaderboard that its own files allow, and what they cannot prove."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from llpbench.board.checks.derived import check_derived, check_noise_named
from llpbench.board.checks.trace import check_label, check_named, check_stated, check_traced
from llpbench.board.checks.unused import unused_machines, unused_searches
from llpbench.board.content.bootstrap import check_replicates
from llpbench.board.content.folder import Content
from llpbench.board.content.origin import is_unreleased
from llpbench.board.content.searched import check_search, is_tuned
from llpbench.board.content.splits import Splits
from llpbench.board.content.verified import check_marks
from llpbench.board.validate import Unsound, short_line
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.plugins.registry import Registry
from llpbench.results.metric_style import OWN_METRICS
from llpbench.results.table import data_key


@dataclass
class Audit:
    """What was found: ``problems`` fail a check; ``notes`` say what could not be looked at, and why."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    untraced: dict[str, int] = field(default_factory=dict)


def protocol_of(content: Content) -> int | None:
    """The protocol of a leaderboard; None when nothing is published. A board that mixes them is ``Unsound``."""
    found = sorted({line.result.protocol for line in content.lines.values()})
    if len(found) > 1:
        raise Unsound(f"results of protocol {' and '.join(map(str, found))}: numbers of two are not compared")
    return found[0] if found else None


def audit(content: Content, registry: Registry | None = None) -> Audit:
    """Look at every published cell by itself, beside the others, and beside what is installed."""
    report = Audit()
    try:
        protocol = protocol_of(content) or PROTOCOL
    except Unsound as problem:
        report.problems.append(str(problem))
        protocol = PROTOCOL
    splits = Splits()
    untraced: Counter[str] = Counter()
    for cell_id, line in sorted(content.lines.items()):
        for check in (_check_alone, _check_beside):
            _guarded(report, cell_id, check, line.result, content, splits)
        if registry is not None and line.result.protocol == PROTOCOL:
            absent = _not_installed(line.result, registry)
            untraced.update([*absent, *_unknown_metrics(line.result, registry)])
            if not absent:
                _guarded(report, cell_id, _check_installed, line.result, registry)
    for cell_id, line in sorted(content.lines.items()):
        if is_tuned(line.result.cell) and line.result.status == "ok" and line.result.protocol > 1:
            _guarded(report, cell_id, _check_search, line.result, content, registry, splits)
    report.problems += [
        f"replicates of {cell_id}: no cell of that id is published"
        for cell_id in sorted(set(content.replicates) - set(content.lines))
    ]
    report.problems += [f"machine {name}: no cell was made on it" for name in sorted(unused_machines(content))]
    searches = sorted(unused_searches(content, registry, splits))
    report.problems += [f"search {short_line(name)}: it chose the parameters of no cell" for name in searches]
    report.problems += _mixed_rules(content)
    report.problems += check_marks(content.marks, content.lines)
    report.problems += _submissions(content, registry)
    report.untraced = dict(untraced)
    report.notes += _notes(content, protocol, report)
    return report


def _guarded(report: Audit, cell_id: str, check: Callable[..., None], *given: object) -> None:
    try:
        check(*given)
    except Unsound as problem:
        report.problems.append(f"cell {cell_id}: {problem}")


def _check_alone(result: CellResult, content: Content, splits: Splits) -> None:
    """What a cell must be by itself: known, stated, derived."""
    del splits
    cell = result.cell
    for kind, name, known in (
        ("method", cell.method, content.facts.methods),
        ("dataset", cell.dataset, content.facts.datasets),
    ):
        if name not in known:
            raise Unsound(f"facts.json knows no {kind} {name!r}")
    facts = content.facts.methods[cell.method]
    if result.oracle != facts.oracle:
        raise Unsound(f"{cell.method} {'is' if facts.oracle else 'is not'} given labels, the result differs")
    stated = {name for chosen in result.selected.values() for name in chosen.metrics} - {"bag_error"}
    for name in sorted(stated - set(content.facts.metrics)):
        raise Unsound(f"facts.json knows no metric {name!r}")
    if result.protocol > 1 and not result.predictions_only:  # these have a name of their own kind
        check_label(result)
    check_noise_named(cell)
    machine = content.machines[result.machine]
    check_stated(result, machine)
    if result.status != "ok":
        return
    check_derived(result, (2, 3))
    _check_accuracy(result)


def _check_beside(result: CellResult, content: Content, splits: Splits) -> None:
    """What a cell must have in common with others of its split, and with its replicates."""
    if result.status != "ok":
        return
    replicates = content.replicates.get(result.id)
    if replicates is None and result.protocol > 1:
        raise Unsound("it has no replicates: it was published without predictions")
    if replicates is not None:
        check_replicates(result, replicates)
    splits.check(result, replicates)
    splits.add(result, replicates)


def _check_accuracy(result: CellResult) -> None:
    """An accuracy is a number of rows among the test rows."""
    rows = result.rows["test"]
    for rule, chosen in result.selected.items():
        value = chosen.metrics.get("accuracy")
        if value is not None and abs(value * rows - round(value * rows)) > 1e-6 * rows:
            raise Unsound(f"no number of its {rows} test rows gives accuracy {value:.6g} under {rule!r}")


def _not_installed(result: CellResult, registry: Registry) -> list[str]:
    """What made a cell and is not here."""
    cell = result.cell
    unknown = cell.method not in registry.methods.entries and not result.predictions_only
    absent = [f"method {cell.method}"] if unknown else []
    absent += [f"dataset {cell.dataset}"] if cell.dataset not in registry.datasets.entries else []
    return absent + [f"selection rule {rule}" for rule in result.selected if rule not in registry.rules.entries]


def _unknown_metrics(result: CellResult, registry: Registry) -> list[str]:
    """Metrics of a cell that nothing installed brings: nobody here can say what they are."""
    stated = {name for chosen in result.selected.values() for name in chosen.metrics}
    known = {*registry.metrics.entries, *(style.name for style in OWN_METRICS)}
    return [f"metric {name}" for name in sorted(stated - known)]


def _check_installed(result: CellResult, registry: Registry) -> None:
    """Hold a cell to what is installed, where that is the release that made it; predictions were made by none."""
    if result.predictions_only:
        return
    entry = registry.methods.entries[result.cell.method]
    version = result.versions.get(entry.plugin.distribution)
    if result.status == "ok" and version == entry.plugin.version:
        check_traced(result, registry)
        check_named(result, registry)


def _check_search(result: CellResult, content: Content, registry: Registry | None, splits: Splits) -> None:
    entry = None if registry is None else registry.methods.entries.get(result.cell.method)
    check_search(result, content.searches.values(), None if entry is None else entry.spec, splits)


def _submissions(content: Content, registry: Registry | None) -> list[str]:
    """Predictions without a description, descriptions without predictions, and names that stand for two things."""
    told = {line.result.cell.method for line in content.lines.values() if line.result.predictions_only}
    run = {line.result.cell.method for line in content.lines.values() if not line.result.predictions_only}
    known = set() if registry is None else set(registry.methods.entries)
    problems = [
        f"submissions/{name}.json: there is none, and cells of it are" for name in told - set(content.submissions)
    ]
    problems += [f"submissions/{name}.json: no cell of it is published" for name in set(content.submissions) - told]
    problems += [f"{name} was handed in as predictions and is a method that runs" for name in told & (run | known)]
    for line in content.lines.values():
        result, about = line.result, content.submissions.get(line.result.cell.method)
        if result.predictions_only and about is not None and result.cell.params != about.params:
            problems.append(f"cell {result.id}: its parameters are not those of its submission")
    return sorted(problems)


def _mixed_rules(content: Content) -> list[str]:
    """Rules of which a board holds several versions."""
    versions: dict[str, set[int]] = {}
    for line in content.lines.values():
        for rule, version in line.result.rules.items():
            versions.setdefault(rule, set()).add(version)
    return [
        f"rule {rule!r} has version {' and '.join(map(str, sorted(found)))} here: their numbers are not compared"
        for rule, found in sorted(versions.items())
        if len(found) > 1
    ]


def _notes(content: Content, protocol: int, report: Audit) -> list[str]:
    results = [line.result for line in content.lines.values() if line.result.status == "ok"]
    notes = []
    if results and protocol < 2:
        notes.append(
            f"protocol {protocol}: these results do not say which code made them, which version of the rules chose "
            "them, nor which test labels they were judged on; only running them again can prove their numbers"
        )
    bare = sum(r.id not in content.replicates for r in results)
    if bare:
        notes.append(f"{bare} of {len(results)} cells have no replicates: their AUROC was compared with nothing")
    if unreleased := sum(map(is_unreleased, results)):
        notes.append(f"{unreleased} of {len(results)} cells were made by unreleased code")
    if told := sum(r.predictions_only for r in results):
        notes.append(
            f"{told} of {len(results)} cells are predictions only: scored here, never run here; not ranked; "
            "whether they came from bags and counts alone cannot be seen"
        )
    notes += above_bounds(results)
    if results:
        notes.append(
            "metrics beside AUROC and accuracy, seconds and memory are compared with nothing here: "
            "check --results FOLDER recomputes metrics, leaderboard verify runs cells again"
        )
    for name, cells in sorted(report.untraced.items()):
        notes.append(f"{name}: not installed here, so {cells} of its cells were not traced")
    return notes


def above_bounds(results: Iterable[CellResult]) -> list[str]:
    """Cells of predictions that beat a method which was given the labels, on the same rows: they want a second look."""
    results = [r for r in results if r.status == "ok"]
    bounds: dict[tuple[str, int], float] = {}
    for r in results:
        if r.oracle:
            key = (data_key(r.cell), r.cell.seed)
            bounds[key] = max(bounds.get(key, 0.0), *(c.metrics.get("auroc") or 0.0 for c in r.selected.values()))
    found = []
    for r in results:
        bound = bounds.get((data_key(r.cell), r.cell.seed))
        best = max((c.metrics.get("auroc") or 0.0 for c in r.selected.values()), default=0.0)
        if r.predictions_only and bound is not None and best > bound:
            found.append(f"cell {r.id} ({r.method_name}): AUROC {100 * best:.2f}, above the bound's {100 * bound:.2f}")
    return found
