"""Accuracy of nearest-neighbour classifiers by cosine and Euclidean distance, for the table of `ablations.md`.

    python docs/neighbour_accuracy.py    # replaces the lines `neighbour-accuracy` of results/paper.csv

The paper compares the two distances by this accuracy on Adult. It is a property of the features: rows are classified
by a majority of the labels of their k nearest training rows. No method of the benchmark sees these labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from paper_tables import FIELDS, add_lines, registry
from sklearn.neighbors import KNeighborsClassifier

from llpbench.data.store import DataStore
from llpbench.plugins.options import expand, parse_options

ELEMENT = "neighbour-accuracy"
DATASET = "adult[encoding=ordinal]"
NEIGHBOURS = (1, 3, 5, 11, 21, 29)
DISTANCES = ("cosine", "euclidean")


def lines() -> Iterator[dict[str, str]]:
    """A line for each seed, distance and number of neighbours, and one for their mean."""
    name, given = parse_options(DATASET)
    spec = registry().datasets[name]
    (options,) = expand(spec, given)
    for seed in range(3):
        split = spec.load()(DataStore(spec), seed=seed, **options)
        for distance in DISTANCES:
            model = KNeighborsClassifier(metric=distance, algorithm="brute").fit(split.train.X, split.train.y)
            scores = {k: model.set_params(n_neighbors=k).score(split.test.X, split.test.y) for k in NEIGHBOURS}
            for k, accuracy in scores.items():
                yield line_of(f"nearest-rows[distance={distance};k={k}]", seed, accuracy)
            yield line_of(f"nearest-rows[distance={distance}]", seed, fmean(scores.values()))


def line_of(method: str, seed: int, accuracy: float) -> dict[str, str]:
    """The line of a classifier; its accuracy needs labels, as rule `instances` does."""
    facts = dict.fromkeys(FIELDS, "") | {"element": ELEMENT, "method": method, "dataset": DATASET, "bag_size": "1"}
    found = {"noise": "none", "feature_noise": "0", "seed": seed, "rule": "instances", "selected": "yes"}
    return {name: str(value) for name, value in (facts | found | {"accuracy": f"{accuracy:.6f}"}).items()}


if __name__ == "__main__":
    add_lines(ELEMENT, lines())
