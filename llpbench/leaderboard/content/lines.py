"""A published cell: a result without its training curve, on one line, with the digest of the file it came from."""

from __future__ import annotations

from typing import Any

import msgspec

from llpbench.contracts.cell import OWN_SIZES
from llpbench.contracts.result import CellResult, Selected
from llpbench.leaderboard.content.facts import EVERY_RESULT
from llpbench.leaderboard.content.submission import check_shown
from llpbench.leaderboard.validate import (
    Unsound,
    check_date,
    check_id,
    check_machine,
    check_name,
    check_rules,
    check_values,
    clip,
)
from llpbench.plugins.builtin import llpbench_metrics
from llpbench.results.sealing import canonical, digest

STAGE_METRICS = ("auroc", "accuracy")
# The default objects themselves: only these are left out when a result is written.
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(CellResult)}
_SHARES = [metric.name for metric in llpbench_metrics() if metric.percent]
_DIGITS = 16


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
    small.history, small.traceback = [], ""
    small.reason = " ".join(small.reason.split())[:300]
    small.stages = {
        stage: {rule: _only(chosen, STAGE_METRICS) for rule, chosen in rules.items()}
        for stage, rules in small.stages.items()
    }
    small.phases = {name: round(seconds, 3) for name, seconds in small.phases.items()}
    small.notes = {k: float(f"{v:.6g}") if type(v) is float else v for k, v in small.notes.items()}
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
    """Refuse a result whose content cannot be what a run wrote."""
    check_id(result.id)
    if result.id != result.cell.id:
        raise Unsound(f"id {result.id} is not the id of its cell ({result.cell.id})")
    check_name(result.cell.dataset, "dataset")
    check_name(result.cell.method, "method")
    check_machine(result.machine)
    check_date(result.started)
    plain = msgspec.to_builtins(result)
    for long in ("history", "traceback", "reason"):
        plain.pop(long, None)
    check_values(plain)
    _check_shown_name(result.method_name, result.cell.method)
    _check_shown_name(result.dataset_name, result.cell.dataset)
    check_shown(result)
    if result.cell.bag_size < OWN_SIZES or result.cell.seed < 0:
        raise Unsound(f"bag size {result.cell.bag_size}, seed {result.cell.seed}: neither may be negative")
    if result.cell.feature_noise < 0:
        raise Unsound(f"its feature noise is {result.cell.feature_noise:.4g}, which no noise is")
    for name in ("fit_seconds", "data_seconds", "report_seconds", "wall_seconds", "peak_memory_mb", "tuning_seconds"):
        if getattr(result, name) < 0:
            raise Unsound(f"{name} is negative")
    if result.status == "ok":
        _check_metrics(result)
    elif not result.reason:
        raise Unsound(f"it is {result.status} and does not say why")


def _check_shown_name(shown: str, name: str) -> None:
    if shown != name and not shown.startswith((f"{name}[", f"{name}, ")):
        raise Unsound(f"the name {clip(shown)} does not begin with {name!r}")


def _check_metrics(result: CellResult) -> None:
    if not result.selected:
        raise Unsound("it has no numbers under any rule")
    for rule in EVERY_RESULT if not result.predictions_only else ():  # these have the rule that was declared
        if rule not in result.selected:
            raise Unsound(f"it has no numbers under the rule {rule!r}")
    check_rules(result.selected)
    for stage in result.stages.values():
        check_rules(stage)
    chosen: list[Any] = [*result.selected.values(), *(s for stage in result.stages.values() for s in stage.values())]
    for selected in chosen:
        for name in _SHARES:
            value = selected.metrics.get(name)
            if value is not None and not 0 <= value <= 1:
                raise Unsound(f"{name} {value:.4g} is not between 0 and 1")
