"""The worker's side of the Dask executor: a cell runs in a child process, and its files are sent back as bytes.

The Dask task only waits. The cell has its own process, started and watched as on a single machine: a cell that crashes,
leaks or hangs does not affect its worker, and the cells of a worker end with it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from llpbench import __version__
from llpbench.contracts.errors import StoreError, describe
from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job
from llpbench.execution.confines import SCRATCH
from llpbench.execution.launch import make_launcher
from llpbench.execution.watch import Watched, remove_old_scratch
from llpbench.results.store import Store
from llpbench.system.locks import Claim
from llpbench.system.machine import machine, machine_id, usable_cores

_GLANCE = 0.1  # seconds between two checks of time, memory and whether the client still waits
_IDLE = 60.0  # seconds without work after which fork servers are ended


class CellRequest(msgspec.Struct):
    """A cell sent to a worker, with the single-file plugins it needs."""

    job: Job
    version: str = __version__
    start: str = ""
    files: dict[str, bytes] = {}


class CellReply(msgspec.Struct, omit_defaults=True):
    """How the process of a cell ended, and the files it wrote.

    ``trouble`` is a failure of the worker (full disk, no more processes): the cell may be tried elsewhere. ``refused``
    is permanent: the worker cannot run cells of this client.
    """

    status: Literal["finished", "timeout", "memory", "crashed", "trouble", "refused"]
    reason: str = ""
    worker: str = ""
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    machine_id: str = ""
    machine: dict[str, Any] = {}
    result: bytes = b""
    predictions: bytes = b""
    log: bytes = b""


def run_cell(request: bytes) -> bytes:
    """The Dask task: takes a ``CellRequest`` (JSON), returns a ``CellReply`` (MessagePack), raises nothing."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        """Whether the client still waits for the cell; Dask forgets the task if it cancels or disconnects."""
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    try:
        reply = run_request(msgspec.json.decode(request, type=CellRequest), wanted)
    except Exception as error:
        reply = CellReply("trouble", describe(error))
    reply.worker = str(worker.address)
    return msgspec.msgpack.encode(reply)


def run_request(request: CellRequest, wanted: Callable[[], bool]) -> CellReply:
    """Run a cell in a private folder and collect the files it wrote.

    The folder is in the machine's temporary folder, not in the worker's own: there the sandbox hides it from the
    methods of all other cells (``confines``), including those of other workers.
    """
    if request.version != __version__:
        versions = f"it has llpbench {__version__}, the client has {request.version}"
        return CellReply("refused", f"{versions}; install the same version on both")
    scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-"))
    try:
        store = Store(scratch / "results")
        store.log_path("-").parent.mkdir(parents=True)
        job = job_on_this_machine(request, scratch)
        outcome = host(request.start).run(job, wanted)
        reply = _reply(outcome, store)
        if reply.status != "finished" or not reply.result:
            try:
                store.check_room()
            except StoreError as error:
                return CellReply("trouble", str(error))
        return reply
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def job_on_this_machine(request: CellRequest, scratch: Path) -> Job:
    """The job with the paths of this machine: results under ``scratch``, data and plugins where they are here.

    A data folder that does not exist here is left to ``LLPBENCH_DATA``, the cache and the network of this machine;
    a plugin file that differs here is written from the request.
    """
    job = request.job
    moved: dict[str, str] = {}
    for path, content in request.files.items():
        here = Path(path)
        if not (here.is_file() and here.read_bytes() == content):
            here = scratch / "plugins" / here.name
            here.parent.mkdir(exist_ok=True)
            here.write_bytes(content)
        moved[path] = str(here)
    data = job.data if job.data and Path(job.data).is_dir() else ""
    return msgspec.structs.replace(
        job,
        out=str(scratch / "results"),
        locked=(*job.locked, *([job.out] if Path(job.out).is_dir() else [])),
        data=data,
        plugins=tuple(moved.values()),
        judge_plugins=None if job.judge_plugins is None else tuple(moved[path] for path in job.judge_plugins),
    )


def _reply(outcome: Outcome, store: Store) -> CellReply:
    cell_id = outcome.job.cell.id
    paths = (store.result_path(cell_id), store.predictions_path(cell_id), store.log_path(cell_id))
    result, predictions, log = (path.read_bytes() if path.is_file() else b"" for path in paths)
    return CellReply(
        outcome.status,
        outcome.reason,
        seconds=outcome.seconds,
        peak_memory_mb=outcome.peak_memory_mb,
        machine_id=machine_id(),
        machine=machine(),
        result=result,
        predictions=predictions,
        log=log,
    )


@dataclass
class _WaitingTask:
    """A cell and the Dask task that waits for it."""

    job: Job
    wanted: Callable[[], bool]
    done: Future[Outcome] = field(default_factory=Future)


@dataclass
class _RunningCell:
    """A cell's process and the cores it holds."""

    waiting: _WaitingTask
    watched: Watched
    cores: contextlib.ExitStack


