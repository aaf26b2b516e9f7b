"""A bound: what a learner reaches with a given number of labelled rows."""

from __future__ import annotations

from llpbench import BACKENDS, MethodSpec, Param, hookimpl

FEW_LABELS = MethodSpec(
    name="few-labels",
    factory="llpbench_methods.few_labels.method:FewLabels",
    summary="a bound: a method given the labels of a few training rows, which tells what bags are worth",
    params=(
        Param("labels", 128, low=1, high=100_000_000, log=True, doc="number of labelled rows, drawn at random"),
        Param("method", "average", doc="name of an installed method, run with its default parameters", tune=False),
    ),
    tasks=("binary", "multiclass"),
    backends=BACKENDS,
    preload=("sklearn.ensemble", "llpbench_methods.bp_count.method"),
    oracle=True,
    scores="probability",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``few-labels``."""
    return [FEW_LABELS]
