"""mean-map: logistic regression on class means estimated from bags (MM, LMM, AMM)."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl

MEAN_MAP = MethodSpec(
    name="mean-map",
    factory="llpbench_methods.mean_map.method:MeanMap",
    summary="logistic regression on class means estimated from bag means and proportions (MM, LMM, AMM)",
    family="bag means",
    params=(
        Param(
            "variant",
            "mm",
            choices=("mm", "lmm", "amm"),
            doc="how class means are estimated: mm, least squares over all bags; lmm, for each bag, similar in "
            "similar bags; amm, labels that match the counts, starting from mm and refined iteratively",
        ),
        Param(
            "penalty",
            None,
            low=1e-3,
            high=1e7,
            log=True,
            doc="ridge penalty of the regression; if none, the best of 1e5, 1e3 and 10 on held-out bags",
        ),
        Param("gamma", 10.0, low=1e-4, high=1e6, log=True, doc="lmm: how strongly the means of similar bags are tied"),
        Param("sigma", 1.0, low=1e-3, high=1e3, log=True, doc="lmm: distance of bag means at which bags are similar"),
        Param(
            "weighting",
            "rows",
            choices=("rows", "bags"),
            doc="units of equal weight in the least squares: rows or bags",
        ),
    ),
    tasks=("binary", "multiclass"),
    scores="probability",
    citation="Quadrianto, Smola, Caetano, Le 2009, Estimating labels from label proportions; Patrini, Nock, Rivera, "
    "Caetano 2014, (Almost) no label no cry",
    paper="https://proceedings.neurips.cc/paper/2014/hash/a8baa56554f96369ab93e4f3bb068c22-Abstract.html",
    code="https://github.com/giorgiop/almostnolabel",
    presets=(("authors", "llpbench_methods.mean_map:authors"),),
)


def authors(dataset: str, bag_size: int) -> dict[str, bool | int | float | str | None]:  # noqa: ARG001
    """``--preset authors``: the default arguments of the published code."""
    return {"penalty": 10.0, "gamma": 10.0, "sigma": 1.0, "weighting": "bags"}


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``mean-map``."""
    return [MEAN_MAP]
