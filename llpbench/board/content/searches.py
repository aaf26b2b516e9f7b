"""Searches for parameters: a tuned cell is published with the history of the search that chose its parameters.

``llpbench tune`` writes histories; ``leaderboard add --tuned FOLDER`` publishes them (``searches/<dataset>.jsonl``).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from llpbench.board.content.splits import Splits
from llpbench.board.validate import Unsound, check_name, check_values, clip, read_plain
from llpbench.contracts.cell import SEARCHED, Cell
from llpbench.contracts.errors import LLPBenchError, StoreError
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import MethodSpec
from llpbench.experiment.tuned import History, tuned_setting


def is_tuned(cell: Cell) -> bool:
    """Whether the parameters of a cell were searched for."""
    return cell.preset.startswith(SEARCHED)


def read_histories(folders: Iterable[Path]) -> list[History]:
    """Read the histories in folders that ``tune`` wrote; raise ``StoreError`` if a folder has none."""
    histories = []
    for folder in folders:
        paths = sorted((folder / "studies").glob("*.json"))
        if not paths:
            raise StoreError(f"{folder} is not a folder of llpbench tune: studies/*.json is missing.")
        histories += [decode_history(read_plain(path)) for path in paths]
    return histories


def decode_history(data: bytes) -> History:
    """Read one history; raise ``Unsound`` if it is invalid."""
    try:
        history = msgspec.json.decode(data, type=History)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unsound(f"invalid history of a search ({clip(str(error), 120)})") from None
    check_values(msgspec.to_builtins(history))
    check_name(history.setting.cell.dataset, "dataset")
    return history


def find_search(
    result: CellResult, histories: Iterable[History], splits: Splits, method: MethodSpec | None = None
) -> History:
    """Return the search that chose the parameters of a tuned cell; raise ``Unsound`` if it is missing or unfair.

    Args:
        result: the result of a cell with tuned parameters.
        histories: the searches to look in.
        splits: the test labels that are known of each seed.
        method: the method, if it is installed; without it, only the parameters that were searched are compared.
    """
    cell = result.cell
    rule = cell.preset.removeprefix(SEARCHED)
    of_setting = [
        h for h in histories if tuned_setting(h.setting.cell) == tuned_setting(cell) and h.setting.rule == rule
    ]
    if not of_setting:
        raise Unsound(
            f"the search by rule {clip(rule)} that chose its parameters is missing; "
            "attach it with llpbench leaderboard add --tuned FOLDER"
        )
    fitting = [h for h in of_setting if _chose(h, cell, method)]
    if not fitting:
        raise Unsound("its parameters are not those of the best trial of its search")
    fair = [h for h in fitting if _kept_test_rows_apart(h, cell, splits)]
    if not fair:
        seeds = ", ".join(map(str, fitting[0].setting.seeds))
        raise Unsound(
            f"its parameters were searched for on seed {seeds}, whose training and held-out rows may be test rows of "
            f"seed {cell.seed}; llpbench tune --per-seed keeps them apart"
        )
    return min(fair, key=lambda h: abs(h.seconds - result.tuning_seconds))


def _chose(history: History, cell: Cell, method: MethodSpec | None) -> bool:
    """Whether the best trial of a search has the parameters of a cell."""
    if history.best is None:
        return False
    chosen = {**history.setting.fixed, **history.best.params}
    if method is None:
        return all(cell.params.get(name) == value for name, value in chosen.items())
    try:
        return method.resolve(chosen) == cell.params
    except LLPBenchError:
        return False


def _kept_test_rows_apart(history: History, cell: Cell, splits: Splits) -> bool:
    """Whether no test row of the cell can have been a row of its search.

    This holds if the search used the cell's own seed alone, or if the test rows are the same for every seed.
    """
    others = [seed for seed in history.setting.seeds if seed != cell.seed]
    labels = splits.test_labels(cell, cell.seed)
    return not others or (labels is not None and all(splits.test_labels(cell, seed) == labels for seed in others))
