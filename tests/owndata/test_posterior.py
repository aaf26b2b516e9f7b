"""Probabilities of rows given the counts of their bags: equal to enumeration, and used by models."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import norm
from sklearn.metrics import log_loss

import llpbench
from llpbench import LLPClassifier, UsageError
from llpbench.owndata.judging import posterior as module
from llpbench.owndata.judging.posterior import level_to, posterior, posterior_of_bag
from llpbench.owndata.reading.bag_counts import KnownCounts


def by_enumeration(logits: np.ndarray, low: np.ndarray, high: np.ndarray, sd: float) -> np.ndarray:
    """Sum over all labellings of a bag; of two classes only the second's count is evidence."""
    rows, classes = logits.shape
    p, found = softmax(logits, axis=1), np.zeros(logits.shape)
    for labels in itertools.product(range(classes), repeat=rows):
        weight = np.prod(p[np.arange(rows), labels])
        for c in range(1 if classes == 2 else 0, classes):
            k = labels.count(c)
            if sd == 0:
                weight *= low[c] <= k <= high[c]
            elif low[c] == high[c]:
                weight *= norm.pdf(low[c], k, sd)
            else:
                weight *= norm.cdf(high[c] + 0.5, k, sd) - norm.cdf(low[c] - 0.5, k, sd)
        found[np.arange(rows), labels] += weight
    return found / found.sum(axis=1, keepdims=True)


@given(st.sampled_from([(1, 2), (6, 2), (9, 2), (5, 3), (4, 4)]), st.sampled_from([0.0, 0.6]), st.integers(0, 999))
@quick
def test_posterior_equals_enumeration(shape: tuple[int, int], sd: float, seed: int) -> None:
    rows, classes = shape
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=shape) * rng.choice([1.0, 6.0])
    counts = rng.multinomial(rows, rng.dirichlet(np.ones(classes))).astype(float)
    low = np.maximum(counts - rng.integers(0, 3, classes), 0)
    high = counts + rng.integers(0, 3, classes)
    if classes == 2:
        low[0], high[0] = max(rows - high[1], 0), rows - low[1]
    for bounds in ((counts, counts), (low, high)):
        found = posterior_of_bag(logits, *bounds, sd)
        np.testing.assert_allclose(found, by_enumeration(logits, *bounds, sd), rtol=1e-7, atol=1e-12)


def test_posterior_of_large_bags_keeps_counts_and_ignores_bag_effects() -> None:
    rng = np.random.default_rng(0)
    for rows, classes in ((3000, 2), (40, 3), (700, 3), (300, 8)):
        logits = 2 * rng.normal(size=(rows, classes))
        counts = rng.multinomial(rows, rng.dirichlet(np.full(classes, 3.0))).astype(float)
        p = posterior_of_bag(logits, counts, counts, 0.0)
        np.testing.assert_allclose(p.sum(axis=0), counts, atol=1e-5)
        moved = posterior_of_bag(logits + rng.normal(size=classes), counts, counts, 0.0)
        np.testing.assert_allclose(moved, p, atol=1e-6)


def test_normal_law_is_close_to_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    logits, counts = 2 * rng.normal(size=(60, 3)), np.array([10.0, 20.0, 30.0])
    exact = posterior_of_bag(logits, counts, counts, 0.0)
    monkeypatch.setattr(module, "_MOST_POINTS", 0)
    normal = posterior_of_bag(logits, counts, counts, 0.0)
    assert np.abs(normal - exact).max() < 1e-3 < np.abs(level_to(logits, counts) - exact).max()


def test_noisy_counts_are_believed_as_far_as_bags_differ() -> None:
    """A bag effect of variance E: the sum moves by (V + E) / (V + E + s²) towards the count."""
    logits = np.zeros((400, 2))
    known = KnownCounts.exactly(np.array([[160.0, 240.0]]), sd=20.0)
    for effect in (0.0, 0.01):
        p = posterior(logits, np.zeros(400, int), known, np.full(2, effect))
        prior = 100 + 400**2 * effect
        assert p[:, 1].sum() - 200 == pytest.approx(40 * prior / (prior + 400), rel=0.03)


