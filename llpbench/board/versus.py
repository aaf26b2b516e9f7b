"""Compare the results of a folder with published ones, paired by seed in every setting.

Two fits are a pair if their rows, bags, noise and seed are equal. In each setting the p-values of all pairs of an own
method and a published method are corrected together (Holm), those with controls separately. Bounds are shown, not
tested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from llpbench.board.built.claims import paired
from llpbench.board.built.own_page import check_same_protocol, published_beside
from llpbench.board.content.bootstrap import Replicates, read_predictions, replicate
from llpbench.board.content.folder import Content
from llpbench.board.maths.bootstrap import METRIC
from llpbench.board.maths.overall import even_mean
from llpbench.board.maths.statistics import LEVEL, MeanDifference, holm
from llpbench.board.validate import Unsound
from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.report.charts import Interval
from llpbench.report.filter import Filter
from llpbench.report.tables import Key, Table, TableEntry
from llpbench.results.metric_style import MetricStyle
from llpbench.results.naming import dataset_title
from llpbench.results.shared import Roles, name_seeds
from llpbench.results.store import Store
from llpbench.results.table import Group, Setting, group_cells, repeat_bounds, value_of

Role = Literal["method", "control", "bound"]
Verdict = Literal["better", "worse", "unclear", "one seed", ""]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """An own method and a published one in one setting, over the seeds that both have.

    Attributes:
        own, other: means over these seeds, in the unit of the metric.
        difference: own minus other; positive is better if higher values of the metric are better.
        p: the corrected p-value; None for a bound, and for a single seed.
        basis: what the interval was computed from.
        source: where the rows of the dataset come from.
    """

    setting: Setting
    method: str
    rival: str
    role: Role
    seeds: tuple[int, ...]
    own: float
    other: float
    difference: MeanDifference
    p: float | None
    basis: str
    verdict: Verdict
    source: str = ""


def compare(
    store: Store, content: Content, wanted: Filter, metric: MetricStyle, rule: str, roles: Roles
) -> list[Comparison]:
    """Compare every method of a results folder that is not published with every published one.

    If all methods of the folder are published, each is compared with the others. Published methods are those at their
    defaults unless ``wanted`` names others. ``roles`` are those of the own methods.
    """
    own = [r for r in store.results() if r.status == "ok" and not r.oracle and wanted.keeps_setting(r)]
    names = {line.result.method_name for line in content.lines.values()}
    own = [r for r in own if r.method_name not in names] or own
    beside = [line.result for line in published_beside(content.lines.values(), own).values()]
    check_same_protocol(beside, own)
    facts = content.facts.roles
    all_roles = Roles(roles.controls | facts.controls, facts.guests)
    ours = [g for g in _groups(own, all_roles) if not g.control]
    theirs = _groups(beside, all_roles)
    bounds = [g for g in repeat_bounds([*ours, *theirs]) if g.oracle]
    rivals: dict[Setting, list[Group]] = {}
    for group in (*(g for g in theirs if not g.oracle), *bounds):
        if wanted.methods:
            named = group.control or group.oracle or wanted.keeps_method(group.method, group.base_method)
        else:
            named = not group.options
        if group.compared_under(rule) and named:
            rivals.setdefault(group.setting, []).append(group)
    replicates = _replicates(store, ours, content.replicates) if metric.name == METRIC else {}
    found: list[Comparison] = []
    for setting in dict.fromkeys(group.setting for group in ours):
        here = [group for group in ours if group.setting == setting and group.compared_under(rule)]
        pairs = [(mine, other) for mine in here for other in rivals.get(setting, ())]
        made = [_compare(mine, other, metric, rule, replicates) for mine, other in pairs]
        found += _judged([comparison for comparison in made if comparison is not None], metric)
    return [replace(c, source=content.facts.source_of(c.setting.base_dataset)) for c in found]


def _groups(results: Sequence[CellResult], roles: Roles) -> list[Group]:
    return group_cells(map(Planned.of, results), results, roles=roles)


def _replicates(store: Store, ours: Iterable[Group], published: Mapping[str, Replicates]) -> dict[str, Replicates]:
    """The published replicates, and those of own cells that have predictions; none if none are published."""
    found = dict(published)
    for result in (result for group in ours for result in group.fine) if published else ():
        try:
            arrays = read_predictions(store.predictions_path(result.id), result.selected)
        except (OSError, Unsound):
            continue
        found[result.id] = replicate(result, arrays)
    return found


def _same_rows(a: CellResult, b: CellResult) -> bool:
    """Whether two cells have the same test labels, as far as both state them."""
    ours, theirs = a.digests.get("test_labels"), b.digests.get("test_labels")
    return not ours or not theirs or ours == theirs


def _compare(
    mine: Group, other: Group, metric: MetricStyle, rule: str, replicates: Mapping[str, Replicates]
) -> Comparison | None:
    theirs = {r.cell.seed: r for r in other.fine if value_of(r, metric.name, rule) is not None}
    pairs = [
        (r, theirs[r.cell.seed])
        for r in sorted(mine.fine, key=lambda r: r.cell.seed)
        if r.cell.seed in theirs and value_of(r, metric.name, rule) is not None and _same_rows(r, theirs[r.cell.seed])
    ]
    if not pairs:
        return None
    own, rival = [r for r, _ in pairs], [r for _, r in pairs]
    difference, basis = paired(own, rival, rule, replicates, metric.name, metric.scale)
    means = [
        metric.scale * math.fsum(value_of(r, metric.name, rule) or 0.0 for r in of) / len(of) for of in (own, rival)
    ]
    return Comparison(
        setting=mine.setting,
        method=mine.method,
        rival=other.method,
        role="bound" if other.oracle else "control" if other.control else "method",
        seeds=tuple(r.cell.seed for r, _ in pairs),
        own=means[0],
        other=means[1],
        difference=difference,
        p=None,
        basis=basis,
        verdict="",
    )


def _judged(found: list[Comparison], metric: MetricStyle) -> list[Comparison]:
    """The comparisons of a setting with corrected p-values and verdicts: best rivals first, controls, bounds."""
    sign = 1.0 if metric.higher_is_better else -1.0
    corrected: dict[str, float | None] = {}
    for role in ("method", "control"):
        corrected |= holm({repr((c.method, c.rival)): c.difference.p for c in found if c.role == role})
    judged = []
    for c in found:
        p = corrected.get(repr((c.method, c.rival)))
        verdict: Verdict = "" if c.role == "bound" else "one seed" if p is None else "unclear"
        if p is not None and p <= LEVEL:
            verdict = "better" if sign * c.difference.mean > 0 else "worse"
        judged.append(replace(c, p=p, verdict=verdict))
    order = {"method": 0, "control": 1, "bound": 2}
    return sorted(judged, key=lambda c: (c.method, order[c.role], -sign * c.other, c.rival))


COLUMNS: dict[Key, str] = {"other": "published", "difference": "difference [95 %]", "verdict": "p, verdict"}


def tables_of(found: Sequence[Comparison], metric: MetricStyle, rule: str) -> list[Table]:
    """For each own method a table over all settings (if there are several), and one table for each setting."""
    tables = []
    for method in dict.fromkeys(c.method for c in found):
        of_method = [c for c in found if c.method == method]
        settings = list(dict.fromkeys(c.setting for c in of_method))
        if len(settings) > 1:
            tables.append(_summary(method, of_method, metric, rule))
        tables += [_setting_table([c for c in of_method if c.setting == s], metric, rule) for s in settings]
    return tables


def _setting_table(found: Sequence[Comparison], metric: MetricStyle, rule: str) -> Table:
    first = max(found, key=lambda c: len(c.seeds))
    setting, n = first.setting, metric.digits
    noise = [] if setting.noise == "none" else [f"noise {setting.noise_name}"]
    entries: dict[tuple[str, Key], TableEntry] = {}
    for c in found:
        d, line = c.difference, _line(c)
        interval = "" if d.low is None or d.high is None else f" [{d.low:.{n}f}, {d.high:.{n}f}]"
        decided = c.verdict in ("better", "worse")
        entries[line, "other"] = TableEntry(f"{c.other:.{n}f}")
        entries[line, "difference"] = TableEntry(f"{d.mean:+.{n}f}{interval}", "best" if decided else "")
        entries[line, "verdict"] = TableEntry(f"{p_words(c.p)} {c.verdict}".strip(), number=decided)
    seeds: dict[tuple[int, ...], list[str]] = {}
    for c in found:
        seeds.setdefault(c.seeds, []).append(_line(c))
    notes = [f"{name_seeds(of)}: {', '.join(lines)}" for of, lines in seeds.items() if of != first.seeds]
    about = (f"{first.method} {first.own:.{n}f}", dataset_title(setting.dataset), setting.bags_name, *noise)
    return Table(
        about=(*about, name_seeds(first.seeds)),
        rule=rule,
        what=metric.title,
        columns=dict(COLUMNS),
        methods=list(dict.fromkeys(map(_line, found))),
        entries=entries,
        bounds=[],
        notes=[*notes, *_unbeaten(found)],
    )


def _line(c: Comparison) -> str:
    return c.rival if c.role == "method" else f"{c.rival} ({c.role})"


def _unbeaten(found: Sequence[Comparison]) -> list[str]:
    """Whether the controls are beaten, in words; controls that are not are named with their setting."""
    controls = [c for c in found if c.role == "control"]
    beaten = [c for c in controls if c.verdict == "better"]
    if not controls:
        return []
    several = len({c.setting for c in controls}) > 1
    left = [
        f"{c.rival} ({dataset_title(c.setting.dataset)}, {c.setting.bags_name})" if several else c.rival
        for c in controls
        if c.verdict != "better"
    ]
    unit = "comparisons with controls" if several else "controls"
    return [f"better than {len(beaten)} of {len(controls)} {unit}" + (f"; not: {', '.join(left)}" if left else "")]


def _summary(method: str, found: Sequence[Comparison], metric: MetricStyle, rule: str) -> Table:
    """Over all settings: in how many a rival is beaten, and the mean difference, in which sources have equal weight."""
    columns: dict[Key, str] = {
        "settings": "settings",
        "better": "better",
        "unclear": "unclear",
        "worse": "worse",
        "mean": "difference",
    }
    lines: dict[str, list[Comparison]] = {}
    for c in found:
        lines.setdefault(_line(c), []).append(c)
    sign = 1.0 if metric.higher_is_better else -1.0
    order = {"method": 0, "control": 1, "bound": 2}
    means = {
        line: even_mean({(c.source, c.setting): c.difference.mean for c in of}) or 0.0 for line, of in lines.items()
    }
    ranked = sorted(lines, key=lambda line: (order[lines[line][0].role], sign * means[line], line))
    entries: dict[tuple[str, Key], TableEntry] = {}
    for line, of in lines.items():
        tested = of[0].role != "bound"
        open_ = sum(c.verdict in ("unclear", "one seed") for c in of)
        counts = {"better": sum(c.verdict == "better" for c in of), "unclear": open_}
        counts |= {"worse": sum(c.verdict == "worse" for c in of)}
        entries[line, "settings"] = TableEntry(str(len(of)))
        entries |= {(line, name): TableEntry(str(count) if tested else "") for name, count in counts.items()}
        entries[line, "mean"] = TableEntry(f"{means[line]:+.{metric.digits}f}")
    settings, sources = len({c.setting for c in found}), len({c.source for c in found})
    return Table(
        about=(method, f"{settings} settings of {sources} source{'s' * (sources > 1)}"),
        rule=rule,
        what=metric.title,
        columns=columns,
        methods=ranked,
        entries=entries,
        bounds=[],
        notes=_unbeaten(found),
    )


def p_words(p: float | None) -> str:
    """A p-value in a table."""
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def records(found: Iterable[Comparison]) -> list[dict[str, object]]:
    """The comparisons as plain data, with all digits."""
    return [
        {
            "method": c.method,
            "dataset": c.setting.dataset,
            "bag_size": c.setting.bag_size,
            "scheme": c.setting.scheme,
            "noise": c.setting.noise_name,
            "rival": c.rival,
            "role": c.role,
            "seeds": list(c.seeds),
            "own": c.own,
            "other": c.other,
            "difference": c.difference.mean,
            "low": c.difference.low,
            "high": c.difference.high,
            "p": c.p,
            "verdict": c.verdict,
            "basis": c.basis,
        }
        for c in found
    ]


def panels_of(found: Sequence[Comparison]) -> dict[str, list[Interval]]:
    """The comparisons with published methods as panels of a chart, one for each own method and setting.

    Controls are left out: they are so far away that differences between methods could not be seen.
    """
    panels: dict[str, list[Interval]] = {}
    several = len({c.method for c in found}) > 1
    for c in (c for c in found if c.role == "method"):
        noise = [] if c.setting.noise == "none" else [f"noise {c.setting.noise_name}"]
        words = [c.method] * several + [dataset_title(c.setting.dataset), c.setting.bags_name, *noise]
        d, style = c.difference, c.verdict if c.verdict in ("better", "worse") else ""
        panels.setdefault(", ".join(words), []).append(Interval(c.rival, d.mean, d.low, d.high, style))
    return panels
