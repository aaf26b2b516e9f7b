"""The result of a cell before anything is known of how it ends."""

from __future__ import annotations

import time

from llpbench.contracts.job import Job
from llpbench.contracts.result import PROTOCOL, CellResult, Status
from llpbench.system.machine import machine_id


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
