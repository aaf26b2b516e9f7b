"""The tables of a page that come from the published leaderboard, so that no number of a page is older than the board.

A comment that no reader sees stands above such a table and says what its columns are:

    <!-- board: adult @ 8,32 / bags | marketing @ 512 / bags,instances / medium,high -->

Datasets, bag sizes, selection rules and noise levels (``none`` if not said); every combination is a column. Texts of
the first line and of the first column are the author's: a line is about the method that its label names. Numbers are
AUROC in percent, mean (standard deviation) over the seeds that all lines of the column have; no deviation where that is
one seed. The best line is bold, but no control and no bound; none is where the comment says ``part of board:``, for a
table of some methods. A bound stands once, in the first column of its dataset and rule; where whole bags are split,
which decides what it is tested on, in the first column of each bag size. Lines that name no published method are left
as they are.

Columns may rest on different seeds: compare numbers down a column. For the price of noise, which is read along a line,
take the noise tables of ``leaderboards/tables``, which have the same seeds along it.

A dataset with a ``*`` stands for the mean over all datasets of that name that all lines have numbers on, each averaged
over the seeds that its lines share.

    python docs/board_tables.py docs/findings.md     # write the numbers of today's board into the page
"""

from __future__ import annotations

import csv
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from llpbench.contracts.cell import BOUND_BAGS

SEEDS = Path(__file__).parents[1] / "leaderboards" / "seeds.csv"
_MARKED = re.compile(
    r"^(?P<mark><!-- (?P<part>part of )?board: (?P<columns>.*?) -->\n)(?P<table>(?:\|.*\n)+)", flags=re.MULTILINE
)
_METHOD = re.compile(r"`([^`]+)`")
_BOUND, _CONTROL = "bound ", "control "
_OF_BAGS = "split=bags"  # in the name of a dataset: whole bags are split


class Column(NamedTuple):
    """A setting of the board, read under one selection rule."""

    dataset: str
    bag_size: str
    rule: str
    noise: str


Seeds = Mapping[int, float]
"""AUROC in percent of each seed."""
Scores = Mapping[Column, Mapping[str, Seeds]]
"""The numbers of every method in every column."""


def read_scores(path: Path = SEEDS) -> Scores:
    """All numbers of the board, as ``leaderboards/seeds.csv`` has them."""
    found: dict[Column, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with path.open(newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            if line["auroc"]:
                column = Column(line["dataset"], line["bag_size"], line["rule"], line["noise"])
                found[column][line["method"]][int(line["seed"])] = 100 * float(line["auroc"])
    return {column: dict(of_method) for column, of_method in found.items()}


def filled(page: str, scores: Scores) -> str:
    """The page with the numbers of the board in every table that a comment marks.

    Raises:
        ValueError: a comment names what the board does not have, or other columns than the table has.
    """

    def fill(match: re.Match[str]) -> str:
        columns = list(_columns(match["columns"]))
        return match["mark"] + _filled_table(match["table"], columns, scores, mark_best=not match["part"])

    return _MARKED.sub(fill, page)


def _columns(text: str) -> Iterator[Column]:
    for part in text.split(" | "):
        dataset, _, rest = part.partition(" @ ")
        bags, rules, noises = [*(axis.split(",") for axis in rest.split(" / ")), ["none"]][:3]
        yield from (Column(dataset, bag, rule, noise) for bag, rule, noise in product(bags, rules, noises))


def _filled_table(table: str, columns: Sequence[Column], scores: Scores, *, mark_best: bool) -> str:
    head, line, *body = table.splitlines()
    if head.count("|") - 2 != len(columns):
        raise ValueError(f"{head.count('|') - 2} columns stand below a comment that names {len(columns)}")
    labels = [row.split("|")[1].strip() for row in body]
    seen: set[tuple[str, Column]] = set()
    texts = []
    for column in columns:
        bound = (column.dataset, _of_bound(column))
        texts.append(_column_texts(labels, column, scores, with_bound=bound not in seen, mark_best=mark_best))
        seen.add(bound)
    rows = [
        f"| {' | '.join((label, *cells))} |".replace("|  ", "| ") if any(cells) else row
        for row, label, *cells in zip(body, labels, *texts, strict=True)
    ]
    return "\n".join([head, line, *rows, ""])


def _column_texts(
    labels: Sequence[str], column: Column, scores: Scores, *, with_bound: bool, mark_best: bool
) -> list[str]:
    """The text of each line: of the mean over datasets, where the column stands for several."""
    name = re.compile(re.escape(column.dataset).replace(r"\*", ".*"))
    places = [at for at in scores if at[1:] == column[1:] and name.fullmatch(at.dataset)]
    found = [_lines(labels, at, scores, with_bound=with_bound) for at in places]
    most = max(map(len, found), default=0)
    if not most:
        raise ValueError(f"the leaderboard has no {column}")
    whole = [_on_shared_seeds(lines) for lines in found if len(lines) == most]
    means = {label: statistics.fmean(statistics.fmean(lines[label]) for lines in whole) for label in whole[0]}
    best = max(
        (label for label in means if not label.startswith((_BOUND, _CONTROL))), key=means.__getitem__, default=""
    )
    texts = []
    for label in labels:
        shown = f"{means[label]:.1f}" if label in means else ""
        text = f"**{shown}**" if mark_best and shown and label == best else shown
        if shown and "*" not in column.dataset and len(whole[0][label]) > 1:
            text += f" ({statistics.stdev(whole[0][label]):.1f})".replace("(0.", "(.")
        texts.append(text)
    return texts


def _lines(labels: Sequence[str], at: Column, scores: Scores, *, with_bound: bool) -> dict[str, Seeds]:
    """What the board has at one place of the methods that labels name."""
    found: dict[str, Seeds] = {}
    for label in labels:
        place = _of_bound(at) if label.startswith(_BOUND) else at
        method = _METHOD.search(label)
        seeds = scores.get(place, {}).get(method[1], {}) if method else {}
        if seeds and (with_bound or place == at):
            found[label] = seeds
    return found


def _of_bound(at: Column) -> Column:
    """Where the board has the bounds of a place, which know no noise on counts and no folds.

    Their rows are those of the dataset, whatever bags are made of them, and of these bags where whole bags are split.
    """
    data, *conditions = at.dataset.split(", ")
    own = [text for text in conditions if not re.fullmatch(r"\d+ folds", text)]
    if _OF_BAGS in own:
        return at._replace(dataset=", ".join([data, *own]), noise="none")
    own = [text for text in own if text.startswith("feature noise ")]
    return at._replace(dataset=", ".join([data, *own]), bag_size=str(BOUND_BAGS), noise="none")


def _on_shared_seeds(lines: Mapping[str, Seeds]) -> dict[str, list[float]]:
    """The numbers of every line on the seeds that all of them have."""
    shared = sorted(set.intersection(*(set(seeds) for seeds in lines.values())))
    return {label: [seeds[seed] for seed in shared] for label, seeds in lines.items()}


def main(pages: Sequence[str]) -> None:
    """Write the numbers of the board into these pages."""
    scores = read_scores()
    for page in map(Path, pages):
        page.write_text(filled(page.read_text(encoding="utf-8"), scores), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
