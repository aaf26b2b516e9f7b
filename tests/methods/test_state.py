"""Saved models predict the same bits: several classes, and the learners of bp-count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import llpbench
from llpbench.contracts.protocols import QuietMonitor
from llpbench.kit.problem import Problem
from llpbench.plugins.registry import load_registry
from llpbench_methods.bp_count.learners import make_learner
from llpbench_methods.bp_count.state import _learner, _learner_state
from llpbench_methods.bp_count.trees import TreeFields

REGISTRY = load_registry()
COLUMNS = (
    llpbench.Column("n", "numeric"),
    llpbench.Column("c", "category", 4),
    llpbench.Column("m", "numeric"),
)


@pytest.mark.parametrize("name", ["dllp", "mean-ridge", "best-feature"])
def test_state_of_several_classes_round_trips(name: str) -> None:
    spec, problem = REGISTRY.methods[name], Problem(rows=48, sizes=6, classes=3)
    params = spec.resolve({"epochs": 1} if name == "dllp" else {})
    fitted = spec.load()(**params).fit(problem.train, monitor=QuietMonitor(), seed=1)
    restored = spec.load()(**params).restore(fitted.state())
    wanted = fitted.predict_scores(problem.test_rows)
    assert wanted.shape == (len(problem.test_rows), 3)
    assert np.array_equal(restored.predict_scores(problem.test_rows), wanted)


def table(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"n": rng.normal(size=n), "c": rng.choice(list("wxyz"), n), "m": rng.normal(size=n)})
    y = rng.random(n) < 1 / (1 + np.exp(-4 * np.abs(frame["n"]) + 3 - 2 * frame["c"].isin(["w", "z"])))
    return frame, y.astype(int)


@pytest.mark.slow
def test_bp_count_with_trees_is_saved_and_loaded(tmp_path: Path) -> None:
    frame, y = table(1600, 0)
    bag = np.arange(1600) // 4
    counts = np.bincount(bag, y)
    model = llpbench.fit(frame, bag, counts, method="bp-count", params={"rounds": 0, "draws": 2})
    encoder = model._header.encoder
    learner = make_learner("trees", encoder.transform(frame), encoder.described(), trees=20, epochs=1)
    learnt = learner.fit(np.arange(1600), y.to_numpy(float)[:, None], 0)  # whether a round is accepted is chance
    model.method_.model_ = replace(model.method_.model_, mix=0.5, learner=learnt)
    assert model.method_.state()["learner"] == "trees"
    again = llpbench.load(model.save(tmp_path / "model"))
    other, _ = table(700, 1)
    other.loc[::5, "c"] = "new"
    assert np.array_equal(again.predict_proba(other), model.predict_proba(other))
    assert again.save(tmp_path / "twice").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("classes", [1, 3])
@pytest.mark.parametrize("columns", [COLUMNS, ()], ids=["table", "features"])
def test_saved_trees_predict_the_same_bits(classes: int, columns: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(0)

    def rows(n: int) -> np.ndarray:
        block = np.eye(5)[rng.integers(0, 5, n)][:, :4]  # the fifth level has no column
        return np.column_stack([rng.normal(size=n), block, rng.integers(-3, 4, n)]).astype(np.float32)

    X = rows(900)
    signal = np.abs(X[:, 0]) + X[:, 2] - 0.3 * X[:, 5]
    if classes == 1:
        targets = 1 / (1 + np.exp(-signal))[:, None]
    else:
        targets = np.exp(np.outer(signal, [-1, 0, 1]))
        targets /= targets.sum(axis=1, keepdims=True)
    learnt = make_learner("trees", X, columns, trees=15, epochs=1).fit(np.arange(900), targets, 0)
    assert isinstance(learnt, TreeFields)
    restored = _learner(_learner_state(learnt))
    for shown in (X, rows(500), 100 * rows(50)):
        assert np.array_equal(learnt(shown), restored(shown))


@pytest.mark.parametrize("kind", ["network", "constant"])
def test_network_and_constant_learners_round_trip(kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
    targets = np.ones((80, 1)) if kind == "constant" else (X[:, :1] > 0).astype(float)
    learner = make_learner("trees" if kind == "constant" else kind, X, (), trees=2, epochs=1)
    learnt = learner.fit(np.arange(80), targets, 0)
    state = _learner_state(learnt)
    assert state["learner"] == kind
    restored = _learner(state)
    assert restored is not None
    assert np.array_equal(learnt(X), restored(X))


def fitted_trees() -> TreeFields:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), np.eye(4)[rng.integers(0, 4, 300)], rng.normal(size=300)])
    learner = make_learner("trees", X.astype(np.float32), COLUMNS, trees=3, epochs=1)
    learnt = learner.fit(np.arange(300), (X[:, :1] > 0).astype(float), 0)
    assert isinstance(learnt, TreeFields)
    return learnt


def test_restore_rejects_damaged_trees() -> None:
    state = dict(_learner_state(fitted_trees()))
    state["trees.model"] = np.asarray(state["trees.model"])[:-100]
    with pytest.raises(ValueError, match="trees cannot be read"):
        _learner(state)


def test_restore_rejects_other_models_and_untrusted_types() -> None:
    import skops.io
    from sklearn.linear_model import LinearRegression

    state = dict(_learner_state(fitted_trees()))
    for value, message in ((LinearRegression(), "got LinearRegression"), (Path, "cannot be read.*[Uu]ntrusted")):
        state["trees.model"] = np.frombuffer(skops.io.dumps(value), np.uint8)
        with pytest.raises(ValueError, match=message):
            _learner(state)


def test_save_rejects_trees_of_unknown_types() -> None:
    learnt = fitted_trees()
    learnt.model.extra = Path
    with pytest.raises(llpbench.MethodError, match=r"does not know how to save: pathlib\.Path"):
        _learner_state(learnt)
