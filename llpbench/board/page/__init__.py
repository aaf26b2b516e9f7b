"""The leaderboard page: one HTML file that holds its data, its style and its scripts, and asks for nothing outside.

Nothing of a result file ever becomes markup or code: the data lies in a JSON block in which ``<``, ``>`` and ``&`` are
escaped, the scripts build the page from text nodes, and the plain tables made here (which serve readers without
scripts, and paper) are escaped. A content security policy names the hashes of the style and the scripts, so a browser
would refuse anything else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from llpbench.board.page.cards import card_section
from llpbench.board.page.pack import pack
from llpbench.board.page.plain import plain_tables
from llpbench.board.page.trim import trim

if TYPE_CHECKING:
    from llpbench.board.schema.board import Board

SCRIPTS = (
    "core.js",
    "state.js",
    "model.js",
    "table.js",
    "svg.js",
    "chart_bags.js",
    "chart_rules.js",
    "chart_cost.js",
    "chart_phases.js",
    "chart_noise.js",
    "chart_ranks.js",
    "protocol.js",
    "detail.js",
    "overall.js",
    "standings.js",
    "about.js",
    "controls.js",
    "family.js",
    "panel.js",
    "foot.js",
    "popup.js",
    "pointer.js",
    "theme.js",
    "main.js",
)
"""The scripts of the page, one scope for all: what one file defines the others use, and the last one starts."""


def render_page(board: Board | dict[str, Any]) -> str:
    """The page of a board.

    Args:
        board: the board as built from result files, or the same as plain dictionaries.
    """
    data = msgspec.to_builtins(board, str_keys=True)
    style = _asset("style.css")
    script = "(() => {\n'use strict';\n" + "\n".join(_code(name) for name in SCRIPTS) + "\n})();\n"
    early = "document.documentElement.classList.add('script')"  # before anything is laid out
    policy = [
        "default-src 'none'",
        f"script-src {_hash(early)} {_hash(script)}",
        f"style-src {_hash(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    parts = {
        "policy": "; ".join(policy),
        "title": html.escape(str(data.get("title") or "Leaderboard")),
        "style": style,
        "early": early,
        "plain": plain_tables(data),
        "cards": card_section(data),
        "data": embed(pack(trim(data))),
        "script": script,
    }
    # One pass: what is put in is never searched for further places.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _asset("page.html"))


def embed(data: object) -> str:
    """JSON that can stand inside a script element: no ``</script>``, no ``<!--``, no line separators in it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # Lone surrogates cannot be written as UTF-8; JSON can name them.
    return "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _code(name: str) -> str:
    """A script without indentation and comments on lines of their own, which are a fifth of its bytes.

    The scripts have no text that spans lines, so nothing else changes.
    """
    text = re.sub(r"^\s*/\*.*?\*/", "", _asset(name), flags=re.MULTILINE | re.DOTALL)
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
