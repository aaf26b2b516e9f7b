"""Tables of what lies inside a fit: seconds by phase, and the quality of pseudo-labels by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from llpbench.contracts.result import CellResult
from llpbench.report.tables import Entry, Table
from llpbench.results.table import Group, mean_sd

Parts = dict[str, float]
_TOTAL = "total"


def time_tables(groups: Iterable[Group]) -> list[Table]:
    """Seconds of every phase of a fit and their sum: a table for each dataset and noise level."""

    def seconds(result: CellResult) -> Parts:
        parts = dict(result.phases) if len(result.phases) > 1 else {}
        return {**parts, _TOTAL: result.fit_seconds}

    groups = list(groups)
    machines: dict[str, set[str]] = {}
    for group in groups:
        machines.setdefault(group.setting.dataset, set()).update(r.machine for r in group.found if r.machine)
    return _tables(groups, "seconds by phase", seconds, always=_TOTAL, notes=_note_machines(machines))


def _note_machines(machines: dict[str, set[str]]) -> dict[str, str]:
    """By dataset: a warning where several machines measured seconds."""
    return {
        dataset: f"made on {len(found)} machines: compare times within one only"
        for dataset, found in machines.items()
        if len(found) > 1
    }


def pseudo_tables(groups: Iterable[Group]) -> list[Table]:
    """AUROC of pseudo-labels against the training labels, by stage: a table for each dataset and noise level."""

    def quality(result: CellResult) -> Parts:
        return {stage: 100 * value for stage, value in result.pseudo_labels.items() if value is not None}

    tables = _tables(groups, "AUROC % of pseudo-labels on training rows", quality)
    return [table for table in tables if table.methods]


def _tables(
    groups: Iterable[Group],
    what: str,
    parts_of: Callable[[CellResult], Parts],
    always: str = "",
    notes: dict[str, str] | None = None,
) -> list[Table]:
    """Tables of parts; ``always`` is a line that a method has even when no cell of it has a number."""
    tables: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        tables.setdefault((group.setting.dataset, group.setting.noise_name), []).append(group)
    made = []
    for (dataset, noise), found in tables.items():
        sizes, lines, entries = _lines(found, parts_of, always)
        names = {group.setting.bag_size: group.setting.bags_name for group in found}
        made.append(
            Table(
                about=(dataset,) if noise == "none" else (dataset, f"noise {noise}"),
                rule="",
                what=what,
                columns={size: names[size] for size in sizes},
                methods=lines,
                entries=entries,
                bounds=[],
                notes=[notes[dataset]] if notes and dataset in notes else [],
            )
        )
    return made


def _lines(
    groups: list[Group], parts_of: Callable[[CellResult], Parts], always: str
) -> tuple[list[int], list[str], dict[tuple[str, int | str], Entry]]:
    """Bag sizes that have an entry, lines (a method and one of its parts), and the entries."""
    lines: dict[str, None] = {}
    entries: dict[tuple[str, int | str], Entry] = {}
    for method in dict.fromkeys(group.method for group in groups):
        found = {group.setting.bag_size: group for group in groups if group.method == method}
        parts = {size: [parts_of(result) for result in group.fine] for size, group in found.items()}
        names = list(dict.fromkeys(name for size in sorted(parts) for p in parts[size] for name in p))
        names = names or [always] * bool(always)
        for name in sorted(names, key=lambda name: name == _TOTAL):
            line = f"{method}: {name}"
            lines[line] = None
            for size, group in found.items():
                entries[line, size] = _entry([p[name] for p in parts[size] if name in p], group.found)
    sizes = sorted({group.setting.bag_size for group in groups})
    return [size for size in sizes if any(key == size for _, key in entries)], list(lines), entries


def _entry(values: list[float], results: list[CellResult]) -> Entry:
    mean, sd = mean_sd(values)
    if mean is None:
        statuses = [r.status for r in results if r.status != "ok"]
        return Entry(statuses[0] if statuses else "" if results else "missing", number=False)
    return Entry(f"{mean:.2f}" + (f" ({sd:.2f})" if sd is not None else ""))
