"""Rerunning published cells through the ordinary driver and comparing the results."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from llpbench.board.content.facts import MachineFacts
from llpbench.board.content.folder import read_folder, read_machine
from llpbench.board.validate import Unsound, check_machine, clip
from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.result import CellResult
from llpbench.contracts.view import View
from llpbench.execution.driver import run_jobs
from llpbench.execution.jobs import make_executor, make_jobs
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.registry import Registry
from llpbench.results.store import Store
from llpbench.system.machine import machine

TOLERANCE = 0.01
"""How far a metric may be off if the machine, a numeric library or its settings changed; one point of AUROC."""
NUMERIC = frozenset([
    "python", "numpy", "scipy", "scikit-learn", "numba", "pandas", "xgboost", "lightgbm",
    "keras", "jax", "jaxlib", "tensorflow", "torch",
])  # fmt: skip
"""Libraries whose versions may change the last bits of a number."""


@dataclass
class Verdict:
    """How a reproduced cell compares with the published one.

    Attributes:
        exact: whether equal bits are required: nothing that can change them has changed.
        reproduced: whether every number is close enough.
        equal: whether every number is equal, bit for bit.
        lines: each number as published and as reproduced.
        changed: what has changed since the cell was made (machine, versions, flags).
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
    """Return all results of a leaderboards folder or a results folder, by id."""
    if (folder / "manifest.json").exists():
        return {result.id: result for result in Store(folder).results()}
    return {cell_id: line.result for cell_id, line in read_folder(folder).lines.items()}


def choose(results: dict[str, CellResult], wanted: str | None, folder: Path) -> CellResult:
    """Return the cell whose id starts with ``wanted``, or a random cell with a number if it is None."""
    if wanted is None:
        fine = [r for _, r in sorted(results.items()) if r.status == "ok"]
        if not fine:
            raise StoreError(f"{folder} holds no cell with a number.")
        return secrets.choice(fine)
    matching = [cell_id for cell_id in results if cell_id.startswith(wanted)] if wanted else []
    if len(matching) != 1:
        found = f"{len(matching)} ids start with it" if matching else "unknown id"
        where = " Ids are on the page of a leaderboard: click a number." if results else ""
        raise UsageError(f"cell {clip(wanted)}: {found} in {folder} ({len(results)} cells).{where}")
    result = results[matching[0]]
    if result.status != "ok":
        raise UsageError(f"cell {result.id} has no number to compare: {result.status}: {result.reason}")
    return result


class Limits(NamedTuple):
    """The limits of a published cell, as settings of a run."""

    threads: int
    timeout: float
    memory: float


def run_cells(
    plans: Iterable[tuple[Planned, Limits]],
    registry: Registry,
    settings: RunSettings,
    view: View,
    *,
    jobs: int = 1,
    made: dict[str, CellResult] | None = None,
) -> dict[str, CellResult]:
    """Run cells in temporary folders, ``jobs`` at once, and return their results by id.

    Results are put into ``made``, if it is given: after Ctrl-C it holds those of the cells that were done.
    """
    from llpbench import __version__

    by_limits: dict[Limits, list[Planned]] = {}
    for plan, limits in plans:
        by_limits.setdefault(limits, []).append(plan)
    made = {} if made is None else made
    view.begin(sum(map(len, by_limits.values())), 0)
    try:
        for limits, of in by_limits.items():
            with tempfile.TemporaryDirectory(prefix="llpbench-rerun-") as folder:
                store = Store(Path(folder))
                store.plan(of, "llpbench rerun", __version__)
                limited = settings.replace(jobs=jobs, **limits._asdict())
                executor = make_executor(limited, registry)
                try:
                    run_jobs(make_jobs(of, store, registry, limited), store, registry, executor, [view])
                finally:
                    found = ((plan.cell.id, store.read(plan.cell.id)) for plan in of)
                    made |= {cell_id: result for cell_id, result in found if result is not None}
    finally:
        view.end()
    return made


def limits_again(
    result: CellResult, timeout: float | None = None, memory: float | None = None, threads: int | None = None
) -> Limits:
    """Return the limits a cell was made under, with the given ones in their place."""
    given = result.limits
    return Limits(
        threads=threads or int(given.get("threads", 1)),
        timeout=timeout or float(given.get("timeout", 3600.0)),
        memory=memory or float(given.get("memory_mb", 8192.0)),
    )


def machine_type(folder: Path, machine_id: str) -> str:
    """Return the processor of a machine that a folder describes; empty if it does not."""
    try:
        facts = read_machine(folder / "machines" / f"{check_machine(machine_id)}.json")
    except Unsound:
        return ""
    return type_of(facts)


def type_of(facts: MachineFacts) -> str:
    """Return what of a machine may change the bits of a number: its processor."""
    return f"{facts.cpu} ({facts.architecture})"


