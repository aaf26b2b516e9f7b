"""The metrics of a result once more, from its predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from llpbench.board.content.bootstrap import BAG_OF
from llpbench.board.validate import Unsound, clip
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import NO_BAG, MethodSpec, MetricSpec
from llpbench.experiment.metrics import auroc, kind_of_scores, rows_add_up
from llpbench.experiment.scoring import Answers, digest_of_bags, digest_of_labels

EXACT = 1e-9
"""How far a metric may be off when predictions are what was judged: sums in another order."""
COARSE = 1e-4
"""How far it may be off in protocol 1, whose predictions were rounded to single precision."""
LATER = frozenset(["f1", "macro_f1", "balanced_accuracy", "brier", "ece", "test_bag_error"])
"""Metrics that came together with the known rate: a result that does not state the rate need not have them."""
Arrays = dict[str, NDArray[np.generic]]


def classes_of(scores: NDArray[np.generic]) -> int:
    """How many classes scores are of."""
    return 2 if scores.ndim == 1 else scores.shape[1]


def check_metrics(result: CellResult, arrays: Arrays, method: MethodSpec, metrics: Iterable[MetricSpec]) -> bool:
    """Refuse a result that states other metrics than its predictions give, under any rule.

    Single precision may turn scores that differ into ties, but never turns them around: in protocol 1 a stated AUROC
    must lie between what the ties give when all are lost and when all are won.

    Returns:
        Whether the predictions are fine enough to be resampled; False where ties moved the AUROC.
    """
    labels = arrays["labels"].astype(np.int64)
    if result.rows.get("test") != len(labels):
        raise Unsound(f"its predictions have {len(labels)} rows, the result says {result.rows.get('test')}")
    stated = result.digests.get("test_labels")
    if result.protocol > 1 and stated != digest_of_labels(labels):
        raise Unsound("the digest of its test labels is not that of the labels in its predictions")
    answers = Answers(labels, np.array(result.rate), _bags_of(result, arrays))
    task = "binary" if arrays[next(iter(result.selected))].ndim == 1 else "multiclass"
    known = list(metrics)
    wanted = [spec for spec in known if task in spec.tasks]
    if result.rate and len(result.rate) != (1 if task == "binary" else classes_of(arrays[next(iter(result.selected))])):
        raise Unsound(f"it states {len(result.rate)} known rates, which are not those of its classes")
    fine = True
    for rule, chosen in result.selected.items():
        for name in chosen.metrics.keys() - {spec.name for spec in known} - {"bag_error"}:
            raise Unsound(f"it states {clip(name)} under {rule!r}, a metric that is not installed here")
        scores = arrays[rule].astype(np.float64)
        if method.scores == "probability" and result.protocol > 1 and not rows_add_up(scores):
            raise Unsound(f"its predictions under {rule!r} are said to be probabilities and do not add up to 1")
        slack = EXACT if result.protocol > 1 else COARSE + tied_share(labels, scores)
        for spec in wanted:
            if spec.name not in chosen.metrics:
                if result.protocol > 1 and (result.rate or spec.name not in LATER):
                    raise Unsound(f"it has no {spec.name} under {rule!r}, which its predictions give")
                continue
            value = chosen.metrics[spec.name]
            found = _values(spec, answers, scores, method.scores)
            if not any(_near(value, one, slack) for one in found):
                raise Unsound(
                    f"its predictions give {spec.name} {found[0]:.6g} under {rule!r}, the result says {value}"
                )
        given = chosen.metrics.get("auroc")
        fine &= given is not None and abs(auroc(labels, scores) - given) <= COARSE
    return fine


def _bags_of(result: CellResult, arrays: Arrays) -> NDArray[np.int64] | None:
    """The bags of the test rows, if they are those that the result says it was judged by."""
    stated = result.digests.get("test_bags")
    if BAG_OF not in arrays or stated is None:
        if stated is not None:
            raise Unsound("its predictions do not have the bags of its test rows")
        return None
    bag_of = arrays[BAG_OF].astype(np.int64)
    found = np.unique(bag_of[bag_of != NO_BAG])
    if stated != digest_of_bags(bag_of) or len(found) != result.bags.get("test"):
        raise Unsound("the test bags in its predictions are not those that the result states")
    return bag_of


def _values(spec: MetricSpec, answers: Answers, scores: NDArray[np.float64], kind: str) -> list[float]:
    """What a metric may be: one value, or two where scores are read by what they look like.

    Then a report on held-back rows may have shown that they are log-odds though those of the test rows look like
    probabilities.
    """
    if spec.needs == "scores":
        return [answers.score(spec, scores, kind)]
    kinds = [kind] if kind != "auto" else list(dict.fromkeys([kind_of_scores(scores), "logit"]))
    return [answers.score(spec, scores, k) for k in kinds]


def _near(stated: float | None, found: float, slack: float) -> bool:
    if stated is None or not math.isfinite(found):
        return stated is None and not math.isfinite(found)
    return abs(found - stated) <= slack * max(1.0, abs(found))


def tied_share(labels: NDArray[np.int64], scores: NDArray[np.float64]) -> float:
    """Share of pairs of a positive and a negative with equal scores (mean over classes where there are several)."""
    if scores.ndim == 2:
        return float(np.mean([tied_share((labels == c).astype(np.int64), s) for c, s in enumerate(scores.T)]))
    _, place = np.unique(scores, return_inverse=True)
    positives, negatives = np.bincount(place, labels == 1), np.bincount(place, labels != 1)
    pairs = positives.sum() * negatives.sum()
    return float((positives * negatives).sum() / pairs) if pairs else 0.0
