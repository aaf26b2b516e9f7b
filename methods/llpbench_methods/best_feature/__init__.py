"""Control: the best single column, which shows what selection alone achieves."""

from __future__ import annotations

from llpbench import MethodSpec, Param, hookimpl

BEST_FEATURE = MethodSpec(
    name="best-feature",
    factory="llpbench_methods.best_feature.method:BestFeature",
    summary="control: the single feature, with either sign, that scores best under the selection rule",
    control=True,
    params=(
        Param(
            "signs",
            "both",
            choices=("both", "bags"),
            doc="try each column in both directions, or only in the direction that its bag means suggest",
        ),
        Param(
            "patience",
            1_000_000,
            low=1,
            high=1_000_000,
            log=True,
            doc="columns without improvement before the search stops; the default tries all columns",
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
