"""``tune``: search for parameters on held-out data."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.interrupt import exit_on_interrupt
from llpbench.cli.options import BriefCommand, plugin_options, setting_options
from llpbench.cli.printing import print_json, say, verbose_view
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.experiment.run_settings import RunSettings
from llpbench.results.request import Request
from llpbench.tuning.settings import NOT_FOR_SEARCHES, TuneSettings

if TYPE_CHECKING:
    from llpbench.tuning.results import TuneResults


@click.command(cls=BriefCommand, short_help="Search for a method's parameters; run --params uses them.")
@setting_options(TuneSettings, "override", "plugins", *NOT_FOR_SEARCHES)
@click.option("-v", "--verbose", is_flag=True, help="Print a line with the time for each cell that starts or ends.")
@click.option("-q", "--quiet", is_flag=True, help="Print the table only, without progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the chosen parameters as JSON.")
@plugin_options
def tune(verbose: bool, quiet: bool, as_json: bool, **settings: Any) -> None:
    """Search the declared parameters of methods, the same number of trials for each, the defaults first.

    Parameters in brackets are fixed, not searched: dllp[epochs=30].

    Trials are judged on validation data only: test rows are dropped as they are loaded. Every trial is kept: the same
    command again goes on where it stopped, also beside another one that still runs. llpbench run --params tuned then
    gives test scores.
    """
    from llpbench.tuning.request import plan_tune

    request = plan_tune({**settings, "progress": not (quiet or as_json)})
    with exit_on_interrupt():
        results = request.run(verbose_view(verbose, request.metric))
    _print(results, as_json)
    if not as_json and any(search.history().best is not None for search in results.searches):
        advised = run_request(request.request.settings, request.settings.folds, results)
        say(f"use the parameters with: {advised}", err=True)
    sys.exit(0 if results.complete else 1)


def run_request(given: Mapping[str, Any], folds: int, results: TuneResults) -> Request:
    """The run of what was searched for, with the parameters that were chosen.

    Args:
        given: the settings of the search.
        folds: how many folds it had; a rule may bring some that no option named.
        results: the search.
    """
    kept = {name for name, setting in RunSettings.declared().items() if setting.grid}
    kept |= {"config", "data", "epsilon", "plugins"}
    kept -= set() if given.get("per_seed") else {"seeds"}
    settings = {name: value for name, value in given.items() if name in kept}
    rules = list(dict.fromkeys(search.rule.name for search in results.searches))
    return Request(verb="run", settings=settings).replace(
        folds=folds or None,
        params=str(results.folder),
        params_rule=None if DEFAULT_RULE in rules else rules[0],
        out=str(_folder_of_run(results.folder)) if "config" in given else None,
    )


def _folder_of_run(search: Path) -> Path:
    """A results folder for what a search chose; not the search's own, which a run file may name."""
    folder = Path("results", search.resolve().name)
    return folder if folder.resolve() != search.resolve() else folder.with_name(f"{folder.name}-run")


def _print(results: TuneResults, as_json: bool) -> None:
    from llpbench.plugins.options import format_scalar
    from llpbench.tuning.results import chosen_row

    rows = [chosen_row(search) for search in results.searches]
    if as_json:
        print_json(rows)
        return
    from tabulate import tabulate

    for row in rows:
        for key in ("default", "tuned"):
            row[key] = "-" if row[key] is None else f"{row[key]:.5f}"
        row["seconds"] = f"{row['seconds']:.1f}"
        settings = "; ".join(f"{name}={format_scalar(value)}" for name, value in row.pop("params").items())
        row["chosen"] = row.pop("reason") or settings or "the defaults"
    rules = {search.rule.name: search.rule for search in results.searches}.values()
    words = [f"{r.name}, {r.title} ({'higher' if r.higher_is_better else 'lower'} is better)" for r in rules]
    say(f"values under the rule on validation data: {'; '.join(words)}")
    say(tabulate(rows, headers="keys", disable_numparse=True))
    for rules_of_one in dict.fromkeys(tuple(search.shared) for search in results.searches if search.shared):
        say(f"each trial serves the rules {' and '.join(rules_of_one)}; draws do not depend on any rule")
    say(f"histories: {results.folder}/studies", err=True)
