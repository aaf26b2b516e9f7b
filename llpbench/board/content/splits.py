"""What cells of one split must have in common: labels of the test rows, numbers of rows and bags.

All methods see the same split, and the same bags for the same bag size. So every cell is a witness for the others: one
that was judged on other labels, on fewer rows or with more bags than the rest did not run on this data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from llpbench.board.content.bootstrap import Replicates
from llpbench.board.validate import Unsound
from llpbench.contracts.cell import USUAL, Cell
from llpbench.contracts.result import CellResult
from llpbench.results.table import bags_key


@dataclass
class Splits:
    """What is known of the splits of a leaderboard; each fact with the cell that told it first."""

    _facts: dict[tuple[str, str], tuple[object, str]] = field(default_factory=dict)

    def check(self, result: CellResult, replicates: Replicates | None) -> None:
        """Refuse a result that contradicts a cell of the same split."""
        for key, (words, value) in _facts_of(result, replicates).items():
            known, witness = self._facts.get(key, (value, ""))
            if known != value:
                raise Unsound(f"its {words} are not those of cell {witness}, which is of the same split")

    def add(self, result: CellResult, replicates: Replicates | None) -> None:
        """Remember what a sound result tells."""
        for key, (_, value) in _facts_of(result, replicates).items():
            self._facts.setdefault(key, (value, result.id))

    def test_labels(self, cell: Cell, seed: int) -> object:
        """What is known of the test labels of a cell's data at a seed: a digest, or None."""
        place = _split(cell, seed)
        for kind in ("labels", "short"):
            if (place, kind) in self._facts:
                return kind, self._facts[place, kind][0]
        return None


def _split(cell: Cell, seed: int) -> str:
    """What decides which rows are test rows: data and seed, and the bags where these are split as a whole."""
    bags = () if cell.split == USUAL.split else (cell.split, *bags_key(cell), cell.feature_noise)
    return repr((cell.dataset, sorted(cell.dataset_options.items()), seed, *bags))


def _facts_of(result: CellResult, replicates: Replicates | None) -> dict[tuple[str, str], tuple[str, object]]:
    cell = result.cell
    place = _split(cell, cell.seed)
    formed = repr((place, *bags_key(cell), cell.feature_noise))
    facts: dict[tuple[str, str], tuple[str, object]] = {(place, "rows"): ("numbers of rows", dict(result.rows))}
    if digest := result.digests.get("test_labels"):
        facts[place, "labels"] = ("labels of the test rows", digest)
    if replicates is not None:
        facts[place, "short"] = ("labels of the test rows", replicates.test)
    facts |= {(formed, f"{part} bags"): ("numbers of bags", number) for part, number in result.bags.items()}
    if digest := result.digests.get("test_bags"):
        facts[formed, "test bags of rows"] = ("bags of the test rows", digest)
    if result.rate:
        noise = repr((formed, cell.noise, cell.delta, cell.mechanism))
        facts[noise, "rate"] = ("known rates", [f"{share:.9f}" for share in result.rate])
    if result.card is not None:
        facts[formed, "card"] = ("numbers of the bag card", _rounded(msgspec.to_builtins(result.card)))
    return facts


def _rounded(content: Any) -> Any:
    """Numbers with six digits: machines may differ in the last ones of a sum."""
    if isinstance(content, dict):
        return {key: _rounded(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_rounded(value) for value in content]
    return f"{content:.6g}" if isinstance(content, float) else content
