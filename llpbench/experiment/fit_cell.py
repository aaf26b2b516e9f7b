"""Prepare the data and the judge of a cell, and fill its result from what the judge selected."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Bags, FloatArray, IntArray, Split
from llpbench.contracts.errors import Skip
from llpbench.contracts.job import Job, MethodFacts
from llpbench.contracts.result import CellResult, Selected
from llpbench.contracts.specs import DEFAULT_RULE, NO_BAG, DatasetSpec, RuleSpec
from llpbench.experiment.bag_card import card_of, grouping_cards
from llpbench.experiment.folds import make_folds
from llpbench.experiment.forming import form_bags, uses_labels
from llpbench.experiment.judge import Best, Judge, finite, patience_of
from llpbench.experiment.monitor import HarnessMonitor, fit_method
from llpbench.experiment.rules import ReportPlace, bind, make_rules
from llpbench.experiment.scoring import Answers, digest_of_bags, digest_of_labels
from llpbench.experiment.seeds import derive_seed
from llpbench.experiment.split import bags_seed, load_split, split_seed
from llpbench.plugins.registry import Registry, unmet_needs

Predictions = dict[str, np.ndarray]
"""Test scores of the report that each rule selected, the labels of the test rows and (``bag_of``) their bags."""


@dataclass
class Prepared:
    """The data of a cell. ``bags`` and ``test_rows`` are for the method, the rest is for the judge only."""

    bags: Bags
    test_rows: FloatArray | None
    train_labels: IntArray
    valid_labels: IntArray
    test_labels: IntArray
    test_bag_of: IntArray | None = None

    def forget_rows(self) -> None:
        """Release the features that the method has now; the judge needs at most those of held-out bags."""
        assert self.bags.validation is not None
        self.bags, self.test_rows = self.bags.validation, None


def prepare_cell(job: Job, registry: Registry, result: CellResult) -> Prepared:
    """Load the data of a cell and form its bags; facts about them are recorded in ``result``."""
    cell = job.cell
    entry = registry.datasets.entry(cell.dataset)
    needs = unmet_needs(entry)
    if needs:
        raise Skip(needs)
    began = time.perf_counter()
    split = load_split(job, entry.spec)
    formed = form_bags(job, split, registry)
    split, bags = formed.split, formed.bags
    result.data_seconds = time.perf_counter() - began
    assert bags.validation is not None
    result.rows = {"train": len(split.train), "valid": len(split.valid), "test": len(split.test)}
    result.count_sd = bags.count_sd
    result.bags = {"train": len(bags), "valid": len(bags.validation)}
    result.seeds = {
        "split": split_seed(cell),
        "bags": bags_seed(cell),
        "method": method_seed(cell, job.method.seed_name),
    }
    result.rules = {s.name: s.version for s in registry.rules.specs if cell.folds or not s.cross_validated}
    result.digests = {"test_labels": digest_of_labels(split.test.y), "features": _digest_of_features(split)}
    result.rate = [float(share) for share in bags.prior]
    test_bags = int((np.unique(formed.test_bag_of) != NO_BAG).sum())
    if test_bags:
        result.bags["test"] = test_bags
        result.digests["test_bags"] = digest_of_bags(formed.test_bag_of)
    if not job.method.oracle:
        result.card = card_of(formed, uses_labels=uses_labels(cell, registry))
        result.groupings = grouping_cards(formed)
    _skip_mismatch(cell.method, job.method, entry.spec, split)
    tests = None if cell.tuning else split.test.X
    test_bag_of = formed.test_bag_of if test_bags else None
    return Prepared(bags, tests, formed.train_labels, formed.valid_labels, split.test.y, test_bag_of)


CrossValidated = Mapping[str, Mapping[ReportPlace, float]]
"""For each rule, the values of the places of a fit, from the fits on folds."""


def make_judge(job: Job, data: Prepared, registry: Registry, cross_validated: CrossValidated | None = None) -> Judge:
    """The judge of a cell. The only features it has are those of the held-out bags, which rules may use."""
    tests = None if data.test_rows is None else len(data.test_rows)
    return Judge(tests=tests, **_terms(job, data, registry, cross_validated))


def prepare_folds(job: Job, data: Prepared) -> Iterator[Prepared]:
    """The data of the further fits for cross-validated rules, without test rows."""
    for fold in make_folds(data.bags, data.train_labels, data.valid_labels, job.cell):
        yield Prepared(fold.bags, None, fold.train_labels, fold.valid_labels, data.test_labels[:0])


def make_fold_judge(job: Job, data: Prepared, registry: Registry) -> Judge:
    """The judge of one of the further fits: ``bags`` and the cross-validated rules use its held-out fold."""
    assert data.bags.validation is not None
    specs = [registry.rules[DEFAULT_RULE], *cross_validated_rules(registry)]
    rules = [bind(spec, data.bags.validation) for spec in specs]
    return Judge(tests=None, **{**_terms(job, data, registry), "rules": rules, "prune": ()})


def cross_validated_rules(registry: Registry) -> list[RuleSpec]:
    """The rules that need further fits."""
    return [spec for spec in registry.rules.specs if spec.cross_validated]


def make_monitor(job: Job, data: Prepared, registry: Registry) -> HarnessMonitor:
    """The judge of a cell whose method runs in the same process, for debugging."""
    return HarnessMonitor(test_rows=data.test_rows, **_terms(job, data, registry))


def fit_here(job: Job, data: Prepared, registry: Registry, monitor: HarnessMonitor) -> None:
    """Fit the method of a cell in this process, for debugging."""
    oracle = {"labels": data.train_labels} if job.method.oracle else {}
    method = registry.methods[job.cell.method].load()(**job.cell.params)
    seed = method_seed(job.cell, job.method.seed_name)
    fit_method(method, data.bags, monitor, seed, overlapping=job.method.overlapping, **oracle)


def _terms(
    job: Job, data: Prepared, registry: Registry, cross_validated: CrossValidated | None = None
) -> dict[str, Any]:
    assert data.bags.validation is not None
    return {
        "rules": make_rules(data.bags.validation, data.valid_labels, registry.rules.specs, cross_validated),
        "valid": data.bags.validation,
        "train_labels": data.train_labels,
        "classes": data.bags.classes,
        "score_kind": job.method.scores,
        "patience": patience_of(job.cell.params),
        "prune": job.prune,
    }


def method_seed(cell: Cell, name: str = "") -> int:
    """Seed of the method; it does not depend on the method's parameters.

    Args:
        cell: the cell.
        name: the name that the method's seeds are derived from, or the parameter (``"{method}"``) whose value it is; by
            default the name of the method.
    """
    if name.startswith("{"):
        name = str(cell.params[name[1:-1]])
    axes = {"seed": cell.seed, "dataset": cell.dataset, "bag_size": cell.bag_size, "method": name or cell.method}
    return derive_seed("method", **axes)


def fill_result(result: CellResult, judge: Judge, data: Prepared, registry: Registry) -> Predictions:
    """Record what the judge selected; returns the selected test scores (none during tuning)."""
    result.history, result.stage_starts = judge.history, judge.stage_starts
    result.pseudo_labels, result.notes = judge.pseudo, judge.notes
    task = "binary" if judge.classes == 2 else "multiclass"
    metrics = [e.spec for e in registry.metrics if task in e.spec.tasks]
    answers = Answers(data.test_labels, np.array(result.rate), data.test_bag_of)

    def selected(best: Best) -> Selected:
        values: dict[str, float | None] = {}
        if best.scores is not None:
            values = {m.name: finite(answers.score(m, best.scores, judge.score_kind)) for m in metrics}
        values["bag_error"] = finite(best.bag_error)
        value = None if best.value is None else finite(best.value)
        return Selected(report=best.report, stage=best.stage, value=value, metrics=values)

    for rule in judge.rules:
        result.selected[rule.name] = selected(judge.winner(rule))
        if len(judge.stages) > 1:
            for name, stage in judge.stages.items():
                result.stages.setdefault(name, {})[rule.name] = selected(stage.best[rule.name])
    if judge.tests is None or not judge.history:
        return {}
    scores = {rule.name: np.asarray(judge.winner(rule).scores) for rule in judge.rules}
    bag_of = {} if data.test_bag_of is None else {"bag_of": data.test_bag_of.astype(np.int32)}
    return {"labels": data.test_labels.astype(np.int16), **bag_of, **scores}


def _digest_of_features(split: Split) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in (split.train, split.valid, split.test):
        digest.update(str((part.X.shape, part.X.dtype.str)).encode())
        digest.update(np.ascontiguousarray(part.X).data)
    return digest.hexdigest()


def _skip_mismatch(method: str, facts: MethodFacts, dataset: DatasetSpec, split: Split) -> None:
    task = "binary" if split.classes == 2 else "multiclass"
    if task not in facts.tasks:
        raise Skip(f"{method} is for {' and '.join(facts.tasks)} tasks; {dataset.name} is {task}")
    kind = "images" if split.train.X.ndim > 2 else "features"
    if kind not in facts.inputs:
        raise Skip(f"{method} takes {' and '.join(facts.inputs)}; {dataset.name} gives {kind}")
