"""Schedulers and workers that stop responding are reported, and what a worker sends is validated."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from helpers import make_cell, make_plan, make_result

from llpbench.cluster import dask, dask_watch
from llpbench.cluster.dask import DaskExecutor
from llpbench.cluster.dask_watch import SCHEDULER, SilenceMonitor
from llpbench.cluster.remote import CellReply
from llpbench.contracts.executor import Outcome
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
    executor = DaskExecutor(jobs=1)
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


def kept(tmp_path: Path, name: str, record: bytes = b"{}") -> tuple[Store, Outcome]:
    """The store and outcome after a worker sent a result with this machine id."""
    cell = make_cell()
    store = Store(tmp_path / "a" / "b" / "out")
    store.plan([make_plan(cell)], "llpbench run", "0.1.0")
    job = Job(cell=cell, method_name="", dataset_name="", out=str(store.root))
    result = encode_result(make_result(cell, machine=name, traceback="Traceback"))
    reply = CellReply("finished", worker="tcp://w:1", machine=record, result=result)
    return store, dask._write_files(Outcome(job, "finished"), reply)


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "a/b", "..", "a\x00b", ".hidden", "x" * 65, "a b", "a\n"])
def test_invalid_machine_id_is_rejected(tmp_path: Path, name: str) -> None:
    store, outcome = kept(tmp_path, name)
    assert outcome.status == "crashed"
    assert "invalid machine id" in outcome.reason
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]
    assert list((store.root / "machines").iterdir()) == []


@pytest.mark.parametrize("record", [b"", b"[1]", b"{" * 100_000, b'{"a":' + b"1" * 20_000 + b"}", b"\xff", b'{"a":[]}'])
def test_invalid_machine_description_is_ignored(tmp_path: Path, record: bytes) -> None:
    store, outcome = kept(tmp_path, "abc123", record)
    assert outcome.status == "finished"
    (result,) = store.results()
    assert store.traceback_path(result.id).read_text() == "Traceback\n"
    assert msgspec.json.decode((store.root / "machines" / "abc123.json").read_bytes()) == {}


def test_predictions_of_an_earlier_result_are_removed(tmp_path: Path) -> None:
    store, _ = kept(tmp_path, "abc123")
    scores = store.predictions_path(make_cell().id)
    scores.write_bytes(b"of the earlier result")
    _, outcome = kept(tmp_path, "abc123")
    assert outcome.status == "finished"
    assert not scores.exists()


def test_reply_with_an_invalid_machine_id_is_a_failure_of_the_worker(
    executor: DaskExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    job = Job(cell=make_cell(), method_name="", dataset_name="", out=str(tmp_path))
    resent: list[Job] = []
    monkeypatch.setattr(executor, "_send", lambda job, troubled: resent.append(job))

    class Future:
        key = "k"

    sent = dask._SubmittedCell(job, Future(), [], [])
    executor._sent["k"] = sent
    with caplog.at_level(logging.WARNING):
        assert executor._settle(sent, CellReply("crashed", worker="tcp://w\x1b:1", machine_id="../x")) == []
    assert resent == [job]
    assert "invalid machine id" in caplog.text
    assert "\x1b" not in caplog.text
