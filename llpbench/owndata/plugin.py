"""Registers the verb ``compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.contracts.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def llpbench_commands(group: click.Group) -> None:
    """Add ``compare``."""
    from llpbench.owndata.verb import compare

    group.add_command(compare)
