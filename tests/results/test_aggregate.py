"""From cells to means over seeds: a missing cell stays a status, never a number."""

from __future__ import annotations

import statistics

import pytest
from helpers import make_cell, make_plan, make_result, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench.contracts.cell import Cell
from llpbench.contracts.result import FAILURES, STATUSES, Selected
from llpbench.contracts.specs import MetricSpec, Reference
from llpbench.plugins.builtin import llpbench_metrics
from llpbench.results.metric_style import MetricStyle, known_styles
from llpbench.results.references import with_references
from llpbench.results.table import Row, aggregate, group_cells, make_rows, mean_sd, value_of

AUROC = known_styles(llpbench_metrics())["auroc"]


def seeds(n: int, **facts: object) -> list:
    return [make_cell(seed=s, **facts) for s in range(n)]


def rows_of(cells: list, results: list, **arguments: object) -> list[Row]:
    facts = {"metrics": [AUROC], "rules": ["bags"], **arguments}
    return aggregate([make_plan(c) for c in cells], results, **facts)


def test_mean_and_sd_over_seeds_in_percent() -> None:
    cells = seeds(3)
    results = [make_result(c, v) for c, v in zip(cells, (0.8, 0.9, 0.85), strict=True)]
    bags, instances = rows_of(cells, results, rules=("bags", "instances"))
    assert bags.mean == pytest.approx(85.0)
    assert bags.sd == pytest.approx(5.0)  # n - 1
    assert (bags.seeds, bags.planned, bags.status, bags.unit) == (3, 3, "ok", "%")
    assert instances.mean == pytest.approx(95.0)
    assert (bags.rule, instances.rule) == ("bags", "instances")


@quick
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=8))
def test_mean_and_sd_are_those_of_the_textbook(values: list[float]) -> None:
    mean, sd = mean_sd(values)
    assert mean == pytest.approx(statistics.fmean(values), abs=1e-9)
    assert sd == pytest.approx(statistics.stdev(values), abs=1e-6)


def test_too_few_values_have_no_mean_or_no_sd() -> None:
    assert mean_sd([]) == (None, None)
    assert mean_sd([3.0]) == (3.0, None)


@pytest.mark.parametrize("status", [s for s in STATUSES if s != "ok"])
def test_unfinished_cell_has_status_and_reason(status: str) -> None:
    cells = seeds(2)
    broken = [make_result(c, status=status, reason="because") for c in cells]
    for result in broken:
        result.selected = {"bags": Selected(report=0, metrics={"auroc": 0.99})}  # whatever a file may hold
    (row,) = rows_of(cells, broken)
    assert (row.mean, row.sd, row.seeds, row.status) == (None, None, 0, status)
    assert row.reasons == ["because"]
    assert row.values == []


def test_cell_without_a_result_is_missing() -> None:
    (row,) = rows_of(seeds(3), [])
    assert (row.mean, row.seeds, row.planned, row.status) == (None, 0, 3, "missing")


def test_metric_without_a_value_is_undefined() -> None:
    cells = seeds(1)
    (row,) = rows_of(cells, [make_result(cells[0], None)])
    assert (row.mean, row.status) == (None, "undefined")
    (row,) = rows_of(cells, [make_result(cells[0])], metrics=[MetricStyle("a_plugins_metric")])
    assert (row.mean, row.status) == (None, "undefined")


def test_row_with_some_seeds_is_partial_and_names_the_commonest_reason() -> None:
    cells = seeds(4)
    some = [make_result(cells[0], 0.7), make_result(cells[1], status="timeout", reason="1 h")]
    (row,) = rows_of(cells, some)
    assert (row.status, row.seeds, row.planned) == ("partial", 1, 4)
    assert (row.mean, row.sd) == (pytest.approx(70.0), None)
    (row,) = rows_of(cells, [make_result(c, status="memory") for c in cells[:3]])
    assert row.status == "memory"


def test_settings_are_kept_apart() -> None:
    cells = [
        make_cell(),
        make_cell(bag_size=16),
        make_cell(noise="high"),
        make_cell(method="other"),
        make_cell(dataset="second"),
    ]
    rows = rows_of(cells, [make_result(c, i / 10) for i, c in enumerate(cells)])
    assert [row.mean for row in rows] == [pytest.approx(10.0 * i) for i in range(5)]
    assert all(row.planned == 1 for row in rows)


def test_engines_of_one_method_are_never_averaged() -> None:
    cells = [*seeds(2, backend="jax"), *seeds(2, backend="torch"), *seeds(2, method="plain")]
    rows = rows_of(cells, [make_result(c) for c in cells])
    assert [(row.method, row.planned) for row in rows] == [("guess", 2), ("guess (torch)", 2), ("plain", 2)]
    (alone,) = rows_of(cells[2:4], [])
    assert alone.method == "guess"


