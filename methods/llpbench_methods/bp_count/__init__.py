"""bp-count: regression on bag means, exact counting factors, and self-training that held-out bags control."""

from __future__ import annotations

from llpbench import BACKENDS, MethodSpec, Param, hookimpl

BP_COUNT = MethodSpec(
    name="bp-count",
    factory="llpbench_methods.bp_count.method:BPCount",
    summary="regression on bag means, then self-training with the bag counts, as long as held-out bags improve",
    family="bag means",
    params=(
        Param(
            "learner",
            "auto",
            choices=("auto", "trees", "network"),
            doc="model trained on the posteriors; auto uses trees for tables and the network for other features",
        ),
        Param("rounds", 6, low=0, high=50, doc="maximum number of self-training rounds; 0 uses the regression only"),
        Param("folds", 2, low=2, high=10, doc="folds of bags that decide whether a round is accepted"),
        Param(
            "least_gain",
            1.0,
            low=0.0,
            high=100.0,
            doc="gain on held-out bags required to accept a round, in standard errors",
        ),
        Param(
            "draws",
            80,
            low=1,
            high=10_000,
            log=True,
            doc="number of draws for each concentration in the families of priors",
            tune=False,
        ),
        Param("temper", True, doc="temper the regression's log-odds by their posterior variance"),
        Param(
            "similarity",
            "auto",
            low=0.0,
            high=100.0,
            choices=("auto",),
            kind="float",
            doc="weight of the nearest-neighbour term; auto chooses it on validation bags (up to 100,000 rows)",
        ),
        Param("neighbours", 10, low=1, high=1000, log=True, doc="number of neighbours in that term"),
        Param("trees", 60, low=1, high=10_000, log=True, doc="number of boosted trees", tune=False),
        Param("epochs", 4, low=1, high=1000, log=True, doc="training epochs of the network in each round", tune=False),
    ),
    tasks=("binary", "multiclass"),
    backends=BACKENDS,
    preload=("sklearn.ensemble", "llpbench_methods.bp_count.method"),
    scores="probability",
    quick=True,
    overlapping=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``bp-count``."""
    return [BP_COUNT]
