"""Metrics against scikit-learn, and against what can be said in words."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import quick
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.metrics import log_loss as sklearn_log_loss

from llpbench.experiment.metrics import accuracy, auroc, average_precision, log_loss, to_probabilities

COARSE = st.integers(-3, 3).map(float)  # few values: many ties
FINE = st.floats(-1e6, 1e6, width=32)


@st.composite
def scored(draw: st.DrawFn, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(2, 40))
    labels = draw(hnp.arrays(np.int64, n, elements=st.integers(0, classes - 1)))
    elements = draw(st.sampled_from([COARSE, FINE]))
    scores = draw(hnp.arrays(np.float32, n if classes == 2 else (n, classes), elements=elements))
    assume(len(set(labels)) == classes)
    return labels, scores


@quick
@given(scored())
def test_auroc_is_that_of_scikit_learn_also_with_ties(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = case
    assert auroc(labels, scores) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


@quick
@given(scored(classes=3))
def test_auroc_of_several_classes_is_the_mean_of_one_against_the_rest(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = case
    wanted = np.mean([roc_auc_score(labels == c, scores[:, c]) for c in range(3)])
    assert auroc(labels, scores) == pytest.approx(wanted, abs=1e-12)


@quick
@given(scored())
def test_auroc_turns_round_with_the_scores_and_heeds_only_their_order(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = case
    value = auroc(labels, scores)
    assert auroc(labels, -scores) == pytest.approx(1 - value, abs=1e-12)
    ranks = np.unique(scores, return_inverse=True)[1]
    assert auroc(labels, ranks.astype(float) ** 3) == pytest.approx(value, abs=1e-12)


def test_a_constant_score_is_chance_and_an_absent_class_has_no_number() -> None:
    labels = np.array([0, 1, 1, 0, 1])
    assert auroc(labels, np.zeros(5)) == 0.5
    assert auroc(labels, labels.astype(float)) == 1.0
    assert np.isnan(auroc(np.zeros(5, dtype=int), np.arange(5.0)))
    assert np.isnan(auroc(np.array([0, 1, 1]), np.eye(3)))
    assert np.isnan(average_precision(np.zeros(5, dtype=int), np.arange(5.0)))


@quick
@given(scored())
def test_average_precision_is_that_of_scikit_learn(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = case
    assert average_precision(labels, scores) == pytest.approx(average_precision_score(labels, scores), abs=1e-12)


def test_average_precision_of_several_classes_is_their_mean() -> None:
    labels, scores = np.array([0, 1, 2, 1]), np.random.default_rng(0).random((4, 3))
    wanted = np.mean([average_precision_score(labels == c, scores[:, c]) for c in range(3)])
    assert average_precision(labels, scores) == pytest.approx(wanted)


def test_accuracy_counts_the_most_probable_class() -> None:
    assert accuracy(np.array([1, 0, 1, 0]), np.array([0.9, 0.1, 0.4, 0.5])) == 0.75
    assert accuracy(np.array([2, 0]), np.array([[0.1, 0.2, 0.7], [0.3, 0.4, 0.3]])) == 0.5


@quick
@given(hnp.arrays(np.float64, 12, elements=st.floats(0.001, 0.999)), st.integers(0, 99))
def test_log_loss_is_that_of_scikit_learn(p: np.ndarray, seed: int) -> None:
    labels = np.random.default_rng(seed).integers(0, 2, 12)
    assert log_loss(labels, p) == pytest.approx(sklearn_log_loss(labels, p, labels=[0, 1]))
    rows = np.stack([1 - p, p], axis=1)
    assert log_loss(labels, rows) == pytest.approx(log_loss(labels, p))


def test_a_certain_error_costs_much_but_not_infinitely() -> None:
    assert log_loss(np.array([1]), np.array([0.0], dtype=np.float32)) == pytest.approx(-np.log(1e-7))


def test_scores_become_probabilities() -> None:
    inside = np.array([0.0, 0.2, 1.0], dtype=np.float32)
    np.testing.assert_array_equal(to_probabilities(inside, "auto"), inside)
    np.testing.assert_allclose(to_probabilities(inside, "logit"), 1 / (1 + np.exp(-inside.astype(float))))
    outside = np.array([-2.0, 0.0, 3.0])
    np.testing.assert_allclose(to_probabilities(outside, "auto"), 1 / (1 + np.exp(-outside)))
    rows = np.array([[0.2, 0.3, 0.5]])
    np.testing.assert_array_equal(to_probabilities(rows, "auto"), rows)
    for scores in (np.array([[0.2, 0.3, 0.6]]), np.array([[1.0, 2.0, -1.0]])):
        np.testing.assert_allclose(to_probabilities(scores, "auto"), np.exp(scores) / np.exp(scores).sum())


@quick
@given(hnp.arrays(np.float64, 10, elements=st.floats(-20, 20)))
def test_the_map_to_probabilities_keeps_the_order(scores: np.ndarray) -> None:
    probabilities = to_probabilities(scores, "auto")
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert (np.diff(probabilities[np.argsort(scores)]) >= 0).all()
