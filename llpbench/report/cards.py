"""Bag cards in words, one line for each setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import setting_name
from llpbench.results.table import Group


def card_words(card: BagCard, groupings: int = 0) -> str:
    """A card in one line: bags and sizes, how proportions and features differ, and the rows that are left out.

    ``groupings`` is their number if there are several.
    """
    least, _, median, _, largest = card.sizes
    sizes = f"{least:,.0f}" if least == largest else f"{least:,.0f}-{largest:,.0f} (median {median:,.0f})"
    words = [f"{card.bags:,} bags of {sizes} rows", f"proportions sd {card.proportion_sd:.3f}"]
    words[-1] += "" if card.spread is None else f", {card.spread:.2f} x random"
    words += [] if card.separation is None else [f"features apart {card.separation:.2f} x random"]
    words += [f"{100 * card.left_out:.1f} % of rows in no bag"] if card.left_out else []
    words += [f"{groupings} groupings, {card.bags / card.rows:.3g} counts per row"] if groupings else []
    words += ["formed with labels"] if card.uses_labels else []
    return "; ".join(words)


def grouping_lines(cards: Mapping[str, BagCard]) -> list[str]:
    """A line for each of several groupings."""
    return [f"{name}: {card_words(card)}" for name, card in cards.items()]


def cards_of(groups: Iterable[Group]) -> dict[tuple[str, int], tuple[str, BagCard]]:
    """The cards of results by dataset and bag size, each with the name of its setting."""
    found: dict[tuple[str, int], tuple[str, BagCard]] = {}
    for group in groups:
        card, setting = group.card, group.setting
        if card is not None:
            name = setting_name(setting.dataset, setting.bag_size)
            found.setdefault((setting.dataset, setting.bag_size), (name, card))
    return dict(sorted(found.items()))


def card_lines(groups: Iterable[Group]) -> list[str]:
    """A line for each setting that has a card."""
    groups = list(groups)
    several = {(group.setting.dataset, group.setting.bag_size): len(group.groupings) for group in groups}
    return [f"{name}: {card_words(card, several[key])}" for key, (name, card) in cards_of(groups).items()]
