"""What of published results goes into the standings over all datasets."""

from __future__ import annotations

import csv
import io
import tomllib
from pathlib import Path

import pytest
from board_samples import content_of, grid, published, shared
from helpers import make_cell

from llpbench.board.built.about import about
from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files
from llpbench.board.built.citation import bibtex
from llpbench.board.built.groups import block_of
from llpbench.board.content.facts import DatasetAbout, MethodAbout, dataset_facts, method_facts
from llpbench.board.content.folder import Content
from llpbench.board.standings import Overall, OverallRow
from llpbench.contracts.result import CellResult
from llpbench.results.table import Setting


def standing(content: Content, block: str = "all", metric: str = "auroc", rule: str = "bags") -> Overall:
    found = [o for o in make_board(content).overall if (o.block, o.metric, o.rule) == (block, metric, rule)]
    (only,) = found
    return only


def row_of(overall: Overall, method: str) -> OverallRow:
    return next(row for row in overall.rows if row.method == method)


def board_of(**values: list[float]) -> list[CellResult]:
    """Two datasets with a column each, three seeds."""
    return [r for dataset in ("toy", "other") for r in grid(values, dataset=dataset)]


def test_blocks_follow_from_data_bags_and_noise() -> None:
    toy = Setting("toy", 8, "none", 1e-5, "gaussian", "toy")
    own, images = toy._replace(scheme="own-bags"), DatasetAbout(images=True)
    assert block_of(toy, None) == "random"
    assert block_of(toy, images) == "images"
    assert block_of(own, images) == "natural"
    assert block_of(own._replace(noise="high"), images) == "privacy"
    assert block_of(own._replace(noise="high"), DatasetAbout(evaluation_only=True)) == "unseen"
    for changes in ({"scheme": "margins"}, {"scheme": "own-bags&margins"}, {"dataset": "toy, random[times=3]"}):
        assert block_of(toy._replace(noise="high", **changes), None) == "tables"


def test_data_for_evaluation_only_come_first() -> None:
    content = content_of(board_of(a=[0.9] * 3, b=[0.8] * 3))
    content.facts.datasets["other"] = DatasetAbout(evaluation_only=True)
    board = make_board(content)
    assert [o.block for o in board.overall if (o.metric, o.rule) == ("auroc", "bags")] == ["unseen", "all", "random"]


def test_mean_ranks_weight_sources_equally() -> None:
    results = grid({"a": [0.9] * 3, "b": [0.8] * 3}, dataset="toy", bag_size=8)
    results += grid({"a": [0.9] * 3, "b": [0.8] * 3}, dataset="toy", bag_size=32)
    results += grid({"a": [0.7] * 3, "b": [0.8] * 3}, dataset="other", bag_size=8)
    found = standing(content_of(results))
    assert [(row.method, row.rank) for row in found.rows] == [("a", 1.5), ("b", 1.5)]
    assert (found.sources, found.datasets, found.columns, found.cells, found.seeds) == (2, 2, 3, 9, [0, 1, 2])
    assert row_of(found, "a").wins == 0.5  # as in ranks: all of one dataset, none of the other
    assert found.shares == [[50.0, 50.0], [50.0, 50.0]]
    assert (found.column_seeds, found.bag_sources) == ((3, 3), [2, 1])
    assert (row_of(found, "a").low, row_of(found, "a").high) == (1.0, 2.0)
    assert found.bags == [8, 32]
    assert row_of(found, "a").bags == [1.5, 1.0]


def test_datasets_of_one_source_weigh_as_one() -> None:
    results = grid({"a": [0.9] * 3, "b": [0.8] * 3}, dataset="toy")
    results += grid({"a": [0.9] * 3, "b": [0.8] * 3}, dataset="toy-again")
    results += grid({"a": [0.7] * 3, "b": [0.8] * 3}, dataset="other")
    content = content_of(results)
    content.facts.datasets["toy-again"] = DatasetAbout(source="toy")
    found = standing(content)
    assert [(row.method, row.rank) for row in found.rows] == [("a", 1.5), ("b", 1.5)]
    assert (found.sources, found.datasets, found.columns) == (2, 3, 3)


def test_a_single_source_gives_no_interval() -> None:
    found = standing(content_of(grid({"a": [0.9, 0.7, 0.9], "b": [0.8] * 3})))
    assert [(row.rank, row.low, row.high) for row in found.rows] == [(1.3333, None, None), (1.6667, None, None)]


@pytest.mark.parametrize(("sources", "separated"), [(5, None), (6, True)])
def test_nothing_is_tested_with_too_few_sources(sources: int, separated: bool | None) -> None:
    values = {"a": [0.9] * 3, "b": [0.8] * 3}
    found = standing(content_of([r for n in range(sources) for r in grid(values, dataset=f"toy-{n}")]))
    assert row_of(found, "b").separated is separated
    words = "" if separated else "5 sources are too few to separate the two methods"
    assert (found.untested, found.bars) == (words, [])


