"""Standings over all datasets and coverage of blocks, from published groups."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from llpbench.board.built.groups import BLOCKS, UNSEEN, DatasetGroups, block_of
from llpbench.board.content.facts import Facts, MethodAbout
from llpbench.board.maths import overall
from llpbench.board.maths.bootstrap import METRIC as JUDGED
from llpbench.board.maths.overall import CellKey, ColumnName, Grid
from llpbench.board.maths.statistics import LEVEL
from llpbench.board.standings import BlockCoverage, Overall, OverallRow, Variant
from llpbench.contracts.result import CellResult
from llpbench.results.metric_style import TEST_ROWS, MetricStyle
from llpbench.results.shared import Roles, may_compare
from llpbench.results.table import Group, value_of

ALL = "all"
_DIGITS = 4
_TIE = 1e-9  # so that the order of a sum does not change the last digit


@dataclass(frozen=True)
class BoardCells:
    """All published cells of a board by method.

    Attributes:
        results: by method, then by cell; without bounds.
        block: the block of each cell.
        bounds: the bounds of llpbench: by dataset as displayed and bag size, then by bound, its results by seed.
        defaults: the methods that are ranked: those at their defaults, and those without a run at their defaults.
        variant_of: for every other method (a variant) the one whose settings it changes.
        controls: the controls of llpbench, which are 0 on the scale of scores. No control is ranked. Controls and
            bounds of other packages are not ranked either and change no score.
        planned: how many cells of a method in a block there are, run or not.
        guests: methods of other packages; they do not decide which cells are ranked.
        datasets: the registered dataset of each dataset as displayed.
    """

    results: dict[str, dict[CellKey, CellResult]]
    block: dict[CellKey, str]
    bounds: dict[tuple[str, int], dict[str, dict[int, CellResult]]]
    defaults: tuple[str, ...]
    variant_of: dict[str, str]
    controls: tuple[str, ...]
    planned: Counter[tuple[str, str]]
    guests: frozenset[str]
    datasets: dict[str, str]

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that have cells, in their order."""
        there = set(self.block.values())
        return tuple(block for block in BLOCKS if block in there)


def cells_of(datasets: Iterable[DatasetGroups], facts: Facts) -> BoardCells:
    """The cells of all datasets."""
    results: dict[str, dict[CellKey, CellResult]] = {}
    blocks: dict[CellKey, str] = {}
    bases: dict[str, str] = {}
    bounds: dict[tuple[str, int], dict[str, dict[int, CellResult]]] = {}
    planned: Counter[tuple[str, str]] = Counter()
    registered: dict[str, str] = {}
    for dataset in datasets:
        registered[dataset.sample.setting.dataset] = dataset.sample.setting.base_dataset
        for bag in dataset.bags:
            bounds[dataset.sample.setting.dataset, bag] = {
                method: {r.cell.seed: r for r in group.fine}
                for method, group in dataset.bounds_at(bag).items()
                if facts.methods.get(group.base_method, MethodAbout()).comes_along
            }
        for method, groups in dataset.methods.items():
            for group in groups.values():
                bases[method] = group.base_method
                block = _block(group, facts)
                planned[method, block] += len(group.plans)
                for result in group.found:
                    key = _key(group, result, facts)
                    results.setdefault(method, {})[key] = result
                    blocks[key] = block
    variant_of = {m: base for m, base in bases.items() if m != base and base in bases}
    known = {m: facts.methods.get(base, MethodAbout()) for m, base in bases.items()}
    ranked = [m for m in sorted(bases) if m not in variant_of]
    return BoardCells(
        results,
        blocks,
        bounds,
        tuple(m for m in ranked if not known[m].control),
        variant_of,
        tuple(m for m in ranked if known[m].control and known[m].comes_along),
        planned,
        frozenset(m for m in ranked if not known[m].comes_along),
        registered,
    )


def _block(group: Group, facts: Facts) -> str:
    return block_of(group.setting, facts.datasets.get(group.setting.base_dataset))


def _key(group: Group, result: CellResult, facts: Facts) -> CellKey:
    setting = group.setting
    column = (setting.dataset, setting.noise_name, setting.bag_size)
    return CellKey(facts.source_of(setting.base_dataset), column, result.cell.seed)


def standings_of(cells: BoardCells, styles: Sequence[MetricStyle], rules: Sequence[str]) -> list[Overall]:
    """Standings by every metric under every rule, over all cells and over each block if there are several."""
    blocks = (ALL, *cells.blocks) if len(cells.blocks) > 1 else (ALL,)
    if UNSEEN in blocks:  # what nothing was tuned on comes first
        blocks = (UNSEEN, *(block for block in blocks if block != UNSEEN))
    found = (_standing(cells, style, rule, block) for style in styles for rule in rules for block in blocks)
    return [standing for standing in found if standing is not None]


