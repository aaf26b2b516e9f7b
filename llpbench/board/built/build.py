"""Build the page, the Markdown tables and the downloads of a leaderboard: the same bytes for the same content."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from llpbench.board.built.about import FILES, GUIDES
from llpbench.board.built.board import make_board
from llpbench.board.built.groups import board_groups
from llpbench.board.content.facts import rules_of, styles_of
from llpbench.board.content.folder import Content, raw_files
from llpbench.board.content.lines import is_unreleased
from llpbench.board.maths.bootstrap import METRIC
from llpbench.board.schema import Board, encode_board
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import DEFAULT_RULE
from llpbench.report import tables
from llpbench.report.tables import Key, Table, TableEntry
from llpbench.results.metric_style import OWN_METRICS, MetricStyle
from llpbench.results.references import with_references
from llpbench.results.table import Group, Row, make_rows, value_of

BY_HAND = ("README.md",)
_RULES = (DEFAULT_RULE, "instances")  # of the Markdown tables
_COLUMNS = 6  # of a Markdown table that joins settings with one column each


def built_files(content: Content, *, downloads: bool = False) -> dict[str, bytes]:
    """Built files by path in the folder; they depend on the content alone.

    Args:
        content: what is published.
        downloads: also build the board as JSON, CSV files and LaTeX tables, and link to them on the page.
    """
    groups = board_groups((line.result for line in content.lines.values()), content.facts.roles)
    board = make_board(content, groups, files={**FILES, **GUIDES} if downloads else GUIDES)
    return page_files(content, groups, board) | (download_files(content, groups, board) if downloads else {})


def page_files(content: Content, groups: list[Group], board: Board) -> dict[str, bytes]:
    """The page and the Markdown tables."""
    from llpbench.board.page import render_page

    files = {"index.html": render_page(board).encode()}
    for dataset, found in _by_dataset(groups).items():
        files[f"tables/{dataset}.md"] = _markdown(dataset, found, content).encode()
    return files


def download_files(content: Content, groups: list[Group], board: Board) -> dict[str, bytes]:
    """The board as JSON, means and seeds as CSV, and LaTeX tables."""
    files = {
        "board.json": encode_board(board),
        "results.csv": (tables.rows_as_text(_all_rows(groups, content), "csv") + "\n").encode(),
        "seeds.csv": _seeds(groups, content).encode(),
    }
    for dataset, found in _by_dataset(groups).items():
        files[f"tables/{dataset}.tex"] = _latex(dataset, found, content).encode()
    return files


def _by_dataset(groups: list[Group]) -> dict[str, list[Group]]:
    names = sorted({group.setting.base_dataset for group in groups})
    return {name: [group for group in groups if group.setting.base_dataset == name] for name in names}


def site_files(content: Content) -> dict[str, bytes]:
    """All files of a static site: published and built ones, with downloads."""
    return {**raw_files(content), **built_files(content, downloads=True), ".nojekyll": b""}


def differences(root: Path, content: Content, built: dict[str, bytes] | None = None) -> list[str]:
    """Compare a folder with what its content gives: one sentence for each file that differs.

    ``built`` are the built files of the content, if they are known already.
    """
    wanted = {**raw_files(content), **(built_files(content) if built is None else built)}
    problems = []
    for name, data in sorted(wanted.items()):
        path = root / name
        if path.is_symlink() or not path.is_file():
            problems.append(f"{name}: missing")
        elif path.read_bytes() != data:
            problems.append(f"{name}: differs from what the published cells give")
    problems += [
        f"{name}: must be a plain file"
        for name in BY_HAND
        if (root / name).is_symlink() or ((root / name).exists() and not (root / name).is_file())
    ]
    return problems + _unexpected(root, wanted)


def _unexpected(root: Path, wanted: Iterable[str]) -> list[str]:
    """Files and folders that do not belong to a leaderboard, hidden ones included."""
    files = {*wanted, *BY_HAND, ".nojekyll"}  # a static host may ask for the last one
    folders = {parent.as_posix() for name in files for parent in Path(name).parents}
    problems = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if Path(name).parts[0] in (".git", "entries"):  # a board may be a repository; entries are submissions
            continue
        if path.is_dir() and not path.is_symlink():
            if name not in folders and not any(path.iterdir()):
                problems.append(f"{name}: unexpected empty folder; remove it")
        elif name not in files:
            problems.append(f"{name}: unexpected file; remove it")
    return problems


def _rows(groups: list[Group], content: Content, style: MetricStyle) -> list[Row]:
    """Rows of one metric, under every rule for which the dataset has numbers."""
    stated: dict[str, set[str]] = {}
    for group in groups:
        stated.setdefault(group.setting.base_dataset, set()).update(*(result.selected for result in group.found))
    rows = make_rows(groups, [style], rules_of((r for group in groups for r in group.found), content.facts))
    rows = [row for row in rows if row.rule in stated[row.base_dataset]]
    return with_references(rows, content.facts.references, style.scale)


def _all_rows(groups: list[Group], content: Content) -> list[Row]:
    """Every metric in the order of its name, then costs."""
    own = [style.name for style in OWN_METRICS]
    styles = styles_of((r for group in groups for r in group.found), content.facts).values()
    ordered = sorted(styles, key=lambda style: (style.name in own, style.name))
    rows = [row for style in ordered for row in _rows(groups, content, style)]
    return rows + make_rows(groups, [style for style in OWN_METRICS if style.cost], [""])  # a cost has no rule


def _seeds(groups: list[Group], content: Content) -> str:
    results = [result for group in groups for result in group.found]
    styles = list(styles_of(results, content.facts).values())
    return seeds_csv(groups, styles, list(rules_of(results, content.facts)))


def seeds_csv(groups: Iterable[Group], styles: Sequence[MetricStyle], rules: Sequence[str]) -> str:
    """The cells of groups with all digits, metrics as shares; a cell without a number has one line and no rule."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    facts = ("dataset", "method", "bag_size", "noise", "seed", "status", "rule")
    costs = ("fit_seconds", "peak_memory_mb", "machine", "id")
    writer.writerow([*facts, *(style.name for style in styles), *costs])
    for group in groups:
        setting = group.setting
        for result in sorted(group.found, key=lambda r: (r.cell.seed, r.id)):
            place = (setting.dataset, group.method, setting.bag_size, setting.noise_name, result.cell.seed)
            stated = [rule for rule in rules if rule in result.selected] if result.status == "ok" else [""]
            for rule in stated:
                numbers = [_text(value_of(result, style.name, rule)) for style in styles]
                writer.writerow([*place, result.status, rule, *numbers, *_costs(result)])
    return out.getvalue()


