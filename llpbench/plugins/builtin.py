"""The built-in plugin: metrics, bag schemes, selection rules and the local executor."""

from __future__ import annotations

from typing import Any

from llpbench.contracts.hookspecs import hookimpl
from llpbench.contracts.specs import DEFAULT_RULE, OWN_BAGS, BagScheme, ExecutorSpec, MetricSpec, Param, RuleSpec

_METRICS = "llpbench.experiment.metrics"
_SCHEMES = "llpbench.experiment.schemes"
_RULES = "llpbench.experiment.rules"
_CONCENTRATION = "sum of the Dirichlet's parameters: proportions have the variance p (1 - p) / (this + 1)"
_DECIDED = "the highest scores count as positive, as many as the known rate says"


def _metric(name: str, summary: str, function: str = "", **facts: Any) -> MetricSpec:
    return MetricSpec(name=name, factory=f"{_METRICS}:{function or name}", summary=summary, **facts)


@hookimpl
def llpbench_metrics() -> list[MetricSpec]:
    """Scores on test rows, for each selection rule."""
    probabilities: dict[str, Any] = {"needs": "probabilities"}
    decisions: dict[str, Any] = {"needs": "decisions"}
    loss: dict[str, Any] = {"higher_is_better": False, "percent": False}
    return [
        _metric("auroc", "area under the ROC curve", title="AUROC"),
        _metric("average_precision", "area under the precision-recall curve"),
        _metric("accuracy", "share of rows whose most probable class is correct", **probabilities),
        _metric("log_loss", "mean negative log-probability of the true class", **probabilities, **loss),
        _metric("f1", f"F1 of class 1 (several classes: mean over classes); {_DECIDED}", title="F1", **decisions),
        _metric("macro_f1", f"mean over classes of their F1; {_DECIDED}", title="macro-F1", **decisions),
        _metric("balanced_accuracy", f"mean over classes of their recall; {_DECIDED}", **decisions),
        _metric("brier", "mean squared error of the probabilities", title="Brier score", **probabilities, **loss),
        _metric(
            "ece",
            "expected calibration error: mean gap of probability and frequency in 15 bins of equal width",
            "expected_calibration_error",
            title="calibration error",
            higher_is_better=False,
            **probabilities,
        ),
        _metric(
            "test_bag_error",
            "mean absolute error of predicted proportions of test bags (same scheme and size as training bags)",
            "share_error",
            title="bag error on test bags",
            needs="bag_shares",
            higher_is_better=False,
        ),
    ]


@hookimpl
def llpbench_bag_schemes() -> list[BagScheme]:
    """Ways of forming bags."""
    return [
        BagScheme(
            name="random",
            factory=f"{_SCHEMES}:random_groupings",
            summary="disjoint bags drawn without replacement (as in the paper); several times: overlapping groupings",
            params=(
                Param("times", 1, low=1, high=1000, omit_default=True, doc="number of groupings, drawn independently"),
            ),
        ),
        BagScheme(
            name="random-uneven",
            factory=f"{_SCHEMES}:uneven_bags",
            summary="random bags whose sizes vary around the given one",
            params=(Param("spread", 0.5, low=0.0, high=1.0, doc="sizes lie within bag_size * (1 +- spread)"),),
        ),
        BagScheme(
            name="by-feature",
            factory=f"{_SCHEMES}:feature_bags",
            summary="rows that share a column's value, or a cluster, share a bag",
            params=(
                Param("column", "", doc="name of a column; empty: k-means clusters of the rows"),
                Param("clusters", 16, low=2, high=10_000, doc="number of clusters when no column is named"),
            ),
        ),
        BagScheme(
            name="group-by",
            factory=f"{_SCHEMES}:group_bags",
            check=f"{_SCHEMES}:check_groups",
            summary="one bag for each value of a column, or combination of values of several columns",
            sizes_itself=True,
            params=(
                Param("columns", "", doc="names of columns joined by +: education or education+sex"),
                Param("least", 50, low=1, high=10**9, doc="smaller groups are left out"),
                Param("most", 2500, low=1, high=10**9, doc="larger groups are left out"),
            ),
        ),
        BagScheme(
            name="margins",
            factory=f"{_SCHEMES}:margin_bags",
            check=f"{_SCHEMES}:check_margins",
            summary="a table for each column or crossing of columns: several groupings of the same rows",
            sizes_itself=True,
            params=(
                Param(
                    "columns", "*", doc="e.g. education,age:6,sex+race; :6 cuts a number into bands, * is all columns"
                ),
                Param("least", 1, low=1, high=10**9, doc="smaller groups are left out"),
            ),
        ),
        BagScheme(
            name="cluster-dirichlet",
            factory=f"{_SCHEMES}:cluster_dirichlet_bags",
            summary="each bag draws its mixture of k-means clusters from a Dirichlet",
            params=(
                Param("clusters", 16, low=2, high=10_000, doc="number of clusters"),
                Param("total", 1.0, low=1e-3, high=1e6, doc="sum of the Dirichlet's parameters; large: random bags"),
            ),
        ),
        BagScheme(
            name="proportion-dirichlet",
            factory=f"{_SCHEMES}:proportion_dirichlet_bags",
            summary="each bag draws its class shares from a Dirichlet; uses labels to form bags",
            uses_labels=True,
            params=(Param("concentration", 10.0, low=1e-3, high=1e6, doc=_CONCENTRATION),),
        ),
        BagScheme(
            name=OWN_BAGS,
            factory=f"{_SCHEMES}:own_bags",
            summary="the natural bags of a dataset, with their own sizes",
            own=True,
            sizes_itself=True,
            params=(Param("most", 0, low=0, high=10**9, doc="larger bags are divided at random; 0: none is divided"),),
        ),
    ]


@hookimpl
def llpbench_selection_rules() -> list[RuleSpec]:
    """Rules that need only counts, and the rule of papers, which uses labels."""
    return [
        RuleSpec(
            name=DEFAULT_RULE,
            factory=f"{_RULES}:bag_cross_entropy",
            summary="cross-entropy of held-out bags' mean predictions, shifted to the known rate: needs no label",
            title="cross-entropy",
            higher_is_better=False,
            version=2,
        ),
        RuleSpec(
            name="bags-cv",
            factory=f"{_RULES}:bag_cross_entropy",
            summary="rule bags by cross-validation over bags, for cells with k further fits (--folds K)",
            title="cross-entropy",
            higher_is_better=False,
            cross_validated=True,
        ),
        RuleSpec(
            name="instances",
            factory=f"{_RULES}:instance_auroc",
            summary="AUROC on the labels of held-out rows, as in the paper; in practice there are no such labels",
            title="AUROC",
            uses_labels=True,
        ),
        RuleSpec(
            name="counts",
            factory="llpbench.experiment.count_likelihood:count_log_likelihood",
            summary="likelihood of held-out counts, shifted to the known rate, with a bag effect integrated out",
            title="log-likelihood",
            on_request=True,
        ),
    ]


@hookimpl
def llpbench_executors() -> list[ExecutorSpec]:
    """Cells on this machine."""
    return [
        ExecutorSpec(
            name="local",
            factory="llpbench.execution.local:LocalExecutor",
            summary="processes on this machine, as many as it has cores for",
        ),
    ]
