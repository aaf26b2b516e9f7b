"""``tune``: search for parameters on held-back data."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.interrupt import exit_on_interrupt, typed_command
from llpbench.cli.options import Names, Seeds, cell_options, grid_options, option_names, plugin_options
from llpbench.cli.printing import progress_of, say
from llpbench.contracts.specs import DEFAULT_RULE

if TYPE_CHECKING:
    from llpbench.tuning.results import TuneResults


@click.command(short_help="Search for a method's parameters; run --params uses them.")
@click.option(
    "-m", "--methods", type=Names("methods"), help="Methods; what is given in brackets is fixed: dllp[epochs=30]."
)
@grid_options
@click.option("--trials", type=click.IntRange(min=1), help="Trials of each study.  [default: 20]")
@click.option(
    "--rule",
    type=Names(),
    help="What judges a trial: bags (held-back bags), instances (labels of held-back rows), others, or all; each has "
    "a study of its own.  [default: bags]",
)
@click.option(
    "--shared/--not-shared",
    default=None,
    help="One set of trials serves all rules: drawn at random, given up only where it lags under each.",
)
@click.option(
    "-s", "--seeds", type=Seeds(), help="Tune on so many seeds (from 0), or on these: 0,1,2 or 3-5.  [default: 1]"
)
@click.option("--per-seed", is_flag=True, default=None, help="A study for each seed, for runs of that seed alone.")
@click.option(
    "--sampler", type=click.Choice(["tpe", "random"]), help="How trials are drawn.  [default: tpe; shared: random]"
)
@click.option("--sampler-seed", type=int, help="Seed of what trials draw.  [default: 0]")
@click.option("--prune/--no-prune", default=None, help="Give up trials that lag behind the median.  [default: prune]")
@click.option("--at-once", type=click.IntRange(min=1), help="Trials of a study at once.  [default: 1]")
@click.option(
    "--config",
    help="A TOML file with the grid and, in its table [search], these settings, or the name of a built-in one; flags "
    "win over it.",
)
@click.option("-o", "--out", help="Where studies and chosen parameters are kept.  [default: tuned]")
@cell_options
@click.option("-v", "--verbose", is_flag=True, help="A line with the time for each cell that starts or ends.")
@click.option("--quiet", is_flag=True, help="No progress, only the table.")
@click.option("--json", "as_json", is_flag=True, help="The chosen parameters as JSON on standard output.")
@plugin_options
def tune(
    config: str | None,
    verbose: bool,
    quiet: bool,
    as_json: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
    **flags: Any,
) -> None:
    """Search the declared parameters of methods, the same number of trials for each, the defaults first.

    Trials are judged on validation data only: test rows are dropped as they are loaded. Every trial is kept: the same
    command again goes on where it stopped, also beside another one that still runs. llpbench run --params tuned then
    gives test scores.
    """
    from llpbench.tuning.request import plan_tune

    request = plan_tune(flags, config=config, plugins=plugins, override=override)
    with exit_on_interrupt():
        results = request.run(progress_of(quiet or as_json, verbose, request.metric), typed_command())
    _print(results, as_json)
    if not as_json and any(search.history().best is not None for search in results.searches):
        of_run = {**flags, "config": config, "plugin": [str(path) for path in plugins]}
        say(f"use the parameters with: {run_command(of_run, results, request.spec.run.folds)}", err=True)
    sys.exit(0 if results.complete else 1)


def run_command(flags: dict[str, Any], results: TuneResults, folds: int) -> str:
    """The run, as it can be typed, of what was searched for, with what was chosen.

    Args:
        flags: options of the search by name; those of the grid are the run's, too.
        results: the search.
        folds: how many folds it had; a rule may bring some that no option named.
    """
    words = ["llpbench", "run"]
    seeds = flags.get("seeds") if flags.get("per_seed") else None
    if isinstance(seeds, list) and len(seeds) == 1:
        seeds = [f"{seeds[0]}-{seeds[0]}"]
    for name in ("config", "methods", *option_names(grid_options), "seeds", "data"):
        value = {"seeds": seeds, "folds": folds or None}.get(name, flags.get(name))
        if value is not None:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            words += [f"--{name.replace('_', '-')}", text]
    for path in flags.get("plugin", ()):
        words += ["--plugin", path]
    words += ["--params", str(results.folder)]
    rules = list(dict.fromkeys(search.rule.name for search in results.searches))
    words += [] if DEFAULT_RULE in rules else ["--params-rule", rules[0]]
    words += ["--out", str(_folder_of_run(results.folder))] if flags.get("config") else []
    return shlex.join(words)


def _folder_of_run(search: Path) -> Path:
    """A results folder for what a search chose; not the search's own, which a run file may name."""
    folder = Path("results", search.resolve().name)
    return folder if folder.resolve() != search.resolve() else folder.with_name(f"{folder.name}-run")


def _print(results: TuneResults, as_json: bool) -> None:
    from llpbench.plugins.options import format_scalar
    from llpbench.tuning.results import chosen_row

    rows = [chosen_row(search) for search in results.searches]
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(rows), indent=1).decode())
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
        say(f"each trial serves the rules {' and '.join(rules_of_one)}; no rule had a part in what is drawn")
    say(f"histories: {results.folder}/studies", err=True)
