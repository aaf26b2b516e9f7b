"""The board: what is best, what three seeds can tell, and what is missing. One content, one board."""

from __future__ import annotations

import itertools
import random
import shlex
from pathlib import Path

import msgspec
import numpy as np
import pytest
from board_samples import MACHINE, content_of, grid, published
from chromium import Chromium, find_chromium
from helpers import make_cell
from hypothesis import example, given
from hypothesis import strategies as st

from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files, differences
from llpbench.board.built.groups import board_groups, board_plan, expected_seeds
from llpbench.board.built.rows import command
from llpbench.board.content.bootstrap import Replicates, pack, unpack
from llpbench.board.content.facts import EVERY_RESULT, DatasetAbout, MetricFacts, RuleFacts
from llpbench.board.content.folder import raw_files, read_folder, write_files
from llpbench.board.content.lines import compact, encode_line
from llpbench.board.page import render_page
from llpbench.board.schema import Aggregate, Board, BoardDataset, encode_board
from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import USUAL
from llpbench.contracts.result import CellResult, Selected
from llpbench.contracts.specs import Reference
from llpbench.experiment.setting import parse_seeds
from llpbench.results.table import setting_of

CLEAR = {"good": [0.90, 0.91, 0.92], "fair": [0.80, 0.81, 0.82], "poor": [0.60, 0.61, 0.62]}


def only(results: list[CellResult], references: list[Reference] | None = None) -> BoardDataset:
    (dataset,) = make_board(content_of(results, references)).datasets
    return dataset


def entry(dataset: BoardDataset, method: str, bag: int = 8, noise: str = "none") -> Aggregate:
    (row,) = [row for row in dataset.rows if row.method == method]
    return row.cells[noise][str(bag)]


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_means_and_marks() -> None:
    dataset = only(grid(CLEAR))
    good, fair, poor = (entry(dataset, m).scores["auroc"]["bags"] for m in CLEAR)
    assert (good.mean, good.sd, good.seeds) == (91.0, 1.0, 3)
    assert good.values == [90.0, 91.0, 92.0]
    assert [(v.best, v.second) for v in (good, fair, poor)] == [(True, False), (False, True), (False, False)]
    assert entry(dataset, "good").scores["auroc"]["instances"].mean == pytest.approx(101.0)  # the sample adds a tenth


def test_entries_have_costs_and_provenance() -> None:
    found = entry(only(grid(CLEAR)), "good")
    assert found.seconds is not None
    assert (found.seconds.fit, found.seconds.phases) == (1.5, {"fit": 1.25, "other": 0.25})
    assert (found.memory_mb, found.machine) == (100.0, MACHINE)
    assert found.seed_ids == [make_cell(method="good", seed=s).id for s in range(3)]


def test_the_board_does_not_depend_on_the_order_of_results() -> None:
    results = grid(CLEAR) + grid(CLEAR, bag_size=32)
    first = encode_board(make_board(content_of(results)))
    for _ in range(3):
        random.Random(1).shuffle(results)
        assert encode_board(make_board(content_of(results))) == first
    assert msgspec.json.decode(first, type=Board).schema == 5


def test_board_is_dated_by_its_newest_result() -> None:
    results = [*grid(CLEAR), published(cell=make_cell(method="new"), started="2025-09-30T23:00:00Z")]
    assert make_board(content_of(results)).built == "2025-09-30"
    assert make_board(content_of([])).built == ""


def test_bounds_are_not_ranked() -> None:
    bound = [published(0.99, make_cell(method="truth", bag_size=1, seed=s), oracle=True) for s in range(3)]
    dataset = only(grid(CLEAR) + bound)
    assert (dataset.bounds["auroc"]["bags"].mean, dataset.bounds["auroc"]["bags"].method) == (99.0, "truth")
    assert dataset.bags == [8]
    assert [row.method for row in dataset.rows if row.oracle] == ["truth"]
    assert "truth" not in [rank.method for rank in dataset.ranks["auroc"]["bags"]]
    assert entry(dataset, "good").scores["auroc"]["bags"].best