def numbers_of(cells: BoardCells, style: MetricStyle, rule: str, block: str) -> dict[str, dict[CellKey, float | None]]:
    """The numbers of every method in the cells of a block, higher is better; None for a failure."""
    keys = cells.block if block == ALL else {key for key, of in cells.block.items() if of == block}
    return {
        m: _numbers({key: r for key, r in row.items() if key in keys}, style, rule) for m, row in cells.results.items()
    }


def grid_of(cells: BoardCells, numbers: Mapping[str, Mapping[CellKey, float | None]]) -> Grid:
    """The ranked methods and cells."""
    return overall.ranked_grid(_at_defaults(cells, numbers), Roles(guests=cells.guests))


def _at_defaults(
    cells: BoardCells, numbers: Mapping[str, Mapping[CellKey, float | None]]
) -> dict[str, Mapping[CellKey, float | None]]:
    """The numbers of methods at their defaults."""
    return {m: numbers[m] for m in cells.defaults if numbers.get(m)}


def _standing(cells: BoardCells, style: MetricStyle, rule: str, block: str) -> Overall | None:
    numbers = numbers_of(cells, style, rule, block)
    grid = grid_of(cells, numbers)
    table = _at_defaults(cells, numbers)
    if not grid.keys:
        return None
    bags = {key: key.column[2] for key in grid.keys}
    ranks = grid.ranks
    mean: list[float] = (overall.even_weights(grid.keys) @ ranks).tolist()
    sources = len({key.source for key in grid.keys})
    low, high = overall.percentile_interval(overall.resampled_weights(grid.keys) @ ranks)
    known = sources > 1  # one source says nothing about others
    order = sorted(range(len(grid.methods)), key=lambda m: (_rounded(mean[m]), grid.methods[m]))
    main = style.name == JUDGED
    testable = overall.least_p(sources, len(grid.methods)) <= LEVEL
    p = overall.pairwise_p(overall.source_means(grid)) if main and testable else None
    sizes = sorted({bags[key] for key in grid.keys})
    by_bag = [_mean_ranks(grid, [key for key in grid.keys if bags[key] == size]) for size in sizes]
    scale = _scale(cells, numbers, grid, style, rule)
    machine, seconds = _seconds(cells, grid)
    seeds = Counter(key.column for key in grid.keys).values()
    shares: list[list[float]] = overall.win_shares(grid).tolist()
    rows = [
        OverallRow(
            method=(name := grid.methods[m]),
            rank=_rounded(mean[m]),
            low=_round(low[m]) if known else None,
            high=_round(high[m]) if known else None,
            separated=None if p is None or m == order[0] else bool(p[order[0], m] <= LEVEL),
            p=None if p is None or m == order[0] else _round(p[order[0], m]),
            wins=_round(_mean([share for other, share in enumerate(shares[m]) if other != m])),
            scaled=_scaled(scale, dict(zip(grid.keys, grid.values[:, m], strict=True))),
            seconds=seconds.get(name),
            bags=[_round(found[m]) for found in by_bag],
            failed=sum(table[name][key] is None for key in grid.keys),
        )
        for m in order
    ]
    return Overall(
        block=block,
        metric=style.name,
        rule=rule,
        sources=sources,
        datasets=len({cells.datasets[key.column[0]] for key in grid.keys}),
        columns=len(seeds),
        cells=len(grid.keys),
        seeds=sorted({key.seed for key in grid.keys}),
        column_seeds=(min(seeds), max(seeds)),
        rows=rows,
        bags=sizes,
        bag_sources=[len({key.source for key in grid.keys if bags[key] == size}) for size in sizes],
        untested=_too_few(sources, len(grid.methods)) if main and not testable else "",
        bars=[] if p is None else overall.cliques(order, p <= LEVEL),
        shares=[[_percent(shares[a][b]) for b in order] for a in order] if main else [],
        variants=_variants(cells, numbers, scale),
        unranked={m: sum(key not in table[m] for key in grid.keys) for m in table if m not in grid.methods},
        machine=machine,
    )


def _too_few(sources: int, methods: int) -> str:
    pair = "the two methods" if methods == 2 else f"any two of {methods} methods"
    return f"{_plural(sources, 'source')} {'is' if sources == 1 else 'are'} too few to separate {pair}"


def _numbers(row: Mapping[CellKey, CellResult], style: MetricStyle, rule: str) -> dict[CellKey, float | None]:
    """The compared numbers of a method, higher is better; None for a failure, no entry where undefined."""
    sign = 1.0 if style.higher_is_better else -1.0
    found: dict[CellKey, float | None] = {}
    for key, result in row.items():
        if not may_compare(result.cell.preset, rule):
            continue
        value = value_of(result, style.name, rule)
        if value is not None:
            found[key] = sign * value
        elif result.status != "ok":
            found[key] = None
    return found


def _mean_ranks(grid: Grid, keys: Sequence[CellKey]) -> Sequence[float]:
    part = grid.only(set(keys))
    return list(overall.even_weights(part.keys) @ part.ranks)


