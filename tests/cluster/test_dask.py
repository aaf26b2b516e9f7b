"""Cells on a Dask cluster of real processes, some of which are killed."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec
import numpy as np
import psutil
import pytest
from attack_field import Field
from cli_runner import llpbench, status, table
from helpers import PATIENCE, QuietHandler, make_cell, serving

from llpbench.cluster import remote
from llpbench.cluster.dask import DaskExecutor
from llpbench.cluster.remote import CellRequest, held_cores, job_on_this_machine, run_request
from llpbench.contracts.errors import UsageError
from llpbench.contracts.executor import ExecutorSettings, Outcome
from llpbench.contracts.job import Job
from llpbench.execution import sandbox
from llpbench.execution.confines import SCRATCH, out_of_reach
from llpbench.plugins.registry import load_registry
from llpbench.system.machine import usable_cores

pytestmark = pytest.mark.slow

COUNTED = Path(__file__).parents[1] / "support" / "faults" / "counted.py"
SMALL = "synthetic[rows=400;dim=4]"
VARYING = ("phases", "machine", "started", "notes", "limits")  # what differs between two runs of one cell


class Cluster:
    """A scheduler and workers, each a process of its own; ``counted`` is where the cells write that they ran."""

    def __init__(self, folder: Path, counted: Path) -> None:
        self.folder, self.counted, self.file = folder, counted, folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        options = ["--scheduler-file", str(self.file), "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._start("scheduler", options, {})
        until(self.file.exists, "the scheduler did not start")
        self.address: str = json.loads(self.file.read_text())["address"]

    def worker(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        common = ["--scheduler-file", str(self.file), "--host", "127.0.0.1", "--no-dashboard", "--no-nanny"]
        common += ["--nthreads", "1", "--local-directory", str(self.folder / f"scratch-{len(self.processes)}")]
        process = self._start(
            "worker", [*common, *options], {"LLPBENCH_TEST_COUNTED": str(self.counted), **environment}
        )
        log = self.folder / f"process-{len(self.processes) - 1}.log"
        until(lambda: "Registered to" in log.read_text(), "the worker did not join")
        return process

    def _start(self, what: str, options: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"process-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what}", *options],
                cwd=self.folder,
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def fits(self) -> list[list[str]]:
        return [line.split() for line in self.counted.read_text().splitlines()]

    def close(self) -> None:
        family = [p for process in self.processes for p in descendants(process.pid)]
        for process in self.processes:
            process.kill()
            process.wait()
        _, alive = psutil.wait_procs(family, timeout=PATIENCE)
        assert not alive, "a worker left processes behind"


def until(true: Callable[[], Any], words: str, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, words
        time.sleep(0.05)


def descendants(pid: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).children(recursive=True)
    return []


@pytest.fixture
def cluster(tmp_path: Path, counted: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, counted)
    try:
        yield made
    finally:
        made.close()


def grid(methods: str, out: str, *more: str) -> list[str]:
    request = ["run", "--plugin", str(COUNTED), "--methods", methods, "--datasets", SMALL, "--bags", "4,8"]
    return [*request, "--seeds", "2", "--out", out, *more]


def on(cluster: Cluster) -> tuple[str, ...]:
    return ("--executor", f"dask[scheduler={cluster.address}]")


def client(cluster: Cluster, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "llpbench", *arguments]
    return subprocess.Popen(command, cwd=cluster.folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def results(folder: Path) -> dict[str, dict[str, Any]]:
    """Results by cell, without what no two runs share (times, memory, the machine)."""
    found = {}
    for path in (folder / "cells").glob("*.json"):
        result = json.loads(path.read_text())["result"]
        found[path.stem] = {k: v for k, v in result.items() if k not in VARYING and not k.endswith(("seconds", "mb"))}
    return found


def predictions(folder: Path) -> dict[str, dict[str, bytes]]:
    found = {}
    for path in (folder / "predictions").glob("*.npz"):
        with np.load(path, allow_pickle=False) as arrays:
            found[path.stem] = {name: arrays[name].tobytes() for name in arrays.files}
    return found


def test_cells_of_a_lost_worker_run_again_and_crashed_cells_do_not(cluster: Cluster) -> None:
    """A worker is killed while it runs a cell, and cells kill themselves: the results equal those of a local run."""
    methods = "counted,counted[seconds=3],counted-killed"
    workers = [cluster.worker() for _ in range(2)]
    run = client(cluster, *grid(methods, "far", *on(cluster), "--start", "fork"))
    busy: dict[int, psutil.Process] = {}

    def one_is_busy() -> bool:
        innocent = {fit[2] for fit in cluster.fits() if fit[0] == "Counted"}
        for number, worker in enumerate(workers):
            found = [p for p in descendants(worker.pid) if str(p.pid) in innocent]
            busy.update({number: found[0]} if found else {})
        time.sleep(0.3)  # a fast cell would be gone by now
        for number in [number for number, cell in busy.items() if not cell.is_running()]:
            del busy[number]
        return bool(busy)

    until(one_is_busy, "no worker got a slow cell")
    number, cell = busy.popitem()
    workers[number].kill()
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 1, errors  # cells that kill themselves are failures
    _, alive = psutil.wait_procs([cell], timeout=PATIENCE)
    assert not alive, "the cell outlived its worker"

    fits = Counter((name, seed) for name, seed, *_ in cluster.fits())
    guilty = {cell: times for cell, times in fits.items() if cell[0] == "Killed"}
    assert len(guilty) == 4
    assert set(guilty.values()) == {1}  # not tried again
    innocent = [times for (name, _), times in fits.items() if name == "Counted"]
    # counted and counted[seconds=3] share a seed: every seed is seen twice, and the lost cell once more
    assert len(innocent) == 4
    assert min(innocent) == 2
    assert sum(innocent) in (9, 10)  # 10: the worker also held a result that had not been collected

    near = llpbench(*grid(methods, "near"), cwd=cluster.folder, LLPBENCH_TEST_COUNTED=str(cluster.counted))
    assert near.returncode == 1, near.stderr
    there, here = results(cluster.folder / "far"), results(cluster.folder / "near")
    assert len(here) == 12
    assert there == here
    assert predictions(cluster.folder / "far") == predictions(cluster.folder / "near")
    assert len(predictions(cluster.folder / "far")) == 8
    assert table(cluster.folder / "far") == table(cluster.folder / "near")
    assert not list((cluster.folder / "far" / "claims").iterdir())
    assert not list((cluster.folder / "far").rglob("*.tmp"))
    assert len(list((cluster.folder / "far" / "machines").iterdir())) == 1
    dead = f"scratch-{number + 1}"
    scratch = [p for p in cluster.folder.glob("scratch-*/**/llpbench-cell-*") if dead not in p.parts]
    assert not scratch, "workers keep nothing of a cell"


def test_interrupt_stops_cells_on_workers_and_keeps_finished_ones(cluster: Cluster) -> None:
    worker = cluster.worker("--nthreads", "2")
    run = client(cluster, *grid("counted,counted[seconds=300]", "out", *on(cluster)))
    cells = cluster.folder / "out" / "cells"

    def busy() -> bool:
        alive = {str(p.pid) for p in descendants(worker.pid)}
        return sum(fit[2] in alive for fit in cluster.fits()) == 2 and len(list(cells.glob("*.json"))) >= 1

    until(busy, "two long cells should run beside finished ones")
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130, errors
    assert "the same command goes on" in errors
    assert "Traceback" not in errors
    until(lambda: not {str(p.pid) for p in descendants(worker.pid)} & {fit[2] for fit in cluster.fits()}, "cells go on")
    assert worker.poll() is None
    finished = len(list(cells.glob("*.json")))
    assert finished >= 1
    assert status(cluster.folder / "out")["counts"] == {"ok": finished, "missing": 8 - finished}


def test_run_continues_locally_after_the_scheduler_is_lost(cluster: Cluster) -> None:
    cluster.worker()
    run = client(cluster, *grid("counted[seconds=1]", "out", *on(cluster)))
    cells = cluster.folder / "out" / "cells"
    until(lambda: len(list(cells.glob("*.json"))) >= 1, "no cell was finished")
    cluster.scheduler.kill()
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 1, errors
    assert f"error: the connection to the Dask scheduler at {cluster.address} was lost" in errors
    assert "Traceback" not in errors, errors
    kept = {p.name: p.stat().st_mtime_ns for p in cells.glob("*.json")}
    assert 1 <= len(kept) < 4
    done = llpbench(*grid("counted[seconds=1]", "out"), cwd=cluster.folder, LLPBENCH_TEST_COUNTED=str(cluster.counted))
    assert done.returncode == 0, done.stderr
    assert status(cluster.folder / "out")["counts"] == {"ok": 4}
    assert all((cells / name).stat().st_mtime_ns == when for name, when in kept.items())


def test_cells_with_resources_run_on_workers_that_declare_them(cluster: Cluster) -> None:
    cluster.worker(LLPBENCH_TEST_WORKER="plain")
    done = llpbench(*grid("counted-gpu", "early", *on(cluster), "--bags", "4"), cwd=cluster.folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("counted-gpu requires the resource gpu, which no Dask worker declares") == 1
    assert [fit[3] for fit in cluster.fits()] == ["plain", "plain"]
    cluster.counted.write_text("")
    cluster.worker("--resources", "GPU=1 cpu=1", LLPBENCH_TEST_WORKER="gpu")
    done = llpbench(*grid("counted-gpu", "out", *on(cluster)), cwd=cluster.folder)
    assert done.returncode == 0, done.stderr
    assert "no Dask worker declares" not in done.stderr
    assert [fit[3] for fit in cluster.fits()] == ["gpu"] * 4


def test_failure_of_a_worker_does_not_fail_cells(cluster: Cluster) -> None:
    """A worker without a temporary folder can run nothing: its cells run on the other one."""
    gone = cluster.folder / "ill.py"
    gone.write_text('import tempfile\n\ntempfile.tempdir = "/no/such/folder"\n')
    cluster.worker(LLPBENCH_TEST_WORKER="well")
    cluster.worker("--preload", str(gone), LLPBENCH_TEST_WORKER="ill")
    done = llpbench(*grid("counted[seconds=0.3]", "out", *on(cluster)), cwd=cluster.folder)
    assert done.returncode == 0, done.stderr
    assert "could not run a cell (FileNotFoundError" in done.stderr
    assert {fit[3] for fit in cluster.fits()} == {"well"}
    assert status(cluster.folder / "out")["counts"] == {"ok": 4}


class TableHandler(QuietHandler):
    """Serves the table of ``counted-file``."""

    hits: ClassVar[list[str]] = []
    body = b""

    def do_GET(self) -> None:  # noqa: N802
        self.hits.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)


def test_workers_fetch_data_once_and_the_client_does_not(cluster: Cluster) -> None:
    """The client's data folder does not exist on the workers, which share the cache of their machine."""
    spec = importlib.util.spec_from_file_location("counted_table", COUNTED)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    TableHandler.body = module.TABLE
    with serving(HTTPServer(("127.0.0.1", 0), TableHandler)) as server:
        url = {"LLPBENCH_TEST_COUNTED_URL": f"http://127.0.0.1:{server.server_address[1]}/table.bin"}
        for name in ("a", "b"):
            cluster.worker(
                LLPBENCH_TEST_WORKER=name, LLPBENCH_CACHE=str(cluster.folder / "machine"), LLPBENCH_DATA="", **url
            )
        arguments = grid("counted[seconds=0.5]", "out", *on(cluster), "--data", "/no/such/folder")
        arguments[arguments.index(SMALL)] = "counted-file"
        done = llpbench(*arguments, cwd=cluster.folder, LLPBENCH_CACHE=str(cluster.folder / "client"), **url)
    assert done.returncode == 0, done.stderr
    assert len(cluster.fits()) == 4
    assert TableHandler.hits == ["/table.bin"]
    assert not (cluster.folder / "client" / "data").exists()


