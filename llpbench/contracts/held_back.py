"""What a selection rule sees of one report."""

from __future__ import annotations

from dataclasses import dataclass

from llpbench.contracts.data import Bags, FloatArray, IntArray


@dataclass(frozen=True)
class HeldBack:
    """A model's predictions for the held-back rows, and what is known of these rows.

    Attributes:
        scores: (n,) or (n, C) scores as the method gave them.
        probabilities: the same as probabilities.
        bags: the held-back bags with their known (maybe noisy) counts; rows in the order of the predictions.
        labels: labels of the rows, for rules that declare ``uses_labels``; None for all others.
    """

    scores: FloatArray
    probabilities: FloatArray
    bags: Bags
    labels: IntArray | None = None
