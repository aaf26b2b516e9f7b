"""The Dask executor: the same cells on any Dask cluster, results collected as they come.

A job travels as JSON, its files come back as bytes and are written here, so no shared file system is needed and the
results folder is the one a local run would make. Dask itself starts a cell again when its worker is lost; a cell
that ends badly on a healthy worker is at fault itself and is not tried again.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from llpbench.cluster.dask_watch import SCHEDULER, Look, Silence
from llpbench.cluster.remote import Order, Reply, run_cell
from llpbench.contracts.errors import ExecutorError, StoreError, UsageError, describe, printable, shortened
from llpbench.contracts.executor import ExecutorSettings, Outcome
from llpbench.contracts.job import Job
from llpbench.execution.local import cells_at_once
from llpbench.results.sealing import Damaged, decode_result
from llpbench.results.store import Store, is_machine_name
from llpbench.system.files import write_atomically

log = logging.getLogger("llpbench")
_NOISY = ("distributed", "tornado", "asyncio")
_LOOK = 2.0  # seconds between two looks at the cluster
_GATHER = 30.0  # seconds for one result to arrive; a worker lost in between makes Dask run the cell again
_TRIES = 3  # workers that may fail a cell by their own trouble
_QUEUE = (4, 256)  # cells in flight: at least, at most (each holds a claim)


@dataclass
class _Sent:
    """A cell in flight."""

    job: Job
    future: Any
    troubled: list[str]
    only: list[str]


class DaskExecutor:
    """Cells as child processes of Dask workers.

    Args:
        scheduler: address (``tcp://host:8786``) or scheduler file of a running cluster; empty for a cluster of
            this machine, which is started on first use and ended by ``close``.
        jobs: cells in flight at once; by default twice the threads of all workers, so that none waits for this
            process. For a local cluster: its number of workers.
        threads: threads of each cell.
        start: how workers start a cell, ``fork`` or ``spawn``.
    """

    remote = True
    """Cells run elsewhere: every machine sees to its own data."""

    def __init__(self, scheduler: str = "", jobs: int = 0, threads: int = 1, start: str = "") -> None:
        if start not in ("", "fork", "spawn"):
            raise UsageError(f"--start {start!r} is not known. Available: fork, spawn.")
        if jobs < 0 or threads < 1:
            raise UsageError("--jobs and --threads take positive numbers.")
        self.scheduler, self._jobs, self._start = scheduler, jobs, start
        self._local_workers = 0 if scheduler else cells_at_once(jobs, threads)
        self._run, self._number = uuid.uuid4().hex[:8], itertools.count()
        self._client: Any = None
        self._cluster: Any = None
        self._loudness: dict[str, int] = {}
        self._files: dict[str, bytes] = {}
        self._sent: dict[str, _Sent] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._looked = float("-inf")
        self._capacity = 0
        self._declared: dict[str, str] = {}
        self._workers: list[str] = []
        self._warned: set[str] = set()
        self._look: Look | None = None
        self._silence = Silence()
        if scheduler:
            self._connect()

    @classmethod
    def from_settings(cls, settings: ExecutorSettings, scheduler: str = "") -> DaskExecutor:
        """Make one as the command line asks for it."""
        return cls(scheduler, settings.jobs, settings.threads, settings.start)

    @property
    def slots(self) -> int:
        """How many more cells may be sent now."""
        if self._client is None:
            self._connect()
        least, most = _QUEUE
        wanted = self._jobs if self.scheduler and self._jobs else max(least, 2 * self._capacity)
        return max(0, min(most, wanted) - len(self._sent))

    def submit(self, job: Job) -> None:
        """Send a cell to the cluster."""
        if self._client is None:
            self._connect()
        self._send(job, [])

    def wait(self, seconds: float) -> list[Outcome]:
        """Collect cells that ended; their files are in the results folder when this returns."""
        deadline = time.monotonic() + seconds
        outcomes: list[Outcome] = []
        while not outcomes:
            self._check_cluster()
            left = deadline - time.monotonic()
            with contextlib.suppress(queue.Empty):
                future = self._ended.get(timeout=max(0.0, min(left, _LOOK)))
                while True:  # this one and all that came with it
                    outcomes += self._collect(future)
                    future = self._ended.get_nowait()
            if left <= 0:
                break
        return outcomes

    def close(self) -> None:
        """Take back what is still in flight (workers stop those cells), and end a cluster of our own."""
        client, cluster, self._client, self._cluster = self._client, self._cluster, None, None
        futures = [sent.future for sent in self._sent.values()]
        self._sent.clear()
        connected = client is not None and client.status == "running"
        if client is not None:
            with contextlib.suppress(Exception):
                if connected and futures:
                    client.cancel(futures, force=True)
            with contextlib.suppress(Exception):
                client.close(timeout=5)
        if cluster is not None:
            with contextlib.suppress(Exception):
                cluster.close(timeout=10)
        if connected:  # Dask complains of a lost scheduler long after the client was closed
            self._unmute()

    def _unmute(self) -> None:
        for name, level in self._loudness.items():
            logging.getLogger(name).setLevel(level)

    def _connect(self) -> None:
        from distributed import Client, LocalCluster
        from distributed.comm.addressing import parse_address
        from distributed.comm.registry import get_backend
        from distributed.gc import disable_gc_diagnosis

        noisy = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _NOISY]
        for name in noisy:  # each has a level of its own; what matters to the user is said by this class
            self._loudness[name] = logging.getLogger(name).level
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            if self.scheduler:
                is_file = Path(self.scheduler).is_file()
                where = {"scheduler_file": self.scheduler} if is_file else {"address": self.scheduler}
                if not is_file:  # a client that cannot even begin takes long to give up
                    get_backend(parse_address(self.scheduler)[0])
            else:
                with _ignoring_interrupts():
                    self._cluster = LocalCluster(
                        n_workers=self._local_workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",  # any free port; none would still ask for 8787
                        memory_limit=None,  # cells have limits of their own
                        silence_logs=logging.CRITICAL,
                    )
                # Its callback runs inside the garbage collector, where a Ctrl-C would be lost.
                disable_gc_diagnosis(force=True)
                where = {"address": self._cluster}
            self._client = Client(**where, timeout=10, set_as_default=False)
            self._check_cluster(10.0)
            if self._look is not None:
                raise TimeoutError("it takes connections, but does not answer")
        except (OSError, ValueError, TypeError, TimeoutError) as error:
            self._unmute()
            name = self.scheduler or "the local cluster"
            raise UsageError(
                f"--executor dask[scheduler={name}]: no Dask scheduler answers there "
                f"({' '.join(str(error).split())[:200]}). "
                "Start one with: dask scheduler"
            ) from None
        if not self._workers:
            log.warning("the scheduler at %s has no workers yet; cells wait for the first", self.scheduler)

    def _check_cluster(self, seconds: float = 0.2) -> None:
        """Learn of workers that came and went; raise when the scheduler is gone, tell the user when it is silent.

        Args:
            seconds: how long to wait for an answer; one that comes later is taken at the next call.
        """
        if self._client is None or (self._look is None and time.monotonic() - self._looked < _LOOK):
            return
        if self._client.status != "running":
            raise self._lost()
        self._look = self._look or Look(self._client)
        try:
            workers = self._look.workers(seconds)
        except (OSError, TimeoutError, RuntimeError):
            raise self._lost() from None
        if workers is None:
            self._silence.hear(SCHEDULER, self._look.began)
            self._silence.excuse_workers()
            self._tell_silence()
            return
        self._look = None
        for address, worker in workers.items():
            self._silence.hear(address, worker.get("last_seen"))
        self._silence.forget_but(set(workers))
        self._tell_silence()
        self._workers = list(workers)
        self._capacity = sum(int(worker["nthreads"]) for worker in workers.values())
        self._declared = {name.lower(): name for worker in workers.values() for name in worker.get("resources") or {}}
        self._looked = time.monotonic()
        for sent in [s for s in self._sent.values() if s.only and not set(s.only) & set(workers)]:
            del self._sent[sent.future.key]  # the workers it was sent to are gone
            self._client.cancel([sent.future], force=True)
            self._send(sent.job, sent.troubled)

    def _tell_silence(self) -> None:
        for name, seconds in self._silence.news():
            if name == SCHEDULER:
                what = (
                    f"scheduler at {self.scheduler or 'this machine'} has not answered for {seconds:.0f} s; cells wait"
                )
                then = "for it (Ctrl-C stops the run, finished cells are kept)"
            else:
                what = f"worker {name} has been silent for {seconds:.0f} s; its cells wait"
                then = "until it answers or the scheduler gives it up"
            log.warning("the Dask %s %s", printable(what), then)

    def _lost(self) -> ExecutorError:
        return ExecutorError(
            f"the Dask scheduler at {self.scheduler or 'this machine'} went away or was restarted. "
            "Finished cells are kept; once it is back, the same command goes on with what is missing."
        )

    def _send(self, job: Job, troubled: list[str]) -> None:
        for path in job.plugins:
            self._files.setdefault(path, Path(path).read_bytes())
        order = Order(job, start=self._start, files={path: self._files[path] for path in job.plugins})
        only = [worker for worker in self._workers if worker not in troubled] if troubled else []
        future = self._client.submit(
            run_cell,
            msgspec.json.encode(order),
            key=f"llpbench-{self._run}-{next(self._number)}-{job.cell.id}",
            pure=False,
            resources=self._resources(job) or None,
            workers=only or None,
        )
        self._sent[future.key] = _Sent(job, future, troubled, only)
        future.add_done_callback(self._ended.put)

    def _resources(self, job: Job) -> dict[str, float]:
        """What the cell reserves, of those kinds that workers declare (``dask worker --resources``)."""
        wanted = {"cpu": float(job.threads), "memory": job.memory_mb * 2**20}
        wanted |= {name.lower(): amount for name, amount in job.resources.items()}
        for name in job.resources:
            if self._workers and name.lower() not in self._declared and (warning := f"{job.cell.method} {name}"):
                if warning not in self._warned:
                    log.warning(
                        "%s asks for %s, which no Dask worker declares (dask worker --resources %s=1): "
                        "its cells go to any worker",
                        job.cell.method,
                        name,
                        name,
                    )
                self._warned.add(warning)
        return {self._declared[name]: amount for name, amount in wanted.items() if name in self._declared}

    def _collect(self, future: Any) -> list[Outcome]:
        """The outcome of an ended task; none when it is to be tried again."""
        from distributed import KilledWorker

        sent = self._sent.get(future.key)
        if sent is None or sent.future is not future:
            return []
        if future.status == "finished":
            try:
                reply = msgspec.msgpack.decode(future.result(timeout=_GATHER), type=Reply)
            except TimeoutError:
                future.add_done_callback(self._ended.put)
                return []
            except Exception as error:
                if future.status in ("cancelled", "lost"):
                    raise self._lost() from None
                reply = Reply("trouble", describe(error))
            return self._settle(sent, reply)
        if future.status != "error":
            raise self._lost()
        failure = future.exception()
        del self._sent[future.key]
        if isinstance(failure, KilledWorker):
            times = failure.allowed_failures + 1
            reason = f"{times} workers were lost while they ran it, the last {failure.last_worker.address}"
            return [Outcome(sent.job, "crashed", reason)]
        return self._try_elsewhere(sent, Reply("trouble", describe(failure)[:400]))

    def _settle(self, sent: _Sent, reply: Reply) -> list[Outcome]:
        if reply.status == "refused":
            raise ExecutorError(f"the Dask worker {reply.worker} cannot run cells: {reply.reason}.")
        del self._sent[sent.future.key]
        if reply.status == "trouble":
            return self._try_elsewhere(sent, reply)
        if reply.machine_id and not is_machine_name(reply.machine_id):
            trouble = f"its machine is called {printable(reply.machine_id)[:80]!r}, which is no machine's id"
            return self._try_elsewhere(sent, msgspec.structs.replace(reply, reason=trouble))
        reason, where = shortened(printable(reply.reason)), reply.machine_id
        outcome = Outcome(sent.job, reply.status, reason, reply.seconds, reply.peak_memory_mb, machine=where)
        return [_keep(outcome, reply)]

    def _try_elsewhere(self, sent: _Sent, reply: Reply) -> list[Outcome]:
        """Try a cell elsewhere that failed by its worker's trouble, not by its own."""
        troubled = [*sent.troubled, reply.worker]
        if len(troubled) >= _TRIES:
            return [Outcome(sent.job, "crashed", f"no worker could run it ({_TRIES} tries): {reply.reason}")]
        who, why = printable(reply.worker), shortened(printable(reply.reason), 400)
        log.warning("the Dask worker %s could not run a cell (%s); trying again", who, why)
        self._send(sent.job, troubled)
        return []


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started in here ignore Ctrl-C, which a terminal sends to all: this process decides what it means."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _machine_record(sent: bytes) -> dict[str, Any]:
    """What a worker says of its machine; nothing when it is not a small record."""
    try:
        return msgspec.json.decode(sent, type=dict[str, str | int | float]) if len(sent) < 10_000 else {}
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}


def _keep(outcome: Outcome, reply: Reply) -> Outcome:
    """Write the files of a cell into the results folder, the result last; a result that is not sound is a crash."""
    job = outcome.job
    store, cell_id = Store(Path(job.out)), job.cell.id
    try:
        if reply.log:
            write_atomically(store.log_path(cell_id), reply.log)
        if reply.status != "finished" or not reply.result:
            return outcome
        try:
            result = decode_result(reply.result)
        except Damaged as damage:
            return Outcome(job, "crashed", f"worker {reply.worker} sent a damaged result: {damage}")
        if result.id != cell_id:
            return Outcome(job, "crashed", f"worker {reply.worker} sent the result of another cell ({result.id})")
        if result.machine and not is_machine_name(result.machine):  # it becomes the name of a file
            return Outcome(job, "crashed", f"worker {reply.worker} sent a result of a machine with no sound name")
        store.keep_predictions(cell_id, reply.predictions)
        if result.machine:
            store.write_machine(result.machine, _machine_record(reply.machine))
        write_atomically(store.result_path(cell_id), reply.result)
        store.keep_traceback(result)
    except OSError as error:
        raise StoreError(f"cannot write the result of cell {cell_id} to {store.root}: {error}") from None
    return outcome
