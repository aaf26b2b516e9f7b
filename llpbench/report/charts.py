"""Charts with matplotlib, which is the optional extra ``plot``. Each function takes plain data and returns the axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from llpbench.contracts.errors import StoreError, UsageError

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".pdf", ".svg", ".png")
_NAMED = 10
"""Lines of a panel that have a colour and a name; further ones are grey."""


@dataclass(frozen=True)
class Interval:
    """A line of a chart of intervals; ``style`` is ``better``, ``worse`` or empty."""

    name: str
    value: float
    low: float | None
    high: float | None
    style: str = ""


def pyplot() -> Any:
    """``matplotlib.pyplot``, or an error that names the extra."""
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise UsageError("charts need matplotlib: pip install 'llpbench[plot]'") from None
    return plt


def without_display() -> None:
    """Draw into files only, so that no display is needed."""
    pyplot()
    import matplotlib as mpl

    mpl.use("Agg")


def save(axes: Sequence[Any], path: Path) -> None:
    """Write the figure of axes, with the same bytes for the same chart."""
    if path.suffix not in FORMATS:
        raise UsageError(f"{path}: unknown format of a figure. Available: {', '.join(FORMATS)}.")
    import matplotlib as mpl

    figure = axes[0].figure
    undated = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix)
    try:
        with mpl.rc_context({"svg.hashsalt": "llpbench"}):
            figure.savefig(path, metadata=undated, dpi=150)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}.") from None
    pyplot().close(figure)


def against_bags(frame: pd.DataFrame, ylabel: str, ax: Any = None) -> list[Any]:
    """Means against bag size: a panel for each dataset and noise level, a line for each method, bounds dotted.

    ``frame`` has the columns of ``Results.curve``.
    """
    panels = _panels(frame, ["dataset", "noise"])
    axes, order = _axes(len(panels), ax), _order(frame)
    for axis, (place, panel) in zip(axes, panels, strict=False):
        for name, line, style in _lines(panel, order):
            sizes = line["bag_size"].clip(lower=1)  # bags that size themselves have no place on a logarithmic axis
            axis.errorbar(sizes, line["mean"], yerr=line["sd"].fillna(0.0), label=name, **_marked(style))
        _logarithmic(axis, panel["bag_size"].clip(lower=1), base=2)
        axis.set(xlabel="bag size", ylabel=ylabel, title=_title(*place))
        _legend(axis)
    return axes


def against_noise(frame: pd.DataFrame, ylabel: str, ax: Any = None) -> list[Any]:
    """Means by noise level, falling epsilon from left to right: a panel for each dataset and bag size."""
    panels = _panels(frame, ["dataset", "bag_size"])
    axes, order = _axes(len(panels), ax), _order(frame)
    for axis, ((dataset, size), panel) in zip(axes, panels, strict=False):
        epsilons = dict(zip(panel["noise"], panel["epsilon"].fillna(math.inf), strict=True))
        levels = sorted(epsilons, key=lambda name: (-epsilons[name], name))
        for name, line, style in _lines(panel, order):
            places = [levels.index(level) for level in line["noise"]]
            shown = sorted(zip(places, line["mean"], line["sd"].fillna(0.0), strict=True))
            at, means, sds = zip(*shown, strict=True)
            axis.errorbar(at, means, yerr=sds, label=name, **_marked(style))
        words = [level if math.isinf(epsilons[level]) else f"epsilon {epsilons[level]:g}" for level in levels]
        axis.set_xticks(range(len(levels)), words)
        axis.set(xlabel="noise on counts", ylabel=ylabel, title=_title(dataset, "none", size))
        _legend(axis)
    return axes


def against_time(frame: pd.DataFrame, ylabel: str, ax: Any = None) -> list[Any]:
    """Means against seconds of a fit: a panel for each dataset, bag size and noise level, a point for each method."""
    panels = _panels(frame[frame["seconds"].notna() & ~frame["oracle"]], ["dataset", "bag_size", "noise"])
    axes, order = _axes(len(panels), ax), _order(frame)
    for axis, ((dataset, size, noise), panel) in zip(axes, panels, strict=False):
        for name, line, style in _lines(panel, order):
            axis.errorbar(line["seconds"], line["mean"], yerr=line["sd"].fillna(0.0), label=name, **_marked(style))
        _logarithmic(axis, panel["seconds"], base=10)
        axis.set(xlabel="seconds of a fit", ylabel=ylabel, title=_title(dataset, noise, size))
        _legend(axis)
    return axes


def learning_curves(frame: pd.DataFrame, ylabel: str, ax: Any = None) -> list[Any]:
    """Held-out values by report: a panel for each setting, a line for each seed, one colour for each method.

    A dot marks the report that the rule selected. Lines are cut where a stage of a fit starts, at a tick. ``frame`` has
    the columns of ``Results.history``.
    """
    panels = _panels(frame, ["dataset", "bag_size", "noise"])
    axes, order = _axes(len(panels), ax, sharey=False), _order(frame)
    from matplotlib.ticker import MaxNLocator

    for axis, ((dataset, size, noise), panel) in zip(axes, panels, strict=False):
        for name, lines, style in _lines(panel, order):
            label = name
            for _, line in lines.groupby("id", sort=False):
                starts = line["stage"].ne(line["stage"].shift()).cumsum()
                for number, part in line.groupby(starts):
                    axis.plot(part["report"] + 1, part["value"], label=label, linewidth=1.2, **style)
                    label = "_"
                    if number > 1:
                        start = (part["report"].iloc[0] + 1, part["value"].iloc[0])
                        axis.plot(*start, "|", color=style["color"], markersize=12)
                        if name != "_":
                            axis.annotate(part["stage"].iloc[0], start, (2, 6), textcoords="offset points", fontsize=6)
            chosen = lines[lines["selected"]]
            axis.plot(chosen["report"] + 1, chosen["value"], "o", color=style["color"], markersize=5)
        axis.set(xlabel="report", ylabel=ylabel, title=_title(dataset, noise, size))
        axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        _legend(axis)
    return axes


def intervals(panels: Mapping[str, Sequence[Interval]], xlabel: str) -> list[Any]:
    """Values with intervals, a line for each name, one panel for each heading; what excludes zero is coloured."""
    plt = pyplot()
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    height = 0.9 + 0.24 * max(len(lines) for lines in panels.values())
    _, grid = plt.subplots(rows, columns, figsize=(4.4 * columns, height * rows), squeeze=False, layout="constrained")
    axes = list(grid.flat)
    colours = {"better": "#1a7f37", "worse": "#b42318"}
    for axis, (title, lines) in zip(axes, panels.items(), strict=False):
        axis.axvline(0.0, color="black", linewidth=0.8)
        for place, line in enumerate(lines):
            colour = colours.get(line.style, "#6e7781")
            if line.low is not None and line.high is not None:
                axis.plot([line.low, line.high], [place, place], color=colour, linewidth=1.6)
            axis.plot([line.value], [place], "o", color=colour, markersize=4)
        axis.set_yticks(range(len(lines)), [line.name for line in lines], fontsize=8)
        axis.invert_yaxis()
        axis.set_title(title, fontsize=9)
        axis.set_xlabel(xlabel, fontsize=8)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    return axes


def _panels(frame: pd.DataFrame, by: list[str]) -> list[tuple[Any, pd.DataFrame]]:
    panels = list(frame.groupby(by, sort=False))
    if not panels:
        raise UsageError("there is nothing to draw: no result has such values.")
    return panels


def _axes(panels: int, ax: Any, sharey: bool | Literal["row"] = "row") -> list[Any]:
    """The given axes, or new ones, at most three beside one another."""
    if ax is not None:
        return list(ax.flat) if hasattr(ax, "flat") else list(ax) if hasattr(ax, "__len__") else [ax]
    columns = min(3, panels)
    rows = -(-panels // columns)
    size = (5.5 * columns, 4 * rows)
    _, grid = pyplot().subplots(rows, columns, figsize=size, squeeze=False, sharey=sharey, layout="constrained")
    for axis in grid.flat[panels:]:
        axis.set_visible(False)
    return list(grid.flat)


def _order(frame: pd.DataFrame) -> list[str]:
    """The methods in their order, which fixes their colours in every panel."""
    return list(dict.fromkeys(frame["method"][~frame["oracle"].astype(bool)]))


def _lines(panel: pd.DataFrame, order: list[str]) -> Iterable[tuple[str, pd.DataFrame, dict[str, Any]]]:
    """Each method of a panel with its line and style: bounds dotted, methods beyond the first ones grey and unnamed."""
    for (method, oracle), line in panel.groupby(["method", "oracle"], sort=False):
        if oracle:
            yield str(method), line, {"linestyle": ":", "color": "gray", "marker": ""}
        elif (place := order.index(str(method))) < _NAMED:
            yield str(method), line, {"color": f"C{place}"}
        else:
            yield "_", line, {"color": "lightgray", "zorder": 0}


def _marked(style: dict[str, Any]) -> dict[str, Any]:
    return {"marker": "o", "markersize": 4, "capsize": 2, **style}


def _logarithmic(axis: Any, values: Iterable[float], base: int) -> None:
    """A logarithmic axis with plain numbers at its ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_xscale("log", base=base)
    if base == 2:
        axis.set_xticks(sorted(set(values)))
    else:
        axis.xaxis.set_major_locator(LogLocator(base, subs=(1.0, 2.0, 5.0)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def _title(dataset: str, noise: str = "none", size: int | None = None) -> str:
    from llpbench.results.naming import dataset_title

    words = [dataset_title(dataset)]
    words += [f"bags of {size}"] if size else []
    return ", ".join(words + ([] if noise == "none" else [f"noise {noise}"]))


def _legend(axis: Any) -> None:
    if axis.get_legend_handles_labels()[1]:
        axis.legend(fontsize=8)
