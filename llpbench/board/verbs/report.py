"""``report``: a results folder as a page."""

from __future__ import annotations

from pathlib import Path

import click

from llpbench.board.verbs.options import OR_SHIPPED, board_option, board_to_read, shipped_has
from llpbench.cli.options import folder_argument, plugin_options
from llpbench.cli.printing import say
from llpbench.cli.results import open_store, warn_of_mixture


@click.command(short_help="Make the HTML page of a results folder.")
@folder_argument
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write.  [default: FOLDER/report.html]"
)
@click.option(
    "--with",
    "beside",
    type=click.Choice(["leaderboard"]),
    help="Show the published rows of the same datasets, bags and seeds beside yours.",
)
@board_option(default=OR_SHIPPED)
@plugin_options
def report(
    folder: Path | None,
    out: Path | None,
    beside: str | None,
    board: Path | None,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Write the tables and charts of FOLDER (by default the newest results) as one HTML file that needs nothing else.

    It is the leaderboard's page with your results: sort, filter, switch metric and selection rule, open a number for
    its parameters, seeds and command. Every `llpbench run` writes it at its end.

    `--with leaderboard` (or `--board DIR`) puts published rows beside yours, so that you need not run other methods
    again. A leaderboard of another protocol is refused: its numbers cannot be compared.
    """
    from llpbench.board.built.own_page import published_beside, write_page
    from llpbench.board.content.folder import read_folder
    from llpbench.board.content.shipped import shipped_instead_of
    from llpbench.plugins.registry import load_registry

    store = open_store(folder)
    warn_of_mixture(list(store.manifest().planned.values()), store.results())
    read = board_to_read(board) if beside or board else None
    published = None if read is None else read_folder(read)
    say(f"wrote {write_page(store, load_registry(plugins, override), out, published)}")
    if read is None or published is None or published_beside(published.lines.values(), store.results()):
        return
    shipped = shipped_instead_of(read)
    others = shipped is not None and published_beside(read_folder(shipped).lines.values(), store.results())
    say(
        f"note: {read} has no other methods on the same datasets, bags, noise and seeds; the page shows yours only"
        + (f"; {shipped_has('some', shipped)}" if shipped and others else ""),
        err=True,
    )
