"""The columns that matter: what held-back bags lose when the values of one column are shuffled over all their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llpbench.contracts.data import FloatArray
from llpbench.data.encoding.encoder import FittedColumn, TableEncoder
from llpbench.owndata.judging.assessment import UnseenBags
from llpbench.owndata.judging.shrinkage import join
from llpbench.owndata.judging.spread import bag_log_likelihood

_SHUFFLES = 5


@dataclass(frozen=True)
class ColumnEffect:
    """A column of the table and what is lost without it.

    Attributes:
        column: its name.
        loss: log-likelihood of a held-back bag that is lost when its values are shuffled, in nats; mean over shuffles.
        sd: standard deviation over shuffles.
    """

    column: str
    loss: float
    sd: float


def feature_blocks(columns: Sequence[FittedColumn], encoding: str) -> list[tuple[str, slice]]:
    """The features that each column of the table became.

    Args:
        columns: the fitted columns.
        encoding: ``table``, or ``none``: one feature for each column.
    """
    blocks, start = [], 0
    for column in columns:
        width = 1 if encoding == "none" else TableEncoder((column,)).width
        blocks.append((column.name, slice(start, start + width)))
        start += width
    return blocks


def column_effects(
    unseen: Sequence[UnseenBags], slope: float, phi: float, blocks: Sequence[tuple[str, slice]], seed: int
) -> tuple[ColumnEffect, ...]:
    """What each column is worth on bags that the models did not learn from, the most important first.

    The values of a column are shuffled over the rows of all these bags; inside one bag alone its mean would stay.
    Columns that say the same stand in for each other and each looks unimportant.

    Args:
        unseen: models with bags that they did not learn from.
        slope: the slope of the probabilities.
        phi: the intraclass correlation that the model leaves.
        blocks: the features of each column.
        seed: seed of the shuffles.
    """
    rows = np.concatenate([part.bags.X for part in unseen])
    ends = np.cumsum([len(part.bags.X) for part in unseen])[:-1]
    whole = _likelihood(unseen, np.split(rows, ends), slope, phi)
    found = []
    for number, (name, block) in enumerate(blocks):
        losses = []
        for shuffle in range(_SHUFFLES):
            order = np.random.default_rng([seed, number, shuffle]).permutation(len(rows))
            changed = rows.copy()
            changed[:, block] = rows[order][:, block]
            losses.append(whole - _likelihood(unseen, np.split(changed, ends), slope, phi))
        found.append(ColumnEffect(name, float(np.mean(losses)), float(np.std(losses))))
    return tuple(sorted(found, key=lambda effect: -effect.loss))


def _likelihood(unseen: Sequence[UnseenBags], rows: Sequence[FloatArray], slope: float, phi: float) -> float:
    """Mean log-likelihood of a bag, its rows having the given features."""
    judged = join([part.with_rows(own).at([slope]) for part, own in zip(unseen, rows, strict=True)])
    shares = judged.shares.mean(axis=0)
    return float(bag_log_likelihood(judged.known, judged.means[0], judged.within[0], shares, phi).mean())
