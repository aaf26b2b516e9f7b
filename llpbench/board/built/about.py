"""Citation, links, first steps and glossary of a page."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from importlib.metadata import PackageNotFoundError, metadata

from llpbench.board.built.citation import bibtex
from llpbench.board.built.rows import typed_seeds
from llpbench.board.schema import About
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
"""Pages of the documentation by their address relative to the published page; the site uses other addresses."""

WORDS = {
    "bag": "a group of rows for which only the number of rows with each label is known",
    "count": "the number of rows of a bag with a label; privacy noise perturbs it",
    "cell": "one fit: a method on one dataset with one way of forming bags, one noise level and one seed",
    "column": "a dataset with one bag size and one noise level; methods are compared within a column, seed by seed",
    "seed": "a number that fixes the split, the bags and the initialisation of a fit, the same for all methods",
    "rule": "how the best report of a fit is selected: by held-out bags, or by labels of held-out rows (instances)",
    "source": "where rows come from; datasets that share rows or images have one source",
    "mean rank": "the mean of a method's ranks (1 is best) over cells; seeds, columns and sources have equal weight",
    "not separated": "the test over sources, or over the seeds of a column, finds no significant difference",
    "bound": "a model trained on the true label of every row: about the best that bags can achieve",
    "control": "a baseline that methods should beat: one column, labels drawn from the counts, counts of other bags",
    "ε": "epsilon, the privacy budget of the noise on counts; smaller values mean more noise",
    "block": "a part of the suite: unseen data, tables (several groupings), random or natural bags, privacy, images",
}
"""The glossary of the page."""


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
    """Three commands that add a method; if a suite is published, the page names it in the second."""
    return (
        (
            "write it (the generated package runs without changes)",
            "llpbench new method mine && pip install ./llpbench-mine",
        ),
        (
            "run it on the published cells; it is ranked in a block if it has all cells of that block",
            run_command(results),
        ),
        (
            f"compare it with the published rows; to publish it, see the {GUIDES['../docs/submitting.md']}",
            "llpbench versus results/mine",
        ),
    )


def run_command(results: Collection[CellResult]) -> str:
    """The command that runs a method on the bags and seeds that most methods have.

    It covers random bags without noise, on the datasets with the same bag sizes and seeds that have most cells.
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
    """Whether the bags of a cell are formed in the default way."""
    conditions = ("scheme", "scheme_options", "joined", "noise", "feature_noise", "split")
    return all(getattr(cell, name) == getattr(USUAL, name) for name in conditions)


def addresses() -> dict[str, str]:
    """The URLs of the package by name (``project.urls``); empty if it is not installed."""
    try:
        stated = metadata("llpbench").get_all("Project-URL") or []
    except PackageNotFoundError:
        return {}
    pairs = (str(line).partition(",") for line in stated)
    return {name.strip(): address.strip() for name, _, address in pairs}
