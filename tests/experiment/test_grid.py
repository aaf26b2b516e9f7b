"""From a request to cells: every combination once, checked, in a useful order."""

from __future__ import annotations

import json

import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import BagScheme, DatasetSpec, MethodSpec, Param, UsageError
from llpbench.contracts.errors import UnknownNameError
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import parse_seeds
from llpbench.plugins.loading import Plugin
from llpbench.plugins.registry import Entry, Registry, load_registry

METHODS = (
    MethodSpec(name="net", factory="m:Net", params=(Param("lr", 0.1), Param("epochs", 5)), backends=("jax", "torch")),
    MethodSpec(name="plain", factory="m:Plain"),
    MethodSpec(name="bound", factory="m:Bound", oracle=True, backends=("jax",)),
)
DATASETS = (
    DatasetSpec(name="big", factory="d:big", params=(Param("encoding", "onehot", choices=("onehot", "ordinal")),)),
    DatasetSpec(name="tiny", factory="d:tiny", rows=100),
)
SCHEME = BagScheme(name="odd", factory="s:odd", params=(Param("spread", 0.5), Param("column", "")))


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = load_registry()
    plugin = Plugin("toys", "toys", "1.0", pytest)
    for method in METHODS:
        registry.methods.add(Entry(method, plugin), override=False)
    for dataset in DATASETS:
        registry.datasets.add(Entry(dataset, plugin), override=False)
    registry.schemes.add(Entry(SCHEME, plugin), override=False)
    return registry


def request(**changes: object) -> RunSettings:
    return RunSettings(**{"methods": ["plain"], "datasets": ["big"], "bags": [8], "seeds": 1, **changes})  # type: ignore[arg-type]


def test_one_seed_of_many_digits_is_written_as_a_range(registry: Registry) -> None:
    (plan,) = plan_cells(request(seeds=parse_seeds("20240607-20240607")), registry)
    assert plan.cell.seed == 20240607


@pytest.mark.parametrize("seed", [100_001, 999_999_999, 1_000_000_000, 2**40])
def test_suggested_form_of_one_large_seed_is_valid(registry: Registry, seed: int) -> None:
    with pytest.raises(UsageError) as caught:
        plan_cells(request(seeds=seed), registry)
    advised = str(caught.value).partition("for this single seed write ")[2].rstrip(".").split()[0]
    given = json.loads(advised) if advised.startswith("[") else advised
    (plan,) = plan_cells(request(seeds=parse_seeds(given)), registry)
    assert plan.cell.seed == seed


def test_every_combination_is_planned_once_with_seeds_outermost(registry: Registry) -> None:
    spec = request(
        methods=["net[lr=0.1;0.2]", "plain"], datasets=["big", "tiny"], bags=[8, 32], seeds=3, noise=["none", "high"]
    )
    cells = [plan.cell for plan in plan_cells(spec, registry)]
    assert len(cells) == 3 * 2 * 2 * 2 * 3
    assert len({cell.id for cell in cells}) == len(cells)
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)
    assert {(c.dataset, c.bag_size, c.noise) for c in cells[:24]} == {
        (d, b, n) for d in ("big", "tiny") for b in (8, 32) for n in ("none", "high")
    }  # one seed fills a whole table


def test_equal_settings_written_differently_are_one_cell(registry: Registry) -> None:
    spec = request(
        methods=["net", "net[lr=0.1]", "net[epochs=5;lr=1e-1]"],
        bags=[8, 8],
        noise=["medium", "epsilon=10", "10"],
        datasets=["big", "big[encoding=onehot]"],
    )
    (plan,) = plan_cells(spec, registry)
    assert plan.method_name == "net"
    assert plan.dataset_name == "big"
    assert plan.cell.noise == "medium"
    assert plan.cell.params == {"lr": 0.1, "epochs": 5}  # all of them, so that a result says what it used


def test_larger_grid_contains_the_cells_of_a_smaller_one(registry: Registry) -> None:
    small = {p.cell.id for p in plan_cells(request(), registry)}
    large = plan_cells(request(methods=["net", "plain"], bags=[8, 16], seeds=2, noise=["high", "none"]), registry)
    assert small < {p.cell.id for p in large}


def test_labels_name_what_differs_from_the_defaults(registry: Registry) -> None:
    spec = request(
        methods=["net[lr=0.2;epochs=5]"],
        datasets=["big[encoding=ordinal]"],
        schemes=["odd[spread=0.25]"],
        feature_noise=[0.05],
    )
    (plan,) = plan_cells(spec, registry)
    assert plan.method_name == "net[lr=0.2]"
    assert plan.dataset_name == "big[encoding=ordinal], odd[spread=0.25], feature noise 0.05"
    assert plan.cell.scheme_options == {"spread": 0.25, "column": ""}


