"""What is built from a leaderboards folder: tables, a CSV, the board and the page. The same bytes every time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from llpbench.board.built.board import make_board
from llpbench.board.built.plan import board_groups
from llpbench.board.built.protocol import board_protocol
from llpbench.board.built.seeds_csv import seeds_csv
from llpbench.board.content.facts import rules_of, styles_of
from llpbench.board.content.folder import Content, raw_files
from llpbench.board.content.lines import is_unreleased
from llpbench.board.schema.board import BoardDataset, encode_board
from llpbench.contracts.cell import bag_words
from llpbench.report import phases, tables
from llpbench.report.cards import card_lines
from llpbench.results.bootstrap import METRIC as JUDGED
from llpbench.results.metric_style import OWN_METRICS, MetricStyle
from llpbench.results.references import with_references
from llpbench.results.table import Group, Row, make_rows

BY_HAND = ("README.md",)
_AT_WILL = {".nojekyll": b""}  # a static host may ask for it
_NOTHING = "Nothing is published yet.\n"


def built_files(content: Content) -> dict[str, bytes]:
    """Files by their path in the folder; they depend on the content alone."""
    from llpbench.board.page import render_page

    groups = board_groups((line.result for line in content.lines.values()), content.facts.roles)
    board = make_board(content, groups)
    files = {
        "board.json": encode_board(board),
        "results.csv": (tables.to_csv(_all_rows(groups, content)) + "\n").encode(),
        "seeds.csv": _seeds(groups, content).encode(),
        "index.html": render_page(board).encode(),
    }
    for dataset in sorted({group.setting.base_dataset for group in groups}):
        found = [group for group in groups if group.setting.base_dataset == dataset]
        names = {group.setting.dataset for group in found}
        boards = [d for d in board.datasets if d.name in names]
        scores = _score_tables(dataset, found, content)
        files[f"tables/{dataset}.md"] = _markdown(dataset, scores, found, boards).encode()
        files[f"tables/{dataset}.tex"] = (tables.to_latex([*scores.plain, *scores.noise]) + "\n").encode()
    return files


def site_files(content: Content) -> dict[str, bytes]:
    """Everything a static host needs: the built files beside the results they were built from."""
    return {**raw_files(content), **built_files(content), ".nojekyll": b""}


def differences(root: Path, content: Content) -> list[str]:
    """What in a folder is not what its content gives: one sentence for each file, none when all is well."""
    wanted = {**raw_files(content), **built_files(content)}
    problems = []
    for name, data in sorted(wanted.items()):
        path = root / name
        if path.is_symlink() or not path.is_file():
            problems.append(f"{name}: is not there")
        elif path.read_bytes() != data:
            problems.append(f"{name}: differs from what the published cells give")
    problems += [
        f"{name}: must be a plain file"
        for name in BY_HAND
        if (root / name).is_symlink() or ((root / name).exists() and not (root / name).is_file())
    ]
    return problems + _too_many(root, wanted)


def _too_many(root: Path, wanted: Iterable[str]) -> list[str]:
    """Files and folders that nothing published gives, hidden ones too: whoever serves the folder serves them."""
    files = {*wanted, *BY_HAND}
    folders = {parent.as_posix() for name in files for parent in Path(name).parents}
    problems = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if Path(name).parts[0] in (".git", "entries"):  # a board may be a repository; entries are submissions
            continue
        if path.is_dir() and not path.is_symlink():
            if name not in folders and not any(path.iterdir()):
                problems.append(f"{name}: an empty folder that nothing published gives; remove it")
        elif name not in files and not _is_at_will(path, name):
            problems.append(f"{name}: nothing published gives this file; remove it")
    return problems


def _is_at_will(path: Path, name: str) -> bool:
    plain = path.is_file() and not path.is_symlink()
    return plain and name in _AT_WILL and path.read_bytes() == _AT_WILL[name]


def _rows(groups: list[Group], content: Content, style: MetricStyle) -> list[Row]:
    """Rows of one metric under every rule that a result of the dataset has numbers under."""
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


def _plain(rows: Iterable[Row]) -> list[Row]:
    return [msgspec.structs.replace(row, paper=None) for row in rows]


def _shown(dataset: str, groups: list[Group], content: Content) -> list[MetricStyle]:
    """The metrics of a dataset's tables: AUROC, and where there are several classes accuracy too."""
    facts = content.facts.datasets.get(dataset)
    several = facts is not None and facts.task == "multiclass"
    styles = styles_of((r for group in groups for r in group.found), content.facts)
    return [styles[name] for name in ("auroc", *(["accuracy"] if several else [])) if name in styles]


