"""Tables of what lies inside a fit: seconds by phase, and the quality of pseudo-labels by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.report.tables import Entry, Table
from llpbench.results.table import mean_sd, method_names, noise_name

Parts = dict[str, float]
_TOTAL = "total"


def time_tables(planned: Iterable[Planned], results: Iterable[CellResult]) -> list[Table]:
    """Seconds of every phase of a fit and their sum: a table for each dataset and noise level."""

    def seconds(result: CellResult) -> Parts:
        parts = dict(result.phases) if len(result.phases) > 1 else {}
        return {**parts, _TOTAL: result.fit_seconds}

    results = list(results)
    tables = _tables(planned, results, "seconds by phase", seconds, always=_TOTAL)
    for table in tables:
        machines = {r.machine for r in results if r.dataset_label == table.about[0] and r.machine}
        if len(machines) > 1:
            table.notes.append(f"made on {len(machines)} machines: compare times within one only")
    return tables


def pseudo_tables(planned: Iterable[Planned], results: Iterable[CellResult]) -> list[Table]:
    """AUROC of pseudo-labels against the training labels, by stage: a table for each dataset and noise level."""

    def quality(result: CellResult) -> Parts:
        return {stage: 100 * value for stage, value in result.pseudo_labels.items() if value is not None}

    tables = _tables(planned, results, "AUROC % of pseudo-labels on training rows", quality)
    return [table for table in tables if table.methods]


def _tables(
    planned: Iterable[Planned],
    results: Iterable[CellResult],
    what: str,
    parts_of: Callable[[CellResult], Parts],
    always: str = "",
) -> list[Table]:
    """Tables of parts; ``always`` is a line that a method has even when no cell of it has a number."""
    planned = list(planned)
    names = method_names(planned)
    by_id = {r.id: r for r in results}
    groups: dict[tuple[str, str], dict[tuple[str, int], list[CellResult | None]]] = {}
    for plan in planned:
        cell = plan.cell
        where = groups.setdefault((plan.dataset_label, noise_name(cell)), {})
        where.setdefault((names[plan.label, cell.backend], cell.bag_size), []).append(by_id.get(cell.id))
    return [_table(key, cells, what, parts_of, always) for key, cells in groups.items()]


def _table(
    key: tuple[str, str],
    cells: dict[tuple[str, int], list[CellResult | None]],
    what: str,
    parts_of: Callable[[CellResult], Parts],
    always: str,
) -> Table:
    dataset, noise = key
    lines: dict[str, None] = {}
    entries: dict[tuple[str, int | str], Entry] = {}
    sizes = sorted({size for _, size in cells})
    for method in dict.fromkeys(method for method, _ in cells):
        found = {size: [r for r in cells.get((method, size), []) if r is not None] for size in sizes}
        fine = {size: [parts_of(r) for r in rs if r.status == "ok"] for size, rs in found.items()}
        names = list(dict.fromkeys(name for parts in fine.values() for p in parts for name in p))
        names = names or [always] * bool(always)
        names.sort(key=lambda name: name == _TOTAL)
        for name in names:
            line = f"{method}: {name}"
            lines[line] = None
            for size in sizes:
                if (method, size) in cells:
                    entries[line, size] = _entry([p[name] for p in fine[size] if name in p], found[size])
    shown = [size for size in sizes if any(key == size for _, key in entries)]
    return Table(
        about=(dataset,) if noise == "none" else (dataset, f"noise {noise}"),
        rule="",
        what=what,
        columns={size: f"bag {size}" for size in shown},
        methods=list(lines),
        entries=entries,
        bounds=[],
        notes=[],
    )


def _entry(values: list[float], results: list[CellResult]) -> Entry:
    mean, sd = mean_sd(values)
    if mean is None:
        statuses = [r.status for r in results if r.status != "ok"]
        return Entry(statuses[0] if statuses else "" if results else "missing", number=False)
    return Entry(f"{mean:.2f}" + (f" ({sd:.2f})" if sd is not None else ""))
