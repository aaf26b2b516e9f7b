"""The command that makes a published setting again."""

from __future__ import annotations

import shlex

from llpbench.contracts.cell import USUAL, Cell
from llpbench.contracts.errors import UsageError
from llpbench.contracts.result import CellResult
from llpbench.plugins.options import format_options, parse_options


def command(result: CellResult, seeds: int) -> str:
    """The command that runs a setting with all its seeds."""
    cell = result.cell
    dataset = result.dataset_label.split(", ")[0]
    words = ["llpbench", "run", "--methods", _method_word(result.label, cell), "--datasets", dataset]
    words += [] if result.oracle else ["--bags", str(cell.bag_size)]
    words += ["--seeds", str(seeds)]
    if cell.scheme != USUAL.scheme:
        words += ["--schemes", format_options(cell.scheme, cell.scheme_options)]
    if cell.noise != "none":
        words += ["--noise", cell.noise]
        words += ["--delta", f"{cell.delta:g}"] if cell.delta != USUAL.delta else []
        words += ["--mechanism", cell.mechanism] if cell.mechanism != USUAL.mechanism else []
    words += ["--feature-noise", f"{cell.feature_noise:g}"] if cell.feature_noise else []
    words += ["--backend", cell.backend] if cell.backend not in ("", "jax") else []
    words += ["--preset", cell.preset] if cell.preset and f"preset={cell.preset}" in result.label else []
    return shlex.join(words)


def _method_word(label: str, cell: Cell) -> str:
    """The label as typed: a preset is an option of the run, not of the method."""
    label = label.split(" (settings of ")[0]
    if not cell.preset:
        return label
    try:
        name, options = parse_options(label)
    except UsageError:  # a label from elsewhere that nobody could type
        return label
    if "preset" not in options:  # parameters that a search found: all are stated
        return format_options(cell.method, {key: value for key, value in cell.params.items() if value is not None})
    kept = [f"{key}={';'.join(values)}" for key, values in options.items() if key != "preset"]
    return f"{name}[{';'.join(kept)}]" if kept else name
