"""The method `bp`: pseudo-labels by belief propagation, then a network on them."""

from __future__ import annotations

from llpbench import BACKENDS, MethodSpec, hookimpl


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``bp``."""
    from llpbench_methods.bp.params import bp_params
    from llpbench_methods.nets.params import NETWORK_PRELOAD

    spec = MethodSpec(
        name="bp",
        factory="llpbench_methods.bp.method:BP",
        summary="BP + Agg-Emb: belief propagation over neighbours and bags makes pseudo-labels for a network; iterated",
        family="belief propagation",
        params=bp_params(),
        tasks=("binary", "multiclass"),
        backends=BACKENDS,
        preload=(*NETWORK_PRELOAD, "llpbench_methods.bp.method", "llpbench_methods.inference.engines.pairwise"),
        presets=(
            ("paper", "llpbench_methods.bp.preset:paper"),
            ("released", "llpbench_methods.bp.preset:released"),
            ("no-pairs", "llpbench_methods.bp.preset:no_pairs"),
        ),
        scores="probability",
        overlapping=True,
        citation="Havaldar, Sharma, Sareen, Shanmugam & Raghuveer 2024, Learning from label proportions: "
        "bootstrapping supervised learners via belief propagation (ICLR)",
        paper="https://openreview.net/forum?id=KQe9tHd0k8",
        code="https://github.com/google-deepmind/llp_bp",
    )
    return [spec]
