"""The pack: tables of package registries, each described by one file in ``tables/``."""

from __future__ import annotations

from llpbench import DatasetSpec, hookimpl
from llpbench_datasets.pack.declared import declared_tables
from llpbench_datasets.pack.spec import dataset_spec


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """One dataset for each file in ``tables/``."""
    return [dataset_spec(table) for table in declared_tables().values()]