Scale = dict[tuple[str, ColumnName], tuple[list[CellKey], float, float]]
"""The cells of a column, and the numbers that are 0 and 1 on its scale."""


def _scale(
    cells: BoardCells,
    numbers: Mapping[str, Mapping[CellKey, float | None]],
    grid: Grid,
    style: MetricStyle,
    rule: str,
) -> Scale:
    """The scale of each column that has a control and a bound above it."""
    scale: Scale = {}
    if style.measured_on != TEST_ROWS:
        return scale
    sign = 1.0 if style.higher_is_better else -1.0
    columns: dict[tuple[str, ColumnName], list[CellKey]] = {}
    for key in grid.keys:
        columns.setdefault((key.source, key.column), []).append(key)
    for (source, column), keys in columns.items():
        bounds = [
            {s: sign * v for s, r in by_seed.items() if (v := value_of(r, style.name, rule)) is not None}
            for by_seed in cells.bounds.get((column[0], column[2]), {}).values()
        ]
        controls = [numbers[m] for m in cells.controls if m in numbers]
        bound = [m for of in bounds if (m := _mean([of.get(key.seed) for key in keys])) is not None]
        control = [m for of in controls if (m := _mean([of.get(key) for key in keys])) is not None]
        if bound and control and max(bound) > max(control):
            scale[source, column] = (keys, max(control), max(bound))
    return scale


def _scaled(scale: Scale, values: Mapping[CellKey, float | None]) -> float | None:
    """The mean score of a method over the columns in which it has all cells."""
    found = {}
    for name, (keys, control, bound) in scale.items():
        mean = _mean([values.get(key) for key in keys])
        value = None if mean is None else overall.between(mean, control, bound)
        if value is not None:
            found[name] = value
    return _round(overall.even_mean(found))


def _seconds(cells: BoardCells, grid: Grid) -> tuple[str, dict[str, float]]:
    """The most common machine of the ranked cells, and the median seconds of a fit on it by method."""
    usual = set(grid.keys)
    timed = [
        (m, result) for m in grid.methods for key, result in cells.results[m].items()
        if key in usual and result.status == "ok"
    ]  # fmt: skip
    machines = Counter(result.machine for _, result in timed)
    machine = min(machines, key=lambda name: (-machines[name], name), default="")
    by_method: dict[str, list[float]] = {}
    for method, result in timed:
        if result.machine == machine:
            by_method.setdefault(method, []).append(result.fit_seconds)
    return machine, {m: _rounded(statistics.median(found)) for m, found in by_method.items()}


def _variants(cells: BoardCells, numbers: Mapping[str, Mapping[CellKey, float | None]], scale: Scale) -> list[Variant]:
    found = []
    for method, of in sorted(cells.variant_of.items()):
        wins, shared = overall.win_share(numbers[method], numbers.get(of, {}))
        if numbers[method]:
            scaled = _scaled(scale, numbers[method])
            found.append(Variant(method=method, of=of, cells=shared, wins=_round(wins), scaled=scaled))
    return found


def coverage_of(cells: BoardCells) -> list[BlockCoverage]:
    """For each block, how many cells of methods at their defaults have a number, and why others have none."""
    lines = []
    for block in cells.blocks:
        rows = {m: {k: r for k, r in cells.results[m].items() if cells.block[k] == block} for m in cells.defaults}
        rows = {m: row for m, row in rows.items() if row}
        fates = Counter(r.status for row in rows.values() for r in row.values())
        columns = Counter(column for row in rows.values() for column in {key.column for key in row})
        planned = max(sum(fates.values()), sum(cells.planned[m, block] for m in rows))
        lacking = {
            "declined by the method": fates["skipped"],
            "failed": sum(fates.values()) - fates["ok"] - fates["skipped"],
            "not run": planned - sum(fates.values()),
        }
        why = ", ".join(f"{number} {word}" for word, number in lacking.items() if number)
        part = sum(number < len(rows) for number in columns.values())
        size = f"{_plural(len(rows), 'method')}, {_plural(len(columns), 'column')}"
        size += f" ({part} of them with some of the methods)" if part else ""
        share = f"all {planned}" if fates["ok"] == planned else f"{fates['ok']} of {planned}"
        text = f"{block}: {size}, {share} cells have a number"
        lines.append(
            BlockCoverage(
                block=block,
                methods=len(rows),
                columns=len(columns),
                cells=planned,
                numbers=fates["ok"],
                text=f"{text}; {why}." if why else f"{text}.",
            )
        )
    return lines


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean, or None if a number is missing."""
    known = [value for value in values if value is not None]
    return round(statistics.fmean(known), 10) if known and len(known) == len(values) else None


def _plural(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100.0 * share + _TIE, 1)


def _round(value: float | None) -> float | None:
    return None if value is None else _rounded(value)


def _rounded(value: float) -> float:
    return round(float(value) + _TIE, _DIGITS)
