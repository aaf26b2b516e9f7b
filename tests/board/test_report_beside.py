"""``report --with leaderboard``: one's own results with the published rows of the same cells."""

from __future__ import annotations

from pathlib import Path

import pytest
from board_samples import content_of, grid, published, shared
from cli_runner import llpbench
from helpers import make_cell, make_plan

from llpbench.board.built.build import built_files
from llpbench.board.built.own_page import PUBLISHED, YOURS, check_same_protocol, own_page, published_beside
from llpbench.board.content.folder import Content, raw_files, write_files
from llpbench.board.page import render_page
from llpbench.board.schema import Board
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult
from llpbench.results.store import Store


def ids(results: list[CellResult]) -> set[str]:
    return {r.id for r in results}


def beside(theirs: list[CellResult], ours: list[CellResult]) -> set[str]:
    return set(published_beside(content_of(theirs).lines.values(), ours))


def test_only_cells_of_the_same_columns_and_seeds_are_taken() -> None:
    ours = grid({"mine": [0.9, 0.8]})
    here = grid({"known": [0.7, 0.7]})
    elsewhere = [*grid({"known": [0.7]}, bag_size=32), *grid({"known": [0.7]}, dataset="other")]
    elsewhere += grid({"known": [0.7]}, noise="high")
    later = [
        published(0.7, make_cell(method="known", seed=2))
    ]  # a seed that is not ours would take us out of the ranks
    assert beside([*here, *elsewhere, *later], ours) == ids(here)


def test_a_method_of_ours_is_shown_as_we_have_it_and_bounds_belong_to_their_rows() -> None:
    ours = grid({"mine": [0.9, 0.8], "known": [0.1, 0.2]})
    theirs = grid({"known": [0.7, 0.7], "third": [0.6, 0.6]})
    bounds = [published(0.95, make_cell(method="oracle", seed=s, bag_size=1), oracle=True) for s in range(3)]
    assert beside([*theirs, *bounds], ours) == ids(theirs[2:]) | ids(bounds[:2])


def test_another_protocol_or_version_of_a_rule_is_refused_in_words() -> None:
    ours, theirs = [published(0.9, protocol=2, rules={"bags": 2})], [published(0.9, protocol=1)]
    with pytest.raises(StoreError, match="results of protocol 2 with a leaderboard of protocol 1"):
        check_same_protocol(theirs, ours)
    with pytest.raises(StoreError, match="rule bags version 2 with a leaderboard of rule bags version 1"):
        check_same_protocol([published(0.9, protocol=2, rules={"bags": 1})], ours)
    check_same_protocol([published(0.9, protocol=2, rules={"bags": 2, "other": 1})], ours)


def folder_of(path: Path, results: list[CellResult]) -> Store:
    store = Store(path)
    store.plan([make_plan(r.cell) for r in results], "llpbench run", "0.1.0")
    for result in results:
        store.write(result)
    return store


def test_rows_say_whose_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = folder_of(tmp_path / "mine", grid({"mine": [0.9, 0.8]}))
    boards: list[Board] = []
    monkeypatch.setattr(
        "llpbench.board.built.own_page.render_page", lambda board: boards.append(board) or render_page(board)
    )
    published_rows: Content = content_of(grid({"known": [0.7, 0.7, 0.7]}))
    page = own_page(store, shared(), published_rows)
    assert "beside the leaderboard" in page
    own_page(store, shared())
    with_them, alone = boards
    rows = with_them.datasets[0].rows
    assert {row.method: row.whose for row in rows} == {"mine": YOURS, "known": PUBLISHED}
    assert [o.seeds for o in with_them.overall if (o.metric, o.rule) == ("auroc", "bags")] == [[0, 1]]
    assert {row.method: row.whose for row in alone.datasets[0].rows} == {"mine": ""}
    assert not with_them.about.files  # no built file lies beside the page


def test_the_command_reads_the_leaderboard_of_the_board_option(tmp_path: Path) -> None:
    folder_of(tmp_path / "results" / "mine", grid({"mine": [0.9, 0.8]}))
    content = content_of(grid({"their-own": [0.7, 0.7]}))
    write_files(tmp_path / "leaderboards", {**raw_files(content), **built_files(content)})
    done = llpbench("report", "results/mine", "--with", "leaderboard", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "results" / "mine" / "report.html").read_text(encoding="utf-8")
    assert "their-own" in page
    assert llpbench("report", "results/mine", cwd=tmp_path).returncode == 0
    assert "their-own" not in (tmp_path / "results" / "mine" / "report.html").read_text(encoding="utf-8")
    elsewhere = llpbench("report", "results/mine", "--board", "nowhere", cwd=tmp_path)
    assert elsewhere.returncode != 0
    assert "nowhere is not a leaderboards folder" in elsewhere.stderr


def test_a_page_with_nothing_beside_it_says_so(tmp_path: Path) -> None:
    """Results of another dataset, or of seeds that nobody published: the page looked as if it had both."""
    content = content_of(grid({"known": [0.7, 0.7]}))
    write_files(tmp_path / "leaderboards", {**raw_files(content), **built_files(content)})
    folder_of(tmp_path / "mine", grid({"mine": [0.9]}))
    folder_of(tmp_path / "other", grid({"mine": [0.9]}, bag_size=32))
    for folder, alone in (("mine", False), ("other", True)):
        done = llpbench("report", folder, "--with", "leaderboard", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ("note: leaderboards has no other methods on the same datasets" in done.stderr) is alone
        assert "came with llpbench" not in done.stderr


def test_where_a_board_of_ones_own_has_nothing_the_shipped_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder that ``leaderboard add`` makes has one's own cells alone, and hid what is published."""
    mine = grid({"mine": [0.9, 0.8]})
    folder_of(tmp_path / "mine", mine)
    shipped = tmp_path / "with a space"
    for folder, results in (("leaderboards", mine), (shipped.name, grid({"their-own": [0.7, 0.7]}))):
        write_files(tmp_path / folder, raw_files(content_of(results)))
    monkeypatch.setattr("llpbench.board.content.shipped.shipped_board", lambda: shipped)
    done = llpbench("report", "mine", "--with", "leaderboard", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("note: leaderboards has no other methods on the same datasets")
    assert done.stderr.endswith(f" has some: --board '{shipped}'\n")
    again = llpbench("report", "mine", "--board", str(shipped), cwd=tmp_path)
    assert (again.returncode, again.stderr) == (0, "")
    assert "their-own" in (tmp_path / "mine" / "report.html").read_text(encoding="utf-8")
