"""Verifying a leaderboard: random cells are reproduced, and their settings are run on fresh seeds.

A reproduced cell must have the published numbers (``rerun``). A method that was fitted to the published seeds has
them, too, but does worse on *fresh* seeds. For each drawn setting, published and fresh values are compared by
Student's two-sample test:

    t = (mean(published) - mean(fresh)) / sqrt(v * (1 / n + 1 / k)),

with ``v`` the pooled variance over seeds, but at least the variance of an AUROC over resampled test rows (seeds may
agree by luck). A setting is in doubt if its corrected (Holm) p-value is at most ``LEVEL``. A published failure must
fail again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import msgspec
import numpy as np

from llpbench.board.content.bootstrap import Replicates
from llpbench.board.content.folder import Content
from llpbench.board.content.marks import FreshMark, Mark, digest_of_numbers
from llpbench.board.maths.bootstrap import METRIC
from llpbench.board.maths.statistics import holm, student_p
from llpbench.board.rerun import Limits, Verdict, compare, limits_again, run_cells, type_of
from llpbench.contracts.cell import USUAL_BACKENDS, setting_name
from llpbench.contracts.errors import DataUnavailableError, StoreError
from llpbench.contracts.result import CellResult
from llpbench.contracts.view import View
from llpbench.execution.local import cells_at_once
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.registry import Registry
from llpbench.results.table import setting_of, value_of
from llpbench.system.machine import usable_cores

LEVEL = 0.01
_FRESH = range(10_000, 2**31 - 1)  # far from published seeds
_STOPPED = {"timeout", "memory", "crashed"}  # how a process ends may depend on the machine


@dataclass(frozen=True)
class FreshTest:
    """Published values of a setting against those of fresh seeds, in percent.

    ``p`` is the p-value of equal means; None if there is no variance to judge it by. ``seeds`` are the fresh ones with
    a number, ``cells`` the drawn cells of the setting.
    """

    method: str
    place: str
    rule: str
    published: tuple[float, ...]
    fresh: tuple[float, ...]
    p: float | None
    doubt: bool = False
    seeds: tuple[int, ...] = ()
    cells: tuple[str, ...] = ()


@dataclass
class Verification:
    """The outcome of a verification; it fails if there are ``doubts``.

    Attributes:
        remade: cells that were reproduced, each with its comparison.
        made: the results that were made, by id.
        stopped: whether it was interrupted; it then covers the cells that were done.
        no_data: cells whose data is not available here.
        too_large: cells that need more threads than there are cores.
        failures: published failures, each with the result of this time.
        notes: differences that may depend on the machine.
    """

    remade: list[tuple[CellResult, Verdict]] = field(default_factory=list)
    fresh: list[FreshTest] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    made: dict[str, CellResult] = field(default_factory=dict)
    stopped: bool = False
    no_data: list[CellResult] = field(default_factory=list)
    too_large: list[CellResult] = field(default_factory=list)
    failures: list[tuple[CellResult, CellResult]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def looked_at(self) -> int:
        """How many of the drawn cells were rerun, including published failures."""
        return len(self.remade) + len(self.failures)


def candidates(content: Content, known: Content | None = None) -> list[CellResult]:
    """Return the published cells in the order of their ids; with ``known``, those that are new or changed."""
    before = {} if known is None else known.lines
    return [
        line.result
        for cell_id, line in sorted(content.lines.items())
        if cell_id not in before or before[cell_id].digest != line.digest
    ]


def draw(cells: Sequence[CellResult], number: int, seed: int) -> list[CellResult]:
    """Draw cells at random: first one of each method, dataset and kind of outcome (number or failure)."""
    if not cells:
        raise StoreError("there is no cell to verify: nothing is published.")
    rng = random.Random(seed)
    shuffled = rng.sample(list(cells), len(cells))
    first: dict[tuple[str, str, bool], CellResult] = {}
    for cell in shuffled:
        first.setdefault((cell.cell.method, cell.cell.dataset, cell.status == "ok"), cell)
    ids = dict.fromkeys(cell.id for cell in (*first.values(), *shuffled))
    by_id = {cell.id: cell for cell in cells}
    return [by_id[cell_id] for cell_id in ids][:number]


def fresh_seeds(number: int, seed: int, taken: Iterable[int]) -> list[int]:
    """Return seeds that are not published, the same for the same draw."""
    rng, used = random.Random(f"fresh {seed}"), set(taken)
    found: list[int] = []
    while len(found) < number:
        candidate = rng.choice(_FRESH)
        if candidate not in used:
            used.add(candidate)
            found.append(candidate)
    return found


def verify(
    drawn: Sequence[CellResult],
    content: Content,
    registry: Registry,
    settings: RunSettings,
    view: View,
    *,
    seeds: Sequence[int] = (),
    limits: tuple[float | None, float | None, int | None] = (None, None, None),
    jobs: int = 1,
) -> Verification:
    """Rerun drawn cells, run their settings on fresh seeds, and compare.

    After Ctrl-C the report covers the cells that were done with all of their fresh seeds.

    Args:
        drawn: published cells.
        content: the leaderboard.
        registry: what is installed; cells of anything else are doubts.
        settings: how cells are run: data, plugins.
        view: shows the progress.
        seeds: the fresh seeds.
        limits: timeout, memory and threads that replace those of the cells.
        jobs: how many cells run at once; 0 for as many as there are cores for.

    Raises:
        UsageError: there are fewer cores than ``jobs`` cells need.
    """
    report = Verification()
    able = []
    for result in drawn:
        missing = [n for n, shelf in _needs(result, registry) if n not in shelf]
        if missing:
            report.doubts.append(f"cell {result.id}: {', '.join(missing)} is not installed")
        else:
            able.append(result)
    plans: dict[str, tuple[Planned, Limits]] = {}
    report.too_large = [r for r in able if limits[2] is None and _threads_lacking(r)]
    able = [r for r in able if r not in report.too_large]
    for result in able:
        own = limits_again(result, *limits)
        cells_at_once(jobs, own.threads)  # before anything runs: cells of other threads run one group after the other
        plans[result.id] = (Planned.of(result), own)
        for plan in _fresh_plans(result, seeds):
            plans.setdefault(plan.cell.id, (plan, own))
    made = report.made
    try:
        run_cells(plans.values(), registry, settings, view, jobs=jobs, made=made)
    except KeyboardInterrupt:
        report.stopped = True
        for cell_id in [cell_id for cell_id, result in made.items() if result.status == "crashed"]:
            del made[cell_id]  # the signal may have reached the processes of cells, too
    report.no_data = [r for r in able if r.id in made and _lacks_data(made[r.id])]
    done = [
        r for r in able
        if r.id in made and not _lacks_data(made[r.id]) and all(p.cell.id in made for p in _fresh_plans(r, seeds))
    ]  # fmt: skip
    _look_at_failures([r for r in done if r.status != "ok"], report)
    done = [r for r in done if r.status == "ok"]
    for result in done:
        made_on = type_of(content.machines[result.machine])
        verdict = compare(result, made[result.id], made_on=made_on)
        report.remade.append((result, verdict))
        if not verdict.reproduced:
            report.doubts.append(f"cell {result.id} ({result.method_name}): {verdict.text}")
    if seeds:
        report.fresh = _judge(_fresh_tests(done, content, made, seeds, report))
        report.doubts += [_doubt(test) for test in report.fresh if test.doubt]
    return report


def _threads_lacking(result: CellResult) -> bool:
    """Whether a cell needs more threads than this machine has cores."""
    return limits_again(result).threads > len(usable_cores())


def _look_at_failures(results: Iterable[CellResult], report: Verification) -> None:
    for result in results:
        now = report.made[result.id]
        report.failures.append((result, now))
        if now.status == result.status:
            continue
        line = f"cell {result.id} ({result.method_name}): published as {result.status}, now {now.status}"
        faster = result.status == "timeout" and now.status == "ok"  # on a faster machine
        (report.notes if faster or {result.status, now.status} <= _STOPPED else report.doubts).append(line)


def _lacks_data(made: CellResult) -> bool:
    """Whether a cell ended before its method started because its data is not available."""
    return made.status == "failed" and not made.rows and made.reason.startswith(DataUnavailableError.__name__)


def _needs(result: CellResult, registry: Registry) -> list[tuple[str, Mapping[str, object]]]:
    return [
        (result.cell.method, registry.methods.entries),
        (result.cell.dataset, registry.datasets.entries),
        *((each.scheme, registry.schemes.entries) for each in result.cell.schemes),
    ]


def place_of(result: CellResult) -> str:
    """Return the setting of a cell in words: dataset, bag size, noise, and the backend if it is unusual."""
    setting = setting_of(result)
    noise = "" if setting.noise == "none" else f", noise {setting.noise_name}"
    backend = f", backend {result.cell.backend}" if result.cell.backend not in USUAL_BACKENDS else ""
    return setting_name(setting.dataset, setting.bag_size) + noise + backend


def _fresh_plans(result: CellResult, seeds: Iterable[int]) -> list[Planned]:
    """The setting of a cell on fresh seeds; none for a failure, which has no number to compare."""
    plan = Planned.of(result)
    seeds = seeds if result.status == "ok" else ()
    return [msgspec.structs.replace(plan, cell=msgspec.structs.replace(result.cell, seed=seed)) for seed in seeds]


def _fresh_tests(
    able: Iterable[CellResult],
    content: Content,
    made: Mapping[str, CellResult],
    seeds: Sequence[int],
    report: Verification,
) -> list[FreshTest]:
    tests: dict[tuple[str, ...], FreshTest] = {}
    for result in able:
        fresh = [made[plan.cell.id] for plan in _fresh_plans(result, seeds)]
        for failed in (f for f in fresh if f.status != "ok"):
            report.doubts.append(
                f"{result.method_name}, fresh seed {failed.cell.seed}: {failed.status}: {failed.reason}"
            )
        published = _same_setting(result, content)
        floor = _row_variance(published, content.replicates)
        where = place_of(result)
        for rule in result.selected:
            ours = [100 * v for r in published if (v := value_of(r, METRIC, rule)) is not None]
            theirs = {r.cell.seed: 100 * v for r in fresh if (v := value_of(r, METRIC, rule)) is not None}
            if ours and theirs:
                values = tuple(theirs.values())
                key = (result.method_name, where, rule, result.cell.backend)
                cells = (*(tests[key].cells if key in tests else ()), result.id)
                p = fresh_p(ours, values, floor)
                tests[key] = FreshTest(*key[:3], tuple(ours), values, p, seeds=tuple(theirs), cells=cells)
    return list(tests.values())


def _same_setting(result: CellResult, content: Content) -> list[CellResult]:
    """The published cells that differ from one in their seed only, by seed."""
    own = msgspec.structs.replace(result.cell, seed=0)
    found = [line.result for line in content.lines.values() if line.result.status == "ok"]
    same = [r for r in found if msgspec.structs.replace(r.cell, seed=0) == own]
    return sorted(same, key=lambda r: r.cell.seed)


def _row_variance(results: Iterable[CellResult], replicates: Mapping[str, Replicates]) -> float:
    """The mean variance of an AUROC (in percent) over resampled test rows; 0 if unknown."""
    found = []
    for result in results:
        kept = replicates.get(result.id)
        for rule in result.selected if kept is not None else ():
            values = kept.values(rule) if kept is not None else None
            if values is not None and np.isfinite(values).sum() > 1:
                found.append(1e4 * float(np.nanvar(values, ddof=1)))
    return math.fsum(found) / len(found) if found else 0.0


def fresh_p(published: Sequence[float], fresh: Sequence[float], floor: float = 0.0) -> float | None:
    """Return the p-value of equal means of published and fresh values; None if there is no variance."""
    n, k = len(published), len(fresh)
    a, b = math.fsum(published) / n, math.fsum(fresh) / k
    squares = math.fsum((x - a) ** 2 for x in published) + math.fsum((x - b) ** 2 for x in fresh)
    degrees = n + k - 2
    pooled = max(squares / degrees if degrees else 0.0, floor)
    if pooled == 0.0:
        return None if a != b and degrees < 2 else student_p(a - b, 0.0, max(1, degrees))
    return student_p(a - b, math.sqrt(pooled * (1 / n + 1 / k)), max(1, degrees))


def _judge(tests: list[FreshTest]) -> list[FreshTest]:
    corrected = holm({str(i): test.p for i, test in enumerate(tests)})
    judged = []
    for i, test in enumerate(tests):
        p = corrected[str(i)]
        judged.append(replace(test, p=p, doubt=p is not None and p <= LEVEL))
    return judged


def _doubt(test: FreshTest) -> str:
    a, b = (math.fsum(v) / len(v) for v in (test.published, test.fresh))
    return (
        f"{test.method} on {test.place}, rule {test.rule}: published {a:.2f}, on fresh seeds {b:.2f} "
        f"(p {test.p:.2g}, corrected)"
    )


def make_marks(report: Verification, machine: str, now: datetime | None = None) -> dict[str, Mark]:
    """Return the marks of a verification, by cell."""
    at = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    marks = {}
    for result, verdict in report.remade:
        marks[result.id] = Mark(
            id=result.id,
            numbers=digest_of_numbers(result),
            at=at,
            outcome="equal" if verdict.equal else "close" if verdict.reproduced else "differs",
            code=dict(report.made[result.id].code),
            machine=machine,
            changed=list(verdict.changed),
            fresh=[_fresh_mark(test) for test in report.fresh if result.id in test.cells],
        )
    return marks


def _fresh_mark(test: FreshTest) -> FreshMark:
    ours, theirs = (round(sum(values) / len(values), 4) for values in (test.published, test.fresh))
    p = None if test.p is None else float(f"{test.p:.4g}")
    return FreshMark(rule=test.rule, seeds=list(test.seeds), published=ours, fresh=theirs, p=p, agrees=not test.doubt)
