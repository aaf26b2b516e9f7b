"""``leaderboard``: publishing results, and building the tables and the page from what is published."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.board.content.shipped import FOLDER as DEFAULT
from llpbench.board.verbs.options import FOLDER, OR_SHIPPED, board_option, board_to_read
from llpbench.board.verbs.submission import data_options, fetch, inputs, score
from llpbench.board.verbs.verification import tell_verification
from llpbench.cli.interrupt import exit_on_interrupt
from llpbench.cli.options import plugin_options, remake_options

if TYPE_CHECKING:
    from llpbench.board.accept.publish import Added
    from llpbench.board.again.verify import Verification
    from llpbench.board.content.folder import Content

_tuned_option = click.option(
    "--tuned", multiple=True, type=FOLDER, help="Folder of llpbench tune that chose parameters; may be repeated."
)


_DESCRIBED_HINT = (
    "hint: facts.json may say what it said before, or what is installed here. Take it from the leaderboard before, "
    "install the release of llpbench that made that one (and the package of the new cells), and run llpbench "
    "leaderboard add again."
)


@click.group(short_help="Publish results; build tables and the page from them; check and verify.")
def leaderboard() -> None:
    """Publish results of real runs, and build tables and a page from what is published.

    \b
    llpbench leaderboard add results/NAME     check every result of a run and publish it
    llpbench leaderboard build --out site     tables, CSV and page, ready for any static host
    llpbench leaderboard check                fail if anything published or built is not what it should be
    llpbench leaderboard verify               make random cells again, and run fresh seeds
    llpbench leaderboard packages             name the packages that new cells need
    llpbench leaderboard inputs, score        hand in predictions of a method that is too large to be run here
    """  # noqa: D301 - \b tells click to leave the lines as they are


leaderboard.add_command(inputs)
leaderboard.add_command(score)


@leaderboard.command(short_help="Check every result of a run and publish it.")
@click.argument("results", type=FOLDER)
@board_option("--to")
@click.option("--replace", is_flag=True, help="Replace published cells that are as well documented.")
@_tuned_option
@data_options
def add(
    results: Path, board: Path | None, replace: bool, tuned: tuple[Path, ...], data: str | None, offline: bool
) -> None:
    """Publish the results of a run in a leaderboards folder and build its tables and page again.

    Every result is checked: its seal, its seeds, its code and versions, its machine, the report that was chosen, and
    every metric against its predictions; its labels, rows and bags against those of other cells of the same split.
    What cannot be traced is refused with a reason; the rest goes in. Where a cell is there already, the better
    documented one stays, the published one when both are alike. A folder of predictions (with a submission.json) is
    scored and published with its mark. Exit code 1: some were refused.
    """
    from llpbench.board.accept.handed_in import add_submission
    from llpbench.board.accept.publish import add_results
    from llpbench.board.built.build import built_files
    from llpbench.board.content.folder import (
        BY_DATASET,
        MACHINES,
        TABLES,
        Content,
        raw_files,
        read_folder,
        remove_stale,
        write_files,
    )
    from llpbench.board.content.submission import is_submission, read_submission
    from llpbench.execution.session import context_of
    from llpbench.plugins.registry import load_registry

    folder = board or Path(DEFAULT)
    content = read_folder(folder) if folder.is_dir() else Content()
    is_new = not content.lines
    before = raw_files(content)
    registry = load_registry()
    if is_submission(results):
        fetch((cell.dataset for cell in read_submission(results).cells), registry, data, offline)
        context = context_of(data, offline, (), (), predictions=False)
        report = add_submission(results, content, registry, context, replace=replace)
    else:
        report = add_results(results, content, registry, replace=replace, tuned=tuned)
    raw = raw_files(content)
    if content.lines and raw != before:
        files = {**raw, **built_files(content)}
        write_files(folder, files)
        remove_stale(folder, files, (*BY_DATASET, MACHINES, TABLES))
    _tell(report, folder)
    if is_new and content.lines:
        click.echo(
            f"note: {folder} is a new leaderboard, with these cells alone (--board DIR names another one)", err=True
        )
    sys.exit(1 if report.refused else 0)


@leaderboard.command(short_help="Tables, CSV and page from what is published.")
@board_option("--from")
@click.option("-o", "--out", type=FOLDER, help="Where to write, ready for a static host.  [default: the same folder]")
def build(board: Path | None, out: Path | None) -> None:
    """Build tables, a CSV, the board as JSON and one page from the published cells, and from nothing else."""
    from llpbench.board.built.build import built_files, site_files
    from llpbench.board.content.folder import TABLES, read_folder, remove_stale, write_files

    folder = board or Path(DEFAULT)
    content = read_folder(folder)
    files = built_files(content) if out is None else site_files(content)
    write_files(out or folder, files)
    if out is None:
        remove_stale(folder, files, (TABLES,))
    click.echo(f"{len(content.lines)} cells, {len(files)} files in {out or folder}")


@leaderboard.command(short_help="Fail if anything published or built is not what it should be.")
@board_option("--from")
@click.option(
    "--results",
    multiple=True,
    type=FOLDER,
    help="A results folder of published cells, or a folder of predictions that were handed in: every metric is "
    "recomputed from its predictions; may be repeated.",
)
@_tuned_option
@click.option(
    "--strict",
    is_flag=True,
    help="Fail on cells whose method, dataset, rule or metric is not installed; with --against, on new ones.",
)
@click.option(
    "--against",
    type=FOLDER,
    help="The leaderboard before: fail on new marks, new scores of predictions, and whatever of it is changed or gone.",
)
@data_options
def check(
    board: Path | None,
    results: tuple[Path, ...],
    tuned: tuple[Path, ...],
    strict: bool,
    against: Path | None,
    data: str | None,
    offline: bool,
) -> None:
    """Look at every published cell with all checks, build everything again in memory and compare byte by byte.

    Seeds, noise, rows, bags, labels and the centres of replicates are derived again or compared between cells; what is
    installed is held against what made the cells. What the files cannot prove is told. Exit code 1: something is wrong.
    """
    from llpbench.board.accept.against import check_against
    from llpbench.board.accept.brought import brought
    from llpbench.board.accept.packages import new_results, untraced_news
    from llpbench.board.built.build import changed_by_hand, differences
    from llpbench.board.built.redrawn import redrawn
    from llpbench.board.checks.audit import audit
    from llpbench.board.content.folder import read_folder
    from llpbench.cli.results import plural
    from llpbench.execution.session import context_of
    from llpbench.plugins.registry import load_registry

    folder = board or Path(DEFAULT)
    content = read_folder(folder)
    registry = load_registry()
    report = audit(content, registry)
    before = None if against is None else read_folder(against)
    absent = report.untraced if before is None else untraced_news(report.untraced, new_results(content, before))
    problems = [*report.problems, *(_untraced(absent) if strict else ())]
    if against is not None and before is not None:
        problems += [*brought(content, before, registry), *redrawn(content, before), *changed_by_hand(folder, against)]
    if results:
        context = context_of(data, offline, (), (), predictions=False)
        found = check_against(content, results, registry, tuned, context, before)
        problems += found.problems
        click.echo(f"{len(found.cells)} of {len(content.lines)} cells compared with their results")
        for word, n in Counter(found.again.values()).items():
            click.echo(f"{plural(n, 'cell')} published from another run: the numbers of this one are {word}")
    stale = differences(folder, content)
    for problem in (*problems, *(f"{folder}/{name}" for name in stale)):
        click.echo(problem, err=True)
    if any("facts.json: " in problem for problem in problems):
        click.echo(_DESCRIBED_HINT, err=True)
    for note in report.notes:
        click.echo(f"note: {note}")
    if stale:
        click.echo(
            f"{len(stale)} files are wrong; remove those that are too many, and build the others again: "
            f"llpbench leaderboard build --board {folder}",
            err=True,
        )
    if problems or stale:
        sys.exit(1)
    click.echo(f"{folder}: {len(content.lines)} cells are sound, everything built is what they give")


@leaderboard.command(short_help="Name the packages that new cells need.")
@board_option("--from")
@click.option("--against", type=FOLDER, required=True, help="The leaderboard before: its cells need nothing.")
def packages(board: Path | None, against: Path) -> None:
    """Name the packages, with their versions, that cells need which the leaderboard before does not hold.

    One on a line, as pip install -r reads them; nothing when llpbench brings all. Installing a package runs
    its code, and so does every command of llpbench from then on: read it first, or do it where nothing can be lost.
    """
    from llpbench.board.accept import packages as room
    from llpbench.board.content.folder import read_folder
    from llpbench.plugins.registry import load_registry

    for line in room.packages(read_folder(board or Path(DEFAULT)), read_folder(against), load_registry()):
        click.echo(line)


@leaderboard.command(short_help="Make random published cells again, and run fresh seeds.")
@board_option(default=OR_SHIPPED)
@click.option("--cells", type=click.IntRange(min=1), default=3, show_default=True, help="Cells to make again.")
@click.option(
    "--fresh-seeds", type=click.IntRange(min=0), default=2, show_default=True, help="Fresh seeds of each setting."
)
@click.option("--draw", type=int, help="Seed of the draw, to repeat one.  [default: a new one each time]")
@click.option("--against", type=FOLDER, help="Draw only cells that this other leaderboard does not hold.")
@click.option("--record", is_flag=True, help="Mark the cells in the leaderboard by what came out (verified/).")
@click.option("-j", "--jobs", type=int, default=0, help="Cells at once.  [default: cores / threads]")
@click.option("--quiet", is_flag=True, help="No progress, only what came out.")
@remake_options
@plugin_options
def verify(
    board: Path | None,
    cells: int,
    fresh_seeds: int,
    draw: int | None,
    against: Path | None,
    record: bool,
    jobs: int,
    quiet: bool,
    timeout: float | None,
    memory: float | None,
    threads: int | None,
    data: str | None,
    offline: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Make random published cells again, run their settings on seeds that nobody has seen, and say what agrees.

    A cell must come out equal bit for bit, or within 0.01 where the machine or a numeric library is another. On fresh
    seeds the mean AUROC must be one that the published seeds could have given (Student's two-sample test, 1 % level,
    corrected for the number of settings). A published failure must fail again. Of tuned parameters the best trial of
    their search and one other must have the values that they are published with. With --record what came out is
    written into the leaderboard, and its page shows it. Methods that were handed in as predictions cannot be run and
    are not drawn; cells whose data is not here, or that need more threads than there are cores, are neither confirmed
    nor doubted. Ctrl-C loses nothing but the cells that were running: what came out of the others is said, and
    recorded. Exit code 1: there is doubt, or nothing was made again.
    """
    import secrets

    from llpbench.board.again import verify as room
    from llpbench.board.content.folder import read_folder
    from llpbench.board.content.shipped import shipped_board
    from llpbench.contracts.errors import UsageError
    from llpbench.execution.session import context_of
    from llpbench.plugins.registry import load_registry
    from llpbench.report.progress import fetch_files, make_view
    from llpbench.results.bootstrap import METRIC
    from llpbench.results.metric_style import known_styles

    folder = board_to_read(board)
    if record and folder == shipped_board():
        raise UsageError("--record writes into a leaderboard of your own: name its folder with --board.")
    content = read_folder(folder)
    known = read_folder(against) if against is not None else None
    candidates = room.candidates(content, known)
    told = sum(line.result.predictions_only for line in content.lines.values())
    if told:
        click.echo(f"{told} cells are predictions only: they cannot be made again and are not drawn")
    if known is not None and not candidates:
        click.echo(f"every cell that can be made again is in {against} already: nothing to verify")
        return
    draw = secrets.randbelow(10**9) if draw is None else draw
    drawn = room.draw(candidates, cells, draw)
    seeds = room.fresh_seeds(fresh_seeds, draw, (line.result.cell.seed for line in content.lines.values()))
    click.echo(
        f"draw {draw}: {len(drawn)} of {len(candidates)} cells, fresh seeds {', '.join(map(str, seeds)) or 'none'}"
    )
    registry = load_registry(plugins, override)
    context = context_of(data, offline, plugins, override, predictions=False)
    limits = (timeout, memory, threads)
    with exit_on_interrupt():
        for name in dict.fromkeys(r.cell.dataset for r in drawn if r.cell.dataset in registry.datasets.entries):
            fetch_files(registry.datasets[name], Path(data) if data else None, offline=offline, quiet=True)
        view = make_view(quiet, known_styles(registry.metrics.specs)[METRIC])
        report = room.verify(drawn, content, registry, context, view, seeds=seeds, limits=limits, jobs=jobs, draw=draw)
        tell_verification(report)
        if report.stopped:
            click.echo(f"stopped: {report.looked_at} of {len(drawn)} cells are done", err=True)
        if record:
            _record(report, content, folder)
        if report.stopped:
            raise KeyboardInterrupt
    sys.exit(1 if report.doubts or not report.looked_at else 0)


