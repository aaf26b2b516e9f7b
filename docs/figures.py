"""Draws the figures of `docs/findings.md` from the published leaderboard (`python docs/figures.py`)."""

from __future__ import annotations

import statistics
from pathlib import Path

import matplotlib as mpl
from board_tables import Column, Scores, build_board

mpl.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).parent / "images"
SIZES = ("8", "32", "128", "512", "1024", "2048")
METHODS = ("bp-count", "bp-field", "bag-logistic", "mean-ridge", "dllp", "count-nll", "llp-vat")
CONTROL = "random-labels"
RULE_METHODS = ("bp-field", "easyllp", "dllp", "genbags", "llp-vat", "best-feature")
FIRST_SEEDS = range(5)  # those that all methods have


def mean_auroc(scores: Scores, dataset: str, size: str, rule: str, method: str) -> float:
    """The mean test AUROC in percent over the seeds that all methods have."""
    seeds = scores[Column(dataset, size, rule, "none")][method]
    return statistics.fmean(seeds[seed] for seed in FIRST_SEEDS)


def draw_bag_sizes(scores: Scores) -> None:
    """AUROC against bag size, one panel for each dataset."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    for panel, dataset in zip(panels, ("adult", "marketing"), strict=True):
        for method in (*METHODS, CONTROL):
            values = [mean_auroc(scores, dataset, size, "bags", method) for size in SIZES]
            grey = {"color": "grey", "linestyle": "--"} if method == CONTROL else {}
            panel.plot(SIZES, values, marker="o", markersize=4, label=method, **grey)
        panel.set(title=dataset.capitalize(), xlabel="bag size")
        panel.grid(axis="y", alpha=0.3)
    panels[0].set_ylabel("test AUROC %, rule bags")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.savefig(IMAGES / "bag-sizes.png", dpi=110)


def draw_rules(scores: Scores, dataset: str = "marketing", size: str = "512") -> None:
    """The same fits under both selection rules: one line for each method."""
    figure, panel = plt.subplots(figsize=(6, 4.6), layout="constrained")
    for method in RULE_METHODS:
        values = [mean_auroc(scores, dataset, size, rule, method) for rule in ("bags", "instances")]
        style = {"color": "grey", "linestyle": "--"} if method == "best-feature" else {}
        (line,) = panel.plot((0, 1), values, marker="o", **style)
        panel.annotate(method, (1.03, values[1]), color=line.get_color(), va="center")
    panel.set(title=f"{dataset.capitalize()}, bags of {size}", ylabel="test AUROC %", xlim=(-0.1, 1.5))
    panel.set_xticks((0, 1), ("bags", "instances"))
    panel.set_xlabel("selection rule")
    panel.grid(axis="y", alpha=0.3)
    figure.savefig(IMAGES / "rules.png", dpi=110)


if __name__ == "__main__":
    published, _ = build_board()
    draw_bag_sizes(published)
    draw_rules(published)
