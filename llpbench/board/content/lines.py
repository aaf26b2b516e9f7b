"""A published cell: a result without its training curve, on one line, with the digest of the file it came from."""

from __future__ import annotations

import msgspec

from llpbench.board.content.facts import EVERY_RESULT
from llpbench.board.validate import Unsound, check_id, check_machine, check_name, check_values, clip, short_line
from llpbench.contracts.result import CellResult, Selected
from llpbench.plugins.builtin import llpbench_metrics
from llpbench.results.sealing import canonical, digest

STAGE_METRICS = ("auroc", "accuracy")
# The default objects themselves: only these are left out when a result is written.
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(CellResult)}
_SHARES = [metric.name for metric in llpbench_metrics() if metric.percent]
_DIGITS = 16
_LONGEST_REASON, _LONGEST_NOTE = 300, 380


class Line(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One line of a published file.

    Attributes:
        source: digest of the whole result as it was sealed by the run.
        result: the result as published.
        digest: digest of this line's result, against edits by hand.
    """

    source: str
    result: CellResult
    digest: str


def compact(result: CellResult) -> CellResult:
    """A result without what no page shows: the curve of reports, the traceback, digits of times."""
    small = msgspec.json.decode(msgspec.json.encode(result), type=CellResult)  # a deep copy
    small.history, small.stage_starts, small.traceback = [], {}, ""
    small.reason = _line(small.reason, _LONGEST_REASON)
    small.failed_at = _line(small.failed_at, _LONGEST_NOTE)
    small.stages = {
        stage: {rule: _only(chosen, STAGE_METRICS) for rule, chosen in rules.items()}
        for stage, rules in small.stages.items()
    }
    small.phases = {name: round(seconds, 3) for name, seconds in small.phases.items()}
    small.notes = {name: _short_note(value) for name, value in small.notes.items()}
    for chosen in small.selected.values():
        chosen.value = None
    for name in ("fit_seconds", "tuning_seconds"):
        setattr(small, name, round(getattr(small, name), 3))
    small.peak_memory_mb = round(small.peak_memory_mb, 1)
    for name in ("data_seconds", "report_seconds", "wall_seconds"):
        setattr(small, name, _DEFAULTS[name])
    for name in ("tuning_seconds", "count_sd"):
        if getattr(small, name) == 0:
            setattr(small, name, _DEFAULTS[name])
    return small


def _line(text: str, most: int) -> str:
    """A text as one printable line, without spaces at its ends."""
    return short_line(text, most).strip()


def _short_note(value: float | str | bool | None) -> float | str | bool | None:
    if isinstance(value, str):
        return _line(value, _LONGEST_NOTE)
    return float(f"{value:.6g}") if type(value) is float else value


def _only(chosen: Selected, metrics: tuple[str, ...]) -> Selected:
    kept = {name: value for name, value in chosen.metrics.items() if name in metrics}
    return Selected(report=chosen.report, stage=chosen.stage, metrics=kept)


def seal(result: CellResult, source: str) -> Line:
    """A result as a line with the digest of its content."""
    return Line(source=source, result=result, digest=digest(canonical(result), _DIGITS))


def encode_line(result: CellResult, source: str) -> bytes:
    """A published cell as one line of JSON."""
    body = canonical(result)
    return b'{"source":"%s","digest":"%s","result":%s}' % (source.encode(), digest(body, _DIGITS).encode(), body)


def decode_line(data: bytes) -> Line:
    """Read and check one line, or raise ``Unsound``."""
    try:
        line = msgspec.json.decode(data, type=Line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Unsound(f"not a published cell ({str(error)[:200]})") from None
    if line.digest != digest(canonical(line.result), _DIGITS):
        raise Unsound(f"cell {clip(line.result.id)}: its content does not match its digest (edited by hand?)")
    check_result(line.result)
    return line


def check_result(result: CellResult) -> None:
    """Raise ``Unsound`` if a result cannot be what a run wrote."""
    check_id(result.id)
    if result.id != result.cell.id:
        raise Unsound(f"id {result.id} is not the id of its cell ({result.cell.id})")
    check_name(result.cell.dataset, "dataset")
    check_name(result.cell.method, "method")
    check_machine(result.machine)
    check_values(msgspec.to_builtins(result))
    if result.status == "ok":
        _check_metrics(result)


def is_unreleased(result: CellResult) -> bool:
    """Whether an editable install, which has one version number and many states, made part of it."""
    return any(line.startswith("editable ") for line in result.code.values())


def _check_metrics(result: CellResult) -> None:
    for rule in EVERY_RESULT:
        if rule not in result.selected:
            raise Unsound(f"it has no numbers under the rule {rule!r}")
    for selected in result.selected.values():
        for name in _SHARES:
            value = selected.metrics.get(name)
            if value is not None and not 0 <= value <= 1:
                raise Unsound(f"{name} {value:.4g} is not between 0 and 1")
