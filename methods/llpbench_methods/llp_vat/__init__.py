"""LLP-VAT: the bag cross-entropy of DLLP, and predictions that small adversarial changes of a row hardly change."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=3e-3)
"""The shared settings with the rate that held-back bags chose (docs/terms.md)."""

LLP_VAT = network_spec(
    "llp-vat",
    "llpbench_methods.llp_vat.method:LLPVAT",
    "bag cross-entropy and virtual adversarial consistency",
    params=(
        Param("weight", 0.05, low=0.0, high=100.0, doc="weight of the consistency after the ramp"),
        Param("epsilon", 1.0, low=0.0, high=100.0, doc="length of the adversarial change of a row"),
        Param("xi", 1e-2, low=1e-6, high=10.0, log=True, doc="length of the probe in a power iteration"),
        Param("iterations", 1, low=1, high=10, doc="power iterations"),
        Param("ramp", 0.4, low=0.0, high=1.0, doc="share of all steps in which the weight rises"),
        Param(
            "official_numerics",
            False,
            doc="length of the probe's gradient as in the published code (mean, plus 1e-8; use it with xi=1e-6 "
            "and epsilon=6): almost no change of the rows",
        ),
        Param(
            "chunk_rows",
            0,
            low=0,
            high=1_000_000,
            doc="rows worked on at once (bounds the memory of a large bag); 0 is 128 images or 8192 rows of features",
            tune=False,
        ),
    ),
    settings=NETWORK,
    citation="Tsai & Lin 2020, Learning from label proportions with consistency regularization",
    paper="https://arxiv.org/abs/1910.13188",
    code="https://github.com/kevinorjohn/LLP-VAT",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``llp-vat``."""
    return [LLP_VAT]
