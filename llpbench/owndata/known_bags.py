"""Probabilities of the rows of a table given what is known about its bags: the table of a fit, or another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import UsageError
from llpbench.data.encoding.forms import as_frame
from llpbench.owndata.fitting import FitRecord
from llpbench.owndata.judging.posterior import posterior
from llpbench.owndata.judging.predictor import Predictor, softmax
from llpbench.owndata.model_file import Header
from llpbench.owndata.reading.arguments import check_column
from llpbench.owndata.reading.bag_counts import KnownCounts, read_bag_ids
from llpbench.owndata.reading.bagged_table import BaggedTable, read_bagged_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class KnownBags:
    """The bags of the rows.

    Attributes:
        numbers: (n,) bag of each row.
        known: what is known about their counts; None if nothing is.
    """

    numbers: IntArray
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
    if bag_of is None:
        raise UsageError("counts and proportions need bag_of, the bag of each row.")
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
        return KnownBags(read_bag_ids(ids, len(frame)).numbers, None)
    if len(found.rows) < len(frame):
        raise UsageError("the counts of some bags are missing; remove their rows, or pass no counts.")
    return KnownBags(found.bags.numbers, found.known)


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
    p[rows] = posterior(logits[rows], bags.numbers, known, bag_effect(header))
    return p
