"""The Dask executor: the same cells on any Dask cluster, results collected as they arrive.

A job is sent as JSON, its files come back as bytes and are written here, so no shared file system is needed and the
results folder is the same as that of a local run. Dask restarts a cell if its worker is lost; a cell that crashes on a
healthy worker is not tried again.
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

from llpbench.cluster.dask_watch import SCHEDULER, ClusterQuery, SilenceMonitor
from llpbench.cluster.remote import CellReply, CellRequest, run_cell
from llpbench.contracts.errors import ExecutorError, StoreError, UsageError, describe
from llpbench.contracts.executor import ExecutorSettings, Outcome
from llpbench.contracts.job import Job
from llpbench.execution.local import cells_at_once
from llpbench.results.sealing import Damaged, decode_result
from llpbench.results.store import Store
from llpbench.system.files import write_atomically

log = logging.getLogger("llpbench")
_NOISY = ("distributed", "tornado", "asyncio")
_QUERY = 2.0  # seconds between two queries of the cluster
_GATHER = 30.0  # seconds for one result to arrive; a worker lost in between makes Dask run the cell again
_TRIES = 3  # workers that may fail to run a cell
_QUEUE = (4, 256)  # cells in flight: at least, at most (each holds a claim)


@dataclass
class _SubmittedCell:
    """A cell on the cluster, the workers that failed to run it, and those it may run on (empty for all)."""

    job: Job
    future: Any
    troubled: list[str]
    only: list[str]


class DaskExecutor:
    """Cells as child processes of Dask workers.

    Args:
        settings: ``jobs`` are cells in flight at once; by default twice the threads of all workers, so that none
            waits for this process. For a local cluster: its number of workers.
        scheduler: address (``tcp://host:8786``) or scheduler file of a running cluster; empty for a cluster of
            this machine, which is started on first use and ended by ``close``.
    """

    remote = True
    """Cells run on other machines, each with its own data."""

    def __init__(self, settings: ExecutorSettings, scheduler: str = "") -> None:
        jobs, threads = settings.jobs, settings.threads
        if jobs < 0 or threads < 1:
            raise UsageError(f"--jobs and --threads must be positive, got {jobs} and {threads}.")
        self.scheduler, self._jobs, self._start = scheduler, jobs, settings.start
        self._local_workers = 0 if scheduler else cells_at_once(jobs, threads)
        self._run, self._number = uuid.uuid4().hex[:8], itertools.count()
        self._client: Any = None
        self._cluster: Any = None
        self._log_levels: dict[str, int] = {}
        self._files: dict[str, bytes] = {}
        self._sent: dict[str, _SubmittedCell] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._queried = float("-inf")
        self._capacity = 0
        self._declared: dict[str, str] = {}
        self._workers: list[str] = []
        self._warned: set[str] = set()
        self._query: ClusterQuery | None = None
        self._silence = SilenceMonitor()
        if scheduler:
            self._connect()

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
                future = self._ended.get(timeout=max(0.0, min(left, _QUERY)))
                while True:  # this one and all that came with it
                    outcomes += self._collect(future)
                    future = self._ended.get_nowait()
            if left <= 0:
                break
        return outcomes

    def close(self) -> None:
        """Cancel all cells that still run, and close the local cluster if there is one."""
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
        if connected:  # otherwise Dask logs the lost scheduler long after the client was closed
            self._restore_log_levels()

    def _restore_log_levels(self) -> None:
        for name, level in self._log_levels.items():
            logging.getLogger(name).setLevel(level)

    def _connect(self) -> None:
        from distributed import Client, LocalCluster
        from distributed.comm.addressing import parse_address
        from distributed.comm.registry import get_backend
        from distributed.gc import disable_gc_diagnosis

        noisy = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in _NOISY]
        for name in noisy:  # each has its own level; this class reports what matters to the user
            self._log_levels[name] = logging.getLogger(name).level
            logging.getLogger(name).setLevel(logging.CRITICAL)
        try:
            if self.scheduler:
                is_file = Path(self.scheduler).is_file()
                where = {"scheduler_file": self.scheduler} if is_file else {"address": self.scheduler}
                if not is_file:  # fail early: a client takes long to reject an unknown protocol
                    get_backend(parse_address(self.scheduler)[0])
            else:
                with _ignoring_interrupts():
                    self._cluster = LocalCluster(
                        n_workers=self._local_workers,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",  # any free port; None would still try 8787
                        memory_limit=None,  # cells have limits of their own
                        silence_logs=logging.CRITICAL,
                    )
                # Its callback runs inside the garbage collector, where a Ctrl-C would be lost.
                disable_gc_diagnosis(force=True)
                where = {"address": self._cluster}
            self._client = Client(**where, timeout=10, set_as_default=False)
            self._check_cluster(10.0)
            if self._query is not None:
                raise TimeoutError("it accepts connections but does not answer")
        except (OSError, ValueError, TypeError, TimeoutError) as error:
            self._restore_log_levels()
            name = self.scheduler or "the local cluster"
            raise UsageError(
                f"--executor dask[scheduler={name}]: no Dask scheduler answers at this address "
                f"({' '.join(str(error).split())[:200]}). "
                "Start one with: dask scheduler"
            ) from None
        if not self._workers:
            log.warning("the Dask scheduler at %s has no workers yet; waiting for the first one", self.scheduler)

    def _check_cluster(self, seconds: float = 0.2) -> None:
        """Update the list of workers; raise if the scheduler is lost, warn if it does not answer.

        Args:
            seconds: how long to wait for an answer; a later one is used by the next call.
        """
        if self._client is None or (self._query is None and time.monotonic() - self._queried < _QUERY):
            return
        if self._client.status != "running":
            raise self._lost()
        self._query = self._query or ClusterQuery(self._client)
        try:
            workers = self._query.workers(seconds)
        except (OSError, TimeoutError, RuntimeError):
            raise self._lost() from None
        if workers is None:
            self._silence.heartbeat(SCHEDULER, self._query.began)
            self._silence.reset_workers()
            self._warn_of_silence()
            return
        self._query = None
        for address, worker in workers.items():
            self._silence.heartbeat(address, worker.get("last_seen"))
        self._silence.keep_only(set(workers))
        self._warn_of_silence()
        self._workers = list(workers)
        self._capacity = sum(int(worker["nthreads"]) for worker in workers.values())
        self._declared = {name.lower(): name for worker in workers.values() for name in worker.get("resources") or {}}
        self._queried = time.monotonic()
        for sent in [s for s in self._sent.values() if s.only and not set(s.only) & set(workers)]:
            del self._sent[sent.future.key]  # the workers it was sent to are gone
            self._client.cancel([sent.future], force=True)
            self._send(sent.job, sent.troubled)

    def _warn_of_silence(self) -> None:
        for name, seconds in self._silence.newly_silent():
            if name == SCHEDULER:
                what = f"scheduler at {self.scheduler or 'this machine'} has not answered for {seconds:.0f} s; waiting"
                then = "for it (Ctrl-C stops the run, finished cells are kept)"
            else:
                what = f"worker {name} has not responded for {seconds:.0f} s; waiting"
                then = "until it responds or the scheduler removes it"
            log.warning("the Dask %s %s", what, then)

    def _lost(self) -> ExecutorError:
        return ExecutorError(
            f"the connection to the Dask scheduler at {self.scheduler or 'this machine'} was lost. "
            "Finished cells are kept; once it is back, the same command runs the missing cells."
        )

    def _send(self, job: Job, troubled: list[str]) -> None:
        for path in job.plugins:
            self._files.setdefault(path, Path(path).read_bytes())
        request = CellRequest(job, start=self._start, files={path: self._files[path] for path in job.plugins})
        only = [worker for worker in self._workers if worker not in troubled] if troubled else []
        future = self._client.submit(
            run_cell,
            msgspec.json.encode(request),
            key=f"llpbench-{self._run}-{next(self._number)}-{job.cell.id}",
            pure=False,
            resources=self._resources(job) or None,
            workers=only or None,
        )
        self._sent[future.key] = _SubmittedCell(job, future, troubled, only)
        future.add_done_callback(self._ended.put)

    def _resources(self, job: Job) -> dict[str, float]:
        """The resources of a cell, as far as workers declare them (``dask worker --resources``)."""
        wanted = {"cpu": float(job.threads), "memory": job.memory_mb * 2**20}
        wanted |= {name.lower(): amount for name, amount in job.resources.items()}
        for name in job.resources:
            if self._workers and name.lower() not in self._declared and (warning := f"{job.cell.method} {name}"):
                if warning not in self._warned:
                    log.warning(
                        "%s requires the resource %s, which no Dask worker declares (dask worker --resources %s=1); "
                        "its cells run on any worker",
                        job.cell.method,
                        name,
                        name,
                    )
                self._warned.add(warning)
        return {self._declared[name]: amount for name, amount in wanted.items() if name in self._declared}

    def _collect(self, future: Any) -> list[Outcome]:
        """The outcome of an ended task; empty if the cell is tried again."""
        from distributed import KilledWorker

        sent = self._sent.get(future.key)
        if sent is None or sent.future is not future:
            return []
        if future.status == "finished":
            try:
                reply = msgspec.msgpack.decode(future.result(timeout=_GATHER), type=CellReply)
            except TimeoutError:
                future.add_done_callback(self._ended.put)
                return []
            except Exception as error:
                if future.status in ("cancelled", "lost"):
                    raise self._lost() from None
                reply = CellReply("trouble", describe(error))
            return self._settle(sent, reply)
        if future.status != "error":
            raise self._lost()
        failure = future.exception()
        del self._sent[future.key]
        if isinstance(failure, KilledWorker):
            times = failure.allowed_failures + 1
            reason = f"{times} workers were lost while running it, most recently {failure.last_worker.address}"
            return [Outcome(sent.job, "crashed", reason)]
        return self._try_elsewhere(sent, CellReply("trouble", describe(failure)[:400]))

    def _settle(self, sent: _SubmittedCell, reply: CellReply) -> list[Outcome]:
        if reply.status == "refused":
            raise ExecutorError(f"the Dask worker {reply.worker} cannot run cells: {reply.reason}.")
        del self._sent[sent.future.key]
        if reply.status == "trouble":
            return self._try_elsewhere(sent, reply)
        how = Outcome(
            sent.job, reply.status, reply.reason, reply.seconds, reply.peak_memory_mb, machine=reply.machine_id
        )
        return [_write_files(how, reply)]

    def _try_elsewhere(self, sent: _SubmittedCell, reply: CellReply) -> list[Outcome]:
        """Submit a cell again after a failure of its worker."""
        troubled = [*sent.troubled, reply.worker]
        if len(troubled) >= _TRIES:
            return [Outcome(sent.job, "trouble", f"no worker could run it ({_TRIES} tries): {reply.reason}")]
        log.warning("the Dask worker %s could not run a cell (%s); trying again", reply.worker, reply.reason[:400])
        self._send(sent.job, troubled)
        return []


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Let processes started inside ignore Ctrl-C, which a terminal sends to all; this process handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _write_files(outcome: Outcome, reply: CellReply) -> Outcome:
    """Write the files of a cell into the results folder, the result last; an invalid result counts as a crash."""
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
        store.keep_predictions(cell_id, reply.predictions)
        store.write_machine(result.machine, reply.machine)
        write_atomically(store.result_path(cell_id), reply.result)
        store.keep_traceback(result)
    except OSError as error:
        raise StoreError(f"cannot write the result of cell {cell_id} to {store.root}: {error}") from None
    return outcome
