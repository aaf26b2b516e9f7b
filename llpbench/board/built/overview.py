"""From published groups to standings over all datasets: which numbers go into ``overall``'s functions."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from llpbench.board.built.grouped import BLOCKS, DatasetGroups, block_of
from llpbench.board.content.facts import Facts, MethodFacts
from llpbench.board.maths import overall
from llpbench.board.maths.overall import Grid, Key
from llpbench.board.maths.statistics import LEVEL
from llpbench.board.schema.overall import BlockCoverage, Overall, OverallRow, Variant
from llpbench.contracts.result import CellResult
from llpbench.results.bootstrap import METRIC as JUDGED
from llpbench.results.metric_style import TEST_ROWS, MetricStyle
from llpbench.results.shared import Roles, may_compare
from llpbench.results.table import Group, value_of

ALL = "all"
_DIGITS = 4
_TIE = 1e-9  # sums in another order must not round to another last digit


@dataclass(frozen=True)
class Place:
    """A cell's place: its key, block and bag size."""

    key: Key
    block: str
    bag: int


@dataclass(frozen=True)
class Cells:
    """All published cells of a board by method, with what is known of each method.

    Attributes:
        results: by method, then by place; bounds are apart.
        bounds: the bounds that come with llpbench: by dataset as it is shown and bag size, then by bound, its results
            by seed.
        defaults: the methods that are ranked: those at their defaults, and those that nobody ran so.
        variant_of: for every other method (a variant) the one whose settings it changes.
        controls: the controls that come with llpbench. No control is ranked; these are where scores begin. A method of
            somebody else that calls itself a control or a bound is out of the ranks, and moves nobody's score.
        planned: how many cells of a method in a block there are, run or not.
        guests: the methods of other packages, which have no vote on the cells that are ranked.
    """

    results: dict[str, dict[Place, CellResult]]
    bounds: dict[tuple[str, int], dict[str, dict[int, CellResult]]]
    defaults: tuple[str, ...]
    variant_of: dict[str, str]
    controls: tuple[str, ...]
    planned: Counter[tuple[str, str]]
    guests: frozenset[str]

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The blocks that have cells, in their order."""
        there = {place.block for row in self.results.values() for place in row}
        return tuple(block for block in BLOCKS if block in there)


def cells_of(datasets: Iterable[DatasetGroups], facts: Facts) -> Cells:
    """The cells of all datasets."""
    results: dict[str, dict[Place, CellResult]] = {}
    bases: dict[str, str] = {}
    bounds: dict[tuple[str, int], dict[str, dict[int, CellResult]]] = {}
    planned: Counter[tuple[str, str]] = Counter()
    for dataset in datasets:
        for bag in dataset.bags:
            bounds[dataset.sample.setting.dataset, bag] = {
                method: {r.cell.seed: r for r in group.fine}
                for method, group in dataset.bounds_at(bag).items()
                if facts.methods.get(group.base_method, MethodFacts()).comes_along
            }
        for method, groups in dataset.methods.items():
            for group in groups.values():
                bases[method] = group.base_method
                block = _block(group, facts)
                planned[method, block] += len(group.plans)
                for result in group.found:
                    results.setdefault(method, {})[_place(group, result, block)] = result
    variant_of = {m: base for m, base in bases.items() if m != base and base in bases}
    known = {m: facts.methods.get(base, MethodFacts()) for m, base in bases.items()}
    ranked = [m for m in sorted(bases) if m not in variant_of]
    return Cells(
        results,
        bounds,
        tuple(m for m in ranked if not known[m].control),
        variant_of,
        tuple(m for m in ranked if known[m].control and known[m].comes_along),
        planned,
        frozenset(m for m in ranked if not known[m].comes_along),
    )


def _block(group: Group, facts: Facts) -> str:
    about = facts.datasets.get(group.setting.base_dataset)
    return block_of(group.setting.scheme, group.setting.noise_name, about is not None and about.images)


def _place(group: Group, result: CellResult, block: str) -> Place:
    setting = group.setting
    column = (setting.dataset, setting.noise_name, setting.bag_size)
    return Place(Key(setting.base_dataset, column, result.cell.seed), block, setting.bag_size)


def standings_of(cells: Cells, styles: Sequence[MetricStyle], rules: Sequence[str]) -> list[Overall]:
    """Standings by every metric under every rule, over all cells and (where there are several blocks) over each."""
    blocks = (ALL, *cells.blocks) if len(cells.blocks) > 1 else (ALL,)
    found = (_standing(cells, style, rule, block) for style in styles for rule in rules for block in blocks)
    return [standing for standing in found if standing is not None]


def numbers_of(cells: Cells, style: MetricStyle, rule: str, block: str) -> dict[str, dict[Key, float | None]]:
    """What every method has in the cells of a block, high is good; None for a failure."""
    return {m: _numbers(row, style, rule, block) for m, row in cells.results.items()}


def grid_of(cells: Cells, numbers: Mapping[str, Mapping[Key, float | None]]) -> Grid:
    """The methods that are ranked by these numbers, in the cells they are ranked on."""
    return overall.ranked_grid(_at_defaults(cells, numbers), Roles(guests=cells.guests))


def _at_defaults(
    cells: Cells, numbers: Mapping[str, Mapping[Key, float | None]]
) -> dict[str, Mapping[Key, float | None]]:
    """The numbers of those who can be ranked: methods at their defaults that have any."""
    return {m: numbers[m] for m in cells.defaults if numbers.get(m)}


def _standing(cells: Cells, style: MetricStyle, rule: str, block: str) -> Overall | None:
    numbers = numbers_of(cells, style, rule, block)
    grid = grid_of(cells, numbers)
    table = _at_defaults(cells, numbers)
    if not grid.keys:
        return None
    bags = {place.key: place.bag for row in cells.results.values() for place in row}
    ranks = grid.ranks
    mean: list[float] = (overall.even_weights(grid.keys) @ ranks).tolist()
    low, high = overall.percentile_interval(overall.resampled_weights(grid.keys) @ ranks)
    order = sorted(range(len(grid.methods)), key=lambda m: (_rounded(mean[m]), grid.methods[m]))
    means = overall.column_means(grid)
    main = style.name == JUDGED
    p = overall.pairwise_p(means) if main else None
    sizes = sorted({bags[key] for key in grid.keys})
    by_bag = [_mean_ranks(grid, [key for key in grid.keys if bags[key] == size]) for size in sizes]
    scale = _scale(cells, numbers, grid, style, rule)
    machine, seconds = _seconds(cells, grid)
    ran = {m: {key: table[m][key] for key in grid.keys} for m in grid.methods}
    shares = {m: {o: overall.win_share(ran[m], ran[o])[0] for o in grid.methods} for m in grid.methods}
    rows = [
        OverallRow(
            method=(name := grid.methods[m]),
            rank=_rounded(mean[m]),
            low=_round(low[m]),
            high=_round(high[m]),
            tied=None if p is None or m == order[0] else bool(p[order[0], m] > LEVEL),
            p=None if p is None or m == order[0] else _round(p[order[0], m]),
            wins=_round(_mean([share for other, share in shares[name].items() if other != name])),
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
        datasets=len({key.dataset for key in grid.keys}),
        columns=len(means),
        cells=len(grid.keys),
        seeds=sorted({key.seed for key in grid.keys}),
        column_seeds=_fewest_most(Counter((key.dataset, key.column) for key in grid.keys).values()),
        rows=rows,
        bags=sizes,
        bag_datasets=[len({key.dataset for key in grid.keys if bags[key] == size}) for size in sizes],
        bars=[] if p is None else overall.cliques(order, p <= LEVEL),
        shares=[[_percent(shares[a.method][b.method]) for b in rows] for a in rows] if main else [],
        variants=_variants(cells, numbers, scale),
        unranked={m: sum(key not in table[m] for key in grid.keys) for m in table if m not in grid.methods},
        machine=machine,
    )


def _numbers(row: Mapping[Place, CellResult], style: MetricStyle, rule: str, block: str) -> dict[Key, float | None]:
    """What is compared of a method in a block, high is good; None for a failure, no cell where it is undefined."""
    sign = 1.0 if style.higher_is_better else -1.0
    found: dict[Key, float | None] = {}
    for place, result in row.items():
        if block not in (ALL, place.block) or not may_compare(result.cell.preset, rule):
            continue
        value = value_of(result, style.name, rule)
        if value is not None:
            found[place.key] = sign * value
        elif result.status != "ok":
            found[place.key] = None
    return found


def _mean_ranks(grid: Grid, keys: Sequence[Key]) -> Sequence[float]:
    part = grid.only(set(keys))
    return list(overall.even_weights(part.keys) @ part.ranks)


Scale = dict[tuple[str, object], tuple[list[Key], float, float]]


def _scale(
    cells: Cells,
    numbers: Mapping[str, Mapping[Key, float | None]],
    grid: Grid,
    style: MetricStyle,
    rule: str,
) -> Scale:
    """For each column its cells, the best control's mean over them and the bound's; only columns that have both."""
    scale: Scale = {}
    if style.measured_on != TEST_ROWS:
        return scale
    sign = 1.0 if style.higher_is_better else -1.0
    columns: dict[tuple[str, object], list[Key]] = {}
    for key in grid.keys:
        columns.setdefault((key.dataset, key.column), []).append(key)
    for (dataset, column), keys in columns.items():
        place = (column[0], column[2]) if isinstance(column, tuple) else ("", 0)
        bounds = [
            {s: sign * v for s, r in by_seed.items() if (v := value_of(r, style.name, rule)) is not None}
            for by_seed in cells.bounds.get(place, {}).values()
        ]
        controls = [numbers[m] for m in cells.controls if m in numbers]
        bound = [m for of in bounds if (m := _mean([of.get(key.seed) for key in keys])) is not None]
        control = [m for of in controls if (m := _mean([of.get(key) for key in keys])) is not None]
        if bound and control and max(bound) > max(control):
            scale[dataset, column] = (keys, max(control), max(bound))
    return scale


def _scaled(scale: Scale, values: Mapping[Key, float | None]) -> float | None:
    """The mean of a method between control and bound over the columns in which it has all cells."""
    found = {}
    for name, (keys, control, bound) in scale.items():
        mean = _mean([values.get(key) for key in keys])
        value = None if mean is None else overall.between(mean, control, bound)
        if value is not None:
            found[name] = value
    return _round(overall.even_mean(found))


def _seconds(cells: Cells, grid: Grid) -> tuple[str, dict[str, float]]:
    """The machine that made most of the ranked cells, and the median seconds of a fit there by method."""
    usual = set(grid.keys)
    timed = [
        (m, result) for m in grid.methods for place, result in cells.results[m].items()
        if place.key in usual and result.status == "ok"
    ]  # fmt: skip
    machines = Counter(result.machine for _, result in timed)
    machine = min(machines, key=lambda name: (-machines[name], name), default="")
    by_method: dict[str, list[float]] = {}
    for method, result in timed:
        if result.machine == machine:
            by_method.setdefault(method, []).append(result.fit_seconds)
    return machine, {m: _rounded(statistics.median(found)) for m, found in by_method.items()}


def _variants(cells: Cells, numbers: Mapping[str, Mapping[Key, float | None]], scale: Scale) -> list[Variant]:
    found = []
    for method, of in sorted(cells.variant_of.items()):
        wins, shared = overall.win_share(numbers[method], numbers.get(of, {}))
        if numbers[method]:
            scaled = _scaled(scale, numbers[method])
            found.append(Variant(method=method, of=of, cells=shared, wins=_round(wins), scaled=scaled))
    return found


def coverage_of(cells: Cells) -> list[BlockCoverage]:
    """One line for each block: how many cells of methods at their defaults have a number, and why others lack it."""
    lines = []
    for block in cells.blocks:
        rows = {m: {p: r for p, r in cells.results[m].items() if p.block == block} for m in cells.defaults}
        rows = {m: row for m, row in rows.items() if row}
        fates = Counter(r.status for row in rows.values() for r in row.values())
        columns = Counter(column for row in rows.values() for column in {place.key.column for place in row})
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
    """The mean of numbers that are all there; else None."""
    known = [value for value in values if value is not None]
    return round(statistics.fmean(known), 10) if known and len(known) == len(values) else None


def _fewest_most(numbers: Collection[int]) -> tuple[int, int]:
    return min(numbers), max(numbers)


def _plural(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100.0 * share + _TIE, 1)


def _round(value: float | None) -> float | None:
    return None if value is None else _rounded(value)


def _rounded(value: float) -> float:
    return round(float(value) + _TIE, _DIGITS)
