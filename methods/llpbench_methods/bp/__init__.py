"""The method `bp`, and the library it stands on: belief propagation on the Gibbs law of labels.

The public names (graph, model, engines, diagnostics) load on first use, so that importing the package costs nothing.
They are not in ``dir()``: whoever looks for hooks reads every name found there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from llpbench import MethodSpec, hookimpl

if TYPE_CHECKING:
    from llpbench_methods.bp.counting import bag_posterior, count_log_likelihood, counting_messages
    from llpbench_methods.bp.diagnostics import (
        SymmetricBag,
        auto_damping,
        critical_damping,
        damping_limit,
        mooij_kappen_bound,
        mooij_kappen_radius,
        nonbacktracking_radius,
        stability_index,
        symmetric_bag,
        uniform_contraction_bound,
    )
    from llpbench_methods.bp.graph import SimilarityGraph, build_graph, graph_of_neighbours
    from llpbench_methods.bp.inference import Marginals, OscillationWarning, marginals
    from llpbench_methods.bp.kernels import matern, rbf
    from llpbench_methods.bp.model import (
        GibbsModel,
        PottsModel,
        canonical_edges,
        gibbs_model,
        lambda_of_noise,
        one_hot,
        potts_model,
    )
    from llpbench_methods.bp.neighbours import Neighbours, nearest

__all__ = [
    "GibbsModel",
    "Marginals",
    "Neighbours",
    "OscillationWarning",
    "PottsModel",
    "SimilarityGraph",
    "SymmetricBag",
    "auto_damping",
    "bag_posterior",
    "build_graph",
    "canonical_edges",
    "count_log_likelihood",
    "counting_messages",
    "critical_damping",
    "damping_limit",
    "gibbs_model",
    "graph_of_neighbours",
    "lambda_of_noise",
    "marginals",
    "matern",
    "mooij_kappen_bound",
    "mooij_kappen_radius",
    "nearest",
    "nonbacktracking_radius",
    "one_hot",
    "potts_model",
    "rbf",
    "stability_index",
    "symmetric_bag",
    "uniform_contraction_bound",
]

_HOME = {
    "counting": ("bag_posterior", "count_log_likelihood", "counting_messages"),
    "diagnostics": (
        "SymmetricBag",
        "auto_damping",
        "critical_damping",
        "damping_limit",
        "mooij_kappen_bound",
        "mooij_kappen_radius",
        "nonbacktracking_radius",
        "stability_index",
        "symmetric_bag",
        "uniform_contraction_bound",
    ),
    "graph": ("SimilarityGraph", "build_graph", "graph_of_neighbours"),
    "kernels": ("matern", "rbf"),
    "inference": ("Marginals", "OscillationWarning", "marginals"),
    "model": (
        "GibbsModel",
        "PottsModel",
        "canonical_edges",
        "gibbs_model",
        "lambda_of_noise",
        "one_hot",
        "potts_model",
    ),
    "neighbours": ("Neighbours", "nearest"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


@hookimpl
def llpbench_methods() -> list[MethodSpec]:
    """The method ``bp``."""
    from llpbench_methods.bp.params import BP_PARAMS
    from llpbench_methods.nets.params import NETWORK_BACKENDS, NETWORK_PRELOAD

    spec = MethodSpec(
        name="bp",
        factory="llpbench_methods.bp.method:BP",
        summary="pseudo-labels by belief propagation over neighbours and bag counts, Agg-Emb network, iterated",
        params=BP_PARAMS,
        tasks=("binary", "multiclass"),
        backends=NETWORK_BACKENDS,
        preload=(*NETWORK_PRELOAD, "llpbench_methods.bp.method", "llpbench_methods.bp.engines.count"),
        presets=(("paper", "llpbench_methods.bp.preset:paper"),),
        scores="probability",
        citation="Havaldar, Sharma, Sareen, Shanmugam & Raghuveer 2024, Learning from label proportions: "
        "bootstrapping supervised learners via belief propagation (ICLR)",
    )
    return [spec]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
