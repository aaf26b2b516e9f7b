"""What stands around the numbers of a page: how to cite them, addresses, the first steps, and what words mean."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, metadata

from llpbench.contracts.result import CellResult
from llpbench.leaderboard.citation import bibtex
from llpbench.leaderboard.schema_overall import About

FILES = {
    "results.csv": "means over seeds, every metric and rule",
    "seeds.csv": "every seed",
    "board.json": "everything on this page, for programs",
}
"""What lies beside a published page."""

STEPS = (
    ("write it (the package that this makes runs as it is)", "llpbench new method mine && pip install ./llpbench-mine"),
    (
        "run it on the datasets and seeds of the others",
        "llpbench run -m mine -d adult,marketing -s 0-2 -o results/mine",
    ),
    (
        "see it beside the published rows; to publish it, see the guide on submitting",
        "llpbench report results/mine --with leaderboard",
    ),
)
"""Your method in three commands."""

WORDS = {
    "bag": "a group of rows of which only the count of each label is known, never which row has which label",
    "count": "how many rows of a bag have a label; with privacy noise the published count is off by chance",
    "cell": "one fit: a method on one dataset with one way of forming bags, one noise level and one seed",
    "column": "a dataset with one bag size and one noise level: where methods are compared, seed by seed",
    "seed": "a number that fixes the split, the bags and the start of a fit, the same for all methods",
    "rule": "how the best moment of a fit is chosen: on held-back bags (bags) or, which needs labels, rows (instances)",
    "bound": "a model trained on the true label of every row: about the best that bags could give",
    "control": "a yardstick that learns next to nothing from counts; a method below it has learned nothing",
    "block": "a part of the suite: random bags, natural bags, privacy (noise on counts), images",
}
"""One sentence for each word of the page."""


def about(results: Collection[CellResult], files: bool) -> About:
    """What stands around these results; ``files`` says that the built files lie beside the page."""
    newest = max(results, key=lambda r: (r.started, r.id), default=None)
    version = "" if newest is None else newest.versions.get("llpbench", "")
    day = "" if newest is None else newest.started[:10]
    return About(
        version=version,
        citation=bibtex(version, f"Leaderboard, newest result of {day}") if day else "",
        links=addresses(),
        files=FILES if files else {},
        steps=STEPS,
        words=WORDS,
    )


def addresses() -> dict[str, str]:
    """The public addresses of the package by name, as ``project.urls`` states them; none where it is not installed."""
    try:
        stated = metadata("llpbench").get_all("Project-URL") or []
    except PackageNotFoundError:
        return {}
    pairs = (str(line).partition(",") for line in stated)
    return {name.strip(): address.strip() for name, _, address in pairs}
