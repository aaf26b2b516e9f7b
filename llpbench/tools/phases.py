"""Tables of the seconds of a fit by phase, and of the quality of pseudo-labels by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.report.tables import Key, Table, TableEntry
from llpbench.results.table import Group, group_cells, mean_sd

Parts = dict[str, float]
_TOTAL, _REPORTS = "total", "reports"
_WHAT_REPORTS_ARE = "reports: predicting and scoring held-out and test rows for all reports, not part of the fit"


def time_tables(
    store: object, planned: Iterable[Planned], results: Iterable[CellResult], *others: object
) -> list[Table]:
    """Seconds of every phase of a fit, their sum, and those of reports: a table for each dataset and noise level."""
    del store, others

    def seconds(result: CellResult) -> Parts:
        phases = result.phases if len(result.phases) > 1 else {}
        return {**phases, _TOTAL: result.fit_seconds, _REPORTS: result.report_seconds}

    groups = group_cells(planned, results)
    machines: dict[str, set[str]] = {}
    for group in groups:
        machines.setdefault(group.setting.dataset, set()).update(r.machine for r in group.found if r.machine)
    notes = {
        dataset: f"made on {len(found)} machines: compare times within one only"
        for dataset, found in machines.items()
        if len(found) > 1
    }
    return _tables(groups, "seconds by phase", seconds, always=[_TOTAL], notes=notes)


def pseudo_tables(
    store: object, planned: Iterable[Planned], results: Iterable[CellResult], *others: object
) -> list[Table]:
    """AUROC of pseudo-labels against the training labels, by stage: a table for each dataset and noise level."""
    del store, others

    def quality(result: CellResult) -> Parts:
        return {stage: 100 * value for stage, value in result.pseudo_labels.items() if value is not None}

    tables = _tables(group_cells(planned, results), "AUROC % of pseudo-labels on training rows", quality)
    return [table for table in tables if table.methods]


def _tables(
    groups: Iterable[Group],
    what: str,
    parts_of: Callable[[CellResult], Parts],
    always: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
) -> list[Table]:
    """Tables with a line for each method and part; ``always`` are the lines of a method without any number."""
    tables: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        tables.setdefault((group.setting.dataset, group.setting.noise_name), []).append(group)
    made = []
    for (dataset, noise), found in tables.items():
        entries = _entries(found, parts_of, always)
        names: dict[Key, str] = {group.setting.bag_size: group.setting.bags_name for group in found}
        there = {size for _, size in entries}
        made.append(
            Table(
                about=(dataset,) if noise == "none" else (dataset, f"noise {noise}"),
                rule="",
                what=what,
                columns={size: names[size] for size in sorted(names) if size in there},
                methods=list(dict.fromkeys(line for line, _ in entries)),
                entries=entries,
                notes=[
                    *([_WHAT_REPORTS_ARE] if always else []),
                    *([notes[dataset]] if notes and dataset in notes else []),
                ],
            )
        )
    return made


def _entries(
    groups: list[Group], parts_of: Callable[[CellResult], Parts], always: Sequence[str]
) -> dict[tuple[str, Key], TableEntry]:
    """The entries by line (a method and one of its parts) and bag size."""
    entries: dict[tuple[str, Key], TableEntry] = {}
    for method in dict.fromkeys(group.method for group in groups):
        found = {group.setting.bag_size: group for group in groups if group.method == method}
        parts = {size: [parts_of(result) for result in group.fine] for size, group in found.items()}
        names = list(dict.fromkeys(name for size in sorted(parts) for p in parts[size] for name in p)) or always
        for name in sorted(
            names, key=lambda name: (_TOTAL, _REPORTS).index(name) if name in (_TOTAL, _REPORTS) else -1
        ):
            for size, group in found.items():
                entries[f"{method}: {name}", size] = _entry([p[name] for p in parts[size] if name in p], group.found)
    return entries


def _entry(values: list[float], results: list[CellResult]) -> TableEntry:
    mean, sd = mean_sd(values)
    if mean is None:
        statuses = [r.status for r in results if r.status != "ok"]
        return TableEntry(statuses[0] if statuses else "" if results else "missing", number=False)
    return TableEntry(f"{mean:.2f}" + (f" ({sd:.2f})" if sd is not None else ""))
