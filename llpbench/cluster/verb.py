"""``results``: what is done with whole results folders."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from llpbench.cli.printing import print_json, say


@click.group(short_help="List results folders; merge them.")
def results() -> None:
    """Work with whole results folders."""


@results.command(short_help="Merge results folders into one.")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Target folder.  [default: the first one]",
)
def merge(folders: tuple[Path, ...], out: Path | None) -> None:
    """Merge the results of FOLDERS into --out (or into the first of them); the others are only read.

    A cell that several folders hold is kept once, with a number rather than without. Same cell, different metrics:
    the first folder's result is kept, the other one lies under conflicts/, and the exit code is 1.
    """
    from llpbench.cluster.merge import merge as merge_folders

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


@results.command("list", short_help="List results folders with progress, date and command.")
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def list_(folder: Path | None, as_json: bool) -> None:
    """List the results folders below FOLDER (by default ./results), the newest last.

    For each: how many of its cells have a result, when it was changed, and the command typed last. How its cells ended
    is what `llpbench status FOLDER` says.
    """
    from llpbench.cluster.overview import list_results

    base = folder or Path("results")
    found = list_results(base)
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"{base} holds no results yet. Start with: llpbench run --methods mean-ridge --bags 8", err=True)
        return
    width = max(len(facts.name) for facts in found) + 2
    for facts in found:
        when = facts.changed.replace("T", " ").removesuffix("Z")[:16]
        cells = "damaged" if facts.trouble else f"{facts.done}/{facts.planned} cells"
        say(f"{facts.name:<{width}}{cells:>14}  {when} UTC")
        say(f"  {facts.trouble or (facts.commands or ['no command is recorded'])[-1]}", dim=True)
