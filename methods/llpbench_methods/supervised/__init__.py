"""The same network on the true labels: the bound that LLP methods are measured against."""

from __future__ import annotations

from llpbench import MethodSpec, hookimpl
from llpbench_methods.nets.params import NETWORK_BACKENDS, NETWORK_PARAMS, NETWORK_PRELOAD

SUPERVISED = MethodSpec(
    name="supervised",
    factory="llpbench_methods.supervised.method:Supervised",
    summary="the shared network on the true labels: an upper bound, not an LLP method",
    params=NETWORK_PARAMS,
    tasks=("binary", "multiclass"),
    inputs=("features", "images"),
    backends=NETWORK_BACKENDS,
    preload=NETWORK_PRELOAD,
    oracle=True,
    scores="probability",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``supervised``."""
    return [SUPERVISED]
