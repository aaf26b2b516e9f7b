"""Registers the verbs ``compare`` and ``disclosure``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.contracts.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def llpbench_commands(group: click.Group) -> None:
    """Add ``compare`` and ``disclosure``."""
    from llpbench.owndata.disclosure_verb import disclosure
    from llpbench.owndata.verb import compare

    group.add_command(compare)
    group.add_command(disclosure)
