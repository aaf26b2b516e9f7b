"""Bag cards on the page: a line for each setting, below the plain tables and in the panel of its dataset."""

from __future__ import annotations

from html import escape
from typing import Any

import msgspec

from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import setting_name
from llpbench.report.cards import card_words

Tree = dict[str, Any]


def card_section(board: Tree) -> str:
    """The section as HTML; empty if no dataset has a card."""
    lines = [line for dataset in board.get("datasets") or [] for line in _lines(dataset)]
    if not lines:
        return ""
    items = "".join(f"<li><bdi>{escape(line)}</bdi>" for line in lines)
    return f"<section><h2>Properties of the bags</h2><ul>{items}</ul></section>"


def card_texts(dataset: Tree) -> dict[str, str]:
    """The cards of a dataset in words, by bag size."""
    return {bag: card_words(msgspec.convert(card, BagCard)) for bag, card in (dataset.get("cards") or {}).items()}


def _lines(dataset: Tree) -> list[str]:
    name = str(dataset.get("name"))
    return [f"{setting_name(name, int(bag))}: {text}" for bag, text in card_texts(dataset).items()]
