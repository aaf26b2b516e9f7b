"""The harness's own plugin: metrics, bag schemes, selection rules and executors, registered like anyone else's."""

from __future__ import annotations

from llpbench.contracts.hookspecs import hookimpl
from llpbench.contracts.specs import DEFAULT_RULE, OWN_BAGS, BagScheme, ExecutorSpec, MetricSpec, Param, RuleSpec


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
            name=OWN_BAGS,
            factory="llpbench.experiment.schemes:own_bags",
            summary="the bags a dataset brings itself; those above the bag size are cut at random",
            own=True,
        ),
    ]


@hookimpl
def llpbench_selection_rules() -> list[RuleSpec]:
    """What a user of LLP can do, what the literature does, and what a user with natural bags may want."""
    return [
        RuleSpec(
            name=DEFAULT_RULE,
            factory="llpbench.experiment.rules:bag_cross_entropy",
            summary="cross-entropy of held-back bags' mean predictions, brought to the known rate: what a user has",
            title="cross-entropy",
            higher_is_better=False,
            version=2,
        ),
        RuleSpec(
            name="instances",
            factory="llpbench.experiment.rules:instance_auroc",
            summary="AUROC on the labels of held-back rows: what the paper did, and what a user of LLP cannot do",
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
    """Cells on this machine, or on a Dask cluster."""
    return [
        ExecutorSpec(
            name="local",
            factory="llpbench.execution.local:LocalExecutor.from_settings",
            summary="processes of this machine, as many as it has cores for",
        ),
        ExecutorSpec(
            name="dask",
            factory="llpbench.execution.dask:DaskExecutor.from_settings",
            summary="a Dask cluster: SLURM, Kubernetes, SSH, or several processes here",
            params=(
                Param("scheduler", "", doc="address or scheduler file of a running cluster; empty starts one here"),
            ),
            requires=("distributed",),
        ),
    ]
