"""Settings that name a file of somebody's own: nobody else can make such a cell, and no reviewer should open it."""

from __future__ import annotations

from collections.abc import Mapping

from llpbench.board.validate import Unsound, clip
from llpbench.contracts.cell import Cell
from llpbench.contracts.specs import BagScheme, DatasetSpec, MethodSpec, Scalar
from llpbench.plugins.registry import Registry


def check_no_own_files(cell: Cell, registry: Registry) -> None:
    """Refuse a cell with a setting that names a file which only its owner has; what is not installed is not known."""
    if cell.dataset in registry.datasets.entries:
        check_declared_files(registry.datasets[cell.dataset], cell.dataset_options)
    if cell.method in registry.methods.entries:
        check_declared_files(registry.methods[cell.method], cell.params)
    if cell.scheme in registry.schemes.entries:
        check_declared_files(registry.schemes[cell.scheme], cell.scheme_options)


def check_declared_files(spec: MethodSpec | DatasetSpec | BagScheme, given: Mapping[str, Scalar]) -> None:
    """Refuse a value that names a file (``Param.names_file``), but for the default and the files a dataset declares."""
    declared = {file.path for file in spec.files} if isinstance(spec, DatasetSpec) else set()
    declared |= {path.rpartition("/")[2] for path in declared}
    for param in spec.params:
        value = given.get(param.name, param.default)
        if param.names_file and value != param.default and value not in declared:
            raise Unsound(
                f"{spec.name}[{param.name}={clip(str(value))}] names a file of your own, which nobody else has; "
                "publish the data as a dataset of a package (llpbench new dataset)"
            )
