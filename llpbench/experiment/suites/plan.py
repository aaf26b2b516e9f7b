"""From a suite to cells: the cells of an ordinary run, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from llpbench.contracts.cell import OWN_SIZES
from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import listed_seeds, parse_seeds
from llpbench.experiment.suites.file import Block, Suite, base_name
from llpbench.experiment.suites.frozen import check_suite, with_frozen
from llpbench.plugins.registry import Registry


@dataclass(frozen=True)
class Limits:
    """The selected cells of a suite; an empty axis selects all.

    Attributes:
        methods: a method outside the suite is run wherever all methods of the suite are; one of the suite may have its
            own options.
        datasets: with options, or without for every form; ``schemes`` likewise.
        noise: names of levels.
    """

    part: str = ""
    methods: Sequence[str] = ()
    datasets: Sequence[str] = ()
    schemes: Sequence[str] = ()
    bags: Sequence[int] = ()
    noise: Sequence[str] = ()
    seeds: Sequence[int] = ()


@dataclass(frozen=True)
class PlannedBlock:
    """A block with its selected seeds and cells; ``title`` is that of its part."""

    part: str
    title: str
    block: Block
    seeds: list[int]
    cells: list[Planned]


def plan_suite(suite: Suite, registry: Registry, limits: Limits | None = None) -> list[PlannedBlock]:
    """The cells of a suite by block, with the frozen values; blocks without a selected cell are omitted.

    Raises:
        UsageError: the suite does not have what is selected, or its cells cannot be made here.
    """
    limits = limits or Limits()
    check_suite(suite, registry)
    blocks = suite.blocks(limits.part)
    _check_selection(suite, blocks, limits, registry)
    planned = []
    for part, block in blocks:
        spec = _spec(suite, block, limits, registry)
        if spec is None:
            continue
        cells = plan_cells(spec, registry)
        if not block.bags and any(p.cell.bag_size != OWN_SIZES and not p.oracle for p in cells):
            raise UsageError(f"suite {suite.name}, part {part}: a block without bags has schemes that need a size.")
        planned.append(PlannedBlock(part, suite.parts[part].title, block, spec.seed_list, cells))
    if not planned:
        where = f"{suite.name}/{limits.part}" if limits.part else suite.name
        raise UsageError(f"suite {where} has no cells that match all options; see llpbench show {suite.name}.")
    return planned


def all_cells(blocks: Iterable[PlannedBlock]) -> list[Planned]:
    """The cells of blocks without duplicates, in order."""
    return list({plan.cell.id: plan for block in blocks for plan in block.cells}.values())


def _spec(suite: Suite, block: Block, limits: Limits, registry: Registry) -> RunSettings | None:
    """The block as the request of an ordinary run; None if nothing of it is selected."""
    methods = _methods(suite, block, limits.methods)
    datasets = [text for text in block.datasets if _is_asked(text, limits.datasets)]
    schemes = [text for text in block.schemes if _is_asked(text, limits.schemes)]
    bags = [size for size in block.bags if not limits.bags or size in limits.bags]
    noise = [level for level in block.noise if not limits.noise or level in limits.noise]
    seeds = [seed for seed in seed_list(block) if not limits.seeds or seed in limits.seeds]
    unwanted = (limits.schemes and not schemes) or (limits.noise and not noise) or (limits.bags and not bags)
    if not (methods and datasets and seeds) or unwanted:
        return None
    frozen = suite.frozen
    return RunSettings(
        methods=[with_frozen(registry.methods, text, frozen.methods) for text in methods],
        datasets=[with_frozen(registry.datasets, text, frozen.datasets) for text in datasets],
        schemes=[with_frozen(registry.schemes, text, frozen.schemes) for text in schemes],
        bags=bags or [1],  # ignored: the schemes size their bags themselves
        seeds=seeds,
        noise=noise,
        delta=block.delta,
        mechanism=block.mechanism,
        split=block.split,
        backend=suite.backend,
    )


def _methods(suite: Suite, block: Block, asked: Sequence[str]) -> list[str]:
    here = block.methods or suite.methods
    if not asked:
        return list(here)
    of_suite = {base_name(text) for text in suite.methods}
    found: dict[str, None] = {}
    for text in asked:
        name = base_name(text)
        same = [known for known in here if base_name(known) == name]
        if text == name and same:
            found |= dict.fromkeys(same)
        elif same or (name not in of_suite and not block.methods):
            found[text] = None
    return list(found)


def _is_asked(text: str, asked: Sequence[str]) -> bool:
    return not asked or text in asked or base_name(text) in asked


def seed_list(block: Block) -> list[int]:
    """The seeds of a block."""
    return listed_seeds(parse_seeds(block.seeds))


def _elsewhere(suite: Suite, text: str) -> str:
    """A hint that names the parts of a suite with a dataset, scheme or noise level; empty if there are none."""
    parts = [
        part
        for part, block in suite.blocks()
        if text in {form for t in (*block.datasets, *block.schemes, *block.noise) for form in (t, base_name(t))}
    ]
    return f" It is in part {' and '.join(dict.fromkeys(parts))}." if parts else ""


def _check_selection(suite: Suite, blocks: Sequence[tuple[str, Block]], limits: Limits, registry: Registry) -> None:
    where = f"{suite.name}/{limits.part}" if limits.part else suite.name
    for text in limits.methods:
        registry.methods[base_name(text)]  # raises an error if it is not registered
    for axis, wanted, of_blocks in (
        ("dataset", limits.datasets, [block.datasets for _, block in blocks]),
        ("bag scheme", limits.schemes, [block.schemes for _, block in blocks]),
        ("noise level", limits.noise, [block.noise for _, block in blocks]),
    ):
        known = {form for texts in of_blocks for text in texts for form in (text, base_name(text))}
        for text in wanted:
            if text not in known:
                raise UnknownNameError(f"{axis} of suite {where}:", text, known, _elsewhere(suite, text))
    for axis, asked, has in (
        ("seeds", limits.seeds, {seed for _, block in blocks for seed in seed_list(block)}),
        ("bags", limits.bags, {size for _, block in blocks for size in block.bags}),
    ):
        outside = sorted(set(asked) - has)
        if outside:
            raise UsageError(
                f"--{axis} {', '.join(map(str, outside))}: suite {where} has {axis} "
                f"{', '.join(map(str, sorted(has))) or 'of its schemes'}; --{axis} can only select some of them."
            )
