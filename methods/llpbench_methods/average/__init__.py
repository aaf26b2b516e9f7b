"""The average of several stable learners: one method to begin with, and no network for tables."""

from __future__ import annotations

from llpbench import BACKENDS, MethodSpec, Param, hookimpl

AVERAGE = MethodSpec(
    name="average",
    factory="llpbench_methods.average.method:Average",
    summary="average of the log-odds of bag-logistic, mean-ridge and bp-count, brought to the known rate",
    params=(
        Param(
            "members",
            "all",
            choices=("all", "quick"),
            doc="quick replaces bp-count by its regression without self-training",
        ),
        Param(
            "weights",
            "likelihood",
            choices=("likelihood", "equal"),
            doc="weights of the members: likelihood of the held-out counts, or equal",
        ),
    ),
    tasks=("binary", "multiclass"),
    backends=BACKENDS,
    preload=("sklearn.ensemble", "llpbench_methods.average.method", "llpbench_methods.bp_count.method"),
    scores="probability",
    quick=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``average``."""
    return [AVERAGE]
