"""Rows of the board: a method in each setting, with its scores, costs, cells and the command that reproduces it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import UNSET

from llpbench.board.content.marks import Mark
from llpbench.board.schema import Aggregate, BoardRow, Mean, PaperRow, Published, Score, Seconds, Verified
from llpbench.contracts.cell import BOUND_BAGS, OWN_SIZES, USUAL, USUAL_BACKENDS
from llpbench.contracts.errors import UsageError
from llpbench.contracts.result import FAILURES, CellResult
from llpbench.contracts.specs import Reference
from llpbench.plugins.options import JOIN, format_options, format_scalar, split_list
from llpbench.results.metric_style import MetricStyle
from llpbench.results.references import reference_for
from llpbench.results.table import Group, make_row, mean_sd, value_of

DIGITS = 4


def aggregate(
    group: Group, styles: Sequence[MetricStyle], rules: Iterable[str], references: Sequence[Reference]
) -> Aggregate:
    """Aggregate a method in one setting over its seeds, without metrics that have no number."""
    paper = _published(group, styles, references)
    found, fine = group.found, group.fine
    if not found:
        return Aggregate(status="missing", reason="not run", paper=paper)
    absent = sorted(p.cell.seed for p, r in zip(group.plans, group.results, strict=True) if r is None)
    reasons = [_reason(r) for r in found if r.status != "ok"]
    reasons += [f"seed {', '.join(map(str, absent))} not run"] if absent else []
    status = group.status(len(fine))
    rules = list(rules)
    scores = {style.name: {rule: make_score(group, style, rule) for rule in rules} for style in styles if fine}
    return Aggregate(
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
    values = [v * style.scale for r in group.found if (v := value_of(r, style.name, rule)) is not None]
    mean, sd = mean_sd(values)
    return Score(mean=rounded(mean), sd=rounded(sd), seeds=len(values), values=[round(v, DIGITS) for v in values])


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
    for style in styles if references else ():
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


def mark_rows(rows: Iterable[BoardRow], marks: Mapping[str, Mark]) -> None:
    """Set which cells of each row were verified; unset if none was reproduced."""
    for row in rows:
        for setting in row.aggregates:
            fine = [cell_id for cell_id in setting.seed_ids if cell_id in marks and marks[cell_id].verified]
            setting.verified = fine or UNSET
        ids = list(dict.fromkeys(cell_id for setting in row.aggregates for cell_id in setting.seed_ids))
        found = [marks[cell_id] for cell_id in ids if cell_id in marks]
        if found:
            fine_cells = sum(mark.verified for mark in found)
            row.verified = Verified(
                cells=fine_cells,
                doubted=len(found) - fine_cells,
                of=len(ids),
                latest=max(mark.at for mark in found)[:10],
            )


def command(group: Group) -> str:
    """The command that runs a method in a setting with all its seeds."""
    cell = group.found[0].cell
    words = ["llpbench", "run", "--methods", _method(group), "--datasets", _dataset(group)]
    bound = group.oracle and cell.split == USUAL.split
    words += [] if bound or cell.bag_size == OWN_SIZES else ["--bags", str(cell.bag_size)]
    words += ["--seeds", typed_seeds({plan.cell.seed for plan in group.plans})]
    if (cell.schemes, cell.scheme_options) != (USUAL.schemes, {}):
        schemes = (format_options(each.scheme, each.scheme_options) for each in cell.schemes)
        words += ["--schemes", JOIN.join(schemes)]
    words += ["--split", cell.split] if cell.split != USUAL.split else []
    if cell.noise != "none":
        words += ["--noise", cell.noise]
        words += ["--delta", format_scalar(cell.delta)] if cell.delta != USUAL.delta else []
        words += ["--mechanism", cell.mechanism] if cell.mechanism != USUAL.mechanism else []
    words += ["--feature-noise", format_scalar(cell.feature_noise)] if cell.feature_noise else []
    words += ["--folds", str(cell.folds)] if cell.folds else []
    words += ["--backend", cell.backend] if cell.backend not in USUAL_BACKENDS else []
    words += ["--preset", cell.preset] if cell.preset and group.options.get("preset") == cell.preset else []
    return shlex.join(words)


def typed_seeds(seeds: Collection[int]) -> str:
    """Seeds for the command line: their number if they are the first ones, else a range, else a list."""
    there = sorted(set(seeds))
    if not there:
        return "0"
    without_gap = there[-1] - there[0] + 1 == len(there)
    if without_gap and there[0] == 0:
        return str(len(there))
    return f"{there[0]}-{there[-1]}" if without_gap else ",".join(map(str, there))


def _method(group: Group) -> str:
    """The method with its options; parameters from a search are written out."""
    cell = group.found[0].cell
    if not cell.preset:
        return group.found[0].method_name
    if "preset" not in group.options:
        return format_options(cell.method, {key: value for key, value in cell.params.items() if value is not None})
    return format_options(cell.method, {key: value for key, value in group.options.items() if key != "preset"})


def _dataset(group: Group) -> str:
    """The dataset with its options, without bag scheme and feature noise."""
    name = group.found[0].dataset_name
    try:
        return split_list(name)[0]
    except UsageError:  # not a valid name
        return name
