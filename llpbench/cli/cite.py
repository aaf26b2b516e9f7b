"""``cite``: how to cite llpbench."""

from __future__ import annotations

import click

from llpbench.cli.printing import say


@click.command(short_help="Print how to cite llpbench, as BibTeX.")
def cite() -> None:
    """Print BibTeX for llpbench in this version and for the paper it was built from."""
    from llpbench import __version__
    from llpbench.leaderboard.citation import bibtex

    say(bibtex(__version__))
