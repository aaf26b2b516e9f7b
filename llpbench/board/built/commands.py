"""The command that reproduces a published setting."""

from __future__ import annotations

import shlex
from collections.abc import Collection

from llpbench.contracts.cell import OWN_SIZES, USUAL, USUAL_BACKENDS
from llpbench.contracts.errors import UsageError
from llpbench.plugins.options import format_options, format_scalar, split_list
from llpbench.results.table import Group


def command(group: Group) -> str:
    """The command that runs a method in a setting with all its seeds."""
    cell = group.found[0].cell
    words = ["llpbench", "run", "--methods", _method(group), "--datasets", _dataset(group)]
    bound = group.oracle and cell.split == USUAL.split
    words += [] if bound or cell.bag_size == OWN_SIZES else ["--bags", str(cell.bag_size)]
    words += ["--seeds", typed_seeds({plan.cell.seed for plan in group.plans})]
    if cell.scheme != USUAL.scheme:
        words += ["--schemes", format_options(cell.scheme, cell.scheme_options)]
    words += ["--split", cell.split] if cell.split != USUAL.split else []
    if cell.noise != "none":
        words += ["--noise", cell.noise]
        words += ["--delta", format_scalar(cell.delta)] if cell.delta != USUAL.delta else []
        words += ["--mechanism", cell.mechanism] if cell.mechanism != USUAL.mechanism else []
    words += ["--feature-noise", format_scalar(cell.feature_noise)] if cell.feature_noise else []
    words += ["--folds", str(cell.folds)] if cell.folds else []
    words += ["--backend", cell.backend] if cell.backend not in USUAL_BACKENDS else []
    words += ["--preset", cell.preset] if cell.preset and group.options.get("preset") == cell.preset else []
    return shlex.join(words)


def typed_seeds(seeds: Collection[int]) -> str:
    """Seeds for the command line: their number if they are the first ones, else a range, else a list."""
    there = sorted(set(seeds))
    if not there:
        return "0"
    without_gap = there[-1] - there[0] + 1 == len(there)
    if without_gap and there[0] == 0:
        return str(len(there))
    return f"{there[0]}-{there[-1]}" if without_gap else ",".join(map(str, there))


def _method(group: Group) -> str:
    """The method with its options; parameters from a search are written out."""
    cell = group.found[0].cell
    if not cell.preset:
        return group.found[0].method_name
    if "preset" not in group.options:
        return format_options(cell.method, {key: value for key, value in cell.params.items() if value is not None})
    return format_options(cell.method, {key: value for key, value in group.options.items() if key != "preset"})


def _dataset(group: Group) -> str:
    """The dataset with its options, without bag scheme and feature noise."""
    name = group.found[0].dataset_name
    try:
        return split_list(name)[0]
    except UsageError:  # not a valid name
        return name
