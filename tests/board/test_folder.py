"""A leaderboards folder that is being written: Ctrl-C at any file leaves one that can be read, and added to again."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from board_samples import MACHINE, MACHINE_FACTS, real_cell, set_metrics, shared, traced, write_run

from llpbench.board.audit import audit
from llpbench.board.content import folder as room
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.publish import add_results
from llpbench.board.rerun import Verdict
from llpbench.board.verify import Verification, make_marks

OTHER = "abcdefabcd"


def published(tmp_path: Path) -> Content:
    """A board of two cells, both made again by a reviewer."""
    first = [traced(real_cell(seed=seed)) for seed in (0, 1)]
    write_run(tmp_path / "first", first)
    content = Content()
    assert not add_results(tmp_path / "first", content, shared()).refused
    made = {cell_id: line.result for cell_id, line in content.lines.items()}
    report = Verification(made=made, remade=[(r, Verdict(True, True, "", equal=True)) for r in made.values()])
    content.marks = make_marks(report, "Test CPU")
    return content


def second_run(tmp_path: Path) -> Path:
    """Another machine made two that are not published yet, and one that is, with other numbers."""
    results = [traced(cell, machine=OTHER) for cell in (real_cell(), real_cell(seed=2), real_cell("best-feature"))]
    store = write_run(tmp_path / "second", results)
    store.write_machine(OTHER, {**MACHINE_FACTS, "cores": 64})
    predictions = store.predictions_path(results[0].id)
    with np.load(predictions) as arrays:
        labels = arrays["labels"]
    scores = dict.fromkeys(results[0].selected, labels + np.random.default_rng(9).normal(size=len(labels)))
    set_metrics(results[0], labels, scores)
    np.savez(predictions, labels=labels, **scores)
    store.write(results[0])
    return tmp_path / "second"


def stop_after(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real, written = room.write_atomically, iter(range(number))

    def write(path: Path, data: bytes) -> None:
        if next(written, None) is None:
            raise KeyboardInterrupt
        real(path, data)

    monkeypatch.setattr(room, "write_atomically", write)


def test_a_folder_can_be_read_wherever_its_writing_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llpbench.board.publish.suite_files", lambda registry: {})  # planning takes long
    content, run = published(tmp_path), second_run(tmp_path)
    write_files(tmp_path / "before", raw_files(content))
    report = add_results(run, content, shared(), replace=True)
    assert (len(report.added), len(report.replaced), report.refused) == (2, 1, [])
    wanted = raw_files(content)
    names = list(wanted)
    assert set(content.machines) == {MACHINE, OTHER}
    changed = [n for n in names if not (p := tmp_path / "before" / n).exists() or p.read_bytes() != wanted[n]]
    assert {name.partition("/")[0] for name in changed} == {"machines", "methods", "bootstrap", "verified", "cells"}
    for number in range(len(changed) + 1):
        board = tmp_path / f"stopped-after-{number}"
        shutil.copytree(tmp_path / "before", board)
        with monkeypatch.context() as patch:
            stop_after(number, patch)
            if number < len(changed):
                with pytest.raises(KeyboardInterrupt):
                    write_files(board, wanted)
            else:
                write_files(board, wanted)
        found = read_folder(board)
        add_results(run, found, shared(), replace=True)
        write_files(board, raw_files(found))
        assert raw_files(read_folder(board)) == wanted, f"stopped before {changed[number : number + 1]}"
        assert audit(read_folder(board)).problems == []
