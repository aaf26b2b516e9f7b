"""Hooks of the board: its verbs, the page of a finished run, published results, tables of suites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.contracts.errors import describe
from llpbench.contracts.hookspecs import hookimpl

if TYPE_CHECKING:
    import click

    from llpbench.contracts.result import CellResult
    from llpbench.experiment.suites.file import Suite
    from llpbench.plugins.registry import Registry
    from llpbench.report.results import Results
    from llpbench.report.tables import Table

MOST_CELLS = 2000
"""The page of a run with more cells is written on request only."""


@hookimpl
def llpbench_commands(group: click.Group) -> None:
    """Add ``report``, ``versus``, ``leaderboard``, ``rerun`` and ``cite``."""
    from llpbench.board.verbs.cite import cite
    from llpbench.board.verbs.leaderboard import leaderboard
    from llpbench.board.verbs.report import report
    from llpbench.board.verbs.rerun import rerun
    from llpbench.board.verbs.versus import versus

    for command in (report, versus, leaderboard, rerun, cite):
        group.add_command(command)


@hookimpl
def llpbench_run_finished(results: Results) -> str:
    """Write the HTML page of a finished run and return a line that says where it is."""
    if len(results.planned) > MOST_CELLS:
        return f"page: llpbench report {results.folder}"
    from llpbench.board.built.own_page import write_page

    try:
        return f"page: {write_page(results.store, results.registry)}"
    except Exception as error:
        return f"no page: {describe(error)}"


@hookimpl
def llpbench_published_results(folder: Path | None) -> list[CellResult]:
    """Read the published results of a leaderboard."""
    from llpbench.board.content.folder import read_folder
    from llpbench.board.verbs.options import board_to_read

    return [line.result for line in read_folder(board_to_read(folder)).lines.values()]


@hookimpl
def llpbench_table_kinds() -> dict[str, str]:
    """Methods tuned with labels and without, beside published values and the defaults."""
    return {"protocol": "llpbench.board.protocol_tables:run_tables"}


@hookimpl
def llpbench_suite_tables(
    suite: Suite,
    part: str,
    own: list[CellResult],
    published: list[CellResult],
    metric: str,
    rule: str,
    fmt: str,
    registry: Registry,
) -> list[Table] | str:
    """Return the tables of a suite as a paper prints them."""
    from llpbench.board.suites.text import suite_tables

    return suite_tables(suite, part, own, published, metric, rule, fmt, registry)
