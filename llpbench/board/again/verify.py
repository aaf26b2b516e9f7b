"""Whether a leaderboard is true: random cells are made again, and their settings are run on seeds nobody has seen.

Files can be forged consistently; a run cannot. A cell that is made again must come out as published (``rerun``). A
method that was fitted to the published seeds, or that has stored the answers of published splits, comes out as
published too, but not on *fresh* seeds, whose splits nobody could prepare for. (Code that loads a public dataset with
its labels by itself does well on any seed: for that there is review.) For each drawn setting the published values and
the fresh ones are compared by Student's two-sample test:

    t = (mean(published) - mean(fresh)) / sqrt(v * (1 / n + 1 / k)),

with ``v`` the pooled variance over seeds, but at least the variance of an AUROC over resampled test rows (seeds may
agree by luck). There is doubt when the corrected (Holm) p-value of a setting is at most ``LEVEL``.

A published failure is made again, too, and must fail the same way: nobody invents failures of a rival. Of a cell with
tuned parameters the best trial of its search and one other are made again, and must have the value that chose.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from llpbench.board.again.beside import TrialAgain, TrialPlan, failure_again, too_fast, trials_of
from llpbench.board.again.rerun import (
    TOLERANCE,
    Verdict,
    compare,
    limits_again,
    run_cells,
    this_type,
    type_of,
)
from llpbench.board.content.bootstrap import Replicates
from llpbench.board.content.folder import Content
from llpbench.board.maths.statistics import holm, student_p
from llpbench.contracts.cell import USUAL_BACKENDS, setting_name
from llpbench.contracts.errors import DataUnavailableError, StoreError
from llpbench.contracts.job import Job
from llpbench.contracts.result import CellResult
from llpbench.execution.driver import View
from llpbench.execution.jobs import Context, Limits
from llpbench.execution.local import cells_at_once
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry
from llpbench.results.bootstrap import METRIC
from llpbench.results.table import setting_of, value_of
from llpbench.system.machine import usable_cores

LEVEL = 0.01
_FRESH = range(10_000, 2**31 - 1)  # far from every seed that anybody publishes


@dataclass(frozen=True)
class FreshTest:
    """Published values of a setting against those of fresh seeds, in percent.

    ``p`` is the p-value of equal means; None when there is nothing to judge it by. ``seeds`` are the fresh ones with a
    number, ``cells`` the drawn cells of the setting.
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
    """What came out. ``doubts`` are the sentences that make it fail; ``made`` are the results that were made, by id.

    ``stopped`` says that it was interrupted: then it is of the cells that were done. ``no_data`` are cells whose data
    cannot be had here, ``too_large`` those that need more threads than there are cores here: nothing is said of them.
    ``failures`` are published failures with what came out this time, ``trials`` are trials of searches that were made
    again. ``notes`` are for the reader and no doubts.
    """

    remade: list[tuple[CellResult, Verdict]] = field(default_factory=list)
    fresh: list[FreshTest] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    made: dict[str, CellResult] = field(default_factory=dict)
    stopped: bool = False
    no_data: list[CellResult] = field(default_factory=list)
    too_large: list[CellResult] = field(default_factory=list)
    failures: list[tuple[CellResult, CellResult]] = field(default_factory=list)
    trials: list[TrialAgain] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def looked_at(self) -> int:
        """How many of the drawn cells were made again, those without a number among them."""
        return len(self.remade) + len(self.failures)


class _Keeping:
    """Passes all on to another view, and keeps what was made: an interrupt leaves nothing else of it."""

    def __init__(self, view: View) -> None:
        self.view, self.made = view, dict[str, CellResult]()

    def begin(self, total: int, kept: int) -> None:
        """Pass it on."""
        self.view.begin(total, kept)

    def started(self, job: Job) -> None:
        """Pass it on."""
        self.view.started(job)

    def finished(self, result: CellResult) -> None:
        """Keep the result."""
        self.made[result.id] = result
        self.view.finished(result)

    def warn(self, message: str) -> None:
        """Pass it on."""
        self.view.warn(message)

    def note(self, message: str) -> None:
        """Pass it on."""
        self.view.note(message)

    def end(self) -> None:
        """Pass it on."""
        self.view.end()


