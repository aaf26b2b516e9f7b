"""The published leaderboard, built once: its files and the tables of the documentation follow from its cells."""

from __future__ import annotations

import json

from page_runner import ROOT, module_of_docs

from llpbench.board.built.about import GUIDES
from llpbench.board.built.board import make_board
from llpbench.board.built.build import differences, download_files, page_files
from llpbench.board.built.plan import board_groups
from llpbench.board.content.folder import read_folder


def test_published_files_and_docs_tables_follow_from_the_published_cells() -> None:
    """One test, so that a run on several workers builds the board once."""
    board_tables = module_of_docs("board_tables")
    content = read_folder(ROOT / "leaderboards")
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
