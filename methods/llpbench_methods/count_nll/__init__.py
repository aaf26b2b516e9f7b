"""count-nll: the likelihood of a bag's count when its rows' labels are independent."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import network_spec

COUNT_NLL = network_spec(
    "count-nll",
    "llpbench_methods.count_nll.method:CountNLL",
    "exact likelihood of the bag count (Poisson-binomial law) as the training loss",
    params=(
        Param(
            "exact_rows",
            64,
            low=0,
            high=1024,
            doc="largest bag size with an exact likelihood; larger bags use a Gaussian approximation",
            tune=False,
        ),
        Param(
            "outputs",
            "softmax",
            choices=("softmax", "ovr"),
            doc="outputs for several classes: one softmax, or one sigmoid per class against the rest, which "
            "starts at a rate of 1/C (as in LLP-PVC); no difference for two classes",
            omit_default=True,
        ),
        Param(
            "tau",
            "auto",
            low=0.0,
            high=2.0,
            choices=("auto",),
            kind="float",
            doc="standard deviation, in log-odds, of the bag effect that is integrated out, an addition to the "
            "publication; auto estimates it by a regression on bag means (0 for random bags)",
            tune=False,
            omit_default=True,
        ),
    ),
    quick=True,
    family="bag loss",
    citation="Shukla, Zeng, Ahmed, Van den Broeck 2023, A unified approach to count-based weakly supervised learning; "
    "outputs=ovr: 2026, Learning from label proportions via proportional value classification (ICLR)",
    paper="https://arxiv.org/abs/2311.13718",
    code="https://github.com/UCLA-StarAI/CountLoss",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``count-nll``."""
    return [COUNT_NLL]
