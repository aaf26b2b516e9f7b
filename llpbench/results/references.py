"""Match published numbers with the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from llpbench.contracts.specs import Reference
from llpbench.results.metric_style import MetricStyle
from llpbench.results.naming import named_options
from llpbench.results.table import Row

ORIGINS = ("preset", "params")
"""Options of a name that give the origin of parameters: a preset, or a search."""


def references_of(references: Iterable[Reference], dataset: str) -> list[Reference]:
    """The references for a dataset by its display name; other options, bags or rows make a different task."""
    return [r for r in references if r.dataset == dataset]


def reference_for(references: Sequence[Reference], row: Row) -> Reference | None:
    """The reference for a row among those of its dataset, preferably of the row's rule; None if there is none.

    A preset or a search does not make a different method; settings that a name had in the past do.
    """
    found = [r for r in references if not r.stage and _is_for(r, row)]
    return next((r for r in found if r.rule == row.rule), found[0] if found else None)


def published_on(references: Iterable[Reference], dataset: str, rule: str, style: MetricStyle) -> list[str]:
    """A line for each publication with numbers on the natural bags of a dataset: all its methods, best first."""
    lines: dict[str, list[Reference]] = {}
    for r in references:
        whole = r.bag_size is None and r.noise == "none" and not r.bound and not r.stage and r.mean is not None
        if whole and (r.dataset, r.rule, r.metric) == (dataset, rule, style.name):
            lines.setdefault(r.source, []).append(r)
    return [f"{source}: {', '.join(_best_first(found, style))}" for source, found in lines.items()]


def _best_first(references: list[Reference], style: MetricStyle) -> list[str]:
    values = sorted(((r.mean or 0.0, r.title) for r in references), reverse=style.higher_is_better)
    return [f"{title} {mean * style.scale:.{style.digits}f}" for mean, title in values]


def _is_for(reference: Reference, row: Row) -> bool:
    if reference.metric != row.metric or reference.noise != row.noise or row.settings_of or not reference.method:
        return False
    if reference.bag_size is not None and reference.bag_size != row.bag_size:
        return False
    name, options = _method_of(reference.method)
    given = {key: value for key, value in row.options.items() if key not in ORIGINS}
    return name == row.base_method and options in (row.options, given)


@lru_cache
def _method_of(name: str) -> tuple[str, dict[str, str]]:
    return name.partition("[")[0].strip(), named_options(name)


def with_references(rows: Iterable[Row], references: Iterable[Reference], scale: float) -> list[Row]:
    """Rows with their published values; ``scale`` is the metric's (100 for a share)."""
    known = list(references)
    by_dataset: dict[str, list[Reference]] = {}
    found = []
    for row in rows:
        if row.dataset not in by_dataset:
            by_dataset[row.dataset] = references_of(known, row.dataset)
        match = reference_for(by_dataset[row.dataset], row)
        if match is None or match.mean is None:
            found.append(row)
            continue
        sd = None if match.sd is None else match.sd * scale
        facts = {"paper": match.mean * scale, "paper_sd": sd, "paper_rule": match.rule, "paper_source": match.source}
        found.append(msgspec.structs.replace(row, **facts))
    return found
