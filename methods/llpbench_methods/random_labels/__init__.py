"""Control: the shared network on random labels that fit the counts."""

from __future__ import annotations

from llpbench import MethodSpec, hookimpl
from llpbench_methods.nets.params import NETWORK_BACKENDS, NETWORK_PARAMS, NETWORK_PRELOAD

RANDOM_LABELS = MethodSpec(
    name="random-labels",
    factory="llpbench_methods.random_labels.method:RandomLabels",
    summary="control: the shared network on random labels that fit the counts, same budget",
    control=True,
    params=NETWORK_PARAMS,
    tasks=("binary", "multiclass"),
    inputs=("features", "images"),
    backends=NETWORK_BACKENDS,
    preload=NETWORK_PRELOAD,
    scores="probability",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``random-labels``."""
    return [RANDOM_LABELS]
