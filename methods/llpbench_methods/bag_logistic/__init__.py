"""Logistic regression fitted to the proportions of bags: no network, nothing drawn, about a second."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl

BAG_LOGISTIC = MethodSpec(
    name="bag-logistic",
    factory="llpbench_methods.bag_logistic.method:BagLogistic",
    summary="logistic regression whose mean predictions match the bag proportions; suited to few large bags",
    family="bag means",
    params=(
        Param(
            "penalty",
            3.0,
            low=1e-4,
            high=1e6,
            log=True,
            doc="L2 penalty on the weights, whose prior variance is 1/penalty",
        ),
        Param(
            "effect",
            "auto",
            low=0.0,
            high=0.25,
            kind="float",
            choices=("auto",),
            doc="variance of a random effect shared by all rows of a bag; auto estimates it on validation bags",
        ),
        Param(
            "hats",
            "auto",
            choices=("auto", "yes", "no"),
            omit_default=True,
            doc="numeric columns also in piecewise linear functions; auto: if rows have several groupings",
        ),
        Param(
            "decode",
            "no",
            choices=("no", "yes"),
            omit_default=True,
            tune=False,
            doc="yes: report as pseudo-labels the probabilities of training rows given the counts of all their bags",
        ),
        Param("steps", 300, low=1, high=100_000, log=True, doc="maximum number of L-BFGS steps", tune=False),
    ),
    tasks=("binary", "multiclass"),
    scores="probability",
    quick=True,
    overlapping=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``bag-logistic``."""
    return [BAG_LOGISTIC]
