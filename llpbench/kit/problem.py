"""A small labelled problem put into bags: what methods are checked on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.contracts.specs import MethodSpec
from llpbench.experiment.bags import bag_order, class_counts, read_only
from llpbench.experiment.monitor import HarnessMonitor
from llpbench.experiment.rules import make_rules


class Problem:
    """A small labelled problem put into bags; labels are kept from the method as in the harness."""

    def __init__(
        self,
        *,
        rows: int = 240,
        dim: int = 4,
        classes: int = 2,
        sizes: list[int] | int = 6,
        seed: int = 0,
        shape: Callable[[FloatArray], FloatArray] | None = None,
        constant_label: int | None = None,
        separation: float = 2.0,
    ) -> None:
        rng = np.random.default_rng(seed)
        centres = separation * np.eye(classes, max(dim, classes))[:, :dim]
        if dim == 1:
            centres = separation * np.arange(classes, dtype=float)[:, None]
        self.classes = classes
        self.train, self.train_labels = self._bags(rows, sizes, centres, rng, shape, constant_label)
        valid, self.valid_labels = self._bags(rows // 2, sizes, centres, rng, shape, constant_label)
        self.train = replace(self.train, validation=valid)
        self.valid = valid
        X, self.test_labels = self._rows(rows, centres, rng, None)
        self.test_rows = read_only(shape(X) if shape else X)

    def _rows(
        self, n: int, centres: FloatArray, rng: np.random.Generator, label: int | None
    ) -> tuple[FloatArray, IntArray]:
        labels = rng.integers(self.classes, size=n) if label is None else np.full(n, label)
        X = centres[labels] + rng.normal(size=(n, centres.shape[1]))
        return X.astype(np.float32), labels

    def _bags(
        self,
        n: int,
        sizes: list[int] | int,
        centres: FloatArray,
        rng: np.random.Generator,
        shape: Callable[[FloatArray], FloatArray] | None,
        label: int | None,
    ) -> tuple[Bags, IntArray]:
        X, labels = self._rows(n, centres, rng, label)
        each = [sizes] * (n // sizes) if isinstance(sizes, int) else sizes
        bag_of = np.repeat(np.arange(len(each)), each)
        X, labels = X[: len(bag_of)], labels[: len(bag_of)]
        order, offsets = bag_order(bag_of, len(bag_of), rng)
        X, labels = (shape(X) if shape else X)[order], labels[order]
        counts = class_counts(labels, offsets, self.classes)
        return Bags(read_only(X), read_only(offsets), read_only(counts), self.classes), labels

    def monitor(self, spec: MethodSpec, valid_labels: IntArray | None = None, patience: int = 3) -> HarnessMonitor:
        """The harness's monitor over this problem."""
        return HarnessMonitor(
            rules=make_rules(self.valid, self.valid_labels if valid_labels is None else valid_labels),
            valid=self.valid,
            test_rows=self.test_rows,
            train_labels=self.train_labels,
            classes=self.classes,
            score_kind=spec.scores,
            patience=patience,
        )


def shuffled_inside_bags(labels: IntArray, bags: Bags) -> IntArray:
    """Labels in another order inside each bag: every count stays."""
    return labels[np.lexsort((np.random.default_rng(5).random(len(labels)), bags.bag_of))]


def classes_of(spec: MethodSpec) -> int:
    """Two classes where the method is for two, three otherwise."""
    return 2 if "binary" in spec.tasks else 3
