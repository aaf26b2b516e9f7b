"""The first tab of the page, the panels of methods and datasets, and the foot, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from chromium import Chromium
from fake_board import METHODS, fake_board, with_overall
from test_page import CONTRAST, hash_of, needs_browser, written

from llpbench.board.built.about import FILES, GUIDES, about

ROWS = "[...document.querySelectorAll('table.overall tbody tr th')].map(r => r.querySelector('bdi').textContent)"
DIALOG = "document.getElementById('detail')"


@pytest.fixture(scope="module")
def board() -> dict[str, Any]:
    return with_overall(fake_board(2))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, board: dict[str, Any]) -> Path:
    return written(tmp_path_factory.mktemp("page"), board)


@pytest.fixture
def seen(browser: Chromium, page: Path) -> Iterator[Chromium]:
    browser.size(1280)
    browser.media("light")
    browser.open(page)
    yield browser
    assert browser.problems == []
    assert [url for url in browser.requests if url != page.resolve().as_uri()] == []


@needs_browser
def test_the_first_tab_is_about_all_datasets(seen: Chromium, board: dict[str, Any]) -> None:
    assert seen.run("document.querySelector('[role=tab][aria-selected=true]').textContent") == "All"
    standing = board["overall"][0]
    assert seen.run(ROWS) == [row["method"] for row in standing["rows"]]
    table = seen.run("document.querySelector('table.overall').textContent")
    assert table.count("not separated") == 2
    first = standing["rows"][0]
    assert f"{first['rank']:.2f}" in table
    assert f"{first['low']:.1f}–{first['high']:.1f}" in table
    note = seen.run("document.querySelector('.heading .note').textContent")
    for part in ("36 cells", "2 datasets from 2 sources", "12 columns", "2 to 3 seeds a column"):
        assert part in note
    assert "late (4 of 36)" in seen.run("document.querySelector('.legend').textContent")
    assert seen.run("document.querySelectorAll('figure.ranks .clique').length") == len(standing["bars"])
    assert seen.run("document.querySelectorAll('figure.ranks .series').length") == len(standing["rows"])
    cells = len(standing["rows"]) * (len(standing["rows"]) - 1)
    assert seen.run("document.querySelectorAll('.matrix td:not(.self)').length") == cells
    suite = board["suites"]["suite-1"]
    lines = seen.run("[...document.querySelectorAll('.coverage li')].map(li => li.textContent)")
    assert lines == [board["coverage"][0]["text"], *suite["parts"]]
    heading = seen.run("document.querySelector('.coverage h4').textContent")
    assert heading == "Of the suite suite-1 (published 2026-11-16), controls and bounds included"
    answer = seen.run("document.querySelector('.answer').textContent")
    assert answer.startswith(
        "bp has the best mean rank over 12 columns (2 datasets from 2 sources): 1.3 (0.8 to 2.0) of 9; "
        "not separated from it: bp-count and count-nll."
    )
    assert answer.endswith("random: bp 1.3, 2 not separatedprivacy: bp 1.3, 2 not separated")
    assert seen.run("document.querySelector('.heat thead').textContent").endswith("10242 sources20481 source")
    coordinates = "[...document.querySelectorAll('.plot *')].flatMap(e => [...e.attributes]).map(a => a.value)"
    assert not seen.run(f"{coordinates}.some(v => /NaN|undefined|Infinity|null/.test(v))")


@pytest.mark.slow
@needs_browser
def test_block_metric_filter_and_order_are_kept_in_the_address(seen: Chromium) -> None:
    seen.click("[data-key='choose-block-privacy']")
    assert hash_of(seen) == {"block": "privacy"}
    seen.run("(() => { const m = document.getElementById('metric'); m.value = 'log_loss';"
             " m.dispatchEvent(new Event('change')); })()")  # fmt: skip
    assert hash_of(seen) == {"block": "privacy", "metric": "log_loss"}
    assert seen.run("document.querySelectorAll('.matrix, .clique').length") == 0  # tests are of the main metric
    assert seen.run("document.querySelector('figure.ranks h3').textContent") == "Mean ranks"
    seen.click("[data-key='sort-time']")
    assert seen.run(ROWS) == [m for m in METHODS if "[" not in m]
    seen.click("[data-key='sort-time']")
    assert seen.run(ROWS)[0] == "mean-ridge"
    seen.run("document.getElementById('filter').focus()")
    seen.type("belief")
    assert seen.run(ROWS) == ["bp"]
    assert seen.run("document.getElementById('live').textContent") == "1 of 9 methods shown"


@needs_browser
def test_the_chooser_names_the_best_methods_within_the_budget(seen: Chromium, board: dict[str, Any]) -> None:
    rows = board["overall"][0]["rows"]  # the seconds of a method rise with its rank
    names = "[...document.querySelectorAll('.chooser li bdi')].map(b => b.textContent)"
    assert seen.run(names) == [row["method"] for row in rows[:3]]
    seen.click("[data-key='choose-budget-1']")
    assert seen.run(names) == [row["method"] for row in rows if row["seconds"] <= 1]
    why = seen.run("document.querySelector('.chooser li .note').textContent")
    assert why == f"mean rank {rows[0]['rank']:.1f} of {len(rows)} · 2 sources · 0.500 s a fit"
    seen.click("[data-key='choose-size-128']")
    seen.click("[data-key='choose-block-privacy']")
    assert hash_of(seen) == {"block": "privacy", "size": "128", "budget": "1"}
    assert "at 128 rows · 1 source" in seen.run("document.querySelector('.chooser li .note').textContent")
    assert seen.run("document.querySelectorAll('table.overall svg.rankbar').length") == len(rows)
    assert seen.run("document.querySelectorAll('figure.allcost .mark').length") == len(rows)


@pytest.mark.slow
@needs_browser
def test_first_sort_puts_the_best_on_top(seen: Chromium) -> None:
    """A column begins with its good end up; an order that another tab does not have is not taken there."""
    best = seen.run(ROWS)[0]
    for column in ("wins", "scaled"):
        seen.click(f"[data-key='sort-{column}']")
        assert hash_of(seen) == {"sort": column}
        assert seen.run(ROWS)[0] == best
    seen.click("[data-key='tab-adult']")
    assert hash_of(seen) == {"dataset": "adult"}
    seen.click("[data-key='sort-bag-8']")
    seen.click("[data-key='noise-high']")
    seen.click("[data-key='bag-32']")
    assert hash_of(seen) == {"dataset": "adult", "sort": "bag-8", "noise": "high", "bag": "32"}
    seen.click("[data-key='tab-marketing']")
    assert hash_of(seen) == {"dataset": "marketing", "sort": "bag-8", "noise": "high", "bag": "32"}
    seen.click("[data-key='tab-All']")
    assert hash_of(seen) == {}
    assert seen.run(ROWS)[0] == best


@pytest.mark.slow
@needs_browser
def test_method_panel_lists_the_largest_gaps(browser: Chromium, tmp_path: Path) -> None:
    board = with_overall(fake_board(1, bags=(8, 512), noises=("none",), holes=False))
    (dataset,) = board["datasets"]
    rivals = [row for row in dataset["rows"] if not (row["oracle"] or row["control"]) and "[" not in row["method"]]
    for place, row in enumerate(rivals):
        for bag, step in (("8", 1.0), ("512", 2.0)):
            row["cells"]["none"][bag]["scores"]["auroc"]["bags"] |= {
                "mean": 90 - step * place,
                "shared": 90 - step * place,
            }
    browser.open(written(tmp_path, board), f"#method={rivals[2]['method']}")
    sections = "[...document.querySelectorAll('#detail section')].map(s => [...s.querySelectorAll('h3, li')])"
    texts = browser.run(f"{sections}.map(s => s.map(e => e.textContent))")
    (found,) = [lines for title, *lines in texts if title == "Largest gaps to the best method"]
    first = rivals[0]["method"]
    assert found == [
        f"Adult, bag 512: 86.00, place 3 of {len(rivals)}; {first} has 90.00",
        f"Adult, bag 8: 88.00, place 3 of {len(rivals)}; {first} has 90.00",
    ]
    browser.open(written(tmp_path, board), f"#method={first}")
    assert "furthest behind" not in browser.run("document.getElementById('detail').textContent")


@pytest.mark.slow
@needs_browser
def test_variants_are_folded_under_their_method(seen: Chromium, page: Path) -> None:
    seen.click("[data-key='fold-bp']")
    assert seen.run(ROWS)[:3] == ["bp", "bp[iterations=1]", "bp-count"]
    assert "25 % of 12 cells" in seen.run("document.querySelector('tr.variant').textContent")
    assert hash_of(seen) == {"open": "bp"}
    seen.click("[data-key='fold-bp']")
    assert "bp[iterations=1]" not in seen.run(ROWS)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(("order", "way"), [("rank", "up"), ("bag-8", "down")])
def test_variants_of_a_dataset_open_below_their_method(browser: Chromium, tmp_path: Path, order: str, way: str) -> None:
    board = with_overall(fake_board(1, bags=(8, 512), noises=("none",), holes=False))
    (dataset,) = board["datasets"]
    variant = next(row for row in dataset["rows"] if row["method"] == "bp[iterations=1]")
    dataset["rows"] += [{**variant, "method": "dllp[lr=1]", "name": "dllp"}]
    for cell in (cell for cells in variant["cells"].values() for cell in cells.values()):
        cell["scores"] = {}
    browser.open(written(tmp_path, board), f"#dataset=adult&open=bp%7Cdllp&sort={order}&dir={way}")
    read = "[...document.querySelectorAll('table.board tbody tr[data-m]')].map(r => r.querySelector('bdi').textContent)"
    shown = browser.run(read)
    assert shown[shown.index("bp") + 1] == "bp[iterations=1]"
    assert shown[shown.index("dllp") + 1] == "dllp[lr=1]"
    assert len(shown) == len(set(shown)) == len(METHODS) + 3  # one more variant, two controls
    variants = browser.run("[...document.querySelectorAll('tr.variant bdi')].map(b => b.textContent)")
    assert set(variants) == {"bp[iterations=1]", "dllp[lr=1]"}
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_method_panel_counts_reproduced_cells(browser: Chromium, tmp_path: Path) -> None:
    board = with_overall(fake_board(3, bags=(8, 512), noises=("none",), holes=False))
    first, second, third = ({row["method"]: row for row in dataset["rows"]} for dataset in board["datasets"])
    second["bp"]["verified"] = {"cells": 2, "doubted": 0, "of": 6, "latest": "2026-11-17"}
    third["bp"]["verified"] = {"cells": 1, "doubted": 1, "of": 6, "latest": "2026-11-09"}
    first["dllp"]["verified"] = {"cells": 4, "doubted": 0, "of": 6, "latest": "2026-11-16"}
    path = written(tmp_path, board)
    lines = f"[...{DIALOG}.querySelectorAll('dl > div')].map(d => [...d.children].map(c => c.textContent))"
    for method, told in {
        "bp": "3 of 18 cells, latest 2026-11-17",
        "dllp": "4 of 18 cells, latest 2026-11-16",
        "easyllp": None,
    }.items():
        browser.open(path, f"#method={method}")
        assert dict(browser.run(lines)).get("reproduced") == told
    assert browser.problems == []


@needs_browser
def test_method_panel_has_a_url(seen: Chromium, page: Path) -> None:
    seen.click("[data-key='about-bp']")
    assert hash_of(seen) == {"method": "bp"}
    text = seen.run(f"{DIALOG}.textContent")
    for part in (
        "belief propagation",
        "A. Author (2024)",
        "lr",
        "step size",
        "0.001",
        "Adult",
        "Where the best control",
    ):
        assert part in text
    link = seen.run(f"[...{DIALOG}.querySelectorAll('a')].map(a => [a.href, a.target, a.rel])")
    assert link == [["https://example.org/paper", "_blank", "noopener noreferrer"]]
    seen.press("Escape")
    seen.until(f"!{DIALOG}.open && location.hash === ''")
    assert seen.run("document.activeElement.dataset.key") == "about-bp"
    seen.open(page, "#method=dllp")
    assert seen.run(f"{DIALOG}.querySelector('h2').textContent") == "dllp"
    seen.run(f"{DIALOG}.querySelector('.scores button').click()")  # a number leads to its cell
    assert hash_of(seen) == {"dataset": "adult", "cell": "8@dllp"}
    assert "bag 8" in seen.run(f"{DIALOG}.querySelector('header').textContent")
    seen.open(page, "#method=nobody")
    assert not seen.run(f"{DIALOG}.open")


@needs_browser
def test_a_dataset_has_a_panel_with_its_bags(seen: Chromium, page: Path) -> None:
    seen.open(page, "#dataset=adult")
    seen.click("[data-key='data-more-adult']")
    assert hash_of(seen) == {"dataset": "adult", "data": "adult"}
    text = seen.run(f"{DIALOG}.textContent")
    for part in ("CC BY 4.0", "48,842", "76.0 %, 24.0 %", "12 bags of 8 rows", "https://example.org/data"):
        assert part in text
    seen.press("Escape")
    seen.until(f"!{DIALOG}.open")
    assert seen.run("document.activeElement.dataset.key") == "data-more-adult"


@pytest.mark.slow
@needs_browser
def test_foot_shows_citation_downloads_and_steps(seen: Chromium) -> None:
    foot = seen.run("document.getElementById('foot').textContent")
    for part in ("@software{llpbench", "llpbench new method mine", "a group of rows", "llpbench 0.1.0", "2026-11-16"):
        assert part in foot
    links = seen.run("[...document.querySelectorAll('#foot a')].map(a => a.getAttribute('href'))")
    assert links == ["results.csv", "seeds.csv", "https://example.org/"]


HREFS = "[...document.querySelectorAll('#foot a')].map(a => [a.textContent, a.getAttribute('href')])"


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("files", [{**FILES, **GUIDES}, {}])
def test_foot_links_to_the_files_next_to_the_page(browser: Chromium, tmp_path: Path, files: dict[str, str]) -> None:
    board = with_overall(fake_board(1, bags=(8,), noises=("none",), holes=False))
    board["about"] = msgspec.to_builtins(about([], files)) | {"links": {}}
    browser.open(written(tmp_path, board))
    guides = [[words.capitalize(), address] for address, words in GUIDES.items()]
    inside = [["guide on submitting", "../docs/submitting.md"], *([name, name] for name in FILES), *guides]
    assert browser.run(HREFS) == (inside if files else [])
    assert "see the guide on submitting" in browser.run("document.querySelector('.steps').textContent")
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize(
    ("suites", "command"),
    [
        ({}, "llpbench run -m mine -o results/mine"),
        ({"s-1": {"state": "draft", "parts": ["random: none"]}}, "llpbench run -m mine -o results/mine"),
        ({"s-1; rm": {"state": "published 2026-01-01", "parts": ["a: all"]}}, "llpbench run -m mine -o results/mine"),
        (
            {
                "s-1": {"state": "published 2026-11-17", "parts": ["random: all 9 cells", "images: none"]},
                "s-0": {"state": "published 2025-11-17", "parts": ["tables: all 9 cells"]},
                "s-2": {"state": "draft", "parts": ["random: none"]},
            },
            "llpbench run --suite s-1/random --methods mine --out results/mine",
        ),
    ],
)
def test_a_method_is_added_by_running_the_newest_published_suite(
    browser: Chromium, tmp_path: Path, suites: dict[str, Any], command: str
) -> None:
    board = fake_board(1, bags=(8,), noises=("none",), holes=False)
    board |= {"about": msgspec.to_builtins(about([], GUIDES)), "suites": suites}
    browser.open(written(tmp_path, board))
    commands = browser.run("[...document.querySelectorAll('.steps code')].map(c => c.textContent)")
    assert commands[1] == command
    assert "new method mine" in commands[0]
    assert commands[2].startswith("llpbench versus")
    assert browser.problems == []


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1400, "dark")])
def test_first_tab_fits_narrow_screens(seen: Chromium, page: Path, width: int, scheme: str) -> None:
    seen.size(width)
    seen.media(scheme)
    for fragment in ("#open=bp", "#method=bp", "#dataset=adult&data=adult"):
        seen.open(page, fragment)
        assert seen.run("document.documentElement.scrollWidth") <= width
        assert seen.run(f"{DIALOG}.scrollWidth <= {DIALOG}.clientWidth")
        assert seen.run(CONTRAST) == []
        plots = seen.run("[...document.querySelectorAll('.plot')].map(p => p.getBoundingClientRect().right)")
        assert max([0, *plots]) <= width


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("fragment", ["", "#dataset=adult"])
def test_method_names_are_complete_on_narrow_screens(browser: Chromium, tmp_path: Path, fragment: str) -> None:
    """Three methods were "llp-…", which tells nobody which."""
    board = with_overall(fake_board(1, bags=(8, 512), noises=("none",), holes=False))
    browser.size(390)
    browser.open(written(tmp_path, board), fragment)
    cut = "[...document.querySelectorAll('.who .link')].filter(l => l.scrollWidth > l.clientWidth)"
    assert len(browser.run("[...document.querySelectorAll('.who .link')].map(l => l.textContent)")) > 5
    assert browser.run(f"{cut}.map(l => l.textContent)") == []
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_bags_without_fixed_size_are_named_after_their_scheme(browser: Chromium, tmp_path: Path) -> None:
    board = fake_board(1, bags=(0,), noises=("none",), holes=False)
    board["datasets"][0] |= {"self_sized": "group-by"}
    browser.open(written(tmp_path, board))
    assert "group-by" in browser.run("document.querySelector('table.board thead').textContent")
    browser.run("document.querySelector('.cell').click()")
    shown = browser.run("document.getElementById('panel').textContent + document.getElementById('detail').textContent")
    assert "bag 0" not in shown
    assert "bag size 0" not in shown
    assert "<th scope=col>group-by" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert browser.run("document.querySelectorAll('figure.bags').length") == 0
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_datasets_that_differ_in_their_bags_share_a_tab(browser: Chromium, tmp_path: Path) -> None:
    board = fake_board(2, bags=(8, 512), noises=("none",), holes=False)
    for dataset in board["datasets"]:
        dataset["base"] = "adult"
    browser.open(written(tmp_path, board))
    assert browser.run("[...document.querySelectorAll('[role=tab]')].map(t => t.textContent)") == ["Adult"]
    browser.run("(() => { const m = document.getElementById('data'); m.value = 'marketing';"
                " m.dispatchEvent(new Event('change')); })()")  # fmt: skip
    assert browser.run("document.querySelector('#panel h2').textContent") == "Marketing"
    assert browser.run("document.querySelector('[role=tab][aria-selected=true]').textContent") == "Adult"
    board = with_overall(board)
    for dataset in board["datasets"]:
        dataset["base"] = "tables"
    (tmp_path / "tables").mkdir()
    browser.open(written(tmp_path / "tables", board), "#dataset=tables")
    assert browser.run("document.querySelector('#panel h2').textContent") == "Adult"
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_settings_of_a_tab_are_shown_in_one_table(browser: Chromium, tmp_path: Path) -> None:
    """A line for each with the numbers of the board, and their mean where most methods have a number."""
    board = with_overall(fake_board(3, bags=(0,), noises=("none",), holes=False))
    long = "one-of-many-sets-with-a-name-that-is-far-too-long-for-a-telephone"
    names = ["adult, own-bags", "adult[set=a-b], own-bags", f"adult[set={long}], own-bags"]
    for dataset, name in zip(board["datasets"], names, strict=True):
        dataset |= {"name": name, "label": name, "base": "adult", "self_sized": "own-bags"}
    kept = ("bp", "dllp", "best-feature")
    board["datasets"][0]["rows"] = [row for row in board["datasets"][0]["rows"] if row["method"] in kept]
    browser.size(1280)
    browser.open(written(tmp_path, board), "#dataset=adult%2C+own-bags")
    read = "[...document.querySelectorAll('.family tr')].map(r => [...r.children].map(c => c.textContent))"
    (_, *methods), (first, *means), *lines = browser.run(read)
    assert set(methods) == {m for m in METHODS if "[" not in m}
    assert [line[0] for line in lines] == ["a-b", long, "Adult"]  # what most methods have is first
    assert first == "mean of 2"
    ordered = [*board["datasets"][1:], board["datasets"][0]]
    for dataset, (_, *shown) in zip(ordered, lines, strict=True):
        cells = {row["method"]: row["cells"]["none"].get("0") for row in dataset["rows"]}
        means_of = {m: cell["scores"]["auroc"]["bags"]["mean"] for m, cell in cells.items() if cell}
        assert shown == [f"{means_of[m]:.2f}" if m in means_of else "–" for m in methods]
        known = [float(number) for number in shown if number != "–"]
        line = f".family tbody + tbody tr:nth-child({ordered.index(dataset) + 1})"
        bold = browser.run(f"[...document.querySelectorAll('{line} b')].map(b => b.textContent)")
        assert bold == [f"{max(known):.2f}"]
    for place, mean in enumerate(means, start=1):
        assert abs(float(mean) - (float(lines[0][place]) + float(lines[1][place])) / 2) < 0.011
    browser.run("document.querySelectorAll('.family tbody button')[1].click()")
    assert browser.run("document.querySelector('#panel h2').textContent") == names[2]
    browser.open(written(tmp_path, board), "#dataset=adult")
    assert browser.run("document.querySelector('#panel h2').textContent") == names[1]  # the tab: with most methods
    assert browser.run(CONTRAST) == []
    browser.size(390)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    assert browser.run("document.querySelector('.family tbody th').offsetWidth") < 180  # numbers are in sight
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("width", [390])
def test_setting_names_stay_visible_with_many_methods(browser: Chromium, tmp_path: Path, width: int) -> None:
    board = with_overall(fake_board(2, bags=(0,), noises=("none",), holes=False))
    for dataset, name in zip(board["datasets"], ("adult", "adult[bags=airport-month]"), strict=True):
        dataset |= {"name": name, "label": name, "base": "adult", "self_sized": "own-bags"}
        like = dataset["rows"][0]
        dataset["rows"] = [{**like, "method": f"method-{i}", "name": f"method-{i}"} for i in range(24)]
    browser.size(width)
    browser.open(written(tmp_path, board), "#dataset=adult")
    heads = "[...document.querySelectorAll('.family tbody th')]"
    assert min(browser.run(f"{heads}.map(h => h.offsetWidth)")) >= 100
    assert max(browser.run(f"{heads}.map(h => h.offsetHeight)")) < 70
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.problems == []


@needs_browser
def test_rows_show_origin_and_verification(browser: Chromium, tmp_path: Path) -> None:
    board = with_overall(fake_board(1, bags=(8, 512), noises=("none",), holes=False))
    bp, _, count, *_ = board["datasets"][0]["rows"]
    bp["whose"], count["whose"] = "yours", "published"
    count["verified"] = {"cells": 3, "doubted": 0, "of": 6, "latest": "2026-11-16"}
    path = written(tmp_path, board)
    browser.open(path, "#dataset=adult&open=bp")
    marks = "[...document.querySelectorAll('.rowmark')].map(m => m.textContent)"
    assert sorted(browser.run(marks)) == ["published", "yours", "✓ 3 of 6 cells reproduced"]
    browser.open(path)
    assert browser.run(marks) == ["yours"]
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_methods_have_distinct_markers(browser: Chromium, tmp_path: Path) -> None:
    board = fake_board(1, bags=(8,), noises=("none",), holes=False)
    (dataset,) = board["datasets"]
    like = next(row for row in dataset["rows"] if not (row.get("oracle") or row.get("control")))
    dataset["rows"] = [{**like, "method": f"m{i}", "name": f"m{i}"} for i in range(40)]
    browser.open(written(tmp_path, board), "#dataset=adult")
    glyphs = browser.run("[...document.querySelectorAll('.board tbody .glyph')].map(g => g.innerHTML)")
    assert len(glyphs) == len(set(glyphs)) == 40
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("number", [12, 60])
def test_phases_have_distinct_patterns(browser: Chromium, tmp_path: Path, number: int) -> None:
    """Neither in the bars nor in their key, which agree."""
    board = fake_board(1, bags=(8,), noises=("none",), holes=False)
    phases = {f"phase-{i}": 1.0 for i in range(number)}
    for cell in (row["cells"]["none"]["8"] for row in board["datasets"][0]["rows"] if not row["oracle"]):
        cell["seconds"] = {"fit": number + 1.0, "phases": phases}
    browser.open(written(tmp_path, board), "#dataset=adult")
    look = (
        "(r) => { const over = r.nextElementSibling?.matches('.over') ? r.nextElementSibling.getAttribute('fill') : '';"
        " const lines = over && document.querySelector(over.slice(4, -1));"
        " return getComputedStyle(r).fill + (over && lines.getAttribute('width') +"
        " lines.getAttribute('patternTransform')); }"
    )
    bars = browser.run(f"[...document.querySelector('figure.phases .plot > g').querySelectorAll('.phase')].map({look})")
    assert len(bars) == len(set(bars)) == number + 1
    assert browser.run(f"[...document.querySelectorAll('figure.phases .key .phase')].map({look})") == bars
    assert browser.run("[...document.querySelectorAll('figure.phases .key li')].map(l => l.textContent)") == [
        *phases,
        "other",
    ]
    assert browser.problems == []


@pytest.mark.slow
@needs_browser
def test_bag_sizes_without_results_at_a_noise_level_are_hidden(browser: Chromium, tmp_path: Path) -> None:
    board = fake_board(1, bags=(8, 32, 512), noises=("none", "high"), holes=False)
    for row in board["datasets"][0]["rows"]:
        for bag in ("32", "512"):
            row["cells"].get("high", {}).update({bag: {"status": "missing", "reason": "not run"}})
    headings = "[...document.querySelectorAll('.board thead .num')].map(h => h.textContent.replace(/\\D/g, ''))"
    path = written(tmp_path, board)
    browser.open(path, "#dataset=adult&bag=512")
    assert browser.run(headings)[:3] == ["8", "32", "512"]
    browser.open(path, "#dataset=adult&noise=high&bag=512")
    assert [size for size in browser.run(headings) if size] == ["8"]
    panels = "[...document.querySelectorAll('figure.noise .column')].map(t => t.textContent)"
    assert len(browser.run(panels)) == 1
    assert "bag size 8" in browser.run("document.getElementById('panel').textContent")
    assert browser.problems == []
