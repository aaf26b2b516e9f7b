"""Standings over all datasets: every formula against brute force or scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon

from llpbench.board.maths import overall
from llpbench.board.maths.overall import CellKey
from llpbench.board.maths.statistics import row_ranks

numbers = st.integers(-4, 4).map(float)


def table_of(values: dict[str, list[float | None]], columns: int = 1, sources: int = 1) -> overall.Table:
    """Methods with a number for each (source, column, seed), seeds innermost."""
    size = len(next(iter(values.values())))
    seeds = size // (columns * sources)
    keys = [CellKey(f"d{d}", c, s) for d in range(sources) for c in range(columns) for s in range(seeds)]
    return {m: dict(zip(keys, row, strict=True)) for m, row in values.items()}


# -- who is ranked, on what --------------------------------------------------------------------------------------------


def test_missing_cells_exclude_a_method_and_failures_rank_last() -> None:
    table = dict(table_of({"a": [3.0, 1.0], "b": [2.0, None], "c": [1.0, 2.0], "d": [0.0, 3.0]}))
    table["late"] = {CellKey("d0", 0, 0): 9.0}
    grid = overall.ranked_grid(table)
    assert grid.methods == ("a", "b", "c", "d")
    assert grid.values.tolist() == [[3.0, 2.0, 1.0, 0.0], [1.0, 1.0, 2.0, 3.0]]
    assert row_ranks(grid.values).tolist() == [[1.0, 2.0, 3.0, 4.0], [3.5, 3.5, 2.0, 1.0]]


def test_rare_cells_are_ignored_and_one_method_is_not_ranked() -> None:
    table = {m: {CellKey("d", "c", 0): 1.0} for m in "abc"}
    table["a"][CellKey("d", "rare", 0)] = 5.0
    assert overall.ranked_grid(table).keys == (CellKey("d", "c", 0),)
    assert overall.ranked_grid({"a": {CellKey("d", "c", 0): 1.0}}).keys == ()
    assert overall.ranked_grid({}).keys == ()


@settings(deadline=None)
@given(st.lists(st.lists(numbers, min_size=3, max_size=3), min_size=1, max_size=5))
def test_ranks_are_those_of_scipy(rows: list[list[float]]) -> None:
    values = np.array(rows)
    assert row_ranks(values) == pytest.approx(rankdata(-values, axis=1))


# -- weights and intervals ---------------------------------------------------------------------------------------------

KEYS = [
    *(CellKey("big", column, seed) for column in ("x", "y", "z") for seed in range(3)),
    *(CellKey("small", "only", seed) for seed in (0, 1, 2)),
]


def test_sources_columns_and_seeds_have_equal_weight() -> None:
    weights = overall.even_weights(KEYS)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[:9] == pytest.approx(np.full(9, 1 / 18))
    assert weights[9:] == pytest.approx(np.full(3, 1 / 6))


def test_resampled_weights_sum_to_one_and_average_to_even_weights() -> None:
    weights = overall.resampled_weights(KEYS, replicates=4000)
    assert weights.sum(axis=1) == pytest.approx(np.ones(4000))
    assert weights.mean(axis=0) == pytest.approx(overall.even_weights(KEYS), abs=0.01)
    # All columns of a source are drawn at the same seeds: their splits are the same.
    assert (weights[:, 0:3] == weights[:, 3:6]).all()
    # A source that was not drawn has no weight, one drawn twice has all.
    assert {round(float(w), 9) for w in weights[:, 9:].sum(axis=1)} == {0.0, 0.5, 1.0}
    assert (weights == overall.resampled_weights(KEYS, replicates=4000)).all()  # the same on every machine


def test_the_interval_of_one_source_is_the_bootstrap_over_its_seeds() -> None:
    """All draws of three seeds, each as likely: the ends are those of the exact distribution."""
    keys = [CellKey("d", "c", seed) for seed in range(3)]
    values = np.array([[1.0], [2.0], [6.0]])
    exact = sorted(sum(draw) / 3 for draw in itertools.product(values[:, 0], repeat=3))
    low, high = overall.percentile_interval(overall.resampled_weights(keys, replicates=20_000) @ values, level=0.2)
    assert low[0] == pytest.approx(exact[math.floor(0.1 * len(exact))], abs=0.34)
    assert high[0] == pytest.approx(exact[len(exact) - 1 - math.floor(0.1 * len(exact))], abs=0.34)


# -- wins and tests ----------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.dictionaries(st.integers(0, 5), st.none() | numbers), st.dictionaries(st.integers(0, 5), st.none() | numbers))
def test_win_shares_of_a_pair_sum_to_one(a: dict[int, float | None], b: dict[int, float | None]) -> None:
    ours, theirs = ({CellKey("d", "c", s): v for s, v in row.items()} for row in (a, b))
    """Cells of one column weigh alike."""
    (won, n), (lost, again) = overall.win_share(ours, theirs), overall.win_share(theirs, ours)
    least = -math.inf  # a failure loses against any number
    pairs = [(least if x is None else x, least if b[s] is None else b[s]) for s, x in a.items() if s in b]
    assert n == again == len(pairs)
    if not pairs:
        assert won is None
        return
    assert won is not None
    assert lost == pytest.approx(1 - won)
    assert won == pytest.approx(sum((x > y) + (x == y) / 2 for x, y in pairs if y is not None) / len(pairs))


@settings(deadline=None)
@given(st.lists(numbers, max_size=8))
def test_small_signed_rank_tests_count_every_choice_of_signs(differences: list[float]) -> None:
    known = [d for d in differences if d]
    if not known:
        assert overall.signed_rank_p(differences) == 1.0
        return
    ranks = rankdata(np.abs(known))
    middle = ranks.sum() / 2
    far = abs(sum(r for r, d in zip(ranks, known, strict=True) if d > 0) - middle)
    outcomes = [
        abs(sum(r for r, up in zip(ranks, signs, strict=True) if up) - middle)
        for signs in itertools.product((0, 1), repeat=len(known))
    ]
    brute = sum(outcome >= far - 1e-9 for outcome in outcomes) / len(outcomes)
    assert overall.signed_rank_p(differences) == pytest.approx(brute)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([12, 20, 60]))
def test_signed_rank_p_values_are_those_of_scipy(seed: int, size: int) -> None:
    differences = np.random.default_rng(seed).normal(0.3, 1.0, size)
    method = "exact" if size <= 25 else "asymptotic"
    wanted = wilcoxon(differences, method=method, correction=False).pvalue
    assert overall.signed_rank_p(differences) == pytest.approx(wanted, rel=1e-6)


def test_pairwise_p_values_are_corrected_and_form_cliques() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(size=(30, 1))
    means = np.hstack([base + 5, base + 5 + 0.01 * rng.normal(size=(30, 1)), base])
    p = overall.pairwise_p(means)
    assert (p == p.T).all()
    assert (p <= 0.05).tolist() == [[False, False, True], [False, False, True], [True, True, False]]
    assert overall.cliques([0, 1, 2], p <= 0.05) == [(0, 1)]
    alone = overall.signed_rank_p(means[:, 0] - means[:, 2])
    assert p[0, 2] == pytest.approx(3 * alone)  # the smallest of three p-values, times three


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(2, 6))
def test_the_least_p_value_is_reached_when_every_source_agrees(sources: int, methods: int) -> None:
    means = np.array([[(1 + source) * 1.7**m for m in range(methods)] for source in range(sources)])
    assert overall.pairwise_p(means).min() == pytest.approx(overall.least_p(sources, methods))


def test_source_means_weight_columns_and_seeds_equally() -> None:
    values = np.arange(24.0).reshape(12, 2)
    grid = overall.Grid(("a", "b"), tuple(KEYS), values, np.zeros((12, 2), dtype=bool))
    big = np.mean([values[3 * c : 3 * c + 3].mean(axis=0) for c in range(3)], axis=0)
    assert overall.source_means(grid) == pytest.approx(np.array([big, values[9:].mean(axis=0)]))


def test_win_share_weights_sources_and_columns_equally() -> None:
    ours = {CellKey("d", column, seed): 1.0 for column in "abcd" for seed in range(3)} | {CellKey("e", "a", 0): 0.0}
    assert overall.win_share(ours, dict.fromkeys(ours, 0.5)) == (pytest.approx(0.5), 13)


@settings(deadline=None)
@given(st.integers(1, 6), st.data())
def test_bars_are_the_longest_runs_without_a_difference(size: int, data: st.DataObject) -> None:
    apart = np.zeros((size, size), dtype=bool)
    for a, b in itertools.combinations(range(size), 2):
        apart[a, b] = apart[b, a] = data.draw(st.booleans())
    order = data.draw(st.permutations(range(size)))

    def alike(start: int, end: int) -> bool:
        return not any(apart[order[i], order[j]] for i, j in itertools.combinations(range(start, end + 1), 2))

    runs = [(s, e) for s in range(size) for e in range(s + 1, size) if alike(s, e)]
    longest = [r for r in runs if not any(o != r and o[0] <= r[0] and r[1] <= o[1] for o in runs)]
    assert overall.cliques(order, apart) == longest


def test_a_scaled_number_is_zero_at_the_control_and_one_at_the_bound() -> None:
    assert overall.between(0.6, 0.6, 0.9) == 0.0
    assert overall.between(0.9, 0.6, 0.9) == 1.0
    assert overall.between(0.5, 0.6, 0.8) == pytest.approx(-0.5)
    assert overall.between(0.7, 0.8, 0.8) is None
    assert overall.even_mean({("a", 1): 1.0, ("a", 2): 3.0, ("b", 1): 6.0}) == 4.0
    assert overall.even_mean({}) is None
