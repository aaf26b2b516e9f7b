"""``report``: a results folder as a page."""

from __future__ import annotations

from pathlib import Path

import click

from llpbench.cli.options import folder_argument, plugin_options
from llpbench.cli.printing import say
from llpbench.cli.results import open_store, warn_of_mixture


@click.command(short_help="Make the HTML page of a results folder.")
@folder_argument
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write.  [default: FOLDER/report.html]"
)
@plugin_options
def report(folder: Path | None, out: Path | None, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Write the tables and charts of FOLDER (by default the newest results) as one HTML file that needs nothing else.

    It is the leaderboard's page with your results: sort, filter, switch metric and selection rule, open a number for
    its parameters, seeds and command. Every `llpbench run` writes it at its end. `llpbench versus -o page.html` writes
    it with published rows beside yours.
    """
    from llpbench.board.built.own_page import write_page
    from llpbench.plugins.registry import load_registry

    store = open_store(folder)
    warn_of_mixture(list(store.manifest().planned.values()), store.results())
    say(f"wrote {write_page(store, load_registry(plugins, override), out)}")
