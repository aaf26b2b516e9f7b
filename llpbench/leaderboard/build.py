"""From published results to a board: a pure function, the same board for the same content."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from llpbench.contracts.result import FAILURES, RULES, CellResult
from llpbench.contracts.specs import Reference
from llpbench.experiment.privacy import epsilon_of
from llpbench.leaderboard.commands import command
from llpbench.leaderboard.compare import Compared, compare_column
from llpbench.leaderboard.folder import Content, MethodFacts
from llpbench.leaderboard.schema import (
    SCHEMA,
    Board,
    BoardDataset,
    BoardRow,
    Claim,
    Entry,
    Machine,
    Mean,
    Metric,
    Missing,
    PaperRow,
    Published,
    Rank,
    RuleValue,
    Seconds,
)
from llpbench.leaderboard.settings import Setting, expected_seeds, setting_of, shown_results
from llpbench.leaderboard.statistics import pareto_front, standings
from llpbench.results.references import matches, references_of
from llpbench.results.table import data_key, mean_sd, noise_name, value_of

METRIC = "auroc"
_DIGITS = 4
TITLE = "llpbench leaderboard"


@dataclass
class _Group:
    """All cells of one dataset label."""

    label: str
    cells: dict[tuple[str, str, int], list[CellResult]] = field(default_factory=dict)  # method, noise, bag
    epsilons: dict[str, float | None] = field(default_factory=dict)
    seeds: dict[Setting, set[int]] = field(default_factory=dict)

    @property
    def data(self) -> str:
        """The rows behind it, whatever bags are made of them: what a bound depends on."""
        return data_key(next(iter(self.cells.values()))[0].cell)

    @property
    def noises(self) -> list[str]:
        """No noise first, then falling epsilon."""
        return sorted(self.epsilons, key=lambda n: (-(self.epsilons[n] or float("inf")), n))

    def bags(self) -> list[int]:
        """Bag sizes of methods that are not bounds."""
        return sorted({bag for (_, _, bag), cells in self.cells.items() if not cells[0].oracle})

    def methods(self, oracle: bool) -> list[str]:
        """Labels of methods, sorted."""
        return sorted({m for (m, _, _), cells in self.cells.items() if cells[0].oracle == oracle})


def make_board(content: Content) -> Board:
    """The board of a leaderboards folder."""
    results = shown_results(line.result for line in content.lines.values())
    groups = _groups(results)
    datasets = [_dataset(group, content) for group in groups]
    return Board(
        schema=SCHEMA,
        title=TITLE,
        metric={name: Metric(higher=m.higher, percent=m.percent) for name, m in sorted(content.facts.metrics.items())},
        rules=list(RULES),
        datasets=datasets,
        machines=_machines(content, results),
        built=max((r.started[:10] for r in results), default=""),
        missing=[missing for dataset in datasets for missing in _missing(dataset)],
    )


def method_labels(results: list[CellResult]) -> dict[str, str]:
    """The label of each cell's method, with the engine where a dataset has it on several."""
    engines: dict[tuple[str, str], set[str]] = {}
    for r in results:
        engines.setdefault((r.dataset_label, r.label), set()).add(r.cell.backend)
    return {
        r.id: r.label if len(engines[r.dataset_label, r.label]) == 1 else f"{r.label} ({r.cell.backend or 'no engine'})"
        for r in results
    }


def _groups(results: list[CellResult]) -> list[_Group]:
    groups: dict[str, _Group] = {}
    labels = method_labels(results)
    for r in sorted(results, key=lambda r: (r.dataset_label, r.cell.seed)):
        group = groups.setdefault(r.dataset_label, _Group(r.dataset_label))
        noise = noise_name(r.cell)
        group.cells.setdefault((labels[r.id], noise, r.cell.bag_size), []).append(r)
        if not r.oracle:
            group.epsilons[noise] = epsilon_of(r.cell.noise)
    seeds = expected_seeds(results)
    for group in groups.values():
        group.seeds = seeds
        for other in groups.values():
            if other is not group and other.data == group.data:
                group.cells.update({key: found for key, found in other.cells.items() if found[0].oracle})
    bounded = {group.data for group in groups.values() if group.bags()}
    return [group for group in groups.values() if group.bags() or group.data not in bounded]


