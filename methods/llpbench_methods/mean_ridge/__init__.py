"""Bayesian linear regression from bag means to bag proportions: closed form, about a second."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl

MEAN_RIDGE = MethodSpec(
    name="mean-ridge",
    factory="llpbench_methods.mean_ridge.method:MeanRidge",
    summary="Bayesian ridge regression of proportions on bag means, with the prior chosen by its evidence",
    family="bag means",
    params=(
        Param(
            "choice",
            "evidence",
            choices=("evidence", "validation"),
            doc="how penalty and gamma are chosen when not given: marginal likelihood of the training bags, or "
            "likelihood of the validation bags",
        ),
        Param(
            "penalty",
            None,
            low=1e-8,
            high=1e8,
            log=True,
            doc="ridge penalty p(1-p)/s^2; chosen automatically if none",
        ),
        Param(
            "gamma",
            None,
            low=0.0,
            high=4.0,
            doc="weight of the leading principal components (0 whitened, 1 unchanged); chosen automatically if none",
        ),
    ),
    tasks=("binary", "multiclass"),
    scores="probability",
    quick=True,
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``mean-ridge``."""
    return [MEAN_RIDGE]
