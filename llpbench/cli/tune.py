"""``tune``: search for parameters on held-back data."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.cli.options import Names, cell_options, grid_options, plugin_options

if TYPE_CHECKING:
    from llpbench.cli.runfile import HowToRun
    from llpbench.plugins.registry import Registry
    from llpbench.tuning.chosen import Trial
    from llpbench.tuning.trials import Search, TuneSpec


@click.command(short_help="Search for a method's parameters; run --params uses them.")
@click.option("--methods", type=Names("methods"), help="Methods; what is given in brackets is fixed: dllp[epochs=30].")
@grid_options
@click.option("--trials", type=click.IntRange(min=1), default=20, show_default=True, help="Trials of each study.")
@click.option(
    "--rule",
    default="bags",
    show_default=True,
    help="What judges a trial: bags (held-back bags), instances (labels of held-back rows), another rule, or all.",
)
@click.option("--seeds", type=click.IntRange(min=1), help="Tune on seeds 0 to N - 1.  [default: 1]")
@click.option("--per-seed", is_flag=True, help="A study for each seed, for runs of that seed alone.")
@click.option("--sampler", type=click.Choice(["tpe", "random"]), default="tpe", show_default=True)
@click.option("--sampler-seed", type=int, default=0, show_default=True, help="Seed of what trials draw.")
@click.option("--prune/--no-prune", default=True, show_default=True, help="Give up trials that lag behind the median.")
@click.option("--at-once", type=click.IntRange(min=1), default=1, show_default=True, help="Trials of a study at once.")
@click.option("--out", default="tuned", show_default=True, help="Where studies and chosen parameters are kept.")
@cell_options
@click.option("--quiet", is_flag=True, help="No progress, only the table.")
@click.option("--json", "as_json", is_flag=True, help="The chosen parameters as JSON on standard output.")
@plugin_options
def tune(
    trials: int,
    rule: str,
    seeds: int | None,
    per_seed: bool,
    sampler: str,
    sampler_seed: int,
    prune: bool,
    at_once: int,
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
    from llpbench.cli.runfile import combine
    from llpbench.plugins.registry import load_registry
    from llpbench.tuning.study import import_optuna
    from llpbench.tuning.trials import TuneSpec

    import_optuna()
    registry = load_registry(plugins, override)
    run, how = combine({}, {**flags, "seeds": seeds or 1})
    names = [spec.name for spec in registry.rules.specs] if rule == "all" else [rule]
    rules = tuple(registry.rules[name].name for name in names)
    spec = TuneSpec(run, rules, trials, per_seed, sampler, sampler_seed, prune, at_once)
    searches = _search(spec, how, registry, plugins, override, quiet=quiet or as_json)
    _print(searches, Path(how.out), as_json)
    sys.exit(0 if all(search.history().best is not None for search in searches) else 1)


def _search(
    spec: TuneSpec,
    how: HowToRun,
    registry: Registry,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
    *,
    quiet: bool,
) -> list[Search]:
    from llpbench import __version__
    from llpbench.cli.execution import context_of, fetch_for, interrupt, limits_of, make_executor, typed_command
    from llpbench.experiment.grid import plan_cells
    from llpbench.results.store import Store
    from llpbench.tuning.study import Journal
    from llpbench.tuning.trials import Tuner, plan_searches

    command = typed_command()
    context = context_of(how.data, how.offline, plugins, override, predictions=False)
    planned = plan_cells(spec.run, registry)
    store = Store(Path(how.out))
    store.plan([], command, __version__)
    searches = plan_searches(spec, registry, Journal(store.root))
    executor = make_executor(how, registry)
    fetch_for(executor, (plan.cell.dataset for plan in planned), registry, context, quiet=quiet)
    tuner = Tuner(
        store,
        registry,
        executor,
        limits_of(how),
        context,
        heard=_quiet if quiet else _heard,
        command=command,
        version=__version__,
    )
    signal.signal(signal.SIGTERM, interrupt)
    try:
        tuner.go(searches)
    except KeyboardInterrupt:
        click.echo(f"\nstopped. Finished trials are in {store.root}; the same command goes on:\n  {command}", err=True)
        sys.exit(130)
    return searches


def _quiet(search: Search, trial: Trial) -> None:
    del search, trial


def _heard(search: Search, trial: Trial) -> None:
    """A line for each trial as it ends."""
    best = search.history().best
    value = f"{trial.value:.5f}" if trial.value is not None else "-"
    end = "" if trial.status == "ok" else f"  {trial.status}: {trial.reason}"
    reached = f"  best {best.value:.5f}" if best is not None and best.value is not None else ""
    head = f"{search.label}  {search.dataset_label}  bag {search.setting.cell.bag_size}  {search.setting.rule}"
    click.echo(f"[{trial.number + 1}/{search.wanted}] {head}  {value}{reached}  {trial.seconds:.1f} s{end}", err=True)


def _print(searches: list[Search], out: Path, as_json: bool) -> None:
    from llpbench.plugins.options import format_scalar

    rows: list[dict[str, Any]] = []
    for search in searches:
        history = search.history()
        best, first = history.best, history.first
        statuses = [t.status for t in history.trials]
        changed = {}
        if best is not None:
            defaults = {p.name: p.default for p in search.method.params}
            changed = {name: value for name, value in best.params.items() if value != defaults[name]}
        rows.append(
            {
                "method": search.label,
                "dataset": search.dataset_label,
                "bag": search.setting.cell.bag_size,
                "noise": search.setting.cell.noise,
                "rule": search.setting.rule,
                "seeds": ",".join(map(str, search.setting.seeds)),
                "default": first.value if first is not None and first.status == "ok" else None,
                "tuned": best.value if best is not None else None,
                "trials": len(statuses),
                "pruned": statuses.count("pruned"),
                "failed": sum(s not in ("ok", "pruned", "running") for s in statuses),
                "seconds": history.seconds,
                "params": changed,
                "reason": first.reason if best is None and first is not None else "",
            }
        )
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
    click.echo("values under the rule on validation data: bags, cross-entropy (lower is better); instances, AUROC")
    click.echo(tabulate(rows, headers="keys", disable_numparse=True))
    click.echo(f"histories: {out}/studies; use the parameters with: llpbench run --params {out}", err=True)
