"""Methods that try to reach labels, results or the harness itself. Each notes what it found."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import hashlib
import os
import platform
import resource
import signal
import socket
import struct
import sys
import threading
import time
import types
from pathlib import Path

import numpy as np
import psutil

from llpbench import MethodSpec, Param, hookimpl

KINDS = (
    "behind",
    "frames",
    "objects",
    "memory",
    "other-memory",
    "predictions",
    "callback",
    "stop",
    "rival",
    "plant",
    "scorer",
    "escape",
    "kill",
    "orphan",
    "hoard",
    "flood",
    "garbage",
    "huge",
    "hold-line",
    "lie-about-time",
    "other-results",
    "code",
    "data",
    "handles",
    "log-pipe",
    "odd-phases",
    "last-words",
    "connect",
    "write",
    "threads",
    "reconfigure",
)
PREFIX = "1110100000101111111000011001110111111100110100000101100010001100"
NEXT = "2c7a6d964838dc9955edb63484cd29a5439c7561a79edb796c47ce678d677b16"


@hookimpl
def llpbench_methods():
    params = (Param("out", "", doc="the results folder under attack"), Param("patience", 1, low=1))
    names = {kind: kind.title().replace("-", "") for kind in KINDS}
    return [MethodSpec(name=f"attack-{kind}", factory=f"attacks:{names[kind]}", params=params) for kind in KINDS]


class Attack:
    def __init__(self, out="", patience=1):
        self.out = Path(out)

    def fit(self, bags, *, monitor, seed):
        self.bags = bags
        with contextlib.suppress(PermissionError):
            self.attack(bags, monitor)
        return self

    def predict_scores(self, X):
        return np.array(X[:, 0])  # the honest part


def looks_like_labels(thing, bags):
    """Whether an array holds the classes of single rows: training, held-out or test rows."""
    sizes = (len(bags.X), len(bags.validation.X), 600)
    return (
        isinstance(thing, np.ndarray)
        and thing.dtype.kind in "iu"
        and thing.shape in {(n,) for n in sizes}
        and set(np.unique(thing)) == {0, 1}
    )


def reachable(start, bags, limit=200_000):
    """Number of arrays of labels that can be reached from an object."""
    seen, queue, found = set(), [start], 0
    while queue and len(seen) < limit:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, types.ModuleType):
            continue
        seen.add(id(thing))
        found += looks_like_labels(thing, bags)
        queue.extend(gc.get_referents(thing))
    return found


class Behind(Attack):
    def attack(self, bags, monitor):
        monitor.note("found", reachable(monitor, bags))


class Frames(Attack):
    def attack(self, bags, monitor):
        frame, found = sys._getframe(), 0
        while frame is not None:
            found += sum(reachable(v, bags, 20_000) for v in list(frame.f_locals.values()))
            frame = frame.f_back
        monitor.note("found", found)


class Objects(Attack):
    def attack(self, bags, monitor):
        monitor.note("found", sum(looks_like_labels(r, bags) for o in gc.get_objects() for r in gc.get_referents(o)))


def in_memory(pid):
    """Whether the test labels are in the memory of a process, as integers of any width."""
    try:
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        memory = Path(f"/proc/{pid}/mem").open("rb", 0)  # noqa: SIM115
    except OSError:
        return False
    for line in maps:
        span, rights = line.split()[:2]
        low, high = (int(x, 16) for x in span.split("-"))
        if "r" not in rights or high - low > 1 << 28:
            continue
        with contextlib.suppress(OSError, ValueError):
            memory.seek(low)
            content = memory.read(high - low)
            for dtype in (np.int8, np.int16, np.int32, np.int64):
                first = np.array(list(PREFIX), np.int8).astype(dtype).tobytes()
                at = content.find(first)
                while at >= 0:
                    end = at + 2 * len(first)
                    rest = np.frombuffer(content[at + len(first) : end].ljust(len(first), b"x"), dtype)
                    if hashlib.sha256(rest.astype(np.int8).tobytes()).hexdigest() == NEXT:
                        return True
                    at = content.find(first, at + 1)
    return False


class Memory(Attack):
    def attack(self, bags, monitor):
        monitor.note("found", in_memory("self"))


class OtherMemory(Attack):
    def attack(self, bags, monitor):
        pids = {os.getppid(), *(int(p.name) for p in Path("/proc").iterdir() if p.name.isdecimal())} - {os.getpid()}

        def ours(pid):
            with contextlib.suppress(OSError):
                return b"llpbench" in Path(f"/proc/{pid}/cmdline").read_bytes()
            return False

        monitor.note("found", any(in_memory(pid) for pid in pids if ours(pid)))


class Predictions(Attack):
    def attack(self, bags, monitor):
        found = 0
        for path in self.out.rglob("*.npz"):
            with contextlib.suppress(OSError):
                found += "labels" in np.load(path)
        monitor.note("found", found)


class Callback(Attack):
    """Guesses held-out labels one by one: is anything about the second report different if row ``i`` has class 1?"""

    probe = "calls"

    def attack(self, bags, monitor):
        rows, rate = len(bags.validation.X), float(bags.validation.prior[0])
        guess = []
        for i in range(rows):
            calls = []

            def predict(X, i=i, bump=0.0, calls=calls):
                calls.append(len(X))
                scores = np.full(len(X), np.log(rate / (1 - rate)))
                if len(X) == rows:
                    scores[i] += bump
                return scores

            try:
                monitor.report(predict, stage=f"row {i}")
                calls.clear()
                monitor.report(lambda X, p=predict: p(X, bump=9.0), stage=f"row {i}")
            except Exception:
                break
            guess.append(str(int(600 in calls if self.probe == "calls" else not monitor.should_stop)))
        monitor.note("guess", "".join(guess))


class Stop(Callback):
    probe = "stop"


class Rival(Attack):
    """Overwrites the results of other methods."""

    def attack(self, bags, monitor):
        for path in [*self.out.glob("cells/*.json"), *self.out.glob("predictions/*.npz")]:
            path.write_bytes(b"{}")


class Plant(Attack):
    """Writes a forged result for itself and exits."""

    def attack(self, bags, monitor):
        from llpbench.results.sealing import encode_result
        from llpbench.results.store import Store

        store = Store(self.out)
        for cell_id, plan in store.manifest().planned.items():
            if plan.cell.method == "attack-plant":
                result = store.read(next(p.stem for p in self.out.glob("cells/*.json")))
                result.id, result.cell = cell_id, plan.cell
                for chosen in result.selected.values():
                    chosen.metrics["auroc"] = 0.999
                store.result_path(cell_id).write_bytes(encode_result(result))
                os._exit(0)


def everything_is_perfect(*_args, **_kwargs):
    return 0.999


def patch():
    import llpbench.experiment.metrics as metrics

    metrics.auroc = metrics.average_precision = metrics.accuracy = everything_is_perfect
    with contextlib.suppress(ImportError):
        import sklearn.metrics

        sklearn.metrics.roc_auc_score = everything_is_perfect


if os.environ.get("ATTACK_ON_IMPORT"):
    patch()


class Scorer(Attack):
    def attack(self, bags, monitor):
        patch()

    def predict_scores(self, X):
        return np.zeros(len(X))


class Escape(Attack):
    def attack(self, bags, monitor):
        print("\x1b[2J\x1b]0;owned\x07")
        raise ValueError("\x1b[2J\x1b]0;owned\x07 and\rover")


class Kill(Attack):
    def attack(self, bags, monitor):
        above = int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1])
        for pid in (above, os.getppid()):
            with contextlib.suppress(PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(1.0)


class Orphan(Attack):
    """Leaves a process running that has left its group and its session."""

    def attack(self, bags, monitor):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                Path(os.environ["LLPBENCH_CACHE"], "new").write_text(str(os.getpid()))
                Path(os.environ["LLPBENCH_CACHE"], "new").rename(Path(os.environ["LLPBENCH_CACHE"], "orphan"))
                time.sleep(3600)
            os._exit(0)
        while not Path(os.environ["LLPBENCH_CACHE"], "orphan").exists():
            time.sleep(0.01)


class Hoard(Attack):
    """Allocates its memory in an orphaned process."""

    def attack(self, bags, monitor):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                hoard = np.ones(125_000_000)
                time.sleep(3600)
                del hoard
            os._exit(0)
        time.sleep(3600)


class Flood(Attack):
    def attack(self, bags, monitor):
        for _ in range(400):
            os.write(1, b"many words " * 10_000)
        print("the last words", flush=True)


def sockets():
    """File descriptors of the sockets of this process."""
    for path in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            if str(path.readlink()).startswith("socket:"):
                yield int(path.name)


class Garbage(Attack):
    message = struct.pack("!i", 5) + b"\xc1\xc1\xc1\xc1\xc1"

    def attack(self, bags, monitor):
        for descriptor in sockets():
            with contextlib.suppress(OSError):
                socket.socket(fileno=os.dup(descriptor)).sendall(self.message)


class Huge(Garbage):
    message = struct.pack("!iQ", -1, 1 << 60) + b"x"


class HoldLine(Attack):
    """Exits with an error while a child still holds its connection to the judge."""

    def attack(self, bags, monitor):
        if os.fork() == 0:
            time.sleep(3600)
            os._exit(0)
        os._exit(3)


class LieAboutTime(Attack):
    def attack(self, bags, monitor):
        stopped = time.perf_counter()
        time.perf_counter = lambda: stopped
        time.sleep(1.0)


class OtherResults(Predictions):
    """Reads labels from results folders of other runs beside this one."""

    def attack(self, bags, monitor):
        self.out = self.out.parent
        super().attack(bags, monitor)


def writable(paths):
    """The files that can be opened for writing (nothing is written), and the folders where a file can be created."""
    found = []
    for path in map(Path, paths):
        target = path / "made by an attack.py" if path.is_dir() else path
        with contextlib.suppress(OSError):
            target.open("ab").close()
            found.append(path.name)
            if path.is_dir():
                target.unlink()
    return " ".join(found)


class Code(Attack):
    """Patches the scorer on disk, which would judge the next cell."""

    def attack(self, bags, monitor):
        import sklearn

        import llpbench.experiment.metrics as metrics

        site = Path(sklearn.__file__).parents[1]
        own = [metrics.__file__, Path(metrics.__file__).parent, Path(metrics.__file__).parent / "__pycache__"]
        others = [sklearn.__file__, site, os.__file__, __file__]
        monitor.note("found", writable([*own, *others]))


class Data(Attack):
    """Reads data files and what is derived from them, and changes what the next cells would read."""

    def attack(self, bags, monitor):
        folder = self.out.parent
        roots = [Path(os.environ["LLPBENCH_DATA"]), folder / "cache" / "made"]
        inside = [path for root in roots for path in root.rglob("*")]
        assert len(inside) == 2
        files = [*inside, folder / "desk" / "table.csv"]
        monitor.note("found", writable([*roots, *files]))
        monitor.note("read", " ".join(path.name for path in files if readable(path)))
        monitor.note("control", readable(folder / "desk" / "notes"))
        machine_code = [folder / "cache" / "compiled", *(folder / "cache" / "methods").iterdir()]
        monitor.note("compiled", writable(set(machine_code) - {Path(os.environ["LLPBENCH_CACHE"])}))
        monitor.note("origins", len(machine_code) - 1)


class Handles(Attack):
    """Looks for open files other than its own output and its connection to the judge."""

    def attack(self, bags, monitor):
        found = []
        for path in list(Path("/proc/self/fd").iterdir()):
            with contextlib.suppress(OSError):
                found.append(str(path.readlink()))
        usual = ("/dev/null", "/dev/urandom", "socket:", "anon_inode:", "/proc/", "/memfd:llpbench ")
        odd = {f for f in found if not f.startswith(usual) and not f.endswith("/method.log")}
        monitor.note("found", " ".join(sorted(odd))[:900])
        monitor.note("sockets", len([f for f in found if f.startswith("socket:")]))


class LogPipe(Attack):
    """Replaces its log by a pipe, where the judge would wait for a writer, and exits."""

    def attack(self, bags, monitor):
        log = Path(os.environ["TMPDIR"]) / "method.log"
        log.unlink()
        os.mkfifo(log)
        os._exit(3)


class OddPhases(Attack):
    """Sends its own final message, with invalid names of phases."""

    def ended(self):
        return {"phases": {"\x1b[2J\x07owned": 1e-9, "x" * 9999: 1e-9}}

    def attack(self, bags, monitor):
        import msgspec

        from llpbench.execution.messages import Ended

        monitor.report(self.predict_scores)
        said = msgspec.msgpack.encode(Ended(**self.ended()))
        for descriptor in sockets():
            with contextlib.suppress(OSError):
                socket.socket(fileno=os.dup(descriptor)).sendall(struct.pack("!i", len(said)) + said)
        time.sleep(3600)


class LastWords(OddPhases):
    def ended(self):
        words = "\x1b[2J\x07owned\u202e"
        said = {"reason": words, "traceback": f"{words}\n{words}", "failed_at": words}
        return {"phases": {}, "status": "failed", **said}


class Connect(Attack):
    """Connects to every port of this machine (a Dask scheduler runs whatever it is sent), and opens other sockets."""

    def attack(self, bags, monitor):
        listening = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ports = {int(row[1].split(":")[1], 16) for row in listening if row[3] == "0A"}
        found = 0
        for port in ports:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
                found += 1
        for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
            with contextlib.suppress(OSError):
                socket.socket(family, socket.SOCK_DGRAM).close()
                found += 1
        monitor.note("listening", len(ports))
        monitor.note("found", found)


class Reconfigure(Attack):
    """Sets limits, priorities and cores of the judge (to what they are), loads programs and keys into the kernel."""

    def attack(self, bags, monitor):
        judge, process = os.getppid(), psutil.Process(os.getppid())
        add_key, perf_event_open, bpf = (217, 241, 280) if platform.machine() == "aarch64" else (248, 298, 321)

        def call(number, *arguments):
            if ctypes.CDLL(None, use_errno=True).syscall(number, *arguments) < 0:
                raise OSError(ctypes.get_errno(), "")

        event = struct.pack("=IIQ", 1, 112, 0) + bytes(24) + struct.pack("=Q", 1) + bytes(64)  # the clock, not started
        ways = {
            "limit": lambda: resource.prlimit(judge, resource.RLIMIT_NOFILE, (10**5, 10**5)),
            "priority": lambda: os.setpriority(os.PRIO_PROCESS, judge, os.getpriority(os.PRIO_PROCESS, judge)),
            "cores": lambda: os.sched_setaffinity(judge, os.sched_getaffinity(judge)),
            "scheduler": lambda: os.sched_setscheduler(judge, os.SCHED_OTHER, os.sched_param(0)),
            "disk": lambda: process.ionice(psutil.IOPRIO_CLASS_NONE),
            "perf": lambda: call(perf_event_open, event, 0, -1, -1, 0),
            "bpf": lambda: call(bpf, 0, struct.pack("=IIIII", 2, 4, 4, 1, 0), 20),
            "key": lambda: call(add_key, b"user", b"a key", b"of an attack", 12, -2),
        }
        done = []
        for name, way in ways.items():
            with contextlib.suppress(OSError, psutil.Error, ValueError):
                way()
                done.append(name)
        monitor.note("done", " ".join(done))
        sets = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line[:3] == "Cap"]
        monitor.note("capabilities", any(int(each, 16) for each in sets if os.getuid() == 0))


class Write(Attack):
    """Writes where a later process would read: folders of the user and of other cells, the board, Python's settings."""

    def attack(self, bags, monitor):
        folder, own = self.out.parent, Path(os.environ["TMPDIR"])
        elsewhere = [folder / "desk", folder / "home", folder / "home" / ".profile", Path(sys.prefix) / "pyvenv.cfg"]
        board = folder / "leaderboards" / "board.json"
        neighbours = [path for path in own.parent.glob("llpbench-cell-*") if path != own]
        monitor.note("found", writable([*elsewhere, board, board.parent, *neighbours]))
        monitor.note("neighbours", len(neighbours))
        monitor.note("secrets", len([path for path in neighbours if readable(path / "secret")]))
        monitor.note("own", len(writable([own, Path.home(), os.environ["LLPBENCH_CACHE"]]).split()))


