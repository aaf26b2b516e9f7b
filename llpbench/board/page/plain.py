"""The tables and the properties of the bags as plain HTML, for printing and for readers without scripts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

import msgspec

from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import OWN_SIZES, setting_name
from llpbench.report.cards import card_words, grouping_lines

Tree = dict[str, Any]
MAIN_METRIC = "auroc"


def plain_tables(board: Tree) -> str:
    """A section for each dataset, with a table of its main metric for each noise level and rule.

    Optional end tags are omitted.
    """
    return "\n".join(_section(dataset, board) for dataset in board.get("datasets") or [])


def number_html(cell: Tree | None, metric: Tree, rule: str) -> str:
    """The number of a method in a setting as HTML: ``mean (sd)`` with its mark, or the status of the cell."""
    if not cell:
        return "–"
    scored = ((cell.get("scores") or {}).get(metric.get("name")) or {}).get(rule) or {}
    digits = metric.get("digits", 2)
    mean = number(scored.get("mean"), digits)
    status = escape(str(cell.get("status") or "missing"))
    if mean is None:
        return f"<i>{'undefined' if status == 'ok' else status}</i>"
    sd = number(scored.get("sd"), digits)
    text = f"{mean} ({sd})" if sd is not None else mean
    note = escape(str(scored.get("note") or ""))
    shared = number(scored.get("shared"), digits)
    note += f", shared {shared}" if note and shared not in (None, mean) else ""
    if status != "ok" or note:
        text += f" <i>{', '.join(part for part in (status if status != 'ok' else '', note) if part)}</i>"
    return f"<b>{text}</b>" if scored.get("best") else f"<u>{text}</u>" if scored.get("second") else text


def number(value: object, digits: int = 2) -> str | None:
    """A number with its decimals, or None if it is not finite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return f"{value:.{digits}f}" if abs(value) < 1e6 else f"{value:.2e}"


def main_metric(board: Tree, dataset: Tree) -> Tree:
    """The metric of a dataset's plain tables: AUROC, or the first one if it has none."""
    names = dataset.get("metrics") or []
    name = MAIN_METRIC if MAIN_METRIC in names or not names else names[0]
    found: Tree = next((m for m in board.get("metrics") or [] if m.get("name") == name), {"name": name})
    return found


def _section(dataset: Tree, board: Tree) -> str:
    metric = main_metric(board, dataset)
    tables = [
        _table(dataset, metric, str(noise), str(rule.get("name")))
        for noise in dataset.get("noises") or []
        for rule in board.get("rules") or []
    ]
    title = escape(str(dataset.get("title") or dataset.get("name") or ""))
    return f"<section><h2><bdi>{title}</bdi></h2>{''.join(tables)}</section>"


def _table(dataset: Tree, metric: Tree, noise: str, rule: str) -> str:
    bags = dataset.get("bags") or []
    rows = dataset.get("rows") or []
    bounds = {"": (dataset.get("bounds") or {}).get(metric.get("name"))}
    own = (dataset.get("bag_bounds") or {}).get(metric.get("name")) or {}
    bounds |= {f"{_bags(dataset, bag)} ": own[str(bag)] for bag in bags if str(bag) in own}
    heading = f"{metric.get('title') or metric.get('name')}{' %' if metric.get('percent', True) else ''}"
    caption = [heading, f"selection rule {rule}", f"noise {noise}"]
    digits = metric.get("digits", 2)
    for where, found in bounds.items():
        bound = (found or {}).get(rule) or {}
        if (mean := number(bound.get("mean"), digits)) is not None:
            sd = number(bound.get("sd"), digits)
            name = bound.get("method") or "bound"
            caption.append(f"{name} {where}{mean}{f' ({sd})' if sd is not None else ''}")
    labels = ((dataset.get("as_many_labels") or {}).get(metric.get("name")) or {}).get(rule) or {}
    for bag, found in labels.items():
        if (mean := number(found.get("mean"), digits)) is not None:
            where = f"{found['bags']:,} labelled rows for {_bags(dataset, int(bag))}"
            caption.append(f"{found['bound']} with {where} {mean}")
    head = "".join(f"<th scope=col>{escape(_bags(dataset, bag))}" for bag in bags)
    methods = [row for row in rows if not row.get("oracle") and not row.get("control")]
    controls = [row for row in rows if row.get("control") and not row.get("oracle")]
    body = f"<tbody>{''.join(_rows(methods, bags, metric, noise, rule))}"
    if controls:
        group = f"<tr><th colspan={len(bags) + 1} scope=rowgroup>Controls"
        body += f"<tbody>{group}{''.join(_rows(controls, bags, metric, noise, rule))}"
    text = escape(" · ".join(caption))
    return f"<table><caption>{text}</caption><thead><tr><th scope=col>method{head}{body}</table>"


def _bags(dataset: Tree, bag: object) -> str:
    """The heading of a column: its bag size, or the bag scheme if bags have no fixed size."""
    own = str(dataset.get("self_sized") or "")
    return own if own and bag == OWN_SIZES else f"bag {bag}"


def _rows(rows: Iterable[Tree], bags: list[object], metric: Tree, noise: str, rule: str) -> Iterator[str]:
    for row in rows:
        cells = (row.get("cells") or {}).get(noise) or {}
        numbers = "".join(f"<td>{number_html(cells.get(str(bag)), metric, rule)}" for bag in bags)
        said = " <i>unreleased</i>" if row.get("unreleased") else ""
        yield f"<tr><th scope=row>{escape(str(row.get('method')))}{said}{numbers}"


def card_section(board: Tree) -> str:
    """The section as HTML; empty if no dataset has a card."""
    lines = [line for dataset in board.get("datasets") or [] for line in _lines(dataset)]
    if not lines:
        return ""
    items = "".join(f"<li><bdi>{escape(line)}</bdi>" for line in lines)
    return f"<section><h2>Properties of the bags</h2><ul>{items}</ul></section>"


def card_texts(dataset: Tree) -> dict[str, list[str]]:
    """The cards of a dataset in words, by bag size: that of all bags, then those of several groupings."""
    cards = msgspec.convert(dataset.get("cards") or {}, dict[str, BagCard])
    groupings = msgspec.convert(dataset.get("groupings") or {}, dict[str, dict[str, BagCard]])
    several = {bag: groupings.get(bag, {}) for bag in cards}
    return {bag: [card_words(card, len(several[bag])), *grouping_lines(several[bag])] for bag, card in cards.items()}


def _lines(dataset: Tree) -> list[str]:
    name = str(dataset.get("name"))
    return [f"{setting_name(name, int(bag))}: {text}" for bag, texts in card_texts(dataset).items() for text in texts]
