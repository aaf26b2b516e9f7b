"""The judge's side of the method's process: starts it, judges its reports, and ends it."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from pathlib import Path

from llpbench.contracts.errors import MethodError, printable
from llpbench.contracts.job import Job, MethodFacts
from llpbench.contracts.result import CellResult, Status
from llpbench.execution.channel import Assignment, InvalidMessage, connection_pair, receive, send
from llpbench.execution.confines import method_cache, out_of_reach
from llpbench.execution.messages import (
    Ended,
    FitData,
    FromMethod,
    JudgeReply,
    Note,
    Ready,
    ReportedPseudoLabels,
    ReportedScores,
    ScoringStarted,
    arrays_of,
    longest_message,
    unpack,
)
from llpbench.execution.processes import die_with_parent, fork, print_to
from llpbench.execution.shared_arrays import share
from llpbench.execution.watch import describe_exit, end_of_log
from llpbench.experiment.fit_cell import Prepared, method_seed
from llpbench.experiment.judge import Judge, Pruned
from llpbench.system.machine import python_command
from llpbench.system.opened import MOST

_POLL = 0.5  # seconds between two checks whether the process still runs
_MOST_PHASES, _LONGEST_NAME = 100, 100
_LONGEST_REASON, _LONGEST_TRACEBACK = 2000, 20_000
FREE_SCORING = 10.0
"""Seconds of scoring that are never charged to a method; beyond them, what exceeds the fit itself is."""


class MethodProcess:
    """The method's process of a cell.

    Args:
        job: the cell.
        fork: fork it from this process, which must not have loaded data yet; otherwise a new Python is started.
    """

    def __init__(self, job: Job, fork: bool) -> None:
        self.connection, theirs = connection_pair()
        self.log = Path(job.scratch, "method.log")
        self.peak_mb = 0.0
        self.opened: list[str] = []
        self._code: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        assignment = Assignment(
            method=job.cell.method,
            params=job.cell.params,
            backend=job.cell.backend,
            seed=method_seed(job.cell, job.method.seed_name),
            plugins=job.plugins,
            override=job.override,
            locked=out_of_reach(job),
            scratch=job.scratch,
            cache=method_cache(job),
        )
        with theirs:
            self.pid = self._fork(assignment, theirs) if fork else self._spawn(assignment, theirs)

    def _fork(self, assignment: Assignment, theirs: Connection) -> int:
        judge = os.getpid()

        def child() -> None:
            die_with_parent()
            if os.getppid() != judge:
                return
            self.connection.close()
            print_to(self.log, os.O_APPEND)
            faulthandler.enable()
            from llpbench.execution.method_start import start

            start(theirs, assignment)

        return fork(child)

    def _spawn(self, assignment: Assignment, theirs: Connection) -> int:
        module = "llpbench.execution.method_start"
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [*python_command(), "-X", "faulthandler", "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        with contextlib.suppress(OSError):
            send(self.connection, assignment)
        return self._child.pid

    def receive(self, longest: int) -> FromMethod:
        """Wait for the next message; ``EOFError`` if the process has ended.

        The connection may outlive the process: a process that the method started may hold it open.
        """
        while not self.connection.poll(_POLL):
            if self.poll() is not None and not self.connection.poll():
                raise EOFError
        message: FromMethod = receive(self.connection, FromMethod, longest)
        return message

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        return self._wait(os.WNOHANG)

    def end(self) -> int:
        """Kill the process and its group if they still run; returns the exit code."""
        self.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self._wait(0)
        self.connection.close()
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

    def exit_reason(self) -> str:
        """Why the connection was closed before the method reported its end."""
        deadline = time.monotonic() + 5.0
        while self.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._code is None:
            return "the method closed its connection to the judge"
        return describe_exit(self._code) + end_of_log(self.log)


def run_fit(
    process: MethodProcess, judge: Judge, data: Prepared, job: Job, result: CellResult, *, last: bool = True
) -> None:
    """Send the method its data, judge its reports, and fill in status, reason and seconds of the result.

    With ``last`` false the process waits for the data of another fit afterwards.
    """
    try:
        ended = _judge_reports(process, judge, data, job, result, last)
    except Pruned as pruned:
        result.status, result.reason = "pruned", str(pruned)
        judge.notes["pruned_by"] = pruned.rule
    except EOFError:
        result.status, result.reason = "crashed", process.exit_reason()
    except InvalidMessage as error:
        result.status, result.reason = "failed", f"the method's process sent {error}"
    else:
        process.opened = [path for path in ended.opened if path.isprintable()][:MOST]
        result.status, result.reason = _status(ended.status), printable(ended.reason[:_LONGEST_REASON])
        result.traceback = printable(ended.traceback[-_LONGEST_TRACEBACK:], lines=True)
        result.failed_at = printable(ended.failed_at[:_LONGEST_REASON])


def _status(word: str) -> Status:
    return word if word in ("ok", "skipped", "memory") else "failed"  # type: ignore[return-value]


def _judge_reports(
    process: MethodProcess, judge: Judge, data: Prepared, job: Job, result: CellResult, last: bool
) -> Ended:
    """Exchange messages from ``Ready`` to ``Ended``. Seconds are those of the judge's clock."""
    longest = longest_message(max(len(data.train_labels), len(data.valid_labels) + (judge.tests or 0)), judge.classes)
    first = process.receive(longest)
    if isinstance(first, Ended):
        return first
    if not isinstance(first, Ready):
        raise InvalidMessage("a report before it had data")
    scoring, since = 0.0, 0.0
    phases: dict[str, float] = {}
    began = time.perf_counter()
    try:
        with _shared(data, job.method, last) as (fit_data, handle):
            data.forget_rows()
            send(process.connection, fit_data)
            send_handle(process.connection, handle, process.pid)
        began = time.perf_counter()
        while True:
            message = process.receive(longest)
            if isinstance(message, Ended):
                if not judge.history and message.status == "ok":
                    raise InvalidMessage("no report")
                phases = message.phases
                return message
            if isinstance(message, ScoringStarted):
                since = since or time.perf_counter()
                continue
            reply = _reply(judge, message)
            if not isinstance(message, Note):
                scoring += time.perf_counter() - (since or time.perf_counter())
                since = 0.0
            send(process.connection, reply)
            if isinstance(message, ReportedScores) and not reply.rejected:
                judge.finish_report()
    except (BrokenPipeError, ConnectionResetError):
        raise EOFError from None
    finally:
        if since:
            scoring += time.perf_counter() - since
        total = time.perf_counter() - began
        result.phases, result.report_seconds = account(total, scoring, phases)
        result.fit_seconds = sum(result.phases.values())


