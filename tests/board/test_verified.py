"""Marks of verification: written by ``verify --record``, held to the numbers they confirm, shown on the board."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from board_samples import as_line, content_of, grid
from cli_runner import llpbench
from forge import VICTIM, WITNESS, Bench, check_board, write_board

from llpbench.board.reproduce.rerun import Verdict
from llpbench.board.reproduce.verify import FreshTest, Verification
from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files
from llpbench.board.checks.audit import audit
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.content.marks import (
    Mark,
    check_marks,
    decode_mark,
    digest_of_numbers,
    make_marks,
    new_marks,
)
from llpbench.board.validate import Unsound

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def board() -> Content:
    return content_of(grid({"a": [0.80, 0.82, 0.81], "b": [0.70, 0.71, 0.72]}))


def marks_of(content: Content, *outcomes: str, doubt: bool = False) -> dict[str, Mark]:
    """Marks of the first cells of method ``a``, by what came out."""
    results = [line.result for line in content.lines.values() if line.result.cell.method == "a"]
    report = Verification()
    for result, word in zip(results, outcomes, strict=False):
        fine = word != "differs"
        report.remade.append((result, Verdict(True, fine, "", equal=word == "equal")))
        report.made[result.id] = result
    cells = tuple(result.id for result, _ in report.remade)
    report.fresh = [FreshTest("a", "toy", "bags", (80.0, 82.0), (70.0,), 0.004, doubt, seeds=(10_001,), cells=cells)]
    return make_marks(report, "Test CPU", NOW)


def test_a_mark_says_what_came_out_and_when() -> None:
    content = board()
    first, second, third = marks_of(content, "equal", "close", "differs").values()
    assert [m.outcome for m in (first, second, third)] == ["equal", "close", "differs"]
    assert [m.verified for m in (first, second, third)] == [True, True, False]
    assert first.at == "2026-03-04T05:06:07Z"
    (fresh,) = first.fresh
    assert (fresh.published, fresh.fresh, fresh.p, fresh.seeds, fresh.agrees) == (81.0, 70.0, 0.004, [10_001], True)
    doubted = marks_of(content, "equal", doubt=True)
    assert not any(mark.verified for mark in doubted.values())


def test_marks_come_back_from_a_folder_and_reach_the_board(tmp_path: Path) -> None:
    content = board()
    content.marks = marks_of(content, "equal", "differs")
    write_files(tmp_path / "board", {**raw_files(content), **built_files(content)})
    again = read_folder(tmp_path / "board")
    assert again.marks == content.marks
    a, b = make_board(again).datasets[0].rows
    assert msgspec.to_builtins(a.verified) == {"cells": 1, "doubted": 1, "of": 3, "latest": "2026-03-04"}
    (fine,) = [i for i, mark in content.marks.items() if mark.verified]
    assert a.cells["none"]["8"].verified == [fine]
    stated = json.loads((tmp_path / "board" / "board.json").read_text())["datasets"][0]["rows"]
    assert ["verified" in row for row in stated] == [True, False]  # nothing is said of what nobody looked at
    assert b.verified is msgspec.UNSET


def test_a_mark_ends_with_the_numbers_it_confirmed() -> None:
    content = board()
    content.marks = marks_of(content, "equal", "equal")
    assert check_marks(content.marks, content.lines) == []
    cell_id = next(iter(content.marks))
    result = content.lines[cell_id].result
    result.method_name = "a[lr=0.1]"  # another name: the numbers are what they were
    content.lines[cell_id] = as_line(result)
    assert check_marks(content.marks, content.lines) == []
    result.selected["bags"].metrics["auroc"] = 0.99
    content.lines[cell_id] = as_line(result)
    assert [f"mark of cell {cell_id}: its numbers are others" in p for p in audit(content).problems].count(True) == 1
    del content.lines[cell_id]
    (problem,) = check_marks(content.marks, content.lines)
    assert problem == f"mark of cell {cell_id}: no cell of that id is published"


@pytest.mark.parametrize("part", ["selected", "seeds", "rows", "bags", "count_sd", "digests", "id"])
def test_every_fact_that_is_compared_is_in_the_digest(part: str) -> None:
    result = next(iter(board().lines.values())).result
    before = digest_of_numbers(result)
    changes = {
        "count_sd": 0.5,
        "id": "0" * 16,
        "selected": {**result.selected, "third": result.selected["bags"]},
        "digests": {"test_labels": "1" * 64},
    }
    changed = changes[part] if part in changes else {**getattr(result, part), "train": 1}
    assert digest_of_numbers(msgspec.structs.replace(result, **{part: changed})) != before


def test_marks_that_a_submission_brings_are_found() -> None:
    before, after = board(), board()
    before.marks = marks_of(before, "differs")
    after.marks = marks_of(after, "equal", "equal")  # one was changed for the better, one is new
    assert len(new_marks(after.marks, before.marks)) == 2
    assert new_marks({}, before.marks) == []  # a replaced cell loses its mark
    assert new_marks(before.marks, before.marks) == []


@pytest.mark.parametrize(
    "edit",
    [
        {"outcome": "perfect"},
        {"id": "../../etc/passwd"},
        {"at": "yesterday"},
        {"machine": "\x1b[31mred"},
        {"machine": "x" * 500},
        {"shiny": True},
        {"fresh": [{"rule": "../x", "seeds": [1], "published": 1.0, "fresh": 1.0, "p": None, "agrees": True}]},
    ],
)
def test_a_mark_that_is_none_is_refused(edit: dict[str, object]) -> None:
    (mark, *_) = marks_of(board(), "equal").values()
    assert decode_mark(msgspec.json.encode(mark)) == mark
    with pytest.raises(Unsound):
        decode_mark(json.dumps({**msgspec.to_builtins(mark), **edit}).encode())


@pytest.mark.slow
def test_verify_records_what_it_found(bench: Bench) -> None:
    folder = bench.root / "leaderboards"
    write_board(folder, bench.board_of(VICTIM, WITNESS))
    write_board(bench.root / "before", bench.board_of(VICTIM, WITNESS))
    arguments = ("leaderboard", "verify", "--cells", "2", "--fresh-seeds", "1", "--draw", "5")
    done = llpbench(*arguments, "--record", cwd=bench.root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "marked in leaderboards/verified: 2 cells verified, 0 in doubt" in done.stdout
    assert check_board(folder) == []
    marks = read_folder(folder).marks
    assert {mark.outcome for mark in marks.values()} == {"equal"}
    assert all(mark.code and mark.machine and mark.fresh for mark in marks.values())
    found = llpbench("leaderboard", "check", "--against", "before", cwd=bench.root)
    assert (found.returncode, found.stderr.count("marks are made by reviewers")) == (1, 2)
