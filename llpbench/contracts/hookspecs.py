"""The hooks a plugin may implement: signatures and one paragraph each. Prose is in ``docs/plugins.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from llpbench.contracts.cell import Cell
    from llpbench.contracts.data import Bags, FloatArray
    from llpbench.contracts.result import CellResult
    from llpbench.contracts.specs import (
        BagScheme,
        DatasetSpec,
        ExecutorSpec,
        MethodSpec,
        MetricSpec,
        Reference,
        RuleSpec,
    )
    from llpbench.experiment.suites.file import Suite
    from llpbench.plugins.registry import Registry
    from llpbench.report.results import Results
    from llpbench.report.tables import Table

PROJECT = "llpbench"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def llpbench_methods() -> Iterable[MethodSpec]:  # type: ignore[empty-body]
    """Return the methods this plugin provides."""


@hookspec
def llpbench_datasets() -> Iterable[DatasetSpec]:  # type: ignore[empty-body]
    """Return the datasets this plugin provides."""


@hookspec
def llpbench_metrics() -> Iterable[MetricSpec]:  # type: ignore[empty-body]
    """Return the metrics this plugin provides; every metric is computed for every cell of its tasks."""


@hookspec
def llpbench_bag_schemes() -> Iterable[BagScheme]:  # type: ignore[empty-body]
    """Return the ways of forming bags this plugin provides."""


@hookspec
def llpbench_references() -> Iterable[Reference]:  # type: ignore[empty-body]
    """Return published numbers that tables and leaderboards may show beside results made here."""


@hookspec
def llpbench_selection_rules() -> Iterable[RuleSpec]:  # type: ignore[empty-body]
    """Return the selection rules this plugin provides; every rule is applied to every cell."""


@hookspec
def llpbench_executors() -> Iterable[ExecutorSpec]:  # type: ignore[empty-body]
    """Return the executors this plugin provides, each with its own options."""


@hookspec
def llpbench_cell_finished(cell: Cell, result: CellResult) -> None:
    """Called for each cell as it ends, in a thread of the parent process.

    An error here is logged and harms nothing. A call that takes more than half a minute is given up: the plugin is then
    told of no further cells.
    """


@hookspec
def llpbench_run_finished(results: Results) -> str | None:
    """Act on a finished run, after its table is printed; a returned line is shown to the user. Errors are logged."""


@hookspec
def llpbench_published_results(folder: Path | None) -> Iterable[CellResult]:  # type: ignore[empty-body]
    """Return published results: those of a leaderboard folder, or of the default leaderboard if None."""


@hookspec
def llpbench_table_kinds() -> Mapping[str, str]:  # type: ignore[empty-body]
    """Return kinds of tables for ``llpbench table --kind``: the name and ``module:function`` of each.

    The function is called with the store, the planned cells, the results, what is wanted (metric and rules) and the
    registry, and returns a list of tables.
    """


@hookspec(firstresult=True)
def llpbench_suite_tables(
    suite: Suite,
    part: str,
    own: list[CellResult],
    published: list[CellResult],
    metric: str,
    rule: str,
    fmt: str,
    registry: Registry,
) -> list[Table] | str | None:
    """Return the tables of a suite for the terminal, or as text in another format (``llpbench table --suite``)."""


@hookspec(firstresult=True)
def llpbench_joint_posterior(bags: Bags, log_odds: FloatArray) -> FloatArray | None:
    """Return the probabilities (n, C) of rows given the counts of all bags that they are in (``Bags.overlap``).

    ``log_odds`` are those of class 1, (n, 1), or of each of several classes against the rest, (n, C), without the
    counts. An ``LLPWarning`` says that the probabilities are only approximate.
    """


@hookspec
def llpbench_commands(group: click.Group) -> None:
    """Add verbs to the command line (``group.add_command``)."""
