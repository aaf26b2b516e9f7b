"""llp-mm: laws of a few rows against enumeration of all sets of rows, on every backend."""

from __future__ import annotations

import itertools
from math import comb

import numpy as np
import pytest
from backends import close, each_backend, figures
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench_methods.llp_mm import LLP_MM, authors
from llpbench_methods.llp_mm.method import views_for
from llpbench_methods.llp_mm.terms import Terms

KNOWN = (0.7709698346, 1.2088526716, 1.5305690287, 1.7650642809)


def law_of_rows(p: np.ndarray, terms: Terms) -> np.ndarray:
    """Law of the composition of exactly these rows, (terms,); p is (rows, classes)."""
    law = np.zeros(len(terms.exponents))
    for labels in itertools.product(range(terms.classes), repeat=len(p)):
        composition = np.bincount(labels, minlength=terms.classes) if labels else np.zeros(terms.classes)
        chance = np.prod([p[i, label] for i, label in enumerate(labels)])
        law[np.flatnonzero((terms.exponents == composition).all(axis=1))] += chance
    return law


def brute_loss(p: np.ndarray, labels: np.ndarray, terms: Terms, order: int, smoothing: float) -> float:
    """The loss of one order of one bag: both laws as means over all sets of rows, none by a formula."""
    sets = [list(s) for s in itertools.combinations(range(len(p)), order)]
    predicted = np.mean([law_of_rows(p[s], terms) for s in sets], axis=0)
    known = np.mean([law_of_rows(np.eye(terms.classes)[labels[s]], terms) for s in sets], axis=0)
    here = terms.degrees == order
    mixed = (1 - smoothing) * predicted[here] + smoothing / here.sum()
    return -float(known[here] @ np.log(mixed))


def labels_of(counts: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(counts)), counts)


@pytest.mark.slow
@each_backend
def test_known_values_however_a_bag_is_cut(backend):
    got = figures(backend)["losses.llp_mm"]
    close(got["known"], KNOWN)
    for value, gradient in got["cuts"].values():
        close(value, sum(KNOWN))
        close(gradient, got["cuts"]["whole"][1])


@pytest.mark.slow
@each_backend
def test_several_classes_are_those_of_all_sets_of_rows(backend):
    got = figures(backend)["losses.llp_mm"]
    z, offsets = np.array(got["z3"]), np.cumsum([0, *got["sizes3"]])
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    wanted, against_rest = np.zeros(4), np.zeros(4)
    for b, counts in enumerate(got["counts3"]):
        rows, size = p[offsets[b] : offsets[b + 1]], got["sizes3"][b]
        labels = labels_of(counts)
        for order in range(1, min(3, size) + 1):
            wanted[b] += brute_loss(rows, labels, Terms(3, 3), order, 1e-4)
        for c in range(3) if size >= 4 else ():
            this = np.column_stack([1 - rows[:, c], rows[:, c]])
            against_rest[b] += brute_loss(this, (labels == c).astype(int), Terms(2, 4), 4, 1e-4)
    close(got["three_losses"], wanted, 1e-5)  # the last bag is padding: its loss is 0
    close(got["rest_losses"], against_rest, 1e-5)


@pytest.mark.slow
@each_backend
def test_uneven_bags_in_several_groups(backend):
    got = figures(backend)["losses.llp_mm"]
    p1 = 1 / (1 + np.exp(-np.array(got["z"])))
    p, offsets = np.column_stack([1 - p1, p1]), np.cumsum([0, *got["sizes"]])
    wanted = np.zeros(4)
    terms = Terms(2, 8)
    for b, counts in enumerate(got["counts"]):
        rows, size = p[offsets[b] : offsets[b + 1]], got["sizes"][b]
        sums = {0: np.ones(1)}  # sums[r][k]: sum over sets of r rows of P(k of them are positive)
        for q, r1 in rows:
            grown = {r: np.pad(s, (0, 1)) * q + np.pad(s, (1, 0)) * r1 for r, s in sums.items()}
            sums = {r: sums.get(r, 0.0) + grown.get(r - 1, 0.0) for r in range(len(sums) + 1)}
        for order in range(1, min(8, size) + 1):
            mixed = (1 - 1e-4) * sums[order] / comb(size, order) + 1e-4 / (order + 1)
            known = terms.targets(np.array(counts))[terms.degrees == order][::-1]  # by positives: the second class
            wanted[b] -= known @ np.log(mixed)
    close(got["two_losses"], wanted, 1e-5)
    close(got["two"][0], wanted.sum(), 1e-5)