def with_few_labels() -> list[CellResult]:
    """Three methods in 16 bags, and a bound with 4 and with 64 labelled rows."""
    cells = [(make_cell(method="few-labels", bag_size=1, seed=s, params={"labels": m}), v)
             for m, v in ((4, 0.70), (64, 0.90)) for s in range(3)]  # fmt: skip
    few = [published(v, cell, oracle=True, method_name=f"few-labels[{v}]") for cell, v in cells]
    card = BagCard(bags=16, rows=128, left_out=0.0, sizes=(8.0,) * 5, proportion_sd=0.1, spread=1.0, separation=1.0)
    return [*few, *(msgspec.structs.replace(r, card=card) for r in grid(CLEAR))]


def test_board_shows_what_as_many_labels_as_bags_reach() -> None:
    board = make_board(content_of(with_few_labels()))
    (dataset,) = board.datasets
    assert dataset.bounds["auroc"] == {}  # it is given few labels: not what all of them reach
    assert dataset.as_many_labels is not msgspec.UNSET
    found = dataset.as_many_labels["auroc"]["bags"]["8"]
    assert (found.bound, found.bags, found.mean) == ("few-labels", 16, 80.0)
    assert [entry(dataset, m).scores["auroc"]["bags"].worth for m in CLEAR] == ["> 64", "18", "< 4"]
    assert "few-labels with 16 labelled rows for bag 8 80.00</caption>" in render_page(board)


def test_bounds_apply_to_every_bag_scheme() -> None:
    bound = [published(0.99, make_cell(method="truth", bag_size=1, seed=s), oracle=True) for s in range(3)]
    sorted_bags = [
        published(0.7, make_cell(method="m", seed=s, scheme="in-order"), dataset_name="toy, in-order") for s in range(3)
    ]
    (alone,) = make_board(content_of(bound + sorted_bags)).datasets
    assert (alone.name, alone.bounds["auroc"]["bags"].mean) == ("toy, in-order", 99.0)
    both = make_board(content_of(bound + sorted_bags + grid(CLEAR))).datasets
    assert [(d.name, d.bounds["auroc"]["bags"].mean) for d in both] == [("toy", 99.0), ("toy, in-order", 99.0)]
    noisy = [published(0.7, make_cell(method="m", feature_noise=0.1), dataset_name="toy, feature noise 0.1")]
    assert make_board(content_of(bound + noisy)).datasets[1].bounds["auroc"] == {}


def split_by_bags() -> list[CellResult]:
    """A method and a bound at two bag sizes, each with test rows of its own."""
    sizes = {8: 0.90, 32: 0.95}
    methods = [r for size, value in sizes.items() for r in grid({"m": [value - 0.2] * 2}, size, split="bags")]
    cells = [(make_cell(method="bound", bag_size=b, seed=s, split="bags"), v) for b, v in sizes.items() for s in (0, 1)]
    return [*methods, *(published(value, cell, oracle=True) for cell, value in cells)]


def test_bag_sizes_with_own_test_rows_have_own_bounds() -> None:
    dataset = only(split_by_bags())
    assert dataset.bounds == {}
    assert dataset.bag_bounds is not msgspec.UNSET
    means = {bag: rules["bags"].mean for bag, rules in dataset.bag_bounds["auroc"].items()}
    assert means == {"8": 90.0, "32": 95.0}
    (row,) = [row for row in dataset.rows if row.oracle]
    assert {bag: found.scores["auroc"]["bags"].mean for bag, found in row.cells["none"].items()} == means
    page = render_page(make_board(content_of(split_by_bags())))
    assert "bound bag 8 90.00 (0.00) · bound bag 32 95.00 (0.00)</caption>" in page


