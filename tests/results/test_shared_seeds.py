"""Equal seeds: what is compared is compared on the same seeds, and what cannot be is shown without a mark."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from board_samples import content_of, grid, published
from helpers import make_cell, make_plan, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files
from llpbench.board.built.claims import compare_best, mark_best
from llpbench.board.content.facts import MethodAbout
from llpbench.board.maths.statistics import LEVEL, difference_interval, holm
from llpbench.board.schema import BoardDataset, Score
from llpbench.contracts.result import CellResult
from llpbench.report.tables import build_tables, to_markdown
from llpbench.results.metric_style import MetricStyle
from llpbench.results.shared import Roles, seeds_note, shared_keys, shared_means, unbeaten_control, usual_number
from llpbench.results.table import aggregate, value_of

columns = st.dictionaries(
    st.sampled_from("abcdefg"),
    st.dictionaries(st.integers(0, 9), st.integers(0, 20).map(float), max_size=8),
    min_size=1,
)


# -- the rule ----------------------------------------------------------------------------------------------------------


@quick
@given(columns)
def test_compared_methods_have_all_compared_seeds(values: dict[str, dict[int, float]]) -> None:
    shared = shared_keys({m: list(v) for m, v in values.items()})
    counted = [m for m in values if values[m]]
    for method in counted:
        assert (method in shared.methods) == (bool(shared.keys) and shared.keys <= set(values[method]))
    for seed in range(10):
        have = sum(seed in values[m] for m in counted)
        assert (seed in shared.keys) == (2 * have > len(counted))
    means = shared_means(values)
    assert set(means) == set(shared.methods)
    for method, mean in means.items():
        assert mean == pytest.approx(np.mean([values[method][s] for s in shared.keys]))


@quick
@given(columns, st.integers(10, 40), st.floats(-1e3, 1e3))
def test_extra_seed_of_one_method_is_ignored(values: dict[str, dict[int, float]], seed: int, value: float) -> None:
    """Nobody rises or falls by seeds that the others do not have."""
    before = shared_means(values)
    if sum(bool(v) for v in values.values()) < 2:
        return
    for method in [m for m in values if values[m]]:
        assert shared_means({**values, method: {**values[method], seed: value}}) == before


@quick
@given(columns)
def test_method_without_a_usual_seed_is_not_compared(values: dict[str, dict[int, float]]) -> None:
    """Of three or more methods with all usual seeds, one that hides a usual seed is not compared any more."""
    shared = shared_keys({m: list(v) for m, v in values.items()})
    others = [m for m in values if values[m]]
    for method in shared.methods:
        for seed in shared.keys:
            have = sum(seed in values[m] for m in others)
            less = {s: v for s, v in values[method].items() if s != seed}
            if 2 * (have - 1) > len(others) and less:
                assert method not in shared_means({**values, method: less})


@quick
@given(columns, st.randoms(use_true_random=False))
def test_order_does_not_matter(values: dict[str, dict[int, float]], rng: random.Random) -> None:
    names = list(values)
    rng.shuffle(names)
    assert shared_means({m: dict(sorted(values[m].items(), reverse=True)) for m in names}) == shared_means(values)


@quick
@given(columns, st.integers(1, 30), st.sets(st.integers(0, 9), min_size=1))
def test_variants_share_the_vote_of_their_method(
    values: dict[str, dict[int, float]], number: int, seeds: set[int]
) -> None:
    """However many variants of one method there are, they weigh no more than one method with some of the seeds."""
    flood = {f"a[lr={i}]": dict.fromkeys(seeds, 1.0) for i in range(number)}
    everything = {**values, **flood}
    base = {m: m[0] for m in everything}
    usual = shared_keys({m: list(v) for m, v in everything.items()}, base).keys
    others = [m for m in values if m != "a" and values[m]]
    for seed in range(10):
        have = sum(seed in values[m] for m in others)
        if 2 * have > len(others) + 1:
            assert seed in usual
        if 2 * (have + 1) <= len(others) + 1:
            assert seed not in usual


@quick
@given(columns, st.sets(st.sampled_from("abcdefg")))
def test_controls_have_no_vote(values: dict[str, dict[int, float]], controls: set[str]) -> None:
    """Which seeds are compared, and the means of rivals, are as if no control were there; controls are held to them."""
    rivals = {m: v for m, v in values.items() if m not in controls}
    keys = shared_keys({m: list(v) for m, v in rivals.items()}).keys
    found = shared_means(values, roles=Roles(controls=frozenset(controls)))
    assert {m: mean for m, mean in found.items() if m not in controls} == shared_means(rivals)
    for control in controls & set(values):
        assert (control in found) == (bool(keys) and keys <= set(values[control]))


@quick
@given(columns, st.dictionaries(st.sampled_from("tuvwxyz"), st.dictionaries(st.integers(0, 9), st.just(1.0))))
def test_guests_have_no_vote_on_seeds(values: dict[str, dict[int, float]], guests: dict[str, dict[int, float]]) -> None:
    """However many methods somebody hands in, the others are compared on the same seeds, by the same means."""
    roles = Roles(guests=frozenset(guests))
    before, after = shared_means(values), shared_means({**values, **guests}, roles=roles)
    if any(values.values()):
        assert {m: mean for m, mean in after.items() if m not in guests} == before
    else:  # where there are only guests they decide among themselves
        assert after == shared_means(guests)


def test_many_guest_methods_do_not_change_ranks() -> None:
    """Nineteen methods of one package with two cells each are nineteen rows, and nothing else."""
    results = grid({"a": [0.9] * 5, "b": [0.8] * 5, "c": [0.7] * 5})
    flood = [published(0.95, make_cell(method=f"guest{i}", seed=seed)) for i in range(19) for seed in (3, 4)]

    def seen(guests: list[CellResult]) -> object:
        content = content_of([*results, *guests])
        for i in range(19 if guests else 0):
            content.facts.methods[f"guest{i}"] = MethodAbout(origin="shop 1.0")
        board = make_board(content)
        (shown,) = board.datasets
        marks = {m: (s.best, s.second, s.shared) for m, s in scores(shown).items() if m in ("a", "b", "c")}
        (claim,) = [c for c in shown.claims if (c.metric, c.rule) == ("auroc", "bags")]
        ranks = [(r.method, r.mean_rank) for r in shown.ranks["auroc"]["bags"] if r.mean_rank is not None]
        overall = [[(row.method, row.rank) for row in found.rows] for found in board.overall]
        return marks, claim, ranks, overall

    assert seen(flood) == seen([])


@pytest.mark.parametrize(
    ("means", "higher", "found"),
    [
        ({"a": 0.8, "one": 0.7, "two": 0.9}, True, "two"),
        ({"a": 0.8, "one": 0.7, "two": 0.8}, True, "two"),
        ({"a": 0.8, "one": 0.7, "two": 0.6}, True, None),
        ({"a": 0.8, "one": 0.7, "two": 0.6}, False, "two"),
        ({"a": 0.5, "one": 0.7, "two": 0.6}, False, None),
        ({"one": 0.7, "two": 0.6}, True, None),
        ({"a": 0.5}, True, None),
    ],
)
def test_unbeaten_control_is_named(means: dict[str, float], higher: bool, found: str | None) -> None:
    assert unbeaten_control(means, ("one", "two"), higher) == found


def test_controls_are_not_marked_or_ranked() -> None:
    """On Marketing 512 the best single column, chosen with labels, has a higher mean than any method."""
    results = grid({"yardstick": [0.9] * 9, "a": [0.8] * 3, "b": [0.7] * 3})
    content = content_of(results)
    content.facts.methods["yardstick"] = MethodAbout(control=True)
    (shown,) = make_board(content).datasets
    rows = {row.method: row.cells["none"]["8"].scores["auroc"]["bags"] for row in shown.rows}
    assert [(m, s.best, s.second) for m, s in sorted(rows.items())] == [
        ("a", True, False),
        ("b", False, True),
        ("yardstick", False, False),
    ]
    assert rows["yardstick"].shared == pytest.approx(90.0)
    (claim,) = [c for c in shown.claims if (c.metric, c.rule) == ("auroc", "bags")]
    assert (claim.best, claim.second, claim.rivals) == ("a", "b", 1)
    assert [r.method for r in shown.ranks["auroc"]["bags"]] == ["a", "b"]
    assert shown.pareto["auroc"]["bags"]["8"] == ["a"]
    assert claim.text.endswith(" No method is better than the control yardstick.")
    text = built_files(content)["tables/toy.md"].decode()
    shown_lines = [line for line in text.splitlines() if line.startswith(("| a ", "| b ", "| y"))]
    numbers = [line.rsplit(" | ", 1)[-1].strip(" |") for line in shown_lines]
    assert numbers[:3] == ["**80.00 (0.00)**", "<u>70.00 (0.00)</u>", "90.00 (0.00) [9 seeds]"]
    assert "get no mark: yardstick" in text
    assert "no method is better than the control yardstick: bag 8" in text


def test_many_variants_do_not_change_columns() -> None:
    results = grid({"a": [0.9] * 5, "b": [0.8] * 5, "c": [0.7] * 5})
    flood = [
        published(0.5, make_cell(method="c", seed=seed, params={"lr": float(i)}), method_name=f"c[lr={i}]")
        for i in range(1, 30)
        for seed in (7, 8)
    ]
    shown = make_board(content_of([*results, *flood])).datasets[0]
    (claim,) = [c for c in shown.claims if (c.metric, c.rule) == ("auroc", "bags")]
    assert claim.seeds == [0, 1, 2, 3, 4]
    assert [r.method for r in shown.ranks["auroc"]["bags"][:3]] == ["a", "b", "c"]


def test_spread_of_a_shared_mean_is_that_of_its_seeds() -> None:
    more = [0.8, 0.7, 0.9, 0.1, 0.2]
    results = grid({"a": [0.9] * 3, "b": [0.8] * 3, "c": more})
    rows = {row.method: row for row in make_board(content_of(results)).datasets[0].rows}
    score = rows["c"].cells["none"]["8"].scores["auroc"]["bags"]
    assert score.shared == pytest.approx(80.0)
    assert score.shared_sd == pytest.approx(100 * np.std(more[:3], ddof=1))
    assert rows["a"].cells["none"]["8"].scores["auroc"]["bags"].shared_sd is None


def test_seeds_note_covers_uncompared_rows_and_bounds() -> None:
    results = grid({"a": [0.9] * 3, "b": [0.8] * 3})
    tuned = make_cell(method="a", preset="tuned-instances")
    results.append(published(0.95, tuned, method_name="a[params=tuned-instances]"))
    results += [published(0.99, make_cell(method="top", seed=s, bag_size=1), oracle=True) for s in range(5)]
    shown = make_board(content_of(results)).datasets[0]
    row = next(row for row in shown.rows if row.method == "a[params=tuned-instances]")
    assert row.cells["none"]["8"].scores["auroc"]["bags"].note == "1 seed"
    assert shown.bounds["auroc"]["bags"].note == "5 seeds"
    assert "top 99.00 (0.00) [5 seeds]" in built_files(content_of(results))["tables/toy.md"].decode()


def test_methods_without_common_seeds_are_not_compared() -> None:
    assert shared_means({"a": {0: 1.0}, "b": {1: 2.0}}) == {}
    assert shared_means({}) == {}


@pytest.mark.parametrize(
    ("seeds", "usual", "note"),
    [
        ([0, 1, 2], 3, ""),
        ([0], 3, "1 seed"),
        (range(10), 3, "10 seeds"),
        ([3, 11, 27], 3, "seeds 3, 11, 27 of 28"),
        ([5], 1, "seed 5 of 6"),
        (range(1, 20, 2), 3, "seeds 1, 3, 5, 7, 9, 11 and 4 more of 20"),
        (range(100, 108), 3, "seeds 100-107"),
        ([3, 4], 2, "seeds 3, 4 of 5"),
        ([], 3, ""),
    ],
)
def test_seeds_note_beside_a_mean(seeds: list[int], usual: int, note: str) -> None:
    assert seeds_note(seeds, usual) == note


def test_usual_number_of_seeds() -> None:
    assert usual_number([3, 3, 10, 0, 0, 0]) == 3
    assert usual_number([10, 3]) == 3
    assert usual_number([]) == 0


# -- tables and boards -------------------------------------------------------------------------------------------------

LUCKY = {"steady": [0.80, 0.80, 0.80], "other": [0.70, 0.70, 0.70], "keen": [0.79, 0.79, 0.79, *[0.99] * 7]}


def only(results: list[CellResult]) -> BoardDataset:
    (dataset,) = make_board(content_of(results)).datasets
    return dataset


def scores(dataset: BoardDataset, rule: str = "bags") -> dict[str, Score]:
    return {row.method: row.cells["none"]["8"].scores["auroc"][rule] for row in dataset.rows}


def test_easy_extra_seeds_do_not_win() -> None:
    found = scores(only(grid(LUCKY)))
    assert (found["keen"].mean or 0) > (found["steady"].mean or 0)
    assert [m for m, s in found.items() if s.best] == ["steady"]
    assert (found["keen"].shared, found["keen"].note, found["keen"].second) == (79.0, "10 seeds", True)
    assert (found["steady"].note, found["steady"].shared) == ("", 80.0)
    dataset = only(grid(LUCKY))
    assert dataset.claims[0].seeds == [0, 1, 2]
    assert dataset.ranks["auroc"]["bags"][0].method == "steady"
    assert [r.cells for r in dataset.ranks["auroc"]["bags"]] == [3, 3, 3]
    assert dataset.pareto["auroc"]["bags"]["8"] == ["steady"]


def test_picked_seeds_are_shown_but_not_ranked() -> None:
    picked = [published(0.99, make_cell(method="picker", seed=s)) for s in (3, 11, 27)]
    content = content_of([*grid({"a": [0.8] * 3, "b": [0.7] * 3, "c": [0.6] * 3}), *picked])
    (dataset,) = make_board(content).datasets
    found = scores(dataset)["picker"]
    assert (found.note, found.shared, found.best) == ("seeds 3, 11, 27 of 28", None, False)
    assert next(r for r in dataset.ranks["auroc"]["bags"] if r.method == "picker").mean_rank is None
    files = built_files(content, downloads=True)
    for name in ("index.html", "tables/toy.md", "board.json"):
        assert b"seeds 3, 11, 27 of 28" in files[name]
    assert b"not compared, for lack of some of them: picker" in files["tables/toy.md"]


def test_noise_levels_are_read_on_the_seeds_that_methods_have_at_all_of_them() -> None:
    results = grid({"a": [0.80, 0.82, 0.84, 0.99, 0.99], "b": [0.7] * 5, "c": [0.6] * 5, "late": [0.9, 0.8, 0.1]})
    for noise in ("medium", "high"):
        results += grid({"a": [0.70, 0.72, 0.74], "b": [0.6] * 3, "c": [0.5] * 5, "late": [0.8]}, noise=noise)
    results += grid({"alone": [0.9] * 5})
    results += [
        published(0.9, make_cell(method="apart", seed=7)),
        published(0.9, make_cell(method="apart", noise="high")),
    ]
    results += grid({"a": [0.5] * 5}, bag_size=32)
    dataset = only(results)
    rows = {row.method: row for row in dataset.rows}

    def level(method: str, noise: str = "none", rule: str = "bags", bag: str = "8") -> tuple[float | None, str] | None:
        found = rows[method].cells[noise][bag].scores["auroc"][rule].at_all_noises
        return None if found is None else (found.mean, found.note)

    assert (level("a"), level("a", rule="instances")) == ((82.0, "seeds 0-2"), (92.0, "seeds 0-2"))
    assert level("a", "high") is None  # these are its seeds
    assert level("c") == (60.0, "seeds 0-2")  # the same as everybody, though it has more at every level
    assert level("c", "high") == (50.0, "seeds 0-2")
    assert level("late") == (90.0, "seed 0")
    assert level("late", "high") is None
    assert level("alone") == (90.0, "seeds 0-2")
    assert level("apart") == level("apart", "high") == (None, "no shared seed")
    assert level("a", bag="32") is None  # nobody has noise there


def test_tables_of_a_run_use_shared_seeds() -> None:
    results = grid(LUCKY)
    style = MetricStyle("auroc", words="AUROC")
    plans = [make_plan(result.cell) for result in results]
    (table,) = build_tables(aggregate(plans, results, [style], ["bags"]), style)
    assert {m: table.entries[m, 8].mark for m in LUCKY} == {"steady": "best", "other": "", "keen": "second"}
    assert table.entries["keen", 8].text.endswith("[10 seeds, shared 79.00]")
    assert table.entries["steady", 8].text == "80.00 (0.00)"
    assert "seeds that methods share (0, 1, 2)" in to_markdown([table])


def test_marks_of_a_board_use_shared_seeds() -> None:
    """Any board: best, second and claims are what a plain computation over common seeds gives."""
    rng = random.Random(3)
    for _ in range(20):
        values = {m: [rng.random() for _ in range(rng.choice((2, 3, 3, 5)))] for m in "abcde"}
        results = grid(values)
        dataset = only(results)
        usual = [s for s in range(5) if sum(len(v) > s for v in values.values()) > 2.5]
        means = {m: sum(v[s] for s in usual) / len(usual) for m, v in values.items() if len(v) > usual[-1]}
        best = max(means, key=lambda m: means[m])
        assert [m for m, s in scores(dataset).items() if s.best] == [best]
        board = json.loads(built_files(content_of(results), downloads=True)["board.json"])
        assert board["datasets"][0]["claims"][0]["best"] == best


# -- claims ------------------------------------------------------------------------------------------------------------


def column_of(values: np.ndarray) -> dict[str, list[CellResult]]:
    rows = {"train": 900, "valid": 100, "test": 111}
    return {
        f"m{i}": [published(0.5 + v / 100, make_cell(method=f"m{i}", seed=s), rows=rows) for s, v in enumerate(of)]
        for i, of in enumerate(values)
    }


def flagged(values: np.ndarray) -> tuple[bool, bool]:
    """Whether some rival is called separated from the best: now, and without any correction."""
    column = column_of(values)
    found = {m: {r.cell.seed: value_of(r, "auroc", "bags") or 0.0 for r in of} for m, of in column.items()}
    marked = {m: Score(mean=None, sd=None, seeds=3, values=[]) for m in column}
    ranked = mark_best(marked, shared_means(found), higher=True)
    assert compare_best(ranked, column, marked, "bags", {}, higher=True) is not None
    best = values[int(ranked[0][1:])]
    plain = [difference_interval((best - values[int(m[1:])]).tolist()).separated for m in ranked[1:]]
    return any(marked[m].separated for m in ranked[1:]), any(plain)


@pytest.mark.parametrize("seeds", [3, 5])
def test_equal_methods_are_rarely_distinguished(seeds: int) -> None:
    """Some rival is flagged in about one column of twenty; without correction in more than half of all columns."""
    rng = np.random.default_rng(0)
    trials = 300
    now, before = np.sum([flagged(rng.normal(size=(12, seeds))) for _ in range(trials)], axis=0) / trials
    assert now <= 0.10
    assert before > 0.5


def test_overlapping_splits_do_not_make_equal_methods_differ() -> None:
    """Seeds whose splits share rows: their differences have a common part that more seeds do not average away.

    With n_test / n_train = 1/9 as correlation of the differences, the uncorrected interval of two equal methods misses
    zero far more often than one time in twenty; the corrected one does not.
    """
    rng = np.random.default_rng(1)
    share, seeds, trials = 0.1, 10, 2000
    missed = np.zeros(2)
    for _ in range(trials):
        d = np.sqrt(share) * rng.normal() + np.sqrt(1 - share) * rng.normal(size=seeds)
        for i, overlap in enumerate((0.0, share / (1 - share))):
            missed[i] += bool(difference_interval(d.tolist(), overlap=overlap).separated)
    plain, corrected = missed / trials
    assert plain > 0.10
    assert corrected < 0.07


def test_same_test_rows_at_every_seed_do_not_average_out() -> None:
    own = difference_interval([1.0, 1.0, 1.0], [0.09] * 3)
    same = difference_interval([1.0, 1.0, 1.0], [0.09] * 3, same_rows=True)
    assert own.high is not None
    assert same.high is not None
    assert same.high - 1 == pytest.approx((own.high - 1) * 3**0.5)


def test_holm_by_hand() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": None}) == {
        "a": pytest.approx(0.03),
        "b": pytest.approx(0.06),
        "c": pytest.approx(0.06),
        "d": None,
    }
    assert holm({"a": 0.9, "b": 0.8}) == {"a": 1.0, "b": 1.0}
    assert holm({}) == {}


@quick
@given(st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 1), min_size=1))
def test_holm_lies_between_no_correction_and_bonferroni(p: dict[str, float]) -> None:
    found = holm(p)
    for name, value in p.items():
        corrected = found[name]
        assert corrected is not None
        assert value <= corrected <= min(1.0, value * len(p)) or value == corrected
    ordered = sorted(p, key=lambda name: p[name])
    assert [found[n] for n in ordered] == sorted(found[n] for n in ordered)  # type: ignore[type-var]


def test_claims_are_harder_against_many_methods() -> None:
    close = {"a": [0.900, 0.905, 0.910], "b": [0.880, 0.888, 0.886]}
    alone = only(grid(close)).claims[0]
    rivals = {f"r{i}": [0.87 + i / 1000, 0.889 - i / 900, 0.88 + i / 800] for i in range(9)}
    crowded = only(grid({**close, **rivals})).claims[0]
    assert (alone.separated, alone.rivals) == (True, 1)
    assert crowded.rivals == 10
    assert crowded.separated is False
    assert (crowded.p or 0) > LEVEL >= (alone.p or 1)
    assert "among 10 rivals" in crowded.text
