"""Recomputing the metrics of a result from its predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from llpbench.board.content.bootstrap import BAG_OF
from llpbench.board.validate import Unsound
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import NO_BAG, MethodSpec, MetricSpec
from llpbench.experiment.metrics import kind_of_scores
from llpbench.experiment.scoring import Answers, digest_of_bags, digest_of_labels

TOLERANCE = 1e-9
"""How far a recomputed metric may be off: sums in another order."""
Arrays = dict[str, NDArray[np.generic]]


def classes_of(scores: NDArray[np.generic]) -> int:
    """Return the number of classes of scores."""
    return 2 if scores.ndim == 1 else scores.shape[1]


def check_metrics(result: CellResult, arrays: Arrays, method: MethodSpec, metrics: Iterable[MetricSpec]) -> None:
    """Raise ``Unsound`` if a metric of a result is not what its predictions give, under any rule."""
    labels = arrays["labels"].astype(np.int64)
    if result.rows.get("test") != len(labels):
        raise Unsound(f"its predictions have {len(labels)} rows, the result has {result.rows.get('test')} test rows")
    if result.digests.get("test_labels") != digest_of_labels(labels):
        raise Unsound("the labels in its predictions do not match the digest of its test labels")
    answers = Answers(labels, np.array(result.rate), _bags_of(result, arrays))
    known = {spec.name: spec for spec in metrics}
    for rule, chosen in result.selected.items():
        scores = arrays[rule].astype(np.float64)
        task = "binary" if scores.ndim == 1 else "multiclass"
        expected = {name for name, spec in known.items() if task in spec.tasks}
        stated = set(chosen.metrics) - {"bag_error"}
        if stated != expected:
            wrong = ", ".join(sorted(stated ^ expected))
            raise Unsound(f"its metrics under {rule!r} are not those of the installed packages: {wrong}")
        for name in sorted(expected):
            found = _values(known[name], answers, scores, method.scores)
            if not any(_near(chosen.metrics[name], one) for one in found):
                raise Unsound(
                    f"its predictions give {name} {found[0]:.6g} under {rule!r}, the result has {chosen.metrics[name]}"
                )


def _bags_of(result: CellResult, arrays: Arrays) -> NDArray[np.int64] | None:
    """The bags of the test rows, if the result was scored with them."""
    stated = result.digests.get("test_bags")
    if stated is None:
        return None
    if BAG_OF not in arrays:
        raise Unsound("its predictions lack the bags of its test rows")
    bag_of = arrays[BAG_OF].astype(np.int64)
    found = np.unique(bag_of[bag_of != NO_BAG])
    if stated != digest_of_bags(bag_of) or len(found) != result.bags.get("test"):
        raise Unsound("the test bags in its predictions do not match those of the result")
    return bag_of


def _values(spec: MetricSpec, answers: Answers, scores: NDArray[np.float64], kind: str) -> list[float]:
    """What a metric may be: one value, or two if the kind of scores is inferred.

    A report on held-out rows may have shown log-odds although the scores of the test rows look like probabilities.
    """
    if spec.needs == "scores" or kind != "auto":
        return [answers.score(spec, scores, kind)]
    return [answers.score(spec, scores, k) for k in dict.fromkeys([kind_of_scores(scores), "logit"])]


def _near(stated: float | None, found: float) -> bool:
    if stated is None or not math.isfinite(found):
        return stated is None and not math.isfinite(found)
    return abs(found - stated) <= TOLERANCE * max(1.0, abs(found))
