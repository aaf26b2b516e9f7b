"""The judge's process of one cell: from a job to a result file. ``python -m llpbench.execution.worker < job.json``.

It loads the data, keeps the labels and judges the reports of the method's process. Whatever the method does, a result
is written that says what happened.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from llpbench.contracts.errors import Skip, StoreError, describe, where_it_failed
from llpbench.contracts.job import Job
from llpbench.contracts.result import CellResult
from llpbench.execution import sandbox
from llpbench.execution.confines import SCRATCH
from llpbench.execution.method_process import MethodProcess, run_fit
from llpbench.execution.processes import adopt_orphans, children, die_with_parent, end_children
from llpbench.execution.watch import TROUBLE
from llpbench.experiment.fit_cell import (
    CrossValidated,
    Predictions,
    Prepared,
    cross_validated_rules,
    fill_result,
    fit_here,
    make_fold_judge,
    make_judge,
    make_monitor,
    prepare_cell,
    prepare_folds,
)
from llpbench.experiment.folds import FoldValues, values_of_places
from llpbench.experiment.judge import Pruned
from llpbench.plugins.fingerprint import code_folders
from llpbench.plugins.registry import Registry, shared_registry
from llpbench.results.blank import blank_result
from llpbench.results.provenance import recorded_code, recorded_versions
from llpbench.results.store import Store
from llpbench.system.environment import numeric_flags
from llpbench.system.files import TRANSIENT
from llpbench.system.machine import machine, machine_id
from llpbench.system.opened import opened_files, watch_files

_LONGEST_TRACEBACK = 20_000


def run_job(job: Job, *, fork: bool = False) -> CellResult:
    """Run a cell and write its result.

    Args:
        job: the cell.
        fork: fork the method's process from this one, which must be fresh; otherwise start a new Python for it.
    """
    store = Store(Path(job.out))
    started = time.perf_counter()
    watch_files()
    result = blank_result(job, "failed")
    predictions: Predictions = {}
    with _scratch(job) as job:
        with _method_of(job, fork) as process, failures_recorded_in(result):
            registry = shared_registry(job.plugins if job.judge_plugins is None else job.judge_plugins, job.override)
            result.oracle, result.versions, result.flags = job.method.oracle, recorded_versions(job), numeric_flags()
            data = prepare_cell(job, registry, result)
            of_place = cross_validate(process, data, job, registry, result)
            if of_place is not None:
                judge = make_judge(job, data, registry, of_place)
                run_fit(process, judge, data, job, result)
        result.peak_memory_mb = process.peak_mb
        if result.status in ("ok", "pruned"):
            with failures_recorded_in(result):
                predictions = fill_result(result, judge, data, registry)
    result.code = recorded_code(job, method_read=process.opened, judge_read=opened_files(code_folders()))
    result.wall_seconds = time.perf_counter() - started
    write_files(store, job, result, predictions)
    return result


def cross_validate(
    process: MethodProcess, data: Prepared, job: Job, registry: Registry, result: CellResult
) -> CrossValidated | None:
    """Fit the method without each fold of the bags; returns the values of its reports under every cross-validated rule.

    Empty for a cell without folds; None if a fit failed, which is then recorded in the result.
    """
    if not job.cell.folds:
        return {}
    began = time.perf_counter()
    folds: list[FoldValues] = []
    for number, fold in enumerate(prepare_folds(job, data), 1):
        of_fold = blank_result(job, "failed")
        judge = make_fold_judge(job, fold, registry)
        run_fit(process, judge, fold, job, of_fold, last=False)
        if of_fold.status != "ok":
            result.status, result.reason = of_fold.status, f"fold {number}: {of_fold.reason}"
            result.traceback, result.failed_at = of_fold.traceback, of_fold.failed_at
            return None
        folds.append(FoldValues(len(fold.valid_labels), judge.places, judge.history))
    result.folds_seconds = time.perf_counter() - began
    return values_of_places(folds, cross_validated_rules(registry))


def run_job_here(job: Job) -> CellResult:
    """Run a cell in this process, method and labels together, for a debugger. Errors are raised, nothing is written."""
    result = blank_result(job, "ok")
    registry = shared_registry(job.plugins, job.override)
    choose_backend(job)
    data = prepare_cell(job, registry, result)
    monitor = make_monitor(job, data, registry)
    try:
        fit_here(job, data, registry, monitor)
    except Pruned as pruned:
        result.status, result.reason = "pruned", str(pruned)
        monitor.notes["pruned_by"] = pruned.rule
    seconds = monitor.clock.stop()
    result.report_seconds = seconds.pop("report", 0.0)
    result.phases, result.fit_seconds = seconds, sum(seconds.values())
    fill_result(result, monitor, data, registry)
    return result


@contextlib.contextmanager
def _scratch(job: Job) -> Iterator[Job]:
    """The job with a private folder for its method; a folder made here is removed at the end."""
    if job.scratch:
        yield job
        return
    folder = tempfile.mkdtemp(prefix=SCRATCH)
    try:
        yield msgspec.structs.replace(job, scratch=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _method_of(job: Job, fork: bool) -> Iterator[MethodProcess]:
    """The method's process; at the end it is killed with all that it started, before anything depends on labels."""
    others = children()
    process = MethodProcess(job, fork)
    try:
        yield process
    finally:
        process.end()
        end_children(keep=others)