class Host:
    """Runs the cells of a Dask worker process from a thread that lives as long as the process.

    Fork servers end with the thread that started them, and Dask may end its own threads at any time.
    """

    def __init__(self, start: str) -> None:
        self._launcher = make_launcher(start)
        self._new: queue.SimpleQueue[_WaitingTask] = queue.SimpleQueue()
        remove_old_scratch()
        threading.Thread(target=self._serve, name="llpbench-host", daemon=True).start()

    def run(self, job: Job, wanted: Callable[[], bool]) -> Outcome:
        """Run a cell to its end; it is stopped if ``wanted`` returns false."""
        waiting = _WaitingTask(job, wanted)
        self._new.put(waiting)
        return waiting.done.result()

    def _serve(self) -> None:
        running: dict[int, _RunningCell] = {}
        while True:
            try:
                self._step(running)
            except Exception as error:  # a failure of the worker; every waiting task must be answered
                for cell in running.values():
                    cell.watched.stop("crashed", "its worker failed")
                    cell.cores.close()
                    cell.waiting.done.set_exception(error)
                running.clear()

    def _step(self, running: dict[int, _RunningCell]) -> None:
        for waiting in self._arrivals(idle=not running):
            cores = contextlib.ExitStack()
            try:
                pinned = cores.enter_context(held_cores(waiting.job.threads))
                watched = Watched.begin(waiting.job, self._launcher, pinned)
            except Exception as error:
                cores.close()
                waiting.done.set_exception(error)
            else:
                running[watched.number] = _RunningCell(waiting, watched, cores)
        for number, code in self._launcher.ended(_GLANCE) if running else ():
            if number in running:
                cell = running.pop(number)
                cell.cores.close()
                job = cell.watched.job
                outcome = cell.watched.outcome(code, Store(Path(job.out)).log_path(job.cell.id))
                cell.waiting.done.set_result(outcome)
        for cell in running.values():
            if cell.watched.broken is None and not cell.waiting.wanted():
                cell.watched.stop("crashed", "the client no longer waits for it")
            cell.watched.check()

    def _arrivals(self, idle: bool) -> Iterator[_WaitingTask]:
        """New cells; if nothing runs, waits for one and ends the fork servers if none comes."""
        try:
            while True:
                yield self._new.get(timeout=_IDLE if idle else 0.0)
                idle = False
        except queue.Empty:
            if idle:
                self._launcher.close()


_hosts: dict[str, Host] = {}
_hosts_lock = threading.Lock()


def host(start: str) -> Host:
    """The host of this process for a way of starting cells, created on first use."""
    with _hosts_lock:
        if start not in _hosts:
            _hosts[start] = Host(start)
        return _hosts[start]


@contextlib.contextmanager
def held_cores(count: int) -> Iterator[list[int]]:
    """Cores to pin a cell to, each used by one cell of this user on this machine; empty if there are too few.

    Backends size their thread pools by the cores they may use, so a cell of one thread must be given one core. Cores
    are not pinned under a CPU quota (containers): another container may use them, and a lock would not show it.
    """
    claims: list[Claim] = []
    cores: list[int] = []
    try:
        with contextlib.suppress(OSError):
            folder, usable = _cores_folder(), usable_cores()
            for core in random.sample(usable, len(usable)):
                if folder is None or cpu_quota():
                    break
                claim = Claim.take(folder / f"{core}.lock") if len(cores) < count else None
                if claim is not None:
                    claims.append(claim)
                    cores.append(core)
        yield sorted(cores) if len(cores) == count else []
    finally:
        for claim in claims:
            claim.release()


def cpu_quota() -> bool:
    """Whether the control group limits processor time (rather than cores)."""
    for file, free in (("cpu.max", "max"), ("cpu/cpu.cfs_quota_us", "-1")):
        with contextlib.suppress(OSError):
            return not Path("/sys/fs/cgroup", file).read_text().startswith(free)
    return False


def _cores_folder() -> Path | None:
    """The folder of this user's locks on cores; None if another user owns it."""
    folder = Path(tempfile.gettempdir(), f"llpbench-cores-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder if folder.lstat().st_uid == os.getuid() and not folder.is_symlink() else None
