"""few-labels: what a method is given, and that nothing else reaches it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from llpbench import QuietMonitor, Skip, UsageError
from llpbench.kit.problem import Problem
from llpbench_methods.few_labels.method import FewLabels, labelled_rows
from llpbench_methods.mean_ridge.method import MeanRidge


@pytest.mark.parametrize("classes", [2, 3])
def test_labelled_rows_are_bags_of_one_row(classes: int) -> None:
    problem = Problem(classes=classes)
    chosen = np.array([3, 7, 100])
    known = labelled_rows(problem.train, problem.train_labels, chosen)
    assert_array_equal(known.X, problem.train.X[chosen])
    assert_array_equal(known.sizes, 1)
    shares = known.counts if classes > 2 else np.hstack([1 - known.counts, known.counts])
    assert_array_equal(shares.argmax(axis=1), problem.train_labels[chosen])
    assert known.validation is None


def test_labels_of_other_rows_and_counts_change_nothing() -> None:
    problem = Problem()
    n = len(problem.train_labels)
    used = np.random.default_rng([5, 1]).permutation(n)[:24]
    other = 1 - problem.train_labels
    other[used] = problem.train_labels[used]

    def scores(labels: np.ndarray) -> np.ndarray:
        bound = FewLabels(labels=24, method="mean-ridge")
        return bound.fit(problem.train, monitor=QuietMonitor(), seed=5, labels=labels).predict_scores(problem.test_rows)

    assert_array_equal(scores(other), scores(problem.train_labels))
    known = labelled_rows(problem.train, problem.train_labels, np.sort(used))
    alone = MeanRidge().fit(known, monitor=QuietMonitor(), seed=5)
    assert_array_equal(scores(problem.train_labels), alone.predict_scores(problem.test_rows))


def test_more_labels_than_rows_are_skipped() -> None:
    problem = Problem(rows=48)
    with pytest.raises(Skip, match="49 labelled rows are wanted, and there are 48"):
        FewLabels(labels=49).fit(problem.train, monitor=QuietMonitor(), seed=0, labels=problem.train_labels)


def test_bounds_do_not_run_bounds() -> None:
    with pytest.raises(UsageError, match="few-labels cannot run 'supervised'"):
        FewLabels(method="supervised")
