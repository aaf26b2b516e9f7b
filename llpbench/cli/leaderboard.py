"""``leaderboard``: publishing results, and building the tables and the page from what is published."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from llpbench.leaderboard.publish import Added

_FOLDER = click.Path(path_type=Path, file_okay=False)
_folder_option = click.option("--from", "folder", type=_FOLDER, default="leaderboards", show_default=True)


@click.group(short_help="Publish results; build tables and the page from them.")
def leaderboard() -> None:
    """Publish results of real runs, and build tables and a page from what is published.

    \b
    llpbench leaderboard add results/NAME     check every result of a run and publish it
    llpbench leaderboard build --out site     tables, CSV and page, ready for any static host
    llpbench leaderboard check                fail if a built file is not what the published cells give
    """  # noqa: D301 - \b tells click to leave the lines as they are


@leaderboard.command(short_help="Check every result of a run and publish it.")
@click.argument("results", type=_FOLDER)
@click.option("--to", "folder", type=_FOLDER, default="leaderboards", show_default=True)
@click.option("--replace", is_flag=True, help="Replace published cells that are as well documented.")
def add(results: Path, folder: Path, replace: bool) -> None:
    """Publish the results of a run in a leaderboards folder and build its tables and page again.

    Every result is checked: its seal, its seeds, the versions that made it, its machine, and its AUROC against its
    predictions. What cannot be traced is refused with a reason; the rest goes in. Where a cell is there already, the
    better documented one stays, the published one when both are alike. Exit code 1: some were refused.
    """
    from llpbench.leaderboard.build import built_files
    from llpbench.leaderboard.folder import Content, raw_files, read_folder, write_files
    from llpbench.leaderboard.publish import add_results
    from llpbench.plugins.registry import load_registry

    content = read_folder(folder) if folder.is_dir() else Content()
    before = raw_files(content)
    report = add_results(results, content, load_registry(), replace=replace)
    if content.lines and raw_files(content) != before:
        write_files(folder, {**raw_files(content), **built_files(content)})
    _tell(report, folder)
    sys.exit(1 if report.refused else 0)


@leaderboard.command(short_help="Tables, CSV and page from what is published.")
@_folder_option
@click.option("--out", type=_FOLDER, help="Where to write, ready for a static host.  [default: the same folder]")
def build(folder: Path, out: Path | None) -> None:
    """Build tables, a CSV, the board as JSON and one page from the published cells, and from nothing else."""
    from llpbench.leaderboard.build import built_files, site_files
    from llpbench.leaderboard.folder import read_folder, write_files

    content = read_folder(folder)
    files = built_files(content) if out is None else site_files(content)
    write_files(out or folder, files)
    if out is None:
        _remove_stale(folder, files)
    click.echo(f"{len(content.lines)} cells, {len(files)} files in {out or folder}")


@leaderboard.command(short_help="Fail if a built file is not what the published cells give.")
@_folder_option
def check(folder: Path) -> None:
    """Read every published cell with all checks, build everything again in memory and compare byte by byte."""
    from llpbench.leaderboard.build import differences
    from llpbench.leaderboard.folder import read_folder

    content = read_folder(folder)
    problems = differences(folder, content)
    for problem in problems:
        click.echo(f"{folder}/{problem}", err=True)
    if problems:
        click.echo(
            f"{len(problems)} files are wrong; build them again: llpbench leaderboard build --from {folder}", err=True
        )
        sys.exit(1)
    click.echo(f"{folder}: {len(content.lines)} cells, everything built is what they give")


def _remove_stale(folder: Path, files: dict[str, bytes]) -> None:
    """Tables of datasets that are no longer published."""
    for path in sorted((folder / "tables").glob("*")):
        if path.suffix in (".md", ".tex") and path.relative_to(folder).as_posix() not in files:
            path.unlink()


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
        click.echo(f"{plural(report.unreleased, 'cell')} made by unreleased code (an editable install): shown as such")
    if report.missing:
        click.echo(f"{plural(report.missing, 'cell')} of the run without a result yet")
    click.echo(f"{folder}: {len(report.added)} added, {len(report.replaced)} replaced, {len(report.refused)} refused")
