"""Statistics against brute force, and intervals against the share of times they hold the truth."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llpbench.board.maths.bootstrap import auroc_replicates, resamples, weighted_auroc
from llpbench.board.maths.statistics import (
    MeanDifference,
    difference_interval,
    pareto_front,
    standings,
    student_quantile,
    variance_of_difference,
)
from llpbench.experiment.metrics import auroc

# -- AUROC of resampled rows -------------------------------------------------------------------------------------------


def brute_auroc(positive: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> float:
    """Every pair of a positive and a negative, counted by its weight."""
    won = total = 0.0
    for i, j in itertools.product(np.flatnonzero(positive), np.flatnonzero(~positive)):
        pair = weights[i] * weights[j]
        total += pair
        won += pair * (1.0 if scores[i] > scores[j] else 0.5 if scores[i] == scores[j] else 0.0)
    return won / total if total else math.nan


@quick
@given(
    data=hnp.arrays(np.int8, st.tuples(st.integers(2, 12), st.just(2)), elements=st.integers(0, 3)),
    seed=st.integers(0, 2**20),
)
def test_weighted_auroc_counts_pairs(data: np.ndarray, seed: int) -> None:
    positive, scores = data[:, 0] > 1, data[:, 1].astype(float)
    weights = np.random.default_rng(seed).integers(0, 4, (3, len(data)))
    found = weighted_auroc(positive, scores, weights)
    expected = [brute_auroc(positive, scores, w) for w in weights]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_equal_weights_give_the_metric_itself() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 200), rng.normal(size=200).round(1)
    assert weighted_auroc(labels == 1, scores, np.ones((1, 200)))[0] == pytest.approx(auroc(labels, scores), abs=1e-12)


def test_replicates_equal_the_metric_on_resampled_rows() -> None:
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 60), rng.normal(size=60).round(1)
    found = auroc_replicates(labels, scores, seed=9, replicates=5)
    for value, weights in zip(found, resamples(60, 9, 5), strict=True):
        rows = np.repeat(np.arange(60), weights.astype(int))
        assert value == pytest.approx(auroc(labels[rows], scores[rows]), abs=1e-12)


def test_several_classes_are_averaged() -> None:
    rng = np.random.default_rng(2)
    labels, scores = rng.integers(0, 3, 90), rng.normal(size=(90, 3))
    found = auroc_replicates(labels, scores, seed=3, replicates=4)
    for value, weights in zip(found, resamples(90, 3, 4), strict=True):
        rows = np.repeat(np.arange(90), weights.astype(int))
        assert value == pytest.approx(auroc(labels[rows], scores[rows]), abs=1e-12)


def test_replicates_do_not_depend_on_the_chunk_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    labels, scores = rng.integers(0, 2, 50), rng.normal(size=50)
    whole = auroc_replicates(labels, scores, seed=5, replicates=13)
    monkeypatch.setattr("llpbench.board.maths.bootstrap._CHUNK", 200)  # four replicates at a time
    np.testing.assert_array_equal(whole, auroc_replicates(labels, scores, seed=5, replicates=13))


def test_resamples_draw_as_many_rows_as_there_are() -> None:
    drawn = list(resamples(40, 11, 20))
    assert len(drawn) == 20
    assert all(weights.sum() == 40 for weights in drawn)
    assert len({weights.tobytes() for weights in drawn}) == 20


def test_resamples_are_stable() -> None:
    # Replicates published years apart are paired: these numbers must never change.
    first = next(iter(resamples(12, 1635730924, 1)))
    assert first.astype(int).tolist() == [0, 2, 1, 0, 1, 0, 0, 2, 1, 4, 1, 0]


def test_bootstrap_variance_is_that_of_the_difference() -> None:
    """The variance over resamples is close to the variance over fresh samples, and pairing makes it small."""
    rng = np.random.default_rng(6)

    def sample(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels = rng.integers(0, 2, n)
        common = labels + rng.normal(size=n)
        return labels, common + 0.3 * rng.normal(size=n), common + 0.5 * rng.normal(size=n)

    fresh = []
    for _ in range(400):
        labels, a, b = sample()
        fresh.append(auroc(labels, a) - auroc(labels, b))
    estimates, unpaired = [], []
    for _ in range(12):
        labels, a, b = sample()
        ours, theirs = auroc_replicates(labels, a, 7), auroc_replicates(labels, b, 7)
        estimates.append(variance_of_difference(ours, theirs))
        unpaired.append(variance_of_difference(ours, auroc_replicates(labels, b, 8)))
    assert np.mean(estimates) == pytest.approx(np.var(fresh), rel=0.3)
    assert np.mean(unpaired) > 2 * np.mean(estimates)


def test_resamples_without_a_class_are_left_out() -> None:
    a, b = np.array([0.5, np.nan, 0.7, 0.6]), np.array([0.4, 0.4, 0.4, np.nan])
    assert variance_of_difference(a, b) == pytest.approx(np.var([0.1, 0.3], ddof=1))
    assert math.isnan(variance_of_difference(a[:2], b[:2]))


# -- intervals ---------------------------------------------------------------------------------------------------------


def test_students_quantile() -> None:
    assert student_quantile(2) == pytest.approx(4.302653, abs=1e-6)
    assert student_quantile(9) == pytest.approx(2.262157, abs=1e-6)


def test_interval_matches_a_manual_computation() -> None:
    interval = difference_interval([1.0, 2.0, 3.0])
    half = 4.302653 * 1.0 / math.sqrt(3)
    assert (interval.mean, interval.seeds) == (2.0, 3)
    assert interval.low == pytest.approx(2 - half, abs=1e-5)
    assert interval.high == pytest.approx(2 + half, abs=1e-5)
    assert interval.separated is False
    assert interval.rows_only is None


def test_variance_of_test_rows_is_a_lower_limit() -> None:
    lucky = difference_interval([1.0, 1.001, 0.999])
    honest = difference_interval([1.0, 1.001, 0.999], [0.5, 0.5, 0.5])
    assert lucky.separated is True
    assert honest.separated is False
    assert honest.high == pytest.approx(1 + 4.302653 * math.sqrt(0.5 / 3), abs=1e-5)


def test_one_seed_has_no_interval() -> None:
    interval = difference_interval([3.0], [0.25])
    assert (interval.low, interval.high, interval.separated) == (None, None, None)
    assert interval.rows_only == pytest.approx((3 - 1.96 * 0.5, 3 + 1.96 * 0.5), abs=1e-3)
    with pytest.raises(ValueError, match="no differences"):
        difference_interval([])


@quick
@given(st.lists(st.floats(-50, 50), min_size=2, max_size=6), st.floats(0, 10))
def test_interval_is_antisymmetric(differences: list[float], variance: float) -> None:
    there = difference_interval(differences, [variance] * len(differences))
    back = difference_interval([-d for d in differences], [variance] * len(differences))
    assert there.low is not None
    assert back.high == pytest.approx(-there.low, abs=1e-9)
    assert there.separated == back.separated


def test_separated_intervals_exclude_zero() -> None:
    assert MeanDifference(1.0, 0.1, 2.0, 3).separated is True
    assert MeanDifference(-1.0, -2.0, -0.1, 3).separated is True
    assert MeanDifference(1.0, -0.1, 2.0, 3).separated is False
    assert MeanDifference(1.0, 0.0, 2.0, 3).separated is False


def covered(seed_sd: float, row_sd: float, seeds: int, with_rows: bool, rng: np.random.Generator) -> float:
    """How often the interval holds the true difference (0.4) when seeds and rows both move it."""
    hits = 0
    trials = 3000
    for _ in range(trials):
        d = 0.4 + seed_sd * rng.normal(size=seeds) + row_sd * rng.normal(size=seeds)
        interval = difference_interval(d.tolist(), [row_sd**2] * seeds if with_rows else [])
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= 0.4 <= interval.high
    return hits / trials


@pytest.mark.parametrize(("seed_sd", "row_sd"), [(1.0, 0.0), (0.5, 0.5), (0.1, 1.0)])
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_intervals_have_nominal_coverage(seed_sd: float, row_sd: float, seeds: int) -> None:
    rng = np.random.default_rng(8)
    three_errors = 3 * math.sqrt(0.95 * 0.05 / 3000)
    alone = covered(seed_sd, row_sd, seeds, False, rng)
    assert abs(alone - 0.95) < three_errors
    assert covered(seed_sd, row_sd, seeds, True, rng) >= 0.95 - three_errors


# -- ranks and fronts --------------------------------------------------------------------------------------------------

tables = st.dictionaries(
    st.sampled_from("abcd"),
    st.dictionaries(st.integers(0, 4), st.integers(0, 3).map(float), max_size=5),
    min_size=1,
)


@quick
@given(tables, st.booleans())
def test_standings_by_brute_force(scores: dict[str, dict[int, float]], higher: bool) -> None:
    found = standings(scores, higher)
    common = set.intersection(*(set(cells) for cells in scores.values()))
    if not common:
        assert found == {}
        return
    sign = 1 if higher else -1
    for method in scores:
        ranks, wins, duels = [], 0.0, 0
        for cell in common:
            mine = sign * scores[method][cell]
            others = [sign * scores[m][cell] for m in scores if m != method]
            ranks.append(1 + sum(o > mine for o in others) + sum(o == mine for o in others) / 2)
            wins += sum(mine > o for o in others) + sum(mine == o for o in others) / 2
            duels += len(others)
        assert found[method].cells == len(common)
        assert found[method].mean_rank == pytest.approx(np.mean(ranks))
        assert found[method].win_rate == pytest.approx(wins / duels if duels else 1.0)
    assert sum(s.mean_rank for s in found.values()) == pytest.approx(len(scores) * (len(scores) + 1) / 2)


def test_standings_depend_on_the_compared_methods() -> None:
    scores = {"a": {1: 3.0, 2: 1.0}, "b": {1: 2.0, 2: 2.0}, "c": {1: 1.0}}
    assert standings(scores)["a"].mean_rank == 1.0  # cell 1 is all that c has
    without = standings({m: scores[m] for m in "ab"})
    assert (without["a"].mean_rank, without["a"].cells) == (1.5, 2)
    assert standings({}) == {}


@quick
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1),
    st.booleans(),
)
def test_pareto_front_by_brute_force(points: dict[str, tuple[int, int]], higher: bool) -> None:
    def beaten(name: str) -> bool:
        value, cost = points[name]
        return any(
            ((v >= value) if higher else (v <= value)) and c <= cost and (v, c) != (value, cost)
            for v, c in points.values()
        )

    floats = {name: (float(v), float(c)) for name, (v, c) in points.items()}
    front = pareto_front(floats, higher)
    assert sorted(front) == sorted(name for name in points if not beaten(name))
    assert [points[name][1] for name in front] == sorted(points[name][1] for name in front)


# -- all of it together ------------------------------------------------------------------------------------------------


def test_intervals_of_aurocs_have_nominal_coverage() -> None:
    """Two scorers whose quality varies from seed to seed, judged on fresh rows: the interval holds what is true."""
    rng = np.random.default_rng(12)

    def quality(base: float) -> float:
        return base + 0.15 * rng.normal()

    def scores(labels: np.ndarray, common: np.ndarray, slope: float) -> np.ndarray:
        return slope * labels + common + 0.5 * rng.normal(size=len(labels))

    def one(rows: int, replicates: int) -> tuple[float, float]:
        labels, common = rng.integers(0, 2, rows), rng.normal(size=rows)
        a, b = scores(labels, common, quality(1.2)), scores(labels, common, quality(1.0))
        seed = int(rng.integers(2**31))
        pair = [auroc_replicates(labels, s, seed, replicates) for s in (a, b)] if replicates else []
        return auroc(labels, a) - auroc(labels, b), variance_of_difference(*pair) if pair else math.nan

    truth = np.mean([one(2000, 0)[0] for _ in range(400)])
    held = 0
    for _ in range(150):
        seeds = [one(250, 16) for _ in range(3)]
        interval = difference_interval([d for d, _ in seeds], [v for _, v in seeds])
        assert interval.low is not None
        assert interval.high is not None
        held += interval.low <= truth <= interval.high
    assert held / 150 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 150)
