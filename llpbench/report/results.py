"""The results of a request, for a notebook: a pandas table of cells, and the tables and curves made from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.experiment.plan import Planned
from llpbench.experiment.privacy import epsilon_of
from llpbench.plugins.registry import Registry, load_registry
from llpbench.report import charts
from llpbench.report.filter import Filter
from llpbench.report.render import choose, make_tables, render, table_rows
from llpbench.report.tables import Table
from llpbench.results.store import Store
from llpbench.results.table import Row

if TYPE_CHECKING:
    import pandas as pd


KINDS = ("bags", "curves", "time", "noise")
"""Kinds of charts."""


class Results:
    """What became of the cells of a request.

    ``llpbench.run`` returns it; ``Results.of("results/NAME")`` reads a folder. ``cells`` has a row for each cell and
    selection rule, ``table()`` is the table a paper would print, ``curve()`` and ``plot()`` the means against bag size.

    Attributes:
        results: the results as they are kept, one for each cell that has one.
        metric: the metric that is shown where none is named.
    """

    def __init__(self, store: Store, planned: list[Planned], registry: Registry, metric: str = "auroc") -> None:
        self.store, self.planned, self.registry, self.metric = store, planned, registry, metric
        wanted = {plan.cell.id for plan in planned}
        self.results: list[CellResult] = [result for result in store.results() if result.id in wanted]

    @classmethod
    def of(cls, folder: str | Path, plugins: list[str | Path] | None = None) -> Results:
        """The results in a folder that ``run`` or ``llpbench run`` wrote."""
        store = Store(Path(folder))
        return cls(store, list(store.manifest().planned.values()), load_registry(map(Path, plugins or ())))

    def where(self, wanted: Filter) -> Results:
        """The results of the wanted methods and settings only."""
        planned = [plan for plan in self.planned if wanted.keeps(plan)]
        return Results(self.store, planned, self.registry, self.metric)

    @property
    def folder(self) -> Path:
        """The results folder."""
        return self.store.root

    @property
    def failed(self) -> int:
        """Cells that have no number though they should."""
        return sum(result.status in FAILURES for result in self.results)

    @property
    def cells(self) -> pd.DataFrame:
        """One row for each cell and selection rule, with its metrics as shares (0.89, not 89); status and reason.

        A cell that has not run yet, or has no number, has one row without a rule. Rules on request have none:
        ``table(rule=NAME)`` shows them.
        """
        import pandas as pd

        by_id = {result.id: result for result in self.results}
        hidden = self.registry.rules_on_request
        rows = (row for plan in self.planned for row in _cell_rows(plan, by_id.get(plan.cell.id)))
        return pd.DataFrame([row for row in rows if row["rule"] not in hidden])

    def table(self, metric: str = "", rule: str = DEFAULT_RULE, *, format: str = "") -> Any:  # noqa: A002 - as --format
        """Mean (sd) over seeds: methods down, bag sizes across, as ``llpbench table`` prints it.

        Args:
            metric: name of a metric; that of the request by default.
            rule: the selection rule, or ``"all"``.
            format: ``"markdown"``, ``"latex"``, ``"csv"`` or ``"json"`` for a text; a DataFrame of texts otherwise.
        """
        wanted = choose(self.registry, self.results, metric or self.metric, rule)
        if format:
            if format not in ("markdown", "latex", "csv", "json"):
                raise UsageError(f"unknown format {format!r}. Available: markdown, latex, csv, json.")
            return render(self.planned, self.results, wanted, format)
        import pandas as pd

        frames = [_frame(table) for table in make_tables(self.planned, self.results, wanted)]
        return pd.concat(frames) if frames else pd.DataFrame()

    def curve(self, metric: str = "", rule: str = DEFAULT_RULE) -> pd.DataFrame:
        """What ``plot`` draws: mean, standard deviation and seconds of a fit of each method in each setting."""
        import pandas as pd

        wanted = choose(self.registry, self.results, metric or self.metric, rule)
        columns = ["dataset", "method", "oracle", "noise", "epsilon", "bag_size", "rule", "metric", "mean", "sd"]
        columns += ["seeds"]
        rows = table_rows(self.planned, self.results, wanted)
        seconds = {result.id: result.fit_seconds for result in self.results if result.status == "ok"}
        facts = [{name: getattr(row, name) for name in columns} | _mean_seconds(row, seconds) for row in rows]
        return pd.DataFrame(facts, columns=[*columns, "seconds"])

    def history(self, rule: str = DEFAULT_RULE) -> pd.DataFrame:
        """The learning curves: for each cell and report its value on held-out data under a rule.

        ``selected`` marks the report that the rule selected, and ``stage`` names the stage of a fit with several.
        """
        import pandas as pd

        name = self.registry.rules[rule].name
        names = {plan.cell.id: plan for plan in self.planned}
        rows = [row for result in self.results for row in _history_rows(names[result.id], result, name)]
        columns = ["id", "dataset", "method", "oracle", "noise", "bag_size", "seed", "report", "value", "selected"]
        return pd.DataFrame(rows, columns=[*columns, "stage"])

    def plot(self, kind: str = "bags", metric: str = "", rule: str = DEFAULT_RULE, *, ax: Any = None) -> Any:
        """Draw a chart with matplotlib and return its axes, one for each panel.

        Args:
            kind: ``bags`` (means against bag size), ``curves`` (held-out values by report), ``time`` (means against
                seconds of a fit) or ``noise`` (means by noise level).
            metric: name of a metric; that of the request by default.
            rule: the selection rule.
            ax: axes to draw on, one for each panel.
        """
        if kind not in KINDS:
            raise UnknownNameError("kind of chart", kind, KINDS)
        charts.pyplot()
        if kind == "curves":
            spec = self.registry.rules[rule]
            return charts.learning_curves(self.history(rule), f"{spec.title or spec.name}, held-out data", ax)
        wanted = choose(self.registry, self.results, metric or self.metric, rule)
        frame = self.curve(metric, rule).dropna(subset="mean")
        draw = {"bags": charts.against_bags, "time": charts.against_time, "noise": charts.against_noise}[kind]
        return draw(frame, f"{wanted.metric.title}, rule {rule}", ax)

    def __repr__(self) -> str:
        fine = sum(result.status == "ok" for result in self.results)
        return f"Results({str(self.folder)!r}: {len(self.planned)} cells, {fine} with numbers, {self.failed} failed)"

    def _repr_html_(self) -> str:
        frame = self.table()
        return f"<p>{self!r}</p>{frame.to_html()}" if len(frame) else f"<p>{self!r}</p>"


def _cell_rows(plan: Planned, result: CellResult | None) -> list[dict[str, Any]]:
    """A cell as rows of fields, one for each rule that chose a report of it."""
    cell = plan.cell
    facts: dict[str, Any] = {
        "id": cell.id,
        "dataset": plan.dataset_name,
        "method": plan.method_name,
        "bag_size": cell.bag_size,
        "scheme": cell.scheme_name,
        "split": cell.split,
        "noise": cell.noise,
        "epsilon": epsilon_of(cell.noise),
        "seed": cell.seed,
        "backend": cell.backend,
        "status": "missing" if result is None else result.status,
        "reason": "" if result is None else result.reason,
    }
    if result is None:
        return [{**facts, "rule": None}]
    costs = {
        name: getattr(result, name) for name in ("fit_seconds", "report_seconds", "wall_seconds", "peak_memory_mb")
    }
    chosen = {rule: selected for rule, selected in result.selected.items() if result.status == "ok"}
    return [
        {**facts, "rule": rule, "report": selected.report, "value": selected.value, **selected.metrics, **costs}
        for rule, selected in chosen.items()
    ] or [{**facts, "rule": None, **costs}]


def _frame(table: Table) -> pd.DataFrame:
    """A printed table as a DataFrame of texts."""
    import pandas as pd

    about = " · ".join([*table.about, table.rule] if table.rule else table.about)
    index = pd.MultiIndex.from_tuples([(about, method) for method in table.methods], names=["", "method"])
    body = [[entry.text for entry in table.row(method)] for method in table.methods]
    return pd.DataFrame(body, index=index, columns=pd.Index(table.columns, name=table.what))


def _mean_seconds(row: Row, seconds: Mapping[str, float]) -> dict[str, float | None]:
    found = [seconds[cell_id] for cell_id in row.cell_ids if cell_id in seconds]
    return {"seconds": sum(found) / len(found) if found else None}


def _history_rows(plan: Planned, result: CellResult, rule: str) -> list[dict[str, Any]]:
    """The reports of a cell, with their value under a rule."""
    cell = plan.cell
    facts = {"id": cell.id, "dataset": plan.dataset_name, "method": plan.method_name, "oracle": plan.oracle}
    facts |= {"noise": cell.noise, "bag_size": cell.bag_size, "seed": cell.seed}
    chosen = result.selected.get(rule)
    starts = sorted((first, stage) for stage, first in result.stage_starts.items())
    return [
        {
            **facts,
            "report": number,
            "value": values[rule],
            "selected": chosen is not None and chosen.report == number,
            "stage": max((start for start in starts if start[0] <= number), default=(0, ""))[1],
        }
        for number, values in enumerate(result.history)
        if values.get(rule) is not None
    ]
