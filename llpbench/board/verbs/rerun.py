"""``rerun``: reproduce one published cell."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from llpbench.board.verbs.options import FOLDER, OR_SHIPPED, board_option, board_to_read, shipped_has
from llpbench.cli.options import plugin_options, remake_options
from llpbench.cli.results import open_store
from llpbench.contracts.cell import setting_name
from llpbench.contracts.result import CellResult


@click.command(short_help="Rerun one published cell and compare the numbers.")
@click.argument("cell", required=False, metavar="[CELL-ID]")
@click.option("--results", type=FOLDER, help="A results folder that holds the cell, instead of a leaderboard.")
@board_option("--leaderboard", default=OR_SHIPPED)
@click.option("--random", "at_random", is_flag=True, help="Choose a cell at random.")
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="How far a number may be off; 0.01 is one point of AUROC.  "
    "[default: equal bits; 0.01 if the machine, a numeric library, threads or numeric flags differ]",
)
@remake_options
@plugin_options
def rerun(
    cell: str | None,
    results: Path | None,
    board: Path | None,
    at_random: bool,
    tolerance: float | None,
    timeout: float | None,
    memory: float | None,
    threads: int | None,
    data: str | None,
    offline: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Rerun one published cell in a temporary folder and compare every number with the published one.

    These are the metrics under every selection rule and of every stage, the quality of pseudo-labels, and the bag card.

    CELL-ID is the id of a cell, or the beginning of one. The numbers must be equal bit for bit. If the machine, a
    numeric library, the number of threads or flags of a backend differ, they may be off by the tolerance. Exit code 0:
    reproduced; 1: not.
    """
    from llpbench.board.rerun import (
        choose,
        compare,
        limits_again,
        machine_type,
        published_results,
        run_cells,
    )
    from llpbench.contracts.errors import UsageError
    from llpbench.data.fetch_files import fetch_files
    from llpbench.experiment.plan import Planned
    from llpbench.experiment.run_settings import RunSettings
    from llpbench.plugins.registry import load_registry
    from llpbench.report.progress import QuietView

    if (cell is None) != at_random:
        raise UsageError("give the id of a cell or --random.")
    if results is not None and board is not None:
        raise UsageError("give --results or --board, not both.")
    if results is not None:
        open_store(results).manifest()
    folder = results or board_to_read(board)
    known = published_results(folder)
    try:
        before = choose(known, cell, folder)
    except UsageError as error:
        raise UsageError(f"{error}{_shipped_has_it(cell, known, folder) if results is None else ''}") from None
    registry = load_registry(plugins, override)
    registry.methods.entry(before.cell.method)
    _describe(before)
    fetch_files(registry.datasets[before.cell.dataset], Path(data) if data else None, offline=bool(offline), quiet=True)
    settings = RunSettings(data=data, offline=offline, plugins=plugins, override=override, predictions=False)
    plan = (Planned.of(before), limits_again(before, timeout, memory, threads))
    now = run_cells([plan], registry, settings, QuietView())[before.id]
    verdict = compare(before, now, tolerance, machine_type(folder, before.machine))
    if verdict.lines:
        click.echo(f"{'rule':<22} {'metric':<18} {'published':>12} {'now':>12}")
    for line in verdict.lines:
        click.echo(line)
    click.echo(f"fit        seconds            {before.fit_seconds:12.2f} {now.fit_seconds:12.2f}")
    if verdict.changed:
        click.echo(f"changed since it was made: {', '.join(verdict.changed)}")
    click.echo(verdict.text)
    sys.exit(0 if verdict.reproduced else 1)


def _shipped_has_it(cell: str | None, known: Iterable[str], folder: Path) -> str:
    """Where to find a cell that a leaderboard does not have and the one that came with llpbench has; else nothing."""
    from llpbench.board.content.shipped import shipped_instead_of
    from llpbench.board.rerun import published_results

    shipped = shipped_instead_of(folder)
    if not cell or shipped is None or any(one.startswith(cell) for one in known):
        return ""
    there = any(one.startswith(cell) for one in published_results(shipped))
    return f" But {shipped_has('it', shipped)}" if there else ""


def _describe(result: CellResult) -> None:
    cell = result.cell
    extra = "" if cell.noise == "none" else f", noise {cell.noise}"
    where = setting_name(result.dataset_name, cell.bag_size)
    click.echo(f"cell {result.id}: {result.method_name} on {where}, seed {cell.seed}{extra}")
