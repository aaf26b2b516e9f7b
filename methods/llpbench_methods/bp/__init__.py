"""The method `bp`: pseudo-labels by belief propagation, then a network on them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from llpbench import BACKENDS, LLPWarning, MethodSpec, hookimpl

if TYPE_CHECKING:
    from llpbench import Bags, FloatArray


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


@hookimpl
def llpbench_joint_posterior(bags: Bags, log_odds: FloatArray) -> FloatArray:
    """Belief propagation over the counting factors of all groupings."""
    import numpy as np

    from llpbench_methods.inference import decode, lambda_of_noise

    odds, counts = (np.asarray(values, np.float64) for values in (log_odds, bags.counts))
    rates = np.clip(np.asarray(bags.prior, np.float64), 0.5 / len(bags.X), 1.0 - 0.5 / len(bags.X))
    weights = lambda_of_noise(bags.count_sds)
    found = decode(odds, bags.members, bags.offsets, bags.grouping_of, counts, weights, rates)
    if not found.converged:
        text = "belief propagation over the tables of counts did not settle: probabilities of rows are approximate."
        warnings.warn(text, LLPWarning, stacklevel=2)
    p = found.probabilities
    return np.column_stack([1.0 - p, p]) if p.shape[1] == 1 else p
