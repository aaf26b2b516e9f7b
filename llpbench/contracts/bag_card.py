"""The bag card: a description of the bags of a setting, which shows how hard it is and why."""

from __future__ import annotations

from dataclasses import dataclass

SIZE_PERCENTILES = (0, 10, 50, 90, 100)


@dataclass(frozen=True)
class BagCard:
    """A description of the training bags of a cell (``experiment/bag_card.py`` has the formulas).

    It is computed from true labels, even if counts are noisy, and no method ever gets it.

    Attributes:
        bags: number of bags; ``rows`` is their number of rows.
        left_out: share of rows without a bag.
        sizes: percentiles of the bags' sizes (``SIZE_PERCENTILES``: least, 10 %, median, 90 %, largest).
        proportion_sd: standard deviation of the bags' proportions.
        spread: spread of proportions relative to random bags of the same sizes (1 = random); None for one bag or class.
        separation: mean distance of two rows of different bags relative to two rows of one bag (1 = random); None if no
            two rows share a bag, or there is one bag.
        uses_labels: whether the scheme used labels.
    """

    bags: int
    rows: int
    left_out: float
    sizes: tuple[float, ...]
    proportion_sd: float
    spread: float | None
    separation: float | None
    uses_labels: bool = False
