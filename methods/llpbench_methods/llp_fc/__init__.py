"""LLP-FC: bags in groups are noisy classes; forward-corrected cross-entropy learns the clean ones."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=1e-4)
"""The shared settings, with the learning rate tuned on held-out bags (docs/terms.md)."""

LLP_FC = network_spec(
    "llp-fc",
    "llpbench_methods.llp_fc.method:LLPFC",
    "the index of a bag in a random group is a noisy label; forward correction accounts for the noise",
    params=(
        Param(
            "noisy_prior",
            "uniform",
            choices=("uniform", "approx", "approx_official"),
            doc="weights of the bags of a group: equal; matching the global class shares (least squares), the default "
            "of the published code; or the problem that this code solves instead, in which a matrix is transposed",
        ),
        Param("regroup", 20, low=1, high=10_000, log=True, doc="number of epochs after which bags are regrouped"),
        Param("informative", False, doc="weight groups by |det T|, so that bags with equal proportions have no effect"),
    ),
    settings=NETWORK,
    family="label noise",
    citation="Zhang, Wang, Scott 2022, Learning from label proportions by learning with label noise",
    paper="https://arxiv.org/abs/2203.02496",
    code="https://github.com/Z-Jianxin/LLPFC",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``llp-fc``."""
    return [LLP_FC]
