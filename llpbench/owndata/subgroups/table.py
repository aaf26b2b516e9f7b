"""The table behind ``LLPModel.subgroup_totals``: reads what was asked, fits halves of the bags, adds up."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import LLPWarning, UnknownNameError, UsageError
from llpbench.data.encoding.forms import as_frame, check_order
from llpbench.owndata.fitting.memory import Memory
from llpbench.owndata.judging.assessment import UnseenBags
from llpbench.owndata.judging.predictor import Predictor
from llpbench.owndata.judging.shrinkage import make_shrinkage
from llpbench.owndata.model_file import Header
from llpbench.owndata.reading.arguments import is_share, read_whole
from llpbench.owndata.reading.bag_counts import BagIds, read_bag_ids
from llpbench.owndata.reading.bagged_table import read_bagged_table
from llpbench.owndata.subgroups.totals import KnownBags, Totals, expected_totals, model_variance, quantile

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Asked:
    """The arguments of ``LLPModel.subgroup_totals``."""

    X: Any
    by: Any
    bag_of: Any
    counts: Any
    proportions: Any
    count_sd: float
    level: float
    halvings: int


def subgroup_table(
    header: Header, predictor: Predictor, memory: Memory | None, asked: Asked
) -> tuple[pd.DataFrame, Memory | None]:
    """The table of totals, and the model's memory with the fits on halves that were made for it."""
    if not is_share(asked.level):
        raise UsageError(f"level must be between 0 and 1, not {asked.level!r}.")
    asked = replace(asked, halvings=read_whole(asked.halvings, "halvings", least=0))
    if asked.X is None and memory is None:
        raise UsageError("this model was read from a file, which keeps no table; give the table as X.")
    frame, by = as_frame(asked.X) if memory is None or asked.X is not None else memory.table, asked.by
    if asked.X is None and memory is not None and memory.given > len(frame):
        by = _take_rows(by, memory)
        warnings.warn(
            f"{memory.given - len(frame):,} of {memory.given:,} rows are in bags whose counts are not known and "
            "are not in these totals; give their table as X for totals of them.",
            LLPWarning,
            stacklevel=3,
        )
    names, groups = read_groups(by, frame)
    bags = _known_bags(header, memory, asked, frame)
    features = memory.trainer.features if asked.X is None and memory is not None else header.encoder.transform(frame)
    effect = _bag_effect(header)
    logits = predictor.logits(features)
    if header.shrinkage is not None:
        logits = header.shrinkage.logits(logits)
    found = expected_totals(logits, groups, len(names), bags, effect)
    memory = _with_halves(memory, asked.halvings)
    pairs = []
    for cut in memory.halves[: asked.halvings] if memory is not None else ():
        both = (_half_logits(header, half, features) for half in (cut.first, cut.second))
        first, second = (expected_totals(half, groups, len(names), bags, effect).total for half in both)
        pairs.append((first, second))
    if not pairs and asked.halvings:
        reason = "it was read from a file" if memory is None else "the method cannot be fitted on half of the bags"
        warnings.warn(f"the intervals are of chance alone, not of the model: {reason}.", LLPWarning, stacklevel=3)
    model = model_variance(pairs) if pairs else np.zeros_like(found.total)
    return _as_frame(header, names, found, model, asked.level, len(pairs)), memory


def _take_rows(by: Any, memory: Memory) -> Any:
    """The subgroups of the rows that were learned from, where those of the whole table were given."""
    if by is None or isinstance(by, str) or not hasattr(by, "__len__") or len(by) != memory.given:
        return by
    if hasattr(by, "iloc"):
        return by.iloc[memory.rows]
    values = list(by)
    return [values[i] for i in memory.rows]


def read_groups(by: Any, frame: pd.DataFrame) -> tuple[list[Hashable], IntArray]:
    """The subgroups and the one of each row; rows without a value are a subgroup of their own.

    Args:
        by: the name of a column, or a value for each row.
        frame: the table.
    """
    import pandas as pd

    if by is None:
        raise UsageError("say which subgroups: by= the name of a column, or a value for each row.")
    if isinstance(by, str):
        if by not in frame.columns:
            raise UnknownNameError("column of the table:", by, map(str, frame.columns))
        by = frame[by]
    if isinstance(by, pd.DataFrame) or not hasattr(by, "__iter__"):
        raise UsageError("by must be the name of one column, or one value for each row.")
    check_order(by, frame, "by")
    values = pd.Series(by.array if isinstance(by, pd.Series) else list(by))
    if len(values) != len(frame):
        raise UsageError(
            f"by must give the subgroup of each of the {len(frame):,} rows; it has {len(values):,} values."
        )
    codes, found = pd.factorize(values, use_na_sentinel=False)
    names = list(found)
    order = [i for i, name in enumerate(names) if not pd.isna(name)]
    missing = [i for i, name in enumerate(names) if pd.isna(name)]
    try:
        order.sort(key=lambda i: names[i])
    except TypeError:
        order.sort(key=lambda i: str(names[i]))
    order += missing
    place = np.empty(len(names), np.int64)
    place[order] = np.arange(len(names))
    return [names[i] for i in order], place[codes]