def _reply(judge: Judge, message: FromMethod) -> JudgeReply:
    try:
        if isinstance(message, ReportedScores):
            test = None if message.test is None else unpack(message.test)
            answer = judge.take_report(unpack(message.valid), test, message.stage)
            return JudgeReply(improved=answer.improved, stop=answer.stop)
        if isinstance(message, ReportedPseudoLabels):
            judge.take_pseudo_labels(unpack(message.probabilities), message.stage)
        elif isinstance(message, Note):
            judge.take_note(message.name, message.value)
        else:
            raise InvalidMessage(f"the message {type(message).__name__} twice")
    except MethodError as error:
        return JudgeReply(rejected=str(error))
    return JudgeReply()


def account(total: float, scoring: float, named: dict[str, float]) -> tuple[dict[str, float], float]:
    """Seconds by phase and seconds of scoring, from the judge's clock and the phases that the method named.

    Up to ``FREE_SCORING`` seconds of scoring, or as many as the fit itself took, are not charged to the method; the
    rest is, as phase ``predict``. Phases that add up to more than the total are scaled down to it.
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
def _shared(data: Prepared, method: MethodFacts, last: bool) -> Iterator[tuple[FitData, int]]:
    """The message with the data of a fit, and the file descriptor of the shared memory with its arrays."""
    arrays = arrays_of(data.bags)
    if data.test_rows is not None:
        arrays["test.X"] = data.test_rows
    if method.oracle:
        arrays["labels"] = data.train_labels
    handle, shared = share(arrays)
    bags = data.bags
    message = FitData(
        arrays=shared,
        classes=bags.classes,
        count_sd=bags.count_sd,
        columns=bags.columns,
        groupings=bags.overlap.groupings if bags.overlap is not None else (),
        overlapping=method.overlapping,
        last=last,
    )
    try:
        yield message, handle
    finally:
        os.close(handle)


def _maxrss_mb(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)
