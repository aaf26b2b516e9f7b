"""Bag cards on the page: a line for each setting that has one, below the tables, with scripts or without."""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec

from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import setting_name
from llpbench.report.cards import card_words

Tree = dict[str, Any]


def card_section(board: Tree) -> str:
    """The section as HTML; nothing at all where no dataset has a card."""
    lines = [line for dataset in board.get("datasets") or [] for line in _lines(dataset)]
    if not lines:
        return ""
    items = "".join(f"<li><bdi>{escape(line)}</bdi>" for line in lines)
    return f"<section><h2>What the bags are like</h2><ul>{items}</ul></section>"


def _lines(dataset: Tree) -> list[str]:
    lines = []
    for bag, card in (dataset.get("cards") or {}).items():
        name = setting_name(str(dataset.get("name")), int(bag))
        lines.append(f"{name}: {card_words(msgspec.convert(card, BagCard))}")
    return lines
