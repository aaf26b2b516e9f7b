"""How many cells of a suite have results, for each part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from llpbench.contracts.errors import LLPBenchError
from llpbench.contracts.result import FAILURES, PROTOCOL, CellResult
from llpbench.experiment.suites.file import Suite
from llpbench.experiment.suites.plan import Limits, PlannedBlock, all_cells, plan_suite
from llpbench.plugins.registry import Registry

_FEW = 3
"""The most methods that a line names if only theirs are missing."""


@dataclass(frozen=True)
class Coverage:
    """The results of a part of a suite.

    Attributes:
        part: its name; ``title`` is its display name.
        planned: the number of its cells; ``done`` are those with a result, even one without a number.
        failed: those among them that failed (timeout, memory, an error).
        datasets: the number of cells without a result by dataset; ``methods`` the same by method.
        rivals: the number of methods of the part.
    """

    part: str
    title: str
    planned: int
    done: int
    failed: int
    datasets: Mapping[str, int]
    methods: Mapping[str, int]
    rivals: int

    @property
    def line(self) -> str:
        """One line: ``images: 324 of 540 cells; missing cifar-s (180), cifar10 (36)``."""
        failed = f", {self.failed:,} of them failed" if self.failed else ""
        if self.done == self.planned:
            return f"{self.part}: all {self.planned:,} cells{failed}"
        missing = ", ".join(f"{name} ({n:,})" for name, n in self.datasets.items())
        few = f", only of {', '.join(self.methods)}" if len(self.methods) <= min(_FEW, self.rivals / 2) else ""
        return f"{self.part}: {self.done:,} of {self.planned:,} cells{failed}; missing {missing}{few}"


def suite_coverage(suite: Suite, registry: Registry, results: Iterable[CellResult], part: str = "") -> list[Coverage]:
    """The coverage of a suite, or of one part of it, for each part.

    Raises:
        UsageError: its cells cannot be made with what is installed.
    """
    return coverage(plan_suite(suite, registry, Limits(part=part)), results)


def own_coverage(suite: Suite, registry: Registry, results: Iterable[CellResult], part: str = "") -> list[Coverage]:
    """The coverage of methods that are not part of the suite, or have other settings, each separately.

    Parts in which a method has no cell are omitted, and so are tuned methods and those that are not installed.
    """
    results = list(results)
    of_suite = {plan.cell.id for plan in all_cells(plan_suite(suite, registry, Limits(part=part)))}
    found = []
    for method in dict.fromkeys(result.method_name for result in results if result.id not in of_suite):
        try:
            blocks = plan_suite(suite, registry, Limits(part=part, methods=[method]))
        except LLPBenchError:
            continue
        if of_suite.issuperset(plan.cell.id for plan in all_cells(blocks)):
            continue  # a method as the suite has it, with further cells
        found += [replace(of, part=f"{of.part}, {method}") for of in coverage(blocks, results) if of.done]
    return found


def coverage(blocks: Iterable[PlannedBlock], results: Iterable[CellResult]) -> list[Coverage]:
    """The coverage of the blocks of a suite, for each part; results of another protocol do not count."""
    parts: dict[str, list[PlannedBlock]] = {}
    for block in blocks:
        parts.setdefault(block.part, []).append(block)
    there = {result.id: result.status for result in results if result.protocol == PROTOCOL}
    found = []
    for part, of_part in parts.items():
        cells = all_cells(of_part)
        missing = [plan.cell for plan in cells if plan.cell.id not in there]
        found.append(
            Coverage(
                part=part,
                title=of_part[0].title,
                planned=len(cells),
                done=len(cells) - len(missing),
                failed=sum(there.get(plan.cell.id) in FAILURES for plan in cells),
                datasets=dict(Counter(cell.dataset for cell in missing)),
                methods=dict(Counter(cell.method for cell in missing)),
                rivals=len({plan.cell.method for plan in cells}),
            )
        )
    return found
