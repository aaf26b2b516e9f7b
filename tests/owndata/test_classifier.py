"""``LLPClassifier``: scikit-learn's own checks, and its tools at work on bags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.special import expit
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import llpbench
from llpbench import LLPClassifier
from llpbench.owndata.judging.held_out import sum_predictions

NOT_HERE: dict[str, str] = {}
"""Checks of scikit-learn that do not apply, each with the reason. There is none."""


def table(n: int = 480, bags: int = 48) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features, the label of each row, its bag."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "job": rng.choice(["x", "y"], n)})
    y = rng.random(n) < expit(3 * frame["a"] + (frame["job"] == "x"))
    return frame, y.to_numpy().astype(int), rng.permutation(np.arange(n) % bags)


@parametrize_with_checks(
    [LLPClassifier("mean-ridge", target="labels")], expected_failed_checks=lambda estimator: NOT_HERE
)
def test_passes_scikit_learn_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_classifier_equals_fit_for_all_forms_of_y() -> None:
    X, y, bag = table()
    counts = np.bincount(bag, y)
    wanted = llpbench.fit(X, bag, dict(enumerate(counts)), method="mean-ridge").predict_proba(X)
    ridge = LLPClassifier("mean-ridge")
    fits = {
        "counts by bag": clone(ridge).fit(X, dict(enumerate(counts)), bag_of=bag),
        "counts by row": clone(ridge).fit(X, counts[bag], bag_of=bag),
        "column of bags": clone(ridge).fit(X.assign(bag=bag), counts[bag], bag_of="bag"),
        "proportions": clone(ridge).set_params(target="proportions").fit(X, counts[bag] / 10, bag_of=bag),
        "labels": clone(ridge).set_params(target="labels").fit(X, y, bag_of=bag),
    }
    for name, fitted in fits.items():
        np.testing.assert_allclose(fitted.predict_proba(X), wanted, rtol=1e-9, err_msg=name)
        assert fitted.classes_.tolist() == [0, 1]
        assert fitted.feature_names_in_.tolist() == ["a", "b", "job"]
    assert np.array_equal(fits["column of bags"].predict(X.assign(bag=bag)), fits["labels"].predict(X))
    shuffled = y.copy()
    for b in range(48):
        rows = np.flatnonzero(bag == b)
        shuffled[rows] = np.random.default_rng(b).permutation(y[rows])
    other = clone(ridge).set_params(target="labels").fit(X, shuffled, bag_of=bag)
    assert np.array_equal(other.predict_proba(X), fits["labels"].predict_proba(X))  # nothing but counts is used


def test_labels_without_bag_of_are_bags_of_one_row() -> None:
    X, y, _ = table()
    names = np.array(["no", "yes"])[y]
    model = LLPClassifier("mean-ridge", target="labels").fit(X, names)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, names) > 0.75
    wanted = llpbench.fit(X, np.arange(len(X)), dict(enumerate(y)), method="mean-ridge")
    assert np.array_equal(model.predict_proba(X), wanted.predict_proba(X))


def test_score_is_accuracy_for_labels_and_likelihood_for_counts() -> None:
    X, y, bag = table()
    counts = np.bincount(bag, y)
    model = LLPClassifier("mean-ridge").fit(X, counts[bag], bag_of=bag)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    held = sum_predictions(model.predict_proba(X), bag, counts[:, None].astype(float), np.full(48, 10), 0.0)
    assert model.score(X, counts[bag], bag_of=bag) == pytest.approx(held.log_likelihoods().mean())
    assert model.score(X, dict(enumerate(counts)), bag_of=bag) > model.score(X, counts[::-1][bag], bag_of=bag)
    some = pd.Series(counts, dtype=float).where(np.arange(48) > 10)
    assert np.isfinite(model.score(X, some, bag_of=bag))


@pytest.mark.usefixtures("routing")
def test_bag_of_is_routed_through_pipelines_and_cross_validation() -> None:
    X, y, bag = table()
    numbers = X[["a", "b"]]
    counts = np.bincount(bag, y)[bag]
    model = LLPClassifier("mean-ridge").set_fit_request(bag_of=True).set_score_request(bag_of=True)
    pipeline = make_pipeline(StandardScaler(), model).fit(numbers, counts, bag_of=bag)
    alone = LLPClassifier("mean-ridge").fit(StandardScaler().fit_transform(numbers), counts, bag_of=bag)
    assert np.array_equal(pipeline.predict_proba(numbers), alone.predict_proba(StandardScaler().fit_transform(numbers)))
    params = {"bag_of": bag, "groups": bag}
    found = cross_validate(pipeline, numbers, counts, cv=GroupKFold(3), params=params, error_score="raise")
    assert np.isfinite(found["test_score"]).all()
    search = GridSearchCV(
        model, {"params": [{"penalty": 1.0}, {"penalty": 1e8}]}, cv=GroupKFold(2), error_score="raise"
    )
    search.fit(X, counts, **params)
    assert search.best_params_ == {"params": {"penalty": 1.0}}  # the other one gives all rows the same


def test_feature_selection_works_without_labels() -> None:
    X, y, bag = table()
    counts = np.bincount(bag, y)
    model = LLPClassifier("mean-ridge").fit(X, counts[bag], bag_of=bag)
    by_label = permutation_importance(model, X, y, n_repeats=3, random_state=0)
    by_count = permutation_importance(
        model, X, counts[bag], n_repeats=3, random_state=0, scoring=lambda m, X, y: m.score(X, y, bag_of=bag)
    )
    for found in (by_label, by_count):
        assert found["importances_mean"].argmax() == 0


def test_sparse_text_works_after_truncated_svd() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    words = sparse.random(300, 50, 0.1, random_state=0, format="csr")
    y = (words @ rng.normal(size=50) > 0).astype(int)
    pipeline = make_pipeline(TruncatedSVD(10, random_state=0), LLPClassifier("mean-ridge"))
    bag = np.arange(300) % 60
    pipeline.fit(words, np.bincount(bag, y)[bag], llpclassifier__bag_of=bag)
    assert pipeline.score(words, y) > 0.6
    direct = LLPClassifier("mean-ridge").fit(words, np.bincount(bag, y)[bag], bag_of=bag)
    assert np.array_equal(direct.predict(words), direct.predict(words.toarray()))


def test_clone_keeps_parameters_and_random_state_draws_seeds() -> None:
    X, y, bag = table()
    model = LLPClassifier("mean-ridge", params={"penalty": 1.0}, random_state=np.random.RandomState(0))
    assert clone(model).get_params()["params"] == {"penalty": 1.0}
    assert LLPClassifier().get_params()["method"] is None
    drawn = np.random.RandomState(0).randint(2**31 - 1)
    fitted = model.fit(X, np.bincount(bag, y)[bag], bag_of=bag)
    same = clone(model).set_params(random_state=int(drawn)).fit(X, np.bincount(bag, y)[bag], bag_of=bag)
    assert np.array_equal(fitted.predict_proba(X), same.predict_proba(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, "requires y to be passed"),
        ({"bag_of": "store"}, "unknown column of the table: 'store'"),
        ({"y": {0: 1}}, "no value for bag 1"),
        ({"y": np.full(480, 11)}, "between 0 and its 10 rows, got 11"),
        ({"target": "shares"}, "unknown target 'shares'"),
        ({"method": "mean-rigde"}, "Did you mean 'mean-ridge'"),
        ({"y": np.zeros(480), "bag_of": None, "target": "labels"}, "only one class"),
        ({"bag_of": None}, r"bag_of, the bag of each row, is missing.*set_fit_request"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_arguments_raise_value_error(change: dict[str, Any], message: str) -> None:
    X, y, bag = table()
    request = {"y": np.bincount(bag, y)[bag], "bag_of": bag, "target": "counts", "method": "mean-ridge", **change}
    model = LLPClassifier(request["method"], target=request["target"])
    with pytest.raises(ValueError, match=message):
        model.fit(X, request["y"], bag_of=request["bag_of"])


def test_scoring_counts_without_bag_of_is_rejected() -> None:
    """A search whose scorer gets no bags would compare labels with counts, and score 0 throughout."""
    X, y, bag = table()
    counts = np.bincount(bag, y)[bag]
    model = LLPClassifier("mean-ridge").fit(X, counts, bag_of=bag)
    with pytest.raises(ValueError, match=r"labels of rows \(0, 1\) if bag_of is missing.*set_score_request"):
        model.score(X, counts)
    search = GridSearchCV(LLPClassifier("mean-ridge"), {"validation": [0.1]}, cv=GroupKFold(2), error_score="raise")
    with pytest.raises(ValueError, match="set_score_request"):
        search.fit(X, counts, groups=bag, bag_of=bag)
    with pytest.raises(ValueError, match="set_fit_request"):
        search.fit(X, counts, groups=bag)


def test_score_of_counts_weighs_bags_by_their_rows() -> None:
    X, y, bag = table()
    counts = np.bincount(bag, y)
    model = LLPClassifier("mean-ridge").fit(X, counts[bag], bag_of=bag)
    chosen = bag < 20
    weighted = model.score(X, counts[bag], bag_of=bag, sample_weight=np.where(chosen, 2.0, 0.0))
    plain = model.score(X, counts[bag], bag_of=bag, sample_weight=np.full(len(X), 3.0))
    assert plain == pytest.approx(model.score(X, counts[bag], bag_of=bag))
    assert weighted != pytest.approx(plain)


def test_classifier_passes_on_what_its_model_offers() -> None:
    X, y, bag = table()
    model = LLPClassifier("mean-ridge").fit(X, np.bincount(bag, y)[bag], bag_of=bag)
    assert str(model.report()) == str(model.model_.report())
    pd.testing.assert_frame_equal(model.subgroup_totals(by="job"), model.model_.subgroup_totals(by="job"))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    with pytest.raises(ValueError, match="by is missing"):
        model.subgroup_totals()
