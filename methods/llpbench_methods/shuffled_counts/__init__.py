"""Control: another method on counts that were shuffled among the bags."""

from __future__ import annotations

from llpbench import BACKENDS, MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NETWORK_PRELOAD

SHUFFLED_COUNTS = MethodSpec(
    name="shuffled-counts",
    factory="llpbench_methods.shuffled_counts.method:ShuffledCounts",
    summary="control: another method trained on counts shuffled among the bags",
    params=(
        Param("method", "dllp", doc="name of a method, run with its default parameters", names_method=True, tune=False),
        Param(
            "patience", 20, low=1, high=1_000_000, log=True, doc="reports without improvement before that method stops"
        ),
    ),
    tasks=("binary", "multiclass"),
    inputs=("features", "images"),
    backends=BACKENDS,
    preload=NETWORK_PRELOAD,
    control=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``shuffled-counts``."""
    return [SHUFFLED_COUNTS]
