"""The tables of a page that come from the published leaderboard, so that no number of a page is older than the board.

A comment that no reader sees stands above such a table and says what its columns are:

    <!-- board: adult @ 8,32 / bags | marketing @ 512 / bags,instances / medium,high -->

Datasets, bag sizes, selection rules, noise levels (``none`` if not said) and metrics (``auroc`` if not said; ``f1``;
``rank``, the mean rank by AUROC among the lines that are neither control nor bound); every combination is a column.
Texts of the first line and of the first column are the author's: a line is about the method that its label names.
Numbers are AUROC in percent, mean (standard deviation) over the seeds that all lines of the column have; no deviation
where that is one seed. The best line is bold, but no control and no bound; none is where the comment says ``part of
board:``, for a table of some methods. A bound stands once, in the first column of its dataset, rule and metric; where
whole bags are split, which decides what it is tested on, in the first column of each bag size. Lines that name no
published method are left as they are.

Columns may rest on different seeds: compare numbers down a column. For the price of noise, which is read along a line,
take the noise tables of ``leaderboards/tables``, which have the same seeds along it.

A dataset with a ``*`` stands for the mean over all datasets of that name that all lines have numbers on, each averaged
over the seeds that its lines share.

Mean ranks over everything and over blocks, with their intervals, are those of the page's first tab:

    <!-- ranks of board: all,random,natural / bags -->

The first is bold; ``≈`` stands beside those that are not separated from it, where there are enough sources for a test.
No interval stands beside the ranks of a single source.

    python docs/board_tables.py docs/findings.md     # write the numbers of today's board into the page
"""

from __future__ import annotations

import csv
import json
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from llpbench.board.built.build import built_files
from llpbench.board.content.folder import read_folder
from llpbench.board.maths.statistics import standings
from llpbench.contracts.cell import BOUND_BAGS

BOARD = Path(__file__).parents[1] / "leaderboards"
_MARKED = re.compile(
    r"^(?P<mark><!-- (?P<part>part of )?board: (?P<columns>.*?) -->\n)(?P<table>(?:\|.*\n)+)", flags=re.MULTILINE
)
_RANKED = re.compile(
    r"^(?P<mark><!-- ranks of board: (?P<blocks>\S+) / (?P<rule>\S+) -->\n)(?P<table>(?:\|.*\n)+)", flags=re.MULTILINE
)
_METHOD = re.compile(r"`([^`]+)`")
_BOUND, _CONTROL = "bound ", "control "
_OF_BAGS = "split=bags"  # in the name of a dataset: whole bags are split


class Column(NamedTuple):
    """A setting of the board, read under one selection rule by one metric."""

    dataset: str
    bag_size: str
    rule: str
    noise: str
    metric: str = "auroc"


Seeds = Mapping[int, float]
"""The number of each seed: AUROC in percent, F1 as a share."""
Scores = Mapping[Column, Mapping[str, Seeds]]
"""The numbers of every method in every column."""
Standing = Mapping[str, Any]
"""Mean ranks of a block by a metric and a rule, as in ``board.json``."""

_SCALES = {"auroc": 100.0, "f1": 1.0}
_RANK = "rank"
_UNSAID = (["none"], ["auroc"])  # noise levels and metrics, where a comment ends before them


def build_board(folder: Path = BOARD) -> tuple[Scores, list[Standing]]:
    """Build a leaderboard and return all its numbers and its standings over blocks."""
    files = built_files(read_folder(folder), downloads=True)
    return read_scores(files["seeds.csv"]), json.loads(files["board.json"])["overall"]


