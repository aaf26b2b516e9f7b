"""What is published beside cells and belongs to none of them: machines and searches."""

from __future__ import annotations

import contextlib

from llpbench.board.content.folder import Content
from llpbench.board.content.searched import check_search, is_tuned
from llpbench.board.content.splits import Splits
from llpbench.board.validate import Unsound
from llpbench.plugins.registry import Registry


def unused_machines(content: Content) -> set[str]:
    """Machines that made no published cell."""
    return set(content.machines) - {line.result.machine for line in content.lines.values()}


def unused_searches(content: Content, registry: Registry | None, splits: Splits) -> set[str]:
    """Searches that chose the parameters of no published cell; ``splits`` are those of the published cells."""
    used = set()
    for line in content.lines.values():
        result = line.result
        if not is_tuned(result.cell) or result.status != "ok":
            continue
        entry = None if registry is None else registry.methods.entries.get(result.cell.method)
        method = None if entry is None else entry.spec
        with contextlib.suppress(Unsound):  # a cell without its search is a problem of its own
            used.add(check_search(result, content.searches.values(), method, splits).study)
    return set(content.searches) - used


def drop_unused(content: Content, registry: Registry, splits: Splits) -> None:
    """Take away what belonged to cells that were replaced, so that a leaderboard holds nothing without a cell."""
    for name in unused_machines(content):
        del content.machines[name]
    for name in unused_searches(content, registry, splits):
        del content.searches[name]
