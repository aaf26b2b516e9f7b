"""The far side of the Dask executor: one cell in a child process of a Dask worker, its files sent back as bytes.

A Dask task only waits; the cell has a process of its own, started and watched as on a single machine. A cell that
crashes, leaks or hangs takes no worker with it, and a worker that dies takes its cells with it.
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
from typing import Literal

import msgspec

from llpbench import __version__
from llpbench.contracts.errors import StoreError, describe
from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job
from llpbench.execution.confines import SCRATCH
from llpbench.execution.launch import FORK_IS_SAFE, ForkLauncher, SpawnLauncher
from llpbench.execution.watch import Launcher, Watched, remove_old_scratch
from llpbench.results.store import Store
from llpbench.system.locks import Claim
from llpbench.system.machine import machine, machine_id, usable_cores

_GLANCE = 0.1  # seconds between two looks at time, memory and whether anybody still waits
_IDLE = 60.0  # seconds without work after which fork servers are ended


class Order(msgspec.Struct):
    """A cell on its way to a worker, with the single-file plugins it needs."""

    job: Job
    version: str = __version__
    start: str = ""
    files: dict[str, bytes] = {}


class Reply(msgspec.Struct, omit_defaults=True):
    """What became of an order: how the process ended and the files it left.

    ``trouble`` is the worker's own (no room, no process to be had): not the cell's fault, which may be tried elsewhere.
    ``refused`` is for good: the worker cannot run cells of this client.
    """

    status: Literal["finished", "timeout", "memory", "crashed", "trouble", "refused"]
    reason: str = ""
    worker: str = ""
    seconds: float = 0.0
    peak_memory_mb: float = 0.0
    machine_id: str = ""
    machine: bytes = b""
    result: bytes = b""
    predictions: bytes = b""
    log: bytes = b""


def run_cell(order: bytes) -> bytes:
    """The Dask task: an ``Order`` (JSON) in, a ``Reply`` (MessagePack) out. It raises nothing of its own."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        """Whether anybody waits for the cell; a client that cancels or goes makes Dask forget the task."""
        task = worker.state.tasks.get(key)
        return task is not None and task.state != "cancelled"

    try:
        reply = run_order(msgspec.json.decode(order, type=Order), wanted)
    except Exception as error:
        reply = Reply("trouble", describe(error))
    reply.worker = str(worker.address)
    return msgspec.msgpack.encode(reply)


def run_order(order: Order, wanted: Callable[[], bool]) -> Reply:
    """Run the cell of an order in a private folder and collect what it wrote.

    The folder lies where all private folders of this machine do, not in the worker's own: there it is locked away from
    the methods of all other cells (``confines``), those of other workers too.
    """
    if order.version != __version__:
        return Reply("refused", f"it has llpbench {__version__}, the client {order.version}: install the same version")
    scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-"))
    try:
        store = Store(scratch / "results")
        store.log_path("-").parent.mkdir(parents=True)
        job = job_on_this_machine(order, scratch)
        outcome = host(order.start).run(job, wanted)
        reply = _reply(outcome, store)
        if reply.status != "finished" or not reply.result:
            try:
                store.check_room()
            except StoreError as error:
                return Reply("trouble", str(error))
        return reply
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def job_on_this_machine(order: Order, scratch: Path) -> Job:
    """The job with the paths of this machine: results under ``scratch``, data and plugins where they are here.

    A data folder that does not exist here is left to ``LLPBENCH_DATA``, the cache and the network of this machine;
    a plugin file that is not the same here is written from the order.
    """
    job = order.job
    moved: dict[str, str] = {}
    for path, content in order.files.items():
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
        locked=(job.out,) if Path(job.out).is_dir() else (),
        network=False,
        data=data,
        plugins=tuple(moved.values()),
        judge_plugins=None if job.judge_plugins is None else tuple(moved[path] for path in job.judge_plugins),
    )


def _reply(outcome: Outcome, store: Store) -> Reply:
    cell_id = outcome.job.cell.id
    paths = (store.result_path(cell_id), store.predictions_path(cell_id), store.log_path(cell_id))
    result, predictions, log = (path.read_bytes() if path.is_file() else b"" for path in paths)
    return Reply(
        outcome.status,
        outcome.reason,
        seconds=outcome.seconds,
        peak_memory_mb=outcome.peak_memory_mb,
        machine_id=machine_id(),
        machine=msgspec.json.encode(machine()),
        result=result,
        predictions=predictions,
        log=log,
    )


@dataclass
class _Waiting:
    """A cell that a Dask task waits for."""

    job: Job
    wanted: Callable[[], bool]
    done: Future[Outcome] = field(default_factory=Future)


@dataclass
class _Running:
    """A cell's process, and the cores it holds."""

    waiting: _Waiting
    watched: Watched
    cores: contextlib.ExitStack


