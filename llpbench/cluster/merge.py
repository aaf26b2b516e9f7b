"""Merge results folders: equal results are kept once, different ones are reported.

Nothing is lost: source folders are only read, and a replaced file of the target is kept in ``conflicts/``, as is the
other side of every conflict.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.result import STATUSES, CellResult, Selected
from llpbench.experiment.plan import Planned
from llpbench.results.request import Command
from llpbench.results.sealing import Damaged, decode_result
from llpbench.results.store import Store
from llpbench.system.files import write_atomically


@dataclass
class MergeReport:
    """What a merge did. ``conflicts`` need attention; ``notes`` were resolved by a rule.

    ``copied`` counts copied results, ``scores`` the results of the target that only lacked test scores.
    """

    folders: list[str] = field(default_factory=list)
    planned: int = 0
    results: int = 0
    copied: int = 0
    scores: int = 0
    conflicts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Found:
    """A cell's result file in one folder: its bytes, and the result, or the reason why it is damaged."""

    store: Store
    data: bytes
    result: CellResult | None
    damage: str = ""


def merge(sources: Iterable[Path], out: Path) -> MergeReport:
    """Merge results folders into ``out``, which may be one of them, contain results, or not exist.

    If several folders have a result of a cell, results with a number win over those without (``ok``, then ``skipped``,
    then failures), otherwise the earlier folder wins. Two ``ok`` results with different metrics are a conflict.

    Raises:
        StoreError: a folder is not a results folder or has a search, ``out`` cannot be written, or a run is working on
            one of its cells.
    """
    target = Store(out)
    given = [Store(Path(path)) for path in sources]
    if target.manifest_path.exists():  # what is there comes first
        given = [target, *(store for store in given if store.root.resolve() != out.resolve())]
    if len(given) < 2 and (not given or given[0] is target):
        raise UsageError("a merge needs at least two different results folders.")
    report = MergeReport(folders=[str(store.root) for store in given])
    planned, commands = _plan(given, report)
    _reject_searches(given, planned)
    version = given[0].manifest().version
    target.plan(planned.values(), commands[0] if commands else "", version)
    for command in commands[1:]:
        target.plan((), command, version)
    for cell_id in planned:
        _merge_cell(cell_id, given, target, report)
    if report.scores:
        report.notes.append(f"added test scores for {report.scores} results of {out}")
    for store in given:
        for path in (store.root / "machines").glob("*.json"):
            if not (target.root / "machines" / path.name).exists():
                with contextlib.suppress(OSError):
                    write_atomically(target.root / "machines" / path.name, path.read_bytes())
    report.planned = len(planned)
    return report


def _reject_searches(stores: list[Store], planned: dict[str, Planned]) -> None:
    """Raise an error if a folder has studies, or if trials of a search would be mixed with cells of a run."""
    searches = [store for store in stores if (store.root / "studies").exists()]
    trials = [cell_id for cell_id, plan in planned.items() if plan.cell.tuning]
    if not searches and 0 < len(trials) < len(planned):
        searches = [store for store in stores if _holds_some(store, trials)]
    if searches:
        one = searches[0].root
        raise StoreError(
            f"{one} has a search (llpbench tune), and searches cannot be merged. Leave it out and use it where it is: "
            f"llpbench run --params {one}. Several processes can search together in one folder (llpbench tune --out)."
        )


def _holds_some(store: Store, cells: Iterable[str]) -> bool:
    planned = store.manifest().planned
    return any(cell_id in planned or store.result_path(cell_id).exists() for cell_id in cells)


def _plan(stores: list[Store], report: MergeReport) -> tuple[dict[str, Planned], list[Command]]:
    """The cells of all plans and of unplanned results, and all commands."""
    planned: dict[str, Planned] = {}
    commands: list[Command] = []
    manifests = [(store, store.manifest()) for store in stores]
    for store, manifest in manifests:
        commands += [command for command in manifest.commands if command not in commands]
        for cell_id, plan in manifest.planned.items():
            if plan.cell.id != cell_id:
                report.conflicts.append(f"{store.manifest_path}: the entry {cell_id!r} is not of the cell it holds")
                continue
            known = planned.setdefault(cell_id, plan)
            if known != plan:
                kept, other = (f"{p.method_name!r} on {p.dataset_name!r}" for p in (known, plan))
                report.conflicts.append(f"{cell_id}: planned as {kept} and {other}; the first is kept")
    (first, cells), *others = [(store.root, set(manifest.planned)) for store, manifest in manifests]
    report.notes += [
        f"different plans: {first} has {len(cells)} cells, {root} {len(more)}, {len(cells & more)} of them in both"
        for root, more in others
        if more != cells
    ]
    for store in stores:
        for path in sorted((store.root / "cells").glob("*.json")):
            found = _find(store, path.stem) if path.stem not in planned else None
            if found is not None and found.result is None:
                report.conflicts.append(f"{path}: {found.damage}, and in no plan; left where it is")
            elif found is not None and found.result is not None:
                planned[path.stem] = Planned.of(found.result)
                report.notes.append(f"{path.stem}: added a result of {store.root} that was in no plan")
    return planned, commands


