"""Hard labels that fit the counts, against all labellings of small bags."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench_methods.shared.assignment import fitting_labels


def best_by_enumeration(log_p: np.ndarray, counts: np.ndarray) -> float:
    """The largest log-probability of a labelling with these class counts."""
    n, classes = log_p.shape
    labellings = [t for t in product(range(classes), repeat=n) if (np.bincount(t, minlength=classes) == counts).all()]
    return max(float(log_p[np.arange(n), list(t)].sum()) for t in labellings)


@st.composite
def bags_of_labels(draw: st.DrawFn, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    scores = draw(st.lists(st.floats(-4, 4), min_size=sum(sizes) * classes, max_size=sum(sizes) * classes))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=sum(sizes), max_size=sum(sizes)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    counts = np.add.reduceat(np.eye(classes, dtype=int)[labels], offsets[:-1], axis=0)
    return np.reshape(scores, (-1, classes)), offsets, counts


@quick
@given(bags_of_labels(3))
def test_several_classes_get_the_most_probable_labels_with_their_counts(
    case: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    scores, offsets, counts = case
    labels = fitting_labels(scores, offsets, counts)
    for b, (first, last) in enumerate(pairwise(offsets)):
        part, log_p = labels[first:last], scores[first:last]
        assert (np.bincount(part, minlength=3) == counts[b]).all()
        reached = float(log_p[np.arange(last - first), part].sum())
        assert reached == pytest.approx(best_by_enumeration(log_p, counts[b]), abs=1e-9)


@quick
@given(bags_of_labels(2))
def test_two_classes_are_the_top_rows(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    scores, offsets, counts = case
    z = scores[:, 1]
    labels = fitting_labels(z, offsets, counts[:, 1:])
    log_p = np.column_stack([-np.logaddexp(0, z), -np.logaddexp(0, -z)])
    for b, (first, last) in enumerate(pairwise(offsets)):
        part = log_p[first:last]
        assert labels[first:last].sum() == counts[b, 1]
        reached = float(part[np.arange(last - first), labels[first:last]].sum())
        assert reached == pytest.approx(best_by_enumeration(part, counts[b]), abs=1e-9)


def test_ties_go_to_the_first_rows() -> None:
    labels = fitting_labels(np.zeros(7), np.array([0, 4, 7]), np.array([[2], [3]]))
    assert labels.tolist() == [1, 1, 0, 0, 1, 1, 1]
