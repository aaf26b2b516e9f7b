"""LLP-FC: bags in groups are noisy classes; forward-corrected cross-entropy learns the clean ones."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=1e-4)
"""The shared settings with the rate that held-back bags chose (docs/terms.md)."""

LLP_FC = network_spec(
    "llp-fc",
    "llpbench_methods.llp_fc.method:LLPFC",
    "a bag's place in a random group is a noisy label; forward correction undoes the noise",
    params=(
        Param(
            "noisy_prior",
            "uniform",
            choices=("uniform", "approx", "approx_official"),
            doc="weights of a group's bags: equal; such that the group has the global class shares (least squares); "
            "or the problem that the published code solves instead",
        ),
        Param("regroup", 20, low=1, high=10_000, log=True, doc="epochs between two groupings of the bags"),
        Param("informative", False, doc="weigh groups by |det T|, so that bags with equal proportions count nothing"),
    ),
    settings=NETWORK,
    citation="Zhang, Wang, Scott 2022, Learning from label proportions by learning with label noise",
    paper="https://arxiv.org/abs/2203.02496",
    code="https://github.com/Z-Jianxin/LLPFC",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``llp-fc``."""
    return [LLP_FC]