@dataclass(frozen=True)
class _Scores:
    """The tables of a dataset's scores: by bag size, by noise level, with published values beside, and tuned."""

    plain: list[tables.Table] = field(default_factory=list)
    noise: list[tables.Table] = field(default_factory=list)
    beside: list[tables.Table] = field(default_factory=list)
    protocol: list[tables.Table] = field(default_factory=list)


def _score_tables(dataset: str, groups: list[Group], content: Content) -> _Scores:
    styles = _shown(dataset, groups, content)
    rules = list(rules_of((r for group in groups for r in group.found), content.facts))
    scores = _Scores(protocol=board_protocol(groups, content, styles, rules))
    for style in styles:
        rows = _rows(groups, content, style)
        scores.plain.extend(tables.build_tables(_plain(rows), style))
        scores.noise.extend(tables.build_noise_tables(_plain(rows), style))
        published = tables.build_tables(rows, style)
        scores.beside.extend(table for table in published if table.sources)
    return scores


def _markdown(dataset: str, scores: _Scores, groups: list[Group], boards: list[BoardDataset]) -> str:
    """All tables of a dataset on one page."""
    sections = [
        ("Results", tables.to_markdown(scores.plain)),
        ("Who is best, and can these seeds tell", _claims(boards)),
        ("Ranks", _ranks(boards)),
        ("Noise", tables.to_markdown(scores.noise)),
        ("Beside published values", tables.to_markdown(scores.beside)),
        ("Tuned with labels, as published, tuned without", tables.to_markdown(scores.protocol)),
        ("Pseudo-labels", tables.to_markdown(phases.pseudo_tables(groups))),
        ("Time", tables.to_markdown(phases.time_tables(groups))),
        ("Bags", "\n".join(f"- {tables.markdown_text(line)}" for line in card_lines(groups))),
    ]
    body = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in sections if text)
    return f"# {dataset}\n\n{_heading(groups)}\n\n{body or _NOTHING}\n"


def _heading(groups: list[Group]) -> str:
    """What holds for the whole page: the protocol, and whose code has no release."""
    results = [result for group in groups for result in group.found]
    protocols = " and ".join(map(str, sorted({result.protocol for result in results})))
    unreleased = sorted({group.method for group in groups if any(map(is_unreleased, group.found))})
    lines = ["Built by `llpbench leaderboard build`; do not edit.", f"Protocol {protocols}." if protocols else ""]
    if unreleased:
        lines.append(tables.markdown_text(f"Made by unreleased code: {', '.join(unreleased)}."))
    return " ".join(filter(None, lines))


def _claims(boards: list[BoardDataset]) -> str:
    lines = [
        f"- {d.name}, rule {claim.rule}, noise {claim.noise}, {bag_words(claim.bag, d.self_sized)}: {claim.text}"
        for d in boards
        for claim in d.claims
    ]
    return "\n".join(tables.markdown_text(line) for line in lines)


def _ranks(boards: list[BoardDataset]) -> str:
    blocks = []
    for d in boards:
        for rule, ranks in d.ranks.get(JUDGED, {}).items():
            counted = [r for r in ranks if r.mean_rank is not None]
            if not counted:
                continue
            lines = [
                f"**{tables.markdown_text(f'{d.name} · selection rule: {rule}')} · {counted[0].cells} cells (bag size, "
                "seed) that these share**",
                "",
            ]
            lines += ["| method | mean rank | duels won |", "|---|---:|---:|"]
            lines += [
                f"| {tables.markdown_text(r.method)} | {r.mean_rank:.2f} | {100 * (r.win_rate or 0):.0f} % |"
                for r in counted
            ]
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
