"""The small labelled problems that methods are checked on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray, Part
from llpbench.contracts.specs import NO_BAG, MethodSpec
from llpbench.experiment.bags import bag_order, class_counts, gather_groupings, read_only
from llpbench.experiment.monitor import HarnessMonitor
from llpbench.experiment.rules import make_rules


class Problem:
    """A small labelled problem in bags; labels are withheld from the method, as in the harness.

    All problems of the kit have the same number of rows unless a check needs another one, so that a compiled backend
    finds most of its programs again.

    Args:
        rows: training rows, and test rows; there are half as many validation rows.
        dim: number of features.
        classes: number of classes.
        sizes: rows of a bag, or a list of sizes that is repeated until all rows are in a bag.
        shape: changes the features.
        constant_label: the label of all training and validation rows; random labels if None.
        separation: distance between the classes, in standard deviations.
    """

    def __init__(
        self,
        *,
        rows: int = 240,
        dim: int = 4,
        classes: int = 2,
        sizes: Sequence[int] | int = 6,
        shape: Callable[[FloatArray], FloatArray] | None = None,
        constant_label: int | None = None,
        separation: float = 2.0,
    ) -> None:
        rng = np.random.default_rng(0)
        self.classes = classes
        self._centres = separation * np.eye(classes, max(dim, classes))[:, :dim]
        if dim == 1:
            self._centres = separation * np.arange(classes, dtype=float)[:, None]
        self._shape = shape if shape is not None else lambda X: X
        self.train, self.train_labels = self._bags(rows, sizes, rng, constant_label)
        self.valid, self.valid_labels = self._bags(rows // 2, sizes, rng, constant_label)
        self.train = replace(self.train, validation=self.valid)
        X, self.test_labels = self._rows(rows, rng, None)
        self.test_rows = read_only(X)

    def _rows(self, n: int, rng: np.random.Generator, label: int | None) -> tuple[FloatArray, IntArray]:
        labels = rng.integers(self.classes, size=n) if label is None else np.full(n, label)
        X = self._centres[labels] + rng.normal(size=(n, self._centres.shape[1]))
        return self._shape(X.astype(np.float32)), labels

    def _bags(
        self, n: int, sizes: Sequence[int] | int, rng: np.random.Generator, label: int | None
    ) -> tuple[Bags, IntArray]:
        X, labels = self._rows(n, rng, label)
        pattern = [sizes] if isinstance(sizes, int) else list(sizes)
        each = pattern * (n // sum(pattern)) or [n // 2, n - n // 2]  # half of the rows: bags of half the size
        order, offsets = bag_order(np.repeat(np.arange(len(each)), each), sum(each), rng)
        labels = labels[order]
        counts = class_counts(labels, offsets, self.classes)
        return Bags(read_only(X[order]), read_only(offsets), read_only(counts), self.classes), labels

    def overlap(self, sizes: Sequence[int], covered: Sequence[float]) -> None:
        """Put the rows into several random groupings with bags of these sizes; each covers a share of the rows."""
        rng = np.random.default_rng(1)

        def regrouped(bags: Bags, labels: IntArray) -> tuple[Bags, IntArray]:
            n = len(labels)
            groupings = {
                f"bags of {size}": np.where(rng.random(n) < share, rng.permutation(n) // size, NO_BAG)
                for size, share in zip(sizes, covered, strict=True)
            }
            return gather_groupings(Part(bags.X, labels), groupings, classes=self.classes, columns=(), rng=rng)

        self.valid, self.valid_labels = regrouped(self.valid, self.valid_labels)
        train, self.train_labels = regrouped(self.train, self.train_labels)
        self.train = replace(train, validation=self.valid)

    def monitor(self, spec: MethodSpec, patience: int = 3) -> HarnessMonitor:
        """The harness's monitor over this problem."""
        return HarnessMonitor(
            rules=make_rules(self.valid, self.valid_labels),
            valid=self.valid,
            test_rows=self.test_rows,
            train_labels=self.train_labels,
            classes=self.classes,
            score_kind=spec.scores,
            patience=patience,
        )


def shuffle_inside_bags(labels: IntArray, bags: Bags) -> IntArray:
    """Permute labels inside each bag, which changes no count."""
    return labels[np.lexsort((np.random.default_rng(5).random(len(labels)), bags.bag_of))]


def classes_of(spec: MethodSpec) -> int:
    """2 if the method supports binary tasks, otherwise 3."""
    return 2 if "binary" in spec.tasks else 3
