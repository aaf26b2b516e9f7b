"""What stands around the numbers of a page: how to cite them, addresses, the first steps, and what words mean."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, metadata

from llpbench.board.built.citation import bibtex
from llpbench.board.built.commands import typed_seeds
from llpbench.board.schema.overall import About
from llpbench.contracts.cell import USUAL, Cell
from llpbench.contracts.result import CellResult
from llpbench.results.shared import shared_keys

FILES = {
    "results.csv": "means over seeds, every metric and rule",
    "seeds.csv": "every seed",
    "board.json": "everything on this page, for programs",
}
"""Downloads next to the page of a site."""

GUIDES = {
    "../docs/submitting.md": "guide on submitting",
    "../docs/suites.md": "suites",
    "../docs/protocol.md": "protocol",
    "../docs/findings.md": "findings",
}
"""Pages of the documentation as a published page leads to them; the site has them at other addresses."""

WORDS = {
    "bag": "a group of rows of which only the count of each label is known, never which row has which label",
    "count": "how many rows of a bag have a label; with privacy noise the published count is off by chance",
    "cell": "one fit: a method on one dataset with one way of forming bags, one noise level and one seed",
    "column": "a dataset with one bag size and one noise level: where methods are compared, seed by seed",
    "seed": "a number that fixes the split, the bags and the start of a fit, the same for all methods",
    "rule": "how the best moment of a fit is chosen: on held-back bags (bags) or, which needs labels, rows (instances)",
    "mean rank": "the mean of a method's places (1 is best) over cells, where seeds, columns and datasets count alike",
    "tied": "not separated: the test over columns, or over the seeds of a column, does not tell two methods apart",
    "bound": "a model trained on the true label of every row: about the best that bags could give",
    "control": "a yardstick that methods should be above: one column, labels drawn by the counts, counts of other bags",
    "ε": "epsilon, how much privacy noise on counts protects: the smaller, the more noise",
    "block": "a part of the suite: random bags, natural bags, privacy (noise on counts), images",
}
"""One sentence for each word of the page."""


def about(results: Collection[CellResult], files: Mapping[str, str]) -> About:
    """Citation, links, first steps and glossary; ``files`` are the files next to the page, with what each one is."""
    newest = max(results, key=lambda r: (r.started, r.id), default=None)
    version = "" if newest is None else newest.versions.get("llpbench", "")
    day = "" if newest is None else newest.started[:10]
    return About(
        version=version,
        citation=bibtex(version, f"Leaderboard, newest result of {day}") if day else "",
        links=addresses(),
        files=dict(files),
        steps=steps(results),
        words=WORDS,
    )


def steps(results: Collection[CellResult]) -> tuple[tuple[str, str], ...]:
    """Your method in three commands; where a suite is published, the page names that in the second."""
    return (
        (
            "write it (the package that this makes runs as it is)",
            "llpbench new method mine && pip install ./llpbench-mine",
        ),
        (
            "run it on the cells of the others; it is ranked in a block when it has all cells of that block",
            run_command(results),
        ),
        (
            f"see it beside the published rows; to publish it, see the {GUIDES['../docs/submitting.md']}",
            "llpbench report results/mine --with leaderboard",
        ),
    )


def run_command(results: Collection[CellResult]) -> str:
    """The command that runs a method on the bags and seeds that most methods have.

    It is of random bags without noise, and of those datasets with the same bag sizes and seeds that have most cells.
    """
    found: dict[str, dict[str, set[tuple[int, int]]]] = {}
    for result in results:
        cell = result.cell
        if not result.oracle and _with_usual_bags(cell):
            of = found.setdefault(result.dataset_name, {})
            of.setdefault(cell.method, set()).add((cell.bag_size, cell.seed))
    alike: dict[frozenset[tuple[int, int]], list[str]] = {}
    for dataset, of in sorted(found.items()):
        usual = shared_keys(of).keys
        if usual:
            alike.setdefault(usual, []).append(dataset)
    words = ["llpbench", "run", "-m", "mine"]
    if alike:
        places, datasets = max(alike.items(), key=lambda item: len(item[0]) * len(item[1]))
        bags, seeds = (sorted(set(column)) for column in zip(*places, strict=True))
        words += ["-d", ",".join(datasets), "-b", ",".join(map(str, bags)), "-s", typed_seeds(seeds)]
    return shlex.join([*words, "-o", "results/mine"])


def _with_usual_bags(cell: Cell) -> bool:
    """Whether nothing is unusual about how the bags of a cell are formed, so that a command need not say it."""
    conditions = ("scheme", "scheme_options", "noise", "feature_noise", "split")
    return all(getattr(cell, name) == getattr(USUAL, name) for name in conditions)


def addresses() -> dict[str, str]:
    """The public addresses of the package by name, as ``project.urls`` states them; none where it is not installed."""
    try:
        stated = metadata("llpbench").get_all("Project-URL") or []
    except PackageNotFoundError:
        return {}
    pairs = (str(line).partition(",") for line in stated)
    return {name.strip(): address.strip() for name, _, address in pairs}
