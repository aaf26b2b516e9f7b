"""The bag card: what the bags of a setting are like, so that a reader sees how hard it is and why."""

from __future__ import annotations

from dataclasses import dataclass

SIZE_PERCENTILES = (0, 10, 50, 90, 100)


@dataclass(frozen=True)
class BagCard:
    """What the training bags of a cell are like (``experiment/bag_card.py`` has the formulas).

    It is made from true labels, also where counts carry noise, so it is for the judge and for readers: no method ever
    gets it.

    Attributes:
        bags: how many there are; ``rows`` is how many rows they hold.
        left_out: share of the rows that are in no bag.
        sizes: percentiles of the bags' sizes (``SIZE_PERCENTILES``: least, 10 %, median, 90 %, largest).
        proportion_sd: standard deviation of the bags' proportions.
        spread: how much wider proportions lie than those of random bags of the same sizes (1 = random); None where
            that is not defined: one bag, or one class.
        separation: mean distance of two rows of different bags over that of two rows of one bag (1 = random); None
            where no two rows share a bag, or there is one bag.
        uses_labels: whether the scheme saw labels when it formed them.
    """

    bags: int
    rows: int
    left_out: float
    sizes: tuple[float, ...]
    proportion_sd: float
    spread: float | None
    separation: float | None
    uses_labels: bool = False
