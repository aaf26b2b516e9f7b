"""Published replicates: honest ones pass, however few rows they are of, and none may be wider than rows allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from board_samples import real_cell, traced

from llpbench.board.reproduce.verify import _row_variance, fresh_p
from llpbench.board.content.bootstrap import check_replicates, pack, replicate, widest_spread
from llpbench.board.validate import Unsound
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


def check(result: CellResult, labels: np.ndarray, scores: np.ndarray) -> None:
    check_replicates(result, replicate(result, {"labels": labels, "bags": scores}))


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize(("rows", "rarest"), [(30, 0.5), (60, 0.1), (400, 0.02), (3000, 0.01)])
def test_honest_replicates_pass(classes: int, rows: int, rarest: float) -> None:
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
        check(result, labels, scores)


def test_the_widest_replicates_that_there_are_pass() -> None:
    """Half of the rare class above and half below all others: the variance is the bound itself."""
    labels = (np.arange(4000) < 200).astype(int)
    scores = np.where(labels == 1, np.where(np.arange(4000) % 2, 2.0, -2.0), np.linspace(-1, 1, 4000))
    result = result_of(labels, scores)
    check(result, labels, scores)
    values = replicate(result, {"labels": labels, "bags": scores}).values("bags")
    assert values is not None
    assert values.std() > 0.5 * widest_spread(result, 0.5)


def spread_of(sd: float) -> Any:
    z = np.random.default_rng(0).standard_normal(128)
    return 0.8 + sd * (z - z.mean()) / z.std()


def test_wide_replicates_excuse_nothing() -> None:
    """``verify`` takes its least variance from replicates: wide ones would say that fresh seeds agree."""
    labels = (np.arange(5000) % 4 == 0).astype(int)
    result = result_of(labels, labels + np.random.default_rng(0).standard_normal(5000))
    result.selected["bags"].metrics["auroc"] = 0.8
    honest = replicate(result, {"labels": labels, "bags": labels.astype(float)})
    published, fresh = [88.0, 88.2, 87.9], [70.0, 70.5]

    def p_of(sd: float) -> float:
        kept = type(honest)(id=result.id, test=honest.test, rules={"bags": pack(spread_of(sd))})
        check_replicates(result, kept)
        p = fresh_p(published, fresh, _row_variance([result], {result.id: kept}))
        assert p is not None
        return p

    assert p_of(0.006) < 1e-4
    assert p_of(0.99 * widest_spread(result, 0.8)) < 0.01
    with pytest.raises(Unsound, match="5000 rows give at most"):
        p_of(0.2)


def test_how_wide_replicates_may_be_follows_what_is_known_of_the_rows() -> None:
    labels = (np.arange(1000) % 5 == 0).astype(int)
    scores = labels + np.random.default_rng(1).standard_normal(1000)
    plain = widest_spread(result_of(labels, scores), 0.8)
    assert plain == pytest.approx(1.5 * (0.16 / (200 - 3 * 160**0.5)) ** 0.5, abs=2e-4)
    noisy = widest_spread(result_of(labels, scores, count_sd=3.0), 0.8)
    by_bags = widest_spread(result_of(labels, scores, cell={"split": "bags"}, bags={"train": 125, "test": 50}), 0.8)
    assert plain < noisy < by_bags < 0.8
    few = widest_spread(result_of(labels, scores, rate=[0.0]), 0.8)  # by a class that has no row in training
    assert few == pytest.approx(1.5 * 0.4, abs=2e-4)
    several = widest_spread(result_of(labels, scores, rate=[0.4, 0.2, 0.4]), 0.8)
    assert several == pytest.approx(plain)
    old = result_of(labels, scores, rate=[], protocol=1)
    assert widest_spread(old, 0.8) == float("inf")
    with pytest.raises(Unsound, match="known rate"):
        widest_spread(result_of(labels, scores, rate=[]), 0.8)
