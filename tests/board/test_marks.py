"""Verification marks: what they state, when they become invalid, and how the board shows them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from board_samples import as_line, content_of, grid

from llpbench.board.built.board import make_board
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.content.marks import Mark, check_marks, decode_mark, digest_of_numbers
from llpbench.board.rerun import Verdict
from llpbench.board.validate import Unsound
from llpbench.board.verify import FreshTest, Verification, make_marks

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def board() -> Content:
    return content_of(grid({"a": [0.80, 0.82, 0.81], "b": [0.70, 0.71, 0.72]}))


def marks_of(content: Content, *outcomes: str, doubt: bool = False) -> dict[str, Mark]:
    """Marks of the first cells of method ``a``, by outcome."""
    results = [line.result for line in content.lines.values() if line.result.cell.method == "a"]
    report = Verification()
    for result, word in zip(results, outcomes, strict=False):
        report.remade.append((result, Verdict(True, word != "differs", "", equal=word == "equal")))
        report.made[result.id] = result
    cells = tuple(result.id for result, _ in report.remade)
    report.fresh = [FreshTest("a", "toy", "bags", (80.0, 82.0), (70.0,), 0.004, doubt, seeds=(10_001,), cells=cells)]
    return make_marks(report, "Test CPU", NOW)


def test_marks_state_outcome_date_and_fresh_seeds() -> None:
    content = board()
    first, second, third = marks_of(content, "equal", "close", "differs").values()
    assert [m.outcome for m in (first, second, third)] == ["equal", "close", "differs"]
    assert [m.verified for m in (first, second, third)] == [True, True, False]
    assert first.at == "2026-03-04T05:06:07Z"
    (fresh,) = first.fresh
    assert (fresh.published, fresh.fresh, fresh.p, fresh.seeds, fresh.agrees) == (81.0, 70.0, 0.004, [10_001], True)
    assert not any(mark.verified for mark in marks_of(content, "equal", doubt=True).values())


def test_marks_are_read_back_and_shown_on_the_board(tmp_path: Path) -> None:
    content = board()
    content.marks = marks_of(content, "equal", "differs")
    write_files(tmp_path / "board", raw_files(content))
    again = read_folder(tmp_path / "board")
    assert again.marks == content.marks
    a, b = make_board(again).datasets[0].rows
    assert msgspec.to_builtins(a.verified) == {"cells": 1, "doubted": 1, "of": 3, "latest": "2026-03-04"}
    assert a.cells["none"]["8"].verified == [i for i, mark in content.marks.items() if mark.verified]
    assert b.verified is msgspec.UNSET


def test_a_mark_is_invalid_once_the_numbers_change() -> None:
    content = board()
    content.marks = marks_of(content, "equal", "equal")
    cell_id = next(iter(content.marks))
    result = content.lines[cell_id].result
    result.method_name = "a[lr=0.1]"  # a display name is not a number
    content.lines[cell_id] = as_line(result)
    assert check_marks(content.marks, content.lines) == []
    result.selected["bags"].metrics["auroc"] = 0.99
    content.lines[cell_id] = as_line(result)
    assert check_marks(content.marks, content.lines) == [
        f"mark of cell {cell_id}: the numbers of the cell have changed since it was verified"
    ]
    del content.lines[cell_id]
    assert check_marks(content.marks, content.lines) == [f"mark of cell {cell_id}: no such cell is published"]


def test_older_marks_stay_valid_and_say_nothing_of_stages() -> None:
    content = board()
    content.marks = marks_of(content, "equal", "equal")
    (new, mark), (old, other) = content.marks.items()
    older = digest_of_numbers(content.lines[old].result, metrics_only=True)
    content.marks[old] = msgspec.structs.replace(other, numbers=older)
    assert check_marks(content.marks, content.lines) == []
    for cell_id in (new, old):
        result = msgspec.structs.replace(content.lines[cell_id].result, pseudo_labels={"iteration-1": 0.99})
        content.lines[cell_id] = as_line(result)
    (problem,) = check_marks(content.marks, content.lines)
    assert f"mark of cell {new}: the numbers of the cell have changed" in problem
    assert mark.numbers != older


@pytest.mark.parametrize(
    "part", ["selected", "seeds", "rows", "bags", "count_sd", "digests", "id", "stages", "pseudo_labels"]
)
def test_the_digest_of_a_mark_covers_everything_that_is_compared(part: str) -> None:
    result = next(iter(board().lines.values())).result
    changes = {
        "count_sd": 0.5,
        "id": "0" * 16,
        "selected": {**result.selected, "third": result.selected["bags"]},
        "digests": {"test_labels": "1" * 64},
        "stages": {"iteration-1": result.selected},
    }
    changed = changes[part] if part in changes else {**getattr(result, part), "train": 1}
    assert digest_of_numbers(msgspec.structs.replace(result, **{part: changed})) != digest_of_numbers(result)


@pytest.mark.parametrize("edit", [{"outcome": "perfect"}, {"id": "../x"}, {"machine": "\x1b[31mred"}, {"shiny": True}])
def test_decode_mark_rejects_invalid_marks(edit: dict[str, object]) -> None:
    (mark, *_) = marks_of(board(), "equal").values()
    assert decode_mark(msgspec.json.encode(mark)) == mark
    with pytest.raises(Unsound):
        decode_mark(json.dumps({**msgspec.to_builtins(mark), **edit}).encode())
