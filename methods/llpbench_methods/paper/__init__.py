"""The numbers printed in the paper, to be shown beside ours (``results.toml``, read when they are asked for)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llpbench import Reference, hookimpl

BOUND = "Instance-MLP"


@hookimpl
def llpbench_references() -> list[Reference]:
    """Every value of the paper's tables of AUROC, accuracy, noise and pseudo-labels."""
    facts = tomllib.loads((Path(__file__).parent / "results.toml").read_text(encoding="utf-8"))
    return list(_references(facts))


def _references(facts: dict[str, Any]) -> Iterator[Reference]:
    for dataset, value in facts["bounds"].items():
        yield _reference(facts, dataset, BOUND, value, metric="auroc", bound=True)
    tables = [({"metric": metric}, facts[metric]) for metric in ("auroc", "accuracy")]
    tables += [({"metric": "auroc", "noise": level}, found) for level, found in facts["noise"].items()]
    tables += [({"metric": "pseudo_labels", "stage": "iteration-1"}, facts["pseudo"])]
    for where, dataset, methods in ((where, *item) for where, found in tables for item in found.items()):
        for title, cells in methods.items():
            for size, value in cells.items():
                yield _reference(facts, dataset, title, value, bag_size=int(size), **where)


def _reference(facts: dict[str, Any], dataset: str, title: str, value: Any, **where: Any) -> Reference:
    note = facts["notes"][value] if isinstance(value, str) else ""
    mean, sd = (None, None) if note else value if isinstance(value, list) else (value, None)
    return Reference(
        source=facts["source"],
        rule=facts["rule"],
        dataset=facts["datasets"].get(dataset, dataset),
        title=title,
        method=facts["methods"][title],
        mean=None if mean is None else mean / 100,
        sd=None if sd is None else sd / 100,
        note=note,
        **where,
    )
