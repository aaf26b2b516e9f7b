"""``run``: the main job."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.interrupt import exit_on_interrupt, typed_command
from llpbench.cli.options import Names, cell_options, grid_options, plugin_options

if TYPE_CHECKING:
    from llpbench.api import RunRequest
    from llpbench.experiment.plan import Planned
    from llpbench.report.results import Results


@click.command(short_help="Run a grid of cells and print its table.")
@click.option("--methods", type=Names("methods"), help="Methods, e.g. dllp,mean-ridge or dllp[lr=1e-3;1e-2].")
@grid_options
@click.option("--seeds", type=int, help="Number of seeds: 3 runs seeds 0, 1 and 2.  [default: 3]")
@click.option("--preset", help="Named settings of the methods that have them, e.g. paper.")
@click.option("--params", help="Tuned parameters: the folder or file that llpbench tune wrote, e.g. tuned.")
@click.option("--params-rule", type=str, help="Use those tuned by this rule.  [default: bags]")
@click.option("--config", help="A TOML file with these settings, or the name of a built-in one; flags win over it.")
@click.option("--out", help="Results folder.  [default: results/NAME, the same for the same request]")
@click.option("--metric", help="What progress and the table show.  [default: auroc]")
@click.option("--rerun", type=click.Choice(["missing", "failed", "stale", "all"]), help="Which cells to run again.")
@cell_options
@click.option("--predictions/--no-predictions", default=None, help="Keep test scores of every cell.  [default: keep]")
@click.option("--dry-run", is_flag=True, help="Say what would run, run nothing.")
@click.option("--quiet", is_flag=True, help="No progress, only the table.")
@click.option("--json", "as_json", is_flag=True, help="The table as JSON on standard output (as table --format json).")
@plugin_options
def run(
    config: str | None,
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
    **flags: Any,
) -> None:
    """Run every combination of methods, datasets, bag sizes, noise levels and seeds; print the table.

    Finished cells are kept: the same command again runs only what is missing. Ctrl-C loses nothing but the cells
    that were running. Exit code 0: all cells are fine (or declined with a reason); 1: some failed; 2: the request
    itself is wrong.
    """
    from llpbench.api import plan_run

    request = plan_run(flags, config=config, plugins=plugins, override=override)
    if dry_run:
        _print_plan(request)
        return
    with exit_on_interrupt():
        results = request.run(not (quiet or as_json), typed_command())
    _print_results(results, as_json)
    if not as_json:
        click.echo(f"results: {results.folder}", err=True)
    sys.exit(1 if results.failed else 0)


def _print_plan(request: RunRequest) -> None:
    for note in request.notes:
        click.echo(f"note: {note}", err=True)
    for plan in request.planned:
        cell = plan.cell
        noise = "" if cell.noise == "none" else f"  noise {cell.noise}"
        click.echo(f"{cell.id}  {plan.dataset_name}  bag {cell.bag_size}  seed {cell.seed}  {plan.method_name}{noise}")
    click.echo(f"{len(request.planned)} cells, results in {request.store.root}", err=True)


def _print_results(results: Results, as_json: bool) -> None:
    from llpbench.cli.results import show_tables
    from llpbench.report.render import choose

    if as_json:
        click.echo(results.table(rule="all", format="json"))
    else:
        show_tables(results.planned, results.results, choose(results.registry, results.results, results.metric))
        for line in _tuning_times(results.planned):
            click.echo(line)


def _tuning_times(planned: list[Planned]) -> list[str]:
    """What the search for the parameters of each method took, to be read beside its score."""
    from llpbench.report.progress import duration

    spent = {(p.method_name, p.dataset_name, p.cell.bag_size, p.cell.noise): p.tuning_seconds for p in planned}
    return [
        f"tuning {label} on {dataset}, bag {bag}{'' if noise == 'none' else f', noise {noise}'}: {duration(seconds)}"
        for (label, dataset, bag, noise), seconds in spent.items()
        if seconds
    ]