def _costs(result: CellResult) -> tuple[object, ...]:
    return (result.fit_seconds, result.peak_memory_mb, result.machine, result.id)


def _text(value: float | None) -> object:
    return "" if value is None else value


def _main_rows(groups: list[Group], content: Content, style: MetricStyle) -> list[Row]:
    """Rows of a metric without published values, without noise first."""
    rows = [msgspec.structs.replace(row, paper=None) for row in _rows(groups, content, style)]
    return sorted(rows, key=lambda row: (row.dataset, -(row.epsilon or float("inf"))))


def _latex(dataset: str, groups: list[Group], content: Content) -> str:
    """AUROC by bag size and by noise level under every rule; with several classes accuracy too."""
    styles = styles_of((r for group in groups for r in group.found), content.facts)
    facts = content.facts.datasets.get(dataset)
    names = (METRIC, "accuracy") if facts is not None and facts.task == "multiclass" else (METRIC,)
    rows = {styles[name]: _main_rows(groups, content, styles[name]) for name in names if name in styles}
    plain = [table for style, found in rows.items() for table in tables.build_tables(found, style)]
    noise = [table for style, found in rows.items() for table in tables.build_noise_tables(found, style)]
    return tables.to_latex([*plain, *noise]) + "\n"


def _markdown(dataset: str, groups: list[Group], content: Content) -> str:
    """AUROC under the rules ``bags`` and ``instances``."""
    style = styles_of((r for group in groups for r in group.found), content.facts).get(METRIC)
    rows = [] if style is None else _main_rows(groups, content, style)
    found = tables.build_tables((row for row in rows if row.rule in _RULES), style) if style is not None else []
    text = tables.to_markdown(_without_empty_lines(table) for table in _joined(dataset, found))
    text = re.sub(r"-{4,}", "---", re.sub(r" {2,}", " ", text))  # tabulate pads columns
    methods = {group.method for group in groups}
    unreleased = {group.method for group in groups if any(map(is_unreleased, group.found))}
    names = "all methods" if unreleased == methods else tables.markdown_text(", ".join(sorted(unreleased)))
    lead = (
        "Built by `llpbench leaderboard build`; do not edit. Mean (standard deviation) over seeds; best bold, second "
        "underlined. Other metrics, rules, costs and statistics: [the page](../index.html)."
    )
    lead += f" Made by unreleased code: {names}." if unreleased else ""
    return f"# {dataset}\n\n{lead}\n\n{text or 'No results.'}\n"


def _without_empty_lines(table: Table) -> Table:
    """The table without methods that have no result in it."""
    there = {method for (method, _), entry in table.entries.items() if entry.text not in ("", "missing")}
    return replace(table, methods=[method for method in table.methods if method in there])


def _joined(dataset: str, found: Iterable[Table]) -> Iterator[Table]:
    """The tables, where those with a single column and the same methods are columns of one table."""
    single: dict[object, list[Table]] = {}
    for table in found:
        if len(table.columns) > 1:
            yield table
        else:
            key = (table.about[1:], table.rule, table.what, tuple(_without_empty_lines(table).methods))
            single.setdefault(key, []).append(table)
    for alike in single.values():
        for start in range(0, len(alike), _COLUMNS):
            part = alike[start : start + _COLUMNS]
            yield part[0] if len(part) == 1 else _join(dataset, part)


def _join(dataset: str, parts: list[Table]) -> Table:
    entries: dict[tuple[str, Key], TableEntry] = {}
    for number, table in enumerate(parts):
        entries |= {(method, number): entry for (method, _), entry in table.entries.items()}
        for bound in table.bounds:
            method, _, value = bound.partition(" ")
            entries[f"{method} (bound)", number] = TableEntry(value)
    bounds = [name for name in dict.fromkeys(name for name, _ in entries) if name not in parts[0].methods]
    return replace(
        parts[0],
        about=(dataset, *parts[0].about[1:]),
        columns={number: table.about[0].removeprefix(dataset).strip(", ") for number, table in enumerate(parts)},
        methods=[*parts[0].methods, *bounds],
        entries=entries,
        bounds=[],
        notes=list(dict.fromkeys(note for table in parts for note in table.notes)),
    )
