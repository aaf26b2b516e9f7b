"""Draws the decoding curve of `docs/disclosure.md`: which labels random tables of counts reveal.

    python docs/disclosure_curve.py        # draws images/disclosure.png from results/disclosure.csv
    python docs/disclosure_curve.py run    # first replaces that file (about three minutes of processor time)

8,192 training rows of Adult (seeds 100 and 101) are dealt `g` times at random into bags of 8, 32 or 128, so there are
`g / B` counts per row. The attack of `llpbench.disclosure` gets these counts, with or without noise, and no label.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import matplotlib as mpl
import numpy as np

from llpbench.contracts.data import Part
from llpbench.contracts.specs import NO_BAG
from llpbench.data.store import DataStore
from llpbench.experiment.bags import gather_groupings
from llpbench.experiment.schemes import random_bags
from llpbench.owndata.disclosure import infer, with_noise
from llpbench.plugins.registry import load_registry

mpl.use("Agg")
from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results" / "disclosure.csv"
IMAGE = Path(__file__).parent / "images" / "disclosure.png"
ROWS, SEEDS = 8192, (100, 101)
TIMES = {8: (1, 2, 3, 4), 32: (2, 4, 6, 8, 10, 12, 16), 128: (4, 8, 16, 24, 32, 48, 64)}
SETTINGS = ((True, 0.0), (True, 1.0), (True, 3.0), (False, 0.0))
"""Whether the attacker knows the columns, and the standard deviation of the noise."""
NAMES = dict(zip(SETTINGS, ("exact counts", "noise of sd 1", "noise of sd 3", "exact counts, no columns"), strict=True))


def lines() -> Iterator[dict[str, float]]:
    """What the attack finds: a line for each seed, bag size, number of tables, and setting."""
    spec = load_registry().datasets["adult"]
    for seed in SEEDS:
        split = spec.load()(DataStore(spec), seed=seed)
        part = Part(split.train.X[:ROWS], split.train.y[:ROWS])
        for size, times in ((size, times) for size, all_times in TIMES.items() for times in all_times):
            rng = np.random.default_rng([seed, size, times])
            groupings = {str(i): random_bags(part.X, size, columns=split.columns, rng=rng) for i in range(times)}
            if times == 1:
                groupings["no table"] = np.full(ROWS, NO_BAG)  # so that a single table has the form of several
            bags, labels = gather_groupings(part, groupings, classes=2, columns=split.columns, rng=rng)
            for known, sd in SETTINGS:
                given = bags if known else replace(bags, X=np.zeros((ROWS, 1), np.float32), columns=())
                began = time.process_time()
                told = infer(with_noise(given, sd, rng) if sd else given)
                p, prior = told.posterior[:, 1], told.prior[:, 1]
                sure = np.maximum(p, 1.0 - p) >= 0.99
                right = (p > 0.5) == labels
                yield {
                    "seed": seed,
                    "size": size,
                    "times": times,
                    "columns": int(known),
                    "noise_sd": sd,
                    "right": round(float(right.mean()), 5),
                    "certain_99": round(float(sure.mean()), 5),
                    "right_99": round(float(right[sure].mean()), 5) if sure.any() else 1.0,
                    "prior_99": round(float((np.maximum(prior, 1.0 - prior) >= 0.99).mean()), 5),
                    "converged": int(told.converged),
                    "cpu_seconds": round(time.process_time() - began, 2),
                }


def run() -> None:
    """Attack all settings and write the results."""
    with RESULTS.open("w", newline="") as file:
        writer = None
        for line in lines():
            writer = writer or csv.DictWriter(file, list(line), lineterminator="\n")
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(line)
            file.flush()


def draw() -> None:
    """Share of labels that are right, and that are certain at 99 %, against counts per row."""
    with RESULTS.open(newline="") as file:
        found = [{name: float(value) for name, value in line.items()} for line in csv.DictReader(file)]
    figure, panels = plt.subplots(2, 3, figsize=(10, 5.6), sharex=True, sharey="row", layout="constrained")
    for row, (what, title) in zip(
        panels, (("right", "labels right %"), ("certain_99", "certain at 99 %, %")), strict=True
    ):
        for panel, (size, times) in zip(row, TIMES.items(), strict=True):
            for (known, sd), name in NAMES.items():
                own = [one for one in found if (one["size"], one["columns"], one["noise_sd"]) == (size, known, sd)]
                values = [100 * fmean(one[what] for one in own if one["times"] == g) for g in times]
                style = {} if known else {"color": "grey", "linestyle": "--"}
                panel.plot([g / size for g in times], values, marker="o", markersize=4, label=name, **style)
            panel.grid(alpha=0.3)
            panel.set(ylim=(-3 if what != "right" else 72, 103))
        row[0].set_ylabel(title)
    for panel, size in zip(panels[0], TIMES, strict=True):
        panel.set_title(f"bags of {size}")
    for panel in panels[1]:
        panel.set_xlabel("counts per row")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.savefig(IMAGE, dpi=110)


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        run()
    draw()
