"""GenBags: signed weighted unions of bags whose predicted counts must match."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=3e-3)
"""The shared settings, with the learning rate tuned on held-out bags (docs/terms.md)."""

GENBAGS = network_spec(
    "genbags",
    "llpbench_methods.genbags.method:GenBags",
    "squared count error of generalised bags, which are signed weighted unions of several bags",
    params=(
        Param("block", 4, low=1, high=64, log=True, doc="number of bags in a generalised bag"),
        Param(
            "covariance",
            "iid",
            choices=("iid", "sdp", "independent"),
            doc="covariance of the weights: closed form for bags of one law, a semidefinite program on the bags' "
            "moments (needs cvxpy), or independent standard normal",
        ),
        Param("ridge", 0.011, low=1e-6, high=10.0, log=True, doc="added to the diagonal of the covariance"),
        Param(
            "stochastic",
            False,
            doc="draw weights in each step, as in the publication, instead of averaging over all of them",
        ),
        Param("draws", 60, low=1, high=1000, log=True, doc="weight vectors drawn per block and step (stochastic only)"),
        Param("norm", "l2", choices=("l2", "l1"), doc="squared or absolute error of a generalised bag"),
        Param("sdp_features", 6, low=1, high=50, log=True, doc="principal components used in the semidefinite program"),
    ),
    settings=NETWORK,
    family="bag loss",
    citation="Saket, Raghuveer, Ravindran 2022, On combining bags to better learn from label proportions",
    paper="https://proceedings.mlr.press/v151/saket22a.html",
    code="https://github.com/google-research/google-research/tree/master/"
    "On_Combining_Bags_to_Better_Learn_from_Label_Proportions",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``genbags``."""
    return [GENBAGS]
