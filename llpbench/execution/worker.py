"""The process of one cell: from a job to a result file. ``python -m llpbench.execution.worker < job.json``.

Whatever the method does, there is a result that says what happened.
"""

from __future__ import annotations

import io
import os
import resource
import sys
import time
import traceback
from functools import lru_cache
from pathlib import Path

import numpy as np

from llpbench.contracts.errors import Skip, describe, where_it_failed
from llpbench.contracts.job import Job
from llpbench.contracts.result import PROTOCOL, CellResult, Status
from llpbench.experiment.fit_cell import Predictions, fit_cell
from llpbench.plugins.registry import Registry, load_registry
from llpbench.results.provenance import Provenance, numeric_flags, recorded_code, recorded_versions
from llpbench.results.store import Store
from llpbench.system.files import write_atomically
from llpbench.system.machine import machine, machine_id


def run_job(job: Job) -> CellResult:
    """Run a cell and write its result."""
    store = Store(Path(job.out))
    result = blank_result(job, "failed")
    started = time.perf_counter()
    try:
        registry = shared_registry(job.plugins, job.override)
        result.oracle = registry.methods[job.cell.method].oracle
        result.versions, result.flags = recorded_versions(job), numeric_flags()
        result.rules = Provenance(registry).rules()
        predictions = fit_cell(job, registry, result)
        if predictions and job.predictions:
            _write_predictions(store.predictions_path(job.cell.id), predictions)
    except Skip as skip:
        result.status, result.reason = "skipped", str(skip) or "the method declined this setting"
    except MemoryError:
        result.status, result.reason = "memory", "an allocation failed inside the cell (MemoryError)"
    except Exception as error:
        result.status, result.reason = "failed", describe(error)
        result.traceback, result.failed_at = traceback.format_exc(limit=-12), where_it_failed(error)
    result.code = recorded_code(job)
    result.wall_seconds = time.perf_counter() - started
    result.peak_memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    store.write(result)
    store.write_machine(machine_id(), machine())
    return result


@lru_cache(maxsize=4)
def shared_registry(plugins: tuple[str, ...], override: tuple[str, ...]) -> Registry:
    """The registry of a run, loaded once for each process (the fork server loads it for all its children)."""
    return load_registry([Path(p) for p in plugins], override)


def blank_result(job: Job, status: Status, reason: str = "") -> CellResult:
    """A result that holds what is known before anything ran."""
    return CellResult(
        id=job.cell.id,
        cell=job.cell,
        status=status,
        reason=reason,
        method_name=job.method_name,
        dataset_name=job.dataset_name,
        protocol=PROTOCOL,
        code=job.code,
        limits={"timeout": job.timeout, "memory_mb": job.memory_mb, "threads": job.threads},
        tuning_seconds=job.tuning_seconds,
        machine=machine_id(),
        started=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def _write_predictions(path: Path, predictions: Predictions) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **predictions)
    write_atomically(path, buffer.getvalue())


def choose_backend(job: Job) -> None:
    """Name the cell's backend to Keras, which reads it from the environment when it is first imported."""
    if job.cell.backend:
        os.environ["KERAS_BACKEND"] = job.cell.backend


def main() -> int:
    """Read a job from standard input, run it."""
    import msgspec

    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    choose_backend(job)
    run_job(job)
    return 0


if __name__ == "__main__":
    sys.exit(main())
