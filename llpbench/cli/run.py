"""``run``: the main job."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.interrupt import exit_on_interrupt
from llpbench.cli.keywords import Keywords, chosen, keyword_option
from llpbench.cli.options import BriefCommand, RareOption, plugin_options, setting_options
from llpbench.cli.printing import say, verbose_view
from llpbench.cli.results import describe_cell, plural
from llpbench.cli.status import print_troubles, trouble_of
from llpbench.contracts.errors import UsageError
from llpbench.contracts.result import FAILURES
from llpbench.experiment.run_settings import RunSettings

if TYPE_CHECKING:
    from llpbench.api import RunRequest
    from llpbench.contracts.result import CellResult
    from llpbench.experiment.plan import Planned
    from llpbench.report.results import Results


_DIGITS = re.compile(r"\d+")
LARGE_RUN = 2_000
"""Cells to run above which a run is announced, and confirmed on a terminal."""


@click.command(cls=BriefCommand, short_help="Run a grid of cells and print its table.")
@setting_options(RunSettings, "override", "plugins")
@keyword_option("cells")
@click.option("--lf", "last_failed", is_flag=True, help="Run cells that failed again, as --rerun failed.")
@click.option("-y", "--yes", cls=RareOption, is_flag=True, help="Start a large run without asking.")
@click.option("-n", "--dry-run", is_flag=True, help="List the cells that would run, and exit.")
@click.option(
    "--debug",
    cls=RareOption,
    is_flag=True,
    help="Run one cell in this process, for a debugger; its result is not kept.",
)
@click.option(
    "--save",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the settings to a run file (run --config FILE), and exit.",
)
@click.option("--pdb", "post_mortem", is_flag=True, help="As --debug; where the cell fails, start the debugger.")
@click.option("-v", "--verbose", is_flag=True, help="Print a line with the time for each cell that starts or ends.")
@click.option("-q", "--quiet", is_flag=True, help="Print the table only, without progress.")
@click.option(
    "--json", "as_json", cls=RareOption, is_flag=True, help="Print the table as JSON (as table --format json)."
)
@plugin_options
def run(
    matching: Keywords,
    last_failed: bool,
    dry_run: bool,
    yes: bool,
    debug: bool,
    save: Path | None,
    post_mortem: bool,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Run every combination of methods, datasets, bag sizes, noise levels and seeds; print the table.

    With --suite, run the cells of a frozen grid that papers can cite (llpbench list suites). With -k, only cells whose
    line in --dry-run matches: texts joined by and, or, not and parentheses, as in pytest.

    Finished cells are kept: the same command again runs only what is missing, and what was made under another protocol
    or by other code of a plugin that is not a release. Ctrl-C loses only the cells that were running.

    The results folder also gets run.log (what ran when) and report.html (tables and charts to look at in a browser).

    Exit code 0: all cells are fine (or declined with a reason); 1: some failed; 2: the request itself is wrong.
    """
    from llpbench.api import plan_run

    if last_failed:
        settings["rerun"] = "failed"
    request = plan_run({**settings, "progress": not (quiet or as_json)})
    if save is not None:
        if matching.expression:
            raise UsageError("--save does not go with -k: a run file has the whole grid.")
        _save(request, save)
        return
    request = replace(request, planned=chosen(request.planned, _line, matching, "cells"))
    if dry_run:
        _print_plan(request)
        return
    if debug or post_mortem:
        _debug(request, post_mortem)
        return
    _announce(request, ask=not yes)
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


def _save(request: RunRequest, file: Path) -> None:
    """Write the settings of a request to a run file."""
    from llpbench.execution.settings import write_run_file

    if request.settings.suite:
        raise UsageError("--save does not go with --suite, which is a file of its own.")
    write_run_file(file, request.settings)
    say(f"wrote {file}. Run it with: llpbench run --config {shlex.quote(str(file))}")


def _announce(request: RunRequest, ask: bool) -> None:
    """Say how large a large run is, and ask on a terminal whether to start it."""
    if len(request.planned) <= LARGE_RUN:
        return
    from llpbench.execution.local import cells_at_once
    from llpbench.report.progress import QuietView, duration

    run_now, kept = request.wanted(QuietView())
    if len(run_now) <= LARGE_RUN:
        return
    settings = request.settings
    words = f"{len(run_now):,} cells would run ({len(settings.seed_list):,} seeds), {len(kept):,} are kept"
    if kept and settings.executor == "local":
        each = sum(result.wall_seconds for result in kept) / len(kept)
        seconds = each * len(run_now) / cells_at_once(settings.jobs, settings.threads)
        words += f"; at {each:.1f} s each, as so far, about {duration(seconds)}"
    say(words, err=True)
    if ask and _on_a_terminal():
        click.confirm("Start?", abort=True, err=True)


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


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
    return f"{plan.cell.id}  {describe_cell(plan)}"


def _debug(request: RunRequest, post_mortem: bool) -> None:
    """Run the first cell that would run (or the first of all) in this process; its errors are raised as they are.

    With ``post_mortem``, an error is printed and examined in ``pdb``.
    """
    from llpbench.report.progress import QuietView, describe_result

    plan = (request.wanted(QuietView())[0] or request.planned)[0]
    if len(request.planned) > 1:
        say(f"--debug runs one cell, the first of {len(request.planned)}:", err=True)
    say(_line(plan), err=True)
    try:
        result = request.debug(plan)
    except Exception:
        if not post_mortem:
            raise
        import pdb
        import traceback

        traceback.print_exc()
        pdb.post_mortem()
        sys.exit(1)
    say(describe_result(result, request.metric))


def _print_failures(results: Results, most: int = 5) -> None:
    """Where cells failed: the line in the plugin's own code, and the file that has the traceback; each cause once."""
    plans = {plan.cell.id: plan for plan in results.planned}
    failed = [result for result in results.results if result.status in FAILURES]
    if not failed:
        return
    say(f"{plural(len(failed), 'cell')} failed:", err=True)
    causes: dict[tuple[str, str], list[CellResult]] = {}
    for result in failed:
        causes.setdefault((result.status, result.failed_at or _DIGITS.sub("#", result.reason)), []).append(result)
    for first, *others in list(causes.values())[:most]:
        print_troubles([trouble_of(first, plans[first.id], results.store)], err=True)
        if others:
            say(f"      the same in {plural(len(others), 'more cell')}", err=True)
    if len(causes) > most:
        say(f"  … and {len(causes) - most} other causes: llpbench status {results.folder}", err=True)


def _print_results(results: Results, as_json: bool) -> None:
    from llpbench.cli.results import show_tables, warn_of_mixture
    from llpbench.report.render import choose

    if as_json:
        click.echo(results.table(rule="all", format="json"))
    else:
        warn_of_mixture(results.planned, results.results)
        show_tables(
            results.planned, results.results, choose(results.registry, results.results, results.metric), failures=False
        )
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