def _dataset(group: _Group, content: Content) -> BoardDataset:
    bags, noises = group.bags(), group.noises
    base = next(iter(group.cells.values()))[0].cell.dataset
    facts = content.facts.datasets.get(base)
    references = references_of(content.facts.references, group.label)
    higher = content.facts.metrics[METRIC].higher if METRIC in content.facts.metrics else True
    rows = [_row(group, method, noises, bags, content, references) for method in group.methods(oracle=False)]
    claims = []
    for noise in noises:
        for bag in bags:
            column = {row.method: group.cells.get((row.method, noise, bag), []) for row in rows}
            entries = {row.method: row.cells[noise][str(bag)] for row in rows}
            for rule in RULES:
                compared = compare_column(column, entries, rule, content.replicates, METRIC, higher)
                if compared is not None:
                    claims.append(_claim(compared, rule, noise, bag))
    return BoardDataset(
        name=group.label,
        title=facts.summary if facts is not None else "",
        task=facts.task if facts is not None else "binary",
        metric=METRIC,
        bags=bags,
        noises=noises,
        epsilons={noise: group.epsilons[noise] for noise in noises},
        bounds=_bounds(group, higher),
        rows=rows + [_row(group, m, ["none"], [1], content, references) for m in group.methods(oracle=True)],
        paper=_paper(references),
        ranks={rule: _ranks(group, rows, rule, higher) for rule in RULES},
        pareto={rule: _pareto(rows, bags, rule, higher) for rule in RULES} if "none" in noises else {},
        claims=claims,
    )


def _row(
    group: _Group, method: str, noises: list[str], bags: list[int], content: Content, references: list[Reference]
) -> BoardRow:
    cells = {n: {str(b): _entry(group, method, n, b, references) for b in bags} for n in noises}
    some = next(found[0] for (m, _, _), found in group.cells.items() if m == method)
    facts = content.facts.methods.get(some.cell.method, MethodFacts())
    return BoardRow(
        method=method,
        name=some.cell.method,
        summary=facts.summary,
        oracle=some.oracle,
        control=facts.control,
        origin=facts.origin,
        cells=cells,
    )


def _entry(group: _Group, method: str, noise: str, bag: int, references: list[Reference]) -> Entry:
    results = group.cells.get((method, noise, bag), [])
    paper = next((r for r in references if matches(r, method, bag, noise, METRIC) and not r.stage), None)
    published = None if paper is None else _published(paper)
    if not results:
        return Entry(status="missing", reason="not run", paper=published)
    planned = {r.cell.seed for r in results} | group.seeds.get(setting_of(results[0]), set())
    fine = [r for r in results if r.status == "ok"]
    absent = sorted(planned - {r.cell.seed for r in results})
    reasons = [_reason(r) for r in results if r.status != "ok"]
    reasons += [f"seed {', '.join(map(str, absent))} not run"] if absent else []
    machine = Counter(r.machine for r in results).most_common(1)[0][0]
    return Entry(
        status=_status(results, fine, bool(absent)),
        reason="; ".join(dict.fromkeys(reasons)),
        rules={rule: _rule_value(fine, rule) for rule in RULES} if fine else {},
        seconds=_seconds(fine) if fine else None,
        memory_mb=_mean([r.peak_memory_mb for r in fine]) if fine else None,
        pseudo=_pseudo(fine),
        params=dict(sorted(results[0].cell.params.items())),
        seed_ids=[r.id for r in results],
        machine=machine,
        command=command(results[0], max(planned) + 1),
        paper=published,
    )


def _status(results: list[CellResult], fine: list[CellResult], absent: bool) -> str:
    if fine:
        return "partial" if absent or len(fine) < len(results) else "ok"
    return "failed" if any(r.status in FAILURES for r in results) else "skipped"


def _reason(result: CellResult) -> str:
    word = "" if result.status in ("failed", "skipped") else f"{result.status}: "
    return f"seed {result.cell.seed}: {word}{result.reason}"


def _rule_value(fine: list[CellResult], rule: str) -> RuleValue:
    values = [100 * v for r in fine if (v := value_of(r, METRIC, rule)) is not None]
    mean, sd = mean_sd(values)
    return RuleValue(mean=_round(mean), sd=_round(sd), seeds=len(values), values=[round(v, _DIGITS) for v in values])


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


def _published(reference: Reference) -> Published:
    return Published(
        mean=_percent(reference.mean),
        sd=_percent(reference.sd),
        rule=reference.rule,
        source=reference.source,
        note=reference.note,
    )


def _bounds(group: _Group, higher: bool) -> dict[str, Mean]:
    """The best of the methods that are given labels, by rule."""
    bounds: dict[str, Mean] = {}
    for method in group.methods(oracle=True):
        fine = [r for (m, _, _), found in group.cells.items() if m == method for r in found if r.status == "ok"]
        for rule in RULES:
            value = _rule_value(fine, rule)
            if value.mean is None:
                continue
            known = bounds.get(rule)
            if known is None or known.mean is None or (value.mean > known.mean) == higher:
                bounds[rule] = Mean(mean=value.mean, sd=value.sd, seeds=value.seeds, method=method)
    return bounds


