"""A method in the two processes of a real cell, twice: with labels as they are, and shuffled inside bags."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from llpbench.contracts.cell import Cell
from llpbench.contracts.data import FloatArray
from llpbench.contracts.job import Job, MethodFacts
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import MethodSpec
from llpbench.execution.method_process import MethodProcess, run_fit
from llpbench.experiment.fit_cell import Prepared
from llpbench.experiment.judge import Answer, Judge, patience_of
from llpbench.experiment.rules import make_rules
from llpbench.kit.problem import Problem, classes_of, shuffled_inside_bags
from llpbench.plugins.registry import Entry
from llpbench.results.blank import blank_result


@dataclass
class ListeningJudge(Judge):
    """A judge that remembers what a method sent and what it was told."""

    heard: list[tuple[str, bool, bool]] = field(default_factory=list)
    sent: list[tuple[FloatArray, FloatArray | None]] = field(default_factory=list)

    def take_report(self, valid_scores: FloatArray, test_scores: FloatArray | None, stage: str = "") -> Answer:
        """As the judge does."""
        answer = super().take_report(valid_scores, test_scores, stage)
        self.heard.append((stage, answer.improved, answer.stop))
        self.sent.append((valid_scores, test_scores))
        return answer


@dataclass(frozen=True)
class Hearing:
    """One cell: how it ended, and its judge."""

    result: CellResult
    judge: ListeningJudge

    @property
    def scores(self) -> FloatArray:
        """The test scores that ``bags`` chose."""
        scores = self.judge.winner(self.judge.rules[0]).scores
        assert scores is not None, "nothing was reported"
        return scores


@lru_cache(maxsize=1)
def hearings(entry: Entry[MethodSpec]) -> tuple[Hearing, Hearing]:
    """A method's cell at its declared parameters, and the same with labels shuffled inside bags (all counts stay).

    The backend is that of the environment, as in all checks.
    """
    problem = Problem(classes=classes_of(entry.spec))
    first = _hearing(entry, problem)
    problem.train_labels = shuffled_inside_bags(problem.train_labels, problem.train)
    problem.valid_labels = shuffled_inside_bags(problem.valid_labels, problem.valid)
    problem.test_labels = np.random.default_rng(7).permutation(problem.test_labels)
    return first, _hearing(entry, problem)


def _hearing(entry: Entry[MethodSpec], problem: Problem) -> Hearing:
    spec = entry.spec
    facts = MethodFacts(scores=spec.scores, oracle=spec.oracle, tasks=tuple(spec.tasks), inputs=tuple(spec.inputs))
    params = spec.resolve({})
    cell = Cell(dataset="-", method=spec.name, params=params, bag_size=1, seed=0)
    data = Prepared(problem.train, problem.test_rows, problem.train_labels, problem.valid_labels, problem.test_labels)
    judge = ListeningJudge(
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
        job = Job(cell=cell, method_name="", dataset_name="", out=out, scratch=scratch, plugins=plugins, method=facts)
        result = blank_result(job, "failed")
        process = MethodProcess(job, fork=False)
        try:
            run_fit(process, judge, data, job, result)
        finally:
            process.end()
    assert result.status == "ok", f"its cell ended with {result.status}: {result.reason} {result.failed_at}"
    return Hearing(result, judge)
