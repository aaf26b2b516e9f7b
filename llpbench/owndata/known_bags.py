"""Probabilities of the rows of a table given what is known about its bags: the table of a fit, or another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import Bags, FloatArray
from llpbench.contracts.errors import UsageError
from llpbench.owndata.fitting import FitRecord
from llpbench.owndata.judging.posterior import posterior
from llpbench.owndata.judging.predictor import Predictor, softmax
from llpbench.owndata.model_file import Header
from llpbench.owndata.reading.arguments import check_column
from llpbench.owndata.reading.bag_counts import KnownCounts
from llpbench.owndata.reading.bag_ids import BagIds, read_bag_ids
from llpbench.owndata.reading.bagged_table import BaggedTable, read_bagged_table
from llpbench.owndata.reading.forms import as_frame
from llpbench.plugins.registry import shared_registry

if TYPE_CHECKING:
    import pandas as pd

_WHOLE, _FRACTION, _LEAST = 1e-6, 0.3, 1e-300
"""How far a whole number may be off; the noise of a count that is none; the least probability."""


@dataclass(frozen=True)
class KnownBags:
    """The bags of the rows.

    Attributes:
        bags: the bags.
        known: what is known about their counts; None if nothing is.
    """

    bags: BagIds
    known: KnownCounts | None


def table_of_fit(memory: FitRecord | None) -> FitRecord:
    """What a model keeps of its own table."""
    if memory is None:
        raise UsageError("a model that was loaded from a file has no table; pass one as X.")
    return memory


def read_known(
    header: Header, frame: pd.DataFrame, bag_of: Any, counts: Any, proportions: Any, count_sd: Any
) -> BaggedTable | None:
    """The rows of a table whose bags have known counts; None if no bags were given."""
    if counts is None and proportions is None:
        return None
    return read_bagged_table(
        frame, bag_of, counts, proportions, classes=header.classes, count_sd=count_sd, to_learn=False
    )


def read_bags(
    header: Header, frame: pd.DataFrame, bag_of: Any, counts: Any, proportions: Any, count_sd: Any
) -> KnownBags | None:
    """The bags of a table, with the counts of all of them or of none; None if no bags were given."""
    found = read_known(header, frame, bag_of, counts, proportions, count_sd)
    if found is None:
        if bag_of is None:
            return None
        ids = frame[check_column(bag_of, frame)] if isinstance(bag_of, str) else bag_of
        return KnownBags(read_bag_ids(ids, len(frame)), None)
    if len(found.rows) < len(frame):
        raise UsageError("the counts of some bags are missing; remove their rows, or pass no counts.")
    return KnownBags(found.bags, found.known)


def bag_effect(header: Header) -> FloatArray:
    """(C,) variance of a bag's proportions beyond chance."""
    if header.facts is None:
        return np.zeros(len(header.classes))
    shares = np.array(header.facts.card.shares)
    return np.asarray(header.facts.score.phi * shares * (1.0 - shares))


def row_logits(header: Header, predictor: Predictor, features: FloatArray) -> FloatArray:
    """(n, C) logits of rows without knowledge of their bags, shrunk."""
    logits = predictor.logits(features)
    return logits if header.shrinkage is None else header.shrinkage.logits(logits)


def label_rows(
    header: Header,
    predictor: Predictor,
    memory: FitRecord | None,
    X: Any,
    *,
    bag_of: Any,
    counts: Any,
    proportions: Any,
    count_sd: Any,
) -> FloatArray:
    """(n, C) probabilities of the rows of ``X`` given the counts of their bags, or of the rows of the fit.

    Rows of bags whose counts are unknown get the probabilities that they have without.
    """
    if X is None:
        if not (bag_of is None and counts is None and proportions is None):
            raise UsageError("bag_of, counts and proportions need X; without X those of the fit are used.")
        own = table_of_fit(memory)
        bags, known, rows, given = own.trainer.bags, own.known, own.rows, len(own.every_row)
        features = own.trainer.features if given == len(rows) else header.encoder.transform(own.every_row)
    else:
        frame = as_frame(X)
        found = read_known(header, frame, bag_of, counts, proportions, count_sd)
        if found is None:
            raise UsageError("bag_of needs counts or proportions, which are known about the bags.")
        bags, known, rows, features = found.bags, found.known, found.rows, header.encoder.transform(frame)
    logits = row_logits(header, predictor, features)
    p = softmax(logits)
    p[rows] = posteriors(logits[rows], bags, known, bag_effect(header))
    return p


def posteriors(logits: FloatArray, bags: BagIds, known: KnownCounts, effect: FloatArray) -> FloatArray:
    """(n, C) probabilities of rows given what is known about the counts of all bags that they are in.

    A single grouping: as ``posterior``, exactly. Several: by the plugin hook ``llpbench_joint_posterior``, for which a
    count within bounds is noisy.

    Args:
        logits: (n, C) logits of the rows.
        bags: their bags.
        known: the counts of the bags.
        effect: (C,) variance of a bag's proportions beyond chance, for counts that are not exact.
    """
    if bags.overlap is None:
        return posterior(logits, bags.numbers, known, effect)
    middle, width = 0.5 * (known.low + known.high), (known.high - known.low).max(axis=1)
    sd = np.sqrt(known.sd**2 + width * (width + 2.0) / 12.0)
    whole = np.rint(middle)
    sd = np.where((np.abs(middle - whole) > _WHOLE).any(axis=1), np.hypot(sd, _FRACTION), sd)
    middle = np.where((sd > 0.0)[:, None], middle, np.clip(whole, 0.0, bags.sizes[:, None]))
    order = np.argsort(bags.numbers, kind="stable")
    p = softmax(logits)
    two = p.shape[1] == 2
    given = Bags(
        X=np.zeros((len(p), 0), np.float32),
        offsets=np.concatenate([[0], np.cumsum(bags.sizes)]),
        counts=middle[:, 1:] if two else middle,
        classes=p.shape[1],
        overlap=replace(bags.overlap, members=bags.overlap.members[order], count_sd=sd),
    )
    odds = np.log(np.maximum(p, _LEAST)) - np.log(np.maximum(1.0 - p, _LEAST))
    found = shared_registry((), ()).manager.hook.llpbench_joint_posterior(
        bags=given, log_odds=odds[:, 1:] if two else odds
    )
    if found is None:
        raise UsageError("no installed plugin computes probabilities given several tables of counts (bp does).")
    return np.asarray(found, np.float64)
