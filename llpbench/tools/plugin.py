"""Registers the verbs of this room, and tables of times, pseudo-labels and the worth of bags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.contracts.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def llpbench_commands(group: click.Group) -> None:
    """Add ``suite``, ``data``, ``plugins``, ``config``, ``cache`` and ``completion``."""
    from llpbench.tools.cache import cache
    from llpbench.tools.completion import completion
    from llpbench.tools.config import config
    from llpbench.tools.data import data
    from llpbench.tools.plugins import plugins_
    from llpbench.tools.suite import suite_

    for command in (suite_, data, plugins_, config, cache, completion):
        group.add_command(command)


@hookimpl
def llpbench_table_kinds() -> dict[str, str]:
    """Seconds by phase, the quality of pseudo-labels, and what bags are worth in labelled rows."""
    return {
        "time": "llpbench.tools.phases:time_tables",
        "pseudo": "llpbench.tools.phases:pseudo_tables",
        "worth": "llpbench.tools.worth:worth_tables",
    }
