"""Every hook beside methods and datasets, in the smallest form that does something."""

import os
from pathlib import Path

import click

from llpbench import BagScheme, ExecutorSpec, MetricSpec, Param, RuleSpec, hookimpl


@hookimpl
def llpbench_metrics():
    """Bring a metric."""
    return [
        MetricSpec(
            name="positive_share",
            factory="llp_extras.pieces:positive_share",
            summary="share of test rows that are given class 1",
            needs="probabilities",
        )
    ]


@hookimpl
def llpbench_bag_schemes():
    """Bring a way of forming bags."""
    stride = Param("stride", 1, low=1, high=1000, doc="rows that far apart share a bag")
    return [BagScheme(name="in-order", factory="llp_extras.pieces:in_order", params=(stride,))]


@hookimpl
def llpbench_selection_rules():
    """Bring a selection rule."""
    return [
        RuleSpec(
            name="bag-error",
            factory="llp_extras.pieces:largest_bag_error",
            summary="largest error of a held-out bag's proportion",
            title="largest error",
            higher_is_better=False,
        )
    ]


@hookimpl
def llpbench_executors():
    """Bring an executor with an option of its own: cells run in this very process, one after the other."""
    greeting = Param("greeting", "", doc="printed before each cell")
    return [ExecutorSpec(name="inline", factory="llp_extras.inline:InlineExecutor", params=(greeting,))]


@hookimpl
def llpbench_cell_finished(cell, result):
    """Append a line for each cell to the file named by ``LLP_EXTRAS_LOG``."""
    path = os.environ.get("LLP_EXTRAS_LOG")
    if path:
        with Path(path).open("a") as file:
            file.write(f"{cell.method} {cell.dataset} {cell.bag_size} {cell.seed} {result.status}\n")


@hookimpl
def llpbench_commands(group):
    """Add the verb ``hello``."""

    @group.command("hello")
    @click.argument("name", default="world")
    def hello(name):
        """Greet somebody."""
        click.echo(f"hello {name}")