def read_scores(seeds_csv: bytes) -> Scores:
    """All numbers of a leaderboard's ``seeds.csv``."""
    found: dict[Column, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in csv.DictReader(seeds_csv.decode().splitlines()):
        for metric, scale in _SCALES.items():
            if line.get(metric):
                column = Column(line["dataset"], line["bag_size"], line["rule"], line["noise"], metric)
                found[column][line["method"]][int(line["seed"])] = scale * float(line[metric])
    return {column: dict(of_method) for column, of_method in found.items()}


def filled(page: str, scores: Scores, ranks: Sequence[Standing] = ()) -> str:
    """The page with the numbers of the board in every table that a comment marks.

    Raises:
        ValueError: a comment names what the board does not have, or other columns than the table has.
    """

    def fill(match: re.Match[str]) -> str:
        columns = list(_columns(match["columns"]))
        return match["mark"] + _filled_table(match["table"], columns, scores, mark_best=not match["part"])

    def fill_ranks(match: re.Match[str]) -> str:
        columns = [_rank_texts(ranks, block, match["rule"]) for block in match["blocks"].split(",")]
        return match["mark"] + _filled_ranks(match["table"], columns)

    return _RANKED.sub(fill_ranks, _MARKED.sub(fill, page))


def _rank_texts(ranks: Sequence[Standing], block: str, rule: str) -> dict[str, str]:
    """What stands in a column of mean ranks, by method."""
    for standing in ranks:
        if (standing["block"], standing["rule"], standing["metric"]) == (block, rule, "auroc"):
            first = standing["rows"][0]["method"]
            return {row["method"]: _rank_text(row, first=row["method"] == first) for row in standing["rows"]}
    raise ValueError(f"the leaderboard has no ranks of {block} by {rule}")


def _rank_text(row: Mapping[str, Any], *, first: bool) -> str:
    rank = f"**{row['rank']:.1f}**" if first else f"{row['rank']:.1f}"
    interval = f" ({row['low']:.1f} to {row['high']:.1f})" if "low" in row else ""
    return f"{rank}{interval}{' ≈' if row.get('separated') is False else ''}"


def _filled_ranks(table: str, columns: Sequence[Mapping[str, str]]) -> str:
    """A line for each method of the first column, in its order, below the author's head."""
    head, line, *_ = table.splitlines()
    _fits(head, len(columns))
    rows = [f"| `{method}` | {' | '.join(texts.get(method, '') for texts in columns)} |" for method in columns[0]]
    return "\n".join([head, line, *rows, ""])


def _fits(head: str, columns: int) -> None:
    if head.count("|") - 2 != columns:
        raise ValueError(f"{head.count('|') - 2} columns stand below a comment that names {columns}")


def _columns(text: str) -> Iterator[Column]:
    for part in text.split(" | "):
        dataset, _, rest = part.partition(" @ ")
        given = [axis.split(",") for axis in rest.split(" / ")]
        yield from (Column(dataset, *axes) for axes in product(*given, *_UNSAID[len(given) - 2 :]))


def _filled_table(table: str, columns: Sequence[Column], scores: Scores, *, mark_best: bool) -> str:
    head, line, *body = table.splitlines()
    _fits(head, len(columns))
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
    rivals = [label for label in labels if not label.startswith((_BOUND, _CONTROL))]
    ranked = column.metric == _RANK
    source = column._replace(metric="auroc") if ranked else column
    places = [at for at in scores if at[1:] == source[1:] and name.fullmatch(at.dataset)]
    found = [_lines(rivals if ranked else labels, at, scores, with_bound=with_bound) for at in places]
    most = max(map(len, found), default=0)
    if not most:
        raise ValueError(f"the leaderboard has no {column}")
    whole = [_on_shared_seeds(lines) for lines in found if len(lines) == most]
    if ranked:
        places_of = [standings({m: dict(enumerate(values)) for m, values in lines.items()}) for lines in whole]
        means = {label: statistics.fmean(at[label].mean_rank for at in places_of) for label in whole[0]}
    else:
        means = {label: statistics.fmean(statistics.fmean(lines[label]) for lines in whole) for label in whole[0]}
    order = sorted((label for label in rivals if label in means), key=means.__getitem__, reverse=not ranked)
    texts = []
    for label in labels:
        shown = _shown(means[label], column.metric) if label in means else ""
        text = f"**{shown}**" if mark_best and shown and label == order[0] else shown
        if shown and not ranked and "*" not in column.dataset and len(whole[0][label]) > 1:
            text += f" ({_shown(statistics.stdev(whole[0][label]), column.metric)})".replace("(0.", "(.")
        texts.append(text)
    return texts


def _shown(value: float, metric: str) -> str:
    """A share without its zero, everything else with one decimal."""
    return f"{value:.3f}".removeprefix("0") if metric == "f1" else f"{value:.1f}"


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
    scores, ranks = build_board()
    for page in map(Path, pages):
        page.write_text(filled(page.read_text(encoding="utf-8"), scores, ranks), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
