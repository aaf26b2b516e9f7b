"""``llpbench.disclosure``: how many labels of single rows a set of published tables of counts gives away.

The attack is the method ``bag-logistic[decode=yes]``: a logistic regression that is fitted to the tables themselves
gives the prior of each row, and belief propagation over the counts of all tables its posterior. Labels that follow from
the counts by arithmetic alone are found separately, since they are certain without any model.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llpbench.contracts.data import Bags, FloatArray, IntArray, read_only
from llpbench.contracts.errors import LLPWarning, UsageError
from llpbench.contracts.protocols import QuietMonitor
from llpbench.experiment.bags import overlap_of
from llpbench.experiment.privacy import count_noise_sd, count_sensitivity, epsilon_of
from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.disclosure_report import LEVELS, Disclosure
from llpbench.owndata.reading.arguments import check_column, check_width, read_classes
from llpbench.owndata.reading.bagged_table import read_whole
from llpbench.owndata.reading.forms import as_frame, check_order
from llpbench.owndata.reading.frames import fit_encoder
from llpbench.owndata.reading.groupings import Grouping, describe_totals, describe_uncovered, read_groupings
from llpbench.owndata.reading.margins import form_tables
from llpbench.owndata.threads import one_thread
from llpbench.plugins.registry import method_spec

if TYPE_CHECKING:
    import pandas as pd

BoolArray = NDArray[np.bool_]

ATTACK = "bag-logistic"
_ROUNDED = 12.0**-0.5
"""Standard deviation of a count that is known up to rounding to a whole number."""


def disclosure(
    table: Any,
    counts: Any = None,
    *,
    tables: str | None = None,
    truth: Any = None,
    features: bool | Sequence[str] = True,
    epsilon: float | Sequence[float] | None = (10.0, 1.0),
    delta: float = 1e-5,
    draws: int = 3,
    classes: Sequence[Any] | None = None,
    count_sd: Any = 0.0,
    seed: int = 0,
) -> Disclosure:
    """Attack published tables of counts: how certain is the label of each row?

    Args:
        table: the rows: a DataFrame (pandas, polars) or an array.
        counts: the published tables, in the forms of ``fit``: Series whose index names are columns of the table, pairs
            (bag_of, counts), and others.
        tables: instead of ``counts``: the tables to form from the true labels, as columns separated by commas:
            ``"education,age:6+sex"`` is a table by education and one by six bands of age, crossed with sex.
        truth: the true labels, or the name of their column (which is then not a feature). The attack does not see
            them: they form the ``tables``, and tell how many certain labels are right.
        features: whether the attacker knows the columns of the table, or a list of those that are known. With False
            the tables are all there is.
        epsilon: strengths of Gaussian noise to try on the counts; each is that of the whole release. None for none.
        delta: of the noise, whose standard deviation is the least that is (epsilon, delta)-private.
        draws: number of draws of the noise, over which results are averaged.
        classes: names of the classes; by default those of the tables.
        count_sd: standard deviation of noise that the counts already have, as for ``fit``.
        seed: seed of the noise.

    Returns:
        What the attack finds: ``print`` it, ``to_html`` writes a page, ``table`` and ``rows`` are data frames.

    Warns:
        LLPWarning: belief propagation did not converge; tables contradict each other, or do not cover all rows.

    Raises:
        UsageError: an argument is invalid.
    """
    seed, draws = read_whole(seed, "seed"), read_whole(draws, "draws", least=1)
    given = [] if epsilon is None else epsilon if isinstance(epsilon, Sequence | np.ndarray) else [epsilon]
    strengths = [strength for each in given if (strength := epsilon_of(str(each))) is not None]
    frame = as_frame(table)
    if frame.columns.has_duplicates:
        raise UsageError(f"the table has several columns named {frame.columns[frame.columns.duplicated()][0]!r}.")
    if (counts is None) == (tables is None):
        raise UsageError("give either counts, the published tables, or tables, those to form from the true labels.")
    frame, labels = _take_truth(frame, truth)
    if tables is not None:
        if labels is None:
            raise UsageError("tables are formed from the true labels: pass truth, their column or their values.")
        counts = form_tables(frame, tables, labels)
    groupings = read_groupings(frame, counts, classes=read_classes(classes), count_sd=count_sd, to_learn=False)
    about_counts = [column for grouping in groupings for column in grouping.columns]
    published = _Release.of(groupings, _features(frame.drop(columns=about_counts), features))
    names = groupings[0].counts.classes
    known = None if labels is None else _codes(labels, names)[published.rows]
    notes = [note for note in (describe_totals(groupings), describe_uncovered(groupings)) if note]

    determined = determined_labels(published.incidence, published.low, published.high)
    if determined is None:
        notes.append("no labels agree with all counts as exact numbers; if they are noisy, pass count_sd.")
        determined = np.full(len(published.rows), -1)
    with one_thread():
        found = infer(published.bags, seed)
        posterior = found.posterior.copy()
        posterior[determined >= 0] = np.eye(len(names))[determined[determined >= 0]]
        lines = [
            published.lines("columns alone" if features else "overall share alone", [found.prior], known),
            published.lines("as published", [posterior], known, determined, converged=found.converged),
        ]
        for strength in strengths:
            sd = count_noise_sd(strength, delta, "analytic", count_sensitivity(len(names), published.most))
            tried = []
            for draw in range(draws):
                rng = np.random.default_rng(derive_seed("disclosure", seed=seed, draw=draw, epsilon=strength))
                tried.append(infer(with_noise(published.bags, sd, rng), seed))
            settled = float(np.mean([each.converged for each in tried]))
            lines.append(
                published.lines(
                    f"epsilon {strength:g}",
                    [each.posterior for each in tried],
                    known,
                    epsilon=strength,
                    noise_sd=sd,
                    converged=settled,
                )
            )
    import pandas as pd

    result = Disclosure(
        table=pd.concat(lines, ignore_index=True),
        rows=_row_table(frame, published.rows, names, posterior, determined, labels),
        classes=tuple(map(str, names)),
        counts=len(published.bags),
        groupings=tuple(grouping.name for grouping in groupings),
        draws=draws,
        delta=delta,
        notes=tuple(notes),
    )
    for note in result.warnings():
        warnings.warn(note, LLPWarning, stacklevel=2)
    return result


# -- the attack --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inferred:
    """Labels of rows by the attack.

    Attributes:
        prior: (n, C) probabilities by the regression alone.
        posterior: (n, C) given the counts of the row's groups.
        converged: whether belief propagation settled.
    """

    prior: FloatArray
    posterior: FloatArray
    converged: bool


class _Recorder(QuietMonitor):
    """Keeps pseudo-labels and notes."""

    def __init__(self) -> None:
        self.labels: dict[str, FloatArray] = {}
        self.notes: dict[str, Any] = {}

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        p = np.asarray(probabilities, np.float64)
        self.labels[stage] = np.column_stack([1.0 - p, p]) if p.ndim == 1 else p

    def note(self, name: str, value: float | str | bool) -> None:
        self.notes[name] = value


def infer(bags: Bags, seed: int = 0) -> Inferred:
    """Attack the counts of overlapping bags."""
    spec, told = method_spec(ATTACK), _Recorder()
    spec.load()(**spec.resolve({"decode": "yes"})).fit(bags, monitor=told, seed=seed)
    return Inferred(told.labels["prior"], told.labels["counts"], bool(told.notes["bp converged"]))


def with_noise(bags: Bags, sd: float, rng: np.random.Generator) -> Bags:
    """The bags with Gaussian noise added to every count."""
    assert bags.overlap is not None
    noise = np.hypot(bags.overlap.count_sd, sd)
    return replace(
        bags,
        counts=read_only(bags.counts + rng.normal(0.0, sd, bags.counts.shape)),
        count_sd=float(np.sqrt(np.mean(noise**2))),
        overlap=replace(bags.overlap, count_sd=read_only(noise)),
    )


def determined_labels(incidence: Any, low: FloatArray, high: FloatArray) -> IntArray | None:
    """(n,) the label that follows from the counts by arithmetic, -1 where none does; None for contradictory counts.

    A group in which as many rows can be of a class as there must be gives them this class, and a group that already has
    all its rows of a class excludes it for the others. This is repeated until nothing changes. It finds what single
    counts imply, one after the other, and not everything that follows from several counts together.

    Args:
        incidence: (bags, n) sparse matrix of the bags' rows.
        low: (bags, C) least counts.
        high: (bags, C) largest counts.
    """
    low, high = np.ceil(low - 0.01), np.floor(high + 0.01)
    possible = np.ones((incidence.shape[1], low.shape[1]), bool)
    while True:
        certain = possible & (possible.sum(axis=1, keepdims=True) == 1)
        most, least = incidence @ possible.astype(np.float64), incidence @ certain.astype(np.float64)
        if (most < low).any() or (least > high).any():
            return None
        excluded = (incidence.T @ (least >= high).astype(np.float64) > 0) & ~certain
        required = (incidence.T @ (most <= low).astype(np.float64) > 0) & possible
        left = possible & ~excluded & (required | ~required.any(axis=1, keepdims=True))
        if not left.any(axis=1).all() or (required.sum(axis=1) > 1).any():
            return None
        if (left == possible).all():
            return np.where(left.sum(axis=1) == 1, left.argmax(axis=1), -1)
        possible = left


# -- rows and groups ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Release:
    """The published tables as bags.

    Attributes:
        bags: the rows of at least one table, and the counts of all groups.
        rows: numbers of these rows in the table.
        incidence: (bags, n) sparse matrix of the bags' rows.
        low, high: (bags, C) bounds of the counts; none for noisy ones.
        groups: (bags,) name of the grouping and of the group of each bag.
    """

    bags: Bags
    rows: IntArray
    incidence: Any
    low: FloatArray
    high: FloatArray
    groups: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, groupings: Sequence[Grouping], encoded: tuple[FloatArray, Any]) -> _Release:
        """The bags of all groups whose counts are known."""
        used = {
            g.name: np.where(g.numbers >= 0, np.where(g.counts.known[g.numbers], g.numbers, -1), -1) for g in groupings
        }
        rows = np.flatnonzero(np.any([numbers >= 0 for numbers in used.values()], axis=0))
        overlap, offsets = overlap_of({name: numbers[rows] for name, numbers in used.items()})
        parts, groups = [], []
        for grouping in groupings:
            own = np.unique(used[grouping.name][rows])
            own = own[own >= 0]
            groups += [(grouping.name, _shown(grouping.keys[b])) for b in own]
            parts.append((own, grouping))
        counts = np.concatenate([g.counts.counts[own] for own, g in parts])
        low, high = (
            np.concatenate([getattr(g.counts.within, side)[own] for own, g in parts]) for side in ("low", "high")
        )
        noise = np.concatenate([np.hypot(g.counts.within.sd, g.rounding)[own] for own, g in parts])
        between = np.max(((high - low + 1.0) ** 2 - 1.0) / 12.0, axis=1)
        between = np.where((np.abs(low - np.rint(low)) > 0.01).any(axis=1), np.maximum(between, _ROUNDED**2), between)
        sizes = np.diff(offsets)[:, None].astype(np.float64)
        noisy = (noise > 0.0)[:, None]
        count_sd = np.sqrt(noise**2 + between)
        X, columns = encoded
        bags = Bags(
            X=read_only(X[rows]),
            offsets=offsets,
            counts=read_only(counts),
            classes=low.shape[1],
            count_sd=float(np.sqrt(np.mean(count_sd**2))),
            columns=columns,
            overlap=replace(overlap, count_sd=read_only(count_sd)),
        )
        incidence = csr_matrix((np.ones(len(overlap.members)), overlap.members, offsets), (len(bags), len(rows)))
        return cls(bags, rows, incidence, np.where(noisy, 0.0, low), np.where(noisy, sizes, high), tuple(groups))

    @property
    def most(self) -> int:
        """The largest number of tables that count a row."""
        return int(np.bincount(self.bags.members).max())

    def lines(
        self,
        release: str,
        found: Sequence[FloatArray],
        truth: IntArray | None,
        determined: IntArray | None = None,
        *,
        epsilon: float = np.nan,
        noise_sd: float = 0.0,
        converged: float = 1.0,
    ) -> pd.DataFrame:
        """Numbers of rows that are certain, of all rows and by group; means over draws."""
        import pandas as pd

        columns: dict[str, FloatArray] = {}
        none = np.zeros(len(self.rows))
        columns["by_arithmetic"] = none if determined is None else (determined >= 0).astype(np.float64)
        for level in LEVELS:
            sure = [p.max(axis=1) >= level for p in found]
            columns[f"certain_{100 * level:g}"] = np.mean(sure, axis=0)
            if truth is not None:
                right = [one & (p.argmax(axis=1) == truth) for one, p in zip(sure, found, strict=True)]
                columns[f"right_{100 * level:g}"] = np.mean(right, axis=0)
        if truth is not None:
            columns["right"] = np.mean([p.argmax(axis=1) == truth for p in found], axis=0)
        values = np.column_stack(list(columns.values()))
        lines = pd.DataFrame(np.vstack([values.sum(axis=0), self.incidence @ values]), columns=list(columns))
        facts = {"release": release, "epsilon": epsilon, "noise_sd": noise_sd, "converged": float(converged)}
        facts["grouping"], facts["group"] = (list(each) for each in zip(("", ""), *self.groups, strict=True))
        facts["rows"] = [len(self.rows), *self.bags.sizes.tolist()]
        return pd.concat([pd.DataFrame(facts), lines], axis=1)


def _shown(key: Any) -> str:
    return " + ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _features(frame: pd.DataFrame, features: bool | Sequence[str]) -> tuple[FloatArray, Any]:
    """The encoded columns that the attacker knows, and their descriptions."""
    if features is False:
        return np.zeros((len(frame), 1), np.float32), ()
    if isinstance(features, str):
        features = [features]
    chosen = frame if features is True else frame[[check_column(name, frame) for name in features]]
    encoder = fit_encoder(chosen, np.arange(len(frame)))
    check_width(encoder.width, "features")
    return encoder.transform(chosen), encoder.described()


def _take_truth(frame: pd.DataFrame, truth: Any) -> tuple[pd.DataFrame, pd.Series[Any] | None]:
    """The table without its column of true labels, and these labels."""
    import pandas as pd

    if truth is None:
        return frame, None
    if isinstance(truth, str):
        labels, frame = frame[check_column(truth, frame)], frame.drop(columns=truth)
    else:
        check_order(truth, frame, "truth")
        labels = truth if isinstance(truth, pd.Series) else pd.Series(np.asarray(truth).tolist())
    if len(labels) != len(frame):
        raise UsageError(f"truth must have a label for each of the {len(frame):,} rows, got {len(labels):,}.")
    if labels.isna().any():
        raise UsageError(f"the true label is missing for {int(labels.isna().sum()):,} rows.")
    return frame, labels.reset_index(drop=True)


def _codes(labels: pd.Series[Any], classes: list[Any]) -> IntArray:
    place = {name: number for number, name in enumerate(classes)}
    given = labels.tolist()
    if unknown := sorted({str(name) for name in given if name not in place}):
        raise UsageError(
            f"the true labels contain {', '.join(unknown[:3])}, but the classes of the tables are "
            f"{', '.join(map(str, classes))}; name them with classes, in their order."
        )
    return np.array([place[name] for name in given], np.int64)


def _row_table(
    frame: pd.DataFrame,
    rows: IntArray,
    names: list[Any],
    posterior: FloatArray,
    determined: IntArray,
    labels: pd.Series[Any] | None,
) -> pd.DataFrame:
    """The most probable label of each row of a table, its probability, and whether arithmetic alone tells it."""
    import pandas as pd

    best = posterior.argmax(axis=1)
    found = pd.DataFrame(
        {
            "label": np.array(names, object)[best],
            "probability": posterior.max(axis=1),
            "by_arithmetic": determined >= 0,
        },
        index=frame.index[rows],
    )
    return found if labels is None else found.assign(right=labels.to_numpy()[rows] == found["label"].to_numpy())
