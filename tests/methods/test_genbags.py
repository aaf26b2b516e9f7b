"""GenBags: covariances of weights and the loss of a block."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from backends import close, each_backend, figures

from llpbench import Bags, QuietMonitor, Skip
from llpbench_methods.genbags.covariance import bag_moments, iid_covariance, sdp_covariance, solve_sdp
from llpbench_methods.genbags.method import GenBags


@pytest.mark.slow
@each_backend
def test_losses_have_the_known_values(backend):
    got = figures(backend)["losses.genbags"]
    close(got["mean"], [5.2490625, 0.044, 2.662])
    close(got["contrast"], 5.2291666667)
    close(got["fixed_l2"], 14.953125)
    close(got["fixed_l1"], 5.875)
    close(got["alone"], [[1.6184873]], 1e-4)
    close(got["gradient"][0], got["gradient_numpy"])


@pytest.mark.slow
@each_backend
def test_drawn_weights_follow_their_law(backend):
    got = figures(backend)["losses.genbags"]
    assert got["covariance_error"] < 0.02
    assert got["mean_error"] < 0.01
    close(got["absolute_mean"], np.sqrt(2 * 5.2490625 / np.pi))
    close(got["mean_absolute"], got["absolute_mean"], 0.02)


@pytest.mark.slow
@each_backend
def test_residuals_are_of_sums_and_zero_for_padding(backend):
    close(figures(backend)["losses.genbags"]["residuals"], [[-0.25], [0.0]])


def test_closed_form():
    W = iid_covariance(4, 0.011)
    close(W, (4 / 3 + 0.011) * np.eye(4) - 1 / 3)
    close(np.linalg.eigvalsh(W), [0.011, 4 / 3 + 0.011, 4 / 3 + 0.011, 4 / 3 + 0.011])
    assert iid_covariance(1, 0.5) == [[1.0]]
    L = np.linalg.cholesky(1.331 * np.eye(4) - 0.33)
    close(L[:, 0], [1.0004998751, -0.3298351236, -0.3298351236, -0.3298351236])
    close(L[3, 3], 0.2072087929)


def test_semidefinite_programme_has_the_known_solution():
    pytest.importorskip("cvxpy")
    means = np.array(
        [[0.4, 0.4, 0.8, 0.8, 0.8, 0.8], [0.2, 0.2, 0, 0, 0, 0], [0, 0, 0.2, 0.2, 0, 0], [0, 0, 0, 0, 0.2, 0.2]]
    )
    moments = [np.outer(m, m) - np.diag(m * m) + np.diag(m) for m in means]
    W, value = solve_sdp(list(means), moments)
    close(value, 22.444328, 1e-4)
    expected = [
        [0.367647, -1.407826, -1.470588, -1.470588],
        [-1.407826, 5.390966, 5.631302, 5.631302],
        [-1.470588, 5.631302, 5.882353, 5.882353],
        [-1.470588, 5.631302, 5.882353, 5.882353],
    ]
    np.testing.assert_allclose(W, expected, atol=2e-3)


def some_bags(n_bags=30, size=10):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_bags * size, 3)).astype(np.float32)
    counts = np.add.reduceat(X[:, 0] > 0, range(0, n_bags * size, size)).astype(float)
    return Bags(X, np.arange(n_bags + 1) * size, counts[:, None])


def test_programme_for_bags_of_one_law_is_close_to_the_contrast():
    pytest.importorskip("cvxpy")
    bags = some_bags()
    mean, moment = bag_moments(bags, 3)
    close(mean[0], np.sqrt(10))
    assert moment.shape == (4, 4)
    W = sdp_covariance(bags, 4, 0.0, 3)
    close(np.trace(W), 4.0, 1e-6)
    off = W[~np.eye(4, dtype=bool)] / np.diag(W).mean()
    np.testing.assert_allclose(off, -1 / 3, atol=0.05)


def test_skips_with_too_few_bags_or_without_solver(monkeypatch):
    with pytest.raises(Skip, match="block=4 needs at least 4 bags, got 3"):
        GenBags().fit(some_bags(3), monitor=QuietMonitor(), seed=0)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(Skip, match="pip install cvxpy"):
        GenBags(covariance="sdp").fit(some_bags(), monitor=QuietMonitor(), seed=0)
