"""The driver: whose result of a cell stands, and what happens to a cell whose result could not be written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from helpers import make_cell, make_plan, make_result

from llpbench.contracts.errors import StoreError
from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.execution.driver import run_jobs
from llpbench.execution.jobs import make_jobs
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.registry import load_registry
from llpbench.results.provenance import Provenance
from llpbench.results.store import Store

REGISTRY = load_registry()
NEW, OLD, ELSEWHERE = 0.9, 0.1, 0.5


class OneByOne:
    """An executor of one slot: ``run`` stands for the process of a cell."""

    def __init__(self, run: Callable[[Job], Outcome | None]) -> None:
        self.run = run
        self.jobs: list[Job] = []
        self.ended: list[Outcome] = []

    @property
    def slots(self) -> int:
        return 1 - len(self.ended)

    def submit(self, job: Job) -> None:
        self.jobs.append(job)
        self.ended.append(self.run(job) or Outcome(job, "finished"))

    def wait(self, seconds: float) -> list[Outcome]:
        ended, self.ended = self.ended, []
        return ended

    def close(self) -> None:
        pass


def planned(folder: Path, seeds: int) -> tuple[Store, list[Job]]:
    store = Store(folder)
    plans = [make_plan(make_cell(method="mean-ridge", dataset="synthetic", seed=seed)) for seed in range(seeds)]
    store.plan(plans, "llpbench run", "0.1.0")
    return store, make_jobs(plans, store, REGISTRY, RunSettings())


def made_now(job: Job, value: float) -> CellResult:
    """A result of a cell as it would be made here today."""
    provenance = Provenance(REGISTRY)
    return make_result(
        job.cell, value, protocol=PROTOCOL, code=provenance.code(job.cell), rules=provenance.rules(), machine="here"
    )


def values(store: Store) -> list[float | None]:
    return [result.selected["bags"].metrics["auroc"] for result in store.results()]


def test_results_of_an_earlier_run_are_not_taken_over_when_their_times_change(tmp_path: Path) -> None:
    store, jobs = planned(tmp_path / "out", 3)
    for job in jobs:
        store.write(made_now(job, OLD))

    def run(job: Job) -> None:
        for other in jobs:
            os.utime(store.result_path(other.cell.id))
        store.write(made_now(job, NEW))

    run_jobs(jobs, store, REGISTRY, OneByOne(run))
    assert values(store) == [NEW, NEW, NEW]


def test_killed_cell_does_not_keep_the_result_of_an_earlier_run(tmp_path: Path) -> None:
    store, (job,) = planned(tmp_path / "out", 1)
    store.write(made_now(job, OLD))

    def run(job: Job) -> Outcome:
        os.utime(store.result_path(job.cell.id))
        return Outcome(job, "crashed", "the process was killed by SIGKILL")

    assert run_jobs([job], store, REGISTRY, OneByOne(run)).counts == {"crashed": 1}


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        ({}, ELSEWHERE),
        ({"code": {"method": "editable llpbench sha256:0"}}, NEW),
        ({"protocol": 1}, NEW),
        ({"rules": {"bags": 0}}, NEW),
    ],
    ids=["same", "code", "protocol", "rule"],
)
def test_result_of_another_run_is_taken_over_only_if_it_is_current(
    tmp_path: Path, changes: dict[str, object], kept: float
) -> None:
    store, jobs = planned(tmp_path / "out", 2)

    def run(job: Job) -> None:
        if job is jobs[0]:  # meanwhile, another run finishes the other cell
            store.write(msgspec.structs.replace(made_now(jobs[1], ELSEWHERE), **changes))
        store.write(made_now(job, NEW))

    run_jobs(jobs, store, REGISTRY, OneByOne(run))
    assert values(store) == [NEW, kept]


def test_cell_whose_harness_failed_is_run_again(tmp_path: Path) -> None:
    store, jobs = planned(tmp_path / "out", 2)
    failing = iter([True, False, True, False])

    def run(job: Job) -> Outcome | None:
        if next(failing):
            return Outcome(job, "trouble", "the harness failed: OSError: [Errno 116] Stale file handle")
        store.write(made_now(job, NEW))
        return None

    assert run_jobs(jobs, store, REGISTRY, OneByOne(run)).counts == {"ok": 2}
    assert values(store) == [NEW, NEW]


def test_cell_whose_harness_always_fails_stays_missing(tmp_path: Path) -> None:
    store, (job,) = planned(tmp_path / "out", 1)
    executor = OneByOne(lambda job: Outcome(job, "trouble", "Stale file handle"))
    with pytest.raises(StoreError, match=r"Stale file handle.*repeat the command"):
        run_jobs([job], store, REGISTRY, executor)
    assert len(executor.jobs) == 3
    assert store.results() == []
    assert not list((store.root / "claims").glob(f"{job.cell.id}*"))
