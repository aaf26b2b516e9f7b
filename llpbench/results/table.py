"""From results of single cells to means over seeds. A missing cell stays a status, never a number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from llpbench.contracts.cell import USUAL, Cell
from llpbench.contracts.result import RULES, CellResult
from llpbench.experiment.plan import Planned

COST_METRICS = ("fit_seconds", "tuning_seconds", "peak_memory_mb")
Setting = tuple[str, int, str]  # dataset as labelled, bag size, noise


@dataclass(frozen=True)
class MetricStyle:
    """How a metric is read: which end wins, and whether it is printed times one hundred."""

    name: str
    higher_is_better: bool = True
    percent: bool = True

    @property
    def scale(self) -> float:
        """What values are multiplied by in tables."""
        return 100.0 if self.percent else 1.0

    @property
    def title(self) -> str:
        """The metric in a heading."""
        return f"{self.name.upper() if self.name == 'auroc' else self.name}{' %' if self.percent else ''}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a table: a method on one setting, over its seeds, under one rule.

    Attributes:
        mean: mean over the seeds that have a number, in the table's unit (percent where the metric is a share).
        sd: sample standard deviation (n - 1); None for a single seed.
        seeds: number of seeds behind the mean.
        status: ``ok`` when all planned seeds are there, ``partial`` when some are, else what happened to them.
        reasons: why seeds have no number.
        epsilon: of the noise; None without noise (or where nobody said).
        paper: what a publication reports for this entry, in the same unit; ``paper_rule`` is how it selected.
    """

    dataset: str
    method: str
    bag_size: int
    noise: str
    rule: str
    metric: str
    mean: float | None
    sd: float | None
    seeds: int
    planned: int
    status: str
    unit: str
    oracle: bool = False
    values: list[float] = []
    reasons: list[str] = []
    epsilon: float | None = None
    paper: float | None = None
    paper_sd: float | None = None
    paper_rule: str = ""
    paper_source: str = ""


def aggregate(
    planned: Iterable[Planned],
    results: Iterable[CellResult],
    metrics: Iterable[MetricStyle],
    rules: Iterable[str] = RULES,
) -> list[Row]:
    """Rows for every setting of a plan, metric and rule; a bound is repeated for every setting it bounds.

    A folder may hold the same method on several engines, or the same noise level with several deltas: these are
    told apart, never averaged.
    """
    planned, metrics, rules = list(planned), list(metrics), list(rules)
    by_id = {result.id: result for result in results}
    name = method_names(planned)
    settings: dict[str, dict[Setting, None]] = {}
    groups: dict[tuple[Setting, str, bool], list[CellResult | None]] = {}
    data: dict[tuple[Setting, str, bool], str] = {}
    for plan in planned:
        setting = (plan.dataset_label, plan.cell.bag_size, noise_name(plan.cell))
        key = (setting, name[plan.label, plan.cell.backend], plan.oracle)
        groups.setdefault(key, []).append(by_id.get(plan.cell.id))
        data[key] = data_key(plan.cell)
        if not plan.oracle:
            settings.setdefault(data[key], {})[setting] = None
    rows: list[Row] = []
    for (setting, method, oracle), cells in groups.items():
        bounded = list(settings.get(data[setting, method, oracle], ())) if oracle else []
        for where in bounded or [setting]:
            for metric in metrics:
                rows.extend(_row(where, method, oracle, cells, metric, rule) for rule in rules)
    return rows


def method_names(planned: list[Planned]) -> dict[tuple[str, str], str]:
    """What to call a method on an engine: its label, with the engine where the plan has it on several."""
    engines: dict[str, dict[str, None]] = {}
    for plan in planned:
        engines.setdefault(plan.label, {})[plan.cell.backend] = None
    return {
        (label, engine): label if len(found) == 1 else f"{label} ({engine or 'no engine'})"
        for label, found in engines.items()
        for engine in found
    }


def noise_name(cell: Cell) -> str:
    """The noise level, with its mechanism and delta where these are not the usual ones."""
    if cell.noise == "none":
        return cell.noise
    unusual = [cell.mechanism] if cell.mechanism != USUAL.mechanism else []
    unusual += [f"delta {cell.delta:g}"] if cell.delta != USUAL.delta else []
    return ", ".join([cell.noise, *unusual])


def data_key(cell: Cell) -> str:
    """Rows of a dataset as a bound sees them, whatever bags and noise on counts are made of them."""
    return repr((cell.dataset, sorted(cell.dataset_options.items()), cell.feature_noise))


def _row(
    setting: Setting,
    method: str,
    oracle: bool,
    cells: list[CellResult | None],
    metric: MetricStyle,
    rule: str,
) -> Row:
    values = [
        v * metric.scale for cell in cells if cell is not None and (v := value_of(cell, metric.name, rule)) is not None
    ]
    mean, sd = mean_sd(values)
    dataset, bag_size, noise = setting
    return Row(
        dataset=dataset,
        method=method,
        bag_size=bag_size,
        noise=noise,
        rule=rule,
        metric=metric.name,
        mean=mean,
        sd=sd,
        seeds=len(values),
        planned=len(cells),
        status=_status(cells, len(values)),
        unit="%" if metric.percent else "",
        oracle=oracle,
        values=values,
        reasons=list(dict.fromkeys(cell.reason for cell in cells if cell is not None and cell.reason)),
    )


def value_of(result: CellResult, metric: str, rule: str) -> float | None:
    """The number a result holds for a metric under a rule; None when it has none."""
    if result.status != "ok":
        return None
    if metric in COST_METRICS:
        return float(getattr(result, metric))
    chosen = result.selected.get(rule)
    return None if chosen is None else chosen.metrics.get(metric)


def mean_sd(values: list[float]) -> tuple[float | None, float | None]:
    """Mean and sample standard deviation (n - 1); None where there are too few values."""
    if not values:
        return None, None
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1))


def _status(cells: list[CellResult | None], numbers: int) -> str:
    if numbers == len(cells):
        return "ok"
    if numbers:
        return "partial"
    words = Counter(
        "missing" if cell is None else "undefined" if cell.status == "ok" else cell.status for cell in cells
    )
    return words.most_common(1)[0][0]
