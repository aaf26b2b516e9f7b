"""One cell: fit a method on bags, watch it, and score what each selection rule chose.

Labels stay on this side: the method is given bags and a monitor, and hands back scores.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Bags, IntArray, Split
from llpbench.contracts.errors import MethodError, Skip
from llpbench.contracts.job import Job
from llpbench.contracts.protocols import Method
from llpbench.contracts.result import CellResult, Selected
from llpbench.contracts.specs import DatasetSpec, MethodSpec
from llpbench.experiment.metrics import to_probabilities
from llpbench.experiment.monitor import Best, HarnessMonitor, MethodView, Pruned, finite
from llpbench.experiment.rules import make_rules
from llpbench.experiment.seeds import derive_seed
from llpbench.experiment.split import bag_split, bags_seed, load_split, split_seed
from llpbench.plugins.registry import Entry, Registry, unmet_needs

Predictions = dict[str, np.ndarray]
"""Test scores of the report that each rule chose, and the labels of the test rows."""


def fit_cell(job: Job, registry: Registry, result: CellResult) -> Predictions:
    """Run the cell of a job and fill in ``result``; returns the chosen test scores (none while tuning).

    ``result`` is filled as facts become known, so that a cell that fails half-way says all that it knew.
    """
    cell = job.cell
    method_entry, dataset_entry = registry.methods.entry(cell.method), registry.datasets.entry(cell.dataset)
    method_spec, dataset_spec = method_entry.spec, dataset_entry.spec
    _require(method_entry, cell.backend)
    _require(dataset_entry)

    began = time.perf_counter()
    split = load_split(job, dataset_spec)
    train, train_labels, valid_labels = bag_split(job, split, registry)
    result.data_seconds = time.perf_counter() - began
    assert train.validation is not None
    result.rows = {"train": len(split.train), "valid": len(split.valid), "test": len(split.test)}
    result.count_sd = train.count_sd
    result.bags = {"train": len(train), "valid": len(train.validation)}
    _decline_mismatch(method_spec, dataset_spec, split)

    seed = method_seed(cell)
    result.seeds = {"split": split_seed(cell), "bags": bags_seed(cell), "method": seed}
    factory = method_spec.load()
    monitor = HarnessMonitor(
        rules=make_rules(train.validation, valid_labels, registry.rules.specs),
        valid=train.validation,
        test_rows=None if cell.tuning else split.test.X,
        train_labels=train_labels,
        classes=split.classes,
        score_kind=method_spec.scores,
        patience=int(cell.params.get("patience") or 20),
        prune=job.prune,
    )
    oracle = {"labels": train_labels} if method_spec.oracle else {}
    status, reason = "ok", ""
    try:
        fit_method(factory(**cell.params), train, monitor, seed, **oracle)
    except Pruned as pruned:
        status, reason = "pruned", str(pruned)
        monitor.note("pruned_by", pruned.rule)
    _fill(result, monitor, split, registry)
    result.status, result.reason = status, reason  # type: ignore[assignment]
    if cell.tuning:
        return {}
    scores = {rule.name: np.asarray(monitor.winner(rule).scores) for rule in monitor.rules}
    return {"labels": split.test.y.astype(np.int16), **scores}


def method_seed(cell: Cell) -> int:
    """Seed of the method: a parameter that changes leaves it as it is."""
    return derive_seed("method", seed=cell.seed, dataset=cell.dataset, bag_size=cell.bag_size, method=cell.method)


def fit_method(method: Method, bags: Bags, monitor: HarnessMonitor, seed: int, **oracle: IntArray) -> None:
    """Fit, and score the fitted model once if the method never reported."""
    fitted = method.fit(bags, monitor=MethodView(monitor), seed=seed, **oracle)
    if fitted is None:
        raise MethodError("fit returned None; it must return the fitted method (return self)")
    if not monitor.history:
        monitor.report(fitted.predict_scores)


def _require(entry: Entry[Any], backend: str = "") -> None:
    needs = unmet_needs(entry, backend)
    if needs:
        raise Skip(needs)


def _decline_mismatch(method: MethodSpec, dataset: DatasetSpec, split: Split) -> None:
    task = "binary" if split.classes == 2 else "multiclass"
    if task not in method.tasks:
        raise Skip(f"{method.name} is for {' and '.join(method.tasks)} tasks; {dataset.name} is {task}")
    kind = "images" if split.train.X.ndim > 2 else "features"
    if kind not in method.inputs:
        raise Skip(f"{method.name} takes {' and '.join(method.inputs)}; {dataset.name} gives {kind}")


def _fill(result: CellResult, monitor: HarnessMonitor, split: Split, registry: Registry) -> None:
    seconds = monitor.clock.stop()
    result.report_seconds = seconds.pop("report", 0.0)
    result.phases, result.fit_seconds = seconds, sum(seconds.values())
    result.history, result.pseudo_labels, result.notes = monitor.history, monitor.pseudo, monitor.notes
    task = "binary" if split.classes == 2 else "multiclass"
    metrics = [e.spec for e in registry.metrics if task in e.spec.tasks]

    def selected(best: Best) -> Selected:
        values: dict[str, float | None] = {}
        if best.scores is not None:
            probabilities = to_probabilities(best.scores, monitor.score_kind)
            values = {
                m.name: finite(m.load()(split.test.y, best.scores if m.needs == "scores" else probabilities))
                for m in metrics
            }
        values["bag_error"] = finite(best.bag_error)
        value = None if best.value is None else finite(best.value)
        return Selected(report=best.report, stage=best.stage, value=value, metrics=values)

    for rule in monitor.rules:
        result.selected[rule.name] = selected(monitor.winner(rule))
        if len(monitor.best) > 1:
            for stage, tracks in monitor.best.items():
                result.stages.setdefault(stage, {})[rule.name] = selected(tracks[rule.name])