def _paper(references: list[Reference]) -> list[PaperRow]:
    rows: dict[tuple[str, str, str], PaperRow] = {}
    for r in references:
        if r.metric != METRIC or r.stage:
            continue
        row = rows.setdefault(
            (r.source, r.title, r.noise),
            PaperRow(method=r.title, name=r.method, cells={}, noise=r.noise, rule=r.rule, source=r.source),
        )
        bag = "1" if r.bag_size is None else str(r.bag_size)
        row.cells[bag] = Mean(mean=_percent(r.mean), sd=_percent(r.sd), note=r.note)
    return list(rows.values())


def _ranks(group: _Group, rows: list[BoardRow], rule: str, higher: bool) -> list[Rank]:
    """Over the cells without noise (if there are such) that at least half of the methods have.

    A method that lacks one of them is left out, so that a few ablations at one bag size do not decide for all.
    """
    noises = ["none"] if "none" in group.noises else group.noises
    scores = {row.method: _by_cell(group, row.method, noises, rule) for row in rows}
    usual = Counter(cell for found in scores.values() for cell in found)
    wanted = {cell for cell, n in usual.items() if 2 * n >= len(scores)}
    compared = {
        m: {c: v for c, v in found.items() if c in wanted} for m, found in scores.items() if wanted <= set(found)
    }
    found = standings(compared, higher) if len(compared) > 1 else {}
    ranks = [
        Rank(method=m, mean_rank=round(s.mean_rank, _DIGITS), win_rate=round(s.win_rate, _DIGITS), cells=s.cells)
        for m, s in found.items()
    ]
    ranks.sort(key=lambda r: (r.mean_rank or 0.0, r.method))
    out = [Rank(method=m, mean_rank=None, win_rate=None, cells=len(scores[m])) for m in scores if m not in found]
    return ranks + out if found else []


def _by_cell(group: _Group, method: str, noises: list[str], rule: str) -> dict[object, float]:
    found: dict[object, float] = {}
    for (m, noise, bag), results in group.cells.items():
        if m != method or noise not in noises:
            continue
        for r in results:
            value = value_of(r, METRIC, rule)
            if value is not None:
                found[noise, bag, r.cell.seed] = value
    return found


def _pareto(rows: list[BoardRow], bags: list[int], rule: str, higher: bool) -> dict[str, list[str]]:
    """Fronts of value against seconds without noise, among the entries of the machine that made most of them."""
    fronts = {}
    for bag in bags:
        entries = {row.method: row.cells["none"][str(bag)] for row in rows}
        there = {m: e for m, e in entries.items() if e.status == "ok" and e.seconds is not None and rule in e.rules}
        if not there:
            continue
        machine = Counter(e.machine for e in there.values()).most_common(1)[0][0]
        points = {
            m: (value, e.seconds.fit)
            for m, e in there.items()
            if e.machine == machine and e.seconds is not None and (value := e.rules[rule].mean) is not None
        }
        fronts[str(bag)] = pareto_front(points, higher)
    return fronts


def _claim(compared: Compared, rule: str, noise: str, bag: int) -> Claim:
    i = compared.interval
    return Claim(
        rule=rule,
        bag=bag,
        noise=noise,
        best=compared.best,
        second=compared.second,
        difference=round(i.mean, _DIGITS),
        low=_round(i.low),
        high=_round(i.high),
        separated=i.separated,
        text=compared.text,
        basis=compared.basis,
    )


def _machines(content: Content, results: list[CellResult]) -> dict[str, Machine]:
    used: dict[str, dict[str, set[str]]] = {}
    for r in results:
        for name, version in r.versions.items():
            used.setdefault(r.machine, {}).setdefault(name, set()).add(version)
    return {
        key: Machine(
            cpu=m.cpu,
            cores=m.cores,
            ram=m.memory_gb,
            os=m.system,
            python=m.python,
            versions={name: ", ".join(sorted(found)) for name, found in sorted(used.get(key, {}).items())},
        )
        for key, m in sorted(content.machines.items())
        if key in used or any(r.machine == key for r in results)
    }


def _missing(dataset: BoardDataset) -> list[Missing]:
    tried = {
        (noise, bag)
        for row in dataset.rows
        for noise, entries in row.cells.items()
        for bag, entry in entries.items()
        if entry.seed_ids
    }
    return [
        Missing(
            dataset=dataset.name, method=row.method, noise=noise, bag=int(bag), status=entry.status, reason=entry.reason
        )
        for row in dataset.rows
        for noise, entries in row.cells.items()
        for bag, entry in entries.items()
        if entry.status != "ok" and (noise, bag) in tried
    ]


def _mean(values: list[float]) -> float:
    return round(mean_sd(values)[0] or 0.0, _DIGITS)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, _DIGITS)
