"""``suite``: for those who make a suite, and what ``status``, ``run`` and ``show`` say of one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from llpbench.cli.options import complete_suites, plugin_options
from llpbench.cli.printing import say
from llpbench.cli.results import newest_folder, open_store, plural

if TYPE_CHECKING:
    from llpbench.contracts.result import CellResult
    from llpbench.experiment.suites.coverage import Coverage
    from llpbench.experiment.suites.file import Suite
    from llpbench.plugins.registry import Registry


@click.group("suite", short_help="Make a suite: freeze and check the values in its file.")
def suite_() -> None:
    """For whoever makes a suite: write today's defaults into its file, and see what has changed since.

    To run one: llpbench run --suite NAME. To see what is in it: llpbench show NAME.
    """


@suite_.command(short_help="Write today's defaults into the file of a draft.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@plugin_options
def freeze(file: Path, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Write the parameters of every method, dataset and bag scheme of a suite, at today's defaults, into its FILE.

    Only a draft can be frozen anew. A suite that is published never changes: copy its file to a new version.
    """
    from llpbench.experiment.suites.frozen import freeze as write
    from llpbench.plugins.registry import load_registry

    suite, changed = write(file, load_registry(plugins, override))
    for line in changed:
        say(line)
    say(f"{file}: {suite.name}, {suite.state}; {plural(len(changed), 'value')} changed", err=True)


@suite_.command(short_help="Say where defaults are others than a suite froze.")
@click.argument("name", shell_complete=complete_suites)
@plugin_options
def check(name: str, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Compare what suite NAME (or a file) froze with what is installed.

    Exit code 0: all is the same; 1: some defaults are others now, and a run uses the suite's; 2: it cannot be run here.
    """
    from llpbench.experiment.suites.file import find_suite
    from llpbench.experiment.suites.frozen import check_suite
    from llpbench.plugins.registry import load_registry

    registry = load_registry(plugins, override)
    suite, _ = find_suite(name, registry)
    notes = check_suite(suite, registry)
    for note in notes:
        say(note)
    say(f"{suite.name}: {plural(len(notes), 'difference')}; {suite.state}", err=True)
    sys.exit(1 if notes else 0)


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
    from llpbench.contracts.specs import DEFAULT_RULE
    from llpbench.experiment.suites.file import find_suite
    from llpbench.experiment.suites.plan import Limits, plan_suite
    from llpbench.report.paper import paper_tables, parameters_of, shown_cells
    from llpbench.report.paper_text import paper_latex, paper_markdown, with_caption
    from llpbench.report.render import choose, rows_as_text, table_rows

    read = read_results(name, folder, board, registry)
    suite, part = find_suite(name or "", registry)
    own, published = ([r for r in found if r.protocol == suite.protocol] for found in read)
    left_out = len(read.own) + len(read.published) - len(own) - len(published)
    if left_out:
        say(f"warning: {plural(left_out, 'cell')} left out: {suite.name} is of protocol {suite.protocol}", err=True)
    shown = shown_cells(plan_suite(suite, registry, Limits(part=part)), own, published)
    results = list({result.id: result for result in (*published, *own)}.values())
    wanted = choose(registry, results, metric, rule or DEFAULT_RULE, paper=True)
    tables = paper_tables(suite, shown, results, wanted, registry)
    as_text = {"latex": paper_latex, "markdown": paper_markdown}
    if not tables:
        say(f"no table: there is no number of {name} yet (llpbench status --suite {name}).", err=True)
        sys.exit(1)
    elif fmt == "terminal":
        from rich.console import Console

        from llpbench.report.terminal import print_tables

        print_tables(map(with_caption, tables), Console(highlight=False))
    elif fmt in as_text:
        say(as_text[fmt](suite, tables, parameters_of(suite, shown, tables)))
    else:
        rows = [row for of_part in shown for row in table_rows(of_part.planned, results, wanted)]
        different = {msgspec.json.encode(row): row for row in rows}  # parts may share cells
        say(rows_as_text(different.values(), fmt))


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
    say(f"{suite.name}/{part}" if part else suite.name, bold=True, nl=False)
    say(f"  {suite.title}")
    facts = [("version", f"{suite.version}, {suite.state}"), ("protocol", str(suite.protocol))]
    facts += [("backend", suite.backend), ("cells", f"{len(all_cells(blocks)):,}")]
    facts += [(role, ", ".join(names)) for role, names in methods_by_role(suite, registry, part).items() if names]
    facts += [("frozen", f"values of {suite.frozen.by}"), ("citation", suite.citation)]
    for key, value in facts:
        say(f"  {key:<10}{value}")
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
            say(f"      {'; '.join(axes)}")
    typed = shlex.quote(named)
    one = "" if part else f", or a part: --suite {shlex.quote(f'{named}/{next(iter(suite.parts))}')}"
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
