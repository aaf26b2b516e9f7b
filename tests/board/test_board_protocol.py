"""Rows whose parameters a search chose: compared under the rule of the search alone, and in a block of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from board_samples import content_of, published
from chromium import Chromium, find_chromium
from fake_board import fake_board
from helpers import make_cell

from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files
from llpbench.board.content.bootstrap import Replicates, pack
from llpbench.board.page import render_page
from llpbench.board.schema import BoardDataset
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import Reference
from llpbench.experiment.tuned import History, Setting, Trial, bare

METHODS = {"good": 0.8, "fair": 0.75, "poor": 0.7}


def fits(method: str, value: float, rule: str = "", seeds: int = 3) -> list[CellResult]:
    """A method over seeds: as it is, or with what a search by a rule chose."""
    origin = f"tuned-{rule}" if rule else ""
    name = f"{method}[params={origin}]" if rule else method
    params = {"lr": 0.5} if rule else {}
    return [
        published(
            value + 0.01 * seed, make_cell(method=method, seed=seed, params=params, preset=origin), method_name=name
        )
        for seed in range(seeds)
    ]


def shipped() -> list[CellResult]:
    return [result for method, value in METHODS.items() for result in fits(method, value)]


def only(results: list[CellResult], references: list[Reference] | None = None) -> BoardDataset:
    (dataset,) = make_board(content_of(results, references)).datasets
    return dataset


def marks(dataset: BoardDataset, rule: str) -> dict[str, str]:
    found = {row.method: row.cells["none"]["8"].scores["auroc"][rule] for row in dataset.rows}
    return {m: "best" if s.best else "second" if s.second else "" for m, s in found.items()}


@pytest.mark.parametrize(("own", "other"), [("instances", "bags"), ("bags", "instances")])
def test_tuned_methods_are_compared_under_their_own_rule_only(own: str, other: str) -> None:
    dataset = only([*shipped(), *fits("poor", 0.89, own)])
    name = f"poor[params=tuned-{own}]"
    assert marks(dataset, own)[name] == "best"
    assert marks(dataset, other) == {"good": "best", "fair": "second", "poor": "", name: ""}
    assert dataset.ranks["auroc"][own][0].method == name
    assert name not in [r.method for r in dataset.ranks["auroc"][other]]
    assert {c.best for c in dataset.claims if c.rule == other} == {"good"}


def test_wins_of_tuned_methods_count_under_their_own_rule_only() -> None:
    board = make_board(content_of([*shipped(), *fits("poor", 0.89, "instances")]))
    variants = {standing.rule: standing.variants for standing in board.overall if standing.metric == "auroc"}
    assert [v.wins for v in variants["instances"]] == [1.0]
    assert variants["bags"] == []


def test_tables_explain_missing_marks_of_tuned_methods() -> None:
    text = built_files(content_of([*shipped(), *fits("poor", 0.89, "instances")]))["tables/toy.md"].decode()
    by_bags = text.partition("selection rule: bags")[2].partition("selection rule: instances")[0]
    assert "**80.00" not in by_bags.partition("| good")[0]
    assert "another rule chose its parameters" in by_bags


def test_tuned_methods_are_not_expected_in_other_settings() -> None:
    elsewhere = [published(0.6, make_cell(method=m, seed=0, bag_size=32)) for m in METHODS]
    board = make_board(content_of([*shipped(), *elsewhere, *fits("poor", 0.89, "bags", seeds=1)]))
    assert [m for m in board.missing if "tuned" in m.method and m.bag == 8] == []


def test_protocol_table_uses_the_same_seeds_in_every_column() -> None:
    published_value = Reference(
        source="A 2024", dataset="toy", title="P", method="poor", bag_size=8, metric="auroc", mean=0.9, rule="instances"
    )
    results = [*shipped(), *fits("poor", 0.86, "bags", seeds=1), *fits("poor", 0.79, "instances", seeds=1)]
    content = content_of(results, [published_value])
    spread = np.linspace(0.88, 0.9, 128)
    for result in results:
        packed = pack(spread)
        content.replicates[result.id] = Replicates(id=result.id, test="0", rules={"bags": packed, "instances": packed})
    (dataset,) = make_board(content).datasets
    assert dataset.protocol is not msgspec.UNSET
    (table,) = dataset.protocol
    assert [line.method for line in table.lines] == ["poor"]  # no line for who was not searched for
    values = [text.split()[0] for text in table.lines[0].texts]
    assert values == ["89.00", "90.00", "86.00", "70.00"]  # labels, published, bags, as shipped: of seed 0
    reach = 196 * np.std(spread, ddof=1)
    assert f"[{70 - reach:.2f}, {70 + reach:.2f}]" in table.lines[0].texts[3]
    assert table.notes[0].startswith("seed 0; ")


@pytest.mark.parametrize(
    ("trials", "words"), [((6, 6), "6 trials for each method"), ((6, 9), "trials: fair 9, poor 6")]
)
def test_protocol_table_names_seeds_and_trials(trials: tuple[int, int], words: str) -> None:
    results = [*shipped(), *fits("poor", 0.86, "bags"), *fits("fair", 0.86, "bags")]
    content = content_of(results)
    for method, number in zip(("poor", "fair"), trials, strict=True):
        cell = next(r.cell for r in results if r.cell.method == method and r.cell.preset)
        setting = Setting(cell=bare(cell), rule="bags", fixed={}, seeds=[0])
        done = [Trial(number=i, params={}, value=0.5, seconds=1.0, status="ok", cells=[]) for i in range(number)]
        content.searches[method] = History(
            study=method, setting=setting, space={}, sampler="random", sampler_seed=0, wanted=number, trials=done,
            higher_is_better=False,
        )  # fmt: skip
    (dataset,) = make_board(content).datasets
    assert dataset.protocol is not msgspec.UNSET
    assert dataset.protocol[0].notes[0] == f"seeds 0, 1, 2; {words}"


def test_protocol_table_allows_seeds_without_default_results() -> None:
    results = [*fits("poor", 0.7, seeds=2), *fits("poor", 0.86, "bags")[2:]]
    (table,) = only(results).protocol or []
    assert [line.texts for line in table.lines] == [["88.00 [seed 2 of 3]"]]  # and no column as shipped
    assert table.notes[0].startswith("seed 2; ")


def test_no_protocol_table_without_a_search() -> None:
    assert only(shipped()).protocol is msgspec.UNSET


def with_block(text: str) -> dict[str, Any]:
    board = fake_board(1)
    line = {"method": text, "texts": [text, "80.10", ""], "marks": ["best", "second", ""]}
    table = {"title": text, "columns": [text, "published", "bags"], "lines": [line], "notes": [text]}
    board["datasets"][0]["protocol"] = [table]
    return board


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_page_shows_the_protocol_table(browser: Chromium, tmp_path: Path) -> None:
    text = "<img src=x onerror=\"document.title='taken'\">"
    page = tmp_path / "index.html"
    page.write_text(render_page(with_block(text)), encoding="utf-8")
    browser.open(page)
    cells = browser.run("[...document.querySelectorAll('.protocol tbody tr > *')].map(c => c.textContent)")
    assert cells == [text, text, "80.10", "–"]
    assert browser.run("document.querySelectorAll('.protocol td b').length") == 1
    assert browser.run("document.querySelectorAll('.protocol img').length") == 0
    assert browser.problems == []
    browser.size(390)
    assert browser.run("document.documentElement.scrollWidth <= 390")
    browser.size(1280)
