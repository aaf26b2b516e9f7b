"""EasyLLP: targets, loss and its unbiasedness by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from backends import close, each_backend, figures

from llpbench import Bags, QuietMonitor
from llpbench_methods.easyllp.loss import debiased_targets
from llpbench_methods.easyllp.method import EasyLLP


@pytest.mark.slow
@each_backend
def test_loss_and_gradient_have_the_known_values(backend):
    got = figures(backend)["losses.easyllp"]
    close(got["value"][0], 0.9893534658)
    close(got["value"][1], [0.0422353553, 0.1, 0.1306148328, 0.1951992695])
    close(got["count_0"], 1.3643534658)
    close(got["count_0_low"], -17.6625)
    close(got["count_4_high"], -42.7875)
    close(got["multiclass"], 0.6825480293)


@pytest.mark.slow
@each_backend
def test_remedies_keep_the_loss_from_going_below_zero(backend):
    got = figures(backend)["losses.easyllp"]
    close(got["absolute"], 17.6625)
    assert got["relu"] == 0.0


@pytest.mark.slow
@each_backend
def test_mean_over_all_bags_is_the_instance_risk(backend):
    got = figures(backend)["losses.easyllp"]
    close(got["log_risk"], 0.527220072696)
    law, rate, logit = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.4, 0.8]), np.array([-1.0, 0.3, 1.5])
    p = 1 / (1 + np.exp(-logit))
    close(got["square_risk"], law @ (rate * (1 - p) ** 2 + (1 - rate) * p**2))


@pytest.mark.slow
@each_backend
def test_squared_loss_is_the_same_with_two_logits_up_to_its_factor(backend):
    got = figures(backend)["losses.easyllp"]
    close(got["square_two_softmax"], 2 * got["square_two"])


@pytest.mark.slow
@each_backend
def test_centring_takes_away_the_mean_loss_of_reference_rows(backend):
    got = figures(backend)["losses.easyllp"]
    mean = (0.1 + 3 * 2.0) / 4  # the third target is padding
    close(got["centring"], -(mean - 0.3) * np.mean([-1.0, 0.0, 0.5, 2.0]))
    z = np.array([[1, 0, -1], [0, 0, 0], [0.5, -0.5, 2], [2, 1, 0]], float)
    q = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    losses = ((q[:, None, :] - np.eye(3)) ** 2).sum(axis=2).mean(axis=0)
    close(got["centring_square"], (np.array([1.35, -0.7, 0.35]) - [0.2, 0.3, 0.5]) @ losses)


@pytest.mark.slow
@each_backend
def test_single_row_represents_its_bag(backend):
    got = figures(backend)["losses.easyllp"]
    chosen = np.array(got["chosen"])
    close([chosen[:5].sum(), chosen[5:7].sum(), chosen[7:10].sum()], 1.0)
    assert np.count_nonzero(chosen[:10]) == 3
    close(got["picked"], (np.arange(10) @ chosen[:10]) / 3)
    close(got["chosen_of_many"], 1 / 3, 0.03)


def test_weights():
    def weights(count, size, prior):
        return debiased_targets(np.atleast_2d(count), np.array([size]), np.atleast_1d(prior))[0]

    close(weights(1.0, 4, 0.3), 0.1)
    close(weights(0.0, 4, 0.3), -0.9)
    close(weights(4.0, 4, 0.3), 3.1)
    close(weights([2.0, 1.0, 1.0], 4, [0.2, 0.3, 0.5]), [1.4, 0.1, -0.5])
    close([weights(0.0, 8, 0.25), weights(8.0, 8, 0.25)], [[-1.75], [6.25]])
    close([weights(0.0, 512, 0.25), weights(512.0, 512, 0.25)], [[-127.75], [384.25]])
    for prior in (0.1, 0.7):
        close([weights(0.0, 1, prior), weights(1.0, 1, prior)], [[0.0], [1.0]], 1e-12)


@pytest.mark.parametrize(("corrected", "expected"), [(False, (0.733333, 0.133333)), (True, (1.0, 0.0))])
def test_shrinkage_of_a_partition_and_its_correction(corrected, expected):
    labels = np.array([1, 1, 0, 0, 0, 0])
    total = np.zeros(6)
    for order in itertools.permutations(range(6)):
        counts = labels[list(order)].reshape(2, 3).sum(axis=1)[:, None]
        w = debiased_targets(counts, np.array([3, 3]), np.array([1 / 3]), without_replacement=corrected)
        total[list(order)] += np.repeat(w[:, 0], 3)
    close(total / 720, np.where(labels == 1, *expected), 1e-6)


def test_one_bag_of_everything_has_the_prior_as_target():
    w = debiased_targets(np.array([[3.0]]), np.array([10]), np.array([0.3]), without_replacement=True)
    close(w, [[0.3]])


@pytest.mark.parametrize("classes", [2, 10])
def test_mean_target_is_the_mean_count_under_any_noise(classes, monkeypatch):
    rng = np.random.default_rng(0)
    sizes, columns = np.full(20, 32), 1 if classes == 2 else classes
    counts = rng.normal(sizes[:, None] / classes, 40.0, (20, columns))  # their shares are far outside [0, 1]
    bags = Bags(np.zeros((640, 1), np.float32), np.arange(0, 641, 32), counts, classes, count_sd=40.0)
    learned = {}
    monkeypatch.setattr(EasyLLP, "train", lambda _, __, ___, data, **____: learned.update(data.rows, **data.shared))
    EasyLLP(center="reference").fit(bags, monitor=QuietMonitor(), seed=0)
    close(learned["targets"].mean(axis=0), counts.sum(axis=0) / 640, 1e-6)
    close(learned["prior"], counts.sum(axis=0) / 640, 1e-6)