@pytest.mark.slow
@each_backend
def test_certain_rows_stay_finite(backend):
    value, gradient = figures(backend)["losses.llp_mm"]["extreme"]
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@quick
@given(st.lists(st.integers(0, 4), min_size=2, max_size=3).filter(any), st.integers(1, 4))
def test_targets_are_the_means_over_all_sets_of_rows(counts, orders):
    terms, labels = Terms(len(counts), orders), labels_of(counts)
    law = terms.targets(np.array(counts))
    for order in range(1, orders + 1):
        sets = list(itertools.combinations(range(len(labels)), order))
        one_hot = np.eye(len(counts))[labels]
        here = terms.degrees == order
        wanted = np.mean([law_of_rows(one_hot[list(s)], terms) for s in sets], axis=0) if sets else np.zeros(len(law))
        np.testing.assert_allclose(law[here], wanted[here], atol=1e-12)


@quick
@given(st.integers(2, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_tables_multiply_polynomials(classes, orders, seed):
    terms, rng = Terms(classes, orders), np.random.default_rng(seed)
    a, b = rng.random((2, len(terms.exponents)))
    left, right, total = terms.products
    product = ((a @ left) * (b @ right)) @ total
    wanted = np.zeros_like(product)
    place = {tuple(k): i for i, k in enumerate(terms.exponents)}
    for (i, j), (k, m) in itertools.product(enumerate(terms.exponents), repeat=2):
        if tuple(j + m) in place:
            wanted[place[tuple(j + m)]] += a[i] * b[k]
    np.testing.assert_allclose(product, wanted, rtol=1e-5)
    p = rng.random(classes)
    shorter = a[terms.degrees < orders]
    by_row = a + (shorter[:, None] * p).reshape(-1) @ terms.additions
    row = np.zeros_like(a)
    row[0] = 1.0
    for c in range(classes):
        row[place[tuple(np.eye(classes, dtype=int)[c])]] = p[c]
    np.testing.assert_allclose(by_row, ((a @ left) * (row @ right)) @ total, rtol=1e-5)


@quick
@given(st.integers(1, 5000), st.integers(1, 10))
def test_factors_count_sets(size, orders):
    terms = Terms(2, orders)
    got = terms.factors(np.array([size]))[0]
    wanted = [float(size) ** r / comb(size, r) if r <= size else 0.0 for r in terms.degrees.tolist()]
    np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_published_values():
    assert LLP_MM.resolve(authors("adult", 8)) == {**LLP_MM.resolve({}), "orders": "auto", "smoothing": 1e-4}
    assert dict(LLP_MM.presets) == {"authors": "llpbench_methods.llp_mm:authors"}


def test_views():
    assert [(v.terms.classes, v.first, v.terms.orders) for v in views_for(2, 8)] == [(2, 1, 8)]
    assert [(v.terms.classes, v.first, v.terms.orders) for v in views_for(10, 3)] == [(10, 1, 3)]
    assert [(v.terms.classes, v.first, v.terms.orders) for v in views_for(10, 5)] == [(10, 1, 3), (2, 4, 5)]
    assert [(v.terms.classes, v.first, v.terms.orders) for v in views_for(30, 3)] == [(30, 1, 2), (2, 3, 3)]
    assert [(v.terms.classes, v.first, v.terms.orders) for v in views_for(5000, 2)] == [(5000, 1, 1), (2, 2, 2)]
