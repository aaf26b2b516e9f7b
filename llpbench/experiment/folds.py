"""Cross-validation over bags: the method is fitted without each fold of the bags once, and evaluated on that fold.

If bags are large, there are few held-out bags (three of 2,048 rows on Adult), and a choice based on them is noisy. With
folds every bag is held out once. The fits give the value of a *place* (a stage and a number of reports),

    V(place) = Σ_f n_f v_f(place) / Σ_f n_f

with ``v_f`` the rule's value on the ``n_f`` rows of fold ``f``. From the fit on the training bags, the report at the
best place is selected. A place that some fit did not reach has no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Bags, IntArray, read_only
from llpbench.contracts.errors import Skip
from llpbench.contracts.specs import RuleSpec
from llpbench.experiment.rules import ReportPlace
from llpbench.experiment.seeds import derive_seed
from llpbench.experiment.split import bags_seed


@dataclass(frozen=True)
class Fold:
    """Training bags with one fold held out, and the labels of both in bag order (for the judge)."""

    bags: Bags
    train_labels: IntArray
    valid_labels: IntArray


def make_folds(bags: Bags, train_labels: IntArray, valid_labels: IntArray, cell: Cell) -> Iterator[Fold]:
    """Divide all training and held-out bags into ``cell.folds`` folds; each is held out once.

    With fewer bags than folds, each bag is a fold.

    Raises:
        Skip: there is a single bag.
    """
    pooled = pool(bags)
    labels = np.concatenate([train_labels, valid_labels])
    rng = np.random.default_rng(derive_seed("folds", bags=bags_seed(cell), folds=cell.folds))
    parts = deal(len(pooled), cell.folds, rng)
    for held in parts:
        kept = np.setdiff1d(np.arange(len(pooled)), held)
        valid, valid_rows = take(pooled, held)
        train, train_rows = take(pooled, kept)
        yield Fold(replace(train, validation=valid), labels[train_rows], labels[valid_rows])


def deal(n: int, folds: int, rng: np.random.Generator) -> list[IntArray]:
    """Divide ``n`` bags into ``folds`` parts at random; sizes differ by at most one."""
    if n < 2:
        raise Skip(f"folds over bags need at least two bags; there is {n}")
    return [np.sort(part) for part in np.array_split(rng.permutation(n), min(folds, n))]


def pool(bags: Bags) -> Bags:
    """Training and held-out bags as one set."""
    assert bags.validation is not None
    valid = bags.validation
    pooled = replace(
        bags,
        X=read_only(np.concatenate([bags.X, valid.X])),
        offsets=read_only(np.concatenate([bags.offsets, bags.offsets[-1] + valid.offsets[1:]])),
        counts=read_only(np.concatenate([bags.counts, valid.counts])),
        validation=None,
    )
    if bags.overlap is None or valid.overlap is None:
        return pooled
    one, two = bags.overlap, valid.overlap
    overlap = replace(
        one,
        members=read_only(np.concatenate([one.members, len(bags.X) + two.members])),
        grouping_of=read_only(np.concatenate([one.grouping_of, two.grouping_of])),
        count_sd=read_only(np.concatenate([one.count_sd, two.count_sd])),
    )
    order = np.argsort(overlap.grouping_of, kind="stable")
    return take(replace(pooled, overlap=overlap), order)[0]


def take(bags: Bags, chosen: IntArray) -> tuple[Bags, IntArray]:
    """A subset of the bags, and the indices of their rows (of overlapping bags: in ascending order)."""
    rows = entries = np.concatenate([np.arange(bags.offsets[b], bags.offsets[b + 1]) for b in chosen])
    overlap = bags.overlap
    if overlap is not None:
        rows, members = np.unique(overlap.members[entries], return_inverse=True)
        overlap = replace(
            overlap,
            members=read_only(members.reshape(-1)),
            grouping_of=read_only(overlap.grouping_of[chosen]),
            count_sd=read_only(overlap.count_sd[chosen]),
        )
    offsets = np.concatenate([[0], np.cumsum(bags.sizes[chosen])])
    part = replace(
        bags,
        X=read_only(bags.X[rows]),
        offsets=read_only(offsets),
        counts=read_only(bags.counts[chosen].copy()),
        overlap=overlap,
    )
    return part, rows


@dataclass(frozen=True)
class FoldValues:
    """One fold: the number of held-out rows, and for each report its place and its value under every rule."""

    rows: int
    places: Sequence[ReportPlace]
    history: Sequence[Mapping[str, float | None]]


def values_of_places(folds: Sequence[FoldValues], rules: Iterable[RuleSpec]) -> dict[str, dict[ReportPlace, float]]:
    """For each rule, the mean value of every place that all folds reached, weighted by the held-out rows."""
    weights = [fold.rows for fold in folds]
    return {rule.name: _means([_by_place(fold, rule.name) for fold in folds], weights) for rule in rules}


def _by_place(fold: FoldValues, rule: str) -> dict[ReportPlace, float]:
    values = [(place, report.get(rule)) for place, report in zip(fold.places, fold.history, strict=True)]
    return {place: value for place, value in values if value is not None}


def _means(folds: Sequence[Mapping[ReportPlace, float]], weights: Sequence[int]) -> dict[ReportPlace, float]:
    shared = [place for place in folds[0] if all(place in fold for fold in folds)]
    return {place: float(np.average([fold[place] for fold in folds], weights=weights)) for place in shared}
