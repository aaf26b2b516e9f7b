"""Run a method in the two processes of a real cell, once with the true labels and once with shuffled ones."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import FloatArray
from llpbench.contracts.job import Job
from llpbench.contracts.specs import MethodSpec
from llpbench.execution.jobs import method_facts
from llpbench.execution.method_process import MethodProcess, run_fit
from llpbench.experiment.fit_cell import Prepared
from llpbench.experiment.judge import Answer, Judge, patience_of
from llpbench.experiment.rules import make_rules
from llpbench.kit.problem import Problem, classes_of, shuffle_inside_bags
from llpbench.plugins.registry import Entry
from llpbench.results.blank import blank_result


@dataclass
class RecordingJudge(Judge):
    """A judge that records its answers to reports.

    Attributes:
        answers: stage, ``improved`` and ``stop`` of each answer.
        with_test: for each report, whether it came with scores of the test rows.
    """

    answers: list[tuple[str, bool, bool]] = field(default_factory=list)
    with_test: list[bool] = field(default_factory=list)

    def take_report(self, valid_scores: FloatArray, test_scores: FloatArray | None, stage: str = "") -> Answer:
        """Judge a report, and record the answer."""
        answer = super().take_report(valid_scores, test_scores, stage)
        self.answers.append((stage, answer.improved, answer.stop))
        self.with_test.append(test_scores is not None)
        return answer

    def selected_scores(self) -> FloatArray:
        """The test scores of the report that the rule ``bags`` selected."""
        scores = self.winner(self.rules[0]).scores
        assert scores is not None, "the method made no report"
        return scores


@lru_cache(maxsize=1)
def run_with_and_without_labels(entry: Entry[MethodSpec]) -> tuple[RecordingJudge, RecordingJudge]:
    """Run a method's cell at its defaults with true labels, and with labels shuffled inside bags (counts are equal).

    The backend is that of the environment, as in all checks.
    """
    problem = Problem(classes=classes_of(entry.spec))
    first = _run_cell(entry, problem)
    problem.train_labels = shuffle_inside_bags(problem.train_labels, problem.train)
    problem.valid_labels = shuffle_inside_bags(problem.valid_labels, problem.valid)
    problem.test_labels = np.random.default_rng(7).permutation(problem.test_labels)
    return first, _run_cell(entry, problem)


def _run_cell(entry: Entry[MethodSpec], problem: Problem) -> RecordingJudge:
    spec = entry.spec
    params = spec.resolve({})
    cell = Cell(dataset="-", method=spec.name, params=params, bag_size=1, seed=0)
    data = Prepared(problem.train, problem.test_rows, problem.train_labels, problem.valid_labels, problem.test_labels)
    judge = RecordingJudge(
        rules=make_rules(problem.valid, problem.valid_labels),
        valid=problem.valid,
        tests=len(problem.test_rows),
        train_labels=problem.train_labels,
        classes=problem.classes,
        score_kind=spec.scores,
        patience=patience_of(params),
    )
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as out:
        plugins = (entry.plugin.distribution,) if entry.plugin.from_file else ()
        job = Job(
            cell=cell,
            method_name="",
            dataset_name="",
            out=out,
            scratch=scratch,
            plugins=plugins,
            method=method_facts(entry),
        )
        result = blank_result(job, "failed")
        process = MethodProcess(job, fork=False)
        try:
            run_fit(process, judge, data, job, result)
        finally:
            process.end()
    assert result.status == "ok", f"the cell ended with status {result.status}: {result.reason} {result.failed_at}"
    return judge
