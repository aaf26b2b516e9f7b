"""The spec of a table of the pack."""

from __future__ import annotations

from llpbench import DataFile, DatasetSpec, PackageSource, Param
from llpbench_datasets.options import encoding_param
from llpbench_datasets.pack.declared import DeclaredTable
from llpbench_datasets.pack.lists import list_of


def dataset_spec(table: DeclaredTable) -> DatasetSpec:
    """The dataset that a description declares; no data file is read."""
    file = table.file
    origin = PackageSource(file.registry, file.package, (file.member,))
    rate = table.positive / table.rows
    bags = Param(
        "bags",
        "none",
        choices=(*table.bags, "none"),
        doc="what defines a bag; with none, bags are drawn. Rows without a group, or of a group of fewer than 10 rows, "
        "are then left out",
    )
    return DatasetSpec(
        name=table.name,
        factory=f"llpbench_datasets.pack.load:LOADERS.{table.name}",
        summary=f"{table.summary} {_percent(rate)} % positive ({list_of(table.source)} list)",
        params=(
            *((bags,) if table.bags else ()),
            Param("rows", 0, low=0, high=table.rows, doc=f"number of rows drawn from the {table.rows:,}; 0 uses all"),
            encoding_param(),
        ),
        requires=("pyarrow",) if file.format == "parquet" else (),
        rows=table.rows,
        columns=table.width,
        balance=(1 - rate, rate),
        split="random 60 / 20 / 20 %" + ("; with bags= whole bags in these shares" if table.bags else ""),
        files=(DataFile(file.path, file.sha256, file.size, packages=(origin,)),),
        licence=table.licence,
        homepage=table.homepage,
        citation=table.citation,
        own_bags="bags" if table.bags else "",
        source=table.source,
        evaluation_only=list_of(table.source) == "evaluation",
    )


def _percent(rate: float) -> str:
    return f"{100 * rate:.0f}" if rate >= 0.1 else f"{100 * rate:.1f}"
