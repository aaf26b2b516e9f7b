"""Published numbers beside ours: which one belongs to which entry of a table."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from llpbench.contracts.errors import UsageError
from llpbench.contracts.specs import Reference
from llpbench.plugins.options import format_options, parse_options
from llpbench.results.table import Row

ORIGINS = ("preset", "params")
"""Options of a label that name where parameters come from: a preset, or a search."""


def references_of(references: Iterable[Reference], dataset: str) -> list[Reference]:
    """The references for a dataset's label: of exactly that label, else of the dataset under any options.

    A label with conditions (``adult, by-feature``) is another task and has none unless it is named.
    """
    known = list(references)
    exact = [r for r in known if r.dataset == dataset]
    if exact or ", " in dataset:
        return exact
    return [r for r in known if r.dataset == dataset.partition("[")[0]]


def matches(reference: Reference, method: str, bag_size: int, noise: str, metric: str) -> bool:
    """Whether a reference is for this entry. A preset or a search for parameters does not make another method of it."""
    return (
        reference.metric == metric
        and reference.noise == noise
        and (reference.bag_size is None or reference.bag_size == bag_size)
        and (reference.method == method or (bool(reference.method) and reference.method == without_preset(method)))
    )


def without_preset(label: str) -> str:
    """A label without where its parameters come from: ``a[lr=1;preset=paper]`` is ``a[lr=1]``."""
    if not label.endswith("]"):
        return label
    try:
        name, options = parse_options(label)
    except UsageError:  # a label from elsewhere that nobody could type
        return label
    return format_options(name, {key: ";".join(values) for key, values in options.items() if key not in ORIGINS})


def with_references(rows: Iterable[Row], references: Iterable[Reference], scale: float) -> list[Row]:
    """Rows with what a publication reports for each; ``scale`` is the metric's (100 where it is a share)."""
    known = list(references)
    by_dataset: dict[str, list[Reference]] = {}
    found = []
    for row in rows:
        if row.dataset not in by_dataset:
            by_dataset[row.dataset] = [r for r in references_of(known, row.dataset) if not r.stage]
        match = next(
            (r for r in by_dataset[row.dataset] if matches(r, row.method, row.bag_size, row.noise, row.metric)), None
        )
        if match is None or match.mean is None:
            found.append(row)
            continue
        sd = None if match.sd is None else match.sd * scale
        facts = {"paper": match.mean * scale, "paper_sd": sd, "paper_rule": match.rule, "paper_source": match.source}
        found.append(msgspec.structs.replace(row, **facts))
    return found
