"""Bootstrap replicates: they fit the published number, however few rows they are of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from board_samples import real_cell, traced

from llpbench.board.content.bootstrap import replicate
from llpbench.contracts.result import CellResult, Selected
from llpbench.experiment.metrics import auroc


def result_of(labels: np.ndarray, scores: np.ndarray, **facts: Any) -> CellResult:
    """A result with one rule, whose AUROC is that of these predictions, and with the known rate of the test rows."""
    classes = 2 if scores.ndim == 1 else scores.shape[1]
    shares = np.bincount(labels, minlength=classes) / len(labels)
    rows = {"train": 1000, "valid": 100, "test": len(labels)}
    known: dict[str, Any] = {"rate": [float(s) for s in (shares[1:] if classes == 2 else shares)], "rows": rows}
    result = traced(real_cell(**facts.pop("cell", {})), **{**known, **facts})
    result.selected = {"bags": Selected(report=0, metrics={"auroc": float(auroc(labels, scores))})}
    return result


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize(("rows", "rarest"), [(30, 0.5), (60, 0.1), (400, 0.02), (3000, 0.01)])
def test_replicates_scatter_around_the_published_number(classes: int, rows: int, rarest: float) -> None:
    """Also where the test rows have other shares than the known rate, by the luck of the draw."""
    for seed in range(20):
        rng = np.random.default_rng([seed, rows, classes])
        shares = np.r_[[(1 - rarest) / (classes - 1)] * (classes - 1), rarest]
        labels = rng.choice(classes, size=rows, p=shares)
        if len(np.unique(labels)) < classes:
            continue
        signal = rng.uniform(0, 3)
        noise = rng.standard_normal((rows, classes)).round(rng.integers(0, 4))
        scores = noise + signal * (labels[:, None] == np.arange(classes))
        scores = scores[:, 1] if classes == 2 else scores
        result = result_of(labels, scores, rate=list(shares[1:] if classes == 2 else shares), cell={"seed": seed})
        values = replicate(result, {"labels": labels, "bags": scores}).values("bags")
        assert values is not None
        finite = values[np.isfinite(values)]
        error = finite.std(ddof=1) / len(finite) ** 0.5
        assert abs(finite.mean() - auroc(labels, scores)) <= 5 * error + 1e-4
