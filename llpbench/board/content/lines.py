"""A published cell: a result without its training curve, on one line, with the digest of the file it came from."""

from __future__ import annotations

from typing import Any

import msgspec

from llpbench.board.content.facts import EVERY_RESULT
from llpbench.board.content.submission import LAST_SEED, check_shown
from llpbench.board.validate import (
    Unsound,
    check_date,
    check_id,
    check_machine,
    check_name,
    check_rules,
    check_source,
    check_values,
    check_versions,
    clip,
    has_visible,
    short_line,
)
from llpbench.contracts.cell import OWN_SIZES
from llpbench.contracts.errors import LLPBenchError
from llpbench.contracts.result import CellResult, Selected
from llpbench.experiment.judge import LONGEST_NAME, MOST_STAGES
from llpbench.experiment.privacy import MECHANISMS, noise_name
from llpbench.plugins.builtin import llpbench_metrics
from llpbench.plugins.fingerprint import OWN
from llpbench.results.sealing import MOST_NOTES, canonical, digest
from llpbench.system.backend import BACKENDS

STAGE_METRICS = ("auroc", "accuracy")
# The default objects themselves: only these are left out when a result is written.
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(CellResult)}
_SHARES = [metric.name for metric in llpbench_metrics() if metric.percent]
_DIGITS = 16
_LONGEST_REASON, _LONGEST_NOTE = 300, 380
_MOST = {
    "notes": MOST_NOTES + 1,  # and how many were left out
    "stages": MOST_STAGES,
    "pseudo_labels": MOST_STAGES,
    "phases": 101,  # and the rest
    "rate": 1_000,
    "versions": 60,
    "code": 60,
    "flags": 60,
}
"""How many entries a part of a result may have; other parts have at most ``_FEW``."""
_FEW = 20
_MOST_METRICS, _MOST_OPTIONS = 100, 200


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
    """A result without what no page shows: the curve of reports, the traceback, digits of times.

    Texts become a short line each. What is compact stays as it is, so published cells can be held to this form.
    """
    small = msgspec.json.decode(msgspec.json.encode(result), type=CellResult)  # a deep copy
    small.history, small.traceback = [], ""
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
    check_source(line.source)
    check_result(line.result)
    if loose := _not_compact(line.result):
        raise Unsound(
            f"cell {line.result.id}: its {', '.join(loose)} must be as 'leaderboard add' writes it: short printable "
            "lines, rounded seconds, no curve of reports and no traceback"
        )
    return line


def _not_compact(result: CellResult) -> list[str]:
    """The parts of a result that are not as they are published."""
    small = compact(result)
    return [name for name in result.__struct_fields__ if getattr(small, name) != getattr(result, name)]


def check_result(result: CellResult) -> None:
    """Refuse a result whose content cannot be what a run wrote."""
    check_id(result.id)
    if result.id != result.cell.id:
        raise Unsound(f"id {result.id} is not the id of its cell ({result.cell.id})")
    check_name(result.cell.dataset, "dataset")
    check_name(result.cell.method, "method")
    check_machine(result.machine)
    check_date(result.started)
    _check_sizes(result)
    check_values(msgspec.to_builtins(compact(result)))
    _check_setting(result)
    check_versions(result.versions, OWN)
    _check_shown_name(result.method_name, result.cell.method)
    _check_shown_name(result.dataset_name, result.cell.dataset)
    check_shown(result)
    for name in ("fit_seconds", "data_seconds", "report_seconds", "wall_seconds", "peak_memory_mb", "tuning_seconds"):
        if getattr(result, name) < 0:
            raise Unsound(f"{name} is negative")
    _check_names(result)
    if result.status == "ok":
        _check_metrics(result)
    elif not has_visible(_line(result.reason, _LONGEST_REASON)):
        raise Unsound(f"it is {result.status} and does not say why")
    if result.status == "ok" and (result.reason or result.failed_at):
        raise Unsound("it has numbers, and a reason for having none")


def _check_sizes(result: CellResult) -> None:
    """Refuse a result with more of something than a run writes."""
    parts = {f.name: getattr(result, f.name) for f in msgspec.structs.fields(result) if f.name != "history"}
    limits = {name: (part, _MOST.get(name, _FEW)) for name, part in parts.items() if isinstance(part, dict | list)}
    for name in ("params", "dataset_options", "scheme_options"):
        limits[name] = (getattr(result.cell, name), _MOST_OPTIONS)
    for name, (part, most) in limits.items():
        if len(part) > most:
            raise Unsound(f"its {name} has {len(part):,} entries; at most {most} are published")
    for name in (*result.stages, *result.pseudo_labels, *result.phases, *result.notes):
        if len(name) > LONGEST_NAME:
            raise Unsound(f"{clip(name)}, the name of a stage, phase or note, has more than {LONGEST_NAME} characters")


def _check_setting(result: CellResult) -> None:
    """Refuse conditions that no run has, also where nothing could be derived from them: in a cell that failed."""
    cell = result.cell
    if cell.bag_size < OWN_SIZES:
        raise Unsound(f"bag size {cell.bag_size} is negative")
    if not 0 <= cell.seed <= LAST_SEED:
        raise Unsound(f"seed {cell.seed} is not between 0 and {LAST_SEED:,}; beyond are those that verify draws")
    if cell.feature_noise < 0:
        raise Unsound(f"its feature noise is {cell.feature_noise:.4g}, which no noise is")
    if cell.backend not in ("", *BACKENDS):
        raise Unsound(f"its backend is {clip(cell.backend)}; known are {', '.join(BACKENDS)}, and none")
    check_name(cell.scheme, "bag scheme")
    if cell.mechanism not in MECHANISMS:
        raise Unsound(f"its mechanism is {clip(cell.mechanism)}; known are {', '.join(MECHANISMS)}")
    try:
        known = noise_name(cell.noise) == cell.noise
    except LLPBenchError:
        known = False
    if not known:
        raise Unsound(f"its noise is {clip(cell.noise)}, which is no level of noise")


def _check_names(result: CellResult) -> None:
    """Names of rules and metrics: any that could be registered."""
    for chosen in (result.selected, *result.stages.values()):
        check_rules(chosen)
        for selected in chosen.values():
            if len(selected.metrics) > _MOST_METRICS:
                raise Unsound(f"it has {len(selected.metrics):,} metrics; at most {_MOST_METRICS} are published")
            for name in selected.metrics:
                check_name(name, "metric")


def _check_shown_name(shown: str, name: str) -> None:
    if shown != name and not shown.startswith((f"{name}[", f"{name}, ")):
        raise Unsound(f"the name {clip(shown)} does not begin with {name!r}")


def _check_metrics(result: CellResult) -> None:
    if not result.selected:
        raise Unsound("it has no numbers under any rule")
    for rule in EVERY_RESULT if not result.predictions_only else ():  # these have the rule that was declared
        if rule not in result.selected:
            raise Unsound(f"it has no numbers under the rule {rule!r}")
    chosen: list[Any] = [*result.selected.values(), *(s for stage in result.stages.values() for s in stage.values())]
    for selected in chosen:
        for name in _SHARES:
            value = selected.metrics.get(name)
            if value is not None and not 0 <= value <= 1:
                raise Unsound(f"{name} {value:.4g} is not between 0 and 1")
