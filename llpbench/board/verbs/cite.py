"""``cite``: how to cite llpbench, or a suite."""

from __future__ import annotations

from pathlib import Path

import click

from llpbench.cli.options import complete_suites, plugin_options
from llpbench.cli.printing import say


@click.command(short_help="Print how to cite llpbench, or a suite, as BibTeX.")
@click.argument("suite", required=False, shell_complete=complete_suites)
@plugin_options
def cite(suite: str | None, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Print BibTeX for llpbench in this version and for the paper it was built from.

    With SUITE (a name, a file, or SUITE/PART) print the BibTeX entry of that suite instead.
    """
    from llpbench import __version__
    from llpbench.board.built.citation import bibtex, frozen_bibtex
    from llpbench.experiment.suites.file import find_suite
    from llpbench.plugins.registry import load_registry

    registry = load_registry(plugins, override) if suite or plugins else None
    if suite is None or registry is None:
        say(bibtex(__version__))
    else:
        say(frozen_bibtex(*find_suite(suite, registry), __version__))
