"""Making one published cell again and comparing what comes out."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.executor import ExecutorSettings
from llpbench.contracts.result import CellResult
from llpbench.execution.driver import View, run_jobs
from llpbench.execution.jobs import Context, Limits, make_jobs
from llpbench.experiment.plan import Planned
from llpbench.leaderboard.folder import read_folder
from llpbench.leaderboard.validate import RESULT_BYTES, Unsound, check_id, clip, read_plain
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import Damaged, decode_result
from llpbench.results.store import Store

TOLERANCE = 0.01


@dataclass
class Verdict:
    """How a cell that was made again compares with the one that was published.

    Attributes:
        exact: whether equal bits are demanded: the same machine and the same versions made both.
        reproduced: whether every number is close enough.
        lines: each number as it was and as it is, for the reader.
        changed: what differs between the two makings (machine, versions).
    """

    exact: bool
    reproduced: bool
    text: str
    lines: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


def published_results(folder: Path) -> dict[str, CellResult]:
    """All results of a leaderboards folder or of a results folder, by id."""
    if (folder / "manifest.json").exists():
        return _results_of_run(folder)
    return {cell_id: line.result for cell_id, line in read_folder(folder).lines.items()}


def _results_of_run(folder: Path) -> dict[str, CellResult]:
    store = Store(folder)
    found = {}
    for cell_id, planned in store.manifest().planned.items():
        path = store.result_path(check_id(cell_id))
        if not path.exists():
            continue
        try:
            result = decode_result(read_plain(path, RESULT_BYTES))
        except (Damaged, Unsound) as problem:
            raise StoreError(f"{path}: {problem}.") from None
        result.method_name, result.dataset_name, result.oracle = (
            planned.method_name,
            planned.dataset_name,
            planned.oracle,
        )
        found[cell_id] = result
    return found


def choose(results: dict[str, CellResult], wanted: str | None, folder: Path) -> CellResult:
    """The cell of that id (or the only one whose id begins so); a random one with a number when none is named."""
    if wanted is None:
        fine = [r for _, r in sorted(results.items()) if r.status == "ok"]
        if not fine:
            raise StoreError(f"{folder} holds no cell with a number.")
        return secrets.choice(fine)
    matching = [cell_id for cell_id in results if cell_id.startswith(wanted)] if wanted else []
    if len(matching) != 1:
        many = f"{len(matching)} cells begin so" if matching else "no cell has it"
        raise UsageError(f"cell {clip(wanted)}: {many} in {folder} ({len(results)} cells).")
    result = results[matching[0]]
    if result.status != "ok":
        raise UsageError(f"cell {result.id} has no number to compare: {result.status}: {result.reason}")
    return result


def run_again(result: CellResult, registry: Registry, context: Context, view: View, limits: Limits) -> CellResult:
    """Run the cell in a folder of its own, through the ordinary driver, and hand back what came out."""
    from llpbench import __version__

    plan = Planned(
        cell=result.cell, method_name=result.method_name, dataset_name=result.dataset_name, oracle=result.oracle
    )
    with _scratch() as folder:
        store = Store(folder)
        store.plan([plan], f"llpbench rerun {result.id}", __version__)
        executor = registry.executor("local", ExecutorSettings(jobs=1, threads=limits.threads))
        view.begin(1, 0)
        try:
            run_jobs(make_jobs([plan], store, registry, limits, context), store, registry, executor, view)
        finally:
            view.end()
        made = store.read(result.id)
    assert made is not None  # the driver leaves a result whatever happens
    return made


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="llpbench-rerun-") as name:
        yield Path(name)


def limits_of(result: CellResult, timeout: float | None = None) -> Limits:
    """The limits a cell was made under; the number of threads may change digits."""
    given = result.limits
    return Limits(
        threads=int(given.get("threads", 1)),
        timeout=timeout or float(given.get("timeout", 3600.0)),
        memory_mb=float(given.get("memory_mb", 8192.0)),
    )


def compare(before: CellResult, now: CellResult, tolerance: float | None = None) -> Verdict:
    """Compare the metrics under every rule.

    Equal bits are demanded when the same machine and the same versions made both and no tolerance is given;
    otherwise each number may differ by the tolerance (in the metric's own unit: 0.01 is one point of AUROC).
    """
    changed = ["the machine"] if before.machine != now.machine else []
    changed += [
        f"{name} {before.versions.get(name, 'absent')} -> {now.versions.get(name, 'absent')}"
        for name in sorted(set(before.versions) | set(now.versions))
        if before.versions.get(name) != now.versions.get(name)
    ]
    if now.status != "ok":
        return Verdict(False, False, f"not reproduced: this time it is {now.status}: {now.reason}", [], changed)
    exact = tolerance is None and not changed
    allowed = 0.0 if exact else TOLERANCE if tolerance is None else tolerance
    lines, wrong, equal = [], 0, True
    for rule, chosen in sorted(before.selected.items()):
        again = now.selected.get(rule)
        for name, was in sorted(chosen.metrics.items()):
            value = None if again is None else again.metrics.get(name)
            same = value == was
            near = same or (was is not None and value is not None and abs(value - was) <= allowed)
            wrong += not near
            equal &= same
            lines.append(f"{rule:<10} {name:<18} {_digits(was)} {_digits(value)}  {_word(same, near)}")
    if before.seeds and before.seeds != now.seeds:
        return Verdict(
            exact, False, f"not reproduced: the seeds differ ({before.seeds}, now {now.seeds})", lines, changed
        )
    if wrong:
        how = "equal bits were expected" if exact else f"the tolerance is {allowed:g}"
        return Verdict(exact, False, f"not reproduced: {wrong} of {len(lines)} numbers differ ({how})", lines, changed)
    text = "reproduced, bit for bit" if equal else f"reproduced within {allowed:g}"
    return Verdict(exact, True, text, lines, changed)


def _digits(value: float | None) -> str:
    return f"{'none':>12}" if value is None else f"{value:12.8f}"


def _word(same: bool, near: bool) -> str:
    return "equal" if same else "close" if near else "DIFFERS"
