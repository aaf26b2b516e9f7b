"""What cells of one split must have in common: labels of the test rows, numbers of rows and bags.

All methods see the same split, and the same bags for the same bag size. A cell with other test labels or other numbers
of rows or bags was run on a different version of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from llpbench.board.content.bootstrap import Replicates
from llpbench.board.validate import Unsound
from llpbench.contracts.cell import USUAL, Cell
from llpbench.contracts.result import CellResult
from llpbench.results.table import bags_key


@dataclass
class Splits:
    """The facts of every split of a leaderboard, each with the cell that stated it first."""

    _facts: dict[tuple[str, str], tuple[object, str]] = field(default_factory=dict)

    def check(self, result: CellResult, replicates: Replicates | None) -> None:
        """Raise ``Unsound`` if a result contradicts a cell of the same split."""
        for key, (words, value) in _facts_of(result, replicates).items():
            known, first = self._facts.get(key, (value, ""))
            if known != value:
                raise Unsound(f"its {words} differ from those of cell {first}, which has the same split")

    def add(self, result: CellResult, replicates: Replicates | None) -> None:
        """Add the facts of a valid result."""
        for key, (_, value) in _facts_of(result, replicates).items():
            self._facts.setdefault(key, (value, result.id))

    def test_labels(self, cell: Cell, seed: int) -> object:
        """Return the digest of the test labels of a cell's data at a seed; None if unknown."""
        return self._facts.get((_split(cell, seed), "labels"), (None, ""))[0]


def _split(cell: Cell, seed: int) -> str:
    """What decides which rows are test rows: data and seed, and the bags if whole bags are split."""
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
    return facts
