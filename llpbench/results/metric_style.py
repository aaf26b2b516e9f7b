"""How a metric is printed. One entry for each metric: whatever shows numbers reads it here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llpbench.contracts.specs import MetricSpec

TEST_ROWS = "test rows"
TEST_BAGS = "test bags"


@dataclass(frozen=True)
class MetricStyle:
    """How a metric is printed: its title, which end wins, and whether it is a share that is printed in percent.

    ``cost`` marks what every result states by itself, under no selection rule: seconds and memory.
    """

    name: str
    higher_is_better: bool = True
    percent: bool = True
    words: str = ""
    cost: bool = False
    measured_on: str = TEST_ROWS

    @property
    def scale(self) -> float:
        """What values are multiplied by in tables."""
        return 100.0 if self.percent else 1.0

    @property
    def digits(self) -> int:
        """Decimals that are printed: three where values are neither percent nor costs but small numbers."""
        return 2 if self.percent or self.cost else 3

    @property
    def unit(self) -> str:
        """The sign after the title: ``%``, or nothing."""
        return "%" if self.percent else ""

    @property
    def title(self) -> str:
        """The metric in a heading, with its unit: ``AUROC %``."""
        return f"{self.words or self.name}{' %' if self.percent else ''}"


OWN_METRICS = (
    MetricStyle("bag_error", higher_is_better=False, words="bag error", measured_on="held-back bags"),
    MetricStyle("fit_seconds", higher_is_better=False, percent=False, words="seconds of a fit", cost=True),
    MetricStyle("tuning_seconds", higher_is_better=False, percent=False, words="seconds of the search", cost=True),
    MetricStyle("peak_memory_mb", higher_is_better=False, percent=False, words="peak memory, MB", cost=True),
)
"""What the harness measures itself beside registered metrics: the error of the proportions of held-back bags, costs."""

COSTS = frozenset(style.name for style in OWN_METRICS if style.cost)


def style_of(spec: MetricSpec) -> MetricStyle:
    """How a registered metric is printed."""
    where = TEST_BAGS if spec.needs == "bag_shares" else TEST_ROWS
    return MetricStyle(spec.name, spec.higher_is_better, spec.percent, spec.title, measured_on=where)


def known_styles(specs: Iterable[MetricSpec]) -> dict[str, MetricStyle]:
    """All that a table can show, by name: registered metrics, then what the harness measures itself."""
    return {style.name: style for style in (*map(style_of, specs), *OWN_METRICS)}
