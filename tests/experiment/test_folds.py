"""Folds over bags: what is held out, what a place is worth, and that a cell with folds chooses by them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_runner import llpbench
from helpers import bags_of, make_cell, make_part, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import RuleSpec
from llpbench.contracts.errors import PluginError, Skip
from llpbench.contracts.result import CellResult
from llpbench.experiment.folds import FoldValues, deal, make_folds, pool, values_of_places
from llpbench.plugins.builtin import llpbench_selection_rules
from llpbench.results.store import Store

RULE = next(rule for rule in llpbench_selection_rules() if rule.cross_validated)

STUDENT = """
import numpy as np
from llpbench import MethodSpec, Param, Skip, hookimpl


@hookimpl
def llpbench_methods():
    declines = Param("declines", 0, low=0, high=100, doc="decline fits with fewer bags than this")
    return [MethodSpec(name="student", factory="student:Student", params=(declines,), scores="probability")]


class Student:
    '''Regression on bag means; report 2 is the model, all others are its opposite.'''

    fits = 0

    def __init__(self, declines=0):
        self.declines = declines

    def fit(self, bags, *, monitor, seed):
        Student.fits += 1
        if len(bags) < self.declines:
            raise Skip(f"{len(bags)} bags are too few")
        monitor.note("fits", float(Student.fits))
        monitor.note("bags", float(len(bags)))
        monitor.note("held", float(len(bags.validation)))
        means = np.add.reduceat(bags.X, bags.offsets[:-1]) / bags.sizes[:, None]
        w = (bags.proportions[:, 0] - bags.prior[0]) @ (means - means.mean(axis=0))
        w /= np.linalg.norm(w)
        for report in range(4):
            sign = 1 if report == 2 else -1
            monitor.report(lambda X, sign=sign: 1 / (1 + np.exp(-sign * (X @ w))))
        return self
