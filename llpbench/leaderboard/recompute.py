"""The metrics of a result once more, from its predictions."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import MethodSpec, MetricSpec
from llpbench.experiment.metrics import auroc, kind_of_scores, to_probabilities
from llpbench.leaderboard.validate import Unsound, clip

EXACT = 1e-9
"""How far a metric may be off when predictions are what was judged: sums in another order."""
COARSE = 1e-4
"""How far it may be off in protocol 1, whose predictions were rounded to single precision."""
Arrays = dict[str, NDArray[np.generic]]


def labels_digest(labels: NDArray[np.generic]) -> str:
    """The digest of test labels, as ``result.digests["test_labels"]`` states it."""
    return hashlib.sha256(labels.astype("<i2").tobytes()).hexdigest()


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
    if result.protocol > 1 and stated != labels_digest(labels):
        raise Unsound("the digest of its test labels is not that of the labels in its predictions")
    task = "binary" if arrays[next(iter(result.selected))].ndim == 1 else "multiclass"
    known = list(metrics)
    wanted = [spec for spec in known if task in spec.tasks]
    fine = True
    for rule, chosen in result.selected.items():
        for name in chosen.metrics.keys() - {spec.name for spec in known} - {"bag_error"}:
            raise Unsound(f"it states {clip(name)} under {rule!r}, a metric that is not installed here")
        scores = arrays[rule].astype(np.float64)
        slack = EXACT if result.protocol > 1 else COARSE + tied_share(labels, scores)
        for spec in wanted:
            if spec.name not in chosen.metrics:
                if result.protocol > 1:
                    raise Unsound(f"it has no {spec.name} under {rule!r}, which its predictions give")
                continue
            value = chosen.metrics[spec.name]
            found = _values(spec, labels, scores, method.scores)
            if not any(_near(value, one, slack) for one in found):
                raise Unsound(
                    f"its predictions give {spec.name} {found[0]:.6g} under {rule!r}, the result says {value}"
                )
        given = chosen.metrics.get("auroc")
        fine &= given is not None and abs(auroc(labels, scores) - given) <= COARSE
    return fine


def _values(spec: MetricSpec, labels: NDArray[np.int64], scores: NDArray[np.float64], kind: str) -> list[float]:
    """What a metric may be: one value, or two where scores are read by what they look like.

    Then a report on held-back rows may have shown that they are log-odds though those of the test rows look like
    probabilities.
    """
    if spec.needs == "scores":
        return [float(spec.load()(labels, scores))]
    kinds = [kind] if kind != "auto" else list(dict.fromkeys([kind_of_scores(scores), "logit"]))
    return [float(spec.load()(labels, to_probabilities(scores, k))) for k in kinds]


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
