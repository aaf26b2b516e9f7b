"""The leaderboard page as it is written: packed data, escaped text, the policy, the plain tables."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from fake_board import HOSTILE, fake_board, hostile_board
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llpbench.board.page import embed, render_page
from llpbench.board.page.data import pack
from llpbench.board.schema import Board


def unpack(packed: dict[str, Any]) -> Any:
    """What core.js does, once more."""

    def value(item: Any) -> Any:
        if isinstance(item, str) and item.startswith("~"):
            return item[1:] if item.startswith("~~") else value(packed["pool"][int(item[1:], 36)])
        if not isinstance(item, list):
            return item
        tag, *rest = item
        if tag == -1:
            return [value(v) for v in rest]
        if tag == -2:
            return "".join(value(v) for v in rest)
        left = iter(rest)
        return {k[0]: k[1] for k in packed["shapes"][tag] if isinstance(k, list)} | {
            k: value(next(left)) for k in packed["shapes"][tag] if isinstance(k, str)
        }

    return value(packed["root"])


texts = st.one_of(st.text(), st.sampled_from(HOSTILE), st.sampled_from(["run --a 1 --b 2 --c", " --", "~", "~~0"]))
leaves = st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), texts)
trees = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=30)


@pytest.mark.slow
@settings(deadline=None)
@given(trees)
def test_packing_is_lossless(tree: Any) -> None:
    assert unpack(json.loads(embed(pack(tree)))) == tree


@settings(deadline=None)
@example(1.7975e308, "seconds")
@given(st.floats(), st.sampled_from(["params", "seconds", "mean"]))
def test_packed_numbers_are_rounded_or_null(number: float, key: str) -> None:
    found = unpack(json.loads(embed(pack({key: number}))))[key]
    if not math.isfinite(number):
        assert found is None
    else:
        assert found == (pytest.approx(number, rel=1e-3) if key == "seconds" else number)


@settings(deadline=None)
@given(texts)
def test_embedded_json_cannot_close_its_script_element(text: str) -> None:
    written = embed(pack({"a": text}))
    assert not set("<>&\u2028\u2029") & set(written)
    written.encode()  # also with lone surrogates


def test_fake_board_matches_the_schema() -> None:
    board = fake_board(2)
    assert msgspec.to_builtins(msgspec.convert(board, Board)).keys() == board.keys()


def test_board_and_its_dictionaries_give_the_same_page() -> None:
    board = msgspec.convert(fake_board(1), Board)
    assert render_page(board) == render_page(msgspec.to_builtins(board)) == render_page(board)


@pytest.mark.slow
def test_a_full_board_stays_below_a_megabyte() -> None:
    page = render_page(fake_board(datasets=12, metrics=1))
    assert 100_000 < len(page.encode()) < 1_000_000
    more = render_page(fake_board(datasets=12, metrics=2))
    assert len(more.encode()) - len(page.encode()) < 100_000  # what a further metric takes


class Outline(HTMLParser):
    """Elements and their attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.code: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in self.code:
            self.code[tag].append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem in self.code:
            self.code[str(self.cdata_elem)][-1] += data


def test_content_security_policy_lists_style_and_scripts() -> None:
    outline = Outline(render_page(fake_board(1)))
    policy = next(a["content"] for t, a in outline.elements if a.get("http-equiv") == "Content-Security-Policy") or ""
    early, data, script = outline.code["script"]
    (style,) = outline.code["style"]
    assert json.loads(data)["shapes"]
    for text in (early, script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http:" not in policy
    assert "https:" not in policy


def test_page_loads_no_external_resources() -> None:
    outline = Outline(render_page(fake_board(1)))
    links = [a.get("href") or a.get("src") for _, a in outline.elements if "href" in a or "src" in a]
    assert [link for link in links if not (link or "").startswith(("#", "data:"))] == []
    assert re.search(r"\b(fetch|XMLHttpRequest|WebSocket|innerHTML|outerHTML|insertAdjacent|eval|import)\b\s*[(=]",
                     outline.code["script"][2]) is None  # fmt: skip
    assert "@import" not in outline.code["style"][0]


def test_hostile_text_is_escaped_in_the_file() -> None:
    page = render_page(hostile_board())
    outline = Outline(page)
    assert [tag for tag, _ in outline.elements].count("script") == 3
    assert "img" not in {tag for tag, _ in outline.elements}
    assert not any(name.startswith("on") for _, attributes in outline.elements for name in attributes)
    assert html.escape(HOSTILE[2]) in page  # it is there, as text


def test_plain_tables_show_the_status_of_missing_cells() -> None:
    board = fake_board(1, bags=(8,), noises=("none",), holes=False)
    row = board["datasets"][0]["rows"][0]
    cell = row["cells"]["none"]["8"]
    for status, score, shown in [
        ("failed", {}, "<i>failed</i>"),
        ("missing", {"bags": {"mean": None}}, "<i>missing</i>"),
        ("ok", {"bags": {"mean": math.nan}}, "<i>undefined</i>"),
        ("ok", {"bags": {"mean": "1</td>"}}, "<i>undefined</i>"),
        ("ok", {"bags": {"mean": 81.004, "sd": None}}, "81.00"),
        ("partial", {"bags": {"mean": 81.004, "sd": 0.126}}, "81.00 (0.13) <i>partial</i>"),
        ("ok", {"bags": {"mean": 81.0, "sd": 0.5, "best": True}}, "<b>81.00 (0.50)</b>"),
        ("ok", {"bags": {"mean": 81.0, "sd": 0.5, "second": True}}, "<u>81.00 (0.50)</u>"),
        ("ok", {"bags": {"mean": 1e300}}, "1.00e+300"),
        ("ok", {"bags": {"mean": 81.0, "sd": 0.5, "note": "2 seeds", "shared": 81.001}}, "81.00 (0.50) <i>2 seeds</i>"),
        (
            "ok",
            {"bags": {"mean": 81.0, "sd": 0.5, "note": "2 seeds", "shared": 82.0}},
            "81.00 (0.50) <i>2 seeds, shared 82.00</i>",
        ),
    ]:
        cell["status"], cell["scores"] = status, {"auroc": score}
        assert f"<th scope=row>{row['method']}<td>{shown}<tr>" in render_page(board)
