"""What a user should be told of bags and of the model that was learned from them, in plain sentences."""

from __future__ import annotations

from llpbench.owndata.judging.bag_card import OwnBagCard
from llpbench.owndata.judging.facts import HeldBackScore

FEW_BAGS = 10
ALIKE = 0.5
"""Times the spread of chance below which bags are called alike."""
WIDE = 2.0
"""Times the spread of chance, left after the model, from which on it is called far more than binomial."""
NATURAL = 1.2
"""Times the spread of chance from which on bags are not called random."""
AGREED = 0.3
"""Agreement of two halves below which a model is called unsure of single rows."""
_RARE = 0.01


def find_warnings(card: OwnBagCard, score: HeldBackScore) -> tuple[str, ...]:
    """The sentences of which a user is warned; none when all is well.

    Args:
        card: what the bags are like.
        score: how the model did on held-back bags.
    """
    found = [_against_constant(score), _unsure(score), _few(card), *_alike(card), _wide(score)]
    return tuple(sentence for sentence in found if sentence)


def is_random(card: OwnBagCard) -> bool:
    """Whether bags look as if rows were put into them at random, by their proportions and by their features."""
    return not any(_beyond_chance(ratio, card.bags - 1, NATURAL) for ratio in (card.spread, card.mean_spread))


def _against_constant(score: HeldBackScore) -> str:
    if score.better:
        return ""
    return (
        f"the model is not clearly better than a constant: on {_bags(score.bags)} that it did not learn from, the "
        f"proportions it predicts are {_points(score.error)} points off, the overall share "
        f"{_points(score.constant_error)}. Its probabilities are drawn towards the overall share, "
        f"{100 * score.slope:.0f} % of its own logits are left."
    )


def _unsure(score: HeldBackScore) -> str:
    if not score.better or score.agreement is None or score.agreement >= AGREED:
        return ""
    return (
        "the model is unsure of single rows: fits on two halves of the bags agree on them by "
        f"{100 * score.agreement:.0f} % only. It tells bags apart, but inside a bag much of what it says is noise; its "
        f"probabilities are drawn towards the overall share, {100 * score.slope:.0f} % of its own logits are left."
    )


def _few(card: OwnBagCard) -> str:
    if card.bags >= FEW_BAGS:
        return ""
    return f"there are {card.bags} bags only: all that is learned rests on as many numbers for each class."


def _alike(card: OwnBagCard) -> list[str]:
    found = []
    if _below_chance(card.spread, card.bags - 1):
        found.append(
            f"the proportions of the bags hardly differ (standard deviation {_points(max(card.proportion_sd))} points, "
            f"{card.spread:.2f} times that of bags at random): they tell little of what makes a row positive."
        )
    if _below_chance(card.mean_spread, card.bags - 1):
        found.append(
            f"the bags are all alike in their features (their means differ {card.mean_spread:.2f} times as much as "
            "those of bags at random): proportions cannot be traced to columns."
        )
    return found


def _wide(score: HeldBackScore) -> str:
    if not _beyond_chance(score.spread, score.bags, WIDE):
        return ""
    return (
        f"the bags differ for reasons that no column explains: their proportions are {score.spread:.1f} times as far "
        "from the model's as chance (binomial) would take them. Rows of one bag go up and down together."
    )


def _below_chance(ratio: float, freedom: int) -> bool:
    """Whether a spread is far smaller than chance would make it, and not by accident: a test by χ²."""
    from scipy.stats import chi2

    freedom = max(freedom, 1)
    return ratio < ALIKE and float(chi2.cdf(freedom * ratio**2, freedom)) < _RARE


def _beyond_chance(ratio: float, freedom: int, least: float) -> bool:
    """Whether a spread is at least so many times that of chance, and not by accident."""
    from scipy.stats import chi2

    freedom = max(freedom, 1)
    return ratio >= least and float(chi2.sf(freedom * ratio**2, freedom)) < _RARE


def _bags(n: int) -> str:
    return f"{n:,} bag{'s' if n != 1 else ''}"


def _points(share: float) -> str:
    """A share in points of a hundred."""
    return f"{100.0 * share:.1f}"
