"""Published means over the runs of each bag set, method and selection, as references."""

from __future__ import annotations

import csv

from llpbench import Reference
from llpbench_datasets.landscape.load import PUBLISHED
from llpbench_datasets.landscape.names import USUAL

SOURCE = "The Complex Landscape"
METHODS = {
    "mm": "mean-map",
    "lmm": "mean-map[variant=lmm]",
    "amm": "mean-map[variant=amm]",
    "kdd-lr": "",
    "dllp": "dllp",
    "mixbag": "mixbag",
    "llp-vat": "llp-vat",
    "llpfc": "llp-fc",
}
"""The published methods, and the one that is meant to be it here."""
SELECTIONS = {"abs": "bags", "hypergeo": "bags", "oracle": "instances"}
"""Published ways of selecting a model, and the corresponding selection rule.

``abs`` takes the least absolute error of the proportions of held-out parts of bags, ``hypergeo`` their hypergeometric
likelihood, ``oracle`` the labels of held-out rows.
"""
METRICS = ("f1", "accuracy")


def references() -> list[Reference]:
    """Every published mean and standard deviation over the runs."""
    with (PUBLISHED / "results.csv").open(encoding="ascii", newline="") as stream:
        return [
            Reference(
                source=f"{SOURCE} ({line['selection']})",
                dataset=shown_name(line["set"]),
                title=line["method"],
                method=METHODS[line["method"]],
                metric=metric,
                mean=float(line[metric]),
                sd=float(line[f"{metric}_sd"]),
                rule=SELECTIONS[line["selection"]],
            )
            for line in csv.DictReader(stream)
            for metric in METRICS
        ]


def shown_name(name: str) -> str:
    """Name of a bag set in tables."""
    return "landscape, own-bags" if name == USUAL else f"landscape[set={name}], own-bags"
