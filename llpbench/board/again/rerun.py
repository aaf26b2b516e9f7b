"""Making published cells again, through the ordinary driver, and comparing what comes out."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from llpbench.board.content.facts import MachineFacts
from llpbench.board.content.folder import read_folder, read_machine
from llpbench.board.validate import RESULT_BYTES, Unsound, check_id, check_machine, clip, read_plain
from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.executor import ExecutorSettings
from llpbench.contracts.result import CellResult
from llpbench.execution.driver import View, run_jobs
from llpbench.execution.jobs import Context, Limits, make_jobs
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry
from llpbench.results.sealing import Damaged, decode_result
from llpbench.results.store import Store
from llpbench.system.machine import machine

TOLERANCE = 0.01
"""How far a metric may be off where what is known to change bits has changed; one point of AUROC."""
NUMERIC = frozenset(
    [
        "python",
        "numpy",
        "scipy",
        "scikit-learn",
        "numba",
        "pandas",
        "keras",
        "jax",
        "jaxlib",
        "tensorflow",
        "torch",
        "xgboost",
        "lightgbm",
    ]
)
"""Libraries whose versions may change the last bits of a number; other code must give the same bits."""


@dataclass
class Verdict:
    """How a cell that was made again compares with the one that was published.

    Attributes:
        exact: whether equal bits are demanded: nothing that is known to change bits has changed.
        reproduced: whether every number is close enough.
        equal: whether every number is equal, bit for bit.
        lines: each number as it was and as it is, for the reader.
        changed: what differs between the two makings (machine, versions, flags).
    """

    exact: bool
    reproduced: bool
    text: str
    lines: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    equal: bool = False

    @property
    def word(self) -> str:
        """``equal``, ``close`` or ``DIFFERS``."""
        return "equal" if self.equal else "close" if self.reproduced else "DIFFERS"


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
        fine = [r for _, r in sorted(results.items()) if r.status == "ok" and not r.predictions_only]
        if not fine:
            raise StoreError(f"{folder} holds no cell with a number.")
        return secrets.choice(fine)
    matching = [cell_id for cell_id in results if cell_id.startswith(wanted)] if wanted else []
    if len(matching) != 1:
        many = f"{len(matching)} cells begin so" if matching else "no cell has it"
        where = " Ids are in seeds.csv of a leaderboard and on its page: open a cell." if results else ""
        raise UsageError(f"cell {clip(wanted)}: {many} in {folder} ({len(results)} cells).{where}")
    result = results[matching[0]]
    if result.status != "ok":
        raise UsageError(f"cell {result.id} has no number to compare: {result.status}: {result.reason}")
    if result.predictions_only:
        raise UsageError(
            f"cell {result.id} cannot be made again: {result.cell.method} was handed in as predictions, and its code "
            "is not here. With the submitter's folder: llpbench leaderboard score FOLDER scores the predictions again."
        )
    return result


def run_again(result: CellResult, registry: Registry, context: Context, view: View, limits: Limits) -> CellResult:
    """Run the cell in a folder of its own, through the ordinary driver, and hand back what came out."""
    return run_cells([(Planned.of(result), limits)], registry, context, view)[result.id]


def run_cells(
    plans: Iterable[tuple[Planned, Limits]], registry: Registry, context: Context, view: View, *, jobs: int = 1
) -> dict[str, CellResult]:
    """Run cells in a temporary folder, those of equal limits together, ``jobs`` at once; what came out, by id."""
    from llpbench import __version__

    by_limits: dict[Limits, list[Planned]] = {}
    for plan, limits in plans:
        by_limits.setdefault(limits, []).append(plan)
    made: dict[str, CellResult] = {}
    view.begin(sum(map(len, by_limits.values())), 0)
    try:
        for limits, of in by_limits.items():
            with _scratch() as folder:
                store = Store(folder)
                store.plan(of, "llpbench rerun", __version__)
                executor = registry.executor("local", ExecutorSettings(jobs=jobs, threads=limits.threads))
                run_jobs(make_jobs(of, store, registry, limits, context), store, registry, executor, view)
                for plan in of:
                    found = store.read(plan.cell.id)
                    assert found is not None  # the driver leaves a result whatever happens
                    made[plan.cell.id] = found
    finally:
        view.end()
    return made


@contextlib.contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="llpbench-rerun-") as name:
        yield Path(name)


def limits_again(
    result: CellResult, timeout: float | None = None, memory: float | None = None, threads: int | None = None
) -> Limits:
    """The limits a cell was made under, or others; the number of threads may change digits."""
    given = result.limits
    return Limits(
        threads=threads or int(given.get("threads", 1)),
        timeout=timeout or float(given.get("timeout", 3600.0)),
        memory_mb=memory or float(given.get("memory_mb", 8192.0)),
    )


def machine_type(folder: Path, machine_id: str) -> str:
    """The kind of processor of a machine that a folder describes; empty when it does not."""
    try:
        facts = read_machine(folder / "machines" / f"{check_machine(machine_id)}.json")
    except Unsound:
        return ""
    return type_of(facts)


def type_of(facts: MachineFacts) -> str:
    """What of a machine may change the bits of a number: its processor; neither its name nor its memory."""
    return f"{facts.cpu} ({facts.architecture})"


def this_type() -> str:
    """The kind of processor of this machine."""
    here = machine()
    return f"{here['cpu']} ({here['architecture']})"


def changes(before: CellResult, now: CellResult, made_on: str = "", again_on: str = "") -> tuple[list[str], bool]:
    """What differs between two makings of a cell, and whether any of it is known to change the bits of a number.

    Known are another kind of machine (``made_on`` is the one it was made on, as ``machine_type`` gives it; where that
    is not known, another machine; ``again_on`` the one it was made on again, by default this one), another version of
    a numeric library (``NUMERIC``), other threads, other flags of a backend. Another version of the harness or of a
    plugin is told, but excuses nothing: the same cell must give the same numbers, or it is another method.
    """
    changed = []
    again_on = again_on or this_type()
    if before.machine != now.machine and made_on != again_on:
        changed.append(f"the machine ({made_on} -> {again_on})" if made_on else "the machine")
    excused = bool(changed)
    groups: list[tuple[Mapping[str, object], Mapping[str, object], bool]] = [
        (before.versions, now.versions, False),
        ({"threads": before.limits.get("threads", 1)}, {"threads": now.limits.get("threads", 1)}, True),
    ]
    if before.flags:  # protocol 1 states none
        groups.append((before.flags, now.flags, True))
    if before.code:
        groups.append((before.code, now.code, False))
    for was, found, numeric in groups:
        for name in sorted(set(was) | set(found)):
            if was.get(name) != found.get(name):
                changed.append(f"{name} {_short(was.get(name))} -> {_short(found.get(name))}")
                excused |= numeric or name in NUMERIC
    if before.protocol != now.protocol:
        changed.append(f"protocol {before.protocol} -> {now.protocol}")
        excused = True
    return changed, excused


def compare(
    before: CellResult, now: CellResult, tolerance: float | None = None, made_on: str = "", again_on: str = ""
) -> Verdict:
    """Compare the metrics under every rule.

    Equal bits are demanded, unless something that is known to change them has changed (``changes``): then each number
    may differ by ``TOLERANCE`` (in the metric's own unit). ``tolerance`` is used instead when it is given.
    """
    changed, excused = changes(before, now, made_on, again_on)
    if now.status != "ok":
        return Verdict(False, False, f"not reproduced: this time it is {now.status}: {now.reason}", [], changed)
    exact = tolerance is None and not excused
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
    facts = _other_facts(before, now)
    if facts:
        return Verdict(exact, False, f"not reproduced: {facts}", lines, changed)
    if wrong:
        how = "equal bits were expected" if exact else f"the tolerance is {allowed:g}"
        hint = "; numbers of two protocols are not compared" if before.protocol != now.protocol else ""
        text = f"not reproduced: {wrong} of {len(lines)} numbers differ ({how}{hint})"
        return Verdict(exact, False, text, lines, changed)
    text = "reproduced, bit for bit" if equal else f"reproduced within {allowed:g}"
    return Verdict(exact, True, text, lines, changed, equal)


def _other_facts(before: CellResult, now: CellResult) -> str:
    """What was published of the data and is not so: seeds, rows, bags, noise, labels of the test rows.

    Results of before say less (nothing of test bags, say): what they do not say is not compared.
    """
    for name in ("seeds", "rows", "bags", "count_sd"):
        was, found = getattr(before, name), getattr(now, name)
        found = {key: found.get(key) for key in was} if isinstance(was, dict) else found
        if was and was != found:
            return f"its {name} differ ({was}, now {found})"
    for name, digest in before.digests.items():
        if name in now.digests and now.digests[name] != digest and name == "test_labels":
            return "the labels of its test rows differ"
    return ""


def _short(value: object) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _digits(value: float | None) -> str:
    return f"{'none':>12}" if value is None else f"{value:12.8f}"


def _word(same: bool, near: bool) -> str:
    return "equal" if same else "close" if near else "DIFFERS"
