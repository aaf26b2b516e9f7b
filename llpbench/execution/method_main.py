"""The method's process of a cell: it has bags, rows to score and a connection to the judge. No label ever enters it.

It has entered its sandbox (``method_start``) before anything here runs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import traceback
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import Any

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import MethodError, Skip, describe, where_it_failed
from llpbench.contracts.protocols import Predict
from llpbench.execution.channel import FROM_THE_JUDGE, Assignment, receive, send
from llpbench.execution.messages import (
    Ended,
    FitData,
    JudgeReply,
    Note,
    Ready,
    ReportedPseudoLabels,
    ReportedScores,
    ScoringStarted,
    bags_from,
    pack,
)
from llpbench.execution.shared_arrays import attach
from llpbench.experiment.judge import checked_name, checked_note
from llpbench.experiment.monitor import PhaseClock, fit_method
from llpbench.plugins.fingerprint import code_folders
from llpbench.system.opened import opened_files

_LONGEST_TEXT = 20_000


class RemoteMonitor:
    """The monitor of a method whose judge is another process (see ``protocols.Monitor``)."""

    def __init__(self, connection: Connection, valid_rows: FloatArray, test_rows: FloatArray | None) -> None:
        self.connection, self.valid_rows, self.test_rows = connection, valid_rows, test_rows
        self.clock = PhaseClock()
        self.should_stop = False

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """Score the held-out and the test rows and send the scores to the judge."""
        stage = checked_name(stage, "stage")
        with self.clock.phase("report"):
            send(self.connection, ScoringStarted())
            valid = pack(predict(self.valid_rows), "predict_scores")
            test = None if self.test_rows is None else pack(predict(self.test_rows), "predict_scores")
            reply = self._ask(ReportedScores(stage, valid, test))
            self.should_stop = reply.stop
            return reply.improved

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Charge the time inside to ``name``."""
        return self.clock.own_phase(checked_name(name, "name of a phase"))

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Send pseudo-labels of the training rows; the reply says only whether they are valid."""
        with self.clock.phase("report"):
            send(self.connection, ScoringStarted())
            self._ask(ReportedPseudoLabels(checked_name(stage, "stage"), pack(probabilities, "pseudo_labels")))

    def note(self, name: str, value: float | str | bool) -> None:
        """Send a fact about the fit."""
        name, value = checked_note(name, value)
        self._ask(Note(name, value))

    def _ask(self, message: ReportedScores | ReportedPseudoLabels | Note) -> JudgeReply:
        send(self.connection, message)
        reply: JudgeReply = receive(self.connection, JudgeReply)
        if reply.rejected:
            raise MethodError(reply.rejected)
        return reply


def serve(connection: Connection, assignment: Assignment, trouble: Exception | None = None) -> None:
    """Load the method, fit it to each data set that arrives, and report to the judge how each fit ended.

    Args:
        connection: the connection to the judge.
        assignment: what to fit.
        trouble: why the sandbox failed; it is reported to the judge, and the method is never loaded.
    """
    factory: Any = None
    more = True
    while more:
        seconds: dict[str, float] = {}
        try:
            if trouble is not None:
                raise trouble
            if factory is None:
                factory = load_method(assignment)
            send(connection, Ready())
            data = receive(connection, FitData, FROM_THE_JUDGE)
            more = not data.last
            fit_once(connection, factory, assignment, data, seconds)
            ended = Ended(phases=seconds)
        except EOFError:  # the judge is gone
            return
        except Skip as skip:
            ended = Ended(phases=seconds, status="skipped", reason=str(skip) or "the method declined this setting")
        except MemoryError:
            ended = Ended(phases=seconds, status="memory", reason="an allocation failed inside the cell (MemoryError)")
        except Exception as error:
            ended = _failure(error, seconds)
        ended.opened = opened_files(code_folders())
        more = more and ended.status == "ok"
        with contextlib.suppress(OSError):
            send(connection, ended)


def fit_once(
    connection: Connection, factory: Any, assignment: Assignment, data: FitData, seconds: dict[str, float]
) -> None:
    """Fit a new object of the method to the data in shared memory; the seconds of its phases go to ``seconds``."""
    handle = recv_handle(connection)
    arrays = attach(handle, data.arrays)
    os.close(handle)
    oracle = {"labels": arrays.pop("labels")} if "labels" in arrays else {}
    monitor = RemoteMonitor(connection, arrays["valid.X"], arrays.pop("test.X", None))
    try:
        bags = bags_from(arrays, data)
        fit_method(factory(**assignment.params), bags, monitor, assignment.seed, overlapping=data.overlapping, **oracle)
    finally:
        seconds.update(monitor.clock.stop())


def _failure(error: Exception, seconds: dict[str, float]) -> Ended:
    text = "".join(traceback.format_exception(error, limit=-12))
    hint = (
        "; a method's process has no network, cannot read results or data files, and can write temporary files only: "
        "use tempfile"
    )
    return Ended(
        phases=seconds,
        status="failed",
        reason=describe(error)[:_LONGEST_TEXT] + (hint if _is_denied(error) else ""),
        traceback=text[-_LONGEST_TEXT:],
        failed_at=where_it_failed(error),
    )


def _is_denied(error: BaseException | None) -> bool:
    """Whether an error began with an access that the sandbox denies, among them a host name that is not found."""
    while error is not None:
        if isinstance(error, PermissionError | socket.gaierror):
            return True
        error = error.__cause__ or error.__context__
    return False


def load_method(assignment: Assignment) -> Any:
    """The class of the method; raises ``Skip`` when something it needs is not installed."""
    from llpbench.plugins.registry import shared_registry, unmet_needs

    registry = shared_registry(assignment.plugins, assignment.override)
    entry = registry.methods.entry(assignment.method)
    needs = unmet_needs(entry, assignment.backend)
    if needs:
        raise Skip(needs)
    return entry.spec.load()
