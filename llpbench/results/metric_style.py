"""How each metric is printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llpbench.contracts.specs import MetricSpec

TEST_ROWS = "test rows"
TEST_BAGS = "test bags"


@dataclass(frozen=True)
class MetricStyle:
    """How a metric is printed: its title, whether higher is better, and whether it is printed in percent.

    A ``cost`` (seconds, memory) does not depend on the selection rule.
    """

    name: str
    higher_is_better: bool = True
    percent: bool = True
    words: str = ""
    cost: bool = False
    measured_on: str = TEST_ROWS

    @property
    def scale(self) -> float:
        """The factor of values in tables."""
        return 100.0 if self.percent else 1.0

    @property
    def digits(self) -> int:
        """Printed decimals: three for values that are neither percentages nor costs."""
        return 2 if self.percent or self.cost else 3

    @property
    def unit(self) -> str:
        """``%`` or empty."""
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
"""What the harness measures besides registered metrics: the error of the proportions of held-out bags, and costs."""

COSTS = frozenset(style.name for style in OWN_METRICS if style.cost)


def style_of(spec: MetricSpec) -> MetricStyle:
    """How a registered metric is printed."""
    where = TEST_BAGS if spec.needs == "bag_shares" else TEST_ROWS
    return MetricStyle(spec.name, spec.higher_is_better, spec.percent, spec.title, measured_on=where)


def known_styles(specs: Iterable[MetricSpec]) -> dict[str, MetricStyle]:
    """All metrics that a table can show, by name: registered ones, then those of the harness."""
    return {style.name: style for style in (*map(style_of, specs), *OWN_METRICS)}
