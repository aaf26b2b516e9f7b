"""The harness's own plugin: metrics, bag schemes, selection rules and executors, registered like anyone else's."""

from __future__ import annotations

from llpbench.contracts.hookspecs import hookimpl
from llpbench.contracts.specs import DEFAULT_RULE, OWN_BAGS, BagScheme, ExecutorSpec, MetricSpec, Param, RuleSpec

_DECIDED = "positive are the highest scores, as many as the known rate says"


@hookimpl
def llpbench_metrics() -> list[MetricSpec]:
    """Scores on test rows, per selection rule."""
    return [
        MetricSpec(
            name="auroc",
            factory="llpbench.experiment.metrics:auroc",
            summary="area under the ROC curve",
            title="AUROC",
        ),
        MetricSpec(
            name="average_precision",
            factory="llpbench.experiment.metrics:average_precision",
            summary="area under the precision-recall curve",
        ),
        MetricSpec(
            name="accuracy",
            factory="llpbench.experiment.metrics:accuracy",
            summary="share of rows whose most probable class is right",
            needs="probabilities",
        ),
        MetricSpec(
            name="log_loss",
            factory="llpbench.experiment.metrics:log_loss",
            summary="mean negative log-probability of the true class",
            needs="probabilities",
            higher_is_better=False,
            percent=False,
        ),
        MetricSpec(
            name="f1",
            factory="llpbench.experiment.metrics:f1",
            summary=f"F1 of class 1 (several classes: the mean over classes); {_DECIDED}",
            title="F1",
            needs="decisions",
        ),
        MetricSpec(
            name="macro_f1",
            factory="llpbench.experiment.metrics:macro_f1",
            summary=f"mean over classes of their F1; {_DECIDED}",
            title="macro-F1",
            needs="decisions",
        ),
        MetricSpec(
            name="balanced_accuracy",
            factory="llpbench.experiment.metrics:balanced_accuracy",
            summary=f"mean over classes of the share of their rows that is found; {_DECIDED}",
            needs="decisions",
        ),
        MetricSpec(
            name="brier",
            factory="llpbench.experiment.metrics:brier",
            summary="mean squared error of the probabilities",
            title="Brier score",
            needs="probabilities",
            higher_is_better=False,
            percent=False,
        ),
        MetricSpec(
            name="ece",
            factory="llpbench.experiment.metrics:expected_calibration_error",
            summary="expected calibration error: mean gap of probability and frequency in 15 bins of equal width",
            title="calibration error",
            needs="probabilities",
            higher_is_better=False,
        ),
        MetricSpec(
            name="test_bag_error",
            factory="llpbench.experiment.metrics:share_error",
            summary="mean absolute error of predicted proportions of test bags (same scheme and size as training bags)",
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
            factory="llpbench.experiment.schemes:random_bags",
            summary="disjoint bags drawn without replacement (the paper's)",
        ),
        BagScheme(
            name="random-uneven",
            factory="llpbench.experiment.schemes:uneven_bags",
            summary="random bags whose sizes vary around the given one",
            params=(Param("spread", 0.5, low=0.0, high=1.0, doc="sizes lie within bag_size * (1 +- spread)"),),
        ),
        BagScheme(
            name="by-feature",
            factory="llpbench.experiment.schemes:feature_bags",
            summary="rows that share a column's value, or a cluster, fall together",
            params=(
                Param("column", "", doc="name of a column; empty: k-means clusters of the rows"),
                Param("clusters", 16, low=2, high=10_000, doc="number of clusters when no column is named"),
            ),
        ),
        BagScheme(
            name="group-by",
            factory="llpbench.experiment.schemes:group_bags",
            check="llpbench.experiment.schemes:check_groups",
            summary="one bag for each value of a column, or combination of values of several; sizes as they come",
            sizes_itself=True,
            params=(
                Param("columns", "", doc="names of columns with + between them: education or education+sex"),
                Param("least", 50, low=1, high=10**9, doc="groups of fewer rows are in no bag"),
                Param("most", 2500, low=1, high=10**9, doc="groups of more rows are in no bag"),
            ),
        ),
        BagScheme(
            name="cluster-dirichlet",
            factory="llpbench.experiment.schemes:cluster_dirichlet_bags",
            summary="each bag draws its mixture of k-means clusters from a Dirichlet",
            params=(
                Param("clusters", 16, low=2, high=10_000, doc="number of clusters"),
                Param("total", 1.0, low=1e-3, high=1e6, doc="sum of the Dirichlet's parameters; large: random bags"),
            ),
        ),
        BagScheme(
            name="proportion-dirichlet",
            factory="llpbench.experiment.schemes:proportion_dirichlet_bags",
            summary="each bag draws its class shares from a Dirichlet; uses labels to form bags",
            uses_labels=True,
            params=(
                Param(
                    "concentration",
                    10.0,
                    low=1e-3,
                    high=1e6,
                    doc="sum of the Dirichlet's parameters: proportions have the variance p (1 - p) / (this + 1)",
                ),
            ),
        ),
        BagScheme(
            name=OWN_BAGS,
            factory="llpbench.experiment.schemes:own_bags",
            summary="the bags a dataset brings itself, of the sizes they have",
            own=True,
            sizes_itself=True,
            params=(Param("most", 0, low=0, high=10**9, doc="bags of more rows are cut at random; 0: none is cut"),),
        ),
    ]


@hookimpl
def llpbench_selection_rules() -> list[RuleSpec]:
    """What anyone with counts can do, what papers do with labels, and what suits natural bags."""
    return [
        RuleSpec(
            name=DEFAULT_RULE,
            factory="llpbench.experiment.rules:bag_cross_entropy",
            summary="cross-entropy of held-back bags' mean predictions, brought to the known rate: needs no label",
            title="cross-entropy",
            higher_is_better=False,
            version=2,
        ),
        RuleSpec(
            name="bags-cv",
            factory="llpbench.experiment.rules:bag_cross_entropy",
            summary="rule bags on k folds over all bags, for cells that are fitted k more times (--folds K)",
            title="cross-entropy",
            higher_is_better=False,
            cross_validated=True,
        ),
        RuleSpec(
            name="instances",
            factory="llpbench.experiment.rules:instance_auroc",
            summary="AUROC on the labels of held-back rows: what the paper did; in practice there are no such labels",
            title="AUROC",
            uses_labels=True,
        ),
        RuleSpec(
            name="counts",
            factory="llpbench.experiment.count_likelihood:count_log_likelihood",
            summary="likelihood of held-back counts, brought to the known rate, a bag effect integrated out",
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
            factory="llpbench.execution.local:LocalExecutor.from_settings",
            summary="processes of this machine, as many as it has cores for",
        ),
    ]
