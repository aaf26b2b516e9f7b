"""bp-count: regression on bag means, exact counting factors, and self-training that held-out bags control."""

from __future__ import annotations

from llpbench import BACKENDS, MethodSpec, Param, hookimpl

BP_COUNT = MethodSpec(
    name="bp-count",
    factory="llpbench_methods.bp_count.method:BPCount",
    summary="learns from bag means, then labels rows to add up to the counts; keeps what held-back bags confirm",
    params=(
        Param(
            "learner",
            "auto",
            choices=("auto", "trees", "network"),
            doc="what learns from the posteriors; auto takes trees for tables and the network for other features",
        ),
        Param("rounds", 6, low=0, high=50, doc="most rounds of self-training; 0 uses the regression only"),
        Param("folds", 2, low=2, high=10, doc="folds of bags that decide whether a round is accepted"),
        Param(
            "least_gain",
            1.0,
            low=0.0,
            high=100.0,
            doc="gain on held-out bags that a round must bring, in standard errors",
        ),
        Param(
            "draws",
            80,
            low=1,
            high=10_000,
            log=True,
            doc="draws of each concentration in the families of priors",
            tune=False,
        ),
        Param("temper", True, doc="whether the regression's variance tempers its fields"),
        Param(
            "similarity",
            "auto",
            low=0.0,
            high=100.0,
            choices=("auto",),
            kind="float",
            doc="weight of the nearest-neighbour term; auto lets validation bags choose (up to 100,000 rows)",
        ),
        Param("neighbours", 10, low=1, high=1000, log=True, doc="neighbours of a row in that term"),
        Param("trees", 60, low=1, high=10_000, log=True, doc="trees of the boosted learner", tune=False),
        Param("epochs", 4, low=1, high=1000, log=True, doc="epochs of the network in each round", tune=False),
    ),
    tasks=("binary", "multiclass"),
    backends=BACKENDS,
    preload=("sklearn.ensemble", "llpbench_methods.bp_count.method"),
    scores="probability",
    quick=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``bp-count``."""
    return [BP_COUNT]