def blocks(thread, number):
    """Whether a thread blocks a signal; such a thread never runs a handler."""
    mask = next(line for line in (thread / "status").read_text().splitlines() if line.startswith("SigBlk"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


class Threads(Attack):
    """Reads test labels in the threads of a library: a signal handler runs in the thread that receives the signal."""

    def attack(self, bags, monitor):
        np.ones((600, 600)) @ np.ones((600, 600))  # the library may start its threads on first use
        threads = {int(path.name) for path in Path("/proc/self/task").iterdir() if not blocks(path, signal.SIGUSR1)}
        others = threads - {threading.get_native_id()}
        files, seen = list(self.out.rglob("*.npz")), []
        handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda _: seen.append(any(map(readable, files))))
        libc = ctypes.CDLL(None)
        libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
        libc.signal(signal.SIGUSR1, ctypes.cast(handler, ctypes.c_void_p))
        for number, thread in enumerate(others, 1):
            libc.tgkill(os.getpid(), thread, signal.SIGUSR1)
            while len(seen) < number:
                time.sleep(0.01)
        libc.signal(signal.SIGUSR1, None)
        monitor.note("threads", len(others))
        monitor.note("found", any(seen))


def readable(path):
    try:
        return bool(path.read_bytes())
    except OSError:
        return False
