"""A request to tune: its settings, from a run file and from flags or a call; checked, and run to its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llpbench import __version__
from llpbench.contracts.errors import UsageError
from llpbench.contracts.view import View, notify
from llpbench.execution.driver import Driver
from llpbench.execution.jobs import fetch_data, make_executor
from llpbench.execution.settings import SEARCH, combine, open_run_file
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.setting import given_settings, refuse_unknown
from llpbench.plugins.registry import Registry
from llpbench.report.progress import QuietView, stopped
from llpbench.report.render import choose
from llpbench.report.run_log import RunLog
from llpbench.results.metric_style import MetricStyle
from llpbench.results.request import Request
from llpbench.results.store import Store
from llpbench.tuning.results import TuneResults, describe_trial
from llpbench.tuning.searches import judged_by, plan_searches
from llpbench.tuning.settings import IN_SEARCH, TuneSettings
from llpbench.tuning.study import Journal, import_optuna
from llpbench.tuning.trials import Trials, write_searches


@dataclass(frozen=True)
class TuneRequest:
    """Searches that were asked for: checked, nothing has run yet."""

    request: Request
    settings: TuneSettings
    registry: Registry
    store: Store
    metric: MetricStyle

    def run(self, view: View | None = None) -> TuneResults:
        """Run trials until every study has them; ``view`` shows cells, too."""
        settings, progress = self.settings, self.settings.progress
        planned = plan_cells(settings, self.registry)
        self.store.refuse_others(tuning=True)
        self.store.plan([], self.request, __version__)
        searches = plan_searches(settings, self.registry, Journal(self.store.root))
        executor = make_executor(settings, self.registry)
        log = RunLog(self.store.root, self.metric)
        log.start(self.request)
        shown = view or (QuietView() if isinstance(progress, bool) else progress)  # trials are shown, not their cells
        views = (log, shown)
        if not getattr(executor, "remote", False):  # other machines fetch their own
            fetch_data(planned, self.registry, settings, quiet=not progress)
        work = Trials(
            searches,
            self.store,
            self.registry,
            settings,
            on_trial=lambda search, trial: notify(views if progress else (log,), "note", describe_trial(search, trial)),
            request=self.request,
            version=__version__,
        )
        try:
            Driver(self.store, self.registry, executor, views).run(work)
        except KeyboardInterrupt:
            notify(views, "note", stopped("trials", self.store.root, self.request))
            raise
        finally:
            work.release()
            notify(views, "end")
        write_searches(self.store, searches)
        return TuneResults(self.store.root, searches)


def plan_tune(values: Mapping[str, Any], *, python: bool = False) -> TuneRequest:
    """Check a request to tune.

    Args:
        values: settings of ``TuneSettings`` by name; None for those that are not given. They win over the run file
            that ``config`` names. Its table ``search`` has settings of the search, the rest is the grid.
        python: whether it comes from a call.
    """
    import_optuna()
    given = given_settings(values, TuneSettings)
    request = Request(verb="tune", settings=given, python=python)
    file, given, registry = open_run_file(given)
    file |= _search_table(file.pop(SEARCH, {}), given.get("config"))
    file["predictions"] = False
    settings = combine(file, {**given, "progress": values.get("progress")}, TuneSettings)
    settings = judged_by(settings, registry)
    metric = choose(registry, (), settings.metric).metric
    return TuneRequest(request, settings, registry, Store(Path(settings.out)), metric)


def _search_table(search: Any, config: str | None) -> dict[str, Any]:
    """The table ``search`` of a run file, its keys checked."""
    if not isinstance(search, dict):
        raise UsageError(f"--config {config}: {SEARCH} must be a table ([{SEARCH}]), not {search!r}.")
    refuse_unknown(search, f"key in the table {SEARCH} of {config}:", IN_SEARCH)
    return search
