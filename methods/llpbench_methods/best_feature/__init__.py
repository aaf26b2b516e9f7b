"""Control: the best single column, which shows what selection alone achieves."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl

BEST_FEATURE = MethodSpec(
    name="best-feature",
    factory="llpbench_methods.best_feature.method:BestFeature",
    summary="control: the single column, of either sign, with the best score under the selection rule",
    control=True,
    params=(
        Param(
            "signs",
            "both",
            choices=("both", "bags"),
            doc="try each column both ways, or only in the direction of its bag means",
        ),
        Param(
            "patience",
            1_000_000,
            low=1,
            high=1_000_000,
            log=True,
            doc="columns without improvement before the search ends; the default tries all",
            tune=False,
        ),
    ),
    tasks=("binary", "multiclass"),
    scores="probability",
)


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``best-feature``."""
    return [BEST_FEATURE]
