"""A model's report as a matplotlib figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llpbench.contracts.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from llpbench.owndata.report import Report

_MOST_COLUMNS = 15
_BINS = 20


def make_figure(report: Report) -> Figure:
    """Known proportions, predicted and known ones, and the columns, as far as the report has them."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plot needs matplotlib: pip install 'llpbench[plot]'.") from None
    if report.facts is None:
        raise UsageError("this model has no report: an older version of llpbench wrote its file.")
    panels = [_draw_calibration]
    if report.proportions is not None:
        panels.insert(0, _draw_proportions)
    if report.effects and report.is_better:
        panels.append(_draw_columns)
    figure = Figure(figsize=(4.2 * len(panels), 3.6), layout="constrained")
    for draw, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        draw(axes, report)
    return figure


def _draw_proportions(axes: Axes, report: Report) -> None:
    assert report.proportions is not None
    first = 1 if report.proportions.shape[1] == 2 else 0
    axes.hist(report.proportions[:, first:], bins=_BINS, label=report.classes[first:])
    axes.set(title="Known proportions", xlabel="proportion", ylabel="bags")
    axes.legend(title="class")


def _draw_calibration(axes: Axes, report: Report) -> None:
    assert report.facts is not None
    points = report.facts.points
    for label in sorted({point.label for point in points}):
        own = [point for point in points if point.label == label]
        sizes = [12.0 + 6.0 * point.bags for point in own]
        predicted, known = [point.predicted for point in own], [point.known for point in own]
        axes.scatter(predicted, known, s=sizes, alpha=0.65, label=report.classes[label])
    low = min(min(point.predicted, point.known) for point in points)
    axes.axline((low, low), slope=1.0, linestyle="--", color="grey", linewidth=1.0)
    axes.set(title="Held-out bags", xlabel="predicted proportion", ylabel="known proportion")
    axes.legend(title="class")


def _draw_columns(axes: Axes, report: Report) -> None:
    shown = (report.effects or ())[:_MOST_COLUMNS][::-1]
    axes.barh([e.column for e in shown], [e.loss for e in shown], xerr=[e.sd for e in shown])
    axes.set(title="Importance of columns", xlabel="loss per held-out bag in nats")
