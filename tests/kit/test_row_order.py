"""The test that finds orders of rows which predict labels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from llpbench.kit.row_order import predictive_order, weigh_order


def _noisy(labels: np.ndarray, share: float = 0.2) -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.where(rng.random(len(labels)) < share, rng.integers(labels.max() + 1, size=len(labels)), labels)


_PLACE = np.arange(400)
_RNG = np.random.default_rng(3)
_ORDERS = {
    "sorted": _PLACE // 200,
    "sorted, classes": _PLACE // 100,
    "sorted, rare": (_PLACE < 20).astype(int),
    "alternating": _PLACE % 2,
    "1,1,0,0": (_PLACE % 4 < 2).astype(int),
    "1,1,0,0 with noise": _noisy((_PLACE % 4 < 2).astype(int)),
    "0,1,2": _PLACE % 3,
    "equal blocks": _PLACE // 16 % 2,
    "blocks of random length": np.repeat(_RNG.integers(2, size=400), _RNG.integers(1, 8, size=400))[:400],
    "repeated sequence": np.tile(_RNG.integers(2, size=100), 4),
    "rising rate": (_RNG.random(400) < _PLACE / 400).astype(int),
    "neighbours differ": np.concatenate([_RNG.permutation(3) for _ in range(134)])[:400],
}


@pytest.mark.parametrize("name", _ORDERS)
def test_order_that_predicts_labels_is_found_and_shuffling_removes_it(name: str) -> None:
    labels = _ORDERS[name]
    classes = int(labels.max()) + 1
    assert predictive_order(labels, classes)
    assert not predictive_order(np.random.default_rng(0).permutation(labels), classes)


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.9, 0.1), (0.99, 0.01), (0.2, 0.3, 0.5), (0.1,) * 10])
@pytest.mark.parametrize("rows", [1, 2, 30, 300, 3000])
def test_shuffled_rows_raise_no_alarm(rows: int, rates: tuple[float, ...]) -> None:
    for seed in range(10 if rows < 3000 else 3):
        labels = np.random.default_rng(seed).choice(len(rates), size=rows, p=rates)
        assert not predictive_order(labels, len(rates))


@pytest.mark.parametrize("counts", [(4, 4), (7, 2), (2, 2, 2)])
def test_evidence_has_a_mean_of_at_most_one_over_all_orders(counts: tuple[int, ...]) -> None:
    """This bounds the rate of false alarms; counted exactly."""
    labels = [label for label, count in enumerate(counts) for _ in range(count)]
    orders = set(itertools.permutations(labels)) if len(labels) < 8 else _orders(*counts)
    ratios = [math.exp(weigh_order(np.array(order), len(counts))[0]) for order in orders]
    assert 0.01 < np.mean(ratios) <= 1.0


def _orders(zeros: int, ones: int) -> set[tuple[int, ...]]:
    places = range(zeros + ones)
    return {tuple(int(i in chosen) for i in places) for chosen in itertools.combinations(places, ones)}
