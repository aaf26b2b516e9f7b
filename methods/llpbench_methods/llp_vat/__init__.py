"""LLP-VAT: the bag cross-entropy of DLLP with virtual adversarial training."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=3e-3)
"""The shared settings, with the learning rate tuned on held-out bags (docs/terms.md)."""

LLP_VAT = network_spec(
    "llp-vat",
    "llpbench_methods.llp_vat.method:LLPVAT",
    "bag cross-entropy with virtual adversarial training",
    params=(
        Param("weight", 0.05, low=0.0, high=100.0, doc="weight of the consistency loss after the ramp"),
        Param(
            "epsilon",
            1.0,
            low=0.0,
            high=100.0,
            doc="length of the adversarial perturbation of a row (publication: 6, for images)",
        ),
        Param("xi", 1e-2, low=1e-6, high=10.0, log=True, doc="step length in a power iteration (publication: 1e-6)"),
        Param("iterations", 1, low=1, high=10, doc="number of power iterations"),
        Param("ramp", 0.4, low=0.0, high=1.0, doc="share of all steps over which the weight increases"),
        Param(
            "official_numerics",
            False,
            doc="normalise the gradient as the published code does (mean, plus 1e-8; use it with xi=1e-6 "
            "and epsilon=6), which hardly perturbs the rows",
        ),
        Param(
            "chunk_rows",
            0,
            low=0,
            high=1_000_000,
            doc="rows processed at once (limits the memory of large bags); 0 means 128 images or 8192 rows of features",
            tune=False,
        ),
    ),
    settings=NETWORK,
    family="bag loss",
    citation="Tsai & Lin 2020, Learning from label proportions with consistency regularization",
    paper="https://arxiv.org/abs/1910.13188",
    code="https://github.com/kevinorjohn/LLP-VAT",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``llp-vat``."""
    return [LLP_VAT]
