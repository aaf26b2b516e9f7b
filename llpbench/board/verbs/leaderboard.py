"""``leaderboard``: publishing results, and building the tables and the page from what is published."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.board.content.shipped import FOLDER as DEFAULT
from llpbench.board.verbs.options import FOLDER, OR_SHIPPED, board_option, board_to_change, board_to_read
from llpbench.cli.interrupt import exit_on_interrupt
from llpbench.cli.options import plugin_options, remake_options

if TYPE_CHECKING:
    from llpbench.board.content.folder import Content
    from llpbench.board.publish import Added
    from llpbench.board.verify import FreshTest, Verification

_tuned_option = click.option(
    "--tuned", multiple=True, type=FOLDER, help="Folder of llpbench tune that chose parameters; may be repeated."
)


@click.group(short_help="Publish results; build tables and a page from them; check and verify.")
def leaderboard() -> None:
    """Publish results of runs, and build tables and a page from what is published.

    \b
    llpbench leaderboard add results/NAME     check the results of a run and publish them
    llpbench leaderboard build --out site     tables, CSV and page, ready for any static host
    llpbench leaderboard check                check what is published, and that built files are up to date
    llpbench leaderboard verify               reproduce random cells, and run fresh seeds
    llpbench leaderboard entry FILE           check the file of a submission
    """  # noqa: D301 - \b tells click to leave the lines as they are


@leaderboard.command(short_help="Check the results of a run and publish them.")
@click.argument("results", type=FOLDER)
@board_option("--to")
@click.option("--replace", is_flag=True, help="Overwrite published cells.")
@_tuned_option
def add(results: Path, board: Path | None, replace: bool, tuned: tuple[Path, ...]) -> None:
    """Publish the results of a run in a leaderboards folder and build its tables and page again.

    Every result is checked. Its metrics are recomputed from its predictions, its seeds and numbers of bags from its
    settings, and its test labels and rows are compared with those of published cells. Its method and dataset must come
    from installed packages. Invalid results are refused with a reason, the others are published. A published cell
    stays unless it has no number or --replace is given. Exit code 1: some results were refused.
    """
    from llpbench.board.built.build import built_files
    from llpbench.board.content.folder import (
        CONTENT,
        TABLES,
        Content,
        raw_files,
        read_folder,
        remove_stale,
        write_files,
    )
    from llpbench.board.publish import add_results
    from llpbench.plugins.registry import load_registry

    folder = board or Path(DEFAULT)
    content = read_folder(folder) if folder.is_dir() else Content()
    is_new = not content.lines
    before = raw_files(content)
    registry = load_registry()
    report = add_results(results, content, registry, replace=replace, tuned=tuned)
    raw = raw_files(content)
    if content.lines and raw != before:
        files = {**raw, **built_files(content)}
        write_files(folder, files)
        remove_stale(folder, files, (*CONTENT, TABLES))
    _tell(report, folder)
    if is_new and content.lines:
        click.echo(f"note: {folder} is a new leaderboard; to add to another one, give --board DIR", err=True)
    sys.exit(1 if report.refused else 0)


@leaderboard.command(short_help="Build the page and tables from what is published.")
@board_option("--from")
@click.option("-o", "--out", type=FOLDER, help="Write a complete site with downloads (JSON, CSV, LaTeX) here.")
def build(board: Path | None, out: Path | None) -> None:
    """Build the page and the Markdown tables from the published cells.

    With --out the folder becomes a site for any static host: the same files, the published cells, and as downloads
    the board as JSON, all means and all seeds as CSV, and LaTeX tables.
    """
    from llpbench.board.built.build import built_files, site_files
    from llpbench.board.content.folder import TABLES, read_folder, remove_stale, write_files

    folder = board_to_change(board)
    content = read_folder(folder)
    files = built_files(content) if out is None else site_files(content)
    write_files(out or folder, files)
    if out is None:
        remove_stale(folder, files, (TABLES,))
    click.echo(f"{len(content.lines)} cells, {len(files)} files in {out or folder}")


@leaderboard.command(short_help="Check what is published, and that everything built from it is up to date.")
@board_option("--from")
def check(board: Path | None) -> None:
    """Check every published cell, build everything again in memory and compare it byte by byte.

    Seeds, noise and numbers of bags are recomputed. Test labels, rows and bags are compared between cells, and
    bootstrap replicates with the published numbers. Tuned cells must have the search that chose their parameters, marks
    the numbers that they verify. Files of submissions (entries/) must be valid. Exit code 1: the check found problems.
    """
    from llpbench.board.audit import audit
    from llpbench.board.built.build import differences
    from llpbench.board.content.folder import read_folder
    from llpbench.board.submissions import entry_files, read_submission
    from llpbench.contracts.errors import StoreError

    folder = board_to_change(board)
    content = read_folder(folder)
    report = audit(content)
    for path in entry_files(folder):
        try:
            read_submission(path)
        except StoreError as error:
            report.problems.append(str(error))
    stale = differences(folder, content)
    for problem in (*report.problems, *(f"{folder}/{name}" for name in stale)):
        click.echo(problem, err=True)
    for note in report.notes:
        click.echo(f"note: {note}")
    if stale:
        click.echo(
            f"{len(stale)} files differ from what the published cells give. Remove files that do not belong here and "
            f"build the others again: llpbench leaderboard build --board {folder}",
            err=True,
        )
    if report.problems or stale:
        sys.exit(1)
    click.echo(f"{folder}: {len(content.lines)} cells are valid, all built files are up to date")


@leaderboard.command(short_help="Check the file of a submission.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--print", "key", type=click.Choice(["package", "methods"]), help="Print only this value.")
def entry(file: Path, key: str | None) -> None:
    """Check FILE, which submits the methods of a package to the leaderboard (leaderboards/entries/NAME.toml).

    It names a package with an exact version, its methods, paper, code and contact (docs/submitting.md). Nothing is
    installed or run. With --print the package is printed as `pip install` takes it, the methods as `llpbench run
    --methods` takes them.
    """
    from llpbench.board.submissions import check_unclaimed, read_submission
    from llpbench.plugins.registry import load_registry

    found = read_submission(file)
    check_unclaimed(found, load_registry())
    methods = ",".join(found.methods)
    click.echo({"package": found.package, "methods": methods}[key] if key else f"{file}: {methods} of {found.package}")


@leaderboard.command(short_help="Reproduce random published cells, and run fresh seeds.")
@board_option(default=OR_SHIPPED)
@click.option("--cells", type=click.IntRange(min=1), default=3, show_default=True, help="Number of cells to reproduce.")
@click.option(
    "--fresh-seeds",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Fresh seeds for each setting.",
)
@click.option("--draw", type=int, help="Seed of the random draw, to repeat one.  [default: a new one]")
@click.option("--against", type=FOLDER, help="Draw only cells that this other leaderboard lacks.")
@click.option("--record", is_flag=True, help="Record the outcome in the leaderboard (verified/).")
@click.option("-j", "--jobs", type=click.IntRange(min=0), default=0, help="Cells at once.  [default: cores / threads]")
@click.option("--quiet", is_flag=True, help="Print the outcome only.")
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
    """Reproduce random published cells and run their settings on fresh seeds.

    A reproduced cell must be equal bit for bit, or within 0.01 if the machine or a numeric library differs. On fresh
    seeds the mean AUROC must agree with that of the published seeds (Student's two-sample test, 1 % level, corrected
    for the number of settings). A published failure must fail again. With --record the outcome is written into the
    leaderboard and shown on its page. Cells whose data is not available, or that need more threads than there are
    cores, are skipped. After Ctrl-C the outcome of the cells that were done is printed and recorded. Exit code 1:
    something is in doubt, or no cell was reproduced.
    """
    import secrets

    from llpbench.board import verify as verification
    from llpbench.board.content.folder import read_folder
    from llpbench.board.content.shipped import shipped_board
    from llpbench.board.maths.bootstrap import METRIC
    from llpbench.contracts.errors import UsageError
    from llpbench.data.fetch_files import fetch_files
    from llpbench.experiment.run_settings import RunSettings
    from llpbench.plugins.registry import load_registry
    from llpbench.report.progress import make_view
    from llpbench.results.metric_style import known_styles

    folder = board_to_read(board)
    if record and folder == shipped_board():
        raise UsageError(
            "--record cannot change the leaderboard that came with llpbench: name another folder with --board."
        )
    content = read_folder(folder)
    known = read_folder(against) if against is not None else None
    candidates = verification.candidates(content, known)
    if known is not None and not candidates:
        click.echo(f"nothing to verify: every cell is in {against} already")
        return
    draw = secrets.randbelow(10**9) if draw is None else draw
    drawn = verification.draw(candidates, cells, draw)
    seeds = verification.fresh_seeds(fresh_seeds, draw, (line.result.cell.seed for line in content.lines.values()))
    click.echo(
        f"draw {draw}: {len(drawn)} of {len(candidates)} cells, fresh seeds {', '.join(map(str, seeds)) or 'none'}"
    )
    registry = load_registry(plugins, override)
    settings = RunSettings(data=data, offline=offline, plugins=plugins, override=override, predictions=False)
    limits = (timeout, memory, threads)
    with exit_on_interrupt():
        for name in dict.fromkeys(r.cell.dataset for r in drawn if r.cell.dataset in registry.datasets.entries):
            fetch_files(registry.datasets[name], Path(data) if data else None, offline=bool(offline), quiet=True)
        view = make_view(quiet, known_styles(registry.metrics.specs)[METRIC])
        report = verification.verify(drawn, content, registry, settings, view, seeds=seeds, limits=limits, jobs=jobs)
        tell_verification(report)
        if report.stopped:
            click.echo(f"stopped: {report.looked_at} of {len(drawn)} cells are done", err=True)
        if record:
            _record(report, content, folder)
        if report.stopped:
            raise KeyboardInterrupt
    sys.exit(1 if report.doubts or not report.looked_at else 0)


def _record(report: Verification, content: Content, folder: Path) -> None:
    """Write the marks of a verification into the leaderboard and build it again."""
    from llpbench.board.built.build import built_files
    from llpbench.board.content.folder import raw_files, write_files
    from llpbench.board.rerun import this_type
    from llpbench.board.verify import make_marks
    from llpbench.cli.results import plural

    marks = make_marks(report, this_type())
    content.marks |= marks
    if marks:
        write_files(folder, {**raw_files(content), **built_files(content)})
    fine = sum(mark.verified for mark in marks.values())
    click.echo(f"marked in {folder / 'verified'}: {plural(fine, 'cell')} verified, {len(marks) - fine} in doubt")


def _tell(report: Added, folder: Path) -> None:
    from llpbench.cli.results import plural

    for name, found in (
        ("replaced", report.replaced),
        ("kept as published", report.kept),
        ("renamed", report.renamed),
    ):
        for reason, n in Counter(reason for _, reason in found).items():
            click.echo(f"{plural(n, 'cell')} {name}: {reason}")
    for cell_id, reason in report.refused:
        click.echo(f"refused {cell_id}: {reason}", err=True)
    if report.unreleased:
        click.echo(f"{plural(report.unreleased, 'cell')} made by unreleased code, and marked as such")
    if report.missing:
        click.echo(f"{plural(report.missing, 'cell')} of the run without a result yet")
    click.echo(f"{folder}: {len(report.added)} added, {len(report.replaced)} replaced, {len(report.refused)} refused")


def tell_verification(report: Verification) -> None:
    """Print the outcome of every cell, then counts, then doubts."""
    from llpbench.board.verify import place_of
    from llpbench.cli.results import plural

    for result, verdict in report.remade:
        where = f"{result.method_name} on {place_of(result)}, seed {result.cell.seed}"
        click.echo(f"{verdict.word:<8} {result.id}  {where}")
        if verdict.changed and verdict.word != "equal":
            click.echo(f"         changed since it was made: {', '.join(verdict.changed)}")
    for result, now in report.failures:
        where = f"{result.method_name} on {place_of(result)}, seed {result.cell.seed}"
        click.echo(f"{'fails' if now.status == result.status else now.status:<8} {result.id}  {where}: {result.status}")
    for test in report.fresh:
        click.echo(_fresh_line(test))
    words = Counter(verdict.word for _, verdict in report.remade)
    click.echo(
        f"reproduced: {words['equal']} equal to the bit, {words['close']} within tolerance, {words['DIFFERS']} differ"
    )
    changes = [line.removeprefix("the ") for _, verdict in report.remade for line in verdict.changed]
    changed = Counter(line.partition(" ")[0] for line in changes)
    if changed:
        told = ", ".join(f"{what} ({plural(n, 'cell')})" for what, n in changed.items())
        click.echo(f"changed since they were made: {told}")
    if report.no_data:
        sets = ", ".join(sorted({result.dataset_name for result in report.no_data}))
        click.echo(f"skipped, data not available: {plural(len(report.no_data), 'cell')} of {sets}", err=True)
    for result in report.too_large:
        needs = plural(int(result.limits["threads"]), "thread")
        click.echo(
            f"skipped: cell {result.id} ({result.method_name}) needs {needs}, more than this machine has cores; "
            "--threads N uses fewer",
            err=True,
        )
    if report.failures:
        same = sum(now.status == result.status for result, now in report.failures)
        click.echo(f"published failures: {same} of {len(report.failures)} fail again")
    for note in report.notes:
        click.echo(f"note: {note}")
    if report.fresh:
        agree = sum(not test.doubt for test in report.fresh)
        click.echo(f"fresh seeds: {agree} of {plural(len(report.fresh), 'comparison')} agree")
    for doubt in report.doubts:
        click.echo(f"doubt: {doubt}", err=True)


def _fresh_line(test: FreshTest) -> str:
    ours, theirs = (sum(values) / len(values) for values in (test.published, test.fresh))
    judged = "not judged" if test.p is None else f"p {test.p:.2g}"
    return (
        f"{'DOUBT' if test.doubt else 'agrees':<8} {test.method} on {test.place}, rule {test.rule}: published "
        f"{ours:.2f} ({len(test.published)} seeds), fresh {theirs:.2f} ({len(test.fresh)}), {judged}"
    )
