"""The leaderboard page: one HTML file with its data, style and scripts, without external resources.

Text from results never becomes markup or code: the data is a JSON block with escaped ``<``, ``>`` and ``&``, scripts
create text nodes only, and the plain tables (for printing and readers without scripts) are escaped. A content security
policy lists the hashes of the style and the scripts, so a browser runs nothing else.
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

from llpbench.board.page.data import pack, trim
from llpbench.board.page.plain import card_section, plain_tables

if TYPE_CHECKING:
    from llpbench.board.schema import Board

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
    "chart_curves.js",
    "chart_noise.js",
    "chart_ranks.js",
    "protocol.js",
    "detail.js",
    "overall.js",
    "chooser.js",
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
"""The scripts of the page in one shared scope; the last one starts it."""


def render_page(board: Board | dict[str, Any]) -> str:
    """The page of a board.

    Args:
        board: the board, or the same as plain dictionaries.
    """
    data = msgspec.to_builtins(board, str_keys=True)
    style = _style()
    script = "(() => {\n'use strict';\n" + "\n".join(_code(name) for name in SCRIPTS) + "\n})();\n"
    early = "document.documentElement.classList.add('script')"  # before the first layout
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
    # One pass, so that inserted text is not searched for placeholders.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _asset("page.html"))


def embed(data: object) -> str:
    """JSON for a script element, without ``</script>``, ``<!--`` and line separators."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # UTF-8 has no lone surrogates; JSON can escape them.
    return "".join(f"\\u{ord(c):04x}" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _code(name: str) -> str:
    """A script without indentation, comment lines and line breaks inside brackets: a fifth of its bytes."""
    text = re.sub(r"^\s*/\*.*?\*/", "", _asset(name), flags=re.MULTILINE | re.DOTALL)
    lines = (line.strip() for line in text.splitlines())
    kept = "\n".join(line for line in lines if line and not line.startswith("//"))
    return re.sub(r"(?<=[(\[{,])\n|\n(?=[)\]}])", "", kept)


def _style() -> str:
    """The style sheet without comments and most of its spaces."""
    text = re.sub(r"/\*.*?\*/", "", _asset("style.css"), flags=re.DOTALL)
    return re.sub(r"\s*([{};])\s*|([:,])\s+", r"\1\2", text).strip()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