def this_type() -> str:
    """Return the processor of this machine."""
    here = machine()
    return f"{here['cpu']} ({here['architecture']})"


def changes(before: CellResult, now: CellResult, made_on: str = "") -> tuple[list[str], bool]:
    """Return what differs between two results of a cell, and whether any of it can change the bits of a number.

    The machine (``made_on`` is the type it was made on, if known), the version of a numeric library (``NUMERIC``), the
    number of threads and the flags of a backend can. Versions of the harness and of plugins are listed, but must not.
    """
    changed = []
    if before.machine != now.machine and made_on != this_type():
        changed.append(f"the machine ({made_on} -> {this_type()})" if made_on else "the machine")
    excused = bool(changed)
    groups: list[tuple[Mapping[str, object], Mapping[str, object], bool]] = [
        (before.versions, now.versions, False),
        ({"threads": before.limits.get("threads", 1)}, {"threads": now.limits.get("threads", 1)}, True),
        (before.flags, now.flags, True),
        (before.code, now.code, False),
    ]
    for was, found, numeric in groups:
        for name in sorted(set(was) | set(found)):
            if was.get(name) != found.get(name):
                changed.append(f"{name} {_short(was.get(name))} -> {_short(found.get(name))}")
                excused |= numeric or name in NUMERIC
    return changed, excused


def compare(before: CellResult, now: CellResult, tolerance: float | None = None, made_on: str = "") -> Verdict:
    """Compare every number that is published of a cell: metrics, also of stages, pseudo-labels and the bag card.

    Equal bits are required, unless something that can change them has changed (``changes``): then each number may
    differ by ``tolerance`` in the metric's own unit, by default ``TOLERANCE``.
    """
    changed, excused = changes(before, now, made_on)
    if now.status != "ok":
        return Verdict(False, False, f"not reproduced: {now.status}: {now.reason}", [], changed)
    exact = tolerance is None and not excused
    allowed = 0.0 if exact else TOLERANCE if tolerance is None else tolerance
    lines, wrong, equal = [], 0, True
    found = dict(_numbers(now))
    for (of, name), was in _numbers(before):
        value = found.get((of, name))
        same = value == was
        near = same or (was is not None and value is not None and abs(value - was) <= allowed)
        wrong += not near
        equal &= same
        lines.append(f"{of:<22} {name:<18} {_digits(was)} {_digits(value)}  {_word(same, near)}")
    facts = _other_facts(before, now)
    if facts:
        return Verdict(exact, False, f"not reproduced: {facts}", lines, changed)
    if wrong:
        how = "equal bits were expected" if exact else f"the tolerance is {allowed:g}"
        text = f"not reproduced: {wrong} of {len(lines)} numbers differ ({how})"
        return Verdict(exact, False, text, lines, changed)
    text = "reproduced, bit for bit" if equal else f"reproduced within {allowed:g}"
    return Verdict(exact, True, text, lines, changed, equal)


def _numbers(result: CellResult) -> Iterator[tuple[tuple[str, str], float | None]]:
    """The numbers of a result that do not depend on time, by what they are of and their name."""
    parts = {"": result.selected, **dict(sorted(result.stages.items()))}
    for stage, chosen in parts.items():
        for rule, selected in sorted(chosen.items()):
            for name, value in sorted(selected.metrics.items()):
                yield (f"{stage} {rule}".strip(), name), value
    for stage, value in sorted(result.pseudo_labels.items()):
        yield ("pseudo-labels", stage or "auroc"), value
    for number, share in enumerate(result.rate):
        yield ("rate", str(number)), share
    for name, fact in asdict(result.card).items() if result.card is not None else ():
        for number, one in enumerate(fact if isinstance(fact, tuple) else (fact,)):
            yield ("bag card", f"{name} {number}" if isinstance(fact, tuple) else name), one


def _other_facts(before: CellResult, now: CellResult) -> str:
    """What differs of the data: seeds, rows, bags, noise or labels of the test rows; empty if nothing does."""
    for name in ("seeds", "rows", "bags", "count_sd"):
        was, found = getattr(before, name), getattr(now, name)
        found = {key: found.get(key) for key in was} if isinstance(was, dict) else found
        if was and was != found:
            return f"its {name} differ (published {was}, now {found})"
    same = before.digests.get("test_labels") in (None, now.digests.get("test_labels"))
    return "" if same else "the labels of its test rows differ"


def _short(value: object) -> str:
    text = "absent" if value is None else str(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _digits(value: float | None) -> str:
    return f"{'none':>12}" if value is None else f"{value:12.8f}"


def _word(same: bool, near: bool) -> str:
    return "equal" if same else "close" if near else "DIFFERS"
