"""The method's process of a cell: it has bags, rows to be scored and a line to the judge. No label is ever in it.

It has locked itself away (``method_start``) before anything here runs.
"""

from __future__ import annotations

import contextlib
import os
import traceback
from contextlib import AbstractContextManager
from typing import Any

from llpbench.contracts.data import FloatArray
from llpbench.contracts.errors import MethodError, Skip, describe, where_it_failed
from llpbench.contracts.protocols import Method, Predict
from llpbench.execution.channel import FROM_THE_JUDGE, Assignment, Channel
from llpbench.execution.messages import (
    Ended,
    Material,
    Note,
    PseudoLabels,
    Ready,
    Reply,
    Report,
    Scoring,
    bags_from,
    pack,
)
from llpbench.experiment.judge import checked_name, checked_note
from llpbench.experiment.monitor import MethodView, PhaseClock
from llpbench.system.shared_arrays import attach

_LONGEST_TEXT = 20_000


class Conversation:
    """The monitor of a method whose judge is another process (see ``protocols.Monitor``)."""

    def __init__(self, channel: Channel, valid_rows: FloatArray, test_rows: FloatArray | None) -> None:
        self.channel, self.valid_rows, self.test_rows = channel, valid_rows, test_rows
        self.clock = PhaseClock()
        self.reports = 0
        self.should_stop = False

    def report(self, predict: Predict, *, stage: str = "") -> bool:
        """Score the held-back and the test rows and hand the scores to the judge."""
        stage = checked_name(stage, "stage")
        with self.clock.phase("report"):
            self.channel.send(Scoring())
            valid = pack(predict(self.valid_rows), "predict_scores")
            test = None if self.test_rows is None else pack(predict(self.test_rows), "predict_scores")
            reply = self._ask(Report(stage, valid, test))
            self.reports += 1
            self.should_stop = reply.stop
            return reply.improved

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Charge the time inside to ``name``."""
        return self.clock.own_phase(checked_name(name, "name of a phase"))

    def pseudo_labels(self, probabilities: FloatArray, *, stage: str = "") -> None:
        """Hand over pseudo-labels of the training rows; nothing comes back but a refusal."""
        with self.clock.phase("report"):
            self.channel.send(Scoring())
            self._ask(PseudoLabels(checked_name(stage, "stage"), pack(probabilities, "pseudo_labels")))

    def note(self, name: str, value: float | str | bool) -> None:
        """Hand over a fact about the fit."""
        name, value = checked_note(name, value)
        self._ask(Note(name, value))

    def _ask(self, message: Report | PseudoLabels | Note) -> Reply:
        self.channel.send(message)
        reply: Reply
        reply, _ = self.channel.receive(Reply)
        if reply.refused:
            raise MethodError(reply.refused)
        return reply


def serve(channel: Channel, assignment: Assignment, trouble: Exception | None = None) -> None:
    """Load the method, then fit it to all data that comes, one after the other; tell the judge how each fit ended.

    Args:
        channel: the line to the judge.
        assignment: what to fit.
        trouble: why this process could not be locked away; the judge is told, and the method is never loaded.
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
            channel.send(Ready())
            material, handles = channel.receive(Material, FROM_THE_JUDGE)
            more = not material.last
            fit_once(channel, factory, assignment, material, handles[0], seconds)
            ended = Ended(phases=seconds)
        except EOFError:  # the judge is gone
            return
        except Skip as skip:
            ended = Ended(phases=seconds, status="skipped", reason=str(skip) or "the method declined this setting")
        except MemoryError:
            ended = Ended(phases=seconds, status="memory", reason="an allocation failed inside the cell (MemoryError)")
        except Exception as error:
            ended = _failure(error, seconds)
        more = more and ended.status == "ok"
        with contextlib.suppress(OSError):
            channel.send(ended)


def fit_once(
    channel: Channel, factory: Any, assignment: Assignment, material: Material, handle: int, seconds: dict[str, float]
) -> None:
    """Fit a new object of the method to the data in shared memory; ``seconds`` is told those of its phases."""
    arrays = attach(handle, material.places)
    os.close(handle)
    oracle = {"labels": arrays.pop("labels")} if "labels" in arrays else {}
    conversation = Conversation(channel, arrays["valid.X"], arrays.pop("test.X", None))
    try:
        method: Method = factory(**assignment.params)
        view = MethodView(conversation)
        fitted = method.fit(bags_from(arrays, material), monitor=view, seed=assignment.seed, **oracle)
        if fitted is None:
            raise MethodError("fit returned None; it must return the fitted method (return self)")
        if not conversation.reports:
            conversation.report(fitted.predict_scores)
    finally:
        seconds.update(conversation.clock.stop())


def _failure(error: Exception, seconds: dict[str, float]) -> Ended:
    words = "".join(traceback.format_exception(error, limit=-12))
    hint = "; a method's process may not read results, and may write to temporary files only: use tempfile"
    return Ended(
        phases=seconds,
        status="failed",
        reason=describe(error)[:_LONGEST_TEXT] + (hint if isinstance(error, PermissionError) else ""),
        traceback=words[-_LONGEST_TEXT:],
        failed_at=where_it_failed(error),
    )


def load_method(assignment: Assignment) -> Any:
    """The class of the method; raises ``Skip`` when something it needs is not installed."""
    from llpbench.execution.registries import shared_registry
    from llpbench.plugins.registry import unmet_needs

    registry = shared_registry(assignment.plugins, assignment.override)
    entry = registry.methods.entry(assignment.method)
    needs = unmet_needs(entry, assignment.backend)
    if needs:
        raise Skip(needs)
    return entry.spec.load()