def test_local_cluster_is_started_and_ended(tmp_path: Path, counted: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "llpbench", *grid("counted", "out", "--executor", "dask", "--jobs", "1")],
        cwd=tmp_path,
        env={**os.environ, "LLPBENCH_TEST_COUNTED": str(counted)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    family: set[psutil.Process] = set()
    while run.poll() is None:
        family |= set(descendants(run.pid))
        time.sleep(0.2)
    errors = run.communicate()[1]
    assert run.returncode == 0, errors
    assert errors.splitlines()[0] == "4 cells, 0 already done"
    assert errors.splitlines()[-2:] == ["results: out", "page: out/report.html"]
    assert len(errors.splitlines()) == 7  # no output of Dask itself
    _, alive = psutil.wait_procs(list(family), timeout=PATIENCE)
    assert not alive
    assert status(tmp_path / "out")["counts"] == {"ok": 4}


def test_interrupt_from_the_terminal_ends_a_local_cluster(tmp_path: Path, counted: Path) -> None:
    run = subprocess.Popen(
        [sys.executable, "-m", "llpbench", *grid("counted,counted[seconds=300]", "out", "--executor", "dask")],
        cwd=tmp_path,
        env={**os.environ, "LLPBENCH_TEST_COUNTED": str(counted)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    until(lambda: list(tmp_path.glob("out/cells/*.json")), "no cell was finished")
    family = descendants(run.pid)
    os.killpg(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130, errors
    assert "the same command goes on" in errors
    assert "Traceback" not in errors
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert not alive


@pytest.mark.skipif(not sandbox.version(), reason="needs Landlock")
def test_attacks_fail_on_a_cluster(tmp_path: Path) -> None:
    field = Field(tmp_path, "--executor", "dask")
    kinds = ("objects", "predictions", "other-results", "rival", "scorer", "connect")
    field.attack(*kinds)
    results = field.results
    assert {results[kind]["status"] for kind in kinds} == {"ok"}
    for kind in ("objects", "predictions", "other-results"):
        assert not results[kind]["notes"]["found"]
    assert results["connect"]["notes"]["listening"]
    assert sandbox.version() < 4 or not results["connect"]["notes"]["found"]
    assert results["scorer"]["selected"]["bags"]["metrics"]["auroc"] == 0.5
    assert field.honest.items() <= field.files().items()


# -- options -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense://x"])
def test_unreachable_scheduler_is_a_usage_error(tmp_path: Path, address: str) -> None:
    done = llpbench(*grid("counted", "out", "--executor", f"dask[scheduler={address}]"), cwd=tmp_path)
    assert done.returncode == 2
    assert f"--executor dask[scheduler={address}]: no Dask scheduler answers at this address" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llpbench.plugins.registry.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r'dask needs distributed: pip install "llpbench\[dask\]"'):
        load_registry().executor("dask[scheduler=tcp://127.0.0.1:9]", ExecutorSettings())


def test_options_of_another_executor_are_rejected() -> None:
    with pytest.raises(UsageError, match="unknown parameter of local: 'scheduler'"):
        load_registry().executor("local[scheduler=tcp://127.0.0.1:9]", ExecutorSettings())
    with pytest.raises(UsageError, match="one value for each option"):
        load_registry().executor("dask[scheduler=a;b]", ExecutorSettings())


@pytest.mark.parametrize("options", [{"jobs": -1}, {"threads": 0}, {"jobs": 10_000}])
def test_invalid_options_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        DaskExecutor(ExecutorSettings(**options))


# -- on the worker -----------------------------------------------------------------------------------------------------


def make_job(**changes: Any) -> Job:
    facts: dict[str, Any] = {
        "cell": make_cell(),
        "method_name": "guess",
        "dataset_name": "toy",
        "out": "/client/results",
    }
    return Job(**{**facts, **changes})


def test_worker_rejects_a_client_of_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reply = run_request(CellRequest(make_job(), version="0.0.1"), lambda: True)
    assert reply.status == "refused"
    assert "0.0.1" in reply.reason
    assert list(tmp_path.iterdir()) == []


def test_job_gets_the_paths_of_the_worker(tmp_path: Path) -> None:
    here = tmp_path / "same.py"
    here.write_bytes(b"x = 1\n")
    job = make_job(data="/no/such/folder", plugins=("/client/mine.py", str(here)), judge_plugins=("/client/mine.py",))
    files = {"/client/mine.py": b"y = 2\n", str(here): b"x = 1\n"}
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    home = job_on_this_machine(CellRequest(job, files=files), scratch)
    assert (home.out, home.data) == (str(scratch / "results"), "")
    assert home.judge_plugins == (str(scratch / "plugins" / "mine.py"),)
    assert home.plugins == (str(scratch / "plugins" / "mine.py"), str(here))
    assert Path(home.plugins[0]).read_bytes() == b"y = 2\n"
    changed = job_on_this_machine(CellRequest(job, files={**files, str(here): b"x = 3\n"}), scratch)
    assert Path(changed.plugins[1]).read_bytes() == b"x = 3\n"
    assert here.read_bytes() == b"x = 1\n"
    assert job_on_this_machine(CellRequest(make_job(data=str(tmp_path))), scratch).data == str(tmp_path)


class Machine:
    """Workers of one machine, each with its own folder; their cells write a file of results and then wait."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.over = folder, threading.Event()
        self.jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self.workers: list[threading.Thread] = []
        (folder / "tmp").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder / "tmp"))
        monkeypatch.setattr("distributed.get_worker", self.worker)
        monkeypatch.setattr(remote, "host", lambda _: self)

    def worker(self) -> Any:
        folder = self.folder / threading.current_thread().name
        folder.mkdir(exist_ok=True)
        return SimpleNamespace(local_directory=str(folder), address="tcp://any", get_current_task=lambda: "any")

    def begin(self, name: str) -> Job:
        """The job of a cell that has begun on the worker of that name."""
        order = msgspec.json.encode(
            CellRequest(make_job(plugins=("/client/mine.py",)), files={"/client/mine.py": b"y = 2\n"})
        )
        self.workers.append(threading.Thread(target=remote.run_cell, args=(order,), name=name))
        self.workers[-1].start()
        return self.jobs.get(timeout=PATIENCE)

    def run(self, job: Job, _wanted: Callable[[], bool]) -> Outcome:
        Path(job.out, "labels").write_text("labels")
        self.jobs.put(job)
        self.over.wait()
        return Outcome(job, "crashed", "it was a test")

    def close(self) -> None:
        self.over.set()
        for worker in self.workers:
            worker.join()


LOCKED = """
import json, sys
from pathlib import Path
from llpbench.execution.sandbox import lock_away

locked, writable = json.loads(sys.argv[1])
assert lock_away(map(Path, locked), writable=map(Path, writable))
print("locked", flush=True)
for line in sys.stdin:
    try:
        print(len(Path(line.strip()).read_text()), flush=True)
    except PermissionError:
        print(0, flush=True)
"""


@pytest.mark.skipif(not sandbox.version(), reason="needs Landlock")
def test_method_cannot_read_results_of_cells_of_other_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    try:
        earlier, own = machine.begin("a"), machine.begin("b")
        private = tempfile.mkdtemp(prefix=f"{SCRATCH}{os.getpid()}-")
        paths = (out_of_reach(msgspec.structs.replace(own, scratch=private)), (private,))
        command = [sys.executable, "-c", LOCKED, json.dumps(paths)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as method:
            assert method.stdout is not None
            assert method.stdout.readline() == "locked\n"
            later = machine.begin("c")
            files = [*(f"{job.out}/labels" for job in (earlier, own, later)), own.plugins[0]]
            said, _ = method.communicate("\n".join(files))
    finally:
        machine.close()
    assert said.split() == ["0", "0", "0", "6"]  # nothing but its own plugin


def test_each_core_is_held_by_one_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "cpu_quota", lambda: False)
    monkeypatch.setattr(remote.tempfile, "gettempdir", lambda: str(tmp_path))
    cores = usable_cores()
    with contextlib.ExitStack() as held:
        given = [core for _ in cores for core in held.enter_context(held_cores(1))]
        assert sorted(given) == cores
        assert held.enter_context(held_cores(1)) == []  # none left: not pinned
    with held_cores(len(cores)) as all_of_them:
        assert all_of_them == cores
    with held_cores(len(cores) + 1) as too_many:
        assert too_many == []
    with held_cores(1) as again:
        assert len(again) == 1
    monkeypatch.setattr(remote, "cpu_quota", lambda: True)
    with held_cores(1) as under_quota:
        assert under_quota == []
