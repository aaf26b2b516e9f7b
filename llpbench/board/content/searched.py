"""Searches for parameters: a row with tuned parameters is published with the whole history of its search.

A search is shown by ``tune``'s folder: the studies, and the sealed result of every trial. What is published is the
study (``searches/<dataset>.jsonl``); the results of its trials are looked at when it is added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import msgspec

from llpbench.board.content.splits import Splits
from llpbench.board.validate import RESULT_BYTES, Unsound, check_id, check_name, check_values, clip, read_plain
from llpbench.contracts.cell import SEARCHED, Cell
from llpbench.contracts.errors import LLPBenchError
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.experiment.judge import pruned_by
from llpbench.experiment.tuned import UNSTEERED, History, Trial, bare, tuned_setting
from llpbench.results.sealing import Damaged, decode_result

_OWN_METRICS = {"bag_error"}  # of held-back bags; every other metric is of test rows
_NO_LABELS = hashlib.sha256().hexdigest()


@dataclass(frozen=True)
class Shown:
    """A study and the folder with the results of its trials."""

    history: History
    folder: Path


def is_tuned(cell: Cell) -> bool:
    """Whether the parameters of a cell were searched for."""
    return cell.preset.startswith(SEARCHED)


def read_studies(folders: Iterable[Path]) -> list[Shown]:
    """The studies in folders that ``tune`` wrote."""
    return [
        Shown(decode_history(read_plain(path)), folder)
        for folder in folders
        for path in sorted((folder / "studies").glob("*.json"))
    ]


def decode_history(data: bytes) -> History:
    """Read a study, or raise ``Unsound``."""
    try:
        history = msgspec.json.decode(data, type=History)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unsound(f"not the history of a search ({clip(str(error), 120)})") from None
    check_values(msgspec.to_builtins(history))
    check_name(history.setting.cell.dataset, "dataset")
    for trial in history.trials:
        for cell_id in trial.cells:
            check_id(cell_id)
    return history


def check_search(result: CellResult, studies: Iterable[History], method: MethodSpec | None, splits: Splits) -> History:
    """The study that chose the parameters of a tuned cell, or ``Unsound``.

    Args:
        result: the result of a cell with tuned parameters.
        studies: those that are shown or published.
        method: the method as installed; None when it is not.
        splits: what is known of the test rows of the seeds.
    """
    cell = result.cell
    rule = cell.preset.removeprefix(SEARCHED)
    of_setting = [h for h in studies if tuned_setting(h.setting.cell) == tuned_setting(cell) and h.setting.rule == rule]
    if not of_setting:
        raise Unsound(
            f"the history of the search by rule {clip(rule)} that chose its parameters is not shown "
            "(llpbench leaderboard add --tuned FOLDER)"
        )
    fitting = [h for h in of_setting if _chose(h, cell, method)]
    if not fitting:
        raise Unsound("its parameters are not those that a search of this setting chose")
    fair = [h for h in fitting if _kept_test_rows_apart(h, cell, splits)]
    if not fair:
        seeds = ", ".join(map(str, fitting[0].setting.seeds))
        raise Unsound(
            f"its parameters were searched for on seed {seeds}, whose training and held-back rows may be test rows of "
            f"seed {cell.seed} (llpbench tune --per-seed keeps them apart)"
        )
    seconds = result.tuning_seconds
    exact = [h for h in fair if abs(h.seconds - seconds) <= 0.001 + 1e-6 * h.seconds]
    if not exact:
        raise Unsound(f"its tuning_seconds are {seconds:.3f}, its search took {fair[0].seconds:.3f}")
    _check_shared(exact[0])
    _check_ids(exact[0], cell, method)
    return exact[0]


def trial_cells(history: History, trial: Trial, params: Mapping[str, Scalar]) -> list[Cell]:
    """The cells that a search makes of a trial, one for each seed; ``params`` are all parameters of the method."""
    setting = history.setting
    return [
        msgspec.structs.replace(setting.cell, params=dict(params), seed=seed, tuning=True)
        for seed in setting.seeds[: len(trial.cells)]
    ]


def trial_params(history: History, trial: Trial, cell: Cell, method: MethodSpec | None) -> dict[str, Scalar] | None:
    """All parameters of the method in a trial; None where only the method, which is not installed, could say.

    Those of the best trial are those of the cell that it chose them for.
    """
    if method is not None:
        return method.resolve({**history.setting.fixed, **trial.params})
    return cell.params if trial == history.best else None


def check_trials(shown: Shown) -> None:
    """Refuse a study whose trials have no sealed results, saw test rows, or had other values.

    Trials that several rules share must have been given up under all of these rules.
    """
    for trial in shown.history.trials:
        results = [_trial_result(shown, trial, cell_id) for cell_id in trial.cells]
        if trial.status == "ok" and (len(results) != len(shown.history.setting.seeds) or trial.value is None):
            raise Unsound(f"trial {trial.number} of its search has no result for every seed")
        if shown.history.shared and any(
            r.status == "pruned" and r.notes.get("pruned_by") != pruned_by(shown.history.shared) for r in results
        ):
            raise Unsound(f"trial {trial.number} of its search serves several rules and was not given up under all")
        if trial.status != "ok":
            continue
        chosen = [r.selected.get(shown.history.setting.rule) for r in results if r.status in ("ok", "pruned")]
        known = [one.value for one in chosen if one is not None and one.value is not None]
        if len(known) != len(results) or fmean(known) != trial.value:
            raise Unsound(
                f"trial {trial.number} of its search is said to have reached {trial.value}, its result differs"
            )


def _check_shared(history: History) -> None:
    """Refuse a study that shares trials with rules of which one steered the draws."""
    if history.shared and history.sampler != UNSTEERED:
        raise Unsound(f"the trials of its search serve several rules and were drawn by {clip(history.sampler)}")
    if history.shared and history.setting.rule not in history.shared:
        raise Unsound(f"the trials of its search do not serve its rule {clip(history.setting.rule)}")


def _check_ids(history: History, cell: Cell, method: MethodSpec | None) -> None:
    """Refuse a history that no search wrote: trials left out, or cells that are not those of their parameters.

    The id of a trial's cell follows from setting, parameters and seed. That its value is true does not follow from
    anything that is published: ``add`` sees the results of trials, and ``verify`` makes some of them again.
    """
    if [trial.number for trial in history.trials] != list(range(len(history.trials))):
        raise Unsound("the trials of its search are not numbered 0, 1, 2 and so on: some are left out")
    if history.setting.cell != bare(history.setting.cell):
        raise Unsound("the setting of its search has parameters, a seed or a preset of its own")
    for trial in history.trials:
        if trial.status == "ok" and len(trial.cells) != len(history.setting.seeds):
            raise Unsound(f"trial {trial.number} of its search has no cell for every seed")
        try:
            params = trial_params(history, trial, cell, method)
        except LLPBenchError as error:
            raise Unsound(f"trial {trial.number} of its search has parameters that cannot be: {error}") from None
        if params is not None and trial.cells != [one.id for one in trial_cells(history, trial, params)]:
            raise Unsound(f"trial {trial.number} of its search names cells that are not those of its parameters")


def _trial_result(shown: Shown, trial: Trial, cell_id: str) -> CellResult:
    try:
        result = decode_result(read_plain(shown.folder / "cells" / f"{cell_id}.json", RESULT_BYTES))
    except (Unsound, Damaged) as problem:
        raise Unsound(f"trial {trial.number} of its search has no sound result: {problem}") from None
    setting = shown.history.setting
    if not result.cell.tuning or bare(result.cell) != setting.cell or result.cell.seed not in setting.seeds:
        raise Unsound(f"trial {trial.number} of its search is no trial of its setting")
    searched = {**setting.fixed, **trial.params}
    if any(result.cell.params.get(name) != value for name, value in searched.items()):
        raise Unsound(f"trial {trial.number} of its search had other parameters")
    measured = {name for chosen in result.selected.values() for name in chosen.metrics}
    labels = result.digests.get("test_labels", _NO_LABELS)
    if measured - _OWN_METRICS or result.rows.get("test", 0) or labels != _NO_LABELS:
        raise Unsound(f"trial {trial.number} of its search saw test rows")
    return result


def _chose(history: History, cell: Cell, method: MethodSpec | None) -> bool:
    best = history.best
    if best is None:
        return False
    chosen: Mapping[str, object] = {**history.setting.fixed, **best.params}
    if method is not None:
        try:
            return method.resolve({**history.setting.fixed, **best.params}) == cell.params
        except LLPBenchError:
            return False
    return all(cell.params.get(name) == value for name, value in chosen.items())


def _kept_test_rows_apart(history: History, cell: Cell, splits: Splits) -> bool:
    """Whether no test row of the cell can have been a row of its search.

    That is so when the search used the cell's own seed alone, or when the test rows are the same for every seed.
    """
    others = [seed for seed in history.setting.seeds if seed != cell.seed]
    labels = splits.test_labels(cell, cell.seed)
    return not others or (labels is not None and all(splits.test_labels(cell, seed) == labels for seed in others))
