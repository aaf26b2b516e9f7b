"""From results to tables: which metric, which selection rules, which kind, in which format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from llpbench.contracts.errors import UnknownNameError
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import Reference, Scalar
from llpbench.experiment.plan import Planned
from llpbench.plugins.registry import Registry
from llpbench.report import tables
from llpbench.report.levels import across_levels, on_common_seeds
from llpbench.report.notes import notes_on_defaults
from llpbench.results.metric_style import MetricStyle, known_styles
from llpbench.results.references import published_on, with_references
from llpbench.results.shared import RIVALS, Roles
from llpbench.results.table import Row, aggregate

KINDS = ("scores", "noise")
"""Kinds of tables that are made here; plugins add others."""
ALL_RULES = "all"


@dataclass(frozen=True)
class Wanted:
    """What to show: a metric under some rules, or a kind of table that needs neither.

    ``references`` are published values to show beside ours, ``roles`` says which registered names are controls,
    ``defaults`` are those of the parameters of each method.
    """

    metric: MetricStyle
    rules: Sequence[str]
    kind: str = "scores"
    references: Sequence[Reference] = field(default=())
    roles: Roles = RIVALS
    defaults: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)


def choose(
    registry: Registry,
    results: Iterable[CellResult],
    metric: str = "auroc",
    rule: str = ALL_RULES,
    kind: str = "scores",
    paper: bool = False,
) -> Wanted:
    """What to show, by name.

    ``rule="all"`` stands for every registered rule that results have numbers for, except those on request. If no result
    has a number, it stands for the rules that are applied to every cell.
    """
    styles = known_styles(registry.metrics.specs)
    if metric not in styles:
        raise UnknownNameError("metric", metric, styles)
    if styles[metric].cost:
        rules = [""]  # a cost depends on no rule
    elif rule == ALL_RULES:
        known = [spec for spec in registry.rules.specs if spec.name not in registry.rules_on_request]
        stated = {name for result in results for name in result.selected}
        shown = [spec for spec in known if spec.name in stated] or [spec for spec in known if not spec.cross_validated]
        rules = [spec.name for spec in shown]
    else:
        rules = [registry.rules[rule].name]
    references = registry.references() if paper else ()
    defaults = {spec.name: {p.name: p.default for p in spec.params} for spec in registry.methods.specs}
    return Wanted(styles[metric], rules, kind, references, Roles(controls=registry.controls), defaults)


def table_rows(planned: Iterable[Planned], results: Iterable[CellResult], wanted: Wanted) -> list[Row]:
    """Aggregated rows, with published values if there are any."""
    rows = aggregate(planned, results, [wanted.metric], wanted.rules, wanted.roles)
    return with_references(rows, wanted.references, wanted.metric.scale)


def make_tables(planned: Iterable[Planned], results: Iterable[CellResult], wanted: Wanted) -> list[tables.Table]:
    """The metric by bag size, or by noise level."""
    rows = table_rows(planned, results, wanted)
    build = tables.build_noise_tables if wanted.kind == "noise" else tables.build_tables
    return [_with_published(table, wanted) for table in build(rows, wanted.metric)]


def _with_published(table: tables.Table, wanted: Wanted) -> tables.Table:
    """The table with notes on defaults, and on publications that have numbers on the natural bags of its dataset."""
    notes = notes_on_defaults(table.methods, wanted.defaults)
    notes += published_on(wanted.references, table.about[0], table.rule, wanted.metric)
    return replace(table, notes=[*table.notes, *notes])


def render(planned: Iterable[Planned], results: Iterable[CellResult], wanted: Wanted, fmt: str) -> str:
    """Tables as text in one of the file formats: ``markdown``, ``latex``, ``csv``, ``json``."""
    if fmt in ("csv", "json"):
        rows = table_rows(planned, results, wanted)
        if wanted.kind == "noise":
            rows = [row for place in across_levels(rows) for row in on_common_seeds(place)]
        return tables.rows_as_text(rows, fmt)
    return tables_as_text(make_tables(planned, results, wanted), fmt)


def tables_as_text(built: Iterable[tables.Table], fmt: str) -> str:
    """Printed tables in one of the file formats."""
    if fmt in ("csv", "json"):
        return tables.entries_as_text(built, fmt)
    return tables.to_markdown(built) if fmt == "markdown" else tables.to_latex(built)
