"""From results of single cells to means over seeds. A missing cell stays a status, never a number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from llpbench.cells import RULES, CellResult
from llpbench.store import Planned

COST_METRICS = ("fit_seconds", "peak_memory_mb")


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


def aggregate(
    planned: Iterable[Planned],
    results: Iterable[CellResult],
    metrics: Iterable[MetricStyle],
    rules: Iterable[str] = RULES,
) -> list[Row]:
    """Rows for every setting of a plan, metric and rule; a bound is repeated for every bag size it bounds."""
    by_id = {result.id: result for result in results}
    groups: dict[tuple[str, str, int, str, bool], list[CellResult | None]] = {}
    for plan in planned:
        cell = plan.cell
        key = (plan.dataset_label, plan.label, cell.bag_size, cell.noise, plan.oracle)
        groups.setdefault(key, []).append(by_id.get(cell.id))
    settings: dict[str, dict[tuple[int, str], None]] = {}
    for dataset, _, bag_size, noise, oracle in groups:
        if not oracle:
            settings.setdefault(dataset, {})[(bag_size, noise)] = None
    rows: list[Row] = []
    for (dataset, method, bag_size, noise, oracle), cells in groups.items():
        bounded = list(settings.get(dataset, ())) if oracle else []
        for size, level in bounded or [(bag_size, noise)]:
            for metric in metrics:
                rows.extend(_row(dataset, method, size, level, oracle, cells, metric, rule) for rule in rules)
    return rows


def _row(
    dataset: str,
    method: str,
    bag_size: int,
    noise: str,
    oracle: bool,
    cells: list[CellResult | None],
    metric: MetricStyle,
    rule: str,
) -> Row:
    values = [
        v * metric.scale for cell in cells if cell is not None and (v := value_of(cell, metric.name, rule)) is not None
    ]
    mean, sd = mean_sd(values)
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
