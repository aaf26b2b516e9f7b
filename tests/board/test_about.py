"""What stands around the numbers of a page: its steps and what it leads to."""

from __future__ import annotations

from pathlib import Path

import pytest
from board_samples import content_of, grid, published
from helpers import make_cell

from llpbench.board.built.about import GUIDES, about, run_command
from llpbench.board.built.board import make_board
from llpbench.contracts.result import CellResult

ROOT = Path(__file__).resolve().parents[2]


def test_guides_exist_where_the_page_links_to_them() -> None:
    for address in GUIDES:
        assert (ROOT / "leaderboards" / address).is_file()


def test_page_of_a_run_links_to_no_files() -> None:
    assert make_board(content_of(grid({"mine": [0.9]}))).about.files == {}


def test_steps_say_when_a_method_is_ranked() -> None:
    first, second, third = about(grid({"a": [0.9, 0.8]}), {}).steps
    assert first[1].startswith("llpbench new method mine")
    assert "ranked in a block" in second[0]
    assert GUIDES["../docs/submitting.md"] in third[0]


def at(values: dict[str, list[float]], **changes: object) -> list[CellResult]:
    return [result for bag in (8, 32) for result in grid(values, bag_size=bag, **changes)]


FIVE = [0.8] * 5


@pytest.mark.parametrize(
    ("results", "command"),
    [
        ([], "llpbench run -m mine"),
        (at({"a": FIVE, "b": FIVE, "c": FIVE[:3]}), "llpbench run -m mine -d toy -b 8,32 -s 5"),
        (at({"a": FIVE, "b": FIVE[:3], "c": FIVE[:3]}), "llpbench run -m mine -d toy -b 8,32 -s 3"),
        (
            at({"a": FIVE}) + at({"a": FIVE}, dataset="other") + at({"a": FIVE[:2]}, dataset="third"),
            "llpbench run -m mine -d other,toy -b 8,32 -s 5",
        ),
        (at({"a": FIVE}) + at({"a": [0.8] * 9}, noise="high"), "llpbench run -m mine -d toy -b 8,32 -s 5"),
        (
            [published(0.8, make_cell(method="a", seed=seed)) for seed in (1, 4)],
            "llpbench run -m mine -d toy -b 8 -s 1,4",
        ),
        ([published(0.8, make_cell(method="a", seed=3))], "llpbench run -m mine -d toy -b 8 -s 3-3"),
        (
            [published(0.8, make_cell(method=m, seed=seed)) for seed, m in enumerate("ab")],
            "llpbench run -m mine",
        ),  # nothing in common
    ],
)
def test_run_command_names_the_usual_bags_and_seeds(results: list[CellResult], command: str) -> None:
    assert run_command(results) == f"{command} -o results/mine"
