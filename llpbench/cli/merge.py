"""``results``: what is done with whole results folders."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from llpbench.cli.printing import say


@click.group(short_help="Merge results folders.")
def results() -> None:
    """Work with whole results folders."""


@results.command(short_help="Put folders together that ran apart.")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, file_okay=False))
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Where to.  [default: the first folder]")
def merge(folders: tuple[Path, ...], out: Path | None) -> None:
    """Merge the results of FOLDERS into --out (or into the first of them); the others are only read.

    A cell that several folders hold is kept once, with a number rather than without. Same cell, different metrics:
    the first folder's result is kept, the other one lies under conflicts/, and the exit code is 1.
    """
    from llpbench.results.merge import merge as merge_folders

    report = merge_folders(folders, out or folders[0])
    for note in report.notes:
        say(f"note: {note}", err=True)
    for conflict in report.conflicts:
        say(f"conflict: {conflict}", err=True)
    say(
        f"{out or folders[0]}: {report.planned} cells planned, {report.results} with a result, {report.copied} copied, "
        f"{len(report.conflicts)} conflicts"
    )
    sys.exit(1 if report.conflicts else 0)
