"""The names of the bag sets: variant, number and sizes of the bags, their proportions, and clusters of rows."""

from __future__ import annotations

VARIANTS = ("naive", "simple", "intermediate", "hard")
"""Variables that a row's bag depends on: none, its label, its features, both."""
_SIZES = ("small-equal", "small-not-equal", "large-equal", "large-not-equal")
_CLUSTERED = ("extra-large-{}-kmeans-20", "extra-extra-large-{}-kmeans-25", "massive-{}-kmeans-30")
_PROPORTIONS = ("close-global", "mixed", "far-global")


def _names(variant: str) -> list[str]:
    if variant == "naive":
        few = [f"{size}-None-cluster-None-None" for size in _SIZES]
        many = [name.format("fol-clust-None-cluster") for name in _CLUSTERED]
    else:
        clusters = "None-None" if variant == "simple" else "kmeans-5"
        few = [f"{size}-{proportion}-cluster-{clusters}" for size in _SIZES for proportion in _PROPORTIONS]
        many = [name.format("fol-clust-fol-clust-cluster") for name in _CLUSTERED]
    return [f"{variant}-{name}" for name in few + many]


NAMES = tuple(name for variant in VARIANTS for name in _names(variant))
USUAL = "hard-massive-fol-clust-fol-clust-cluster-kmeans-30"
"""The set that is taken when none is named: the one with the most bags that depend on both."""
