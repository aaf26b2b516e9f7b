"""``status``: progress and failures of a run, and results computed by other code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from llpbench.cli.keywords import Keywords, chosen, keyword_option
from llpbench.cli.options import complete_suites, folder_argument, plugin_options, published_option
from llpbench.cli.printing import print_json, say
from llpbench.cli.results import describe_cell, mixture_in_words, open_store, plural
from llpbench.contracts.errors import LLPBenchError, printable
from llpbench.contracts.result import FAILURES, PROTOCOL

if TYPE_CHECKING:
    from llpbench.contracts.result import CellResult
    from llpbench.experiment.plan import Planned
    from llpbench.experiment.run_settings import Rerun
    from llpbench.results.request import Command
    from llpbench.results.store import Store

_SEARCHES = ("llpbench tune", "llpbench.tune(")


@click.command(short_help="Show progress and failures of a run.")
@folder_argument
@click.option(
    "--suite",
    shell_complete=complete_suites,
    help="Show the missing cells of a suite, or of a part: one line for each part.",
)
@published_option
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

    Also names a row whose seeds were computed by different code, and counts the results of another protocol and those
    computed by other code than is installed now (give --plugin for plugins in single files). A run recomputes those of
    another protocol and of other plugin code; run --rerun stale also those of other versions.

    With --suite it says instead how much of a suite the folder, or the leaderboard of --board, holds.
    """
    if suite is not None or board is not None:
        _suite_status(suite, folder, board, as_json, plugins, override)
        return
    from llpbench.results.mixed_code import mixed_rows

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
    mixed = mixed_rows(planned.values(), results)
    other = _made_by_other_code(results, plugins, override)
    if as_json:
        content = {
            "folder": str(store.root),
            "planned": len(planned),
            "counts": {name: n for name, n in counts.items() if n},
            "troubles": troubles,
            "other_protocol": older,
            "other_code": other,
            "mixed_rows": mixed,
            "commands": [str(command) for command in commands],
        }
        print_json(content)
        return
    words = ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "nothing yet"
    say(f"{store.root}: {plural(len(planned), 'cell')}: {words}")
    print_troubles(troubles, traceback)
    if mixed:
        say(mixture_in_words(mixed))
    here = [command if isinstance(command, str) else command.into(store.root) for command in commands]
    _print_advice(counts, here, older, other)


@click.command(short_help="Print what the cells of a run printed.")
@folder_argument
@keyword_option("cells")
def logs(folder: Path | None, matching: Keywords) -> None:
    """Print the log and the traceback of each cell that has one, failed cells first.

    FOLDER is a results folder, by default the newest under results/.
    """
    store = open_store(folder)
    planned = store.manifest().planned
    status_of = {result.id: result.status for result in store.results()}
    found = chosen(list(planned), lambda i: f"{i}  {describe_cell(planned[i])}", matching, "cells")
    shown = 0
    for cell_id in sorted(found, key=lambda i: status_of.get(i, "missing") == "ok"):
        texts = [_text(path) for path in (store.log_path(cell_id), store.traceback_path(cell_id))]
        if any(texts):
            shown += 1
            say(f"{status_of.get(cell_id, 'missing')}  {describe_cell(planned[cell_id])}  ({cell_id})", bold=True)
            say("\n".join(filter(None, texts)))
    if not shown:
        say(f"none of {plural(len(found), 'cell')} printed anything or failed", err=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").rstrip()
    except OSError:
        return ""


def _suite_status(
    suite: str | None,
    folder: Path | None,
    board: Path | None,
    as_json: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    from llpbench.cli.suite import coverage_of, print_coverage, read_results
    from llpbench.plugins.registry import load_registry

    registry = load_registry(plugins, override)
    results = read_results(suite, folder, board, registry)
    if as_json:
        found = coverage_of(suite or "", registry, [*results.own, *results.published])
        content = [{**msgspec.to_builtins(part), "line": part.line} for part in found]
        print_json(content)
        return
    print_coverage(suite or "", registry, results.own, results.published)


def trouble_of(result: CellResult, plan: Planned, store: Store) -> dict[str, Any]:
    """The reason, location and traceback file of a cell without a number."""
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


def rerun_text(command: Command, which: Rerun) -> str:
    """The command, or call, that runs cells again; for a search, one that searches in another folder.

    A search keeps its trials as they ended, and does not continue with trials of other code.
    """
    if isinstance(command, str):
        return f"{command} (with {'another --out' if is_search(command) else f'--rerun {which}'})"
    if command.verb == "run":
        return str(command.replace(rerun=which))
    folder = Path(command.settings.get("out", "tuned"))
    return str(command.replace(out=f"{folder if folder.name.strip('.') else folder.resolve()}-again"))


def is_search(command: Command) -> bool:
    """Whether a command searches for parameters."""
    return command.startswith(_SEARCHES) if isinstance(command, str) else command.verb == "tune"


def _print_advice(counts: Counter[str], commands: list[Command], older: int, other: int) -> None:
    command = commands[-1] if commands else "llpbench run ..."
    search = is_search(command)
    if older:
        then = "a search does not continue with them" if search else "the next run recomputes them"
        say(f"{plural(older, 'cell')} of another protocol (this is {PROTOCOL}): {then}")
    if other:
        again = rerun_text(command, "stale")
        say(f"{plural(other, 'cell')} computed by other code than is installed now; recompute with: {again}")
    if (counts["missing"] or counts["damaged"]) and not (search and older):
        say(f"continue with: {command}")
    elif (search and older) or any(counts[name] for name in FAILURES):
        what = "failed trials are not repeated; search again with" if search else "run failed cells again with"
        say(f"{what}: {rerun_text(command, 'failed')}")
    elif not other:
        return
    different = {str(known if isinstance(known, str) else known.replace(rerun=None)) for known in commands}
    if len(different) > 1:
        more = plural(len(different) - 1, "other command")
        say(f"this is the last command; {more} wrote to the folder, too (llpbench status --json lists them)")
