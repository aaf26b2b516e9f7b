"""What bags are worth in labelled rows: the number of labels with which a bound reaches the value of a method.

A bound with a parameter ``labels`` (``few-labels``) is run with several numbers of labelled rows. Its means over seeds
are a curve, interpolated linearly in the logarithm of the number of labels. Read at the number of training bags, the
curve says what as many labelled rows would give; read backwards at the value of a method, it says how many labelled
rows the method's bags are worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.specs import LABELS
from llpbench.plugins.options import format_options
from llpbench.results.table import Group, Row


@dataclass(frozen=True)
class LabelCurve:
    """The value of a bound by the number of labelled rows.

    Attributes:
        labels: rising numbers of labelled rows.
        values: the value at each; never worse for more labels.
        higher_is_better: whether higher values are better.
    """

    labels: tuple[float, ...]
    values: tuple[float, ...]
    higher_is_better: bool = True

    @classmethod
    def of(cls, points: Mapping[float, float], *, higher_is_better: bool = True) -> LabelCurve:
        """The curve nearest to measured points (least squares) that is never worse for more labels."""
        labels = sorted(points)
        sign = 1.0 if higher_is_better else -1.0
        rising = isotonic(np.array([sign * points[m] for m in labels]))
        return cls(tuple(map(float, labels)), tuple(float(sign * v) for v in rising), higher_is_better)

    def at(self, labels: float) -> float | None:
        """The value with that many labelled rows; None outside the measured numbers."""
        if not self.labels or not self.labels[0] <= labels <= self.labels[-1]:
            return None
        return float(np.interp(math.log(labels), np.log(self.labels), self.values))

    def worth(self, value: float) -> float:
        """The smallest number of labelled rows that reaches the value.

        0 if fewer than the smallest measured number reach it, and infinity if the largest does not.
        """
        sign = 1.0 if self.higher_is_better else -1.0
        values, logs = sign * np.array(self.values), np.log(self.labels)
        place = int(np.searchsorted(values, sign * value, side="left"))
        if place == len(values):
            return math.inf
        if place == 0:
            return 0.0 if sign * value < values[0] else self.labels[0]
        share = (sign * value - values[place - 1]) / (values[place] - values[place - 1])
        return float(np.exp(logs[place - 1] + share * (logs[place] - logs[place - 1])))

    def worth_words(self, value: float) -> str:
        """The worth for a table: ``1,240``, ``< 8`` or ``> 8,192``."""
        rows = self.worth(value)
        if rows == 0.0:
            return f"< {self.labels[0]:,.0f}"
        return f"> {self.labels[-1]:,.0f}" if math.isinf(rows) else f"{rows:,.0f}"


def isotonic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rising sequence nearest to ``values`` (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        mean, size = float(value), 1
        while blocks and blocks[-1][0] > mean:
            other, more = blocks.pop()
            mean, size = (mean * size + other * more) / (size + more), size + more
        blocks.append((mean, size))
    return np.concatenate([np.zeros(0), *(np.full(size, mean) for mean, size in blocks)])


def is_label_bound(of: Row | Group) -> bool:
    """Whether a row or group belongs to a bound with a number of labelled rows."""
    return of.oracle and isinstance(of.params.get(LABELS), int)


def label_curves(rows: Iterable[Row], *, higher_is_better: bool = True) -> dict[str, LabelCurve]:
    """The curves of one setting, metric and rule, by the bound's name without the number of labels."""
    points: dict[str, dict[float, float]] = {}
    for row in rows:
        if is_label_bound(row) and row.mean is not None:
            points.setdefault(_family(row), {})[float(row.params[LABELS] or 0)] = row.mean
    return {name: LabelCurve.of(found, higher_is_better=higher_is_better) for name, found in points.items()}


def at_as_many_labels(rows: Iterable[Row], *, higher_is_better: bool = True) -> dict[str, dict[str, str]]:
    """The printed values, by bound and bags, of bounds with as many labelled rows as there are training bags.

    ``rows`` are those of one dataset, noise level, metric and rule.
    """
    settings: dict[str, list[Row]] = {}
    for row in rows:
        settings.setdefault(row.bags_name, []).append(row)
    values: dict[str, dict[str, str]] = {}
    for name, found in settings.items():
        bags = bags_of(found)
        for bound, curve in label_curves(found, higher_is_better=higher_is_better).items():
            value = None if bags is None else curve.at(bags)
            if value is not None:
                values.setdefault(f"{bound}, as many labels as bags", {})[name] = f"{value:.{found[0].digits}f}"
    return values


def _family(row: Row) -> str:
    """The name of a bound with its other options."""
    return format_options(row.base_method, {name: text for name, text in row.options.items() if name != LABELS})


def bags_of(rows: Iterable[Row]) -> int | None:
    """The number of training bags of a setting, which is that of the first row with a bag card; None without one."""
    return next((row.card.bags for row in rows if row.card is not None), None)
