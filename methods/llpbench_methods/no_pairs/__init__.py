"""Control: another method without its similarity pairs."""

from __future__ import annotations

from llpbench import BACKENDS, MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NETWORK_PRELOAD

NO_PAIRS = MethodSpec(
    name="no-pairs",
    factory="llpbench_methods.no_pairs.method:NoPairs",
    summary="control: another method trained without its similarity pairs",
    params=(
        Param("method", "bp", doc="name of a method with a preset no-pairs", names_method=True, tune=False),
        Param(
            "patience", 20, low=1, high=1_000_000, log=True, doc="reports without improvement before that method stops"
        ),
    ),
    tasks=("binary", "multiclass"),
    inputs=("features", "images"),
    backends=BACKENDS,
    preload=NETWORK_PRELOAD,
    control=True,
    seed_name="{method}",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``no-pairs``."""
    return [NO_PAIRS]
