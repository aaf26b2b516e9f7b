"""Natural bags from the command line: groups of a table's values, whole bags split, cards and metrics everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from board_samples import published
from cli_runner import llpbench
from helpers import make_cell

from llpbench.board.built.board import make_board
from llpbench.board.page import render_page
from llpbench.board.schema import encode_board
from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import OWN_SIZES, setting_name
from llpbench.report.cards import card_words

DATA = "csv[path=data.csv;label=y]"
BY_SHOP = "group-by[columns=shop;least=5;most=40]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with shops of 10, 20, ..., 100 rows whose rates differ for reasons of their own."""
    folder = tmp_path_factory.mktemp("shops")
    rng = np.random.default_rng(0)
    lines = ["x,shop,y"]
    for shop in range(1, 11):
        for _ in range(10 * shop):
            x = rng.normal()
            lines.append(f"{x:.4f},s{shop},{int(x + rng.normal() + (shop % 3) > 1)}")
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_show_prints_the_bag_card_before_any_run(folder: Path) -> None:
    done = llpbench("show", DATA, "--bags", "8", "--schemes", f"random,{BY_SHOP}", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    random, groups = json.loads(done.stdout)
    assert (random["bag_size"], random["scheme"]) == (8, "random")
    assert random["card"]["left_out"] == 0
    assert random["card"]["sizes"][2:] == [8, 8, 8]
    assert (groups["bag_size"], groups["scheme"]) == (0, "group-by")
    assert groups["card"]["left_out"] > 0.4
    assert groups["card"]["spread"] > random["card"]["spread"]
    text = llpbench("show", DATA, "--schemes", BY_SHOP, "--split", "bags", cwd=folder)
    assert text.returncode == 0, text.stderr
    assert "split=bags  " in text.stdout
    assert "81.8 % of rows in no bag" in text.stdout  # shops of 10 to 40 rows hold 100 of 550


@pytest.mark.slow
def test_show_compares_bags_with_as_many_labelled_rows(folder: Path) -> None:
    done = llpbench("show", DATA, "--bags", "8", "--bounds", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    (setting,) = json.loads(done.stdout)
    assert setting["card"]["bags"] == 55
    assert 0.6 < setting["as_many_labels"]["few-labels"] < 0.9
    text = llpbench("show", DATA, "--bags", "8", "--bounds", cwd=folder).stdout
    assert f"AUROC {100 * setting['as_many_labels']['few-labels']:.1f} % of few-labels with as many labels" in text


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("group-by[columns=shpo]", "unknown column for bag scheme group-by: 'shpo'. Did you mean 'shop'"),
        ("group-by[columns=shop;least=9;most=3]", "least must not exceed most"),
        ("group-by[columns=shop;least=999]", "forms no bag from the 440 training rows"),
        ("group-by", "group-by needs the columns"),
    ],
)
def test_invalid_bag_options_give_one_sentence(folder: Path, scheme: str, words: str) -> None:
    done = llpbench("show", DATA, "--schemes", scheme, cwd=folder)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_run_rejects_impossible_bags_before_running(folder: Path) -> None:
    run = ("run", "--methods", "mean-ridge", "--datasets", DATA, "--out", "never")
    assert "least=9" in llpbench(*run, "--schemes", "group-by[columns=a;least=9;most=3]", cwd=folder).stderr
    assert llpbench(*run, "--split", "columns", cwd=folder).returncode == 2
    assert not (folder / "never").exists()


@pytest.mark.slow
def test_run_with_groups_and_whole_bags(folder: Path) -> None:
    command = ["run", "--methods", "mean-ridge,supervised[epochs=2]", "--datasets", DATA, "--seeds", "1"]
    command += ["--schemes", "group-by[columns=shop;least=5;most=80]", "--split", "bags", "--bags", "8,16"]
    done = llpbench(*command, "--out", "out", "--metric", "f1", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "note: group-by sizes its bags itself: --bags is ignored for it" in done.stderr
    name = "csv[label=y;path=data.csv#"
    assert name in done.stdout
    heading = "by shop with split=bags · F1 % · selection rule: bags, instances (equal)"
    assert heading in done.stdout
    assert "34.5 % of rows in no bag" in done.stdout
    results = [json.loads(path.read_text())["result"] for path in (folder / "out" / "cells").glob("*.json")]
    by_method = {r["cell"]["method"]: r for r in results}
    assert len(results) == 2
    for result in results:
        assert (result["cell"]["split"], result["cell"]["bag_size"]) == ("bags", 0)
        assert sum(result["bags"].values()) == 8
        assert sum(result["rows"].values()) == 360
    assert by_method["mean-ridge"]["digests"]["test_labels"] == by_method["supervised"]["digests"]["test_labels"]
    assert "card" not in by_method["supervised"]
    card = by_method["mean-ridge"]["card"]
    assert card["bags"] == by_method["mean-ridge"]["bags"]["train"]
    metrics = by_method["mean-ridge"]["selected"]["bags"]["metrics"]
    for metric in ("f1", "macro_f1", "balanced_accuracy", "brier", "ece", "test_bag_error"):
        assert 0 <= metrics[metric] <= 1
    shown = llpbench("table", "out", "--metric", "test_bag_error", "--format", "json", cwd=folder)
    rows: list[dict[str, Any]] = [row for row in json.loads(shown.stdout) if not row["oracle"]]
    assert {(row["scheme"], row["split"], row["bag_size"]) for row in rows} == {("group-by", "bags", 0)}
    assert rows[0]["card"] == card
    printed = llpbench("table", "out", "--metric", "test_bag_error", cwd=folder)
    assert "bag error on test bags %" in printed.stdout
    assert "supervised" not in printed.stdout  # a bound has no bags to err on
    again = llpbench(*command, "--out", "out", "--dry-run", cwd=folder)
    assert "0 of 2 cells would run" in again.stderr
    # What was judged can be judged again from what was kept.
    added = llpbench("leaderboard", "add", "out", "--to", "board", cwd=folder)
    assert "2 added, 0 replaced, 0 refused" in added.stdout + added.stderr
    checked = llpbench("leaderboard", "check", "--board", "board", cwd=folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    page = (folder / "board" / "index.html").read_text()
    assert "split=bags: " in page  # the card of this setting


CARD = BagCard(365, 54_000, 0.1, (50.0, 80.0, 120.0, 190.0, 210.0), 0.164, 3.83, 1.21)


def test_cards_are_on_the_board_and_the_page_where_results_have_them() -> None:
    from board_samples import content_of

    cells = [make_cell(method=method, seed=seed) for method in ("a", "b") for seed in (0, 1)]
    bare = content_of([published(0.7, cell) for cell in cells])
    with_cards = content_of([published(0.7, cell, card=CARD) for cell in cells])
    assert b"cards" not in encode_board(make_board(bare))
    assert "Properties of the bags" not in render_page(make_board(bare))
    board = make_board(with_cards)
    assert board.datasets[0].cards == {"8": CARD}
    page = render_page(board)
    assert f"toy, bag 8: {card_words(CARD)}" in page


def test_setting_name_contains_the_scheme_once() -> None:
    assert setting_name("adult", 128) == "adult, bag 128"
    assert setting_name("flights, own-bags", OWN_SIZES, "  ") == "flights, own-bags"