def test_methods_that_win_on_different_sources_are_not_separated() -> None:
    results = []
    for n in range(6):
        results += grid({"a": [0.9] * 3, "b": [0.8 if n else 0.95] * 3}, dataset=f"toy-{n}")
    found = standing(content_of(results))
    assert row_of(found, "b").separated is False
    assert (found.untested, found.bars) == ("", [(0, 1)])


def test_unranked_methods_are_listed_with_missing_cells() -> None:
    results = board_of(a=[0.9] * 3, b=[0.8] * 3, c=[0.7] * 3)
    results = [r for r in results if not (r.cell.method == "c" and r.cell.seed == 1 and r.cell.dataset == "toy")]
    found = standing(content_of(results))
    assert [row.method for row in found.rows] == ["a", "b"]
    assert found.unranked == {"c": 1}


def test_a_failure_is_ranked_below_every_number() -> None:
    results = board_of(a=[0.9] * 3, b=[0.8] * 3, c=[0.7] * 3)
    failed = next(r for r in results if r.cell.method == "a" and r.cell.seed == 0)
    results[results.index(failed)] = published(None, failed.cell, status="failed", reason="out of memory")
    found = standing(content_of(results))
    assert row_of(found, "a").failed == 1
    assert row_of(found, "a").rank == pytest.approx(1 + 2 / 6, abs=1e-4)  # the last place in one of six cells
    assert row_of(found, "a").wins == pytest.approx(5 / 6, abs=1e-4)


def test_failing_never_improves_a_rank() -> None:
    """Who is last everywhere is no better off with failures, and its neighbour is no worse off."""
    results = board_of(a=[0.9] * 3, b=[0.8] * 3, c=[0.7] * 3)
    honest = standing(content_of(results))
    fails = [
        published(None, r.cell, status="failed", reason="x") if r.cell.method == "c" and r.cell.seed else r
        for r in results
    ]
    found = standing(content_of(fails))
    for method in "abc":
        assert row_of(found, method).rank == row_of(honest, method).rank
        assert row_of(found, method).wins == row_of(honest, method).wins


def test_wins_are_counted_in_the_ranked_cells() -> None:
    """Further seeds that two methods have, and others do not, win nothing."""
    results = board_of(a=[0.9] * 3, b=[0.8] * 3, c=[0.7] * 3, d=[0.6] * 3)
    cells = [make_cell(method=method, seed=seed) for method in "bc" for seed in range(3, 9)]
    more = [published(0.1 if cell.method == "b" else 0.9, cell) for cell in cells]
    assert standing(content_of([*results, *more])).rows == standing(content_of(results)).rows


def test_variants_are_compared_with_their_defaults_only() -> None:
    results = board_of(a=[0.9] * 3, b=[0.8] * 3)
    for seed, value in enumerate([0.95, 0.85, 0.95]):
        cell = make_cell(method="a", seed=seed, params={"lr": 0.5})
        results.append(published(value, cell, method_name="a[lr=0.5]"))
    found = standing(content_of(results))
    assert [row.method for row in found.rows] == ["a", "b"]
    (variant,) = found.variants
    assert (variant.method, variant.of, variant.cells) == ("a[lr=0.5]", "a", 3)
    assert variant.wins == pytest.approx(2 / 3, abs=1e-4)


def with_yardsticks(bound: float, control: float, **values: list[float]) -> Content:
    results = board_of(**values, control=[control] * 3)
    results += [
        published(bound, make_cell(method="oracle", dataset=d, seed=s, bag_size=1), oracle=True)
        for d in ("toy", "other")
        for s in range(3)
    ]
    content = content_of(results)
    content.facts.methods["control"] = MethodAbout(control=True)
    return content


def test_controls_and_bounds_of_other_packages_change_no_score() -> None:
    content = with_yardsticks(0.9, 0.5, a=[0.9] * 3, b=[0.7] * 3, c=[0.4] * 3)
    before = standing(content)
    more = [published(0.85, make_cell(method="theirs", dataset=d, seed=s)) for d in ("toy", "other") for s in range(3)]
    more += [
        published(0.99, make_cell(method="top", dataset=d, seed=s, bag_size=1), oracle=True)
        for d in ("toy", "other")
        for s in range(3)
    ]
    foreign = content_of([line.result for line in content.lines.values()] + more)
    foreign.facts.methods |= {
        **content.facts.methods,
        "theirs": MethodAbout(control=True, origin="llpbench-theirs 1.0"),
        "top": MethodAbout(oracle=True, origin="llpbench-theirs 1.0"),
    }
    assert [(row.method, row.scaled) for row in standing(foreign).rows] == [(r.method, r.scaled) for r in before.rows]


def test_scores_are_scaled_between_control_and_bound() -> None:
    found = standing(with_yardsticks(0.9, 0.5, a=[0.9] * 3, b=[0.7] * 3, c=[0.4] * 3))
    assert {row.method: row.scaled for row in found.rows} == {"a": 1.0, "b": 0.5, "c": -0.25}
    nowhere = standing(with_yardsticks(0.5, 0.5, a=[0.9] * 3, b=[0.7] * 3))
    assert {row.scaled for row in nowhere.rows} == {None}


