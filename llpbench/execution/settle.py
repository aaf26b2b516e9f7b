"""What to keep of a cell whose process has ended: its own result, or one that says how it ended without."""

from __future__ import annotations

from pathlib import Path

from llpbench.contracts.errors import StoreError
from llpbench.contracts.executor import Outcome
from llpbench.contracts.result import FAILURES, CellResult, Status
from llpbench.results.blank import blank_result
from llpbench.results.sealing import Damaged
from llpbench.results.store import Stamp, Store


def settle(store: Store, outcome: Outcome, before: Stamp) -> CellResult | None:
    """Return the result of a cell that ended; one is written if its process left none.

    A sound result stands, also when its process was killed after it was written. A failure of the harness or a full
    disk is no fault of a cell: it stays missing (None), and is to be run again.

    Args:
        store: where results are.
        outcome: how the cell's process ended.
        before: the stamp of its result file when it was started.

    Raises:
        StoreError: there is no room for results.
    """
    if outcome.status == "trouble":
        store.check_room()
        return None
    if store.stamp(outcome.job.cell.id) == before:
        return _write_blank(store, outcome, outcome.reason or "the process ended without a result")
    try:
        result = store.read(outcome.job.cell.id)
    except Damaged as damage:
        return _write_blank(store, outcome, outcome.reason or f"its result file is damaged: {damage}")
    if result is None:
        return _write_blank(store, outcome, outcome.reason or "its result file is gone")
    if result.status in FAILURES:
        _take_back_if_disk_is_full(store, store.result_path(result.id))
    return result


def _write_blank(store: Store, outcome: Outcome, reason: str) -> CellResult:
    """Write a result without numbers for a cell that left none of its own."""
    store.check_room()
    status: Status = "crashed"
    if outcome.status == "timeout" or outcome.status == "memory":
        status = outcome.status
    result = blank_result(outcome.job, status, reason)
    result.wall_seconds, result.peak_memory_mb = outcome.seconds, outcome.peak_memory_mb
    result.machine = outcome.machine or result.machine
    store.keep_predictions(result.id, b"")
    store.write(result)
    return result


def _take_back_if_disk_is_full(store: Store, result: Path) -> None:
    """If the disk is full, remove the result of the failed cell and stop the run."""
    try:
        store.check_room()
    except StoreError:
        result.unlink(missing_ok=True)
        raise