def _find(store: Store, cell_id: str) -> _Found | None:
    path = store.result_path(cell_id)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        return _Found(store, b"", None, error.strerror or str(error))
    try:
        result = decode_result(data)
        if result.id != cell_id:
            raise Damaged(f"it holds the result of cell {result.id}")
    except Damaged as damage:
        return _Found(store, data, None, str(damage))
    return _Found(store, data, result)


def _merge_cell(cell_id: str, stores: list[Store], target: Store, report: MergeReport) -> None:
    found = [f for store in stores if (f := _find(store, cell_id)) is not None]
    sound = [f for f in found if f.result is not None]
    report.conflicts += [f"{f.store.result_path(cell_id)}: damaged: {f.damage}" for f in found if f.result is None]
    report.results += bool(sound)
    best = min(sound, key=_rank, default=None)
    aside = [f for f in found if f.result is None]
    same: list[Store] = []
    for other in sound:
        difference = _difference(best, other) if best is not None else ""
        if best is None or other is best or not difference:
            same.append(other.store)
            continue
        aside.append(other)
        line = f"{cell_id}: {difference} ({best.store.root} and {other.store.root}); the first is kept"
        (report.conflicts if _rank(other) == _rank(best) and _rank(best)[0] == 0 else report.notes).append(line)
    donor = next((store for store in same if store.predictions_path(cell_id).is_file()), None)
    new = best is not None and best.store is not target
    if not (aside or new or donor not in (None, target)):
        return
    claim = target.claim(cell_id)
    if claim is None:
        raise StoreError(f"a run is working on cell {cell_id} in {target.root}. Merge again when it has ended.")
    try:
        for other in aside:
            _set_aside(cell_id, other, stores.index(other.store), target)
        if best is not None and best.store is not target:
            _copy(cell_id, best, donor or best.store, target)
            report.copied += 1
        elif donor is not None and donor is not target:
            target.keep_predictions(cell_id, donor.predictions_path(cell_id).read_bytes())
            report.scores += 1
    except OSError as error:
        raise StoreError(f"cannot write to {target.root}: {error}") from None
    finally:
        claim.release()


def _rank(found: _Found) -> tuple[int, int]:
    """Which result wins, the lowest first: ``ok``, then ``skipped``, then failures; newer protocols first."""
    assert found.result is not None
    return min(STATUSES.index(found.result.status), STATUSES.index("failed")), -found.result.protocol


def _copy(cell_id: str, found: _Found, donor: Store, target: Store) -> None:
    """Copy the files of a cell, the result last; test scores from ``donor``, whose result is the same."""
    pairs = [(donor.predictions_path(cell_id), target.predictions_path(cell_id))]
    pairs.append((found.store.log_path(cell_id), target.log_path(cell_id)))
    for source, place in pairs:
        if source.is_file():
            write_atomically(place, source.read_bytes())
        else:
            place.unlink(missing_ok=True)  # it belongs to the replaced result, and was kept with it
    write_atomically(target.result_path(cell_id), found.data)
    assert found.result is not None
    target.keep_traceback(found.result)


def _set_aside(cell_id: str, found: _Found, number: int, target: Store) -> None:
    """Keep a replaced result in ``conflicts/`` with its test scores and log, unless it is there already."""
    folder = target.root / "conflicts"
    if any(path.read_bytes() == found.data for path in folder.glob(f"{cell_id}-*.json")):
        return
    while (place := folder / f"{cell_id}-{number}.json").exists():
        number += 1
    for path in (found.store.predictions_path(cell_id), found.store.log_path(cell_id)):
        if path.is_file():
            write_atomically(place.with_suffix(path.suffix), path.read_bytes())
    write_atomically(place, found.data)


def _difference(first: _Found, other: _Found) -> str:
    """How two results of one cell differ, in words; empty if their numbers agree."""
    a, b = first.result, other.result
    assert a is not None
    assert b is not None
    if a.status != b.status:
        return f"status {a.status} and {b.status}"
    pairs = [(a.selected, b.selected, "")]
    stages = dict.fromkeys([*a.stages, *b.stages])
    pairs += [(a.stages.get(stage, {}), b.stages.get(stage, {}), f"{stage}, ") for stage in stages]
    for ours, theirs, where in pairs:
        for rule in dict.fromkeys([*ours, *theirs]):
            words = _differing_metric(ours.get(rule), theirs.get(rule))
            if words:
                return f"{where}rule {rule}: {words}"
    return ""


def _differing_metric(a: Selected | None, b: Selected | None) -> str:
    """The metric that differs most, in words, or one that only one side has; empty if all agree."""
    ours, theirs = (selected.metrics if selected is not None else {} for selected in (a, b))
    found = []
    for name in dict.fromkeys([*ours, *theirs]):
        x, y = ours.get(name), theirs.get(name)
        words = f"{name} {msgspec.json.encode(x).decode()} and {msgspec.json.encode(y).decode()}"
        if x is None or y is None:
            if x is not y or (name in ours) != (name in theirs):
                found.append((0.0, words))
        elif not math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12):
            found.append((abs(x - y), words))
    return max(found, default=(0.0, ""))[1]
