"""Known numbers against AUROC: several tables of counts, random bags and natural groups.

    python docs/known_numbers.py collect results/tables ...    # add runs of overlapping bags to results/tables.csv
    python docs/known_numbers.py draw                          # draw images/known-numbers.png

Random bags and groups are those of the published leaderboard, at the same seeds.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from llpbench import CellResult, Results

DOCS = Path(__file__).parent
NUMBERS = DOCS / "results" / "tables.csv"
BOARD = DOCS.parent / "leaderboards" / "cells"
FIELDS = ("dataset", "noise", "known", "method", "seed", "auroc", "log_loss", "seconds")
METHOD, BOUND = "bag-logistic", "supervised"
SEEDS = (0, 1, 2)

Line = Mapping[str, str]
Points = Mapping[int, float]
"""Mean AUROC in percent by the number of known counts."""


def line_of(result: CellResult) -> Line:
    """The numbers of a cell under rule bags."""
    metrics = result.selected["bags"].metrics
    return {
        "dataset": result.dataset_name,
        "noise": result.cell.noise,
        "known": str(result.bags["train"]),
        "method": result.method_name,
        "seed": str(result.cell.seed),
        "auroc": f"{metrics['auroc']:.6f}",
        "log_loss": f"{metrics['log_loss']:.6f}",
        "seconds": f"{result.fit_seconds:.2f}",
    }


def read_lines() -> list[Line]:
    """All collected lines."""
    if not NUMBERS.is_file():
        return []
    with NUMBERS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def collect(folders: Sequence[str]) -> None:
    """Add the cells of results folders; a cell that is there already is replaced."""
    lines = {tuple(line[name] for name in ("dataset", "noise", "method", "seed")): line for line in read_lines()}
    for folder in folders:
        for result in Results.of(folder).results:
            if result.status == "ok" and "margins" in result.dataset_name:
                line = line_of(result)
                lines[tuple(line[name] for name in ("dataset", "noise", "method", "seed"))] = line
    with NUMBERS.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, FIELDS, lineterminator="\n")
        out.writeheader()
        out.writerows(sorted(lines.values(), key=lambda line: [line[name] for name in FIELDS]))


def means(numbers: Iterator[tuple[int, float]]) -> Points:
    """The mean of each number of counts, in percent."""
    found = defaultdict(list)
    for known, auroc in numbers:
        found[known].append(100 * auroc)
    return {known: statistics.fmean(values) for known, values in sorted(found.items())}


def published(dataset: str, method: str, scheme: str, noise: str = "none") -> Points:
    """Means of the leaderboard on the default form of a dataset."""

    def cells() -> Iterator[tuple[int, float]]:
        for text in (BOARD / f"{method}.jsonl").read_text().splitlines():
            result: dict[str, Any] = json.loads(text)["result"]
            cell = result["cell"]
            where = (cell["dataset"], cell.get("scheme", "random"), cell.get("noise", "none"), cell.get("preset"))
            if where == (dataset, scheme, noise, None) and cell["seed"] in SEEDS and result["status"] == "ok":
                yield result["bags"]["train"], result["selected"]["bags"]["metrics"]["auroc"]

    return means(cells())


def draw(datasets: Sequence[str] = ("adult", "marketing")) -> None:
    """AUROC against known numbers, a panel for each dataset."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    lines = read_lines()

    def tables(dataset: str, noise: str) -> Points:
        found: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            if (line["method"], line["noise"]) == (METHOD, noise) and line["dataset"].startswith(f"{dataset}, margins"):
                found[line["dataset"]].append(line)
        known = {name: min(int(line["known"]) for line in same) for name, same in found.items()}
        return means((known[name], float(line["auroc"])) for name, same in found.items() for line in same)

    figure, panels = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    for panel, dataset in zip(panels, datasets, strict=True):
        (bound,) = published(dataset, BOUND, "random").values()
        kinds = (
            ("random bags", published(dataset, METHOD, "random"), {"marker": "o", "linestyle": "-"}),
            ("random bags, ε = 1", published(dataset, METHOD, "random", "high"), {"marker": "o", "linestyle": ":"}),
            ("groups of one column", published(dataset, METHOD, "group-by"), {"marker": "s", "linestyle": ""}),
            ("several tables", tables(dataset, "none"), {"marker": "D", "linestyle": "-"}),
            ("several tables, ε = 1 in total", tables(dataset, "high"), {"marker": "D", "linestyle": ":"}),
        )
        for name, points, style in kinds:
            panel.plot(list(points), list(points.values()), label=name, markersize=5, **style)
        panel.axhline(bound, color="grey", linestyle="--", label="all labels")
        panel.set(title=dataset.capitalize(), xlabel="known counts", xscale="log")
        panel.set_xticks((10, 100, 1000, 5000), ("10", "100", "1,000", "5,000"))
        panel.grid(axis="y", alpha=0.3)
        panel.set_ylim(top=94)
    panels[0].set_ylabel(f"test AUROC % of {METHOD}, rule bags")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.savefig(DOCS / "images" / "known-numbers.png", dpi=110)


if __name__ == "__main__":
    if sys.argv[1:] == ["draw"]:
        draw()
    elif len(sys.argv) > 2 and sys.argv[1] == "collect":
        collect(sys.argv[2:])
    else:
        sys.exit(__doc__)
