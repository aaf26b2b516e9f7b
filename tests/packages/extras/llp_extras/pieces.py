"""A metric, a bag scheme and a selection rule; imported only where a cell runs."""

import numpy as np


def positive_share(labels, probabilities):
    """Share of rows whose probability of class 1 exceeds a half."""
    return float(np.mean(probabilities > 0.5))


def in_order(X, bag_size, *, columns, rng, stride=1):
    """Rows in the order they came in (every ``stride``-th first), cut into bags."""
    order = np.argsort(np.arange(len(X)) % stride, kind="stable")
    bag_of = np.empty(len(X), dtype=int)
    bag_of[order] = np.arange(len(X)) // bag_size
    return bag_of


def largest_bag_error(held):
    """Largest distance between the mean prediction of a bag and its known proportion."""
    means = np.add.reduceat(held.probabilities, held.bags.offsets[:-1]) / held.bags.sizes
    return float(np.abs(means - held.bags.proportions[:, 0]).max())
