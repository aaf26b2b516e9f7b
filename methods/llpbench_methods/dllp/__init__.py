"""DLLP: cross-entropy between a bag's proportion and the mean of its predicted probabilities."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import network_spec

DLLP = network_spec(
    "dllp",
    "llpbench_methods.dllp.method:DLLP",
    "cross-entropy between bag proportion and mean predicted probability",
    params=(
        Param(
            "loss",
            "cross-entropy",
            choices=("cross-entropy", "proportion-mse", "count-mse"),
            doc="bag loss: cross-entropy, or squared error of the proportion or of the count",
        ),
    ),
    quick=True,
    family="bag loss",
    citation="Ardehaly & Culotta 2017, Co-training for demographic classification using deep learning "
    "from label proportions",
    paper="https://arxiv.org/abs/1709.04108",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``dllp``."""
    return [DLLP]
