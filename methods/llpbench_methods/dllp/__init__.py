"""DLLP: cross-entropy between a bag's proportion and the mean of its predicted probabilities."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NETWORK_BACKENDS, NETWORK_PARAMS, NETWORK_PRELOAD

DLLP = MethodSpec(
    name="dllp",
    factory="llpbench_methods.dllp.method:DLLP",
    summary="cross-entropy between bag proportion and mean predicted probability",
    params=(
        *NETWORK_PARAMS,
        Param(
            "loss",
            "cross-entropy",
            choices=("cross-entropy", "proportion-mse", "count-mse"),
            doc="of a bag: cross-entropy, or squared error of the proportion or of the count",
        ),
    ),
    tasks=("binary", "multiclass"),
    inputs=("features", "images"),
    backends=NETWORK_BACKENDS,
    preload=NETWORK_PRELOAD,
    scores="probability",
    citation="Ardehaly & Culotta 2017, Co-training for demographic classification using deep learning "
    "from label proportions",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``dllp``."""
    return [DLLP]
