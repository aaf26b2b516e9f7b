"""Entries of a board: a method in one setting, with its scores, costs and cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from llpbench.board.built.commands import command
from llpbench.board.schema.board import BoardEntry, Mean, PaperRow, Published, Score, Seconds
from llpbench.contracts.cell import BOUND_BAGS
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.contracts.specs import Reference
from llpbench.results.metric_style import MetricStyle
from llpbench.results.references import reference_for
from llpbench.results.table import Group, make_row, mean_sd

DIGITS = 4


def make_entry(
    group: Group, styles: Sequence[MetricStyle], rules: Iterable[str], references: Sequence[Reference]
) -> BoardEntry:
    """The entry of a group, without metrics that have no number."""
    paper = _published(group, styles, references)
    found, fine = group.found, group.fine
    if not found:
        return BoardEntry(status="missing", reason="not run", paper=paper)
    absent = sorted(p.cell.seed for p, r in zip(group.plans, group.results, strict=True) if r is None)
    reasons = [_reason(r) for r in found if r.status != "ok"]
    reasons += [f"seed {', '.join(map(str, absent))} not run"] if absent else []
    status = group.status(len(fine))
    rules = list(rules)
    scores = {style.name: {rule: make_score(group, style, rule) for rule in rules} for style in styles if fine}
    return BoardEntry(
        status="failed" if status in FAILURES else status,
        reason="; ".join(dict.fromkeys(reasons)),
        scores={name: kept for name, of in scores.items() if (kept := {r: s for r, s in of.items() if s.seeds})},
        seconds=_seconds(fine) if fine else None,
        memory_mb=_mean([r.peak_memory_mb for r in fine]) if fine else None,
        pseudo=_pseudo(fine),
        params=dict(sorted(found[0].cell.params.items())),
        seed_ids=[r.id for r in found],
        seeds=[r.cell.seed for r in found],
        machine=Counter(r.machine for r in found).most_common(1)[0][0],
        command=command(group),
        paper=paper,
    )


def make_score(group: Group, style: MetricStyle, rule: str) -> Score:
    """One metric under one rule, rounded."""
    row = make_row(group, style, rule)
    values = [round(value, DIGITS) for value in row.values]
    return Score(mean=rounded(row.mean), sd=rounded(row.sd), seeds=row.seeds, values=values)


def paper_rows(references: Iterable[Reference], styles: Sequence[MetricStyle]) -> list[PaperRow]:
    """Published values of a dataset: a row for each metric, method and noise level of a publication."""
    rows: dict[tuple[str, str, str, str], PaperRow] = {}
    by_name = {style.name: style for style in styles}
    for r in references:
        if r.metric not in by_name or r.stage:
            continue
        row = rows.setdefault(
            (r.metric, r.source, r.title, r.noise),
            PaperRow(
                method=r.title, metric=r.metric, name=r.method, cells={}, noise=r.noise, rule=r.rule, source=r.source
            ),
        )
        bag = str(BOUND_BAGS) if r.bag_size is None else str(r.bag_size)
        scale = by_name[r.metric].scale
        row.cells[bag] = Mean(mean=rounded(r.mean, scale), sd=rounded(r.sd, scale), note=r.note)
    return list(rows.values())


def rounded(value: float | None, scale: float = 1.0) -> float | None:
    """A number as the board shows it."""
    return None if value is None else round(scale * value, DIGITS)


def _published(group: Group, styles: Sequence[MetricStyle], references: Sequence[Reference]) -> dict[str, Published]:
    found = {}
    for style in styles:
        r = reference_for(references, make_row(group, style, ""))
        if r is not None:
            mean, sd = rounded(r.mean, style.scale), rounded(r.sd, style.scale)
            found[style.name] = Published(mean=mean, sd=sd, rule=r.rule, source=r.source, note=r.note)
    return found


def _reason(result: CellResult) -> str:
    word = "" if result.status in ("failed", "skipped") else f"{result.status}: "
    return f"seed {result.cell.seed}: {word}{result.reason}"


def _seconds(fine: list[CellResult]) -> Seconds:
    names = sorted({name for r in fine for name in r.phases})
    return Seconds(
        fit=_mean([r.fit_seconds for r in fine]),
        phases={name: _mean([r.phases.get(name, 0.0) for r in fine]) for name in names},
        tuning=_mean([r.tuning_seconds for r in fine]),
    )


def _pseudo(fine: list[CellResult]) -> dict[str, float]:
    found = {}
    for stage in sorted({stage for r in fine for stage in r.pseudo_labels}):
        values = [100 * v for r in fine if (v := r.pseudo_labels.get(stage)) is not None]
        if values:
            found[stage] = _mean(values)
    return found


def _mean(values: list[float]) -> float:
    return round(mean_sd(values)[0] or 0.0, DIGITS)