def candidates(content: Content, known: Content | None = None) -> list[CellResult]:
    """Cells that can be made again, in the order of their ids; with ``known``, those that it does not hold as they are.

    What was handed in as predictions only cannot: nobody here has the code. A cell without a number can: it must fail
    again.
    """
    before = {} if known is None else known.lines
    return [
        line.result
        for cell_id, line in sorted(content.lines.items())
        if not line.result.predictions_only and (cell_id not in before or before[cell_id].digest != line.digest)
    ]


def draw(cells: Sequence[CellResult], number: int, seed: int) -> list[CellResult]:
    """Cells drawn at random, of as many methods as there are: first one of each, in random order.

    Of a method that has numbers and failures on a dataset, one of each kind is first.
    """
    if not cells:
        raise StoreError("there is no cell to verify: none is published that can be made again.")
    rng = random.Random(seed)
    shuffled = rng.sample(list(cells), len(cells))
    first: dict[tuple[str, str, bool], CellResult] = {}
    for cell in shuffled:
        first.setdefault((cell.cell.method, cell.cell.dataset, cell.status == "ok"), cell)
    chosen = list(first.values())
    chosen += [cell for cell in shuffled if all(cell is not c for c in chosen)]
    return chosen[:number]


def fresh_seeds(number: int, seed: int, taken: Iterable[int]) -> list[int]:
    """Seeds that nobody has published, the same for the same draw."""
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
    context: Context,
    view: View,
    *,
    seeds: Sequence[int] = (),
    limits: tuple[float | None, float | None, int | None] = (None, None, None),
    jobs: int = 1,
    draw: int = 0,
) -> Verification:
    """Make drawn cells again, run their settings on fresh seeds, and compare.

    An interrupt ends the running, not the report: it is of the cells that were made with all of their fresh seeds.

    Args:
        drawn: published cells.
        content: the leaderboard they are of.
        registry: what is installed; what is not is a doubt.
        context: where cells find data.
        view: told of cells as they end.
        seeds: the fresh seeds.
        limits: timeout, memory and threads where these are to be others than those of the cells.
        jobs: how many cells run at once; 0 for as many as there are cores for.
        draw: seed of the draw, which says which trials of a search are made again.

    Raises:
        UsageError: there are not as many cores as ``jobs`` cells need.
    """
    report = Verification()
    able = []
    for result in drawn:
        missing = [n for n, shelf in _needs(result, registry) if n not in shelf]
        if missing:
            report.doubts.append(f"cell {result.id}: {', '.join(missing)} is not installed, so it cannot be made again")
        else:
            able.append(result)
    plans: dict[str, tuple[Planned, Limits]] = {}
    report.too_large = [r for r in able if limits[2] is None and _threads_lacking(r)]
    able = [r for r in able if all(r is not large for large in report.too_large)]
    trials: dict[str, list[TrialPlan]] = {}
    for result in able:
        own = limits_again(result, *limits)
        cells_at_once(jobs, own.threads)  # before anything runs: cells of other threads run one group after the other
        plans[result.id] = (Planned.of(result), own)
        trials[result.id] = trials_of(result, content, registry, draw)
        for plan in (*_fresh_plans(result, seeds), *(p for trial in trials[result.id] for p in trial.plans)):
            plans.setdefault(plan.cell.id, (plan, own))
    keeping = _Keeping(view)
    try:
        made = run_cells(plans.values(), registry, context, keeping, jobs=jobs)
    except KeyboardInterrupt:
        report.stopped = True  # whoever ended this may have ended processes of cells, too
        made = {cell_id: result for cell_id, result in keeping.made.items() if result.status != "crashed"}
    report.made = made
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
        if made_on == this_type():
            report.notes += too_fast(result, made[result.id])
        _look_at_trials(result, trials[result.id], report)
    if seeds:
        report.fresh = _judge(_fresh_tests(done, content, made, seeds, report))
        report.doubts += [_doubt(test) for test in report.fresh if test.doubt]
    return report