def test_bounds_of_split_bags_apply_to_their_bag_size_only() -> None:
    results = [r for r in split_by_bags() if not (r.oracle and r.cell.bag_size == 32)]
    dataset = only(results)
    assert dataset.bag_bounds is not msgspec.UNSET
    assert {bag: list(rules) for bag, rules in dataset.bag_bounds["auroc"].items()} == {
        "8": ["bags", "instances"],
        "32": [],
    }


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_the_page_shows_what_bags_are_worth(browser: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text(render_page(make_board(content_of(with_few_labels()))), encoding="utf-8")
    browser.open(page, "#dataset=toy&cell=8@fair")
    rows = "[...document.querySelectorAll('.board tbody:last-child tr:not(.group)')].map(r => r.textContent)"
    assert browser.run(rows) == ["one for each bag80.0016 rows", "worth of the bags> 6416 bags"]
    assert "its bags are worth 18 labelled rows" in browser.run("document.getElementById('detail').textContent")


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_the_page_shows_the_bound_of_every_bag_size(browser: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text(render_page(make_board(content_of(split_by_bags()))), encoding="utf-8")
    browser.open(page)
    assert browser.run("document.querySelector('.boundbox .value').textContent.trim()") == "bag 8: 90.00 bag 32: 95.00"
    assert browser.run("document.querySelectorAll('.plot .bound line').length") >= 2
    assert browser.problems == []


def test_pseudo_labels_are_means_by_stage() -> None:
    results = [
        published(0.8, make_cell(method="m", seed=s), pseudo_labels={"one": 0.6 + s / 10, "two": None}) for s in (0, 1)
    ]
    assert entry(only(results), "m").pseudo == {"one": 65.0}


def test_noise_levels_are_in_order_and_carry_their_epsilon() -> None:
    results = [r for noise in ("high", "none", "epsilon=3", "medium") for r in grid(CLEAR, noise=noise)]
    dataset = only(results)
    assert dataset.noises == ["none", "medium", "epsilon=3", "high"]
    assert dataset.epsilons == {"none": None, "medium": 10.0, "epsilon=3": 3.0, "high": 1.0}


# -- what is missing ---------------------------------------------------------------------------------------------------


def test_statuses_and_reasons() -> None:
    late = published(None, make_cell(method="late", seed=0), status="timeout", reason="1 h was too short", selected={})
    shy = [
        published(None, make_cell(method="shy", seed=s), status="skipped", reason="binary only", selected={})
        for s in range(3)
    ]
    some = [published(0.7, make_cell(method="some", seed=s)) for s in (0, 1)]
    dataset = only([*grid(CLEAR), *grid({"good": [0.5] * 3}, bag_size=32), late, *shy, *some])
    assert (entry(dataset, "late").status, "timeout: 1 h" in entry(dataset, "late").reason) == ("failed", True)
    assert entry(dataset, "shy").status == "skipped"
    assert (entry(dataset, "some").status, entry(dataset, "some").reason) == ("partial", "seed 2 not run")
    assert entry(dataset, "fair", 32).status == "missing"
    assert not entry(dataset, "some").scores["auroc"]["bags"].best


def test_settings_without_results_are_not_reported_missing() -> None:
    board = make_board(content_of(grid(CLEAR) + grid(CLEAR, bag_size=32) + grid(CLEAR, noise="high")))
    assert board.missing == []  # noise at bag size 32 was run by nobody
    board = make_board(content_of(grid(CLEAR) + grid({"good": [0.5] * 3}, bag_size=32)))
    assert [(m.method, m.bag, m.status) for m in board.missing] == [("fair", 32, "missing"), ("poor", 32, "missing")]


def test_extra_seeds_of_a_method_do_not_make_others_incomplete() -> None:
    results = grid({**CLEAR, "keen": [0.7] * 10})
    dataset = only(results)
    assert {entry(dataset, m).status for m in (*CLEAR, "keen")} == {"ok"}
    assert entry(dataset, "keen").scores["auroc"]["bags"].seeds == 10
    assert expected_seeds(results)[setting_of(results[0])] == {0, 1, 2}


def test_board_plan_includes_missing_cells() -> None:
    results = grid(CLEAR) + grid({"good": [0.5] * 3}, bag_size=32)
    plan = board_plan(results).cells
    assert len(plan) == 2 * 3 * 3
    absent = {p.cell.id for p in plan} - {r.id for r in results}
    assert absent == {make_cell(method=m, seed=s, bag_size=32).id for m in ("fair", "poor") for s in range(3)}


# -- claims ------------------------------------------------------------------------------------------------------------


def claim_of(dataset: BoardDataset, rule: str = "bags"):  # type: ignore[no-untyped-def]
    (claim,) = [c for c in dataset.claims if c.rule == rule]
    return claim


def test_a_clear_lead_is_separated() -> None:
    claim = claim_of(only(grid({"a": [0.90, 0.92, 0.91], "b": [0.80, 0.83, 0.80]})))
    assert (claim.best, claim.second, claim.separated) == ("a", "b", True)
    assert claim.difference == 10.0
    assert claim.basis == "seeds only (no predictions)"
    assert claim.text.endswith("separated.")
    assert "not separated" not in claim.text


def test_a_lead_within_the_spread_of_seeds_is_not_separated() -> None:
    dataset = only(grid({"a": [0.90, 0.80, 0.95], "b": [0.88, 0.90, 0.80], "c": [0.1, 0.11, 0.12]}))
    claim = claim_of(dataset)
    assert (claim.best, claim.separated) == ("a", False)
    assert claim.low < 0 < claim.high
    assert "3 seeds cannot tell" in claim.text
    assert entry(dataset, "a").scores["auroc"]["bags"].separated is False
    assert entry(dataset, "c").scores["auroc"]["bags"].separated is True  # from the best, not from the second


def test_one_seed_is_never_separated() -> None:
    claim = claim_of(only(grid({"a": [0.99], "b": [0.5]})))
    assert (claim.separated, claim.low, claim.basis) == (None, None, "one seed")
    assert "one seed cannot tell" in claim.text


def test_bootstrap_variance_prevents_separation_by_chance() -> None:
    """Three differences that agree by luck, while the test rows are far too few to tell."""
    results = grid({"a": [0.900, 0.901, 0.902], "b": [0.890, 0.891, 0.892]})
    content = content_of(results)
    assert claim_of(make_board(content).datasets[0]).separated is True
    rng = np.random.default_rng(0)
    for r in results:
        noise = pack(np.clip(0.9 + 0.05 * rng.normal(size=128), 0, 1))
        content.replicates[r.id] = Replicates(id=r.id, test="t", rules={"bags": noise}, same={"instances": "bags"})
    claim = claim_of(make_board(content).datasets[0])
    assert (claim.separated, claim.basis) == (False, "seeds and test rows")


def test_replicates_of_other_test_rows_are_not_paired() -> None:
    results = grid({"a": [0.9, 0.9, 0.9], "b": [0.8, 0.8, 0.8]})
    content = content_of(results)
    for i, r in enumerate(results):
        packed = pack(np.linspace(0.7, 0.9, 128))
        content.replicates[r.id] = Replicates(id=r.id, test=f"{i}", rules={"bags": packed, "instances": packed})
    assert claim_of(make_board(content).datasets[0]).basis == "seeds only (no predictions)"


def test_only_complete_methods_are_compared() -> None:
    lacking = published(None, make_cell(method="a", seed=2), status="failed", reason="it broke", selected={})
    results = [*grid({"a": [0.99, 0.99], "b": [0.8] * 3, "c": [0.7] * 3}), lacking]
    claim = claim_of(only(results))
    assert (claim.best, claim.second) == ("b", "c")


def test_ties_for_first_are_both_marked_best() -> None:
    dataset = only(grid({"a": [0.8, 0.9], "b": [0.9, 0.8], "c": [0.5, 0.5]}))
    assert [entry(dataset, m).scores["auroc"]["bags"].best for m in "abc"] == [True, True, False]
    assert entry(dataset, "c").scores["auroc"]["bags"].second
    assert claim_of(dataset).separated is False


# -- ranks and fronts --------------------------------------------------------------------------------------------------


def test_methods_with_missing_cells_are_not_ranked() -> None:
    results = grid(CLEAR) + grid(CLEAR, bag_size=32) + grid({"short": [0.99] * 3})
    ranks = {r.method: r for r in only(results).ranks["auroc"]["bags"]}
    assert (ranks["good"].mean_rank, ranks["good"].win_rate, ranks["good"].cells) == (1.0, 1.0, 6)
    assert (ranks["short"].mean_rank, ranks["short"].cells) == (None, 3)


def test_pareto_front_of_value_and_seconds() -> None:
    def at(method: str, value: float, seconds: float, machine: str = MACHINE) -> list[CellResult]:
        cells = [make_cell(method=method, seed=s) for s in range(2)]
        return [published(value, c, fit_seconds=seconds, machine=machine) for c in cells]

    results = at("slow", 0.9, 10.0) + at("quick", 0.8, 1.0) + at("bad", 0.7, 5.0)
    assert only(results).pareto["auroc"]["bags"] == {"8": ["quick", "slow"]}
    # Seconds of another machine are not compared.
    content = content_of([*results, *at("foreign", 0.99, 0.1, "ffffffffff")])
    content.machines["ffffffffff"] = content.machines[MACHINE]
    assert make_board(content).datasets[0].pareto["auroc"]["bags"] == {"8": ["quick", "slow"]}


# -- published values --------------------------------------------------------------------------------------------------


def reference(**facts: object) -> Reference:
    known = {"source": "S", "dataset": "toy", "title": "Good", "method": "good", "metric": "auroc", "mean": 0.88}
    return Reference(**{**known, "rule": "instances", "bag_size": 8, **facts})  # type: ignore[arg-type]


def test_published_values_are_shown_with_their_rule() -> None:
    dataset = only(grid(CLEAR), [reference(sd=0.01), reference(title="Elsewhere", method="", bag_size=512)])
    paper = entry(dataset, "good").paper["auroc"]
    assert (paper.mean, paper.sd, paper.rule, paper.source) == (88.0, 1.0, "instances", "S")
    assert entry(dataset, "fair").paper == {}
    assert {row.method: list(row.cells) for row in dataset.paper} == {"Good": ["8"], "Elsewhere": ["512"]}


def test_missing_published_values_keep_their_note() -> None:
    dataset = only(grid(CLEAR), [reference(mean=None, note="ran out of memory")])
    assert dataset.paper[0].cells["8"].note == "ran out of memory"
    assert entry(dataset, "good").paper["auroc"].note == "ran out of memory"


# -- commands ----------------------------------------------------------------------------------------------------------


def test_command_names_every_option_of_a_setting() -> None:
    cell = make_cell(
        method="net",
        bag_size=64,
        seed=1,
        noise="high",
        delta=1e-6,
        scheme="by-feature",
        scheme_options={"column": "my column"},
        feature_noise=0.1,
        backend="torch",
        preset="paper",
    )
    result = published(
        cell=cell, method_name="net[preset=paper;lr=0.1]", dataset_name="toy[a=b], by-feature[column=my column]"
    )
    words = shlex.split(entry(only([result]), "net[preset=paper;lr=0.1]", 64, "high, delta 1e-06").command)
    assert words == [
        "llpbench", "run", "--methods", "net[lr=0.1]", "--datasets", "toy[a=b]", "--bags", "64", "--seeds", "1-1",
        "--schemes", "by-feature[column=my column]", "--noise", "high", "--delta", "1e-06", "--feature-noise", "0.1",
        "--backend", "torch", "--preset", "paper",
    ]  # fmt: skip


@example(seeds={5, 6}, delta=1.2345678e-6, feature_noise=0.0)
@example(seeds={0, 1, 2}, delta=1e-6, feature_noise=0.1234567)
@given(
    seeds=st.sets(st.integers(0, 9_999), min_size=1, max_size=4),
    delta=st.floats(1e-12, 0.5, exclude_min=True),
    feature_noise=st.floats(0, 9),
)
def test_command_reproduces_exactly_the_published_cells(seeds: set[int], delta: float, feature_noise: float) -> None:
    about = {"noise": "high", "delta": delta, "feature_noise": feature_noise}
    (group,) = board_groups(published(cell=make_cell(seed=seed, **about)) for seed in seeds)
    words = shlex.split(command(group))
    typed = dict(itertools.pairwise(words))
    given_seeds = parse_seeds(typed["--seeds"])
    assert seeds == set(range(given_seeds) if isinstance(given_seeds, int) else given_seeds)
    assert float(typed.get("--delta", USUAL.delta)) == delta
    assert float(typed.get("--feature-noise", 0.0)) == feature_noise


def test_methods_with_changed_defaults_are_shown_separately() -> None:
    old = [published(0.5, make_cell(method="m", seed=s), started="2024-01-02T00:00:00Z") for s in range(3)]
    new = [published(0.9, make_cell(method="m", seed=s, params={"lr": 1})) for s in range(3)]
    content = content_of(old + new)
    dataset = make_board(content).datasets[0]
    assert entry(dataset, "m").scores["auroc"]["bags"].values == [90.0, 90.0, 90.0]
    assert entry(dataset, "m (settings of 2024-01-02)").scores["auroc"]["bags"].values == [50.0, 50.0, 50.0]
    assert b"m (settings of 2024-01-02)" in built_files(content, downloads=True)["results.csv"]
    assert {line.result.method_name for line in content.lines.values()} == {"m"}  # what is published stays as it is


def test_engines_are_shown_separately() -> None:
    results = [published(0.5, make_cell(method="net", backend=b)) for b in ("jax", "torch")]
    assert [row.method for row in only(results).rows] == ["net", "net (torch)"]


# -- files -------------------------------------------------------------------------------------------------------------


def test_published_cells_are_compact() -> None:
    curve = [{"bags": 0.1234567890123, "instances": 0.9876543210987}] * 500
    stages = {
        f"iteration-{i}": {
            rule: Selected(report=3, metrics={"auroc": 0.5123, "log_loss": 0.3}) for rule in ("bags", "instances")
        }
        for i in (1, 2)
    }
    params = {f"parameter_{i}": 0.001 * i for i in range(20)}
    full = published(
        0.8123456789012345, make_cell(params=params), history=curve, stages=stages, traceback="x" * 9000,
    )  # fmt: skip
    line = encode_line(compact(full), "0" * 32)
    assert len(line) < 2000
    assert full.history == curve  # the result itself is left as it is
    assert msgspec.json.decode(line)["result"]["stages"]["iteration-1"]["bags"]["metrics"] == {"auroc": 0.5123}


def test_packed_replicates_unpack_to_the_same_values() -> None:
    values = np.r_[np.random.default_rng(0).normal(0.8, 0.01, 127), np.nan]
    back = unpack(pack(values))
    np.testing.assert_allclose(back, values, atol=0.05 / 32000)
    assert np.isnan(back[-1])


def test_markdown_tables_show_auroc_under_two_rules_and_downloads_everything() -> None:
    results = [r for noise in ("none", "high") for r in with_third(grid(CLEAR, noise=noise))]
    content = content_of(results, [reference()])
    assert set(built_files(content)) == {"index.html", "tables/toy.md"}
    files = built_files(content, downloads=True)
    assert set(files) == {"board.json", "results.csv", "seeds.csv", "index.html", "tables/toy.md", "tables/toy.tex"}
    titles = [line for line in files["tables/toy.md"].decode().splitlines() if line.startswith("**toy")]
    assert [title.strip("*") for title in titles] == [
        f"toy{noise} · AUROC % · selection rule: {rule}"
        for noise in ("", " · noise high")
        for rule in ("bags", "instances")
    ]
    latex = files["tables/toy.tex"].decode()
    assert latex.count("% toy · ") == 9  # three rules, each at two noise levels and across them
    assert "selection rule: bag-error" in latex


def test_markdown_tables_join_settings_with_one_column() -> None:
    sets = [f"toy[set={name}]" for name in "abcdefgh"]
    both = [(method, name, value) for name in sets for method, value in (("a", 0.9), ("b", 0.8))]
    results = [
        published(value, make_cell(method=method, dataset_options={"set": name}), dataset_name=name)
        for method, name, value in [*both, ("a", "toy[set=z]", 0.7)]
    ]
    text = built_files(content_of(results))["tables/toy.md"].decode()
    assert text.count("| method |") == 2 * 3  # six and two settings of both methods, one of the first
    assert "| method | [set=a] | [set=b] | [set=c] | [set=d] | [set=e] | [set=f] |" in text
    assert "| a | **90.00** |" in text


def test_latex_tables_of_several_classes_include_accuracy() -> None:
    results = [
        published(
            0.9, make_cell(method=m, seed=0), selected={r: Selected(report=0, metrics=found) for r in EVERY_RESULT}
        )
        for m, found in (("a", {"auroc": 0.9, "accuracy": 0.7}), ("b", {"auroc": 0.8, "accuracy": 0.75}))
    ]
    content = content_of(results)
    metrics = {"auroc": MetricFacts(), "accuracy": MetricFacts()}
    for task, wanted in (("binary", 0), ("multiclass", len(EVERY_RESULT))):
        content.facts = msgspec.structs.replace(
            content.facts, datasets={"toy": DatasetAbout(task=task)}, metrics=metrics
        )
        text = built_files(content, downloads=True)["tables/toy.tex"].decode()
        assert text.count(r"accuracy % · selection rule") == wanted
        assert (r"\textbf{75.00}" in text) == (wanted > 0)


def test_an_empty_board_can_be_built() -> None:
    assert set(built_files(content_of([]))) == {"index.html"}


# -- metrics and rules that plugins bring ------------------------------------------------------------------------------


def with_third(results: list[CellResult], rule: str = "bag-error", value: float = 0.42) -> list[CellResult]:
    """The same results with numbers under a further rule, and under a metric that a plugin brings."""
    for result in results:
        metrics = {**result.selected["bags"].metrics, "auroc": value, "log_loss": 0.5}
        result.selected = {**result.selected, rule: Selected(report=0, metrics=metrics)}
    return results


def test_rules_of_plugins_are_shown_on_the_board(tmp_path: Path) -> None:
    results = [
        *with_third(grid({m: [0.8, 0.81, 0.82] for m in CLEAR})),
        *grid({"old": [0.7, 0.71, 0.72]}),
    ]  # published before the rule was there
    content = content_of(results)
    content.facts.rules = {"bag-error": RuleFacts(title="largest error", summary="of a bag", higher=False)}
    write_files(tmp_path, {**raw_files(content), **built_files(content)})
    again = read_folder(tmp_path)
    assert differences(tmp_path, again) == []
    board = make_board(again)
    assert [rule.name for rule in board.rules] == ["bags", "instances", "bag-error"]
    assert (board.rules[2].title, board.rules[2].higher) == ("largest error", False)
    assert board.rules[0].title == "cross-entropy"  # the folder says nothing of the built-in rules
    (dataset,) = board.datasets
    assert entry(dataset, "good").scores["auroc"]["bag-error"].mean == 42.0
    assert set(entry(dataset, "old").scores["auroc"]) == {"bags", "instances"}
    assert [r.mean_rank for r in dataset.ranks["auroc"]["bag-error"]] == [2.0, 2.0, 2.0, None]
    page = built_files(again)["index.html"].decode()
    assert "AUROC % · selection rule bag-error · noise none" in page
    assert "largest error" in page


def test_on_request_rules_are_not_shown(tmp_path: Path) -> None:
    content = content_of(with_third(grid({m: [0.8, 0.81, 0.82] for m in CLEAR}), rule="counts"))
    write_files(tmp_path, {**raw_files(content), **built_files(content)})
    again = read_folder(tmp_path)
    assert all("counts" in result.selected for result in (line.result for line in again.lines.values()))
    assert [rule.name for rule in make_board(again).rules] == ["bags", "instances"]
    assert "selection rule: counts" not in built_files(again, downloads=True)["tables/toy.tex"].decode()


def test_rules_are_shown_only_for_datasets_that_have_them() -> None:
    results = [*with_third(grid(CLEAR)), *grid(CLEAR, dataset="other")]
    files = built_files(content_of(results), downloads=True)
    assert "bag-error" in files["tables/toy.tex"].decode()
    assert "bag-error" not in files["tables/other.tex"].decode()
    lines = files["results.csv"].decode().splitlines()
    assert {line.split(",")[4] for line in lines if line.startswith("other,")} == {"bags", "instances", ""}


def test_every_metric_of_the_results_is_on_the_board() -> None:
    losses = {"good": 0.3, "fair": 0.2, "poor": 0.9}
    results = grid(CLEAR)
    for result in results:
        for chosen in result.selected.values():
            chosen.metrics = {**chosen.metrics, "log_loss": losses[result.cell.method], "depth": 0.25, "unknown": 1.0}
    content = content_of(results)
    content.facts.metrics["depth"] = MetricFacts(higher=False, percent=True, title="mean depth")
    board = make_board(content)
    assert [m.name for m in board.metrics] == ["auroc", "log_loss", "depth"]  # nobody says which end of unknown wins
    assert [(m.title, m.higher, m.percent, m.digits) for m in board.metrics[1:]] == [
        ("log loss", False, False, 3),
        ("mean depth", False, True, 2),
    ]
    (dataset,) = board.datasets
    assert dataset.metrics == ["auroc", "log_loss", "depth"]
    best = {m: entry(dataset, m).scores["log_loss"]["bags"] for m in CLEAR}
    assert [(s.mean, s.best, s.second) for s in best.values()] == [
        (0.3, False, True),
        (0.2, True, False),
        (0.9, False, False),
    ]
    assert all(score.separated is None for score in best.values())
    assert {claim.metric for claim in dataset.claims} == {"auroc"}
    assert [r.method for r in dataset.ranks["log_loss"]["bags"]] == ["fair", "good", "poor"]
    assert entry(dataset, "good").scores["depth"]["bags"].mean == 25.0