def test_bound_is_run_once_for_each_dataset_and_seed(registry: Registry) -> None:
    spec = request(
        methods=["bound"],
        datasets=["big", "tiny"],
        bags=[8, 64],
        seeds=2,
        noise=["none", "high"],
        schemes=["random", "odd"],
    )
    plans = plan_cells(spec, registry)
    assert len(plans) == 4
    assert all(p.oracle and p.cell.bag_size == 1 and p.cell.noise == "none" for p in plans)
    assert {(p.cell.dataset, p.dataset_name, p.cell.scheme) for p in plans} == {
        ("big", "big", "random"),
        ("tiny", "tiny", "random"),
    }


def test_engine_is_part_of_a_cell_only_where_the_method_has_one(registry: Registry) -> None:
    on_jax = plan_cells(request(methods=["net", "plain"]), registry)
    on_torch = plan_cells(request(methods=["net", "plain"], backend="torch"), registry)
    assert [p.cell.backend for p in on_torch] == ["torch", ""]
    assert on_jax[0].cell.id != on_torch[0].cell.id
    assert on_jax[1].cell.id == on_torch[1].cell.id


def test_delta_is_part_of_a_cell_only_where_there_is_noise(registry: Registry) -> None:
    usual = plan_cells(request(noise=["none", "high"]), registry)
    other = plan_cells(request(noise=["none", "high"], delta=1e-6), registry)
    assert usual[0].cell.id == other[0].cell.id
    assert usual[1].cell.id != other[1].cell.id


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": []}, "--methods is empty"),
        ({"bags": []}, "--bags is empty"),
        ({"bags": [8, 0]}, "bag size 0 is not possible"),
        ({"bags": [-3]}, "bag size -3 is not possible"),
        ({"seeds": 0}, "--seeds 0"),
        ({"seeds": 20240607}, "is a number of seeds; for this single seed write 20240607-20240607."),
        ({"noise": ["loud"]}, "noise 'loud'"),
        ({"noise": ["epsilon=-1"]}, "positive epsilon"),
        ({"noise": ["high"], "delta": 0.0}, "--delta"),
        ({"feature_noise": [-0.1]}, "feature noise -0.1"),
        ({"feature_noise": [float("nan")]}, "feature noise nan"),
        ({"feature_noise": []}, "--feature-noise is empty"),
        ({"backend": "jacks"}, "unknown backend 'jacks'"),
        ({"datasets": ["tiny"], "bags": [8, 101]}, "bag size 101 is larger than tiny, which has 100 rows"),
        ({"methods": ["net[lr=fast]"]}, "net: parameter 'lr' takes a number"),
    ],
)
def test_plan_rejects_invalid_requests(registry: Registry, changes: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan_cells(request(**changes), registry)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ["plian"]}, "unknown method 'plian'. Did you mean 'plain'"),
        ({"datasets": ["bigg"]}, "unknown dataset 'bigg'. Did you mean 'big'"),
        ({"schemes": ["rondom"]}, "unknown bag scheme 'rondom'. Did you mean 'random'"),
    ],
)
def test_unknown_names_get_close_matches(registry: Registry, changes: dict[str, object], words: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        plan_cells(request(**changes), registry)
    assert words in str(caught.value)


def test_folder_name_identifies_the_request() -> None:
    assert request().name == request().name
    assert request().name.startswith("plain-big-")
    names = {request(**c).name for c in ({}, {"seeds": 2}, {"bags": [9]}, {"backend": "torch"}, {"noise": ["high"]})}
    assert len(names) == 5
    long = request(methods=[f"a-very-long-method-name-{i}[lr=1]" for i in range(9)]).name
    assert len(long) < 60
    assert "[" not in long


@quick
@given(
    st.lists(st.sampled_from(["net[lr=0.1;0.2]", "plain", "bound", "net"]), min_size=1, max_size=4),
    st.lists(st.integers(1, 100), min_size=1, max_size=3),
    st.integers(1, 3),
)
def test_planning_is_deterministic_and_free_of_duplicates(
    registry: Registry, methods: list[str], bags: list[int], seeds: int
) -> None:
    spec = request(methods=methods, bags=bags, seeds=seeds)
    first, second = plan_cells(spec, registry), plan_cells(spec, registry)
    assert first == second
    assert len({p.cell.id for p in first}) == len(first)
    seen = {(p.method_name, p.cell.bag_size, p.cell.seed) for p in first}
    assert len(seen) == len(first)
