"""mean-map: the operators against direct solutions, the regression against scikit-learn's, the method as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import Bags, QuietMonitor, Skip
from llpbench.plugins.registry import load_registry
from llpbench_methods.mean_map.loss import LogisticProblem
from llpbench_methods.mean_map.method import PENALTIES, MeanMap
from llpbench_methods.mean_map.operators import bag_laplacian, labelled_means, laplacian_mean_map, mean_map


def setting(n_bags: int, classes: int, d: int = 4, seed: int = 0):
    rng = np.random.default_rng(seed)
    means, shares = rng.normal(size=(n_bags, d)), rng.dirichlet(np.ones(classes), n_bags)
    weights = rng.integers(1, 30, n_bags).astype(float)
    return means, shares, weights, weights @ shares / weights.sum()


@quick
@given(st.integers(4, 30), st.sampled_from([2, 3]), st.integers(0, 1000))
def test_mean_map_is_least_squares(n_bags: int, classes: int, seed: int) -> None:
    means, shares, weights, rates = setting(n_bags, classes, seed=seed)
    root = np.sqrt(weights)[:, None]
    class_means = np.linalg.lstsq(root * shares, root * means, rcond=None)[0]
    wanted = rates[:, None] * class_means
    np.testing.assert_allclose(mean_map(means, shares, weights, rates), wanted, rtol=1e-6, atol=1e-6)


def test_equal_bags_give_the_mean_of_all_rows() -> None:
    means, _, weights, _ = setting(10, 2)
    rates = np.array([0.7, 0.3])
    found = mean_map(means, np.tile(rates, (10, 1)), weights, rates)
    np.testing.assert_allclose(found, rates[:, None] * (weights @ means / weights.sum()), atol=1e-12)


def test_exact_class_means_are_found() -> None:
    _, shares, weights, rates = setting(12, 3)
    class_means = np.random.default_rng(1).normal(size=(3, 4))
    found = mean_map(shares @ class_means, shares, weights, rates)
    np.testing.assert_allclose(found, rates[:, None] * class_means, atol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_laplacian_mean_map_solves_its_dense_system(classes: int) -> None:
    means, shares, weights, rates = setting(9, classes)
    gamma, sigma, n = 0.3, 1.7, 9
    similarity = np.array([[np.exp(-np.linalg.norm(a - b) / sigma) for b in means] for a in means]) - np.eye(n)
    laplacian = np.diag(similarity.sum(axis=1)) - similarity
    np.testing.assert_allclose(bag_laplacian(means, sigma), laplacian, atol=1e-12)
    Pi = np.hstack([np.diag(shares[:, c]) for c in range(classes)])
    D = np.diag(weights / weights.mean())
    L = np.kron(np.eye(classes), laplacian)
    own = np.linalg.inv(Pi.T @ D @ Pi + gamma * L) @ Pi.T @ D @ means
    wanted = []
    for c in range(classes):
        chance = weights * shares[:, c] / (weights @ shares[:, c])
        wanted.append(rates[c] * chance @ own[c * n : (c + 1) * n])
    found = laplacian_mean_map(means, shares, weights, rates, gamma=gamma, sigma=sigma)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_strong_laplacian_gives_mean_map() -> None:
    means, shares, weights, rates = setting(9, 2)
    strong = laplacian_mean_map(means, shares, weights, rates, gamma=1e4, sigma=1.0)
    np.testing.assert_allclose(strong, mean_map(means, shares, weights, rates), rtol=1e-2, atol=1e-3)


def labelled(n: int = 400, d: int = 5, classes: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * [1, 1, 3, 0.2, 1] + [0, 5, 0, 0, 0]).astype(np.float32)
    truth = np.random.default_rng(9).normal(size=(d, classes))
    y = np.argmax((X - [0, 5, 0, 0, 0]) @ truth + rng.gumbel(size=(n, classes)), axis=1)
    return X, y


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("penalty", [0.5, 50.0])
def test_with_true_labels_it_is_logistic_regression(classes: int, penalty: float) -> None:
    from sklearn.linear_model import LogisticRegression

    X, y = labelled(classes=classes)
    rates = np.bincount(y, minlength=classes) / len(y)
    problem = LogisticProblem.of(X)
    model = problem.fit(labelled_means(X, y, classes), rates, penalty)
    # Two classes: s is half the log-odds, so the penalty on the log-odds' weights is a quarter.
    strength = 4.0 / penalty if classes == 2 else 1.0 / penalty
    known = LogisticRegression(C=strength, tol=1e-10, max_iter=5000).fit(X.astype(float), y)
    p = known.predict_proba(X)
    np.testing.assert_allclose(model.probabilities(X), p[:, 1] if classes == 2 else p, atol=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_gradient_is_the_slope(classes: int) -> None:
    X, _ = labelled(n=60, classes=classes)
    rng = np.random.default_rng(0)
    K = 1 if classes == 2 else classes
    W, b, m, levels = rng.normal(size=(5, K)), rng.normal(size=K), rng.normal(size=(5, K)), rng.normal(size=K)
    problem = LogisticProblem.of(X)
    _, slope, level_slope = problem.value_and_slope(W, b, m, levels, 3.0)
    dW, db, step = rng.normal(size=W.shape), rng.normal(size=K), 1e-6
    sides = [problem.value_and_slope(W + s * dW, b + s * db, m, levels, 3.0)[0] for s in (step, -step)]
    assert (sides[0] - sides[1]) / (2 * step) == pytest.approx(np.sum(slope * dW) + level_slope @ db, rel=1e-5)


def bagged(classes: int = 2, size: int = 10, n: int = 1500, seed: int = 0, noise: float = 0.0):
    X, y = labelled(n, classes=classes, seed=seed)
    offsets = np.append(np.arange(0, n, size), n)
    counts = np.add.reduceat(np.eye(classes)[y], offsets[:-1], axis=0)
    counts = counts + np.random.default_rng(seed).normal(size=counts.shape) * noise
    return Bags(X, offsets, counts[:, 1:] if classes == 2 else counts, classes, noise), y


class Picks(QuietMonitor):
    """Calls one report the best and keeps what it saw."""

    def __init__(self, best: int) -> None:
        self.best, self.seen, self.notes = best, [], {}

    def report(self, predict, *, stage=""):
        self.seen.append(predict)
        return len(self.seen) - 1 == self.best

    def note(self, name, value):
        self.notes[name] = value


@pytest.mark.parametrize("variant", ["mm", "lmm", "amm"])
@pytest.mark.parametrize("classes", [2, 3])
def test_mean_map_learns_and_predicts_the_known_rate(variant: str, classes: int) -> None:
    bags, y = bagged(classes)
    scores = MeanMap(variant=variant, penalty=10.0).fit(bags, monitor=QuietMonitor(), seed=0).predict_scores(bags.X)
    guess = (scores > 0.5).astype(int) if classes == 2 else scores.argmax(axis=1)
    assert np.mean(guess == y) > np.bincount(y).max() / len(y) + 0.15
    rates = np.bincount(y, minlength=classes) / len(y)
    np.testing.assert_allclose(scores.mean(axis=0), rates[1] if classes == 2 else rates, atol=2e-3)


@pytest.mark.parametrize("best", [0, 1, 2])
def test_penalty_with_the_best_held_out_score_is_kept(best: int) -> None:
    bags, _ = bagged()
    monitor = Picks(best)
    fitted = MeanMap().fit(bags, monitor=monitor, seed=0)
    assert len(monitor.seen) == len(PENALTIES)
    assert monitor.notes["penalty"] == PENALTIES[best]
    alone = MeanMap(penalty=PENALTIES[best]).fit(bags, monitor=QuietMonitor(), seed=0)
    np.testing.assert_allclose(fitted.predict_scores(bags.X), alone.predict_scores(bags.X), atol=1e-3)


def test_alternation_ends_where_labels_and_model_agree() -> None:
    from llpbench_methods.shared.assignment import fitting_labels

    bags, _ = bagged()
    model = MeanMap(variant="amm", penalty=10.0).fit(bags, monitor=QuietMonitor(), seed=0).model_
    labels = fitting_labels(model.scores(bags.X)[:, 0], bags.offsets, bags.counts.astype(int))
    rate = float(bags.prior[0])
    again = LogisticProblem.of(bags.X).fit(labelled_means(bags.X, labels, 2), np.array([1 - rate, rate]), 10.0, model)
    assert np.abs(again.probabilities(bags.X) - model.probabilities(bags.X)).max() < 0.02


@pytest.mark.parametrize("variant", ["mm", "lmm", "amm"])
def test_origin_of_the_features_does_not_matter(variant: str) -> None:
    bags, _ = bagged(noise=2.0)
    moved = Bags(bags.X + 3.0, bags.offsets, bags.counts, bags.classes, bags.count_sd)
    here, there = (
        MeanMap(variant=variant, penalty=10.0).fit(b, monitor=QuietMonitor(), seed=0).predict_scores(b.X)
        for b in (bags, moved)
    )
    np.testing.assert_allclose(here, there, atol=2e-3)


def test_too_many_bags_for_the_dense_system_are_declined() -> None:
    bags, _ = bagged(size=1, n=1501)
    with pytest.raises(Skip, match=r"1,501 x 2\. Use variant=mm"):
        MeanMap(variant="lmm").fit(bags, monitor=QuietMonitor(), seed=0)


@pytest.mark.parametrize("variant", ["mm", "lmm", "amm"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("case", ["noise", "one bag", "single rows", "no class 1", "constant", "scales"])
def test_odd_settings_give_finite_scores(variant: str, classes: int, case: str) -> None:
    bags, _ = bagged(
        classes, size={"one bag": 60, "single rows": 1}.get(case, 10), n=60, noise=20.0 if case == "noise" else 0.0
    )
    X, counts = bags.X, bags.counts
    if case == "no class 1":
        counts = np.zeros_like(counts)
        counts[:, :: classes - 1] = 0.0 if classes == 2 else bags.sizes[:, None] * [1.0, 0.0]
    elif case == "constant":
        X = np.ones_like(X)
    elif case == "scales":
        X = X * np.array([1e-6, 1, 1e3, 1e5, 1e8], np.float32)
    fitted = MeanMap(variant=variant, penalty=10.0).fit(
        Bags(X, bags.offsets, counts, classes, bags.count_sd), monitor=QuietMonitor(), seed=0
    )
    assert np.isfinite(fitted.predict_scores(X)).all()


def test_restore_rejects_a_damaged_state() -> None:
    bags, _ = bagged()
    state = dict(MeanMap(penalty=1.0).fit(bags, monitor=QuietMonitor(), seed=0).state())
    state["centre"] = np.zeros(3)
    with pytest.raises(ValueError, match="3 features"):
        MeanMap().restore(state)


@pytest.mark.parametrize("name", ["mean-map", "llp-dc", "mixbag"])
def test_authors_values_are_a_preset(name: str) -> None:
    from llpbench.contracts.specs import import_attribute

    spec = load_registry().methods[name]
    values = import_attribute(dict(spec.presets)["authors"])("adult", 512)
    assert {key: spec.resolve(values)[key] for key in values} == values
    assert spec.paper
    assert spec.code
