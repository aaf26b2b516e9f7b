"""Metrics against scikit-learn, and against what can be said in words."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers import quick
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    roc_auc_score,
)
from sklearn.metrics import log_loss as sklearn_log_loss

from llpbench.contracts.errors import PluginError
from llpbench.contracts.specs import MetricSpec
from llpbench.experiment.decisions import decide, rate_threshold
from llpbench.experiment.levelling import level, log_odds
from llpbench.experiment.metrics import (
    accuracy,
    auroc,
    average_precision,
    balanced_accuracy,
    brier,
    expected_calibration_error,
    f1,
    log_loss,
    macro_f1,
    to_probabilities,
)
from llpbench.experiment.scoring import Answers
from llpbench.plugins.builtin import llpbench_metrics

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
def test_auroc_depends_only_on_the_order_of_scores(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = case
    value = auroc(labels, scores)
    assert auroc(labels, -scores) == pytest.approx(1 - value, abs=1e-12)
    ranks = np.unique(scores, return_inverse=True)[1]
    assert auroc(labels, ranks.astype(float) ** 3) == pytest.approx(value, abs=1e-12)


def test_constant_score_is_chance_and_an_absent_class_has_no_number() -> None:
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


def test_log_loss_of_a_certain_error_is_finite() -> None:
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
def test_map_to_probabilities_keeps_the_order(scores: np.ndarray) -> None:
    probabilities = to_probabilities(scores, "auto")
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert (np.diff(probabilities[np.argsort(scores)]) >= 0).all()


# -- decisions ---------------------------------------------------------------------------------------------------------


@st.composite
def decided(draw: st.DrawFn, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(1, 40))
    return tuple(draw(hnp.arrays(np.int64, n, elements=st.integers(0, classes - 1))) for _ in range(2))  # type: ignore[return-value]


@quick
@given(decided())
def test_f1_of_two_classes_is_that_of_scikit_learn(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, decisions = case
    assume(labels.any() or decisions.any())
    assert f1(labels, decisions) == pytest.approx(f1_score(labels, decisions))


@quick
@given(decided(classes=3))
def test_macro_f1_and_balanced_accuracy_are_those_of_scikit_learn(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, decisions = case
    assert macro_f1(labels, decisions) == pytest.approx(f1_score(labels, decisions, average="macro"))
    if max(labels.max(), decisions.max()) > 1:
        assert f1(labels, decisions) == macro_f1(labels, decisions)
    assume(len(set(labels)) > 1 and set(decisions) <= set(labels))
    assert balanced_accuracy(labels, decisions) == pytest.approx(balanced_accuracy_score(labels, decisions))


def test_f1_where_a_class_is_absent() -> None:
    none, some = np.zeros(4, int), np.array([0, 1, 0, 0])
    assert np.isnan(f1(none, none))
    assert f1(none, some) == f1(some, none) == 0.0


@quick
@given(
    scores=hnp.arrays(np.float64, st.integers(1, 40), elements=st.one_of(COARSE, FINE)),
    rate=st.floats(0, 1),
)
def test_as_many_rows_are_positive_as_the_rate_says_and_ties_allow(scores: np.ndarray, rate: float) -> None:
    decisions = decide(scores, scores, np.array([rate]))
    positive = scores[decisions == 1]
    negative = scores[decisions == 0]
    assert positive.min(initial=np.inf) > negative.max(initial=-np.inf)
    possible = [int((scores >= t).sum()) for t in (*np.unique(scores), np.inf)]
    assert abs(decisions.sum() - rate * len(scores)) == min(abs(k - rate * len(scores)) for k in possible)
    assert (decide(np.exp(scores / 2e6), scores, np.array([rate])) <= 1).all()


def test_constant_scores_give_one_class() -> None:
    assert rate_threshold(np.zeros(10), 0.24) == np.inf
    assert rate_threshold(np.zeros(10), 0.76) == 0.0
    assert decide(np.arange(10.0), np.arange(10.0), np.array([0.3])).tolist() == [0] * 7 + [1] * 3


def test_several_classes_take_the_most_probable_one_at_the_known_rates() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(500, 3)) + np.array([3.0, 0.0, 0.0])  # far too fond of the first class
    rate = np.array([0.2, 0.5, 0.3])
    p = to_probabilities(logits, "logit")
    wanted = level(log_odds(logits, p), rate).argmax(axis=1)
    np.testing.assert_array_equal(decide(logits, p, rate), wanted)
    assert np.bincount(wanted)[0] < 200 < (p.argmax(axis=1) == 0).sum()


# -- probabilities and bags --------------------------------------------------------------------------------------------


@quick
@given(scored())
def test_brier_is_that_of_scikit_learn(case: tuple[np.ndarray, np.ndarray]) -> None:
    labels, scores = case
    p = to_probabilities(scores, "logit")
    assert brier(labels, p) == pytest.approx(brier_score_loss(labels, p))
    assert brier(labels, np.stack([1 - p, p], axis=1)) == pytest.approx(2 * brier(labels, p))


def test_calibration_error_by_hand_and_by_bins() -> None:
    labels = np.array([0, 1, 1, 1])
    assert expected_calibration_error(labels, np.array([0.01, 0.02, 0.95, 1.0])) == pytest.approx(
        (abs(0.03 - 1) + abs(1.95 - 2)) / 4
    )
    several = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])
    assert expected_calibration_error(np.array([0, 2]), several) == pytest.approx(0.3)
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = (rng.random(20_000) < p).astype(int)
    edges = np.linspace(0, 1, 16)
    wanted = sum(
        abs(p[inside].mean() - y[inside].mean()) * inside.mean()
        for low, high in itertools.pairwise(edges)
        if (inside := (p >= low) & (p < high)).any()
    )
    assert expected_calibration_error(y, p) == pytest.approx(wanted)
    assert wanted < 0.02 < expected_calibration_error(y, np.sqrt(p))


METRICS = {spec.name: spec for spec in llpbench_metrics()}


@quick
@given(st.integers(2, 4), st.integers(0, 99))
def test_error_of_test_bags_by_brute_force(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels, bag_of = rng.integers(0, classes, 40), rng.integers(-1, 6, 40)
    p = rng.random(40) if classes == 2 else rng.dirichlet(np.ones(classes), 40)
    columns, truth = (p[:, None], labels[:, None] == 1) if classes == 2 else (p, labels[:, None] == np.arange(classes))
    bags = [bag_of == b for b in set(bag_of.tolist()) - {-1}]
    wanted = np.mean([np.abs(columns[b].mean(axis=0) - truth[b].mean(axis=0)) for b in bags])
    answers = Answers(labels, np.empty(0), bag_of)
    assert answers.score(METRICS["test_bag_error"], p, "probability") == pytest.approx(wanted)


def test_metric_without_its_inputs_is_undefined() -> None:
    labels, p = np.array([0, 1]), np.array([0.2, 0.7])
    assert np.isnan(Answers(labels, np.empty(0)).score(METRICS["test_bag_error"], p, "auto"))
    assert np.isnan(Answers(labels, np.empty(0)).score(METRICS["f1"], p, "auto"))
    assert Answers(labels, np.array([0.5])).score(METRICS["f1"], p, "auto") == 1.0
    with pytest.raises(PluginError, match="needs one of scores, probabilities, decisions, bag_shares, not 'labels'"):
        MetricSpec(name="x", factory="a:b", needs="labels")  # type: ignore[arg-type]
