"""``llpbench.run``, and the request behind it that the command line uses, too.

``llpbench.run(methods="bp,dllp", bags=[8, 512])`` does what ``llpbench run --methods bp,dllp --bags 8,512`` does: the
same cells, each in a process of its own, the same results folder, the same resuming. An interrupt keeps finished cells,
and repeating the call runs the missing cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from llpbench import __version__
from llpbench.contracts.errors import UsageError
from llpbench.contracts.view import View, notify
from llpbench.execution.driver import run_jobs
from llpbench.execution.jobs import fetch_data, make_executor, make_jobs, wanted_cells
from llpbench.execution.settings import combine, open_run_file
from llpbench.execution.suite_run import AskedFor, plan_suite_run
from llpbench.experiment.grid import plan_cells, unused_sizes
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import given_settings, takes
from llpbench.experiment.tuned import TunedParams
from llpbench.plugins.from_objects import name_objects
from llpbench.plugins.registry import Registry
from llpbench.report.progress import make_view, stopped
from llpbench.report.render import choose
from llpbench.report.results import Results
from llpbench.report.run_log import RunLog
from llpbench.results.metric_style import MetricStyle
from llpbench.results.provenance import Provenance
from llpbench.results.request import Request
from llpbench.results.store import Store

if TYPE_CHECKING:
    from llpbench.contracts.result import CellResult


@takes(RunSettings)
def run(methods: object = None, **settings: Any) -> Results:
    """Run every combination of methods, datasets, bag sizes, noise levels and seeds.

    Every argument means what the option of the same name means on the command line (``llpbench run --help``). Lists may
    be given as lists or as texts with commas. Finished cells are kept: the same call again runs only what is missing.
    Methods may also be classes, and datasets pandas tables or functions ``load(files, *, seed)``, also of a notebook.

    Returns:
        The results of this request, old and new: ``results.cells`` is a pandas table, ``results.table()`` the table a
        paper would print.

    Raises:
        UsageError: the request cannot be served; the message says what to change.
    """
    return plan_run(name_objects({"methods": methods, **settings}), python=True).run()


@dataclass(frozen=True)
class RunRequest:
    """Cells that were asked for, a grid or a suite: checked and planned, nothing has run yet."""

    request: Request
    settings: RunSettings
    registry: Registry
    planned: list[Planned]
    store: Store
    metric: MetricStyle
    notes: list[str]

    def run(self, view: View | None = None) -> Results:
        """Run what is missing, shown by ``view``; returns the results of the whole request, old and new."""
        self.store.refuse_others(tuning=False)
        settings, progress = self.settings, self.settings.progress
        shown = view or (make_view(not progress, self.metric) if isinstance(progress, bool) else progress)
        executor = make_executor(settings, self.registry)
        self.store.plan(self.planned, self.request, __version__)
        log = RunLog(self.store.root, self.metric)
        log.start(self.request)
        views = (log, shown)
        for note in self.notes:
            notify(views, "note", f"note: {note}")
        if not getattr(executor, "remote", False):  # other machines fetch their own
            fetch_data(self.planned, self.registry, settings, quiet=not progress)
        run_now, kept = self.wanted(*views)
        jobs = make_jobs(run_now, self.store, self.registry, settings)
        notify(views, "begin", len(self.planned), len(kept))
        interrupted = False
        try:
            run_jobs(jobs, self.store, self.registry, executor, views, exitfirst=settings.exitfirst)
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            notify(views, "end")
            if interrupted:
                notify(views, "note", stopped("cells", self.store.root, self.request))
        return Results(self.store, self.planned, self.registry, self.metric.name)

    def wanted(self, *views: View) -> tuple[list[Planned], list[CellResult]]:
        """The cells that would run now, and the results that are kept; nothing is started or written."""
        return wanted_cells(
            self.planned,
            self.store,
            self.registry,
            self.settings.rerun,
            lambda message: notify(views, "warn", message),
            lambda message: notify(views, "note", message),
        )

    def debug(self, plan: Planned) -> CellResult:
        """Run one cell in this process, where a debugger reaches it; its result is not kept."""
        from llpbench.execution import worker

        fetch_data([plan], self.registry, self.settings, quiet=False)
        with TemporaryDirectory(prefix="llpbench-debug-") as scratch:
            store = Store(Path(scratch))
            store.plan([plan], "llpbench run --debug", __version__)
            (job,) = make_jobs([plan], store, self.registry, self.settings)
            return worker.run_job_here(job)


def plan_run(values: Mapping[str, Any], *, python: bool = False) -> RunRequest:
    """Check a request and plan its cells.

    Args:
        values: settings of ``RunSettings`` by name; None for those that are not given.
        python: whether it comes from a call.
    """
    given = given_settings(values, RunSettings)
    request = Request(verb="run", settings=given, python=python)
    if "suite" in given and "config" in given:
        raise UsageError("--suite and --config both say what to run; give one of them.")
    file, given, registry = open_run_file(given)
    full = {**given, "progress": values.get("progress")}
    asked = plan_suite_run(full, registry) if "suite" in given else _plan_grid(file, full, registry)
    settings = asked.settings
    store = Store(Path(settings.out) if settings.out else Path("results") / asked.name)
    metric = choose(registry, (), settings.metric).metric
    return RunRequest(request, settings, registry, asked.planned, store, metric, asked.notes)


def _plan_grid(file: Mapping[str, Any], given: Mapping[str, Any], registry: Registry) -> AskedFor:
    settings = combine(file, given, RunSettings)
    tuned = TunedParams(Path(settings.params), settings.params_rule) if settings.params else None
    planned = plan_cells(settings, registry, tuned)
    _refuse_outdated(tuned, registry)
    return AskedFor(settings, planned, settings.name, [*_tuning_notes(tuned), *unused_sizes(settings, planned)])


def _refuse_outdated(tuned: TunedParams | None, registry: Registry) -> None:
    """Reject parameters of a search whose trials were computed by other code, as ``tune`` does."""
    provenance = Provenance(registry)
    for chosen in tuned.used.values() if tuned is not None else ():
        reason = provenance.outdated_search(chosen)
        if tuned is not None and reason:
            raise UsageError(
                f"{tuned.path} holds a study of {chosen.setting.cell.method} whose trials {reason}. Tune again, into "
                "another folder (llpbench tune --out)."
            )


def _tuning_notes(tuned: TunedParams | None) -> list[str]:
    """Which methods are not tuned, and for which seeds test rows may have been used in tuning."""
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
