"""Presets of `bp`: the values the paper tuned for each dataset and bag size, the released defaults, and no pairs.

`paper` follows the paper's equations and uses the released code where the text leaves a choice open. Its values were
tuned on labels of validation rows. At large bags their `lambda_b` is far beyond what a damping of 0.5 can hold, so
belief propagation oscillates and its labels depend on the round it stops at; `paper.toml` lists where. Both presets use
the paper's network, which has seven million weights: `bp[preset=paper;mlp=small]` is a hundred times cheaper. The
encodings of the paper are `marketing[encoding=released]` and `adult[encoding=ordinal]`.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from llpbench import UsageError

Scalar = bool | int | float | str | None
NOT_DATASETS = ("common", "released")
"""Tables of `paper.toml` that are not rows of a dataset."""


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("llpbench_methods.bp").joinpath("paper.toml").read_text(encoding="utf-8"))


def rows() -> list[tuple[str, int]]:
    """Every (dataset, bag size) that the paper tuned."""
    return [(name, int(size)) for name, table in _tables().items() if name not in NOT_DATASETS for size in table]


def paper(dataset: str, bag_size: int) -> dict[str, Scalar]:
    """The parameters of `bp` for a dataset and bag size of the paper.

    Raises:
        UsageError: when the paper has no row for it; the message says which there are.
    """
    tables = _tables()
    known = {name: [size for other, size in rows() if other == name] for name in tables if name not in NOT_DATASETS}
    if dataset not in known:
        raise UsageError(f"preset paper has no values for {dataset!r}. It has: {', '.join(known)}.")
    if bag_size not in known[dataset]:
        sizes = ", ".join(map(str, known[dataset]))
        raise UsageError(f"preset paper has no values for {dataset} at bag size {bag_size}. It has: {sizes}.")
    return {**tables["common"], **tables[dataset][str(bag_size)]}


def released(dataset: str, bag_size: int) -> dict[str, Scalar]:  # noqa: ARG001
    """The parameters of `bp` that do what the released code does with its defaults, for any data.

    It labels a row 1 at `p >= tau` (here `p > tau`) and keeps neighbours at less than `delta_d`.
    """
    return dict(_tables()["released"])


def no_pairs(dataset: str, bag_size: int) -> dict[str, Scalar]:  # noqa: ARG001
    """The parameters of `bp` without its similarity pairs: belief propagation inside bags alone, for any data."""
    return {"edges_kept": 0.0}
