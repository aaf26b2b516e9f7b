"""The bag card against brute force over pairs of rows, and at its fixed points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers import make_cell, make_plan, make_result, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench.contracts.bag_card import BagCard
from llpbench.experiment.bag_card import make_card, separation
from llpbench.experiment.schemes import feature_bags, mixture_bags
from llpbench.report.cards import card_lines, card_words
from llpbench.results.sealing import decode_result, encode_result
from llpbench.results.table import group_cells


def by_brute_force(X: np.ndarray, offsets: np.ndarray) -> float:
    """Mean squared distances over all pairs of rows, of one bag and of two."""
    sd = X.std(axis=0)
    Z = X[:, sd > 0] / sd[sd > 0]
    bags = [Z[a:b] for a, b in itertools.pairwise(offsets)]
    inside = [
        np.mean([((x - y) ** 2).sum() for x, y in itertools.combinations(bag, 2)]) for bag in bags if len(bag) > 1
    ]
    between = [np.mean([((x - y) ** 2).sum() for x in a for y in b]) for a, b in itertools.combinations(bags, 2)]
    return float(np.sqrt(np.mean(between) / np.mean(inside)))


@quick
@given(sizes=st.lists(st.integers(1, 6), min_size=2, max_size=6), classes=st.integers(2, 4), seed=st.integers(0, 99))
def test_card_matches_its_definition(sizes: list[int], classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = np.hstack([rng.normal(size=(sum(sizes), 2)) * [1, 1000] + [0, 5000], np.ones((sum(sizes), 1))])
    labels = rng.integers(0, classes, sum(sizes))
    card = make_card(X.astype(np.float64), offsets, labels, classes=classes, left_out=0.25)
    assert (card.bags, card.rows, card.left_out) == (len(sizes), sum(sizes), 0.25)
    assert card.sizes == tuple(np.percentile(sizes, (0, 10, 50, 90, 100)))
    shares = np.array([[np.mean(labels[a:b] == c) for c in range(classes)] for a, b in itertools.pairwise(offsets)])
    shown = shares[:, 1:] if classes == 2 else shares
    assert card.proportion_sd == pytest.approx(np.sqrt(shown.var(axis=0, ddof=1).mean()))
    if max(sizes) == 1:
        assert card.separation is None
    else:
        assert card.separation == pytest.approx(by_brute_force(X, offsets), rel=1e-6)
    there = np.unique(labels)
    if len(there) == 1:
        assert card.spread is None
    else:
        p = [np.mean(labels == c) for c in there]
        chi = sum(size * (shares[b, c] - p[i]) ** 2 / p[i] for b, size in enumerate(sizes) for i, c in enumerate(there))
        assert card.spread == pytest.approx(np.sqrt(chi / ((len(sizes) - 1) * (len(there) - 1))))


@pytest.mark.parametrize("classes", [2, 5])
def test_random_bags_have_ratios_of_one_whatever_their_sizes(classes: int) -> None:
    spreads, separations = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, 60, 100)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        X = rng.gamma(1.0, size=(offsets[-1], 4)).astype(np.float32)
        labels = (rng.random(offsets[-1]) ** 2 * classes).astype(int)
        card = make_card(X, offsets, labels, classes=classes)
        spreads.append(card.spread or 0.0)
        separations.append(card.separation or 0.0)
    assert np.mean(np.square(spreads)) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 99 / 20))
    assert np.mean(separations) == pytest.approx(1.0, abs=0.01)


def test_card_distinguishes_homogeneous_bags() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2)).astype(np.float32)
    labels = (X[:, 0] + rng.normal(size=2000) > 0).astype(int)
    sorted_of = feature_bags(X, 50, columns=(), rng=rng, clusters=10)
    by_label = mixture_bags(labels, 50, 2.0, rng)
    for bag_of, apart, wide in ((sorted_of, 1.2, 1.5), (by_label, 1.0, 3.0)):
        order = np.argsort(bag_of, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(bag_of))])
        card = make_card(X[order], offsets, labels[order])
        assert (card.separation or 0) > apart
        assert (card.spread or 0) > wide


def test_separation_is_independent_of_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, offsets = rng.normal(size=(100, 3)), np.array([0, 1, 40, 99, 100])
    whole = separation(X, offsets)
    monkeypatch.setattr("llpbench.experiment.bag_card._ROWS_AT_ONCE", 7)
    assert separation(X, offsets) == pytest.approx(whole)
    images = make_card(X.reshape(100, 3, 1), offsets, np.zeros(100, int))
    assert images.separation == pytest.approx(whole)
    assert images.spread is None  # one class


CARD = BagCard(365, 54_000, 0.1, (50.0, 80.0, 120.0, 190.0, 210.0), 0.164, 3.83, 1.21)


def test_card_in_words() -> None:
    assert card_words(CARD) == (
        "365 bags of 50-210 (median 120) rows; proportions sd 0.164, 3.83 x random; features apart 1.21 x random; "
        "10.0 % of rows in no bag"
    )
    plain = BagCard(4, 32, 0.0, (8.0,) * 5, 0.1, None, None, uses_labels=True)
    assert card_words(plain) == "4 bags of 8 rows; proportions sd 0.100; formed with labels"


def test_cards_are_kept_in_results_and_shown_once_for_each_setting() -> None:
    cells = [make_cell(method=m, seed=s, noise=n) for m in ("a", "b") for s in (0, 1) for n in ("none", "high")]
    results = [make_result(cell, card=CARD) for cell in cells]
    assert decode_result(encode_result(results[0])).card == CARD
    assert decode_result(encode_result(make_result())).card is None  # results of before have none
    groups = group_cells([make_plan(cell) for cell in cells], results)
    assert card_lines(groups) == [f"toy, bag 8: {card_words(CARD)}"]
