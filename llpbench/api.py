"""What a notebook calls, and what the command line calls: ``run``.

``llpbench.run(methods="bp,dllp", bags=[8, 512])`` does what ``llpbench run --methods bp,dllp --bags 8,512`` does: the
same cells, each in a process of its own, the same results folder, the same resuming. An interrupt keeps finished cells,
and the same call goes on with what is missing. (``fit`` and ``load`` are in the room ``estimator``.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from llpbench import __version__
from llpbench.contracts.errors import UsageError
from llpbench.execution.driver import View, run_jobs
from llpbench.execution.jobs import Context, Rerun, make_jobs, wanted_cells
from llpbench.execution.session import context_of, limits_of, make_executor
from llpbench.execution.settings import HowToRun, call_text, combine, find_run_file, plain_setting, read_run_file
from llpbench.execution.suite_run import AskedFor, plan_suite_run
from llpbench.experiment.grid import RunSpec, plan_cells, unused_sizes
from llpbench.experiment.plan import Planned
from llpbench.experiment.tuned import TunedParams
from llpbench.plugins.options import names_of
from llpbench.plugins.registry import Registry, load_registry
from llpbench.report.progress import fetch_data, fetch_files, make_view, stopped
from llpbench.report.render import choose
from llpbench.report.results import Results
from llpbench.report.run_log import LoggedView
from llpbench.results.metric_style import MetricStyle
from llpbench.results.store import Store

if TYPE_CHECKING:
    from llpbench.contracts.result import CellResult
Names = str | Sequence[str]
"""Several names: ``"bp,dllp"`` or ``["bp", "dllp"]``; options in brackets as on the command line."""
Numbers = int | float | Sequence[int] | Sequence[float]
Seeds = int | str | Sequence[int]
"""How many seeds (``3``), or which (``[3, 4]``, ``"0,1,2"``, ``"3-5"``)."""
Paths = str | Path | Sequence[str | Path]


def run(
    methods: Names | None = None,
    *,
    suite: str | Path | None = None,
    datasets: Names | None = None,
    bags: Numbers | None = None,
    seeds: Seeds | None = None,
    schemes: Names | None = None,
    noise: Names | None = None,
    epsilon: Numbers | None = None,
    delta: float | None = None,
    mechanism: str | None = None,
    split: str | None = None,
    feature_noise: Numbers | None = None,
    backend: str | None = None,
    folds: int | None = None,
    preset: str | None = None,
    params: str | Path | None = None,
    params_rule: str | None = None,
    config: str | Path | None = None,
    out: str | Path | None = None,
    metric: str | None = None,
    rerun: Rerun | None = None,
    exitfirst: bool | None = None,
    executor: str | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    timeout: float | str | None = None,
    memory: float | str | None = None,
    start: str | None = None,
    data: str | Path | None = None,
    offline: bool | None = None,
    predictions: bool | None = None,
    plugins: Paths = (),
    override: Names = (),
    progress: bool | View = True,
) -> Results:
    """Run every combination of methods, datasets, bag sizes, noise levels and seeds.

    Every argument means what the option of the same name means on the command line (``llpbench run --help``), and is
    left out where it is None. Finished cells are kept: the same call again runs only what is missing.

    Args:
        methods: e.g. ``"bp,dllp"`` or ``["dllp[lr=1e-3;1e-2]"]``.
        suite: a frozen grid by name, or a part of it: ``"llpbench-2026.1/random"``. Methods, datasets, schemes,
            bags, noise and seeds then take some of it; a method of your own runs wherever all methods of the suite do.
        datasets: e.g. ``"adult,marketing"``; adult by default.
        bags: bag sizes; 8, 32, 128, 512, 1024, 2048 by default.
        seeds: how many (3, seeds 0, 1, 2, by default), or which: ``[3, 4, 5]``, ``"0,1,2"``, ``"3-5"``.
        schemes: ways of forming bags.
        noise: privacy noise on counts: none, medium, high.
        epsilon: noise levels by their epsilon, beside those of noise; without noise, these alone.
        delta: of the privacy noise.
        mechanism: how noise is sized, gaussian or analytic.
        split: what goes to training, validation and test: rows (bags are formed within each part) or whole bags.
        feature_noise: standard deviations of noise on features.
        backend: of the networks: jax, tensorflow or torch.
        folds: fit so many more times, on folds over the bags: adds the rule ``bags-cv``.
        preset: named settings of the methods that have them.
        params: tuned parameters: the folder that ``tune`` wrote.
        params_rule: use those tuned by this rule.
        config: a TOML file with these settings, or the name of a built-in one; arguments win over it.
        out: results folder; ``results/NAME`` by default, the same for the same request.
        metric: what progress and tables show; AUROC by default, and every metric is computed all the same.
        rerun: which cells to run again: missing, failed, stale or all.
        exitfirst: stop at the first cell that fails.
        executor: where cells run, e.g. ``"dask[scheduler=tcp://host:8786]"``.
        jobs: cells at once.
        threads: threads of each cell.
        timeout: wall time a cell may take: seconds, or a text such as ``"30m"``.
        memory: resident memory a cell may hold: MiB, or a text such as ``"8GB"``.
        start: how processes start, fork or spawn.
        data: folder with the data files.
        offline: never ask the network for data.
        predictions: keep test scores of every cell.
        plugins: single-file plugins.
        override: names for which the plugin loaded last wins.
        progress: show progress (True), only warnings (False), or a ``View`` of your own.

    Returns:
        The results of this request, old and new: ``results.cells`` is a pandas table, ``results.table()`` the table a
        paper would print.

    Raises:
        UsageError: the request cannot be served; the message says what to change.
    """
    given = {name: plain_setting(value) for name, value in locals().items() if value is not None}
    command = call_text("run", given)
    for name in ("suite", "config", "plugins", "override", "progress"):
        given.pop(name, None)
    request = plan_run(given, config=config, suite=suite, plugins=paths_of(plugins), override=names_of(override))
    return request.run(progress, command)


@dataclass(frozen=True)
class RunRequest:
    """Cells that were asked for, a grid or a suite: checked and planned, nothing has run yet."""

    how: HowToRun
    registry: Registry
    context: Context
    planned: list[Planned]
    store: Store
    metric: MetricStyle
    notes: list[str]

    def run(self, progress: bool | View, command: str) -> Results:
        """Run what is missing; returns the results of the whole request, old and new.

        Args:
            progress: whether progress is shown, or who is told of cells as they start and end.
            command: what makes the same request again, for the manifest and for whoever interrupts.
        """
        self.store.refuse_others(tuning=False)
        shown = make_view(not progress, self.metric) if isinstance(progress, bool) else progress
        executor = make_executor(self.how, self.registry)
        self.store.plan(self.planned, command, __version__)
        view = LoggedView(shown, self.store.root, self.metric, command)
        for note in self.notes:
            view.note(f"note: {note}")
        where = self.context
        quiet = not _is_shown(view)
        fetch_data(self.planned, executor, self.registry, where.data, offline=where.offline, quiet=quiet)
        run_now, kept = self.wanted(view)
        jobs = make_jobs(run_now, self.store, self.registry, limits_of(self.how), self.context)
        view.begin(len(self.planned), len(kept))
        try:
            run_jobs(jobs, self.store, self.registry, executor, view, exitfirst=self.how.exitfirst)
        except KeyboardInterrupt:
            view.end()
            view.note(stopped("cells", self.store.root, command))
            raise
        finally:
            view.end()
        return Results(self.store, self.planned, self.registry, self.metric.name)

    def wanted(self, view: View) -> tuple[list[Planned], list[CellResult]]:
        """The cells that would run now, and the results that are kept; nothing is started or written."""
        return wanted_cells(self.planned, self.store, self.registry, self.how.rerun, view.warn, view.note)

    def debug(self, plan: Planned) -> CellResult:
        """Run one cell in this process, where a debugger reaches it; its result is not kept."""
        from llpbench.execution import worker

        folder = Path(self.context.data) if self.context.data else None
        fetch_files(self.registry.datasets[plan.cell.dataset], folder, offline=self.context.offline)
        with TemporaryDirectory(prefix="llpbench-debug-") as scratch:
            store = Store(Path(scratch))
            store.plan([plan], "llpbench run --debug", __version__)
            (job,) = make_jobs([plan], store, self.registry, limits_of(self.how), self.context)
            return worker.run_job_here(job)


def plan_run(
    settings: Mapping[str, Any],
    *,
    config: str | Path | None = None,
    suite: str | Path | None = None,
    plugins: Sequence[Path] = (),
    override: Sequence[str] = (),
) -> RunRequest:
    """Check a request and plan its cells; ``settings``, those of ``run``, win over ``config`` and limit a suite."""
    registry = load_registry(plugins, override)
    if suite and config:
        raise UsageError("--suite and --config both say what to run; give one of them.")
    asked = (
        plan_suite_run(str(suite), settings, registry) if suite is not None else _plan_grid(config, settings, registry)
    )
    how = asked.how
    context = context_of(how.data, how.offline, plugins, tuple(override), predictions=how.predictions)
    store = Store(Path(how.out) if how.out else Path("results") / asked.name)
    metric = choose(registry, (), how.metric).metric
    return RunRequest(how, registry, context, asked.planned, store, metric, asked.notes)


def _plan_grid(config: str | Path | None, settings: Mapping[str, Any], registry: Registry) -> AskedFor:
    spec, how = combine(read_run_file(find_run_file(str(config), registry)) if config else {}, settings)
    tuned = _tuned_params(spec)
    planned = plan_cells(spec, registry, tuned)
    return AskedFor(how, planned, spec.name, [*_tuning_notes(tuned), *unused_sizes(spec, planned)])


def _tuned_params(spec: RunSpec) -> TunedParams | None:
    if not spec.params:
        return None
    return TunedParams(Path(spec.params), spec.params_rule)


def _tuning_notes(tuned: TunedParams | None) -> list[str]:
    """Who is not tuned, and whose test rows had a part in the tuning."""
    if tuned is None:
        return []
    notes = [f"{tuned.path} has nothing for {method}: it runs as it is" for method in tuned.untuned]
    for seed, seeds in tuned.overlapping.items():
        given = ", ".join(map(str, seeds))
        notes.append(
            f"seed {seed} runs with parameters tuned on seed {given}; where each seed draws its own split, some "
            "of its test rows were training or validation rows there (llpbench tune --per-seed avoids it)"
        )
    return notes


def _is_shown(view: View) -> bool:
    """Whether a view shows progress (and not warnings alone)."""
    return bool(getattr(view, "shows_progress", True))


def paths_of(given: Paths) -> list[Path]:
    """One path or several, as a list."""
    return [Path(given)] if isinstance(given, str | Path) else [Path(path) for path in given]
