"""What the conformance kit adds to llpbench: the verb ``check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.contracts.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def llpbench_commands(group: click.Group) -> None:
    """Add ``check``."""
    from llpbench.kit.verb import check

    group.add_command(check)
