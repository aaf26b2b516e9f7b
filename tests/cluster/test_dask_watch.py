"""Schedulers and workers that stop responding are reported, and what a worker sends is written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import make_cell, make_plan, make_result

from llpbench.cluster import dask, dask_watch
from llpbench.cluster.dask import DaskExecutor
from llpbench.cluster.dask_watch import SCHEDULER, SilenceMonitor
from llpbench.cluster.remote import CellReply
from llpbench.contracts.executor import ExecutorSettings, Outcome
from llpbench.contracts.job import Job
from llpbench.results.sealing import encode_result
from llpbench.results.store import Store

pytestmark = pytest.mark.slow
WORKER = {"nthreads": 2, "resources": {}}


class Client:
    """A client whose scheduler answers only while ``awake`` is set."""

    status = "running"

    def __init__(self) -> None:
        self.awake, self.seen = threading.Event(), 0.0

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        self.awake.wait()
        return {"workers": {"tcp://w:1": {**WORKER, "last_seen": self.seen}}}


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.awake.set()


@pytest.fixture
def executor(client: Client, monkeypatch: pytest.MonkeyPatch) -> DaskExecutor:
    monkeypatch.setattr(dask, "_QUERY", 0.0)
    executor = DaskExecutor(ExecutorSettings(jobs=1))
    executor._client = client
    return executor


def test_silent_scheduler_is_reported_once(
    executor: DaskExecutor, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    executor._check_cluster(0.0)  # returns without an answer
    assert caplog.messages == []
    monkeypatch.setattr(dask_watch, "SILENT", 0.0)
    for _ in range(3):
        executor._check_cluster(0.0)
    (message,) = caplog.messages
    assert "the Dask scheduler at this machine has not answered for" in message
    assert "finished cells are kept" in message
    monkeypatch.setattr(dask_watch, "SILENT", 1e9)
    client.awake.set()
    executor._check_cluster(60.0)
    assert executor._workers == ["tcp://w:1"]
    assert executor._capacity == 2


def test_silent_worker_is_reported_once(
    executor: DaskExecutor, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client.awake.set()
    executor._check_cluster(60.0)
    monkeypatch.setattr(dask_watch, "SILENT", 0.0)
    for _ in range(3):
        executor._check_cluster(60.0)
    (message,) = caplog.messages
    assert "the Dask worker tcp://w:1 has not responded" in message
    client.seen = 1.0
    monkeypatch.setattr(dask_watch, "SILENT", 1e9)
    executor._check_cluster(60.0)
    assert len(caplog.messages) == 1


def test_workers_are_not_silent_while_the_scheduler_is(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(dask_watch.time, "monotonic", lambda: clock[0])
    silence = SilenceMonitor()
    silence.heartbeat("tcp://w:1", 1.0)
    silence.heartbeat(SCHEDULER, 0)
    for clock[0] in (30.0, 59.0, 61.0):
        silence.reset_workers()
        reported = silence.newly_silent()
    assert reported == [(SCHEDULER, 61.0)]
    silence.keep_only({"tcp://w:1"})
    clock[0] = 100.0
    assert silence.newly_silent() == []
    clock[0] = 121.0
    assert silence.newly_silent() == [("tcp://w:1", 60.0)]


# -- what a worker sends -----------------------------------------------------------------------------------------------


def kept(tmp_path: Path) -> Store:
    """The store after a worker sent a result."""
    cell = make_cell()
    store = Store(tmp_path)
    store.plan([make_plan(cell)], "llpbench run", "0.1.0")
    job = Job(cell=cell, method_name="", dataset_name="", out=str(store.root))
    result = encode_result(make_result(cell, machine="abc123", traceback="Traceback"))
    reply = CellReply("finished", worker="tcp://w:1", machine={"cpu": "fast"}, result=result)
    assert dask._write_files(Outcome(job, "finished"), reply).status == "finished"
    return store


def test_files_of_a_result_are_written_and_earlier_predictions_removed(tmp_path: Path) -> None:
    scores = kept(tmp_path).predictions_path(make_cell().id)
    scores.write_bytes(b"of the earlier result")
    store = kept(tmp_path)
    assert not scores.exists()
    (result,) = store.results()
    assert store.traceback_path(result.id).read_text() == "Traceback\n"
    assert '"cpu": "fast"' in (store.root / "machines" / "abc123.json").read_text()
