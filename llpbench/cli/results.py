"""``table``: reading a results folder."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.cli.options import complete_suites, folder_argument, plugin_options, published_option
from llpbench.cli.printing import say
from llpbench.contracts.cell import setting_name
from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.specs import import_attribute

if TYPE_CHECKING:
    from llpbench.contracts.result import CellResult
    from llpbench.experiment.plan import Planned
    from llpbench.plugins.registry import Registry
    from llpbench.report.render import Wanted
    from llpbench.report.tables import Table
    from llpbench.results.store import Store


def _kinds() -> list[str]:
    from llpbench.plugins.registry import load_registry
    from llpbench.report.render import KINDS

    return [*KINDS, *load_registry().table_kinds()]


@click.command(short_help="Print the table of a results folder.")
@folder_argument
@click.option("--metric", default="auroc", show_default=True, help="What to print; fit_seconds for times.")
@click.option(
    "--rule",
    help="A selection rule; or all: those that results have, but for counts, which is shown when named.  "
    "[default: all; bags with --suite]",
)
@click.option(
    "--suite",
    shell_complete=complete_suites,
    help="The tables of a suite, or of a part, in the form of a paper, with the parameters of all methods.",
)
@published_option
@click.option(
    "--kind",
    metavar="KIND",
    shell_complete=lambda *given: [kind for kind in _kinds() if kind.startswith(given[-1])],
    default="scores",
    show_default=True,
    help="scores: the metric by bag size; noise: the metric by noise level; time: seconds by phase; pseudo: quality "
    "of pseudo-labels; protocol: methods tuned with labels and without beside published values and the defaults.",
)
@click.option("--paper", is_flag=True, help="Also show published values that plugins provide, and the difference.")
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
    rule: str | None,
    suite: str | None,
    board: Path | None,
    kind: str,
    paper: bool,
    fmt: str,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Print mean (sd over seeds) by method and bag size; best bold, second underlined.

    FOLDER is a results folder, by default the newest under results/. The selection rule is part of every heading:
    'bags' selects on held-out bags, 'instances' on labels of held-out rows (as the paper did). Plugins may bring
    others.

    With --suite the numbers are those of FOLDER, of the leaderboard of --board, or of both; published values stand in
    columns of their own. LaTeX needs the packages booktabs and adjustbox.
    """
    from llpbench.plugins.registry import load_registry
    from llpbench.report.render import ALL_RULES, KINDS, choose, render, tables_as_text

    if suite is not None or board is not None:
        from llpbench.cli.suite import show_suite_tables

        if kind != "scores":
            raise UsageError("--kind does not go with --suite: its tables are of scores.")
        show_suite_tables(suite, folder, board, metric, rule, fmt, load_registry(plugins, override))
        return
    store = open_store(folder)
    planned = list(store.manifest().planned.values())
    results = store.results(lambda path, damage: say(f"warning: {path}: {damage}", err=True))
    warn_of_mixture(planned, results)
    _warn_of_mixed_protocols(results)
    registry = load_registry(plugins, override)
    others = registry.table_kinds()
    if kind not in (*KINDS, *others):
        raise UnknownNameError("kind of table", kind, (*KINDS, *others))
    wanted = choose(registry, results, metric, rule or ALL_RULES, kind, paper)
    _note_what_is_not_there(planned, results, wanted, registry, paper)
    if kind in others:
        built = import_attribute(others[kind])(store, planned, results, wanted, registry)
        print_kind(built, kind) if fmt == "terminal" else say(tables_as_text(built, fmt))
    elif fmt == "terminal":
        show_tables(planned, results, wanted)
    else:
        say(render(planned, results, wanted, fmt))


def _note_what_is_not_there(
    planned: list[Planned], results: list[CellResult], wanted: Wanted, registry: Registry, paper: bool
) -> None:
    """Say why a rule that was named, or published values that were asked for, are not in the table."""
    from llpbench.report.render import make_tables

    fine = [result for result in results if result.status == "ok"]
    for rule in filter(None, wanted.rules):
        if fine and not any(rule in result.selected for result in fine):
            how = ": llpbench run --folds K computes them" if registry.rules[rule].cross_validated else ""
            say(f"note: no result has values under the rule {rule}{how}", err=True)
    if paper and wanted.kind == "scores":
        without = make_tables(planned, results, replace(wanted, references=()))
        if make_tables(planned, results, wanted) == without:
            say("note: no published values are known for these methods, datasets and bags", err=True)


def warn_of_mixture(planned: list[Planned], results: list[CellResult]) -> None:
    """Say when seeds of a row were computed by different code."""
    from llpbench.results.mixed_code import mixed_rows

    if rows := mixed_rows(planned, results):
        say(f"warning: {mixture_in_words(rows)}", err=True)


def _warn_of_mixed_protocols(results: list[CellResult]) -> None:
    """Say when numbers of several protocols stand in one table, or of an older one alone."""
    from llpbench.contracts.result import PROTOCOL

    made = Counter(result.protocol for result in results)
    if not set(made) - {PROTOCOL}:
        return
    words = " and ".join(f"{plural(n, 'cell')} of protocol {protocol}" for protocol, n in sorted(made.items()))
    what = "not comparable; repeat the run to recompute the older ones" if len(made) > 1 else f"this is {PROTOCOL}"
    say(f"warning: {words} ({what})", err=True)


def mixture_in_words(rows: list[str]) -> str:
    """That the seeds of these rows were computed by different code, and what to do."""
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    return (
        f"the seeds of {plural(len(rows), 'row')} were computed by different code: {rows[0]}{more}; "
        "recompute them with: llpbench run --rerun stale"
    )


def plural(n: int, noun: str) -> str:
    """``1 cell``, ``2 cells``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def describe_cell(plan: Planned) -> str:
    """A cell in one line."""
    noise = "" if plan.cell.noise == "none" else f", noise {plan.cell.noise}"
    where = setting_name(plan.dataset_name, plan.cell.bag_size)
    return f"{plan.method_name} on {where}, seed {plan.cell.seed}{noise}"


def open_store(folder: Path | None) -> Store:
    """The given results folder, or the newest one."""
    from llpbench.results.store import Store, newest_store

    return newest_store(Path("results")) if folder is None else Store(folder)


def newest_folder() -> Path | None:
    """The newest results folder here; None if there is none."""
    from llpbench.contracts.errors import StoreError

    try:
        return open_store(None).root
    except StoreError:
        return None


def show_tables(planned: list[Planned], results: list[CellResult], wanted: Wanted) -> None:
    """Print tables on the terminal, and below them what the bags are like."""
    from rich.console import Console

    from llpbench.report.cards import card_lines
    from llpbench.report.render import make_tables
    from llpbench.report.terminal import print_cards
    from llpbench.results.table import group_cells

    print_kind(make_tables(planned, results, wanted), wanted.kind)
    print_cards(card_lines(group_cells(planned, results)), Console(highlight=False))


def print_kind(built: list[Table], kind: str) -> None:
    """Print tables of a kind on the terminal, or say why there is none."""
    from rich.console import Console

    from llpbench.report.terminal import print_tables

    if not built:
        nothing = {
            "protocol": "it has no values under any rule",
            "noise": "it has one noise level",
            "pseudo": "no method of it makes pseudo-labels",
        }
        say(f"no table: {nothing.get(kind, 'it plans no cells')}.", err=True)
    print_tables(built, Console(highlight=False))
