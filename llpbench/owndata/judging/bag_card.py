"""What a user's bags are like: their number, their sizes, how far their proportions and their features differ.

The card of a benchmark's setting (``experiment/bag_card.py``) is for readers and made from true labels. This one is
for the verdict on a fit, so it asks what could be chance: noise in the counts is taken into account, and features are
compared by the *means* of bags (``mean_spread``), which show a difference of bags long before single rows lie visibly
apart (the other card's separation). The spread of proportions is the same number for two classes and exact counts; with
more classes common ones weigh more here. Both come from ``judging/spread.py``.
"""

from __future__ import annotations

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, FloatArray
from llpbench.experiment.count_laws import all_classes
from llpbench.owndata.judging.spread import chance_variance, class_shares, spread_ratio

PERCENTILES = (0, 25, 50, 75, 100)


class OwnBagCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A description of a user's bags, from features and counts; there are no labels.

    Attributes:
        bags: number of bags.
        rows: number of rows in them.
        sizes: least, quartiles and most of the bags' sizes.
        shares: share of each class over all rows.
        proportion_sd: standard deviation over bags of the proportion of each class.
        spread: how many times as far as chance the proportions are spread; 1 for bags at random, 0 when they are equal.
        mean_spread: how many times as far as chance the mean features of bags are spread; 1 for bags at random.
    """

    bags: int
    rows: int
    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    proportion_sd: tuple[float, ...]
    spread: float
    mean_spread: float


def make_own_card(bags: Bags) -> OwnBagCard:
    """Describe bags."""
    shares = class_shares(bags)
    known = all_classes(np.asarray(bags.proportions, np.float64))
    chance = chance_variance(shares, bags.sizes, bags.count_sd)
    many = len(bags) > 1
    freed = len(bags) / (len(bags) - 1) if many else 1.0  # the shares are the bags' own
    return OwnBagCard(
        bags=len(bags),
        rows=int(bags.sizes.sum()),
        sizes=tuple(int(size) for size in np.percentile(bags.sizes, PERCENTILES, method="nearest")),
        shares=tuple(map(float, shares)),
        proportion_sd=tuple(map(float, known.std(axis=0, ddof=1 if many else 0))),
        spread=float(np.sqrt(freed)) * spread_ratio(known, shares, shares, chance),
        mean_spread=mean_spread(bags),
    )


def mean_spread(bags: Bags) -> float:
    """Root of ``between / within``: 1 for bags at random, 0 for bags with equal means.

    ``between = Σ_b B_b ‖m_b − m‖² / (bags − 1)`` and ``within = Σ_i ‖x_i − m_b(i)‖² / (n − bags)``, each of them the
    variance of single rows if bags are drawn at random. 1 where it cannot be told (one bag, bags of one row each).
    """
    X: FloatArray = np.asarray(bags.X, np.float64).reshape(len(bags.X), -1)
    n, many = len(X), len(bags)
    if many < 2 or n <= many:
        return 1.0
    sizes = bags.sizes[:, None]
    means = np.add.reduceat(X, bags.offsets[:-1], axis=0) / sizes
    centre = X.mean(axis=0)
    between = float((sizes * (means - centre) ** 2).sum()) / (many - 1)
    within = float((X**2).sum() - (sizes * means**2).sum()) / (n - many)
    return float(np.sqrt(between / within)) if within > 0 else 1.0
