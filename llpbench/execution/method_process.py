"""The judge's hold on the method's process of its cell: starts it, hears its reports, and ends it."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from llpbench.contracts.errors import MethodError, printable
from llpbench.contracts.job import Job
from llpbench.contracts.result import CellResult, Status
from llpbench.execution.channel import Assignment, Channel, Misspoken
from llpbench.execution.confines import out_of_reach, to_be_written
from llpbench.execution.messages import (
    Ended,
    FromMethod,
    Material,
    Note,
    PseudoLabels,
    Ready,
    Reply,
    Report,
    Scoring,
    arrays_of,
    longest_message,
    unpack,
)
from llpbench.execution.watch import describe_exit, end_of_log
from llpbench.experiment.fit_cell import Prepared, method_seed
from llpbench.experiment.judge import Judge, Pruned
from llpbench.system.processes import die_with_parent, python
from llpbench.system.shared_arrays import share

_GLANCE = 0.5  # seconds between two looks whether the process is still there
_MOST_PHASES, _LONGEST_NAME = 100, 100
_LONGEST_REASON, _LONGEST_TRACEBACK = 2000, 20_000
FREE_SCORING = 10.0
"""Seconds of scoring that are never charged to a method; beyond them, what exceeds the fit itself is."""


class MethodProcess:
    """The method's process, from its start to its end.

    Args:
        job: the cell.
        fork: fork it from this process, which must not have seen data yet; otherwise a new Python is started.
    """

    def __init__(self, job: Job, fork: bool) -> None:
        ours, theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.log = Path(job.scratch, "method.log")
        self.peak_mb = 0.0
        self._code: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        assignment = Assignment(
            method=job.cell.method,
            params=job.cell.params,
            backend=job.cell.backend,
            seed=method_seed(job.cell),
            plugins=job.plugins,
            override=job.override,
            locked=out_of_reach(job),
            writable=to_be_written(job),
            scratch=job.scratch,
            network=job.network,
        )
        with theirs:
            self.pid = self._fork(assignment, theirs) if fork else self._spawn(assignment, theirs)

    def _fork(self, assignment: Assignment, theirs: socket.socket) -> int:
        parent = os.getpid()
        pid = os.fork()
        if pid:
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
            return pid
        try:
            from llpbench.execution.method_start import start

            with contextlib.suppress(OSError):
                os.setpgid(0, 0)
            die_with_parent()
            if os.getppid() != parent:
                os._exit(0)
            self.channel.connection.close()
            handle = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            for stream in (1, 2):
                os.dup2(handle, stream)
            os.close(handle)
            faulthandler.enable()
            start(Channel(theirs), assignment)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(0)

    def _spawn(self, assignment: Assignment, theirs: socket.socket) -> int:
        module = "llpbench.execution.method_start"
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [*python(), "-X", "faulthandler", "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        with contextlib.suppress(OSError):
            self.channel.send(assignment)
        return self._child.pid

    def receive(self, longest: int) -> FromMethod:
        """The next message; ``EOFError`` when the process is gone.

        The line itself does not tell: a process that the method started may hold it open.
        """
        while not select.select([self.channel], [], [], _GLANCE)[0]:
            if self.poll() is not None and not select.select([self.channel], [], [], 0)[0]:
                raise EOFError
        message: FromMethod
        message, handles = self.channel.receive(FromMethod, longest)
        for handle in handles:
            os.close(handle)
        return message

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._wait(os.WNOHANG)

    def end(self) -> int:
        """Kill the process and its group, if they still run; the exit code."""
        self.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self._wait(0)
        self.channel.connection.close()
        assert code is not None
        return code

    def _wait(self, options: int) -> int | None:
        if self._code is None:
            pid, status, usage = os.wait4(self.pid, options)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
                self.peak_mb = _maxrss_mb(usage)
                if self._child is not None:
                    self._child.returncode = self._code
        return self._code

    def fate(self) -> str:
        """How a process ended that did not say so itself."""
        deadline = time.monotonic() + 5.0
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._code is None:
            return "the method closed its line to the judge"
        return describe_exit(self._code) + end_of_log(self.log)


def hear(
    process: MethodProcess, judge: Judge, data: Prepared, job: Job, result: CellResult, *, last: bool = True
) -> None:
    """Give the method its data, judge what it reports, and fill in status, reason and seconds of the result.

    With ``last`` false the process waits for the data of another fit afterwards.
    """
    try:
        ended = _conversation(process, judge, data, job, result, last)
    except Pruned as pruned:
        result.status, result.reason = "pruned", str(pruned)
        judge.notes["pruned_by"] = pruned.rule
    except EOFError:
        result.status, result.reason = "crashed", process.fate()
    except Misspoken as words:
        result.status, result.reason = "failed", f"the method's process sent {words}"
    else:
        result.status, result.reason = _status(ended.status), printable(ended.reason[:_LONGEST_REASON])
        result.traceback = printable(ended.traceback[-_LONGEST_TRACEBACK:], lines=True)
        result.failed_at = printable(ended.failed_at[:_LONGEST_REASON])


def _status(word: str) -> Status:
    return word if word in ("ok", "skipped", "memory") else "failed"  # type: ignore[return-value]


def _conversation(
    process: MethodProcess, judge: Judge, data: Prepared, job: Job, result: CellResult, last: bool
) -> Ended:
    """From the method's readiness to its end. Only the judge's clock counts; the method names parts of it."""
    longest = longest_message(max(len(data.train_labels), len(data.valid_labels) + (judge.tests or 0)), judge.classes)
    first = process.receive(longest)
    if isinstance(first, Ended):
        return first
    if not isinstance(first, Ready):
        raise Misspoken("a report before it had data")
    with _shared(data, job.method.oracle, last) as (material, handle):
        data.forget_rows()
        process.channel.send(material, handle)
    began = time.perf_counter()
    scoring, since = 0.0, 0.0
    phases: dict[str, float] = {}
    try:
        while True:
            message = process.receive(longest)
            if isinstance(message, Ended):
                if not judge.history and message.status == "ok":
                    raise Misspoken("no report")
                phases = message.phases
                return message
            if isinstance(message, Scoring):
                since = since or time.perf_counter()
                continue
            reply = _judged(judge, message)
            if not isinstance(message, Note):
                scoring += time.perf_counter() - (since or time.perf_counter())
                since = 0.0
            process.channel.send(reply)
            if isinstance(message, Report) and not reply.refused:
                judge.finish_report()
    except BrokenPipeError:
        raise EOFError from None
    finally:
        if since:
            scoring += time.perf_counter() - since
        total = time.perf_counter() - began
        result.phases, result.report_seconds = account(total, scoring, phases)
        result.fit_seconds = sum(result.phases.values())


def _judged(judge: Judge, message: FromMethod) -> Reply:
    try:
        if isinstance(message, Report):
            test = None if message.test is None else unpack(message.test)
            answer = judge.take_report(unpack(message.valid), test, message.stage)
            return Reply(improved=answer.improved, stop=answer.stop)
        if isinstance(message, PseudoLabels):
            judge.take_pseudo_labels(unpack(message.probabilities), message.stage)
        elif isinstance(message, Note):
            judge.take_note(message.name, message.value)
        else:
            raise Misspoken(f"{type(message).__name__} twice")
    except MethodError as error:
        return Reply(refused=str(error))
    return Reply()


def account(total: float, scoring: float, named: dict[str, float]) -> tuple[dict[str, float], float]:
    """Seconds by phase and seconds of scoring, from the judge's clock and the parts that the method named.

    Scoring is the harness's, up to ``FREE_SCORING`` seconds or as long as the fit itself took, whichever is more; the
    rest is the method's, as phase ``predict``. Parts that add up to more than there was are scaled down to it.
    """
    own = max(0.0, total - scoring)
    excess = max(0.0, scoring - max(FREE_SCORING, own))
    known = [(printable(name[:_LONGEST_NAME]), seconds) for name, seconds in list(named.items())[:_MOST_PHASES]]
    parts = {
        name: seconds for name, seconds in known if name not in ("report", "other", "predict") and 0 <= seconds < 1e9
    }
    claimed = sum(parts.values())
    if claimed > own:
        parts = {name: seconds * own / claimed for name, seconds in parts.items()}
        claimed = own
    phases = {"other": own - claimed, **parts}
    if excess:
        phases["predict"] = excess
    return phases, scoring - excess


@contextlib.contextmanager
def _shared(data: Prepared, oracle: bool, last: bool) -> Iterator[tuple[Material, int]]:
    """The message with the data of a fit, and the file number of the shared memory its arrays lie in."""
    arrays = arrays_of(data.bags)
    if data.test_rows is not None:
        arrays["test.X"] = data.test_rows
    if oracle:
        arrays["labels"] = data.train_labels
    bags = data.bags
    handle, places = share(arrays)
    material = Material(places=places, classes=bags.classes, count_sd=bags.count_sd, columns=bags.columns, last=last)
    try:
        yield material, handle
    finally:
        os.close(handle)


def _maxrss_mb(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
