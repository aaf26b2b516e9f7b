"""EasyLLP: an instance loss whose targets are bag counts, corrected so that its mean is the true risk."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl
from llpbench_methods.nets.params import NetworkSettings, network_spec

NETWORK = NetworkSettings(lr=1e-4)
"""The shared settings with the rate that held-back bags chose (docs/terms.md)."""

EASYLLP = network_spec(
    "easyllp",
    "llpbench_methods.easyllp.method:EasyLLP",
    "instance loss with debiased bag counts as targets: an unbiased estimate of the risk",
    params=(
        Param(
            "reduction",
            "rows",
            choices=("rows", "bag_mean", "sample_one"),
            doc="what a batch is: rows of all bags, shuffled, each with its bag's target; or whole bags, of each the "
            "mean over its rows or one row drawn at random at every step",
        ),
        Param(
            "loss", "log", choices=("log", "square"), doc="instance loss: log-loss, or squared error of probabilities"
        ),
        Param(
            "remedy",
            "none",
            choices=("none", "absolute", "relu"),
            doc="keeps the loss of a batch from going below 0: its absolute value, or 0 instead",
        ),
        Param(
            "logit_clip",
            0.0,
            low=0.0,
            high=100.0,
            doc="logits are cut to plus or minus this in the loss; 0 leaves them",
        ),
        Param(
            "correction",
            False,
            doc="undo the shrinkage (N-k)/(N-1) of targets that comes from bags drawn without replacement",
        ),
        Param(
            "center",
            "batch",
            choices=("batch", "reference"),
            doc="what a row's loss is compared with before its bag's excess of a class weighs it: nothing (means of "
            "the batch itself would cancel), or the mean loss of 1,024 fixed rows (Applebaum et al. 2025)",
            omit_default=True,
        ),
    ),
    settings=NETWORK,
    citation="Busa-Fekete, Choi, Dick, Gentile, Medina 2023, Easy learning from label proportions; center=reference: "
    "Applebaum, Dick, Gentile, Kaplan, Koren 2025, Optimal learning from label proportions with general loss functions",
    paper="https://arxiv.org/abs/2302.03115",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``easyllp``."""
    return [EASYLLP]
