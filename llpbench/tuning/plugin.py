"""Registers the verb ``tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.contracts.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def llpbench_commands(group: click.Group) -> None:
    """Add ``tune``."""
    from llpbench.tuning.verb import tune

    group.add_command(tune)
