"""Build the board from published content: the same board for the same content."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from types import MappingProxyType

import msgspec
from msgspec import UNSET

from llpbench.board.built.about import about
from llpbench.board.built.claims import compare_best, mark_best
from llpbench.board.built.groups import NO_NOISE, DatasetGroups, NoiseAndBag, block_of, board_groups, by_dataset
from llpbench.board.built.overview import cells_of, coverage_of, standings_of
from llpbench.board.built.protocol import board_protocol, table_data
from llpbench.board.built.rows import DIGITS, aggregate, make_score, mark_rows, paper_rows, rounded
from llpbench.board.content.facts import MethodAbout, rules_of, styles_of
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import is_unreleased
from llpbench.board.maths.bootstrap import METRIC as JUDGED
from llpbench.board.maths.statistics import pareto_front, standings
from llpbench.board.schema import (
    SCHEMA,
    Aggregate,
    AsManyLabels,
    BestClaim,
    Board,
    BoardDataset,
    BoardRow,
    Machine,
    Mean,
    Metric,
    Missing,
    Rank,
    Rule,
)
from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import BOUND_BAGS, OWN_SIZES
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.report.cards import cards_of
from llpbench.report.levels import NO_SEED, common_seeds
from llpbench.results.metric_style import TEST_ROWS, MetricStyle
from llpbench.results.naming import dataset_title
from llpbench.results.references import references_of
from llpbench.results.shared import name_seeds, seeds_note, shared_keys, unbeaten_control, usual_number
from llpbench.results.table import Group, make_row, mean_sd, value_of
from llpbench.results.worth import label_curves

TITLE = "llpbench leaderboard"


def make_board(
    content: Content, groups: list[Group] | None = None, *, files: Mapping[str, str] = MappingProxyType({})
) -> Board:
    """The board of a leaderboards folder.

    Args:
        content: what is published.
        groups: its results by setting (``board_groups``), if they are known already.
        files: files next to its page, with what each one is.
    """
    results = [line.result for line in content.lines.values()]
    styles, rules = styles_of(results, content.facts), rules_of(results, content.facts)
    found = by_dataset(board_groups(results, content.facts.roles) if groups is None else groups)
    datasets = [_board_dataset(dataset, content, list(styles.values()), list(rules)) for dataset in found]
    mark_rows((row for dataset in datasets for row in dataset.rows), content.marks)
    cells = cells_of(found, content.facts)
    return Board(
        schema=SCHEMA,
        protocol=max((r.protocol for r in results), default=PROTOCOL),
        title=TITLE,
        metrics=[_metric(style) for style in styles.values()],
        rules=[Rule(name=name, title=r.title, summary=r.summary, higher=r.higher) for name, r in rules.items()],
        datasets=datasets,
        machines=_machines(content, results),
        built=max((r.started[:10] for r in results), default=""),
        missing=[missing for dataset in datasets for missing in _missing(dataset)],
        overall=standings_of(cells, list(styles.values()), list(rules)),
        coverage=coverage_of(cells),
        suites=dict(sorted(content.facts.suites.items())),
        methods=dict(sorted(content.facts.methods.items())),
        sources=dict(sorted(content.facts.datasets.items())),
        about=about(results, files),
    )


def _metric(style: MetricStyle) -> Metric:
    return Metric(
        name=style.name,
        title=style.words or style.name,
        higher=style.higher_is_better,
        percent=style.percent,
        digits=style.digits,
        measured_on=style.measured_on,
    )


def _board_dataset(
    dataset: DatasetGroups, content: Content, styles: Sequence[MetricStyle], rules: Sequence[str]
) -> BoardDataset:
    bags, noises, setting = dataset.bags, list(dataset.epsilons), dataset.sample.setting
    known = references_of(content.facts.references, setting.dataset)
    facts = content.facts.datasets.get(setting.base_dataset)

    def row(groups: dict[NoiseAndBag, Group]) -> BoardRow:
        cells: dict[str, dict[str, Aggregate]] = {}
        for (noise, bag), group in groups.items():
            cells.setdefault(noise, {})[str(bag)] = aggregate(group, styles, rules, known)
        results = [result for group in groups.values() for result in group.found]
        return _board_row(next(iter(groups.values())), cells, content, results)

    rows = [row({(n, b): dataset.group(m, n, b) for n in noises for b in bags}) for m in dataset.methods]
    claims = [
        claim
        for noise in noises
        for bag in bags
        for style in styles
        for rule in rules
        if (claim := _judge_column(dataset, rows, (noise, bag), style, rule, content)) is not None
    ]
    for bag, style, rule in product(bags, styles, rules) if len(noises) > 1 else ():
        _level_noises(dataset, rows, bag, style, rule)
    as_many_labels = _as_many_labels(dataset, rows, styles, rules)
    rows += [row({(NO_NOISE, bag): found[bag] for bag in sorted(found)}) for found in dataset.bounds.values()]
    protocol = board_protocol(dataset.groups, content, styles, rules)
    stated = {name for r in rows for found in r.aggregates for name in found.scores}
    here = [style for style in styles if style.name in stated]
    return BoardDataset(
        name=setting.dataset,
        title=facts.summary if facts is not None else "",
        task=facts.task if facts is not None else "binary",
        metrics=[style.name for style in here],
        bags=bags,
        noises=noises,
        epsilons=dataset.epsilons,
        bounds={style.name: _bounds(dataset, BOUND_BAGS, style, rules) for style in here} if dataset.same_rows else {},
        bag_bounds=UNSET
        if dataset.same_rows or not dataset.bounds
        else {s.name: {str(b): _bounds(dataset, b, s, rules) for b in bags} for s in here},
        as_many_labels=as_many_labels or UNSET,
        rows=rows,
        paper=paper_rows(known, styles),
        ranks={style.name: {rule: _ranks(dataset, style, rule) for rule in rules} for style in here},
        pareto={style.name: {rule: _pareto(rows, bags, style, rule) for rule in rules} for style in here}
        if NO_NOISE in noises
        else {},
        claims=claims,
        base=setting.base_dataset,
        label=dataset_title(setting.dataset),
        block=block_of(setting._replace(noise=NO_NOISE), facts),
        self_sized=setting.scheme if OWN_SIZES in bags else "",
        cards=_cards(dataset) or UNSET,
        groupings={str(g.setting.bag_size): g.groupings for g in reversed(dataset.groups) if g.groupings} or UNSET,
        protocol=[table_data(table) for table in protocol] or UNSET,
    )


def _cards(dataset: DatasetGroups) -> dict[str, BagCard]:
    """The bag cards by bag size (noise on counts does not change them)."""
    return {str(bag): card for (_, bag), (_, card) in cards_of(dataset.groups).items()}


def _board_row(
    group: Group, cells: dict[str, dict[str, Aggregate]], content: Content, results: list[CellResult]
) -> BoardRow:
    facts = content.facts.methods.get(group.base_method, MethodAbout())
    return BoardRow(
        method=group.method,
        name=group.base_method,
        summary=facts.summary,
        oracle=group.oracle,
        control=facts.control,
        origin=facts.origin,
        unreleased=any(map(is_unreleased, results)),
        cells=cells,
    )


def _judge_column(
    dataset: DatasetGroups, rows: list[BoardRow], place: NoiseAndBag, style: MetricStyle, rule: str, content: Content
) -> BestClaim | None:
    """Mark the best of a column on the seeds that methods share; return a claim for the metric with replicates."""
    noise, bag = place
    groups = {row.method: dataset.group(row.method, noise, bag) for row in rows}
    scores = {
        row.method: score
        for row in rows
        if groups[row.method].compared_under(rule)
        and (score := row.cells[noise][str(bag)].scores.get(style.name, {}).get(rule)) is not None
    }
    values = {m: _by_seed(groups[m], style, rule) for m in scores}
    variant_of = {m: group.base_method for m, group in groups.items()}
    roles = dataset.roles
    shared = shared_keys(values, variant_of, roles)
    means = {m: math.fsum(values[m][seed] for seed in shared.keys) / len(shared.keys) for m in shared.methods}
    usual = usual_number(map(len, values.values()))
    for method, score in scores.items():
        score.shared = rounded(means.get(method), style.scale)
        if method in means and set(values[method]) != shared.keys:
            score.shared_sd = rounded(mean_sd([values[method][seed] for seed in sorted(shared.keys)])[1], style.scale)
    for row in rows:
        told = row.cells[noise][str(bag)].scores.get(style.name, {}).get(rule)
        if told is not None:
            told.note = seeds_note(_by_seed(groups[row.method], style, rule), usual)
    rivals = {method: mean for method, mean in means.items() if method not in roles.controls}
    ranked = mark_best(scores, rivals, style.higher_is_better)
    if style.name != JUDGED:
        return None
    column = {m: [r for r in groups[m].fine if r.cell.seed in shared.keys] for m in ranked}
    claim = compare_best(ranked, column, scores, rule, content.replicates, style.higher_is_better)
    if claim is None:
        return None
    control = unbeaten_control(means, roles.controls, style.higher_is_better)
    text = claim.text if control is None else f"{claim.text} No method is better than the control {control}."
    return msgspec.structs.replace(claim, bag=bag, noise=noise, text=text, seeds=sorted(shared.keys))


def _level_noises(dataset: DatasetGroups, rows: list[BoardRow], bag: int, style: MetricStyle, rule: str) -> None:
    """Set the means of a bag size that are comparable between noise levels.

    They are over the seeds that most methods have at every level, or over the method's own ones if some are missing.
    """
    groups = {row.method: {noise: dataset.group(row.method, noise, bag) for noise in row.cells} for row in rows}
    values = {m: {n: v for n, g in of.items() if (v := _by_seed(g, style, rule))} for m, of in groups.items()}
    common = {m: common_seeds(of.values()) for m, of in values.items()}
    compared = [
        m for m, of in values.items() if len(of) > 1 and all(g.compared_under(rule) for g in groups[m].values())
    ]
    variant_of = {row.method: row.name for row in rows}
    usual = shared_keys({m: common[m] for m in compared}, variant_of, dataset.roles).keys
    for row in rows:
        seeds = usual if usual and usual <= common[row.method] else common[row.method]
        for noise, found in values[row.method].items():
            if seeds != set(found):
                mean, sd = mean_sd([style.scale * found[seed] for seed in sorted(seeds)])
                note = name_seeds(seeds) if seeds else NO_SEED
                row.cells[noise][str(bag)].scores[style.name][rule].at_all_noises = Mean(
                    mean=rounded(mean), sd=rounded(sd), seeds=len(seeds), note=note
                )


def _by_seed(group: Group, style: MetricStyle, rule: str) -> dict[int, float]:
    return {r.cell.seed: value for r in group.fine if (value := value_of(r, style.name, rule)) is not None}


def _bounds(dataset: DatasetGroups, bag: int, style: MetricStyle, rules: Sequence[str]) -> dict[str, Mean]:
    """The best bound by rule; none for metrics that are measured on bags.

    Its note says how many seeds it has if most of the dataset's numbers have another number.
    """
    bounds: dict[str, Mean] = {}
    if style.measured_on != TEST_ROWS:
        return bounds
    for method, group in dataset.bounds_at(bag).items():
        for rule in rules:
            score = make_score(group, style, rule)
            if score.mean is None:
                continue
            usual = usual_number(len(_by_seed(g, style, rule)) for g in dataset.groups)
            note = seeds_note(_by_seed(group, style, rule), usual)
            known = bounds.get(rule)
            if known is None or known.mean is None or (score.mean > known.mean) == style.higher_is_better:
                bounds[rule] = Mean(mean=score.mean, sd=score.sd, seeds=score.seeds, method=method, note=note)
    return bounds


def _as_many_labels(
    dataset: DatasetGroups, rows: Sequence[BoardRow], styles: Sequence[MetricStyle], rules: Sequence[str]
) -> dict[str, dict[str, dict[str, AsManyLabels]]]:
    """What a bound reaches with as many labels as bags. Sets ``worth`` of the scores of ``rows``."""
    found: dict[str, dict[str, dict[str, AsManyLabels]]] = {}
    cards = _cards(dataset)
    for bag, style, rule in product(map(str, dataset.bags), styles, rules):
        bounds = dataset.label_bounds_at(int(bag))
        if not bounds or bag not in cards or style.measured_on != TEST_ROWS:
            continue
        curves = label_curves([make_row(g, style, rule) for g in bounds], higher_is_better=style.higher_is_better)
        for name, curve in list(curves.items())[:1]:
            bags = cards[bag].bags
            labels = AsManyLabels(bound=name, bags=bags, mean=rounded(curve.at(bags)))
            found.setdefault(style.name, {}).setdefault(rule, {})[bag] = labels
            for score in (c[bag].scores.get(style.name, {}).get(rule) for row in rows for c in row.cells.values()):
                if score is not None and score.mean is not None:
                    score.worth = curve.worth_words(score.mean)
    return found


def _ranks(dataset: DatasetGroups, style: MetricStyle, rule: str) -> list[Rank]:
    """Ranks over the cells (bag size, seed) that methods share (``results.shared``), without noise if there are such.

    Methods that lack some of these cells and controls are not ranked.
    """
    noises = [NO_NOISE] if NO_NOISE in dataset.epsilons else list(dataset.epsilons)
    ranked = {
        m: groups
        for m, groups in dataset.methods.items()
        if m not in dataset.roles.controls and all(group.compared_under(rule) for group in groups.values())
    }
    scores = {method: _by_cell(groups, noises, style, rule) for method, groups in ranked.items()}
    variant_of = {m: group.base_method for m, found in ranked.items() for group in found.values()}
    shared = shared_keys(scores, variant_of, dataset.roles)
    compared = {m: {c: v for c, v in scores[m].items() if c in shared.keys} for m in shared.methods}
    found = standings(compared, style.higher_is_better) if len(compared) > 1 else {}
    ranks = [
        Rank(method=m, mean_rank=round(s.mean_rank, DIGITS), win_rate=round(s.win_rate, DIGITS), cells=s.cells)
        for m, s in found.items()
    ]
    ranks.sort(key=lambda r: (r.mean_rank or 0.0, r.method))
    out = [Rank(method=m, mean_rank=None, win_rate=None, cells=len(scores[m])) for m in scores if m not in found]
    return ranks + out if found else []


def _by_cell(groups: dict[NoiseAndBag, Group], noises: list[str], style: MetricStyle, rule: str) -> dict[object, float]:
    return {
        (noise, bag, r.cell.seed): value
        for (noise, bag), group in groups.items()
        if noise in noises
        for r in group.found
        if (value := value_of(r, style.name, rule)) is not None
    }


def _pareto(rows: list[BoardRow], bags: list[int], style: MetricStyle, rule: str) -> dict[str, list[str]]:
    """Pareto fronts of value and seconds without noise, of methods that ran on the most common machine."""
    fronts = {}
    for bag in bags:
        compared = [row for row in rows if not (row.oracle or row.control)]
        found = {row.method: row.cells[NO_NOISE][str(bag)] for row in compared}
        there = {m: e for m, e in found.items() if rule in e.scores.get(style.name, {})}
        if not there:
            continue
        machine = Counter(e.machine for e in there.values()).most_common(1)[0][0]
        points = {
            m: (value, e.seconds.fit)
            for m, e in there.items()
            if e.machine == machine
            and e.seconds is not None
            and (value := e.scores[style.name][rule].shared) is not None
        }
        fronts[str(bag)] = pareto_front(points, style.higher_is_better)
    return fronts


def _machines(content: Content, results: list[CellResult]) -> dict[str, Machine]:
    used: dict[str, dict[str, set[str]]] = {result.machine: {} for result in results}
    for result in results:
        for name, version in result.versions.items():
            used[result.machine].setdefault(name, set()).add(version)
    return {
        key: Machine(
            cpu=m.cpu,
            cores=m.cores,
            ram=m.memory_gb,
            os=m.system,
            python=m.python,
            versions={name: ", ".join(sorted(found)) for name, found in sorted(used[key].items())},
        )
        for key, m in sorted(content.machines.items())
        if key in used
    }


def _missing(dataset: BoardDataset) -> list[Missing]:
    """Entries without a number or with missing seeds, in settings with results."""
    settings = [
        (row.method, noise, bag, found)
        for row in dataset.rows
        for noise, cells in row.cells.items()
        for bag, found in cells.items()
    ]
    tried = {(noise, bag) for _, noise, bag, found in settings if found.seed_ids}
    return [
        Missing(
            dataset=dataset.name, method=method, noise=noise, bag=int(bag), status=found.status, reason=found.reason
        )
        for method, noise, bag, found in settings
        if found.status != "ok" and (noise, bag) in tried
    ]
