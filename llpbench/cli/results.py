"""``status`` and ``table``: reading a results folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from llpbench.cli.options import folder_argument

if TYPE_CHECKING:
    from llpbench.cells import CellResult
    from llpbench.registry import Registry
    from llpbench.report.aggregate import MetricStyle, Row
    from llpbench.store import Planned, Store


@click.command(short_help="Print the table of a results folder.")
@folder_argument
@click.option("--metric", default="auroc", show_default=True, help="What to print; fit_seconds for times.")
@click.option("--rule", type=click.Choice(["bags", "instances", "both"]), default="both", show_default=True)
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["terminal", "markdown", "latex", "csv", "json"]),
    default="terminal",
    show_default=True,
)
def table(folder: Path | None, metric: str, rule: str, fmt: str) -> None:
    """Print mean (sd over seeds) by method and bag size; best bold, second underlined.

    FOLDER is a results folder, by default the newest under results/. The selection rule is part of every heading:
    'bags' selects on held-back bags, 'instances' on labels of held-back rows (as the paper did).
    """
    from llpbench.registry import load_registry

    store = open_store(folder)
    registry = load_registry()
    planned = list(store.manifest().planned.values())
    results = store.results(lambda path, damage: click.echo(f"warning: {path}: {damage}", err=True))
    style = metric_style(registry, metric)
    if fmt == "terminal":
        show_tables(planned, results, style, rule)
    else:
        click.echo(render(planned, results, style, rule, fmt))


@click.command(short_help="How far a run is, and what went wrong.")
@folder_argument
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(folder: Path | None, as_json: bool) -> None:
    """Count the cells of a results folder by status and give the reason of every cell without a number."""
    store = open_store(folder)
    manifest = store.manifest()
    damaged: dict[str, str] = {}
    results = store.results(lambda path, damage: damaged.update({path.stem: damage}))
    counts: Counter[str] = Counter(result.status for result in results)
    counts["damaged"] = len(damaged)
    counts["missing"] = len(manifest.planned) - len(results) - len(damaged)
    troubles = [
        {"id": r.id, "cell": describe_cell(manifest.planned[r.id]), "status": r.status, "reason": r.reason}
        for r in results
        if r.status != "ok"
    ]
    troubles += [
        {"id": i, "cell": describe_cell(manifest.planned[i]), "status": "damaged", "reason": d}
        for i, d in damaged.items()
    ]
    if as_json:
        content = {
            "folder": str(store.root),
            "planned": len(manifest.planned),
            "counts": {name: n for name, n in counts.items() if n},
            "troubles": troubles,
            "commands": manifest.commands,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())
        return
    words = ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "nothing yet"
    click.echo(f"{store.root}: {len(manifest.planned)} cells: {words}")
    for trouble in troubles:
        click.echo(f"  {trouble['status']}  {trouble['cell']}  ({trouble['id']})\n      {trouble['reason']}")
    if counts["missing"] or counts["damaged"]:
        click.echo(f"go on with: {manifest.commands[-1]}")
    elif any(t["status"] in ("failed", "timeout", "memory", "crashed") for t in troubles):
        click.echo(f"run failed cells again with: {manifest.commands[-1]} --rerun failed")


def describe_cell(plan: Planned) -> str:
    """A cell in one line."""
    noise = "" if plan.cell.noise == "none" else f", noise {plan.cell.noise}"
    return f"{plan.label} on {plan.dataset_label}, bag {plan.cell.bag_size}, seed {plan.cell.seed}{noise}"


def open_store(folder: Path | None) -> Store:
    """The given results folder, or the newest one."""
    from llpbench.store import Store, newest_store

    return newest_store(Path("results")) if folder is None else Store(folder)


def metric_style(registry: Registry, name: str) -> MetricStyle:
    """How a metric is printed; an unknown name lists the known ones."""
    from llpbench.errors import UnknownNameError
    from llpbench.report.aggregate import COST_METRICS, MetricStyle

    if name in COST_METRICS:
        return MetricStyle(name, higher_is_better=False, percent=False)
    if name == "bag_error":
        return MetricStyle(name, higher_is_better=False, percent=True)
    if name not in registry.metrics.entries:
        raise UnknownNameError("metric", name, [*registry.metrics.entries, "bag_error", *COST_METRICS])
    spec = registry.metrics[name]
    return MetricStyle(name, spec.higher_is_better, spec.percent)


def table_rows(planned: list[Planned], results: list[CellResult], style: MetricStyle, rule: str) -> list[Row]:
    """Aggregated rows under one rule or both."""
    from llpbench.cells import RULES
    from llpbench.report.aggregate import aggregate

    return aggregate(planned, results, [style], RULES if rule == "both" else (rule,))


def render(planned: list[Planned], results: list[CellResult], style: MetricStyle, rule: str, fmt: str) -> str:
    """A table as text in one of the file formats."""
    from llpbench.report import tables

    rows = table_rows(planned, results, style, rule)
    if fmt == "json":
        return tables.to_json(rows)
    if fmt == "csv":
        return tables.to_csv(rows)
    built = tables.build_tables(rows, style)
    return tables.to_markdown(built) if fmt == "markdown" else tables.to_latex(built)


def show_tables(planned: list[Planned], results: list[CellResult], style: MetricStyle, rule: str) -> None:
    """Print tables on the terminal."""
    from rich.console import Console

    from llpbench.report.tables import build_tables
    from llpbench.report.terminal import print_tables

    print_tables(build_tables(table_rows(planned, results, style, rule), style), Console(highlight=False))
