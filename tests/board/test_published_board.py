"""Files of a leaderboard: what is built follows from the published cells, and one method changes its own files only."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from board_samples import content_of, grid
from page_runner import ROOT, module_of_docs

from llpbench.board.audit import audit
from llpbench.board.built.about import GUIDES
from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files, differences, download_files, page_files
from llpbench.board.built.groups import board_groups
from llpbench.board.content.bootstrap import Replicates, pack
from llpbench.board.content.folder import raw_files, read_folder, write_files


@pytest.mark.slow
def test_published_files_and_docs_tables_follow_from_the_published_cells() -> None:
    """One test, so that a run on several workers builds the board once."""
    board_tables = module_of_docs("board_tables")
    content = read_folder(ROOT / "leaderboards")
    assert audit(content).problems == []
    groups = board_groups((line.result for line in content.lines.values()), content.facts.roles)
    board = make_board(content, groups, files=GUIDES)
    built = page_files(content, groups, board)
    assert differences(ROOT / "leaderboards", content, built) == [], "run 'llpbench leaderboard build'"
    assert max(len(data) for name, data in built.items() if name.endswith(".md")) < 40_000
    downloads = download_files(content, groups, board)
    published = board_tables.read_scores(downloads["seeds.csv"]), json.loads(downloads["board.json"])["overall"]
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert board_tables.filled(text, *published) == text, f"run 'python docs/board_tables.py docs/{page.name}'"


def test_adding_a_method_changes_only_its_files_and_the_built_ones(tmp_path: Path) -> None:
    results = [*grid({"old": [0.7, 0.8], "older": [0.6, 0.7]}), *grid({"old": [0.7]}, dataset="other")]
    before, after = content_of(results), content_of([*results, *grid({"new": [0.9, 0.8]})])
    packed = pack(np.linspace(0.6, 0.8, 128))
    for content in (before, after):
        content.replicates = {
            cell: Replicates(id=cell, test="0" * 16, rules=dict.fromkeys(line.result.selected, packed))
            for cell, line in content.lines.items()
        }
    write_files(tmp_path, {**raw_files(before), **built_files(before)})
    wanted = {**raw_files(after), **built_files(after)}
    changed = {n for n, data in wanted.items() if not (p := tmp_path / n).exists() or p.read_bytes() != data}
    own = {"cells/new.jsonl", "bootstrap/new.jsonl", "methods/new.json"}
    assert changed == {*own, "tables/toy.md", "index.html"}
    assert raw_files(read_folder(tmp_path)) == raw_files(before)
