"""dsq: values, gradients, and that its mean over random bags is the squared risk of single rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from backends import close, each_backend, figures

from llpbench import Bags, QuietMonitor, Skip
from llpbench_methods.nets.network import REFERENCE_ROWS, reference_rows

Z = np.array([-1.0, 0.0, 0.5, 2.0])


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def loss(z, mean=None):
    """Bags of rows 0, 1 and of row 2; row 3 is padding."""
    p = sigmoid(z)
    means = np.array([p[:2].mean(), p[2]])
    mean = np.array([p[2], p[:2].mean()]) if mean is None else mean
    return np.mean(np.array([2, 1]) * (np.array([0.5, 1.3]) - means + mean - 0.3) ** 2 + (mean - 0.3) ** 2)


@pytest.mark.slow
@each_backend
@pytest.mark.parametrize(("case", "mean"), [("reference", 0.4), ("others", None)])
def test_value_and_gradient(backend, case, mean):
    value, gradient = figures(backend)["losses.dsq"][case]
    close(value, loss(Z, mean))
    step = 1e-5 * np.eye(4)
    close(gradient, [(loss(Z + s, mean) - loss(Z - s, mean)) / 2e-5 for s in step], 1e-5)


@pytest.mark.slow
@each_backend
def test_single_bag_has_no_other_bags(backend):
    close(figures(backend)["losses.dsq"]["alone"], [[0.0], [0.3]])  # the second bag is padding


def test_its_mean_over_all_bags_is_the_squared_risk():
    from llpbench_methods.dsq.loss import debiased_square

    law, rate, p = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.4, 0.8]), np.array([0.3, 0.6, 0.7])
    rows = list(itertools.product(range(3), (0, 1)))
    chance = [law[x] * (rate[x] if y else 1 - rate[x]) for x, y in rows]
    for size in (1, 3):
        total = 0.0
        for bag in itertools.product(range(6), repeat=size):
            shown = np.array([[p[rows[i][0]]] for i in bag])
            alpha = np.array([[np.mean([rows[i][1] for i in bag])]])
            args = (shown, np.zeros(size, int), np.array([float(size)]), alpha, np.ones(1))
            value = debiased_square(*args, prior=np.array([law @ rate]), mean=np.array([[law @ p]]))
            total += float(np.prod([chance[i] for i in bag]) * value)
        wanted = law @ (rate * (1 - p) ** 2 + (1 - rate) * p**2)
        assert total == pytest.approx(wanted, abs=1e-6)


def test_reference_rows_are_fixed_and_few():
    X = np.arange(6000, dtype=np.float32).reshape(3000, 2)
    rows = reference_rows(X, 7)
    assert rows.shape == (REFERENCE_ROWS, 2)
    assert len(np.unique(rows[:, 0])) == REFERENCE_ROWS
    assert np.array_equal(rows, reference_rows(X, 7))
    assert not np.array_equal(rows, reference_rows(X, 8))
    assert np.array_equal(reference_rows(X[:5], 7), X[:5])


def test_one_bag_has_no_other_bags():
    from llpbench_methods.dsq.method import DSQ

    bags = Bags(np.zeros((4, 1), np.float32), np.array([0, 4]), np.array([[1.0]]))
    with pytest.raises(Skip, match="mean=reference works"):
        DSQ(mean="other-bags").fit(bags, monitor=QuietMonitor(), seed=0)