"""


@pytest.fixture
def student(tmp_path: Path) -> Path:
    path = tmp_path / "student.py"
    path.write_text(STUDENT)
    return path


@quick
@given(st.integers(2, 40), st.integers(2, 12), st.integers(0, 5))
def test_every_bag_is_held_out_once(n: int, folds: int, seed: int) -> None:
    parts = deal(n, folds, np.random.default_rng(seed))
    assert sorted(np.concatenate(parts)) == list(range(n))
    assert len(parts) == min(n, folds)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_single_bag_has_no_folds() -> None:
    with pytest.raises(Skip, match="at least two bags"):
        deal(1, 5, np.random.default_rng(0))


@quick
@given(st.integers(9, 60), st.integers(2, 9), st.integers(2, 6))
def test_folds_keep_rows_labels_and_counts_together(rows: int, bag_size: int, folds: int) -> None:
    train, train_labels = bags_of(make_part(rows, seed=1), bag_size)
    valid, valid_labels = bags_of(make_part(7, seed=2), bag_size)
    bags = replace(train, validation=valid, count_sd=0.5)
    cell = make_cell(folds=folds)
    held_rows = 0
    for fold in make_folds(bags, train_labels, valid_labels, cell):
        assert fold.bags.validation is not None
        assert fold.bags.count_sd == fold.bags.validation.count_sd == 0.5
        assert len(fold.bags) + len(fold.bags.validation) == len(train) + len(valid)
        for part, labels in ((fold.bags, fold.train_labels), (fold.bags.validation, fold.valid_labels)):
            counts = np.add.reduceat((labels == 1).astype(float), part.offsets[:-1])
            np.testing.assert_array_equal(counts, part.counts[:, 0])
        held_rows += len(fold.valid_labels)
    assert held_rows == rows + 7


def test_pool_has_training_bags_first() -> None:
    train, _ = bags_of(make_part(10), 4)
    valid, _ = bags_of(make_part(6, seed=3), 4)
    pooled = pool(replace(train, validation=valid))
    np.testing.assert_array_equal(pooled.X, np.concatenate([train.X, valid.X]))
    assert list(pooled.sizes) == [*train.sizes, *valid.sizes]
    assert pooled.validation is None


def test_place_value_is_the_mean_over_folds_weighted_by_rows() -> None:
    places = [("", 0), ("", 1), ("late", 0)]
    first = FoldValues(10, places, [{RULE.name: 1.0}, {RULE.name: 2.0}, {RULE.name: 5.0}])
    second = FoldValues(30, places[:2], [{RULE.name: 3.0}, {RULE.name: None}])
    found = values_of_places([first, second], [RULE])
    assert found == {RULE.name: {("", 0): (10 * 1.0 + 30 * 3.0) / 40}}  # the others some fold did not reach


def test_cross_validated_rule_uses_no_labels() -> None:
    with pytest.raises(PluginError, match="cannot use labels"):
        RuleSpec(name="x", factory="m:f", cross_validated=True, uses_labels=True)


def run(folder: Path, plugin: Path, *words: str) -> CellResult:
    done = llpbench(
        "run", "--plugin", str(plugin), "--methods", "student", "--datasets", "synthetic[rows=2000]", "--bags", "10",
        "--seeds", "1", "--out", str(folder), "--quiet", *words, cwd=folder.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (result,) = Store(folder).results()
    return result


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_cell_with_folds_chooses_by_them(tmp_path: Path, student: Path, start: str) -> None:
    result = run(tmp_path / "out", student, "--folds", "3", "--start", start)
    assert result.status == "ok"
    assert result.selected["bags-cv"].report == 2
    assert [set(report) for report in result.history] == [{"bags", "bags-cv", "counts", "instances"}] * 4
    values = [report["bags-cv"] for report in result.history]
    assert min(value for value in values if value is not None) == values[2] == result.selected["bags-cv"].value
    assert result.rules == {"bags": 2, "bags-cv": 1, "counts": 1, "instances": 1}
    assert result.notes["fits"] == 4  # three folds, then the fit that counts, on the training bags alone
    assert (result.bags["train"], result.bags["valid"]) == (result.notes["bags"], result.notes["held"])
    assert result.folds_seconds > 0


def test_without_folds_the_method_is_fitted_once(tmp_path: Path, student: Path) -> None:
    result = run(tmp_path / "out", student)
    assert set(result.selected) == set(result.rules) == {"bags", "counts", "instances"}
    assert result.notes["fits"] == 1
    assert result.folds_seconds == 0


def test_skipped_fold_is_reported(tmp_path: Path, student: Path) -> None:
    out = tmp_path / "out"
    llpbench(
        "run", "--plugin", str(student), "--methods", "student[declines=100]", "--datasets", "synthetic[rows=400]",
        "--bags", "20", "--seeds", "1", "--folds", "2", "--out", str(out), "--quiet", cwd=tmp_path,
    )  # fmt: skip
    (result,) = Store(out).results()
    assert (result.status, result.selected) == ("skipped", {})
    assert result.reason.startswith("fold 1: ")


@pytest.mark.parametrize("folds", ["1", "-2", "101"])
def test_impossible_folds_are_rejected(tmp_path: Path, folds: str) -> None:
    done = llpbench("run", "--methods", "mean-ridge", "--folds", folds, cwd=tmp_path)
    assert done.returncode == 2
    assert "from 2 to 100 folds" in done.stderr


@pytest.mark.slow
def test_search_by_folds_has_five_folds(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    words = ("--methods", "mean-ridge", "--datasets", "synthetic[rows=400]", "--bags", "20", "--quiet")
    done = llpbench("tune", *words, "--rule", "bags-cv", "--trials", "2", "--out", "tuned", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = Store(tmp_path / "tuned").results()
    assert {result.cell.folds for result in results} == {5}
    assert all(result.selected["bags-cv"].value is not None for result in results)
    how = ("--seeds", "1", "--params", "tuned", "--params-rule", "bags-cv", "--out", "run")
    used = llpbench("run", *words, *how, cwd=tmp_path)
    assert used.returncode == 0, used.stderr
    (result,) = Store(tmp_path / "run").results()
    assert (result.cell.preset, result.cell.folds) == ("tuned-bags-cv", 0)
