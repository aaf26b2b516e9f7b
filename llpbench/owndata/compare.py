"""``llpbench.compare``: compare methods on your own table by cross-validation over bags, without labels.

All methods get the same folds of bags. Each method is fitted on the other folds as by ``llpbench.fit`` (which holds out
some of these bags for itself), predicts the rows of the held-out fold, and is scored by the likelihood of the known
counts (``owndata/judging/held_out.py``), relative to a constant: the overall share in the same training bags.

Predictions are shrunk as ``llpbench.fit`` shrinks those of a model, by these held-out bags and by the agreement of fits
on two halves of the first training bags, so that a method is judged by what its user gets, and called better than a
constant by the rule that ``fit`` uses.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.contracts.data import Bags, FloatArray, IntArray
from llpbench.contracts.errors import LLPBenchError, UsageError, describe, printable
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.experiment.count_laws import all_classes
from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.comparison import CONSTANT, Comparison, MethodScores, summarise
from llpbench.owndata.fit import DEFAULT_METHOD, DEFAULT_PARAMS, fit_table
from llpbench.owndata.fitting import find_method
from llpbench.owndata.judging.assessment import interval_of_mean
from llpbench.owndata.judging.facts import clearly_better
from llpbench.owndata.judging.held_out import HeldOutCounts, sum_predictions
from llpbench.owndata.judging.predictor import softmax
from llpbench.owndata.judging.shrinkage import make_shrinkage, predict_bags, weigh_slopes
from llpbench.owndata.judging.spread import class_shares, intraclass_correlation
from llpbench.owndata.model import LLPModel, agreement_of_halves, unshrunk
from llpbench.owndata.progress import say_nothing, speaker
from llpbench.owndata.reading.arguments import Arguments
from llpbench.owndata.reading.bagged_table import BaggedTable, read_bagged_table, read_whole
from llpbench.plugins.options import expand, format_options, parse_options
from llpbench.plugins.registry import Registry, load_registry, unmet_needs

FOLDS = 5
LEAST_BAGS = 4
_REPEAT_BELOW, _REPEATS = 30, 3
_MOST_ROWS = 5_000
_TINY = 1e-16

FitAndPredict = Callable[[BaggedTable, BaggedTable, int], FloatArray]
"""Fits on some bags with a seed, and returns (n, C) probabilities for the rows of others."""


@dataclass(frozen=True)
class Candidate:
    """A method and its parameters."""

    name: str
    params: Mapping[str, Scalar]

    @property
    def label(self) -> str:
        """The name with its parameters."""
        return format_options(self.name, self.params)


def compare(
    X: Any,
    bag_of: Any = None,
    counts: Any = None,
    *,
    proportions: Any = None,
    methods: str | Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    count_sd: Any = 0.0,
    folds: int = FOLDS,
    repeats: int | None = None,
    validation: float = 0.1,
    seed: int = 0,
    backend: str = "",
    encoding: str = "table",
    plugins: str | Path | Sequence[str | Path] = (),
    progress: bool | Callable[[str], None] = True,
) -> Comparison:
    """Compare methods on your own table, with bags and counts but no labels.

    Args:
        X: the table, as for ``fit``; so are ``bag_of``, ``counts``, ``proportions``, ``classes`` and ``count_sd``.
        bag_of: the bag of each row.
        counts: counts of each bag.
        proportions: shares instead of counts.
        methods: names with options in brackets (``"mean-ridge,dllp[lr=0.01]"``, or a list of them); by default all
            methods that are declared quick.
        classes: names of the classes.
        count_sd: standard deviation of noise in the counts, or one for each bag.
        folds: number of folds; at most one per bag.
        repeats: number of random partitions into folds; by default 3 below 30 bags, otherwise 1.
        validation: share of the training bags that each fit holds out for selecting its model.
        seed: seed of the folds and of the fits.
        backend: backend of the networks, for methods that have any.
        encoding: ``table`` or ``none``, as for ``fit``.
        plugins: single-file plugins to load first.
        progress: True for a line on standard error per fit, False for none, or a function that gets each line.

    Returns:
        The comparison: print it, or see ``table`` and ``recommended``. It includes methods that failed.

    Raises:
        UsageError: an argument is invalid.
    """
    files = [Path(path) for path in Arguments.plugins.read(plugins)]
    methods = None if methods is None else Arguments.methods.read(methods)
    table = read_bagged_table(X, bag_of, counts, proportions, classes=classes, count_sd=count_sd)
    n = len(table.bags.ids)
    if n < LEAST_BAGS:
        raise UsageError(f"a comparison needs at least {LEAST_BAGS} bags with known counts, got {n}.")
    seed = read_whole(seed, "seed")
    folds = min(read_whole(folds, "folds", least=2), n)
    repeats = read_whole(repeats, "repeats", least=1) if repeats is not None else (_REPEATS if n < _REPEAT_BELOW else 1)
    registry = load_registry(files)
    candidates = choose_methods(registry, methods, len(table.classes))
    options = {"validation": validation, "encoding": encoding, "plugins": files}
    cuts = [
        fold_numbers(n, folds, derive_seed("folds", seed=seed, repeat=r), table.bags.grouping_of)
        for r in range(repeats)
    ]
    say = speaker(progress)
    constant = run_trial(CONSTANT, predict_constant, table, cuts, seed, say_nothing)
    trials = []
    for c in candidates:
        predict, agree = _fit_and_predict(c, registry, backend, options)
        trials.append(run_trial(c.label, predict, table, cuts, seed, say, agree))
    ids = table.bags.ids
    return summarise(trials, replace(constant, seconds=()), ids=ids, folds=folds, repeats=repeats, notes=table.notes)


def choose_methods(registry: Registry, methods: Sequence[str] | None, classes: int) -> list[Candidate]:
    """The named methods; by default the quick ones that can run here and support the number of classes.

    The default method of ``fit`` has the parameters that it has there.
    """
    if methods is None:
        default = {DEFAULT_METHOD: DEFAULT_PARAMS}
        return [Candidate(spec.name, default.get(spec.name, {})) for spec in _quick_methods(registry, classes)]
    found: dict[str, Candidate] = {}
    for text in methods:
        name, given = parse_options(text)
        spec = find_method(registry, name).spec
        for params in expand(spec, given):
            candidate = Candidate(name, params)
            found[candidate.label] = candidate
    if not found:
        raise UsageError("methods is empty.")
    return list(found.values())


def _quick_methods(registry: Registry, classes: int) -> list[MethodSpec]:
    task = "binary" if classes == 2 else "multiclass"
    able = [
        entry.spec
        for entry in registry.methods
        if not entry.spec.oracle and not entry.spec.control and task in entry.spec.tasks
        if "features" in entry.spec.inputs and not unmet_needs(entry)
    ]
    chosen = [spec for spec in able if spec.quick]
    if not chosen:
        raise UsageError(f"no installed quick method supports {classes} classes; list methods explicitly.")
    return chosen


def fold_numbers(n: int, folds: int, seed: int, grouping_of: IntArray | None = None) -> IntArray:
    """(n,) the fold of each bag, drawn at random; fold sizes differ by at most one, also within each grouping."""
    rng = np.random.default_rng(seed)
    if grouping_of is None:
        return np.asarray(rng.permutation(np.arange(n) % folds))
    order = rng.permutation(n)
    numbers = np.empty(n, np.int64)
    numbers[order[np.argsort(grouping_of[order], kind="stable")]] = np.arange(n) % folds
    return numbers


def run_trial(
    label: str,
    predict: FitAndPredict,
    table: BaggedTable,
    cuts: list[IntArray],
    seed: int,
    say: Callable[[str], None],
    agree: Callable[[], float | None] | None = None,
) -> MethodScores:
    """Score one method on every fold of every partition, up to its first failure.

    Args:
        label: the method's label.
        predict: fits and predicts.
        table: all bags.
        cuts: the fold of each bag, for each partition.
        seed: seed of the fits.
        say: gets a line for each fit.
        agree: the agreement of fits on single rows (None for random bags), called after all fits. Predictions are then
            shrunk.
    """
    repeats, bags = len(cuts), len(table.bags.ids)
    found: list[FloatArray] = [np.empty((len(table.bags.numbers), len(table.classes))) for _ in cuts]
    seconds: list[float] = []
    fits = sum(len(np.unique(cut)) for cut in cuts)
    agreement, better = None, []
    try:
        for r, cut in enumerate(cuts):
            for fold, (train, test) in enumerate(_folds(cut)):
                began = time.perf_counter()
                unseen = table.take(test)
                p = predict(table.take(train), unseen, derive_seed("compare", seed=seed, repeat=r, fold=fold))
                seconds.append(time.perf_counter() - began)
                found[r][np.isin(table.bags.numbers, test)] = unseen.bags.entries(p)
                say(f"{label}: fit {len(seconds)} of {fits}, {seconds[-1]:.1f} s")
        if agree is not None:
            agreement = agree()
    except Exception as error:  # a failing method must not end the comparison
        reason = printable(str(error)) if isinstance(error, LLPBenchError) else describe(error)
        say(f"{label}: failed: {reason}")
        return MethodScores(label, np.empty((0, bags)), np.empty((0, bags)), reason=reason)
    if agree is not None:
        shrunk = [_shrink(p, table, cut, agreement) for p, cut in zip(found, cuts, strict=True)]
        found, better = [p for p, _ in shrunk], [is_better for _, is_better in shrunk]
    sums = [sum_predictions(p, table.bags.numbers, table.counts, table.bags.sizes, table.noise) for p in found]
    together = _concatenate(sums)
    logs, errors = together.log_likelihoods(), together.errors()
    return MethodScores(
        label,
        logs.reshape(repeats, bags),
        errors.reshape(repeats, bags),
        tuple(seconds),
        agreement=agreement,
        better=2 * sum(better) > len(better),
    )


def _shrink(p: FloatArray, table: BaggedTable, cut: IntArray, agreement: float | None) -> tuple[FloatArray, bool]:
    """Held-out predictions (of entries) with the slope that all held-out bags suggest, at most the agreement.

    Returns:
        The predictions, and whether they are clearly better than a constant.
    """
    order = np.argsort(table.bags.numbers, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(table.bags.sizes)])
    overlap = table.bags.overlap and replace(table.bags.overlap, members=np.arange(len(order)))  # entries are rows
    bags = Bags(
        np.zeros((len(order), 1), np.float32),
        offsets,
        table.counts,
        len(table.classes),
        table.count_sd,
        overlap=overlap,
    )
    logits, shares = np.log(np.maximum(p, _TINY)), class_shares(bags)
    sample = logits[:: -(-len(logits) // _MOST_ROWS)]
    known = all_classes(np.asarray(bags.proportions, np.float64))
    phi = intraclass_correlation(known, shares, bags.sizes, table.noise)
    evidence = weigh_slopes(predict_bags(sample, shares, logits[order], bags), phi)
    slope = evidence.slope if agreement is None else min(evidence.slope, agreement)
    shrunk = np.empty_like(p)
    for train, test in _folds(cut):
        rows = np.isin(table.bags.numbers, test)
        shrunk[rows] = softmax(make_shrinkage(slope, sample, _shares(table.take(train))).logits(logits[rows]))
    low, _ = interval_of_mean(evidence.gains(), 0)
    return shrunk, clearly_better(evidence.z, low, slope, agreement)


def _folds(cut: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """For each fold the training bags and the held-out bags."""
    for fold in np.unique(cut):
        yield np.flatnonzero(cut != fold), np.flatnonzero(cut == fold)


def _concatenate(parts: list[HeldOutCounts]) -> HeldOutCounts:
    """The bags of several partitions."""
    return HeldOutCounts(
        counts=np.concatenate([part.counts for part in parts]),
        means=np.concatenate([part.means for part in parts]),
        variances=np.concatenate([part.variances for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
        count_sd=np.tile(parts[0].count_sd, len(parts)) if np.ndim(parts[0].count_sd) else parts[0].count_sd,
    )


def predict_constant(train: BaggedTable, test: BaggedTable, seed: int) -> FloatArray:
    """The overall shares of the training bags for every row."""
    del seed
    return np.tile(_shares(train), (len(test.rows), 1))


def _shares(table: BaggedTable) -> FloatArray:
    """(C,) overall shares of the classes, half a row off 0."""
    total = np.maximum(table.counts, 0.0).sum(axis=0)
    if len(total) == 1:
        total = np.append(max(float(table.bags.sizes.sum()) - float(total[0]), 0.0), total)
    return np.asarray((total + 0.5) / (total + 0.5).sum())


def _fit_and_predict(
    candidate: Candidate, registry: Registry, backend: str, options: Mapping[str, Any]
) -> tuple[FitAndPredict, Callable[[], float | None]]:
    """A method's fits without shrinkage, and the agreement of fits on halves of its first training bags."""
    spec = find_method(registry, candidate.name).spec
    first: list[LLPModel] = []

    def predict(train: BaggedTable, test: BaggedTable, seed: int) -> FloatArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the comparison itself tells which methods are not better than a constant
            model = fit_table(
                train,
                method=candidate.name,
                params=candidate.params,
                halvings=0,  # one fit per fold
                backend=backend if spec.backends else "",
                seed=seed,
                **options,
            )
        if not first:
            first.append(model)
        return unshrunk(model, test.features)

    def agree() -> float | None:
        return agreement_of_halves(first[0])

    return predict, agree
