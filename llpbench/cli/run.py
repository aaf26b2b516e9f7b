"""``run``: the main job."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.options import Names, cell_options, grid_options, plugin_options

if TYPE_CHECKING:
    from llpbench.cli.runfile import HowToRun
    from llpbench.experiment.grid import RunSpec
    from llpbench.experiment.plan import Planned
    from llpbench.plugins.registry import Registry
    from llpbench.results.store import Store
    from llpbench.tuning.chosen import TunedParams


@click.command(short_help="Run a grid of cells and print its table.")
@click.option("--methods", type=Names("methods"), help="Methods, e.g. dllp,mean-ridge or dllp[lr=1e-3;1e-2].")
@grid_options
@click.option("--seeds", type=int, help="Number of seeds: 3 runs seeds 0, 1 and 2.  [default: 3]")
@click.option("--preset", help="Named settings of the methods that have them, e.g. paper.")
@click.option("--params", help="Tuned parameters: the folder or file that llpbench tune wrote, e.g. tuned.")
@click.option("--params-rule", metavar="RULE", help="Use those tuned by this rule.  [default: bags]")
@click.option("--config", help="A TOML file with these settings, or the name of a built-in one; flags win over it.")
@click.option("--out", help="Results folder.  [default: results/NAME, the same for the same request]")
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
    from llpbench.cli.runfile import combine, find_run_file, read_run_file
    from llpbench.experiment.grid import plan_cells
    from llpbench.plugins.registry import load_registry
    from llpbench.results.store import Store

    registry = load_registry(plugins, override)
    spec, how = combine(read_run_file(find_run_file(config, registry)) if config else {}, flags)
    tuned = _tuned_params(spec)
    planned = plan_cells(spec, registry, tuned)
    if tuned is not None:
        _say_tuned(tuned)
    store = Store(Path(how.out) if how.out else Path("results") / spec.name)
    if dry_run:
        _say_plan(planned, store)
        return
    failed = _execute(how, registry, planned, store, plugins, override, quiet=quiet or as_json)
    _print_results(store, planned, registry, as_json)
    if not as_json:
        click.echo(f"results: {store.root}", err=True)
    sys.exit(1 if failed else 0)


def _execute(
    how: HowToRun,
    registry: Registry,
    planned: list[Planned],
    store: Store,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
    *,
    quiet: bool,
) -> int:
    """Run what is wanted; returns the number of failed cells of this request, old and new."""
    from llpbench import __version__
    from llpbench.cli.execution import context_of, fetch_for, interrupt, limits_of, make_executor, typed_command
    from llpbench.cli.progress import make_view
    from llpbench.contracts.result import FAILURES
    from llpbench.execution.driver import Run, make_jobs, wanted_cells

    command = typed_command()
    view = make_view(quiet)
    limits = limits_of(how)
    context = context_of(how.data, how.offline, plugins, override, predictions=how.predictions)
    executor = make_executor(how, registry)
    store.plan(planned, command, __version__)
    fetch_for(executor, (plan.cell.dataset for plan in planned), registry, context, quiet=quiet)
    run_now, kept = wanted_cells(planned, store, registry, how.rerun, view)  # type: ignore[arg-type]
    jobs = make_jobs(run_now, store, registry, limits, context)
    signal.signal(signal.SIGTERM, interrupt)
    view.begin(len(planned), len(kept))
    try:
        summary = Run(store, registry, executor, view).go(jobs)
    except KeyboardInterrupt:
        view.end()
        click.echo(f"\nstopped. Finished cells are in {store.root}; the same command goes on:\n  {command}", err=True)
        sys.exit(130)
    finally:
        view.end()
    return summary.failed + sum(result.status in FAILURES for result in kept)


def _tuned_params(spec: RunSpec) -> TunedParams | None:
    if not spec.params:
        return None
    from llpbench.tuning.chosen import TunedParams

    return TunedParams(Path(spec.params), spec.params_rule)


def _say_tuned(tuned: TunedParams) -> None:
    """Say who is not tuned, and whose test rows had a part in the tuning."""
    for method in tuned.untuned:
        click.echo(f"note: {tuned.path} has nothing for {method}: it runs as it is", err=True)
    for seed, seeds in tuned.overlapping.items():
        given = ", ".join(map(str, seeds))
        click.echo(
            f"note: seed {seed} runs with parameters tuned on seed {given}; where each seed draws its own split, some "
            "of its test rows were training or validation rows there (llpbench tune --per-seed avoids it)",
            err=True,
        )


def _say_plan(planned: list[Planned], store: Store) -> None:
    for plan in planned:
        cell = plan.cell
        noise = "" if cell.noise == "none" else f"  noise {cell.noise}"
        click.echo(f"{cell.id}  {plan.dataset_label}  bag {cell.bag_size}  seed {cell.seed}  {plan.label}{noise}")
    click.echo(f"{len(planned)} cells, results in {store.root}", err=True)


def _print_results(store: Store, planned: list[Planned], registry: Registry, as_json: bool) -> None:
    from llpbench.cli.results import show_tables
    from llpbench.report.render import choose, render

    wanted = {plan.cell.id for plan in planned}
    results = [result for result in store.results() if result.id in wanted]
    shown = choose(registry, results)
    if as_json:
        click.echo(render(planned, results, shown, "json"))
    else:
        show_tables(planned, results, shown)
        for line in _tuning_times(planned):
            click.echo(line)


def _tuning_times(planned: list[Planned]) -> list[str]:
    """What the search for the parameters of each method took, to be read beside its score."""
    from llpbench.cli.progress import duration

    spent = {(p.label, p.dataset_label, p.cell.bag_size, p.cell.noise): p.tuning_seconds for p in planned}
    return [
        f"tuning {label} on {dataset}, bag {bag}{'' if noise == 'none' else f', noise {noise}'}: {duration(seconds)}"
        for (label, dataset, bag, noise), seconds in spent.items()
        if seconds
    ]
