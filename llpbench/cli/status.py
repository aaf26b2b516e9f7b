"""``status``: how far a run is, what went wrong and where, and which results other code made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from llpbench.cli.board import board_option
from llpbench.cli.options import complete_suites, folder_argument, plugin_options
from llpbench.cli.printing import say
from llpbench.cli.results import describe_cell, open_store, plural
from llpbench.contracts.errors import LLPBenchError, printable
from llpbench.contracts.result import FAILURES, PROTOCOL

if TYPE_CHECKING:
    from llpbench.contracts.result import CellResult
    from llpbench.experiment.plan import Planned
    from llpbench.results.store import Store


@click.command(short_help="How far a run is, what went wrong and where.")
@folder_argument
@click.option(
    "--suite",
    shell_complete=complete_suites,
    help="What is missing of a suite, or of a part, in one line for each part.",
)
@board_option()
@click.option("--traceback", is_flag=True, help="Print the full traceback of every cell that failed.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plugin_options
def status(
    folder: Path | None,
    suite: str | None,
    board: Path | None,
    traceback: bool,
    as_json: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Count the cells of a results folder by status and give the reason of every cell without a number.

    A failure says where: the last line of the plugin's own code, and the file that has the whole traceback.

    Also says how many results are of another protocol, and how many were made by other code than what is installed now
    (give --plugin for plugins in single files). A run makes those of another protocol and of other plugin code again;
    run --rerun stale also those of other versions.

    With --suite it says instead how much of a suite the folder, or the leaderboard of --board, holds.
    """
    if suite or board:
        _suite_status(suite, folder, board, as_json, plugins, override)
        return
    store = open_store(folder)
    planned, commands = store.manifest().planned, store.manifest().commands
    damaged: dict[str, str] = {}
    results = store.results(lambda path, damage: damaged.update({path.stem: damage}))
    counts: Counter[str] = Counter(result.status for result in results)
    counts["damaged"] = len(damaged)
    counts["missing"] = len(planned) - len(results) - len(damaged)
    troubles = [trouble_of(result, planned[result.id], store) for result in results if result.status != "ok"]
    troubles += [
        {"id": i, "cell": describe_cell(planned[i]), "status": "damaged", "reason": d} for i, d in damaged.items()
    ]
    older = sum(result.protocol != PROTOCOL for result in results)
    other = _made_by_other_code(results, plugins, override)
    if as_json:
        content = {
            "folder": str(store.root),
            "planned": len(planned),
            "counts": {name: n for name, n in counts.items() if n},
            "troubles": troubles,
            "other_protocol": older,
            "other_code": other,
            "commands": commands,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())
        return
    words = ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "nothing yet"
    say(f"{store.root}: {plural(len(planned), 'cell')}: {words}")
    print_troubles(troubles, traceback)
    _print_advice(counts, commands, older, other)


def _suite_status(
    suite: str | None,
    folder: Path | None,
    board: Path | None,
    as_json: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    from llpbench.cli.suite import coverage_of, read_results
    from llpbench.plugins.registry import load_registry

    results = read_results(suite, folder, board)
    found = coverage_of(suite or "", load_registry(plugins, override), [*results.own, *results.published])
    if as_json:
        content = [{**msgspec.to_builtins(part), "line": part.line} for part in found]
        click.echo(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())
        return
    for part in found:
        say(part.line)


def trouble_of(result: CellResult, plan: Planned, store: Store) -> dict[str, Any]:
    """What is known of a cell without a number: why, where in the plugin's code, and where to read on."""
    facts = {"id": result.id, "cell": describe_cell(plan), "status": result.status, "reason": result.reason}
    facts |= {"failed_at": result.failed_at} if result.failed_at else {}
    if result.traceback:
        path = store.traceback_path(result.id)
        facts |= {"traceback": str(path if path.is_file() else store.result_path(result.id)), "text": result.traceback}
    return facts


def print_troubles(troubles: Iterable[dict[str, Any]], traceback: bool = False, err: bool = False) -> None:
    """Print cells without a number, each with where it failed."""
    for trouble in troubles:
        head = f"  {trouble['status']}  {trouble['cell']}  ({trouble['id']})"
        say(f"{head}\n      {trouble['reason']}", err=err)
        if trouble.get("failed_at"):
            say(f"      at {trouble['failed_at']}", err=err)
        if trouble.get("traceback") and not traceback:
            say(f"      full traceback: {trouble['traceback']}", err=err)
        elif trouble.get("text"):
            text = printable(trouble["text"], lines=True)
            say("\n".join(f"      {line}" for line in text.splitlines()), err=err)


def _made_by_other_code(results: list[CellResult], plugins: tuple[Path, ...], override: tuple[str, ...]) -> int:
    """How many results other code made than what is here now; those of plugins that are not here do not count."""
    from llpbench.plugins.registry import load_registry
    from llpbench.results.provenance import Provenance, known_cells

    try:
        provenance = Provenance(load_registry(plugins, override))
    except LLPBenchError as error:
        if plugins:
            raise
        say(f"warning: {error!s}", err=True)
        return 0
    return len(known_cells(results, lambda result: "other" if provenance.other_code(result) else ""))


def _print_advice(counts: Counter[str], commands: list[str], older: int, other: int) -> None:
    command = printable(commands[-1]) if commands else "llpbench run ..."
    if older:
        say(f"{plural(older, 'cell')} of another protocol (this is {PROTOCOL}): the next run makes them again")
    if other:
        say(f"{plural(other, 'cell')} made by other code than is here now; again with: {command} --rerun stale")
    if counts["missing"] or counts["damaged"]:
        say(f"go on with: {command}")
    elif any(counts[name] for name in FAILURES):
        say(f"run failed cells again with: {command} --rerun failed")