def election(bags: int = 40, size: int = 25) -> tuple[pd.DataFrame, np.ndarray, pd.Series]:
    rng = np.random.default_rng(3)
    bag = np.repeat(np.arange(bags), size)
    x = rng.normal(size=(bags * size, 2)) + rng.normal(size=(bags, 2))[bag]
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-1.5 * x[:, 0] - 1.5 * rng.normal(size=bags)[bag]))).astype(int)
    return pd.DataFrame(x, columns=["a", "b"]).assign(bag=bag), y, pd.Series(y).groupby(bag).sum()


def test_predictions_for_the_table_of_the_fit_use_its_counts(tmp_path: Path) -> None:
    frame, y, counts = election()
    model = llpbench.fit(frame, "bag", counts, method="mean-ridge")
    p = model.predict_proba()
    np.testing.assert_allclose(pd.Series(p[:, 1]).groupby(frame["bag"]).sum(), counts, atol=1e-6)
    assert log_loss(y, p) < log_loss(y, model.predict_proba(frame)) - 0.02
    assert (model.labels_ == model.classes_[p.argmax(axis=1)]).all()
    np.testing.assert_allclose(model.predict_proba(frame, bag_of="bag", counts=counts), p)
    sizes = frame["bag"].value_counts().sort_index()
    np.testing.assert_allclose(model.predict_proba(frame, bag_of="bag", proportions=counts / sizes), p, atol=1e-6)
    loaded = llpbench.load(model.save(tmp_path / "m"))
    np.testing.assert_allclose(loaded.predict_proba(frame, bag_of="bag", counts=counts), p, atol=1e-6)
    with pytest.raises(UsageError, match="loaded from a file has no table"):
        loaded.predict_proba()
    with pytest.raises(UsageError, match="bag_of needs counts"):
        model.predict(frame, bag_of="bag")


def test_rows_of_bags_without_counts_are_predicted_without() -> None:
    frame, _, counts = election()
    some = counts.astype(float).where(counts.index % 4 != 0)
    with pytest.warns(llpbench.LLPWarning, match="unknown"):
        model = llpbench.fit(frame, "bag", some, method="mean-ridge")
    p, plain = model.predict_proba(), model.predict_proba(frame)
    without = (frame["bag"] % 4 == 0).to_numpy()
    np.testing.assert_allclose(p[without], plain[without])
    assert np.abs(p[~without] - plain[~without]).max() > 0.01


def test_counts_within_bounds_keep_rows_within_them() -> None:
    frame, _, counts = election()
    with pytest.warns(llpbench.LLPWarning, match="within bounds"):
        model = llpbench.fit(frame, "bag", counts.astype(str).where(counts >= 8, "<8"), method="mean-ridge")
    sums = pd.Series(model.predict_proba()[:, 1]).groupby(frame["bag"]).sum()
    assert (sums[counts < 8] <= 7).all()
    np.testing.assert_allclose(sums[counts >= 8], counts[counts >= 8], atol=1e-6)


def test_classifier_uses_counts_in_the_form_of_its_target() -> None:
    frame, y, counts = election()
    X, bag = frame.drop(columns="bag"), frame["bag"]
    wanted = llpbench.fit(frame, "bag", counts, method="mean-ridge").predict_proba()
    for target, given_y, known in (
        ("counts", bag.map(counts), counts),
        ("proportions", bag.map(counts / 25), counts / 25),
        ("labels", y, counts),
    ):
        classifier = LLPClassifier("mean-ridge", target=target).fit(X, given_y, bag_of=bag)
        np.testing.assert_allclose(classifier.predict_proba(), wanted, atol=1e-6)
        np.testing.assert_allclose(classifier.predict_proba(frame, bag_of="bag", counts=known), wanted, atol=1e-6)
        assert (classifier.labels_ == classifier.predict(X, bag_of=bag, counts=known)).all()