def _record(report: Verification, content: Content, folder: Path) -> None:
    """Write the marks of a verification into the leaderboard, and build it again."""
    from llpbench.board.again.rerun import this_type
    from llpbench.board.built.build import built_files
    from llpbench.board.content.folder import raw_files, write_files
    from llpbench.board.content.verified import make_marks
    from llpbench.cli.results import plural

    marks = make_marks(report, this_type())
    content.marks |= marks
    if marks:
        write_files(folder, {**raw_files(content), **built_files(content)})
    fine = sum(mark.verified for mark in marks.values())
    click.echo(f"marked in {folder / 'verified'}: {plural(fine, 'cell')} verified, {len(marks) - fine} in doubt")


def _untraced(untraced: dict[str, int]) -> list[str]:
    return [f"{name}: not installed, so {cells} of its cells cannot be traced" for name, cells in untraced.items()]


def _tell(report: Added, folder: Path) -> None:
    from llpbench.cli.results import plural

    for name, found in (
        ("replaced", report.replaced),
        ("kept as published", report.kept),
        ("named for its settings", report.renamed),
    ):
        for reason, n in Counter(reason for _, reason in found).items():
            click.echo(f"{plural(n, 'cell')} {name}: {reason}")
    for cell_id, reason in report.refused:
        click.echo(f"refused {cell_id}: {reason}", err=True)
    if report.unreleased:
        click.echo(f"{plural(report.unreleased, 'cell')} made by unreleased code: shown as such")
    if report.missing:
        click.echo(f"{plural(report.missing, 'cell')} of the run without a result yet")
    click.echo(f"{folder}: {len(report.added)} added, {len(report.replaced)} replaced, {len(report.refused)} refused")
