"""Marks of verification: which published cells were made again, when, by which code, and what came out.

A mark lies in the leaderboards folder (``verified/<dataset>.jsonl``) beside the cells. It holds a digest of the numbers
that were confirmed, so it ends with them: a cell whose numbers are others now has no mark but an error. A cell may be
marked as differing, too; only ``equal`` and ``close`` without a doubt on fresh seeds count as verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from llpbench.board.schema.board import BoardRow, Verified
from llpbench.board.validate import Unsound, check_date, check_id, check_rules, check_values, clip
from llpbench.contracts.result import CellResult
from llpbench.results.sealing import digest

if TYPE_CHECKING:
    from llpbench.board.again.verify import FreshTest, Verification
    from llpbench.board.content.lines import Line

Outcome = Literal["equal", "close", "differs"]
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
    """What came out when a published cell was made again.

    Attributes:
        numbers: digest of the published numbers that were compared (``digest_of_numbers``).
        at: when, in UTC.
        outcome: ``equal`` to the bit, ``close`` (within the tolerance), or ``differs``.
        code: which code made it again, by part.
        machine: the kind of machine that made it again.
        changed: what was other than when the cell was made (machine, versions, flags).
        fresh: the tests of its setting on fresh seeds.
    """

    id: str
    numbers: str
    at: str
    outcome: Outcome
    code: dict[str, str] = {}
    machine: str = ""
    changed: list[str] = []
    fresh: list[FreshMark] = []

    @property
    def verified(self) -> bool:
        """Whether nothing speaks against the cell."""
        return self.outcome != "differs" and all(test.agrees for test in self.fresh)


def digest_of_numbers(result: CellResult) -> str:
    """A digest of all that is compared when a cell is made again. A cell that only gets another name keeps it."""
    metrics = {rule: chosen.metrics for rule, chosen in result.selected.items()}
    compared = [result.id, metrics, result.seeds, result.rows, result.bags, result.count_sd, result.digests]
    return digest(msgspec.json.encode(compared, order="sorted"), _DIGITS)


def make_marks(report: Verification, machine: str, now: datetime | None = None) -> dict[str, Mark]:
    """The marks of a verification, by cell."""
    at = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    marks = {}
    for result, verdict in report.remade:
        marks[result.id] = Mark(
            id=result.id,
            numbers=digest_of_numbers(result),
            at=at,
            outcome="equal" if verdict.equal else "close" if verdict.reproduced else "differs",
            code=dict(report.made[result.id].code),
            machine=machine,
            changed=list(verdict.changed),
            fresh=[_fresh_mark(test) for test in report.fresh if result.id in test.cells],
        )
    return marks


def _fresh_mark(test: FreshTest) -> FreshMark:
    ours, theirs = (round(sum(values) / len(values), 4) for values in (test.published, test.fresh))
    p = None if test.p is None else float(f"{test.p:.4g}")
    return FreshMark(rule=test.rule, seeds=list(test.seeds), published=ours, fresh=theirs, p=p, agrees=not test.doubt)


def decode_mark(data: bytes) -> Mark:
    """Read one line of marks, or raise ``Unsound``."""
    try:
        mark = msgspec.json.decode(data, type=Mark)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unsound(f"not a mark of verification ({clip(str(error), 200)})") from None
    check_id(mark.id)
    check_date(mark.at)
    check_values(msgspec.to_builtins(mark))
    check_rules(test.rule for test in mark.fresh)
    return mark


def check_marks(marks: Mapping[str, Mark], lines: Mapping[str, Line]) -> list[str]:
    """What is wrong with marks: cells that are not published, that were not to be run, or with other numbers now."""
    problems = []
    for cell_id, mark in sorted(marks.items()):
        line = lines.get(cell_id)
        if line is None:
            problems.append(f"mark of cell {cell_id}: no cell of that id is published")
        elif line.result.status != "ok" or line.result.predictions_only:
            problems.append(f"mark of cell {cell_id}: it is none that can be made again")
        elif mark.numbers != digest_of_numbers(line.result):
            problems.append(f"mark of cell {cell_id}: its numbers are others than those that were confirmed")
    return problems


def new_marks(marks: Mapping[str, Mark], before: Mapping[str, Mark]) -> list[str]:
    """Marks that a submission brings: nobody marks what they submit."""
    return [
        f"mark of cell {cell_id}: it is not on the leaderboard before; marks are made by reviewers, not submitted"
        for cell_id, mark in sorted(marks.items())
        if before.get(cell_id) != mark
    ]


def mark_rows(rows: Iterable[BoardRow], marks: Mapping[str, Mark]) -> None:
    """Say of each row, and of each entry, which of its cells were verified; nothing where none was looked at."""
    for row in rows:
        entries = [entry for cells in row.cells.values() for entry in cells.values()]
        for entry in entries:
            fine = [cell_id for cell_id in entry.seed_ids if cell_id in marks and marks[cell_id].verified]
            entry.verified = fine or msgspec.UNSET
        ids = list(dict.fromkeys(cell_id for entry in entries for cell_id in entry.seed_ids))
        found = [marks[cell_id] for cell_id in ids if cell_id in marks]
        if found:
            fine_cells = sum(mark.verified for mark in found)
            row.verified = Verified(
                cells=fine_cells,
                doubted=len(found) - fine_cells,
                of=len(ids),
                latest=max(mark.at for mark in found)[:10],
            )
