"""Another method, given the bags with counts that belong to other bags."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from llpbench import Bags, FloatArray, IntArray, Monitor, Skip, State, UsageError, method_spec
from llpbench_methods.shared.counts import whole_counts


def shuffle_counts(bags: Bags, rng: np.random.Generator) -> Bags:
    """The same rows in the same bags, each bag with the count of another; validation bags among themselves.

    Counts are permuted at random among the bags of equal size, so that every size keeps its counts. A bag whose size no
    other bag has takes the *proportion* of a bag drawn at random from all others (as a whole count, where counts are
    whole). What is left of the counts is their distribution: above all the rate of each class.
    """
    shuffled = bags.counts[_other_of_its_size(bags.sizes, rng)]
    _, number, members = np.unique(bags.sizes, return_inverse=True, return_counts=True)
    alone = np.flatnonzero(members[number] == 1)
    if len(alone) and len(bags) > 1:
        lender = (alone + rng.integers(1, len(bags), len(alone))) % len(bags)
        lent = bags.proportions[lender] * bags.sizes[alone, None]
        if np.array_equal(bags.counts, np.rint(bags.counts)):
            offsets = np.concatenate([[0], np.cumsum(bags.sizes[alone])])
            lent = whole_counts(Bags(bags.X[:0], offsets, lent, bags.classes)).astype(np.float64)
        shuffled[alone] = lent
    shuffled.setflags(write=False)
    held = None if bags.validation is None else shuffle_counts(bags.validation, rng)
    return replace(bags, counts=shuffled, validation=held)


def _other_of_its_size(sizes: IntArray, rng: np.random.Generator) -> IntArray:
    """A random permutation of the bags that leads from each bag to one of its size."""
    by_size = np.argsort(sizes, kind="stable")
    drawn = np.lexsort((rng.random(len(sizes)), sizes))
    source = np.empty(len(sizes), np.int64)
    source[by_size] = drawn
    return source


class ShuffledCounts:
    """Runs another method at its defaults on bags whose counts were shuffled.

    Reports are judged as everyone's, by the true held-out bags: what is left above chance is what the rows, the class
    rates and the choice among reports give, and no merit of learning from counts.

    Args:
        method: name of an installed method; neither a bound nor this control itself.
        patience: the monitor's patience.
    """

    def __init__(self, method: str = "dllp", patience: int = 20) -> None:
        self.method, self.patience = method, patience
        spec = method_spec(method)
        if spec.oracle or spec.factory.startswith("llpbench_methods.shuffled_counts."):
            raise UsageError(f"shuffled-counts cannot run {method!r}: choose a method that learns from counts.")
        self._spec = spec
        self._inner: Any = spec.load()(**spec.resolve({}))

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> ShuffledCounts:
        """Shuffle the counts by the seed, then fit the method with the same seed."""
        task = "binary" if bags.classes == 2 else "multiclass"
        if task not in self._spec.tasks:
            raise Skip(f"{self.method} is for {' and '.join(self._spec.tasks)} tasks, and this one is {task}")
        if ("images" if bags.X.ndim > 2 else "features") not in self._spec.inputs:
            raise Skip(f"{self.method} takes {' and '.join(self._spec.inputs)} only")
        shuffled = shuffle_counts(bags, np.random.default_rng([seed, 1]))
        self._inner = self._inner.fit(shuffled, monitor=monitor, seed=seed)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Scores of the method that was run."""
        scores: FloatArray = self._inner.predict_scores(X)
        return scores

    def state(self) -> State:
        """The state of the method that was run."""
        state: State = self._inner.state()
        return state

    def restore(self, state: State) -> ShuffledCounts:
        """Give a fresh method of that name the saved state."""
        self._inner = self._inner.restore(state)
        return self