class Host:
    """Runs the cells of one Dask worker process from a thread of its own.

    One thread that lives as long as the process: fork servers end with the thread that started them, and Dask
    may end its threads at any time.
    """

    def __init__(self, start: str) -> None:
        self._launcher: Launcher = SpawnLauncher() if start == "spawn" else ForkLauncher()
        self._new: queue.SimpleQueue[_Waiting] = queue.SimpleQueue()
        remove_old_scratch()
        threading.Thread(target=self._serve, name="llpbench-host", daemon=True).start()

    def run(self, job: Job, wanted: Callable[[], bool]) -> Outcome:
        """Run a cell to its end; it is stopped when nobody wants it any more."""
        waiting = _Waiting(job, wanted)
        self._new.put(waiting)
        return waiting.done.result()

    def _serve(self) -> None:
        running: dict[int, _Running] = {}
        while True:
            try:
                self._step(running)
            except Exception as error:  # the worker's own trouble; nobody may be left waiting
                for cell in running.values():
                    cell.watched.stop("crashed", "its host failed")
                    cell.cores.close()
                    cell.waiting.done.set_exception(error)
                running.clear()

    def _step(self, running: dict[int, _Running]) -> None:
        for waiting in self._arrivals(idle=not running):
            cores = contextlib.ExitStack()
            try:
                pinned = cores.enter_context(held_cores(waiting.job.threads))
                watched = Watched.begin(waiting.job, self._launcher, pinned)
            except Exception as error:
                cores.close()
                waiting.done.set_exception(error)
            else:
                running[watched.number] = _Running(waiting, watched, cores)
        for number, code in self._launcher.ended(_GLANCE) if running else ():
            if number in running:
                cell = running.pop(number)
                cell.cores.close()
                job = cell.watched.job
                outcome = cell.watched.outcome(code, Store(Path(job.out)).log_path(job.cell.id))
                cell.waiting.done.set_result(outcome)
        for cell in running.values():
            if cell.watched.broken is None and not cell.waiting.wanted():
                cell.watched.stop("crashed", "nobody waits for it any more")
            cell.watched.check()

    def _arrivals(self, idle: bool) -> Iterator[_Waiting]:
        """New cells; waits for one when nothing runs, and ends the fork servers when none comes."""
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
    """The host of this process for a way of starting cells; made on first use."""
    start = start or ("fork" if FORK_IS_SAFE else "spawn")
    with _hosts_lock:
        if start not in _hosts:
            _hosts[start] = Host(start)
        return _hosts[start]


@contextlib.contextmanager
def held_cores(count: int) -> Iterator[list[int]]:
    """Cores to pin a cell to, each held by one cell of this user on this machine; none when there are too few.

    Backends size their thread pools by the cores they may use, so a cell of one thread must be given one core. Under
    a CPU quota (containers) cores are not pinned: they may belong to somebody else, whom a lock cannot see.
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
    """The folder of this user's locks on cores; None when it is somebody else's."""
    folder = Path(tempfile.gettempdir(), f"llpbench-cores-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder if folder.lstat().st_uid == os.getuid() and not folder.is_symlink() else None