def test_name_stands_for_the_backend_of_most_cells() -> None:
    cells = [*seeds(4, backend="torch"), make_cell(backend="jax"), *seeds(2, dataset="second", backend="jax")]
    names = [(row.dataset, row.method, row.planned) for row in rows_of(cells, [])]
    assert names == [("toy", "guess", 4), ("toy", "guess (jax)", 1), ("second", "guess (jax)", 2)]


def test_settings_of_different_dates_are_never_averaged() -> None:
    old, new = seeds(2), seeds(2, params={"lr": 0.1})
    results = [make_result(c, 0.5, started="2024-01-02T00:00:00Z") for c in old]
    results += [make_result(c, 0.9, started="2025-01-02T00:00:00Z") for c in new]
    first, second = rows_of([*old, *new], results)
    assert (first.method, first.mean, first.settings_of) == ("guess (settings of 2024-01-02)", 50.0, "2024-01-02")
    assert (second.method, second.mean, second.settings_of) == ("guess", 90.0, "")
    (row,) = rows_of([make_cell(seed=0, params={"lr": 1}), make_cell(seed=1, params={"lr": 2})], [])
    assert row.planned == 2  # tuned for each seed: no seed is there twice


@quick
@given(st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=2, max_size=4), st.booleans())
def test_superseded_settings_of_one_day_are_never_averaged(kinds: list[set[int]], across_bag_sizes: bool) -> None:
    lrs = [0.1 * (n + 1) for n in range(len(kinds))]
    sizes = (8, 16) if across_bag_sizes else (8,)
    old = [
        make_cell(seed=s, bag_size=b, params={"lr": lr})
        for lr, of_kind in zip(lrs, kinds, strict=True)
        for b in sizes
        for s in of_kind
        if b == 8 or lr == lrs[0]
    ]
    new = [make_cell(seed=s, bag_size=b, params={"lr": 9.0}) for b in sizes for s in range(4)]
    results = [make_result(c, c.params["lr"], started="2024-01-02T00:00:00Z") for c in old]
    results += [make_result(c, 0.9, started="2025-01-02T00:00:00Z") for c in new]
    rows = rows_of([*old, *new], results)
    lr_of = {cell.id: cell.params["lr"] for cell in [*old, *new]}
    settings = [{lr_of[i] for i in row.cell_ids} for row in rows]
    assert all(len(of_row) == 1 for of_row in settings)
    by_name = {(row.method, *of_row) for row, of_row in zip(rows, settings, strict=True)}
    assert len({name for name, _ in by_name}) == len(by_name) == len(kinds) + 1  # one name for one kind, at any size
    assert [row.method for row in rows if row.params["lr"] == 9.0] == ["guess"] * len(sizes)


def test_missing_cell_does_not_date_settings() -> None:
    old, new = seeds(3, params={"lr": 0.1}), seeds(3, params={"lr": 0.3})
    results = [make_result(c, 0.5, started="2024-01-02T00:00:00Z") for c in old[:2]]
    results += [make_result(c, 0.9, started="2025-01-02T00:00:00Z") for c in new]
    first, second = rows_of([*old, *new], results)
    assert (first.method, first.status) == ("guess (settings of 2024-01-02)", "partial")
    assert (second.method, second.params) == ("guess", {"lr": 0.3})
    planned = seeds(3, params={"lr": 0.5})  # settings of which no cell has run yet are the newest
    *_, third = rows_of([*old, *new, *planned], results)
    assert (third.method, third.status) == ("guess", "missing")


def test_trials_of_a_search_join_no_row_of_a_run() -> None:
    cells, trials = seeds(2), seeds(2, tuning=True)
    results = [make_result(c, 0.8) for c in cells] + [make_result(c, 0.2) for c in trials]
    (row,) = rows_of([*cells, *trials], results)
    assert (row.mean, row.planned, row.cell_ids) == (pytest.approx(80.0), 2, [c.id for c in cells])
    (alone,) = rows_of(trials, results)  # the folder of a search can still be looked at
    assert alone.cell_ids == [c.id for c in trials]


def test_rows_have_noise_options_and_values_as_fields() -> None:
    cells = seeds(3, noise="high", delta=1e-6, mechanism="analytic", backend="jax", params={"lr": 0.1, "epochs": 5})
    plans = [make_plan(c, method_name="guess[lr=0.1;preset=paper]") for c in cells]
    results = [make_result(cells[0], 0.5), make_result(cells[2], 0.7)]
    (row,) = aggregate(plans, results, [AUROC], ["bags"])
    assert (row.epsilon, row.delta, row.mechanism) == (1.0, 1e-6, "analytic")
    assert (row.base_dataset, row.base_method, row.backend) == ("toy", "guess", "jax")
    assert (row.options, row.params) == ({"lr": "0.1", "preset": "paper"}, {"lr": 0.1, "epochs": 5})
    assert (row.value_seeds, row.values) == ([0, 2], [pytest.approx(50.0), pytest.approx(70.0)])
    assert row.cell_ids == [c.id for c in cells]