def _threads_lacking(result: CellResult) -> bool:
    """Whether a cell was made with more threads than this machine has cores for (or with none: no run says that)."""
    return not 1 <= limits_again(result).threads <= len(usable_cores())


def _look_at_failures(results: Iterable[CellResult], report: Verification) -> None:
    for result in results:
        now = report.made[result.id]
        report.failures.append((result, now))
        told, doubted = failure_again(result, now)
        if told:
            line = f"cell {result.id} ({result.method_name}): {told}"
            (report.doubts if doubted else report.notes).append(line)


def _look_at_trials(result: CellResult, trials: Iterable[TrialPlan], report: Verification) -> None:
    for trial in trials:
        results = [report.made[plan.cell.id] for plan in trial.plans if plan.cell.id in report.made]
        if len(results) < len(trial.plans):
            continue  # stopped before
        chosen = [r.selected.get(trial.rule) for r in results if r.status == "ok"]
        values = [one.value for one in chosen if one is not None and one.value is not None]
        now = math.fsum(values) / len(values) if len(values) == len(results) else None
        again = TrialAgain(result.id, trial.number, trial.value, now)
        report.trials.append(again)
        if not again.agrees:
            text = "no value" if now is None else f"{now:.6g}"
            report.doubts.append(
                f"cell {result.id} ({result.method_name}): trial {trial.number} of its search is published with "
                f"{trial.value:.6g}, this time it has {text} (the tolerance is {TOLERANCE:g})"
            )


def _lacks_data(made: CellResult) -> bool:
    """Whether a cell ended before its method began, for want of data: rows are counted when there is data."""
    return made.status == "failed" and not made.rows and made.reason.startswith(DataUnavailableError.__name__)


def _needs(result: CellResult, registry: Registry) -> list[tuple[str, Mapping[str, object]]]:
    return [
        (result.cell.method, registry.methods.entries),
        (result.cell.dataset, registry.datasets.entries),
        (result.cell.scheme, registry.schemes.entries),
    ]


def place_of(result: CellResult) -> str:
    """Where a cell stands, but for its method and seed: dataset, bag size, noise, and the backend if it is unusual."""
    setting = setting_of(result)
    noise = "" if setting.noise == "none" else f", noise {setting.noise_name}"
    backend = f", backend {result.cell.backend}" if result.cell.backend not in USUAL_BACKENDS else ""
    return setting_name(setting.dataset, setting.bag_size) + noise + backend


def _fresh_plans(result: CellResult, seeds: Iterable[int]) -> list[Planned]:
    """The setting of a cell on fresh seeds; nothing of a failure, which has no number to compare."""
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
    """The published cells that differ from one in their seed alone, by seed."""
    own = msgspec.structs.replace(result.cell, seed=0)
    found = [line.result for line in content.lines.values() if line.result.status == "ok"]
    same = [r for r in found if msgspec.structs.replace(r.cell, seed=0) == own]
    return sorted(same, key=lambda r: r.cell.seed)


def _row_variance(results: Iterable[CellResult], replicates: Mapping[str, Replicates]) -> float:
    """The mean variance of an AUROC (in percent) over resampled test rows; 0 when it is not known."""
    found = []
    for result in results:
        kept = replicates.get(result.id)
        for rule in result.selected if kept is not None else ():
            values = kept.values(rule) if kept is not None else None
            if values is not None and np.isfinite(values).sum() > 1:
                found.append(1e4 * float(np.nanvar(values, ddof=1)))
    return math.fsum(found) / len(found) if found else 0.0


def fresh_p(published: Sequence[float], fresh: Sequence[float], floor: float = 0.0) -> float | None:
    """The p-value of equal means of published and fresh values (see the module); None when there is no variance."""
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
