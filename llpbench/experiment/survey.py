"""Bag cards of a dataset ahead of any run: what would the bags of this scheme and size be like?"""

from __future__ import annotations

from collections.abc import Iterator

from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.job import Job
from llpbench.experiment.fit_cell import card_of
from llpbench.experiment.forming import form_bags
from llpbench.experiment.grid import RunSpec, plan_bags
from llpbench.experiment.plan import Planned
from llpbench.experiment.split import load_split
from llpbench.plugins.registry import Registry


def survey_bags(
    spec: RunSpec, registry: Registry, *, data: str = "", offline: bool = False
) -> Iterator[tuple[Planned, BagCard]]:
    """The bags that a request would form, each with its card; no method is asked for and nothing is written.

    Args:
        spec: datasets, schemes, sizes, split and seeds; its methods are not looked at.
        registry: what is registered.
        data: folder with the data files.
        offline: never ask the network for data.
    """
    for plan in plan_bags(spec, registry):
        job = Job(cell=plan.cell, method_name="", dataset_name=plan.dataset_name, out="", data=data, offline=offline)
        split = load_split(job, registry.datasets[plan.cell.dataset])
        formed = form_bags(job, split, registry)
        yield plan, card_of(formed, uses_labels=registry.schemes[plan.cell.scheme].uses_labels)
