"""Belief propagation on the Gibbs law of labels: graph, model, engines, diagnostics.

The public names load on first use, so that importing the package itself costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from llpbench_methods.bp.kernels import matern, rbf
    from llpbench_methods.bp.marginals import Marginals, OscillationWarning, marginals
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
    "marginals": ("Marginals", "OscillationWarning", "marginals"),
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


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
