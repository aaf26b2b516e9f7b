"""Whether a submission redraws the field: what published cells are called, and who is ranked on which cells.

Ranks are over the cells that most methods have. So cells that are true can still move everybody: one more seed of eight
methods, or eight cells of a ninth dataset, and whoever lacks them is out of the ranks; many cells on another backend,
and that backend has the plain name. Such cells are welcome, and it is for reviewers to add them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from llpbench.board.built.grouped import BLOCKS, DatasetGroups, by_dataset
from llpbench.board.built.overview import ALL, cells_of, grid_of, numbers_of
from llpbench.board.built.plan import board_groups
from llpbench.board.content.facts import styles_of
from llpbench.board.content.folder import Content
from llpbench.board.maths.overall import Key
from llpbench.results.bootstrap import METRIC
from llpbench.results.shared import shared_keys
from llpbench.results.table import value_of

Column = tuple[str, str, int, str]  # dataset, noise level, bag size, rule


@dataclass(frozen=True)
class Field:
    """Who stands where on a board.

    Attributes:
        names: for each published cell the dataset and the method it is shown as.
        seeds: for each column the seeds that methods are compared on.
        ranked: for each rule and block the cells that methods are ranked on, and the methods.
    """

    names: dict[str, tuple[str, str]]
    seeds: dict[Column, frozenset[int]]
    ranked: dict[tuple[str, str], tuple[frozenset[Key], frozenset[str]]]


def field_of(content: Content) -> Field:
    """The field of a board."""
    results = [line.result for line in content.lines.values()]
    datasets = by_dataset(board_groups(results, content.facts.roles))
    rules = sorted({rule for result in results for rule in result.selected})
    cells = cells_of(datasets, content.facts)
    styles = styles_of(results, content.facts)
    ranked = {}
    for rule in rules if METRIC in styles else ():
        for block in (ALL, *BLOCKS):
            grid = grid_of(cells, numbers_of(cells, styles[METRIC], rule, block))
            ranked[rule, block] = (frozenset(grid.keys), frozenset(grid.methods))
    names = {r.id: (d.sample.setting.dataset, g.method) for d in datasets for g in d.groups for r in g.found}
    seeds = {column: found for d in datasets for rule in rules for column, found in _usual_seeds(d, rule)}
    return Field(names, seeds, ranked)


def _usual_seeds(dataset: DatasetGroups, rule: str) -> Iterator[tuple[Column, frozenset[int]]]:
    for noise, bag in dict.fromkeys(place for found in dataset.methods.values() for place in found):
        groups = {m: found[noise, bag] for m, found in dataset.methods.items() if (noise, bag) in found}
        seeds = {
            m: [r.cell.seed for r in group.fine if value_of(r, METRIC, rule) is not None]
            for m, group in groups.items()
            if group.compared_under(rule) and not group.predictions_only
        }
        usual = shared_keys(seeds, {m: group.base_method for m, group in groups.items()}, dataset.roles)
        yield (dataset.sample.setting.dataset, noise, bag, rule), usual.keys


def redrawn(content: Content, before: Content) -> list[str]:
    """What a submission changes of the field, one line for each kind of change."""
    then, now = field_of(before), field_of(content)
    return [*_renamed(then, now), *_other_seeds(then, now), *_other_ranks(then, now)]


def _renamed(then: Field, now: Field) -> Iterator[str]:
    other = sorted(cell for cell, name in then.names.items() if cell in now.names and now.names[cell] != name)
    if other:
        was, is_now = (" on ".join(reversed(names[other[0]])) for names in (then.names, now.names))
        yield f"cells would be shown under other names: {len(other)} (cell {other[0]}: {was}, now {is_now}); {_WHOSE}"


def _other_seeds(then: Field, now: Field) -> Iterator[str]:
    other = [column for column, seeds in then.seeds.items() if seeds and now.seeds.get(column) != seeds]
    if other:
        dataset, noise, bag, rule = min(other)
        where = f"{dataset}, bag {bag}, noise {noise}, rule {rule}"
        yield f"columns would be compared on other seeds: {len(other)} ({where}); {_WHOSE}"


def _other_ranks(then: Field, now: Field) -> Iterator[str]:
    other = [place for place, (cells, _) in then.ranked.items() if cells and now.ranked.get(place, _NOBODY)[0] != cells]
    if other:
        (cells, methods), (cells_now, methods_now) = then.ranked[other[0]], now.ranked.get(other[0], _NOBODY)
        out = ", ".join(sorted(methods - methods_now)) or "nobody"
        where = f"{' '.join(other[0])}: {len(cells_now - cells)} more, {len(cells - cells_now)} fewer, {out} left out"
        yield f"methods would be ranked on other cells in {len(other)} standings ({where}); {_WHOSE}"


_NOBODY: tuple[frozenset[Key], frozenset[str]] = (frozenset(), frozenset())
_WHOSE = "such cells are added by reviewers"