def test_cell_ids_are_hashed_once_for_all_metrics_and_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    cells, hashed, one = seeds(3), [], Cell.id.fget
    monkeypatch.setattr(Cell, "id", property(lambda cell: hashed.append(cell) or one(cell)))
    groups = group_cells([make_plan(c) for c in cells], [make_result(c) for c in cells])
    hashed.clear()
    rows = make_rows(groups, [AUROC, MetricStyle("brier")], ["bags", "instances"])
    assert [row.cell_ids for row in rows] == [[one(c) for c in cells]] * 4
    assert len(hashed) == 3


def test_deltas_of_one_noise_level_are_never_averaged() -> None:
    cells = [make_cell(noise="high"), make_cell(noise="high", delta=1e-6)]
    rows = rows_of(cells, [make_result(c) for c in cells])
    assert [(row.noise, row.planned) for row in rows] == [("high", 1), ("high, delta 1e-06", 1)]


def test_bound_is_repeated_for_every_bag_size_and_noise_it_bounds() -> None:
    bound = [make_cell(method="bound", bag_size=1, seed=s) for s in range(2)]
    cells = [make_cell(bag_size=b, noise=n) for b in (8, 32) for n in ("none", "high")]
    plans = [make_plan(c) for c in cells] + [make_plan(c, oracle=True) for c in bound]
    results = [make_result(c, 0.9) for c in bound]
    rows = [r for r in aggregate(plans, results, [AUROC], ["bags"]) if r.oracle]
    assert {(r.bag_size, r.noise) for r in rows} == {(b, n) for b in (8, 32) for n in ("none", "high")}
    assert all(r.mean == pytest.approx(90.0) and r.planned == 2 and r.method == "bound" for r in rows)


def test_bound_bounds_every_way_of_forming_bags_but_no_other_data() -> None:
    bound = make_cell(method="bound", bag_size=1)
    plans = [
        make_plan(make_cell(), dataset="toy"),
        make_plan(make_cell(scheme="by-feature"), dataset="toy, by-feature"),
        make_plan(make_cell(dataset_options={"encoding": "ordinal"}), dataset="toy[encoding=ordinal]"),
        make_plan(make_cell(feature_noise=0.1), dataset="toy, feature noise 0.1"),
        make_plan(bound, oracle=True, dataset="toy"),
    ]
    rows = [r for r in aggregate(plans, [make_result(bound)], [AUROC], ["bags"]) if r.oracle]
    assert [(r.dataset, r.bag_size) for r in rows] == [("toy", 8), ("toy, by-feature", 8)]


def test_bound_alone_is_shown_once() -> None:
    bound = make_cell(method="bound", bag_size=1)
    (row,) = aggregate([make_plan(bound, oracle=True)], [make_result(bound)], [AUROC], ["bags"])
    assert (row.bag_size, row.noise) == (1, "none")


def test_arguments_may_be_iterators() -> None:
    cells = seeds(2, bag_size=8) + seeds(2, bag_size=9)
    rows = aggregate((make_plan(c) for c in cells), (make_result(c) for c in cells), iter([AUROC]), iter(["bags"]))
    assert [row.bag_size for row in rows] == [8, 9]


def test_costs_are_read_from_the_result_itself() -> None:
    result = make_result(fit_seconds=1.5, peak_memory_mb=200.0)
    assert value_of(result, "fit_seconds", "bags") == 1.5
    assert value_of(result, "peak_memory_mb", "instances") == 200.0
    assert value_of(result, "auroc", "no such rule") is None
    for status in FAILURES:
        assert value_of(make_result(status=status, fit_seconds=9.0), "fit_seconds", "bags") is None


def test_metric_style_of_known_metrics() -> None:
    assert (AUROC.title, AUROC.scale) == ("AUROC %", 100.0)
    styles = known_styles([MetricSpec(name="half_life", factory="a:b", percent=False, higher_is_better=False)])
    assert (styles["half_life"].title, styles["half_life"].digits) == ("half life", 3)
    assert {"bag_error", "fit_seconds", "tuning_seconds", "peak_memory_mb"} == set(styles) - {"half_life"}
    seconds = MetricStyle("fit_seconds", higher_is_better=False, percent=False)
    assert (seconds.title, seconds.scale) == ("fit_seconds", 1.0)


@pytest.mark.parametrize("name", ["toy[file=sample]", "toy, own-bags", "toy, feature noise 0.1"])
def test_another_task_of_a_dataset_has_no_published_values(name: str) -> None:
    """A sample of a file is not what a paper reports on."""
    reference = Reference(source="S", dataset="toy", title="T", method="guess", metric="auroc", mean=0.5, rule="bags")
    for dataset, paper in ((name, None), ("toy", pytest.approx(50.0))):
        rows = aggregate([make_plan(make_cell(), dataset=dataset)], [make_result(make_cell())], [AUROC], ["bags"])
        assert [row.paper for row in with_references(rows, [reference], 100.0)] == [paper]
