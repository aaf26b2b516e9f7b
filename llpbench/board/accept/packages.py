"""The packages that the new cells of a submission need, so that a reviewer installs these and no others.

A cell says which code made it, part by part. What a file says is a stranger's word: a package is named only when a new
cell is of what it brings, never for a name that an installed package has, and never where it is a library that
llpbench itself stands on. That a named package is harmless is not said here: installing and importing it runs its code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution

from llpbench.board.content.facts import Facts
from llpbench.board.content.folder import Content
from llpbench.board.content.origin import read_origin
from llpbench.board.validate import RELEASE, clip
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult
from llpbench.plugins.fingerprint import OWN
from llpbench.plugins.loading import GROUP
from llpbench.plugins.registry import Registry

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")


def new_results(content: Content, before: Content) -> list[CellResult]:
    """Results that a leaderboard before does not hold, or holds as a failure only; by id.

    What is otherwise another than before is refused by ``brought``, and what was handed in as predictions is not run.
    """
    return [
        line.result
        for cell_id, line in sorted(content.lines.items())
        if not line.result.predictions_only
        and (cell_id not in before.lines or before.lines[cell_id].result.status != "ok")
        and before.lines.get(cell_id) != line
    ]


def packages(content: Content, before: Content, registry: Registry) -> list[str]:
    """What to install for the cells that are new, as ``NAME==VERSION``, sorted.

    Args:
        content: the leaderboard with a submission.
        before: the leaderboard before it.
        registry: what is installed already.

    Raises:
        StoreError: a cell names a package that is none, that is not the one its name belongs to, or one in two
            versions. The sentence says which cell, and what to do.
    """
    found: dict[str, tuple[str, str, str]] = {}  # by the name as indexes compare it: name, version, cell
    for result in new_results(content, before):
        for part, name, version in _named(result, content.facts):
            _check_owner(result, part, name, registry)
            if _plain(name) == OWN:
                continue
            _check_release(result, part, name, version)
            _, known, witness = found.setdefault(_plain(name), (name, version, result.id))
            if known != version:
                raise StoreError(
                    f"cell {witness} was made by {name} {known}, cell {result.id} by {version}: one environment has "
                    "one of them. Make these cells with one release, or submit them one after the other."
                )
    return [f"{name}=={version}" for _, (name, version, _) in sorted(found.items())]


def untraced_news(untraced: Mapping[str, int], results: Iterable[CellResult]) -> dict[str, int]:
    """Of what is not installed (``Audit.untraced``), that which these results are of."""
    named: set[str] = set()
    for result in results:
        named |= {f"method {result.cell.method}", f"dataset {result.cell.dataset}"}
        named |= {f"selection rule {rule}" for rule in result.selected}
        named |= {f"metric {metric}" for chosen in result.selected.values() for metric in chosen.metrics}
    return {name: cells for name, cells in untraced.items() if name in named}


def _named(result: CellResult, facts: Facts) -> Iterator[tuple[str, str, str]]:
    """The parts of a cell with the name and version of the package that each came from.

    A cell that was stopped does not say which code it was: then there is the description of its method and dataset.
    """
    for part in _parts(result):
        line = result.code.get(part)
        origin = None if line is None else read_origin(line)
        if origin is not None and origin.kind != "file":
            yield part, origin.name, origin.version or result.versions.get(origin.name, "")
        elif part in ("method", "dataset"):
            known = (facts.methods.get(result.cell.method), facts.datasets.get(result.cell.dataset))[part == "dataset"]
            name, _, version = (known.origin if known is not None else "").partition(" ")
            if name:
                yield part, name, version


def _parts(result: CellResult) -> list[str]:
    """What of a cell may come from a package; only what the cell itself is of, whatever else its file lists."""
    metrics = {name for chosen in result.selected.values() for name in chosen.metrics}
    rules = [f"rule {name}" for name in sorted(result.selected)]
    return ["method", "dataset", f"scheme {result.cell.scheme}", *rules, *(f"metric {m}" for m in sorted(metrics))]


def _check_owner(result: CellResult, part: str, name: str, registry: Registry) -> None:
    """Refuse a package for a name that another installed package has."""
    kind, _, registered = part.partition(" ")
    shelves: dict[str, tuple[Mapping[str, object], str]] = {
        "method": (registry.methods.entries, result.cell.method),
        "dataset": (registry.datasets.entries, result.cell.dataset),
        "scheme": (registry.schemes.entries, registered),
        "rule": (registry.rules.entries, registered),
        "metric": (registry.metrics.entries, registered),
    }
    entries, wanted = shelves[kind]
    entry = entries.get(wanted)
    owner = getattr(getattr(entry, "plugin", None), "distribution", None)
    if owner is not None and _plain(owner) != _plain(name):
        raise StoreError(
            f"cell {result.id}: its {kind} {wanted} is said to come from {clip(name)}, but the name belongs to {owner}."
        )


def _check_release(result: CellResult, part: str, name: str, version: str) -> None:
    if not _NAME.fullmatch(name) or not RELEASE.fullmatch(version):
        raise StoreError(
            f"cell {result.id}: its {part} is of {clip(name)} {clip(version)}, which is no release of a package. "
            "Release the package, and make the cell with that release."
        )
    if _is_a_library(name):
        raise StoreError(
            f"cell {result.id}: its {part} is said to come from {name}, which is installed here and is no plugin of "
            "llpbench."
        )


def _is_a_library(name: str) -> bool:
    """Whether a distribution is installed that brings no plugin: one that llpbench, or somebody's plugin, needs."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return False
    return not any(entry.group == GROUP for entry in found.entry_points)


def _plain(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
