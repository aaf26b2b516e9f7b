"""The leaderboard page in a real browser."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest
from chromium import Chromium, find_chromium
from fake_board import HOSTILE, fake_board, hostile_board, odd_boards
from helpers import make_cell, make_result

from llpbench.board.built.own_page import curves_of
from llpbench.board.page import render_page
from llpbench.contracts.result import Selected

needs_browser = pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
CELLS = "[...document.querySelectorAll('table.board tbody tr[data-m]')]"
METHODS = f"{CELLS}.map(r => r.querySelector('th').textContent)"


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    return fake_board(3)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, board: dict[str, Any]) -> Path:
    return written(tmp_path_factory.mktemp("page"), board)


def written(folder: Path, board: dict[str, Any]) -> Path:
    path = folder / "index.html"
    path.write_text(render_page(board), encoding="utf-8")
    return path


@pytest.fixture
def seen(browser: Chromium, page: Path) -> Iterator[Chromium]:
    """The page, freshly opened; afterwards nothing may have gone wrong, and nothing may have been asked for."""
    browser.size(1280)
    browser.media("light")
    browser.open(page)
    browser.run("localStorage.clear()")
    yield browser
    assert browser.problems == []
    assert [url for url in browser.requests if url != page.resolve().as_uri()] == []


def column(browser: Chromium, bag: int) -> list[float]:
    texts = browser.run(
        f"[...document.querySelectorAll('tbody:not(.controls-body) .cell[data-bag=\"{bag}\"]')]"
        ".map(c => c.querySelector('.mean')?.textContent ?? '')"
    )
    return [float(text) if text else math.nan for text in texts]


def hash_of(browser: Chromium) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(browser.run("location.hash.slice(1)")).items()}


@needs_browser
def test_the_table_shows_the_board(seen: Chromium, board: dict[str, Any]) -> None:
    dataset = board["datasets"][0]
    for row in dataset["rows"][:-1]:
        for bag, cell in row["cells"]["none"].items():
            key = json.dumps(f"cell-{bag}-{row['method']}")
            shown = seen.run(
                f"(() => {{ const c = [...document.querySelectorAll('.cell')].find(c => c.dataset.key === {key});"
                " return [c.textContent, c.className.split(' ')[1]]; })()"
            )
            score = cell["scores"].get("auroc", {}).get("bags")
            if score is None:
                assert shown == [cell["status"], "status"]
            else:
                assert shown[0].startswith(f"{score['mean']:.2f}({score['sd']:.2f})")
                assert shown[1] == ("best" if score["best"] else "second" if score["second"] else "")
    assert "supervised" not in seen.run(METHODS)
    bound = dataset["bounds"]["auroc"]["bags"]
    assert f"supervised {bound['mean']:.2f} ({bound['sd']:.2f})" in seen.run(
        "document.querySelector('.boundbox').textContent"
    )
    assert seen.run("document.querySelector('.controls-body').textContent").count("random-labels") == 1


@needs_browser
def test_charts_colour_the_first_methods_until_another_is_pointed_at(seen: Chromium) -> None:
    methods = len(seen.run(METHODS)) - seen.run("document.querySelectorAll('.controls-body tr[data-m]').length")
    grey = "[...document.querySelectorAll('figure.bags .series.rest')]"
    assert seen.run(f"{grey}.length") == methods - 5
    stroke = f"getComputedStyle({grey}[0].querySelector('.line')).stroke"
    before = seen.run(stroke)
    seen.run(f"document.querySelector(`.chip[data-m='${{{grey}[0].dataset.m}}']`).focus()")
    assert seen.run(stroke) != before


@needs_browser
def test_a_run_has_learning_curves_with_the_selected_reports(
    browser: Chromium, board: dict[str, Any], tmp_path: Path
) -> None:
    history = [{"bags": 1.0 / (n + 1), "instances": 0.5 + n / 1000} for n in range(200)]
    selected = {"bags": Selected(report=150, value=0.1), "instances": Selected(report=199, value=0.6)}
    cells = [make_cell(dataset="adult", method="dllp", bag_size=512, seed=seed) for seed in (0, 1)]
    results = [make_result(cell, dataset_name="adult", history=history, selected=selected) for cell in cells]
    results[0].stage_starts = {"iteration-1": 0, "iteration-2": 70}
    once = make_result(make_cell(dataset="adult", method="mean-ridge", bag_size=512), history=history[:1])
    curves = curves_of([*results, once])
    assert [(c.method, c.seed, c.reports[-1], c.selected) for c in curves] == [
        ("dllp", seed, 200, {"bags": 151, "instances": 200}) for seed in (0, 1)
    ]
    assert len(curves[0].reports) < 70
    assert curves[0].values["bags"][curves[0].reports.index(151)] == pytest.approx(1 / 151, rel=1e-3)
    path = written(tmp_path, {**board, "curves": msgspec.to_builtins(curves)})
    browser.open(path)
    assert browser.run("document.querySelectorAll('figure.curves .series').length") == 2
    lines = "[...document.querySelectorAll('figure.curves .series')].map(g => g.querySelectorAll('.line').length)"
    assert sorted(browser.run(lines)) == [1, 3]  # two stages and the tick at which the second starts
    tick = "document.querySelector('figure.curves .line[data-tip]').dataset.tip"
    assert browser.run(tick) == "dllp · seed 0 · iteration-2 starts at report 71"
    assert browser.run("document.querySelectorAll('figure.curves .mark').length") == 2
    row = "[...document.querySelectorAll('figure.curves tbody tr')].map(r => r.textContent)"
    assert browser.run(row) == ["dllp02001510.007", "dllp12001510.007"]
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_columns_sort_both_ways_with_missing_numbers_last(seen: Chromium) -> None:
    for order in ("descending", "ascending"):
        seen.click("[data-key='sort-bag-512']")
        values = column(seen, 512)
        known = [v for v in values if not math.isnan(v)]
        assert values[: len(known)] == known
        assert known == sorted(known, reverse=order == "descending")
        assert seen.run("document.querySelector('[data-key=\"sort-bag-512\"]').closest('th').ariaSort") == order
        assert (
            seen.run("[...document.querySelectorAll('th[aria-sort]')].filter(t => t.ariaSort !== 'none').length") == 1
        )
        assert seen.run("document.activeElement.dataset.key") == "sort-bag-512"
    seen.click("[data-key='sort-method']")
    names = seen.run(f"{CELLS}.filter(r => !r.closest('.controls-body')).map(r => r.querySelector('th').textContent)")
    assert names == sorted(names)
    assert hash_of(seen) == {"sort": "method"}


@pytest.mark.slow
@needs_browser
def test_filter_narrows_table_and_charts(seen: Chromium) -> None:
    seen.run("document.getElementById('filter').focus()")
    seen.type("BP ")
    assert set(seen.run(METHODS)) == {"bp", "bp[iterations=1]", "bp-count"}
    seen.type("means")  # a word of its summary
    assert seen.run(METHODS) == ["bp-count"]
    assert seen.run("document.getElementById('live').textContent") == "1 of 12 methods shown"
    assert seen.run("document.querySelectorAll('figure.bags .series').length") == 1
    assert seen.run("document.activeElement.id") == "filter"
    assert hash_of(seen) == {"filter": "BP means"}
    seen.type(" no such method")
    assert seen.run(METHODS) == []
    assert "No method matches" in seen.run("document.querySelector('table.board').textContent")


@pytest.mark.slow
@needs_browser
def test_tabs_follow_the_arrow_keys(seen: Chromium) -> None:
    seen.run("document.querySelector('[role=tab][aria-selected=true]').focus()")
    selected = "document.querySelector('[role=tab][aria-selected=true]').textContent"
    for key, expected in [
        ("ArrowRight", "Marketing"),
        ("End", "Criteo"),
        ("ArrowRight", "Adult"),
        ("ArrowLeft", "Criteo"),
        ("Home", "Adult"),
        ("ArrowRight", "Marketing"),
    ]:
        seen.press(key)
        assert seen.run(selected) == expected
        assert seen.run("document.activeElement.textContent") == expected
        assert seen.run("document.querySelector('#panel h2').textContent") == expected
        assert seen.run("document.querySelectorAll('[role=tab][tabindex=\"0\"]').length") == 1
    assert hash_of(seen) == {"dataset": "marketing"}


@pytest.mark.slow
@needs_browser
def test_the_rule_changes_numbers_and_ranks(seen: Chromium, board: dict[str, Any]) -> None:
    dataset = board["datasets"][0]
    seen.click("input[name=rule][value=instances]")
    assert hash_of(seen) == {"rule": "instances"}
    score = dataset["rows"][0]["cells"]["none"]["8"]["scores"]["auroc"]["instances"]
    assert f"{score['mean']:.2f}" in seen.run("document.querySelector('[data-key=\"cell-8-bp\"]').textContent")
    place = {
        rule: {rank["method"]: 1 + sum(r["mean_rank"] < rank["mean_rank"] for r in ranks) for rank in ranks}
        for rule, ranks in dataset["ranks"]["auroc"].items()
    }
    assert place["bags"] != place["instances"]
    for method, where in place["instances"].items():
        moved = place["bags"][method] - where
        text = seen.run(
            f"{CELLS}.find(r => r.querySelector('th').textContent === {json.dumps(method)}).cells[0].textContent"
        )
        arrow = "" if moved == 0 else f"{'▲' if moved > 0 else '▼'}{abs(moved)}"
        word = "" if moved == 0 else f" ({abs(moved)} {'higher' if moved > 0 else 'lower'} than under rule bags)"
        assert text == f"{where}{arrow}{word}"
    sides = seen.run("[...document.querySelectorAll('figure.rules .column')].map(t => t.textContent)")
    assert sides == ["bags", "instances"]


@needs_browser
def test_cell_opens_its_details_and_escape_closes_them(seen: Chromium, board: dict[str, Any]) -> None:
    cell = board["datasets"][0]["rows"][0]["cells"]["none"]["8"]
    seen.run("document.querySelector('[data-key=\"cell-8-bp\"]').focus()")
    seen.press("Enter")
    assert seen.run("document.getElementById('detail').open")
    text = seen.run("document.getElementById('detail').textContent")
    for expected in [
        *(f"{v:.2f}" for rule in cell["scores"]["auroc"].values() for v in rule["values"]),
        *cell["params"],
        *(cell_id[:10] for cell_id in cell["seed_ids"]),
        *cell["seconds"]["phases"],
        cell["command"],
        "A Processor",
        "3.11.2",
    ]:
        assert expected in text
    assert hash_of(seen) == {"cell": "8@bp"}
    for _ in range(40):  # focus cannot leave an open panel for the page behind it
        seen.press("Tab")
        assert seen.run(
            "[document.body, ...document.querySelectorAll('#detail, #detail *')].includes(document.activeElement)"
        )
    seen.run("document.querySelector('[data-key=\"go-1\"]').focus()")
    seen.press("Enter")
    assert hash_of(seen) == {"cell": "32@bp"}
    assert seen.run("document.activeElement.dataset.key") == "go-1"
    seen.press("Escape")
    seen.until("!document.getElementById('detail').open && location.hash === ''")
    assert seen.run("document.activeElement.dataset.key") == "cell-32-bp"


@pytest.mark.slow
@needs_browser
def test_the_command_can_be_copied(seen: Chromium, board: dict[str, Any]) -> None:
    seen.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    seen.run("document.querySelector('[data-key=\"cell-8-bp\"]').click()")
    seen.click("#detail .copy")
    seen.until("document.querySelector('#detail .copy').textContent !== 'Copy'")
    assert seen.run("document.querySelector('#detail .copy').textContent") == "Copied"
    seen.run("document.getElementById('detail').close()")
    copied = seen.run("(async () => { window.focus(); return await navigator.clipboard.readText(); })()")
    assert copied == board["datasets"][0]["rows"][0]["cells"]["none"]["8"]["command"]


@pytest.mark.slow
@needs_browser
def test_arrow_keys_move_between_cells_with_one_tab_stop(seen: Chromium) -> None:
    stops = "document.querySelectorAll('.cell[tabindex=\"0\"]').length"
    assert seen.run(stops) == 1
    seen.run("document.querySelector('.cell[tabindex=\"0\"]').focus()")
    first = seen.run("document.activeElement.dataset.key")
    for key, bag in [("ArrowRight", "32"), ("ArrowDown", "32"), ("End", "2048"), ("ArrowRight", "2048"), ("Home", "8")]:
        seen.press(key)
        assert seen.run("document.activeElement.dataset.bag") == bag
        assert seen.run(stops) == 1
    seen.press("ArrowUp")
    assert seen.run("document.activeElement.dataset.key") == first


@needs_browser
def test_url_holds_the_view(seen: Chromium, page: Path) -> None:
    fragment = "#dataset=criteo&rule=instances&noise=high&filter=bp&sort=bag-128&dir=up&bag=32&paper=1"
    seen.open(page, fragment)
    assert seen.run("document.querySelector('[role=tab][aria-selected=true]').textContent") == "Criteo"
    assert seen.run("document.querySelector('input[name=rule]:checked').value") == "instances"
    assert seen.run("document.querySelector('input[name=noise]:checked').value") == "high"
    assert seen.run("document.getElementById('filter').value") == "bp"
    assert column(seen, 128) == sorted(column(seen, 128))
    assert "bag size 32" in seen.run("document.querySelector('figure.cost h3').textContent")
    seen.run("document.querySelector('[data-key=\"share-true\"]').click()")
    assert hash_of(seen) == {k: v[0] for k, v in parse_qs(fragment[1:]).items()} | {"share": "1"}
    seen.run("location.hash = '#dataset=nobody&rule=<b>&sort=bag-7&noise=x&bag=0&cell=8@nobody'")
    seen.until("document.querySelector('[role=tab][aria-selected=true]').textContent === 'Adult'")
    assert len(seen.run(METHODS)) == 12
    assert not seen.run("document.getElementById('detail').open")


@pytest.mark.slow
@needs_browser
def test_charts_show_every_number(seen: Chromium, board: dict[str, Any]) -> None:
    dataset = board["datasets"][0]
    rows = [row for row in dataset["rows"] if not row["oracle"]]
    numbers = sum(bool(c["scores"]) for row in rows for c in row["cells"]["none"].values())
    assert seen.run("document.querySelectorAll('figure.bags .series .mark').length") == numbers
    points = sum(bool(c["paper"]) for row in rows for c in row["cells"]["none"].values())
    assert points > 0
    neutral = len(dataset["bags"])  # the paper's method that nobody here is called after
    assert seen.run("document.querySelectorAll('figure.bags .mark.hollow').length") == points + neutral
    assert seen.run("document.querySelectorAll('figure.bags .bound').length") == 1
    front = seen.run(
        "[...document.querySelectorAll('figure.cost .front [data-tip]')].map(e => e.dataset.tip.split(' · ')[0])"
    )
    assert sorted(front) == sorted(set(dataset["pareto"]["auroc"]["bags"]["512"]) & set(front))
    assert front
    assert seen.run("document.querySelectorAll('figure.noise .column').length") == len(dataset["bags"])
    coordinates = "[...document.querySelectorAll('.plot *')].flatMap(e => [...e.attributes]).map(a => a.value)"
    assert not seen.run(f"{coordinates}.some(v => /NaN|undefined|Infinity|null/.test(v))")
    for kind in ("bags", "cost", "rules", "phases", "noise"):
        assert seen.run(f"document.querySelectorAll('figure.{kind} table tbody tr').length") > 0
        name = seen.run(f"document.querySelector('figure.{kind} svg title').textContent")
        assert name == seen.run(f"document.querySelector('figure.{kind} h3').textContent")
    claims = seen.run("[...document.querySelectorAll('.claim-list li p')].map(p => p.textContent)")
    assert claims == [c["text"] for c in dataset["claims"] if c["rule"] == "bags" and c["noise"] == "none"]


def tips(browser: Chromium, figure: str, method: str) -> list[str]:
    """The notes by the pointer on the marks of a method."""
    found = browser.run(f"[...document.querySelectorAll('figure.{figure} .mark[data-tip]')].map(e => e.dataset.tip)")
    return [tip for tip in found if tip.startswith(f"{method} · ")]


def heights(browser: Chromium, figure: str) -> dict[str, str]:
    """How high the mark of each method stands: the first one of it."""
    marks = f"[...document.querySelectorAll('figure.{figure} .mark[data-tip]')]"
    found = browser.run(f"{marks}.map(e => [e.dataset.tip, e.getAttribute('transform')])")
    return {tip.split(" · ")[0]: place.rstrip(")").split(",")[1] for tip, place in reversed(found)}


def row_of(browser: Chromium, figure: str, method: str) -> list[str]:
    """A line of the data below a chart."""
    rows = f"[...document.querySelectorAll('figure.{figure} table.small tbody tr')]"
    found = browser.run(f"{rows}.map(r => [...r.cells].map(c => c.textContent))")
    return next(line[1:] for line in found if line[0] == method)


def scores_at(board: dict[str, Any], method: str, bag: str = "8", noise: str = "none") -> dict[str, Any]:
    """The scores of a method in the first dataset of a board, by metric and rule."""
    row = next(row for row in board["datasets"][0]["rows"] if row["method"] == method)
    scores: dict[str, Any] = row["cells"][noise][bag]["scores"]
    return scores


@pytest.mark.slow
@needs_browser
def test_charts_use_shared_seeds(browser: Chromium, tmp_path: Path) -> None:
    """A method with ten seeds, five of them easy, stands where the mean stands that it is compared by."""
    board = fake_board(1, bags=(8, 512), noises=("none",), holes=False)
    told = {"genbags": 90.0, "dllp": 80.0, "easyllp": 70.0}
    for row in board["datasets"][0]["rows"]:
        score = scores_at(board, row["method"]).get("auroc", {}) if not row["oracle"] else {}
        mean = told.get(row["method"], 75.0)
        score["bags"] = score.get("bags", {}) | {"mean": mean, "sd": 1.0, "shared": mean, "note": ""}
    scores_at(board, "easyllp")["auroc"]["bags"] |= {
        "mean": 95.0, "shared": 80.0, "shared_sd": 3.0, "note": "10 seeds",
    }  # fmt: skip
    browser.size(1280)
    browser.open(written(tmp_path, board), "#bag=8")
    for figure in ("bags", "cost"):
        assert heights(browser, figure)["easyllp"] == heights(browser, figure)["dllp"]
        assert heights(browser, figure)["easyllp"] != heights(browser, figure)["genbags"]
        assert "95.00 (1.00) · 10 seeds, shared 80.00" in tips(browser, figure, "easyllp")[0]
        assert row_of(browser, figure, "easyllp")[0] == "95.00 (1.00) · 10 seeds, shared 80.00"
        assert row_of(browser, figure, "dllp")[0] == "80.00 (1.00)"
        note = browser.run(f"document.querySelector('figure.{figure} .note').textContent")
        assert "drawn at their mean over the seeds that methods share" in note
    warmth = "document.querySelector('[data-key=\"cell-8-{}\"]').className.split(' ').pop()"
    shown = {method: browser.run(warmth.format(method)) for method in told}
    assert shown["easyllp"] == shown["dllp"] != shown["genbags"] == "h4"
    text = browser.run("document.querySelector('[data-key=\"cell-8-easyllp\"]').innerText").split()
    assert text[:2] == ["80.00", "(3.00)"]  # the large number is the one that is compared
    assert " ".join(text).endswith("10 seeds: 95.00")
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(("rule", "below"), [("bags", True), ("instances", False)])
def test_a_number_below_a_control_is_marked(browser: Chromium, tmp_path: Path, rule: str, below: bool) -> None:
    board = fake_board(1, bags=(8, 512), noises=("none",), holes=False)
    for row in board["datasets"][0]["rows"]:
        if not row["oracle"]:
            for found, control in (("bags", 82.0), ("instances", 60.0)):
                mean = control if row["control"] else 80.0
                scores_at(board, row["method"])["auroc"][found] |= {"mean": mean, "shared": mean, "note": ""}
    browser.open(written(tmp_path, board), f"#rule={rule}")
    cell = "document.querySelector('[data-key=\"cell-8-dllp\"]')"
    assert ("▽" in browser.run(f"{cell}.textContent")) == below
    assert ("below a control" in browser.run(f"{cell}.ariaLabel")) == below
    assert "▽" not in browser.run("document.querySelector('[data-key=\"cell-8-best-feature\"]').textContent")


@pytest.mark.slow
@needs_browser
def test_the_noise_chart_has_the_same_seeds_at_every_level(browser: Chromium, tmp_path: Path) -> None:
    board = fake_board(1, bags=(8,), noises=("none", "high"), holes=False)
    for metric in ("auroc", "log_loss"):
        score = scores_at(board, "dllp")[metric]["bags"]
        score |= {"mean": 93.0, "values": [80.0, 82.0, 84.0, 99.0, 99.0]}
        score["at_all_noises"] = {"mean": 82.0, "sd": 2.0, "seeds": 3, "method": "", "note": "seeds 0-2"}
    lost = {"mean": None, "sd": None, "seeds": 0, "method": "", "note": "no shared seed"}
    scores_at(board, "genbags")["auroc"]["bags"]["at_all_noises"] = lost
    for metric, text in (("auroc", "82.00 (2.00)"), ("log_loss", "82.000 (2.000)")):
        browser.open(written(tmp_path, board), f"#metric={metric}")
        assert tips(browser, "noise", "dllp")[0] == f"dllp · bag 8 · noise none · {text} · seeds 0-2"
        assert row_of(browser, "noise", "dllp")[0] == f"{text} · seeds 0-2"
        note = browser.run("document.querySelector('figure.noise .note').textContent")
        assert note.endswith("Means are over the seeds that a method has at every noise level: seeds 0-2.")
    browser.open(written(tmp_path, board))
    assert row_of(browser, "noise", "genbags")[0] == "no shared seed"
    assert len(tips(browser, "noise", "genbags")) == 1
    browser.open(written(tmp_path, board), "#rule=instances")
    assert "every noise level" not in browser.run("document.querySelector('figure.noise .note').textContent")
    assert browser.problems == []


@needs_browser
def test_metric_switch_changes_table_and_charts(seen: Chromium, board: dict[str, Any], page: Path) -> None:
    dataset = board["datasets"][0]
    menu = "document.getElementById('metric')"
    titles = "[...document.querySelectorAll('figure h3')].map(t => t.textContent)"
    assert seen.run("[...document.querySelectorAll('#metric option')].map(o => o.value)") == dataset["metrics"]
    assert "AUROC against bag size" in seen.run(titles)
    seen.click("[data-key='sort-bag-8']")  # the best first
    seen.run(f"{menu}.value = 'log_loss'; {menu}.dispatchEvent(new Event('change'))")
    assert hash_of(seen) == {"metric": "log_loss", "sort": "bag-8"}  # still the best first
    values = column(seen, 8)
    assert values == sorted(values)
    score = dataset["rows"][0]["cells"]["none"]["8"]["scores"]["log_loss"]["bags"]
    assert f"{score['mean']:.3f}" in seen.run("document.querySelector('[data-key=\"cell-8-bp\"]').textContent")
    assert "Log loss against bag size" in seen.run(titles)
    assert "Log loss against privacy noise" in seen.run(titles)
    assert "down and to the left is better" in seen.run("document.querySelector('figure.cost .note').textContent")
    assert "low is best" in seen.run("document.querySelector('.heading .note').textContent")
    assert "0.123" in seen.run("document.querySelector('.boundbox').textContent")
    assert seen.run("document.querySelectorAll('figure.bags .mark.hollow').length") == 0  # the paper has AUROC only
    # no claims: intervals exist for AUROC only, and the page says so
    assert seen.run("document.querySelectorAll('.claim-list li').length") == 0
    assert "Intervals are available for AUROC only" in seen.run("document.querySelector('.unjudged').textContent")
    assert not seen.run("document.querySelector('.legend').textContent.includes('not separated')")
    places = seen.run("[...document.querySelectorAll('tr[data-m] td.rank b')].map(b => Number(b.textContent))")
    assert sorted(places)[0] == 1
    ticks = seen.run("[...document.querySelectorAll('figure.bags .axis text')].map(t => t.textContent)")
    assert len(ticks) == len(set(ticks))  # as many decimals as the steps need
    coordinates = "[...document.querySelectorAll('.plot *')].flatMap(e => [...e.attributes]).map(a => a.value)"
    assert not seen.run(f"{coordinates}.some(v => /NaN|undefined|Infinity|null/.test(v))")
    seen.run("document.querySelector('[data-key=\"cell-8-bp\"]').click()")
    detail = seen.run("document.getElementById('detail').textContent")
    assert f"{score['mean']:.3f}" in detail
    assert "Log loss" in detail
    seen.open(page, "#metric=log_loss&dataset=criteo")
    assert seen.run(f"{menu}.value") == "log_loss"
    seen.open(page, "#metric=nonsense")
    assert seen.run(f"{menu}.value") == "auroc"


@pytest.mark.slow
@needs_browser
def test_rules_of_plugins_can_be_selected(browser: Chromium, tmp_path: Path) -> None:
    board = fake_board(1, bags=(8, 512), noises=("none",))
    board["rules"].append({"name": "third", "title": "a third", "summary": "what a plugin brings", "higher": True})
    row = board["datasets"][0]["rows"][0]
    for cell in row["cells"]["none"].values():
        for scores in cell["scores"].values():
            scores["third"] = {**scores["bags"], "mean": 12.5, "shared": 12.5}
    browser.open(written(tmp_path, board), "#rule=third")
    assert browser.run("[...document.querySelectorAll('input[name=rule]')].map(e => e.value)") == [
        "bags", "instances", "third",
    ]  # fmt: skip
    assert browser.run("document.querySelector('input[name=rule]:checked').value") == "third"
    assert "12.50" in browser.run("document.querySelector('[data-key=\"cell-8-bp\"]').textContent")
    assert "undefined" in browser.run("document.querySelector('[data-key=\"cell-8-dllp\"]').textContent")
    assert "what a plugin brings" in browser.run("document.querySelector('input[value=third]').parentElement.title")
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_highlighted_method_stays_highlighted(seen: Chromium) -> None:
    hot = "[...document.querySelectorAll('figure.bags .series.hot [data-tip]')].map(e => e.dataset.tip.split(' · ')[0])"
    assert seen.run(hot) == []
    seen.click("[data-key='chip-dllp']")
    for _ in range(2):
        assert set(seen.run(hot)) == {"dllp"}
        assert seen.run("getComputedStyle(document.querySelector('figure.bags .series:not(.hot)')).opacity") < "0.5"
        seen.run("document.querySelector('input[name=rule]:not(:checked)').click()")
    seen.run("document.querySelector('[data-key=\"chip-dllp\"]').click()")
    assert seen.run(hot) == []


@pytest.mark.slow
@needs_browser
def test_a_board_without_noise_has_no_noise_chart(browser: Chromium, tmp_path: Path) -> None:
    browser.open(written(tmp_path, fake_board(1, noises=("none",))))
    assert browser.run("document.querySelectorAll('figure.noise, input[name=noise]').length") == 0
    assert browser.run("document.querySelectorAll('figure').length") == 4
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_every_control_has_a_name(seen: Chromium) -> None:
    wanted = {"button", "tab", "radio", "checkbox", "searchbox", "textbox", "img", "image", "table", "region", "dialog"}
    seen.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    nodes = seen.accessible()
    roles = {node["role"] for node in nodes}
    assert {
        "button",
        "tab",
        "tablist",
        "tabpanel",
        "radio",
        "checkbox",
        "searchbox",
        "table",
        "columnheader",
        "rowheader",
    } <= roles
    assert [n for n in nodes if n["role"] in wanted and not n["name"].strip()] == []
    seen.run("document.querySelector('[data-key=\"cell-8-bp\"]').click()")
    dialog = [n for n in seen.accessible() if n["role"] == "dialog"]
    assert [n["name"].strip() for n in dialog] == ["bp"]
    ids = seen.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


CONTRAST = """(() => {
  const canvas = Object.assign(document.createElement('canvas'), {width: 1, height: 1});
  const context = canvas.getContext('2d', {willReadFrequently: true});
  const paint = (colours) => {
    for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (v) => (v <= 10.3 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
  const low = [];
  for (const e of document.querySelectorAll('body *')) {
    const speaks = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!speaks || !e.checkVisibility({opacityProperty: true}) || e.closest('.sr, :disabled, .skip')) continue;
    const ground = ['#fff'];
    for (let p = e; p; p = p.parentElement) ground.splice(1, 0, getComputedStyle(p).backgroundColor);
    const ink = e instanceof SVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color;
    const [a, b] = [light(paint(ground)), light(paint([...ground, ink]))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) low.push(`${e.tagName}.${e.getAttribute('class')} ${e.textContent.slice(0, 30)} ${ratio}`);
  }
  return low;
})()"""


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(seen: Chromium, scheme: str) -> None:
    seen.media(scheme)
    assert seen.run("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    assert seen.run(CONTRAST) == []
    seen.run("document.querySelector('[data-key=\"cell-8-bp\"]').click()")
    assert seen.run(CONTRAST) == []


@pytest.mark.slow
@needs_browser
def test_light_and_dark_follow_the_system_until_the_reader_chooses(seen: Chromium, page: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light = seen.run(ground)
    seen.media("dark")
    dark = seen.run(ground)
    assert light != dark
    seen.click("#theme")
    assert seen.run(ground) == light
    seen.open(page)
    assert seen.run(ground) == light  # remembered
    seen.media("light", medium="print")
    seen.run("document.documentElement.dataset.theme = 'dark'")
    assert seen.run(ground) == "rgb(255, 255, 255)"  # paper is white
    assert seen.run("getComputedStyle(document.getElementById('plain')).display") == "block"
    seen.run("localStorage.clear()")


@needs_browser
@pytest.mark.parametrize("width", [360, 960])
def test_the_page_never_scrolls_sideways(seen: Chromium, page: Path, width: int) -> None:
    seen.size(width)
    seen.open(page, "#paper=1")
    assert seen.run("document.documentElement.scrollWidth") <= width
    widths = seen.run("[...document.querySelectorAll('.plot')].map(p => p.getBoundingClientRect().right)")
    assert max(widths) <= width
    seen.run("document.querySelector('.cell').click()")
    assert seen.run("document.getElementById('detail').scrollWidth <= document.getElementById('detail').clientWidth")


@needs_browser
def test_without_scripts_there_are_tables(browser: Chromium, page: Path, board: dict[str, Any]) -> None:
    browser.scripts(False)
    try:
        browser.send("Page.navigate", url=page.resolve().as_uri())
        browser.until("document.readyState === 'complete' && !!document.getElementById('plain')")
        assert browser.run("document.getElementById('plain').checkVisibility()")
        assert browser.run("document.querySelectorAll('#plain table').length") == 3 * 2 * 3
        assert not browser.run("document.querySelector('.bar').checkVisibility()")
        assert not browser.run("document.getElementById('theme').checkVisibility()")
        cell = browser.run("document.querySelector('#plain tbody td').textContent")
    finally:
        browser.scripts(True)
    score = board["datasets"][0]["rows"][0]["cells"]["none"]["8"]["scores"]["auroc"]["bags"]
    assert cell.startswith(f"{score['mean']:.2f} ({score['sd']:.2f})")


@pytest.mark.slow
@needs_browser
def test_printing_gives_a_document(seen: Chromium, tmp_path: Path) -> None:
    seen.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", (tmp_path / "page.pdf").read_bytes())) >= 3


@needs_browser
def test_hostile_text_stays_text(browser: Chromium, tmp_path: Path) -> None:
    browser.size(360)
    path = written(tmp_path, hostile_board())
    browser.open(path)
    tabs = browser.run("document.querySelectorAll('[role=tab]').length")
    for tab in range(tabs):
        browser.run(f"document.querySelectorAll('[role=tab]')[{tab}].click()")
        for rule in ("instances", "bags"):
            browser.run(f"document.querySelector('input[name=rule][value={rule}]').click()")
        opened = browser.run(
            "(() => { const detail = document.getElementById('detail'); const opened = [];"
            " for (const cell of [...document.querySelectorAll('.cell')].filter((_, i) => i % 2)) {"
            "   cell.click(); opened.push(detail.open && detail.querySelectorAll('section').length > 5);"
            "   detail.close(); }"
            " return opened; })()"
        )
        assert len(opened) >= (11 if tab else 0)  # the first tab is about all datasets; a variant is folded
        assert all(opened)
        panels = browser.run(
            "(() => { const detail = document.getElementById('detail'); const texts = [];"
            " for (const link of document.querySelectorAll('#panel .link')) {"
            "   link.click(); texts.push(detail.open && detail.querySelectorAll('a').length === 0); detail.close(); }"
            " return texts; })()"
        )
        assert len(panels) >= 9
        assert all(panels)  # no address that is none of the web becomes a link
        assert browser.run("document.documentElement.scrollWidth") <= 360
    assert browser.run("window.stolen === undefined && ({}).a === undefined")
    assert browser.run("document.querySelectorAll('img, iframe, object').length") == 0
    assert browser.run("document.scripts.length") == 3
    assert HOSTILE[2] in browser.run("document.getElementById('panel').textContent")
    # Every element has one of our own attributes only: none came out of a name.
    handlers = (
        "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).filter(a => a.name.startsWith('on'))"
    )
    assert browser.run(f"{handlers}.length") == 0
    assert browser.problems == []
    assert browser.requests == [path.resolve().as_uri()]


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("name", list(odd_boards()))
def test_unusual_boards_render_without_errors(browser: Chromium, tmp_path: Path, name: str) -> None:
    browser.size(900)
    browser.open(written(tmp_path, odd_boards()[name]))
    for rule in ("instances", "bags"):
        browser.run(f"document.querySelector('input[name=rule][value={rule}]')?.click()")
    for index in range(min(4, browser.run("document.querySelectorAll('.cell').length"))):
        browser.run(f"document.querySelectorAll('.cell')[{index}].click()")
        browser.run("document.getElementById('detail').close()")
    coordinates = "[...document.querySelectorAll('svg *')].flatMap(e => [...e.attributes]).map(a => a.value)"
    assert not browser.run(f"{coordinates}.some(v => /NaN|undefined|Infinity/.test(v))")
    browser.run("document.querySelectorAll('.pill').forEach(e => e.remove())")  # 'undefined' is the word for a status
    shown = browser.run("document.getElementById('panel').textContent")
    assert re.search(r"NaN|Infinity|\[object|undefined", shown) is None
    assert browser.run("document.querySelectorAll('#panel b b').length") == 0
    assert browser.problems == []
