"""Rows dealt to training, validation and test: at random, or whole bags where rows have bags of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llpbench import DatasetError, IntArray, random_split


def deal_rows(
    n: int, bag_of: IntArray | None, shares: Sequence[float], seed: int, bags: str = "the bags"
) -> list[IntArray]:
    """Training, validation and test rows of the given shares, shuffled; bags stay whole when rows have bags.

    Args:
        n: number of rows.
        bag_of: the bag of each row, or None.
        shares: relative sizes of the three parts, of rows or of bags.
        seed: seed of the shuffle.
        bags: what the bags are called in the message when there are too few.
    """
    if bag_of is None:
        if n < 10:
            raise DatasetError(f"the file has {n} rows; at least 10 are needed for training, validation and test.")
        return random_split(n, shares, seed)
    numbers = np.unique(bag_of)
    if len(numbers) < 3:
        raise DatasetError(f"{bags} makes {len(numbers)} bags; training, validation and test need one each.")
    rng = np.random.default_rng(seed)
    order = rng.permutation(numbers)
    valid, test = (max(1, round(share / sum(shares) * len(numbers))) for share in shares[1:])
    cuts = [len(numbers) - valid - test, len(numbers) - test]
    # Shuffled, because a file may be sorted by its labels, and test rows are scored in this order.
    return [rng.permutation(np.flatnonzero(np.isin(bag_of, part))) for part in np.split(order, cuts)]
