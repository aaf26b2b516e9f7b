"""A request to tune: its settings, from a run file and from flags or a call; checked, and run to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from llpbench import __version__
from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.execution.driver import Driver, View
from llpbench.execution.jobs import Context
from llpbench.execution.session import context_of, limits_of, make_executor
from llpbench.execution.settings import SEARCH, HowToRun, combine, find_run_file, read_run_file
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.tuned import OUT, UNSTEERED
from llpbench.plugins.options import names_of
from llpbench.plugins.registry import Registry, load_registry
from llpbench.report.progress import QuietView, fetch_data, stopped
from llpbench.report.render import choose
from llpbench.report.run_log import LoggedView
from llpbench.results.metric_style import MetricStyle
from llpbench.results.store import Store
from llpbench.tuning.results import TuneResults, describe_trial
from llpbench.tuning.searches import TuneSpec, judged_by, plan_searches
from llpbench.tuning.study import STEERED, Journal, import_optuna
from llpbench.tuning.trials import Trials, write_searches

_OF_SEARCH = {"rule", *(field.name for field in fields(TuneSpec))} - {"run", "rules"}


@dataclass(frozen=True)
class TuneRequest:
    """Searches that were asked for: checked, nothing has run yet."""

    spec: TuneSpec
    how: HowToRun
    registry: Registry
    context: Context
    store: Store
    metric: MetricStyle

    def run(self, progress: bool | View, command: str) -> TuneResults:
        """Run trials until every study has them.

        Args:
            progress: whether a line is shown for each trial, or who is told of cells as they start and end.
            command: what makes the same request again, for the manifest and for whoever interrupts.
        """
        planned = plan_cells(self.spec.run, self.registry)
        self.store.refuse_others(tuning=True)
        self.store.plan([], command, __version__)
        searches = plan_searches(self.spec, self.registry, Journal(self.store.root))
        executor = make_executor(self.how, self.registry)
        shown = QuietView() if isinstance(progress, bool) else progress  # trials are shown, not their cells
        view = LoggedView(shown, self.store.root, self.metric, command)
        where = self.context
        fetch_data(planned, executor, self.registry, where.data, offline=where.offline, quiet=not progress)

        tell = view.note if progress else view.log.write
        work = Trials(
            searches,
            self.store,
            self.registry,
            limits_of(self.how),
            self.context,
            on_trial=lambda search, trial: tell(describe_trial(search, trial)),
            command=command,
            version=__version__,
        )
        try:
            Driver(self.store, self.registry, executor, view).run(work)
        except KeyboardInterrupt:
            view.note(stopped("trials", self.store.root, command))
            raise
        finally:
            work.release()
            view.end()
        write_searches(self.store.root, searches)
        return TuneResults(self.store.root, searches)


def plan_tune(
    settings: Mapping[str, Any],
    *,
    config: str | Path | None = None,
    plugins: Sequence[Path] = (),
    override: Sequence[str] = (),
) -> TuneRequest:
    """Check a request to tune.

    Args:
        settings: those of ``llpbench.tune``, None where they are not given; they win over the file.
        config: a run file or the name of one. Its table ``search`` has settings of the search, the rest is the grid.
        plugins: single-file plugins.
        override: names for which the plugin loaded last wins.
    """
    import_optuna()
    registry = load_registry(plugins, override)
    file = read_run_file(find_run_file(str(config), registry)) if config else {}
    of_file = _checked(file.pop(SEARCH, {}), config)
    given = {name: value for name, value in settings.items() if value is not None}
    search = {**of_file, **{name: value for name, value in given.items() if name in _OF_SEARCH}}
    run_spec, how = combine({"seeds": 1, **file}, {n: value for n, value in given.items() if n not in _OF_SEARCH})
    rule = search.pop("rule", "bags")
    names = names_of(rule)
    run_spec, rules = judged_by(run_spec, None if names == ["all"] else names, registry)
    search.setdefault("sampler", UNSTEERED if search.get("shared") else STEERED)
    spec = _convert({"run": run_spec, "rules": rules, **search})
    context = context_of(how.data, how.offline, plugins, tuple(override), predictions=False)
    metric = choose(registry, (), how.metric).metric
    return TuneRequest(spec, how, registry, context, Store(Path(how.out or OUT)), metric)


def _checked(search: Any, config: str | Path | None) -> dict[str, Any]:
    """The table ``search`` of a run file, its keys checked."""
    if not isinstance(search, dict):
        raise UsageError(f"--config {config}: {SEARCH} is a table ([{SEARCH}]), not {search!r}.")
    for key in search:
        if key not in _OF_SEARCH:
            raise UnknownNameError(f"key in the table {SEARCH} of {config}:", key, _OF_SEARCH)
    return dict(search)


def _convert(values: Mapping[str, Any]) -> TuneSpec:
    try:
        return msgspec.convert(values, TuneSpec)
    except msgspec.ValidationError as error:
        raise UsageError(f"{error} (in the settings of the search)") from None
