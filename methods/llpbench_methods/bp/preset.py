"""`--preset paper`: the values the paper tuned, for each of its datasets and bag sizes (facts in `paper.toml`).

They are shown for study, not recommended. At large bags their `lambda_b` is far beyond what a damping of 0.5 can hold,
so belief propagation oscillates and its labels depend on the round it stops at; `paper.toml` lists where. They were
tuned on labels of validation rows. The size of the network is not part of the preset: it stays that of all methods
unless `bp[mlp=paper]` asks for the paper's.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from llpbench import UsageError

Scalar = bool | int | float | str | None


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("llpbench_methods.bp").joinpath("paper.toml").read_text(encoding="utf-8"))


def rows() -> list[tuple[str, int]]:
    """Every (dataset, bag size) that the paper tuned."""
    return [(name, int(size)) for name, table in _tables().items() if name != "common" for size in table]


def paper(dataset: str, bag_size: int) -> dict[str, Scalar]:
    """The parameters of `bp` for a dataset and bag size of the paper.

    Raises:
        UsageError: when the paper has no row for it; the message says which there are.
    """
    tables = _tables()
    known = {name: [size for other, size in rows() if other == name] for name in tables if name != "common"}
    if dataset not in known:
        raise UsageError(f"preset paper has no values for {dataset!r}. It has: {', '.join(known)}.")
    if bag_size not in known[dataset]:
        sizes = ", ".join(map(str, known[dataset]))
        raise UsageError(f"preset paper has no values for {dataset} at bag size {bag_size}. It has: {sizes}.")
    return {**tables["common"], **tables[dataset][str(bag_size)]}
