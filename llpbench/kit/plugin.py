"""Registers the verbs ``check``, ``new`` and ``doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.contracts.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def llpbench_commands(group: click.Group) -> None:
    """Add ``check``, ``new`` and ``doctor``."""
    from llpbench.kit.doctor import doctor
    from llpbench.kit.new import new
    from llpbench.kit.verb import check

    for command in (check, new, doctor):
        group.add_command(command)
