"""``versus``: results of a folder against published ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.board.verbs.options import OR_SHIPPED, board_option, board_to_read, shipped_has
from llpbench.cli.options import filter_options, folder_argument, plugin_options
from llpbench.cli.printing import say
from llpbench.cli.results import open_store

if TYPE_CHECKING:
    from llpbench.board.content.folder import Content
    from llpbench.board.versus import Comparison
    from llpbench.plugins.registry import Registry
    from llpbench.report.filter import Filter
    from llpbench.report.render import Wanted
    from llpbench.results.store import Store

_FORMATS = (".md", ".tex", ".csv", ".json", ".html", ".bib", ".pdf", ".svg", ".png")


@click.command(short_help="Compare your results with published ones.")
@folder_argument
@click.option("--metric", default="auroc", show_default=True, help="What to compare; fit_seconds for times.")
@click.option("--rule", default="bags", show_default=True, help="The selection rule.")
@click.option(
    "-o",
    "--out",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a file; its ending is the format: .md, .tex, .csv, .json, .html (the page with the published "
    "rows), .bib (how to cite llpbench and the suites), .pdf, .svg, .png (the differences as a figure). May be "
    "repeated.",
)
@filter_options
@board_option(default=OR_SHIPPED)
@plugin_options
def versus(
    folder: Path | None,
    metric: str,
    rule: str,
    out: tuple[Path, ...],
    shown: Filter,
    board: Path | None,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Compare the methods of FOLDER (by default the newest results) with published ones, paired by seed.

    For each setting and each published method: its mean, the difference to yours, the 95 % interval of the difference,
    and the p-value, corrected for the number of rivals, with its verdict at the 5 % level. Controls are below the
    methods, bounds below the controls. --methods selects published methods; by default those at their defaults.
    """
    from rich.console import Console

    from llpbench.board.content.folder import read_folder
    from llpbench.board.versus import compare, tables_of
    from llpbench.contracts.errors import UsageError
    from llpbench.plugins.registry import load_registry
    from llpbench.report.render import choose
    from llpbench.report.terminal import print_tables

    for path in out:
        if path.suffix not in _FORMATS:
            raise UsageError(f"{path}: unknown format. Available: {', '.join(_FORMATS)}.")
    store, registry = open_store(folder), load_registry(plugins, override)
    read = board_to_read(board)
    content = read_folder(read)
    wanted = choose(registry, store.results(), metric, rule)
    found = compare(store, content, shown, wanted.metric, wanted.rules[0], wanted.roles)
    if not found:
        raise UsageError(
            f"{read} has no other methods on the same datasets, bags, noise and seeds as {store.root}"
            f"{_elsewhere(read, store, shown, wanted)}."
        )
    print_tables(tables_of(found, wanted.metric, wanted.rules[0]), Console(highlight=False))
    for path in out:
        _write(path, found, wanted, store, content, registry)
        say(f"wrote {path}", err=True)


def _elsewhere(read: Path, store: Store, shown: Filter, wanted: Wanted) -> str:
    """A hint that the shipped leaderboard has comparable results; empty if it has none."""
    from llpbench.board.content.folder import read_folder
    from llpbench.board.content.shipped import shipped_instead_of
    from llpbench.board.versus import compare

    shipped = shipped_instead_of(read)
    if shipped is None:
        return ""
    there = compare(store, read_folder(shipped), shown, wanted.metric, wanted.rules[0], wanted.roles)
    return f"; {shipped_has('some', shipped)}" if there else ""


def _write(
    path: Path, found: Sequence[Comparison], wanted: Wanted, store: Store, content: Content, registry: Registry
) -> None:
    from llpbench.board.built.own_page import write_page
    from llpbench.board.versus import panels_of, records, tables_of
    from llpbench.contracts.errors import StoreError, UsageError
    from llpbench.report import charts
    from llpbench.report.tables import csv_text, json_text, to_latex, to_markdown

    if path.suffix == ".html":
        write_page(store, registry, path, content)
        return
    if path.suffix in charts.FORMATS:
        charts.without_display()
        panels = panels_of(found)
        if not panels:
            raise UsageError(f"{path}: there are only controls and bounds to compare with, which figures leave out.")
        charts.save(charts.intervals(panels, f"difference, {wanted.metric.title}"), path)
        return
    tables = tables_of(found, wanted.metric, wanted.rules[0])
    text = {
        ".md": lambda: to_markdown(tables),
        ".tex": lambda: to_latex(tables),
        ".csv": lambda: csv_text(list(records(found)[0]), (_flat(line) for line in records(found))),
        ".json": lambda: json_text(records(found)),
        ".bib": lambda: _bibtex(store, registry),
    }[path.suffix]()
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}.") from None


def _flat(record: dict[str, object]) -> list[object]:
    """The fields of a line of CSV; seeds with spaces between them."""
    return [" ".join(map(str, value)) if isinstance(value, list) else value for value in record.values()]


def _bibtex(store: Store, registry: Registry) -> str:
    """The entries of llpbench, of its paper, and of the suites that the folder was run with."""
    from llpbench import __version__
    from llpbench.board.built.citation import bibtex, frozen_bibtex
    from llpbench.experiment.suites.file import find_suite

    commands = [command for command in store.manifest().commands if not isinstance(command, str)]
    suites = dict.fromkeys(str(command.settings["suite"]) for command in commands if "suite" in command.settings)
    cited = [frozen_bibtex(*find_suite(name, registry), __version__) for name in suites]
    return "\n\n".join([bibtex(__version__), *cited])
