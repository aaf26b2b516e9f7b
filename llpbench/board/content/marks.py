"""Verification marks: which published cells were reproduced, when, by which code, and with which outcome.

Marks are stored beside the cells (``verified/<dataset>.jsonl``). A mark holds a digest of the numbers it confirms and
is invalid once they change. Cells marked ``equal`` or ``close``, without a doubt on fresh seeds, count as verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from llpbench.board.validate import Unsound, check_id, check_values, clip
from llpbench.contracts.result import CellResult
from llpbench.results.sealing import digest

if TYPE_CHECKING:
    from llpbench.board.content.lines import Line

_DIGITS = 16


class FreshMark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The setting of a cell on fresh seeds: means of its AUROC in percent, and whether they agree.

    ``p`` is corrected for the comparisons of its verification; None when there was nothing to judge it by.
    """

    rule: str
    seeds: list[int]
    published: float
    fresh: float
    p: float | None
    agrees: bool


class Mark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The outcome of reproducing a published cell.

    Attributes:
        numbers: digest of the published numbers that were compared (``digest_of_numbers``).
        at: when, in UTC.
        outcome: ``equal`` to the bit, ``close`` (within the tolerance), or ``differs``.
        code: the code that reproduced it, by part.
        machine: the type of machine that reproduced it.
        changed: what has changed since the cell was made (machine, versions, flags).
        fresh: the tests of its setting on fresh seeds.
    """

    id: str
    numbers: str
    at: str
    outcome: Literal["equal", "close", "differs"]
    code: dict[str, str] = {}
    machine: str = ""
    changed: list[str] = []
    fresh: list[FreshMark] = []

    @property
    def verified(self) -> bool:
        """Whether the cell was reproduced and agrees on fresh seeds."""
        return self.outcome != "differs" and all(test.agrees for test in self.fresh)


def digest_of_numbers(result: CellResult, *, metrics_only: bool = False) -> str:
    """Return a digest of everything that is compared when a cell is reproduced; display names are not.

    With ``metrics_only`` it is that of marks made before stages, pseudo-labels, rate and bag card were compared.
    """
    metrics = {rule: chosen.metrics for rule, chosen in result.selected.items()}
    compared = [result.id, metrics, result.seeds, result.rows, result.bags, result.count_sd, result.digests]
    if not metrics_only:
        compared += [result.stages, result.pseudo_labels, result.rate, result.card]
    return digest(msgspec.json.encode(compared, order="sorted"), _DIGITS)


def decode_mark(data: bytes) -> Mark:
    """Read one mark; raise ``Unsound`` if it is invalid."""
    try:
        mark = msgspec.json.decode(data, type=Mark)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unsound(f"invalid verification mark ({clip(str(error), 200)})") from None
    check_id(mark.id)
    check_values(msgspec.to_builtins(mark))
    return mark


def check_marks(marks: Mapping[str, Mark], lines: Mapping[str, Line]) -> list[str]:
    """Return a problem for each mark whose cell is missing, has no number, or has changed since."""
    problems = []
    for cell_id, mark in sorted(marks.items()):
        line = lines.get(cell_id)
        if line is None:
            problems.append(f"mark of cell {cell_id}: no such cell is published")
        elif line.result.status != "ok":
            problems.append(f"mark of cell {cell_id}: the cell has no number")
        elif mark.numbers not in {digest_of_numbers(line.result, metrics_only=older) for older in (False, True)}:
            problems.append(f"mark of cell {cell_id}: the numbers of the cell have changed since it was verified")
    return problems