def _known_bags(header: Header, memory: Memory | None, asked: Asked, frame: pd.DataFrame) -> KnownBags | None:
    """The bags of the rows: those of the fit, those that were given, or none."""
    given = [what for what in (asked.counts, asked.proportions) if what is not None]
    if asked.X is None and memory is not None:
        if given or asked.bag_of is not None:
            raise UsageError("without X the bags and counts are those of the fit; give X to give others.")
        trainer = memory.trainer
        return KnownBags(trainer.bags.numbers, _all_counts(trainer.counts, trainer.bags), trainer.count_sd)
    if asked.bag_of is None:
        if given:
            raise UsageError("counts are of bags: give the bag of each row as bag_of.")
        return None
    if not given:
        bag_of = asked.bag_of
        if isinstance(bag_of, str):
            if bag_of not in frame.columns:
                raise UnknownNameError("column of the table:", bag_of, map(str, frame.columns))
            bag_of = frame[bag_of]
        return KnownBags(read_bag_ids(bag_of, len(frame)).numbers, None)
    found = read_bagged_table(
        frame,
        asked.bag_of,
        asked.counts,
        asked.proportions,
        classes=header.classes,
        count_sd=asked.count_sd,
        to_learn=False,
    )
    if len(found.rows) < len(frame):
        raise UsageError("the counts of some bags are not known; leave out their rows, or give no counts at all.")
    return KnownBags(found.bags.numbers, _all_counts(found.counts, found.bags), found.count_sd)


def _all_counts(counts: FloatArray, bags: BagIds) -> FloatArray:
    """(bags, C) counts of all classes."""
    return np.hstack([bags.sizes[:, None] - counts, counts]) if counts.shape[1] == 1 else counts


def _bag_effect(header: Header) -> FloatArray:
    """(C,) variance of a bag's proportions beyond chance."""
    if header.facts is None:
        return np.zeros(len(header.classes))
    shares = np.array(header.facts.card.shares)
    return np.asarray(header.facts.score.phi * shares * (1.0 - shares))


def _with_halves(memory: Memory | None, wanted: int) -> Memory | None:
    """The memory with at least so many cuts into halves, where the method can be fitted on them."""
    if memory is None:
        return None
    made = list(memory.halves)
    while len(made) < wanted:
        cut = memory.trainer.halve(memory.train, memory.held, len(made))
        if cut is None:
            break
        made.append(cut)
    return replace(memory, halves=tuple(made))


def _half_logits(header: Header, half: UnseenBags, features: FloatArray) -> FloatArray:
    """Logits of a half's model, shrunk by the slope of the model and brought to the level of its own bags."""
    logits = half.predictor.logits(features)
    if header.shrinkage is None:
        return logits
    return make_shrinkage(header.shrinkage.slope, half.logits, half.shares).logits(logits)


def _as_frame(
    header: Header, names: list[Hashable], found: Totals, model: FloatArray, level: float, cuts: int
) -> pd.DataFrame:
    import pandas as pd

    reach = quantile(level, found.variance, model, cuts) * np.sqrt(found.variance + model)
    low = np.clip(found.total - reach, found.least, found.most)
    high = np.clip(found.total + reach, found.least, found.most)
    classes = len(header.classes)
    shown = [1] if classes == 2 else list(range(classes))
    if classes == 2:
        index: pd.Index[Any] = pd.Index(names, name="subgroup", tupleize_cols=False)
    else:
        index = pd.MultiIndex.from_product([names, header.classes], names=["subgroup", "class"])
    columns = {"total": found.total, "low": low, "high": high, "least": found.least, "most": found.most}
    values = {name: array[:, shown].ravel() for name, array in columns.items()}
    return pd.DataFrame({"rows": np.repeat(found.rows, len(shown)), **values}, index=index)
