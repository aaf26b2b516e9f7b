"""``status`` and ``table``: reading a results folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from llpbench.cli.options import folder_argument, plugin_options

if TYPE_CHECKING:
    from llpbench.contracts.result import CellResult
    from llpbench.contracts.specs import Reference
    from llpbench.experiment.plan import Planned
    from llpbench.plugins.registry import Registry
    from llpbench.report.tables import Table
    from llpbench.results.store import Store
    from llpbench.results.table import MetricStyle, Row


@click.command(short_help="Print the table of a results folder.")
@folder_argument
@click.option("--metric", default="auroc", show_default=True, help="What to print; fit_seconds for times.")
@click.option("--rule", type=click.Choice(["bags", "instances", "both"]), default="both", show_default=True)
@click.option(
    "--kind",
    type=click.Choice(["scores", "time", "noise", "pseudo"]),
    default="scores",
    show_default=True,
    help="The metric by bag size; seconds by phase; the metric by noise level; the quality of pseudo-labels.",
)
@click.option("--paper", is_flag=True, help="Published values and the difference beside ours, where plugins know any.")
@click.option(
    "--format",
    "fmt",
    type=click.Choice(["terminal", "markdown", "latex", "csv", "json"]),
    default="terminal",
    show_default=True,
)
@plugin_options
def table(
    folder: Path | None,
    metric: str,
    rule: str,
    kind: str,
    paper: bool,
    fmt: str,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Print mean (sd over seeds) by method and bag size; best bold, second underlined.

    FOLDER is a results folder, by default the newest under results/. The selection rule is part of every heading:
    'bags' selects on held-back bags, 'instances' on labels of held-back rows (as the paper did).
    """
    from llpbench.plugins.registry import load_registry

    store = open_store(folder)
    registry = load_registry(plugins, override)
    planned = list(store.manifest().planned.values())
    results = store.results(lambda path, damage: click.echo(f"warning: {path}: {damage}", err=True))
    style = metric_style(registry, metric)
    references = registry.references() if paper else []
    if fmt == "terminal":
        show_tables(planned, results, style, rule, kind, references)
    else:
        click.echo(render(planned, results, style, rule, fmt, kind, references))


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


def plural(n: int, noun: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def describe_cell(plan: Planned) -> str:
    """A cell in one line."""
    noise = "" if plan.cell.noise == "none" else f", noise {plan.cell.noise}"
    return f"{plan.label} on {plan.dataset_label}, bag {plan.cell.bag_size}, seed {plan.cell.seed}{noise}"


def open_store(folder: Path | None) -> Store:
    """The given results folder, or the newest one."""
    from llpbench.results.store import Store, newest_store

    return newest_store(Path("results")) if folder is None else Store(folder)


def metric_style(registry: Registry, name: str) -> MetricStyle:
    """How a metric is printed; an unknown name lists the known ones."""
    from llpbench.contracts.errors import UnknownNameError
    from llpbench.results.table import COST_METRICS, MetricStyle

    if name in COST_METRICS:
        return MetricStyle(name, higher_is_better=False, percent=False)
    if name == "bag_error":
        return MetricStyle(name, higher_is_better=False, percent=True)
    if name not in registry.metrics.entries:
        raise UnknownNameError("metric", name, [*registry.metrics.entries, "bag_error", *COST_METRICS])
    spec = registry.metrics[name]
    return MetricStyle(name, spec.higher_is_better, spec.percent)


def table_rows(
    planned: list[Planned],
    results: list[CellResult],
    style: MetricStyle,
    rule: str,
    references: Sequence[Reference] = (),
) -> list[Row]:
    """Aggregated rows under one rule or both, with published values where there are any."""
    from llpbench.contracts.result import RULES
    from llpbench.experiment.privacy import epsilon_of
    from llpbench.results.references import with_references
    from llpbench.results.table import aggregate

    rows = aggregate(planned, results, [style], RULES if rule == "both" else (rule,))
    rows = [msgspec.structs.replace(row, epsilon=epsilon_of(row.noise.split(", ")[0])) for row in rows]
    return with_references(rows, references, style.scale)


def make_tables(
    planned: list[Planned],
    results: list[CellResult],
    style: MetricStyle,
    rule: str,
    kind: str,
    references: Sequence[Reference] = (),
) -> list[Table]:
    """The tables of a kind."""
    from llpbench.report import phases, tables

    if kind == "time":
        return phases.time_tables(planned, results)
    if kind == "pseudo":
        return phases.pseudo_tables(planned, results)
    rows = table_rows(planned, results, style, rule, references)
    return tables.build_noise_tables(rows, style) if kind == "noise" else tables.build_tables(rows, style)


def render(
    planned: list[Planned],
    results: list[CellResult],
    style: MetricStyle,
    rule: str,
    fmt: str,
    kind: str = "scores",
    references: Sequence[Reference] = (),
) -> str:
    """A table as text in one of the file formats."""
    from llpbench.report import tables

    if fmt in ("csv", "json") and kind in ("scores", "noise"):
        rows = table_rows(planned, results, style, rule, references)
        return tables.to_json(rows) if fmt == "json" else tables.to_csv(rows)
    built = make_tables(planned, results, style, rule, kind, references)
    if fmt in ("csv", "json"):
        return tables.entries_to_json(built) if fmt == "json" else tables.entries_to_csv(built)
    return tables.to_markdown(built) if fmt == "markdown" else tables.to_latex(built)


def show_tables(
    planned: list[Planned],
    results: list[CellResult],
    style: MetricStyle,
    rule: str,
    kind: str = "scores",
    references: Sequence[Reference] = (),
) -> None:
    """Print tables on the terminal."""
    from rich.console import Console

    from llpbench.report.terminal import print_tables

    built = make_tables(planned, results, style, rule, kind, references)
    if not built:
        nothing = {"noise": "it has one noise level", "pseudo": "no method of it makes pseudo-labels"}
        click.echo(f"no table: {nothing.get(kind, 'it plans no cells')}.", err=True)
    print_tables(built, Console(highlight=False))
