"""EasyLLP: an instance loss whose targets are bag counts, corrected so that its mean is the true risk."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=1e-4)
"""The shared settings, with the learning rate tuned on held-out bags (docs/terms.md)."""

EASYLLP = network_spec(
    "easyllp",
    "llpbench_methods.easyllp.method:EasyLLP",
    "instance loss with debiased bag counts as targets: an unbiased estimate of the risk",
    params=(
        Param(
            "reduction",
            "rows",
            choices=("rows", "bag_mean", "sample_one"),
            doc="contents of a batch: shuffled rows of all bags, each with its bag's target; or whole bags, using the "
            "mean over the rows of each or one row drawn at random in each step (the two forms of the publication)",
        ),
        Param(
            "loss", "log", choices=("log", "square"), doc="instance loss: log-loss, or squared error of probabilities"
        ),
        Param(
            "remedy",
            "none",
            choices=("none", "absolute", "relu"),
            doc="how to avoid a negative batch loss: take its absolute value, or clip it at 0",
        ),
        Param(
            "logit_clip",
            0.0,
            low=0.0,
            high=100.0,
            doc="clip logits to plus or minus this value in the loss; 0 does not clip",
        ),
        Param(
            "correction",
            False,
            doc="correct the shrinkage (N-k)/(N-1) of targets due to bags drawn without replacement",
        ),
        Param(
            "center",
            "batch",
            choices=("batch", "reference"),
            doc="baseline subtracted from a row's loss before it is weighted: none (the means of "
            "the batch itself cancel), or the mean loss of 1,024 fixed rows (Applebaum et al. 2025)",
            omit_default=True,
        ),
    ),
    settings=NETWORK,
    family="unbiased row loss",
    citation="Busa-Fekete, Choi, Dick, Gentile, Medina 2023, Easy learning from label proportions; center=reference: "
    "Applebaum, Dick, Gentile, Kaplan, Koren 2025, Optimal learning from label proportions with general loss functions",
    paper="https://arxiv.org/abs/2302.03115",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``easyllp``."""
    return [EASYLLP]
