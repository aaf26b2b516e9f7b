"""``llpbench.compare``: which method suits a table of one's own? Cross-validation over bags, without any label.

The bags are cut into folds, the same for all methods. Each method is fitted on the bags of the other folds, as
``llpbench.fit`` does it (with validation bags of its own among them, which also say how sure it may be), predicts the
rows of the fold that was left out, and is scored by how likely these predictions make the known counts
(``owndata/judging/held_out.py``), against a constant: the overall rate of the same training bags.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from llpbench.contracts.data import FloatArray, IntArray
from llpbench.contracts.errors import LLPBenchError, UsageError, describe, printable
from llpbench.contracts.specs import MethodSpec, Scalar
from llpbench.experiment.seeds import derive_seed
from llpbench.owndata.comparison import CONSTANT, Comparison, Trial, summarise
from llpbench.owndata.fit import fit_table
from llpbench.owndata.fitting.method import find_method
from llpbench.owndata.judging.held_out import HeldOutCounts, sum_predictions
from llpbench.owndata.reading.arguments import read_whole
from llpbench.owndata.reading.bagged_table import BaggedTable, read_bagged_table
from llpbench.plugins.options import expand, format_options, parse_options, split_list
from llpbench.plugins.registry import Registry, load_registry, unmet_needs

FOLDS = 5
LEAST_BAGS = 4
_REPEAT_BELOW, _REPEATS = 30, 3

Predictor = Callable[[BaggedTable, BaggedTable, int], FloatArray]
"""Learns from some bags with a seed and gives (n, C) probabilities for the rows of others."""


@dataclass(frozen=True)
class Candidate:
    """A method with the parameters that were asked for, and the label of both."""

    name: str
    params: Mapping[str, Scalar]

    @property
    def label(self) -> str:
        """The name with its parameters, as typed."""
        return format_options(self.name, self.params)


def compare(
    X: Any,
    bag_of: Any,
    counts: Any = None,
    *,
    proportions: Any = None,
    methods: str | Iterable[str] | None = None,
    classes: Sequence[Any] | None = None,
    count_sd: float = 0.0,
    folds: int = FOLDS,
    repeats: int | None = None,
    validation: float = 0.1,
    seed: int = 0,
    backend: str = "",
    encoding: str = "table",
    plugins: Iterable[str | Path] = (),
    progress: bool | Callable[[str], None] = True,
) -> Comparison:
    """Compare methods on a table of one's own, with bags and counts but no labels.

    Args:
        X: the table, as for ``fit``; so are ``bag_of``, ``counts``, ``proportions``, ``classes`` and ``count_sd``.
        bag_of: the bag of each row.
        counts: counts of each bag.
        proportions: shares instead of counts.
        methods: names with options in brackets (``"mean-ridge,dllp[lr=0.01]"``, or a list of them); all that say of
            themselves that they are quick, when not given.
        classes: names of the classes.
        count_sd: standard deviation of noise in the counts.
        folds: folds of bags; as many as there are bags, if these are fewer.
        repeats: how often the bags are cut into folds anew; when not given 3 times below 30 bags, otherwise once.
        validation: share of the training bags that each fit holds back for itself.
        seed: seed of the folds and of the fits.
        backend: backend of networks, for the methods that have any.
        encoding: ``table`` or ``none``, as for ``fit``.
        plugins: single-file plugins to load first.
        progress: a line on standard error for each fit (True), nothing (False), or who is told each line.

    Returns:
        The comparison: print it, or look at ``table`` and ``recommended``. A method that fails is reported in it.

    Raises:
        UsageError: the request cannot be served, with what is wrong.
    """
    table = read_bagged_table(X, bag_of, counts, proportions, classes=classes, count_sd=count_sd)
    n = len(table.bags.ids)
    if n < LEAST_BAGS:
        raise UsageError(f"there are {n} bags with known counts; a comparison needs {LEAST_BAGS} at least.")
    seed = read_whole(seed, "seed")
    folds = min(read_whole(folds, "folds", least=2), n)
    repeats = read_whole(repeats, "repeats", least=1) if repeats is not None else (_REPEATS if n < _REPEAT_BELOW else 1)
    files = [Path(p) for p in plugins]
    registry = load_registry(files)
    candidates = choose_methods(registry, methods, len(table.classes))
    options = {"validation": validation, "encoding": encoding, "plugins": files}
    cuts = [fold_numbers(n, folds, derive_seed("folds", seed=seed, repeat=r)) for r in range(repeats)]
    say = progress if callable(progress) else _say if progress else _say_nothing
    constant = run_trial(CONSTANT, predict_constant, table, cuts, seed, _say_nothing)
    trials = [run_trial(c.label, _predictor(c, registry, backend, options), table, cuts, seed, say) for c in candidates]
    ids = table.bags.ids
    return summarise(trials, replace(constant, seconds=()), ids=ids, folds=folds, repeats=repeats, notes=table.notes)


def choose_methods(registry: Registry, methods: str | Iterable[str] | None, classes: int) -> list[Candidate]:
    """The methods that are named; otherwise all quick ones that can run here and take so many classes.

    Raises:
        UsageError: a method is not known, or not one that learns from bags.
    """
    if methods is None:
        return [Candidate(spec.name, {}) for spec in _quick_methods(registry, classes)]
    names = split_list(methods) if isinstance(methods, str) else list(methods)
    found: dict[str, Candidate] = {}
    for text in names:
        name, given = parse_options(text)
        spec = find_method(registry, name).spec
        for params in expand(spec, given):
            candidate = Candidate(name, params)
            found[candidate.label] = candidate
    if not found:
        raise UsageError("methods is empty; name at least one.")
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
        raise UsageError(f"no installed method is both quick and for {classes} classes; name some in methods.")
    return chosen


def fold_numbers(n: int, folds: int, seed: int) -> IntArray:
    """(n,) the fold of each bag: drawn at random, sizes that differ by one at most."""
    numbers: IntArray = np.random.default_rng(seed).permutation(np.arange(n) % folds)
    return numbers


def run_trial(
    label: str, predict: Predictor, table: BaggedTable, cuts: list[IntArray], seed: int, say: Callable[[str], None]
) -> Trial:
    """Score one method on every fold of every cut; its first failure ends it, and is its reason."""
    repeats, bags = len(cuts), len(table.bags.ids)
    held: list[list[tuple[IntArray, HeldOutCounts]]] = []
    seconds: list[float] = []
    fits = sum(len(np.unique(cut)) for cut in cuts)
    for r, cut in enumerate(cuts):
        held.append([])
        for fold, (train, test) in enumerate(_folds(cut)):
            began = time.perf_counter()
            try:
                learned_from, left_out = table.take(train), table.take(test)
                p = predict(learned_from, left_out, derive_seed("compare", seed=seed, repeat=r, fold=fold))
            except Exception as error:  # one method that fails must not take the others with it
                reason = printable(str(error)) if isinstance(error, LLPBenchError) else describe(error)
                say(f"{label}: failed: {reason}")
                return Trial(label, np.empty((0, bags)), np.empty((0, bags)), reason=reason)
            seconds.append(time.perf_counter() - began)
            sums = sum_predictions(p, left_out.bags.numbers, left_out.counts, left_out.bags.sizes, table.count_sd)
            held[-1].append((test, sums))
            say(f"{label}: fit {len(seconds)} of {fits}, {seconds[-1]:.1f} s")
    whole = [_join(parts) for parts in held]
    together = _stack(whole)
    logs, errors = together.log_likelihoods(), together.errors()
    return Trial(label, logs.reshape(repeats, bags), errors.reshape(repeats, bags), tuple(seconds))


def _folds(cut: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """For each fold the bags to learn from and those left out."""
    for fold in np.unique(cut):
        yield np.flatnonzero(cut != fold), np.flatnonzero(cut == fold)


def _join(parts: list[tuple[IntArray, HeldOutCounts]]) -> HeldOutCounts:
    """The bags of all folds, in the order of the table."""
    order = np.argsort(np.concatenate([test for test, _ in parts]))
    joined = _stack([held for _, held in parts])
    return replace(
        joined,
        counts=joined.counts[order],
        means=joined.means[order],
        variances=joined.variances[order],
        sizes=joined.sizes[order],
    )


def _stack(parts: list[HeldOutCounts]) -> HeldOutCounts:
    return HeldOutCounts(
        counts=np.concatenate([part.counts for part in parts]),
        means=np.concatenate([part.means for part in parts]),
        variances=np.concatenate([part.variances for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
        count_sd=parts[0].count_sd,
    )


def predict_constant(train: BaggedTable, test: BaggedTable, seed: int) -> FloatArray:
    """The overall rate of the training bags for every row."""
    del seed
    total = np.maximum(train.counts, 0.0).sum(axis=0)
    if len(total) == 1:
        total = np.append(max(float(train.bags.sizes.sum()) - float(total[0]), 0.0), total)
    shares = (total + 0.5) / (total + 0.5).sum()
    return np.tile(shares, (len(test.rows), 1))


def _predictor(candidate: Candidate, registry: Registry, backend: str, options: Mapping[str, Any]) -> Predictor:
    spec = find_method(registry, candidate.name).spec

    def predict(train: BaggedTable, test: BaggedTable, seed: int) -> FloatArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a fit has to say of itself, this comparison says of all
            model = fit_table(
                train,
                method=candidate.name,
                params=candidate.params,
                halvings=0,  # a fit for each fold, not three
                backend=backend if spec.backends else "",
                seed=seed,
                **options,
            )
            return model.predict_proba(test.features)

    return predict


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr, flush=True)


def _say_nothing(line: str) -> None:
    del line
