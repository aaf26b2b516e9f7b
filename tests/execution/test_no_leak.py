"""What a method observes depends on known counts only: permuting labels inside bags changes nothing it sees.

The kit checks the same for every method in real processes (``llpbench check``).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest
from attack_field import DATA, METHODS
from helpers import bags_and_labels

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Bags, IntArray, Part, Split
from llpbench.contracts.job import Job
from llpbench.contracts.result import Selected
from llpbench.execution.worker import write_files
from llpbench.experiment.monitor import HarnessMonitor, MethodView, fit_method
from llpbench.experiment.rules import make_rules
from llpbench.experiment.split import load_split
from llpbench.plugins.registry import load_registry
from llpbench.results.blank import blank_result
from llpbench.results.store import Store

REGISTRY = load_registry()


class Observer:
    """A method that reports random scores and hashes everything it is given and told."""

    def fit(self, bags: Bags, *, monitor: MethodView, seed: int, **given: Any) -> Observer:
        assert bags.validation is not None
        self.seen: list[object] = [monitor.should_stop]
        for part in (bags, bags.validation):
            self.seen += [part.X.tobytes(), part.counts.tobytes(), part.offsets.tobytes()]
        self.seen += [labels.tobytes() for labels in given.values()]
        rng = np.random.default_rng(seed)
        shape = (-1,) if bags.classes == 2 else (-1, bags.classes)
        columns = 1 if bags.classes == 2 else bags.classes
        for number in range(60):
            noise = rng.normal(size=(4000, columns))
            improved = monitor.report(lambda X, noise=noise: noise[: len(X)].reshape(shape), stage=str(number % 3))
            self.seen += [improved, monitor.should_stop]
        self.digest = hashlib.sha256(repr(self.seen).encode()).hexdigest()
        return self

    def predict_scores(self, X: np.ndarray) -> np.ndarray:
        raise AssertionError("it has reported")


def shuffled_inside_bags(labels: IntArray, bags: Bags, seed: int) -> IntArray:
    rng = np.random.default_rng(seed)
    return labels[np.lexsort((rng.random(len(labels)), bags.bag_of))]


def relabelled(part: Part, bags: Bags, labels: IntArray) -> Part:
    """The part with the labels its rows have in ``bags`` (rows are told apart by their features)."""
    label_of = {row.tobytes(): label for row, label in zip(bags.X, labels, strict=True)}
    return Part(part.X, np.array([label_of[row.tobytes()] for row in part.X]))


def permuted(split: Split, job: Job) -> Split:
    """The split with labels of training and validation rows shuffled inside each bag."""
    bags, train, valid = bags_and_labels(job, split, REGISTRY)
    assert bags.validation is not None
    train, valid = shuffled_inside_bags(train, bags, 1), shuffled_inside_bags(valid, bags.validation, 2)
    test = Part(split.test.X, np.random.default_rng(3).permutation(split.test.y))
    changed = relabelled(split.train, bags, train), relabelled(split.valid, bags.validation, valid)
    return replace(split, train=changed[0], valid=changed[1], test=test)


def observed(job: Job, split: Split, classes: int, *, oracle: bool = False) -> tuple[str, np.ndarray]:
    """What the observer saw, and the scores that the rule ``bags`` selected."""
    bags, train_labels, valid_labels = bags_and_labels(job, split, REGISTRY)
    assert bags.validation is not None
    monitor = HarnessMonitor(
        rules=make_rules(bags.validation, valid_labels),
        valid=bags.validation,
        test_rows=split.test.X,
        train_labels=train_labels,
        classes=classes,
        score_kind="logit",
        patience=10,
    )
    method = Observer()
    fit_method(method, bags, monitor, 3, **({"labels": train_labels} if oracle else {}))
    scores = monitor.winner(monitor.rules[0]).scores
    assert scores is not None
    return method.digest, scores


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("oracle", [False, True])
def test_permuting_labels_inside_bags_changes_only_what_an_oracle_sees(classes: int, oracle: bool) -> None:
    options = REGISTRY.datasets["synthetic"].resolve({"rows": 600, "dim": 6, "classes": classes})
    cell = Cell(dataset="synthetic", dataset_options=options, method="observer", bag_size=7, seed=0)
    job = Job(cell=cell, method_name="", dataset_name="", out="unused")
    split = load_split(job, REGISTRY.datasets["synthetic"])
    other = permuted(split, job)
    assert (other.train.y != split.train.y).any()
    assert (other.valid.y != split.valid.y).any()
    seen, scores = observed(job, split, classes, oracle=oracle)
    seen_then, scores_then = observed(job, other, classes, oracle=oracle)
    assert (seen == seen_then) is not oracle
    np.testing.assert_array_equal(scores, scores_then)


def sizes_of_files(folder: Path, auroc: float, scores: np.ndarray) -> list[int]:
    job = Job(cell=Cell(dataset="any", method="any", bag_size=1, seed=0), method_name="", dataset_name="", out="-")
    result = blank_result(job, "ok")
    result.selected["bags"] = Selected(report=0, stage="", value=0.5, metrics={"auroc": auroc})
    store = Store(folder)
    write_files(store, job, result, {"labels": np.zeros(len(scores), np.int16), "bags": scores})
    return [path.stat().st_size for path in (store.predictions_path(result.id), store.result_path(result.id))]


def test_sizes_of_files_do_not_depend_on_scores(tmp_path: Path) -> None:
    """Methods of later cells can see the sizes of all files."""
    noise = np.random.default_rng(0).normal(size=600)
    expected = sizes_of_files(tmp_path / "a", 0.5, np.zeros(600))
    assert sizes_of_files(tmp_path / "b", 0.49872340001, noise) == expected
    assert sizes_of_files(tmp_path / "c", 0.49872340001, noise.astype(np.float32)) == expected


WATCHED = """
import os, sys, msgspec
from llpbench.contracts.job import Job
from llpbench.execution import worker

def wait(store, job, result, predictions):
    print(result.status, os.getpid(), flush=True)
    sys.stdin.read()

worker.write_files = wait
worker.run_as_process(msgspec.json.decode(sys.argv[1], type=Job), fork=False)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux")
def test_processes_of_a_method_have_ended_when_its_result_is_written(tmp_path: Path) -> None:
    """Even those that left its group; they could otherwise watch how the files of the cell change."""
    cell = Cell(dataset="secret", method="attack-orphan", bag_size=5, seed=0)
    plugins = str(DATA), str(METHODS)
    job = Job(cell=cell, method_name="", dataset_name="", out=str(tmp_path / "out"), plugins=plugins)
    command = [sys.executable, "-P", "-c", WATCHED, msgspec.json.encode(job).decode()]
    environment = {**os.environ, "LLPBENCH_CACHE": str(tmp_path / "cache")}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        status, judge = process.stdout.readline().split()
        left = psutil.Process(int(judge)).children()
        process.communicate("")
    assert (status, left) == ("ok", [])
