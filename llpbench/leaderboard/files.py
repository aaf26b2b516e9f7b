"""What is built from a leaderboards folder: tables, a CSV, the board and the page. The same bytes every time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from llpbench.contracts.result import RULES, CellResult
from llpbench.experiment.plan import Planned
from llpbench.experiment.privacy import epsilon_of
from llpbench.leaderboard.build import make_board
from llpbench.leaderboard.folder import Content, raw_files
from llpbench.leaderboard.schema import BoardDataset, encode_board
from llpbench.leaderboard.settings import expected_seeds, shown_results, variant
from llpbench.report import phases, tables
from llpbench.results.references import with_references
from llpbench.results.table import COST_METRICS, MetricStyle, Row, aggregate

BY_HAND = ("README.md",)
_NOTHING = "Nothing is published yet.\n"


def built_files(content: Content) -> dict[str, bytes]:
    """Files by their path in the folder; they depend on the content alone."""
    from llpbench.leaderboard.page import render_page

    board = make_board(content)
    results = shown_results(line.result for line in content.lines.values())
    planned = plan_of(results)
    files = {
        "board.json": encode_board(board),
        "results.csv": (tables.to_csv(_all_rows(planned, results, content)) + "\n").encode(),
        "index.html": render_page(board).encode(),
    }
    for dataset in sorted({r.cell.dataset for r in results}):
        plan = [p for p in planned if p.cell.dataset == dataset]
        found = [r for r in results if r.cell.dataset == dataset]
        labels = {p.dataset_label for p in plan}
        boards = [d for d in board.datasets if d.name in labels]
        scores = _score_tables(dataset, plan, found, content)
        files[f"tables/{dataset}.md"] = _markdown(dataset, scores, plan, found, boards).encode()
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
    there = {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file() or p.is_symlink()}
    strange = sorted(name for name in there - set(wanted) - set(BY_HAND) if not Path(name).name.startswith("."))
    return problems + [f"{name}: nothing published gives this file" for name in strange]


def plan_of(results: Iterable[CellResult]) -> list[Planned]:
    """What a table of these results is meant to hold: every method in every setting of its dataset."""
    results = sorted(results, key=lambda r: (r.dataset_label, r.oracle, r.label, r.cell.bag_size, r.cell.seed, r.id))
    planned = {r.id: _planned(r) for r in results}
    seeds = expected_seeds(results)
    samples: dict[tuple[str, str, str], CellResult] = {}
    for r in results:
        if not r.oracle:
            samples.setdefault((r.dataset_label, r.label, r.cell.backend), r)
    for (dataset, _, _), sample in samples.items():
        for setting, wanted in seeds.items():
            if setting.dataset != dataset:
                continue
            there = {r.cell.seed for r in results if setting.holds(r) and _same(r, sample)}
            for seed in sorted(wanted - there):
                cell = variant(sample.cell, setting, seed)
                planned.setdefault(cell.id, msgspec.structs.replace(_planned(sample), cell=cell))
    return list(planned.values())


def _planned(r: CellResult) -> Planned:
    return Planned(cell=r.cell, label=r.label, dataset_label=r.dataset_label, oracle=r.oracle)


def _same(r: CellResult, sample: CellResult) -> bool:
    return (r.label, r.cell.backend) == (sample.label, sample.cell.backend)


def _styles(content: Content) -> list[MetricStyle]:
    found = [MetricStyle(name, m.higher, m.percent) for name, m in sorted(content.facts.metrics.items())]
    return [*found, MetricStyle("bag_error", higher_is_better=False)]


def _rows(planned: list[Planned], results: list[CellResult], content: Content, style: MetricStyle) -> list[Row]:
    rows = aggregate(planned, results, [style], RULES)
    rows = [msgspec.structs.replace(row, epsilon=epsilon_of(row.noise.split(", ")[0])) for row in rows]
    return with_references(rows, content.facts.references, style.scale)


def _all_rows(planned: list[Planned], results: list[CellResult], content: Content) -> list[Row]:
    rows = [row for style in _styles(content) for row in _rows(planned, results, content, style)]
    costs = [MetricStyle(name, higher_is_better=False, percent=False) for name in COST_METRICS]
    return rows + [msgspec.structs.replace(row, rule="") for row in aggregate(planned, results, costs, RULES[:1])]


def _plain(rows: Iterable[Row]) -> list[Row]:
    return [msgspec.structs.replace(row, paper=None) for row in rows]


def _shown(dataset: str, content: Content) -> list[MetricStyle]:
    """The metrics of a dataset's tables: AUROC, and where there are several classes accuracy too."""
    facts = content.facts.datasets.get(dataset)
    several = facts is not None and facts.task == "multiclass" and "accuracy" in content.facts.metrics
    return [MetricStyle(name) for name in ("auroc", *(["accuracy"] if several else []))]


@dataclass(frozen=True)
class _Scores:
    """The tables of a dataset's scores: by bag size, by noise level, and those with published values beside."""

    plain: list[tables.Table] = field(default_factory=list)
    noise: list[tables.Table] = field(default_factory=list)
    beside: list[tables.Table] = field(default_factory=list)


def _score_tables(dataset: str, planned: list[Planned], results: list[CellResult], content: Content) -> _Scores:
    scores = _Scores()
    for style in _shown(dataset, content):
        rows = _rows(planned, results, content, style)
        scores.plain.extend(tables.build_tables(_plain(rows), style))
        scores.noise.extend(tables.build_noise_tables(_plain(rows), style))
        published = tables.build_tables(rows, style)
        scores.beside.extend(t for t in published if any(bound.startswith("[") for bound in t.bounds))
    return scores


def _markdown(
    dataset: str, scores: _Scores, planned: list[Planned], results: list[CellResult], boards: list[BoardDataset]
) -> str:
    """All tables of a dataset on one page."""
    sections = [
        ("Results", tables.to_markdown(scores.plain)),
        ("Who is best, and can these seeds tell", _claims(boards)),
        ("Ranks", _ranks(boards)),
        ("Noise", tables.to_markdown(scores.noise)),
        ("Beside published values", tables.to_markdown(scores.beside)),
        ("Pseudo-labels", tables.to_markdown(phases.pseudo_tables(planned, results))),
        ("Time", tables.to_markdown(phases.time_tables(planned, results))),
    ]
    body = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in sections if text)
    return f"# {dataset}\n\nBuilt by `llpbench leaderboard build`; do not edit.\n\n{body or _NOTHING}\n"


def _claims(boards: list[BoardDataset]) -> str:
    lines = [
        f"- {d.name}, rule {claim.rule}, noise {claim.noise}, bag {claim.bag}: {claim.text}"
        for d in boards
        for claim in d.claims
    ]
    return "\n".join(tables.markdown_text(line) for line in lines)


def _ranks(boards: list[BoardDataset]) -> str:
    blocks = []
    for d in boards:
        for rule, ranks in d.ranks.items():
            counted = [r for r in ranks if r.mean_rank is not None]
            if not counted:
                continue
            lines = [f"**{d.name} · selection rule: {rule} · {counted[0].cells} cells that all of these have**", ""]
            lines += ["| method | mean rank | duels won |", "|---|---:|---:|"]
            lines += [
                f"| {tables.markdown_text(r.method)} | {r.mean_rank:.2f} | {100 * (r.win_rate or 0):.0f} % |"
                for r in counted
            ]
            blocks.append("\n".join(lines))
    return "\n\n".join(blocks)
