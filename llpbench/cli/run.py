"""``run``: the main job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.interrupt import exit_on_interrupt
from llpbench.cli.options import plugin_options, setting_options
from llpbench.cli.printing import say, verbose_view
from llpbench.cli.results import plural
from llpbench.cli.status import print_troubles, trouble_of
from llpbench.contracts.cell import setting_name
from llpbench.contracts.errors import printable
from llpbench.contracts.result import FAILURES
from llpbench.experiment.run_settings import RunSettings

if TYPE_CHECKING:
    from llpbench.api import RunRequest
    from llpbench.experiment.plan import Planned
    from llpbench.report.results import Results


@click.command(short_help="Run a grid of cells and print its table.")
@setting_options(RunSettings, "override", "plugins")
@click.option("--dry-run", is_flag=True, help="List the cells that would run, and exit.")
@click.option("--debug", is_flag=True, help="Run one cell in this process, for a debugger; its result is not kept.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line with the time for each cell that starts or ends.")
@click.option("--quiet", is_flag=True, help="Print the table only, without progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON (as table --format json).")
@plugin_options
def run(dry_run: bool, debug: bool, verbose: bool, quiet: bool, as_json: bool, **settings: Any) -> None:
    """Run every combination of methods, datasets, bag sizes, noise levels and seeds; print the table.

    With --suite, run the cells of a frozen grid that papers can cite (llpbench list suites).

    Finished cells are kept: the same command again runs only what is missing, and what was made under another protocol
    or by other code of a plugin that is not a release. Ctrl-C loses only the cells that were running.

    The results folder also gets run.log (what ran when) and report.html (tables and charts to look at in a browser).

    Exit code 0: all cells are fine (or declined with a reason); 1: some failed; 2: the request itself is wrong.
    """
    from llpbench.api import plan_run

    request = plan_run({**settings, "progress": not (quiet or as_json)})
    if dry_run:
        _print_plan(request)
        return
    if debug:
        _debug(request)
        return
    with exit_on_interrupt():
        results = request.run(verbose_view(verbose, request.metric))
    if settings["suite"] and not as_json:
        _print_suite(results, settings["suite"])
    else:
        _print_results(results, as_json)
    if not as_json:
        _print_failures(results)
        say(f"results: {results.folder}", err=True)
    for line in results.registry.run_finished(results):
        if not (quiet or as_json):
            say(line, err=True)
    sys.exit(1 if results.failed else 0)


def _print_plan(request: RunRequest) -> None:
    from llpbench.report.progress import QuietView

    for note in request.notes:
        say(f"note: {note}", err=True)
    run_now, kept = request.wanted(QuietView())
    for plan in run_now:
        say(_line(plan))
    of_all = f"{len(run_now)} of {plural(len(request.planned), 'cell')} would run"
    say(f"{of_all}, {len(kept)} kept; results in {request.store.root}", err=True)


def _line(plan: Planned) -> str:
    cell = plan.cell
    noise = "" if cell.noise == "none" else f"  noise {cell.noise}"
    where = setting_name(plan.dataset_name, cell.bag_size, "  ")
    return printable(f"{cell.id}  {where}  seed {cell.seed}  {plan.method_name}{noise}")


def _debug(request: RunRequest) -> None:
    """Run the first cell that would run (or the first of all) in this process; its errors are raised as they are."""
    from llpbench.report.progress import QuietView, describe_result

    plan = (request.wanted(QuietView())[0] or request.planned)[0]
    if len(request.planned) > 1:
        say(f"--debug runs one cell, the first of {len(request.planned)}:", err=True)
    say(_line(plan), err=True)
    result = request.debug(plan)
    say(describe_result(result, request.metric))


def _print_failures(results: Results, most: int = 5) -> None:
    """Where cells failed: the line in the plugin's own code, and the file that has the traceback."""
    plans = {plan.cell.id: plan for plan in results.planned}
    failed = [result for result in results.results if result.status in FAILURES]
    if not failed:
        return
    say(f"{plural(len(failed), 'cell')} failed:", err=True)
    print_troubles([trouble_of(result, plans[result.id], results.store) for result in failed[:most]], err=True)
    if len(failed) > most:
        say(f"  … and {len(failed) - most} more: llpbench status {results.folder}", err=True)


def _print_results(results: Results, as_json: bool) -> None:
    from llpbench.cli.results import show_tables, warn_of_mixture
    from llpbench.report.render import choose

    if as_json:
        click.echo(results.table(rule="all", format="json"))
    else:
        warn_of_mixture(results.planned, results.results)
        show_tables(results.planned, results.results, choose(results.registry, results.results, results.metric))
        for line in _tuning_times(results.planned):
            say(line)


def _print_suite(results: Results, suite: str) -> None:
    """A suite has more tables than a terminal shows: print what there is of it, and how to see them."""
    from llpbench.cli.suite import print_coverage

    print_coverage(suite, results.registry, results.store.results(), ())
    say(f"tables: llpbench table {results.folder} --suite {suite}")


def _tuning_times(planned: list[Planned]) -> list[str]:
    """What the search for the parameters of each method took, to be read beside its score."""
    from llpbench.report.progress import duration

    spent = {(p.method_name, p.dataset_name, p.cell.bags_name, p.cell.noise): p.tuning_seconds for p in planned}
    return [
        f"tuning {label} on {dataset}, {bag}{'' if noise == 'none' else f', noise {noise}'}: {duration(seconds)}"
        for (label, dataset, bag, noise), seconds in spent.items()
        if seconds
    ]