@contextlib.contextmanager
def failures_recorded_in(result: CellResult) -> Iterator[None]:
    """Record an exception raised inside in the result, unless it is a transient failure of a file system."""
    try:
        yield
    except Skip as skip:
        result.status, result.reason = "skipped", str(skip) or "the method declined this setting"
    except OSError as error:
        if error.errno in TRANSIENT:
            raise
        _record_failure(result, error)
    except MemoryError:
        result.status, result.reason = "memory", "an allocation failed inside the cell (MemoryError)"
    except Exception as error:
        _record_failure(result, error)


def _record_failure(result: CellResult, error: Exception) -> None:
    result.status, result.reason = "failed", describe(error)
    result.traceback, result.failed_at = traceback.format_exc(limit=-12)[-_LONGEST_TRACEBACK:], where_it_failed(error)


def write_files(store: Store, job: Job, result: CellResult, predictions: Predictions) -> None:
    """Write the files of a cell, the result last."""
    buffer = io.BytesIO()
    if predictions and job.predictions:
        # Not compressed, and padded to the widest type: the size of the file would tell later cells which report it is.
        scores = [array for name, array in predictions.items() if name not in ("labels", "bag_of")]
        padding = np.zeros(sum(8 * array.size - array.nbytes for array in scores), np.uint8)
        np.savez(buffer, allow_pickle=False, **predictions, padding=padding)
    store.keep_predictions(job.cell.id, buffer.getvalue())
    store.write(result)
    store.write_machine(machine_id(), machine())


def choose_backend(job: Job) -> None:
    """Set the backend of Keras, which reads it from the environment when it is first imported."""
    if job.cell.backend:
        os.environ["KERAS_BACKEND"] = job.cell.backend


@contextlib.contextmanager
def trouble_reported() -> Iterator[None]:
    """End this process with the exit code ``TROUBLE`` if the harness fails inside, so that the cell is run again."""
    try:
        yield
    except (OSError, StoreError):
        traceback.print_exc()
        sys.exit(TROUBLE)


def run_as_process(job: Job, *, fork: bool) -> None:
    """Run a cell in a process of its own, which adopts all processes that the method leaves behind."""
    adopt_orphans()
    choose_backend(job)
    if not sandbox.version():
        sandbox.hide_memory()  # without a sandbox, at least keep the method from reading this memory
    with trouble_reported():
        run_job(job, fork=fork)


def main() -> int:
    """Read a job from standard input and run it."""
    die_with_parent()
    run_as_process(msgspec.json.decode(sys.stdin.buffer.read(), type=Job), fork=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
