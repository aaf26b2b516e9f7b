"""What ``table``, ``status``, ``run``, ``list`` and ``show`` say of a suite."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from llpbench.cli.printing import say, say_wrapped
from llpbench.cli.results import newest_folder, open_store, plural

if TYPE_CHECKING:
    from llpbench.contracts.result import CellResult
    from llpbench.experiment.suites.coverage import Coverage
    from llpbench.experiment.suites.file import Suite
    from llpbench.plugins.registry import Registry


class Read(NamedTuple):
    """Results to look at: one's own, and published ones."""

    own: list[CellResult]
    published: list[CellResult]


def read_results(suite: str | None, folder: Path | None, board: Path | None, registry: Registry) -> Read:
    """Results of a folder, of a leaderboard, or of both.

    When neither is given: of the newest results folder, or of the leaderboard where there is none; it says which.

    Raises:
        UsageError: a leaderboard without a suite, or a suite without a name.
    """
    from llpbench.contracts.errors import UsageError

    if suite is None:
        raise UsageError("--board needs --suite here: which cells of the leaderboard are meant (llpbench list suites).")
    if not suite.strip():
        raise UsageError("--suite needs the name of a suite, or its file (llpbench list suites).")
    published = board is not None
    if folder is None and board is None:
        folder = newest_folder()
        published = folder is None
        which = f"results of {folder} (published ones: --board leaderboards)"
        say(which if folder else "no results here: published ones are shown", err=True)
    own = []
    if folder is not None:
        own = open_store(folder).results(lambda path, damage: say(f"warning: {path}: {damage}", err=True))
    return Read(own, registry.published_results(board) if published else [])


def coverage_of(name: str, registry: Registry, results: Iterable[CellResult]) -> list[Coverage]:
    """How much of a suite, or of a part, there is; one entry for each part."""
    from llpbench.experiment.suites.coverage import suite_coverage
    from llpbench.experiment.suites.file import find_suite

    suite, part = find_suite(name, registry)
    return suite_coverage(suite, registry, results, part)


def print_coverage(name: str, registry: Registry, own: Iterable[CellResult], published: Iterable[CellResult]) -> None:
    """Print how much of a suite there is, and how far one's own methods are on it."""
    from llpbench.experiment.suites.coverage import own_coverage, suite_coverage
    from llpbench.experiment.suites.file import find_suite

    suite, part = find_suite(name, registry)
    own = list(own)
    for of_part in (
        *suite_coverage(suite, registry, [*own, *published], part),
        *own_coverage(suite, registry, own, part),
    ):
        say(of_part.line)


def show_suite_tables(
    name: str | None,
    folder: Path | None,
    board: Path | None,
    metric: str,
    rule: str | None,
    fmt: str,
    registry: Registry,
) -> None:
    """Print the tables of a suite from results of one's own, published ones, or both.

    Every format has the same numbers: those of the suite's protocol, averaged in each part by itself.
    """
    from rich.console import Console

    from llpbench.contracts.specs import DEFAULT_RULE
    from llpbench.experiment.suites.file import find_suite
    from llpbench.report.terminal import print_tables

    read = read_results(name, folder, board, registry)
    suite, part = find_suite(name or "", registry)
    own, published = ([r for r in found if r.protocol == suite.protocol] for found in read)
    left_out = len(read.own) + len(read.published) - len(own) - len(published)
    if left_out:
        say(f"warning: {plural(left_out, 'cell')} left out: {suite.name} is of protocol {suite.protocol}", err=True)
    made = registry.manager.hook.llpbench_suite_tables(
        suite=suite,
        part=part,
        own=own,
        published=published,
        metric=metric,
        rule=rule or DEFAULT_RULE,
        fmt=fmt,
        registry=registry,
    )
    if not made:
        say(f"no table: there is no number of {name} yet (llpbench status --suite {name}).", err=True)
        sys.exit(1)
    elif isinstance(made, str):
        say(made)
    else:
        print_tables(made, Console(highlight=False))


def list_suites(registry: Registry) -> dict[str, str]:
    """The suites that plugins ship, each with its title; one that cannot be read says why."""
    from llpbench.contracts.errors import LLPBenchError
    from llpbench.experiment.suites.file import read_suite, suite_files

    found = {}
    try:
        files = suite_files(registry)
    except LLPBenchError as error:
        return {"conflict": str(error)}
    for name, path in sorted(files.items()):
        try:
            found[name] = read_suite(path).title
        except LLPBenchError as error:
            found[name] = f"broken: {error}"
    return found


def print_suite(named: str, registry: Registry) -> None:
    """What is in a suite, or in a part: blocks, methods, numbers of cells; how to run and cite it."""
    from llpbench.experiment.suites.file import find_suite
    from llpbench.experiment.suites.plan import Limits, all_cells, plan_suite

    suite, part = find_suite(named, registry)
    blocks = plan_suite(suite, registry, Limits(part=part))
    say(f"{suite.name}/{part}" if part else suite.name, bold=True)
    say_wrapped("  ", suite.title)
    facts = [("version", f"{suite.version}, {suite.state}"), ("protocol", str(suite.protocol))]
    facts += [("backend", suite.backend), ("cells", f"{len(all_cells(blocks)):,}")]
    facts += [(role, ", ".join(names)) for role, names in methods_by_role(suite, registry, part).items() if names]
    facts += [("frozen", f"values of {suite.frozen.by}"), ("citation", suite.citation)]
    for key, value in facts:
        say_wrapped(f"  {key:<10}", value)
    for of in suite.part_names(part):
        of_part = [block for block in blocks if block.part == of]
        say(f"\n  {of}", bold=True, nl=False)
        say(f"  {suite.parts[of].title}: {plural(len(all_cells(of_part)), 'cell')}")
        for planned in of_part:
            block = planned.block
            axes = [_datasets(block.datasets)]
            axes += [f"bags of {', '.join(map(str, block.bags))}"] if block.bags else [", ".join(block.schemes)]
            axes += [f"split={block.split}"] if block.split != "rows" else []
            axes += [f"noise {', '.join(block.noise)}"] if block.noise != ["none"] else []
            axes += [f"seeds {', '.join(map(str, planned.seeds))}"]
            axes += [f"only {', '.join(block.methods)}"] if block.methods else []
            say(f"    {block.title or _datasets(block.datasets)} ({plural(len(planned.cells), 'cell')})")
            say_wrapped("      ", "; ".join(axes))
    typed = shlex.quote(named)
    one = "" if part else f"\n  a part: --suite {shlex.quote(f'{named}/{next(iter(suite.parts))}')}"
    say(f"\n  run it: llpbench run --suite {typed}{one}\n  cite it: llpbench cite {typed}")


def methods_by_role(suite: Suite, registry: Registry, part: str = "") -> dict[str, list[str]]:
    """The methods of a suite, or of one part of it: those that are ranked, controls, bounds."""
    from llpbench.experiment.suites.file import base_name

    roles: dict[str, list[str]] = {"methods": [], "controls": [], "bounds": []}
    used = {text for _, block in suite.blocks(part) for text in block.methods or suite.methods}
    for text in filter(used.__contains__, suite.methods):
        spec = registry.methods[base_name(text)]
        roles["bounds" if spec.oracle else "controls" if spec.control else "methods"].append(text)
    return roles


def _datasets(texts: list[str], most: int = 4) -> str:
    more = f", … ({len(texts)} in all)" if len(texts) > most else ""
    return ", ".join(texts[: 2 if more else most]) + more
