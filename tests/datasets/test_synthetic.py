"""Generated data: the stated model, and nothing but the arguments decides it."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from llpbench import Split, UsageError
from llpbench.data.store import DataStore
from llpbench_datasets.synthetic import SYNTHETIC
from llpbench_datasets.synthetic.load import class_centres, class_shares, load

FILES = DataStore(SYNTHETIC, offline=True)


def auroc(scores: np.ndarray, labels: np.ndarray) -> float:
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(len(scores))
    positives = int(labels.sum())
    return float((ranks[labels == 1].sum() - positives * (positives - 1) / 2) / (positives * (len(labels) - positives)))


def whole(split: Split) -> tuple[np.ndarray, np.ndarray]:
    each = (split.train, split.valid, split.test)
    return np.concatenate([p.X for p in each]), np.concatenate([p.y for p in each])


@pytest.mark.parametrize("separation", [0.0, 1.0, 2.0])
def test_best_score_is_the_stated_one(separation: float) -> None:
    """The best direction is that of the class centres; its AUROC is Phi(separation / sqrt 2)."""
    X, y = whole(load(FILES, seed=3, rows=60_000, dim=7, separation=separation, positive_rate=0.3))
    direction = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    assert_allclose(np.linalg.norm(direction), separation, atol=0.05)
    best = 0.5 * (1 + math.erf(separation / 2))
    assert_allclose(auroc(X @ direction, y), best, atol=0.02)
    assert_allclose(y.mean(), 0.3, atol=0.01)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 8), st.integers(0, 10), st.floats(0, 50), st.integers(0, 2**31))
def test_centres_are_equally_far_apart(classes: int, extra: int, separation: float, seed: int) -> None:
    dim = classes - 1 + extra
    centres = class_centres(np.random.default_rng(seed), classes, dim, separation).astype(np.float64)
    assert centres.shape == (classes, dim)
    assert_allclose(centres.sum(axis=0), 0.0, atol=1e-4)
    gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    assert_allclose(gaps[~np.eye(classes, dtype=bool)], separation, atol=1e-4)


@given(st.integers(2, 20), st.none() | st.floats(0.001, 0.999))
def test_shares(classes: int, rate: float | None) -> None:
    shares = class_shares(classes, rate)
    assert_allclose(shares.sum(), 1.0)
    assert_allclose(shares[1], 1 / classes if rate is None else rate)
    assert (shares > 0).all()


def test_several_classes() -> None:
    split = load(FILES, seed=0, rows=5_000, dim=4, classes=5, separation=4.0)
    X, y = whole(split)
    assert split.classes == 5
    assert set(y) == {0, 1, 2, 3, 4}
    means = np.array([X[y == c].mean(axis=0) for c in range(5)])
    nearest = ((X[:, None] - means[None]) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == y).mean() > 0.9


def test_sizes_types_and_columns() -> None:
    split = load(FILES, seed=0, rows=1_001, dim=3)
    assert (len(split.train), len(split.valid), len(split.test)) == (801, 100, 100)
    assert split.train.X.dtype == np.float32
    assert [column.name for column in split.columns] == ["x0", "x1", "x2"]


def test_data_depend_only_on_the_arguments() -> None:
    options = {"rows": 500, "dim": 5, "classes": 3}
    first, again, other = (whole(load(FILES, seed=seed, **options)) for seed in (4, 4, 5))
    np.random.default_rng().random()
    assert_array_equal(first[0], again[0])
    assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])


def test_too_few_dimensions() -> None:
    with pytest.raises(UsageError, match="5 classes need at least dim=4, not dim=3"):
        load(FILES, seed=0, dim=3, classes=5)


def test_declared_options_are_the_loaders() -> None:
    taken = inspect.signature(load).parameters
    for param in SYNTHETIC.params:
        assert taken[param.name].default == param.default
    assert SYNTHETIC.resolve({"rows": 100.0, "positive_rate": 0.1})["rows"] == 100
    with pytest.raises(UsageError):
        SYNTHETIC.resolve({"positive_rate": 1.5})
