"""Maximum entropy given the counts: raking, with a regression for new rows."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl

MAX_ENTROPY = MethodSpec(
    name="max-entropy",
    factory="llpbench_methods.max_entropy.method:MaxEntropy",
    summary="the least committed labels that fit all counts (raking), and a linear model of their log-odds",
    params=(
        Param(
            "count_sd",
            1.0,
            low=1e-2,
            high=100.0,
            log=True,
            doc="standard deviation by which a count may be missed, besides its noise",
        ),
        Param(
            "penalty",
            "auto",
            low=1e-4,
            high=1e7,
            log=True,
            kind="float",
            choices=("auto",),
            doc="ridge penalty of the model of log-odds; auto: folds of bags choose among 10, 1e3 and 1e5",
        ),
    ),
    tasks=("binary", "multiclass"),
    scores="probability",
    overlapping=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``max-entropy``."""
    return [MAX_ENTROPY]
