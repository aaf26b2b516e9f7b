"""The results of a request, for a notebook: a pandas table of cells, and the tables and curves made from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from llpbench.contracts.errors import UsageError
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.experiment.plan import Planned
from llpbench.experiment.privacy import epsilon_of
from llpbench.plugins.registry import Registry, load_registry
from llpbench.report.render import choose, make_tables, render, table_rows
from llpbench.report.tables import Table
from llpbench.results.store import Store

if TYPE_CHECKING:
    import pandas as pd


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
        """What ``plot`` draws: mean and standard deviation of each method in each setting, as numbers."""
        import pandas as pd

        wanted = choose(self.registry, self.results, metric or self.metric, rule)
        columns = ["dataset", "method", "oracle", "noise", "epsilon", "bag_size", "rule", "metric", "mean", "sd"]
        columns += ["seeds"]
        rows = table_rows(self.planned, self.results, wanted)
        return pd.DataFrame([{name: getattr(row, name) for name in columns} for row in rows], columns=columns)

    def plot(self, metric: str = "", rule: str = DEFAULT_RULE, *, ax: Any = None) -> Any:
        """Draw means against bag size, one line for each method, with matplotlib; returns the axes.

        Several datasets or noise levels are drawn one beside the other; the bound is a dotted line.
        """
        try:
            from matplotlib import pyplot as plt
        except ImportError:
            raise UsageError("plot() needs matplotlib: pip install 'llpbench[plot]'; curve() has the numbers") from None
        wanted = choose(self.registry, self.results, metric or self.metric, rule)
        curve = self.curve(metric, rule).dropna(subset="mean")
        panels = list(curve.groupby(["dataset", "noise"], sort=False))
        if ax is None:
            width = max(1, len(panels))
            _, ax = plt.subplots(1, width, figsize=(5.5 * width, 4), squeeze=False, sharey=True, layout="constrained")
            ax = ax[0]
        for axis, ((dataset, noise), panel) in zip(ax if len(panels) > 1 else [_first(ax)], panels, strict=False):
            for (method, oracle), line in panel.groupby(["method", "oracle"], sort=False):
                style = {"linestyle": ":", "color": "gray"} if oracle else {"marker": "o", "capsize": 2}
                sizes = line["bag_size"].clip(lower=1)  # bags that size themselves have no place on a logarithmic axis
                axis.errorbar(sizes, line["mean"], yerr=line["sd"].fillna(0.0), label=method, **style)
            axis.set_xscale("log", base=2)
            title = f"{dataset}" if noise == "none" else f"{dataset}, noise {noise}"
            axis.set(xlabel="bag size", ylabel=wanted.metric.title, title=title)
            axis.legend(title=f"rule: {rule}")
        return ax

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
    costs = {name: getattr(result, name) for name in ("fit_seconds", "wall_seconds", "peak_memory_mb")}
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


def _first(ax: Any) -> Any:
    return ax[0] if hasattr(ax, "__len__") else ax