def test_seconds_are_medians_on_the_most_common_machine() -> None:
    results = board_of(a=[0.9] * 3, b=[0.8] * 3)
    for r in results:
        r.fit_seconds = 5.0 + r.cell.seed
        r.phases = {}
    stranger = next(r for r in results if r.cell.method == "a")
    stranger.machine, stranger.fit_seconds = "ffffffffff", 1000.0
    content = content_of(results)
    content.machines["ffffffffff"] = next(iter(content.machines.values()))
    found = standing(content)
    assert found.machine == "0123456789"
    assert row_of(found, "b").seconds == 6.0
    assert row_of(found, "a").seconds == 6.0  # five cells of its six


def test_images_and_noise_form_their_own_blocks() -> None:
    results = board_of(a=[0.9] * 3, b=[0.8] * 3)
    results += grid({"a": [0.6] * 3, "b": [0.8] * 3}, dataset="toy", noise="high", bag_size=8)
    results[0] = published(None, results[0].cell, status="skipped", reason="too few bags")
    results = [r for r in results if not (r.cell.noise == "high" and r.cell.method == "b" and r.cell.seed == 2)]
    content = content_of(results)
    content.facts.datasets["other"] = DatasetAbout(images=True)
    board = make_board(content)
    assert {o.block for o in board.overall} == {"all", "random", "privacy", "images"}
    assert [d.block for d in board.datasets] == ["images", "random"]
    assert [line.text for line in board.coverage] == [
        "random: 2 methods, 1 column, 5 of 6 cells have a number; 1 declined by the method.",
        "privacy: 2 methods, 1 column, all 5 cells have a number.",
        "images: 2 methods, 1 column, all 6 cells have a number.",
    ]


def test_coverage_counts_incomplete_columns() -> None:
    results = board_of(a=[0.9] * 3, b=[0.8] * 3) + grid({"a": [0.7] * 3}, dataset="toy", bag_size=512)
    assert [line.text for line in make_board(content_of(results)).coverage] == [
        "random: 2 methods, 3 columns (1 of them with some of the methods), 15 of 18 cells have a number; 3 not run.",
    ]


def test_lower_is_better_metrics_are_negated() -> None:
    results = board_of(a=[0.9] * 3, b=[0.8] * 3)
    for r in results:
        for chosen in r.selected.values():
            chosen.metrics["log_loss"] = 0.1 if r.cell.method == "b" else 0.3
    found = standing(content_of(results), metric="log_loss")
    assert [(row.method, row.rank) for row in found.rows] == [("b", 1.0), ("a", 2.0)]
    assert found.shares == []  # who beats whom is told for the main metric


def test_seeds_csv_has_a_line_for_every_seed() -> None:
    results = grid({"a": [0.9, 0.8], "b": [0.8, 0.7]})
    results[3] = published(None, results[3].cell, status="skipped", reason="too few bags")
    lines = list(csv.DictReader(io.StringIO(built_files(content_of(results), downloads=True)["seeds.csv"].decode())))
    assert [(row["method"], row["seed"], row["rule"]) for row in lines] == [
        ("a", "0", "bags"), ("a", "0", "instances"), ("a", "1", "bags"), ("a", "1", "instances"),
        ("b", "0", "bags"), ("b", "0", "instances"), ("b", "1", ""),
    ]  # fmt: skip
    assert float(lines[0]["auroc"]) == 0.9
    assert (lines[-1]["status"], lines[-1]["auroc"]) == ("skipped", "")
    assert lines[0]["id"] == results[0].id


def test_descriptions_of_methods_and_datasets_are_kept() -> None:
    registry = shared()
    method = method_facts(registry.methods["mean-ridge"], "llpbench 0.1.0")
    assert [p.name for p in method.params] == [p.name for p in registry.methods["mean-ridge"].params]
    assert all(p.doc for p in method.params)
    images = {spec.name for spec in registry.datasets.specs if dataset_facts(spec, "").images}
    assert images == {"cifar-b", "cifar-s", "cifar10"}
    sources = {spec.name: dataset_facts(spec, "").source for spec in registry.datasets.specs}
    assert sources.items() >= {"cifar-b": "cifar10", "landscape": "adult", "gss-wages": "gss", "adult": "adult"}.items()
    adult = dataset_facts(registry.datasets["adult"], "")
    assert (adult.rows, adult.licence) == (48_842, "CC BY 4.0")
    assert adult.homepage.startswith("https://")


def test_citation_is_dated_by_the_newest_result() -> None:
    results = grid({"a": [0.9, 0.8]})
    results[1].started = "2026-02-03T00:00:00Z"
    found = about(results, {})
    assert found.version == "0.1.0"
    assert found.citation == bibtex("0.1.0", "Leaderboard, newest result of 2026-02-03")
    urls = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]["urls"]
    assert found.links == urls
