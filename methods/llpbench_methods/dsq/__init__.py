"""DSQ: squared errors of bag means, corrected so that their mean is the squared error of single rows."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=3e-4)
"""The shared settings, with the learning rate tuned on held-out bags (docs/terms.md)."""

DSQ = network_spec(
    "dsq",
    "llpbench_methods.dsq.method:DSQ",
    "debiased squared loss: an unbiased estimate of the squared risk from bag means",
    params=(
        Param(
            "mean",
            "reference",
            choices=("reference", "other-bags"),
            doc="source of the mean prediction: 1,024 fixed unlabelled rows, or the other bags of the batch "
            "(which then has at least two bags)",
        ),
    ),
    settings=NETWORK,
    family="unbiased row loss",
    citation="Li, Chen, Javanmard, Mirrokni 2024, Optimistic rates for learning from label proportions (COLT); "
    "Busa-Fekete, Dick, Gentile, Kaplan, Koren, Stemmer 2025, Nearly optimal sample complexity for learning with label "
    "proportions (ICML)",
    paper="https://arxiv.org/abs/2406.00487",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``dsq``."""
    return [DSQ]
