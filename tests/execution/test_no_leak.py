"""Labels cannot reach a method: permuting them inside bags (same counts) changes nothing it produces.

Every registered method is fitted twice on the same bags, once with the labels as they are and once with the labels
of training *and* validation rows shuffled inside each bag. The scores selected by the ``bags`` rule must be equal
bit for bit, although the ``instances`` rule sees other labels and may keep the fit running longer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from helpers import bags_and_labels

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Bags, IntArray, Part
from llpbench.contracts.job import Job
from llpbench.contracts.specs import MethodSpec
from llpbench.experiment.fit_cell import fit_method
from llpbench.experiment.monitor import HarnessMonitor
from llpbench.experiment.rules import make_rules
from llpbench.experiment.split import load_split
from llpbench.plugins.registry import load_registry, missing_modules

pytestmark = pytest.mark.slow

REGISTRY = load_registry()
LLP_METHODS = sorted(e.spec.name for e in REGISTRY.methods if not e.spec.oracle)
SHORT = {"epochs": 6, "patience": 2}


def _job(spec: MethodSpec, classes: int) -> Job:
    dataset = REGISTRY.datasets["synthetic"].resolve({"rows": 600, "dim": 6, "classes": classes})
    params = spec.resolve({name: value for name, value in SHORT.items() if name in {p.name for p in spec.params}})
    cell = Cell(dataset="synthetic", dataset_options=dataset, method=spec.name, params=params, bag_size=7, seed=0)
    return Job(cell=cell, method_name=spec.name, dataset_name="synthetic", out="unused")


def _shuffled_inside_bags(labels: IntArray, bags: Bags, seed: int) -> IntArray:
    rng = np.random.default_rng(seed)
    return labels[np.lexsort((rng.random(len(labels)), bags.bag_of))]


def _relabelled(part: Part, bags: Bags, labels: IntArray) -> Part:
    """The part with the labels its rows have in ``bags`` (rows are told apart by their features)."""
    label_of = {row.tobytes(): label for row, label in zip(bags.X, labels, strict=True)}
    return Part(part.X, np.array([label_of[row.tobytes()] for row in part.X]))


def _selected_by_bags(spec: MethodSpec, classes: int, shuffle: bool) -> np.ndarray:
    job = _job(spec, classes)
    split = load_split(job, REGISTRY.datasets["synthetic"])
    train, train_labels, valid_labels = bags_and_labels(job, split, REGISTRY)
    assert train.validation is not None
    if shuffle:
        other = _shuffled_inside_bags(train_labels, train, 1)
        assert (other != train_labels).any()
        other_valid = _shuffled_inside_bags(valid_labels, train.validation, 2)
        split = replace(
            split,
            train=_relabelled(split.train, train, other),
            valid=_relabelled(split.valid, train.validation, other_valid),
        )
        train, train_labels, valid_labels = bags_and_labels(job, split, REGISTRY)
        assert (train_labels == other).all()
        assert train.validation is not None
    monitor = HarnessMonitor(
        rules=make_rules(train.validation, valid_labels),
        valid=train.validation,
        test_rows=split.test.X,
        train_labels=train_labels,
        classes=classes,
        score_kind=spec.scores,
        patience=int(job.cell.params.get("patience") or 20),
    )
    fit_method(spec.load()(**job.cell.params), train, monitor, seed=3)
    scores = monitor.winner(monitor.rules[0]).scores
    assert scores is not None
    return scores


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", LLP_METHODS)
def test_permuting_labels_inside_bags_changes_nothing(name: str, classes: int) -> None:
    spec = REGISTRY.methods[name]
    if ("binary" if classes == 2 else "multiclass") not in spec.tasks:
        pytest.skip(f"{name} is for {spec.tasks}")
    assert not missing_modules(spec)
    np.testing.assert_array_equal(
        _selected_by_bags(spec, classes, shuffle=False), _selected_by_bags(spec, classes, shuffle=True)
    )


def test_the_bound_does_see_labels() -> None:
    """The check above can fail: a method that is given labels fails it."""
    spec = replace(REGISTRY.methods["supervised"], oracle=False)
    job = _job(spec, 2)
    split = load_split(job, REGISTRY.datasets["synthetic"])
    train, labels, valid_labels = bags_and_labels(job, split, REGISTRY)
    assert train.validation is not None
    outcomes = []
    for given in (labels, _shuffled_inside_bags(labels, train, 1)):
        monitor = HarnessMonitor(
            rules=make_rules(train.validation, valid_labels),
            valid=train.validation,
            test_rows=split.test.X,
            train_labels=labels,
            classes=2,
        )
        fit_method(spec.load()(**job.cell.params), train, monitor, 3, labels=given)
        outcomes.append(monitor.winner(monitor.rules[0]).scores)
    assert not np.array_equal(*outcomes)
