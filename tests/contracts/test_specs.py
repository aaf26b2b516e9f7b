"""Specs and parameters: what is accepted, in which type, and what an error says."""

from __future__ import annotations

import dataclasses
import math

import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

import llpbench
from llpbench import DatasetSpec, MethodSpec, Param, UsageError
from llpbench.contracts.cell import Cell
from llpbench.contracts.errors import PluginError, UnknownNameError
from llpbench.experiment.grid import Variant
from llpbench.experiment.seeds import derive_seed
from llpbench.plugins.registry import load_registry
from llpbench.tuning.space import search_space

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("param", "kind"),
    [
        (Param("a", True), "bool"),
        (Param("a", 3), "int"),
        (Param("a", 3.0), "float"),
        (Param("a", "x"), "str"),
        (Param("a", None), "str"),
        (Param("a", "auto", low=0.0, choices=("auto",)), "float"),
        (Param("a", None, kind="int"), "int"),
    ],
)
def test_param_kind_defaults_to_that_of_its_default(param: Param, kind: str) -> None:
    assert param.kind == kind


@pytest.mark.parametrize(
    ("param", "text", "value"),
    [
        (Param("a", 3), "7", 7),
        (Param("a", 3), "1e3", 1000),
        (Param("a", 3), "-2", -2),
        (Param("a", 3), "9007199254740993", 9007199254740993),  # one more than a float can tell
        (Param("a", 0.1), "1e-3", 0.001),
        (Param("a", 0.1), "2", 2.0),
        (Param("a", False), "Yes", True),
        (Param("a", True), "off", False),
        (Param("a", "x"), "y", "y"),
        (Param("a", None), "none", None),
        (Param("a", None, kind="float"), "0.5", 0.5),
        (Param("a", None, kind="float"), "None", None),
        (Param("a", "auto", low=0, choices=("auto",)), "auto", "auto"),
        (Param("a", "auto", low=0, choices=("auto",)), "3", 3.0),
        (Param("a", 2, choices=(1, 2, 4)), "4", 4),
    ],
)
def test_parse_returns_the_type_of_the_parameter(param: Param, text: str, value: object) -> None:
    read = param.parse(text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("param", "text", "words"),
    [
        (Param("depth", 3), "2.5", "an integer"),
        (Param("depth", 3), "three", "an integer"),
        (Param("depth", 3, low=1, high=9), "10", "an integer from 1 to 9"),
        (Param("lr", 0.1, low=0.0), "-1", "a number of at least 0"),
        (Param("lr", 0.1, high=1.0), "2", "a number of at most 1"),
        (Param("lr", 0.1), "nan", "a number"),
        (Param("lr", 0.1), "inf", "a number"),  # JSON, and so a cell, cannot hold it
        (Param("lr", 0.1), "1" + "0" * 400, "a number"),
        (Param("depth", 3), "1e400", "an integer"),
        (Param("fast", True), "maybe", "true or false"),
        (Param("mode", "beta", choices=("alpha", "beta")), "alhpa", "Did you mean 'alpha'"),
        (Param("k", "auto", low=1, choices=("auto",)), "atuo", "or one of auto"),
        (Param("k", 2, choices=(1, 2)), "3.5", "or one of 1, 2"),
    ],
)
def test_invalid_value_is_rejected_with_the_valid_range(param: Param, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        param.parse(text)
    assert words in str(caught.value)
    assert repr(param.name) in str(caught.value)


@pytest.mark.parametrize(
    ("param", "value"),
    [
        (Param("a", 1), True),  # a truth value is no number
        (Param("a", 1, choices=(0, 1)), True),
        (Param("a", True), 1),
        (Param("a", 1.0), "1"),
        (Param("a", "x"), 1),
        (Param("a", 1), None),
        (Param("a", 1.0), math.nan),
    ],
)
def test_check_rejects_values_of_other_types(param: Param, value: object) -> None:
    with pytest.raises(UsageError):
        param.check(value)  # type: ignore[arg-type]


@quick
@given(low=FINITE, high=FINITE, value=FINITE)
def test_number_is_accepted_exactly_within_its_range(low: float, high: float, value: float) -> None:
    low, high = min(low, high), max(low, high)
    param = Param("a", low, low=low, high=high)
    if low <= value <= high:
        assert param.check(value) == value
    else:
        with pytest.raises(UsageError):
            param.check(value)


def test_default_outside_its_own_range_is_rejected() -> None:
    for wrong in ({"low": 1.0}, {"high": -1.0}):
        with pytest.raises(PluginError, match="default"):
            Param("a", 0.0, **wrong)
    with pytest.raises(PluginError, match="default"):
        Param("a", "x", choices=("y", "z"))


def spec(**facts: object) -> MethodSpec:
    return MethodSpec(**{"name": "toy", "factory": "toy:Toy", **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "Upper", "with space", "-dash", "semi;colon", "br[acket]", "new\nline", "comma,"])
def test_spec_rejects_invalid_names(name: str) -> None:
    with pytest.raises(PluginError, match="is not allowed"):
        spec(name=name)


@pytest.mark.parametrize("factory", ["toy", "toy:a:b", ""])
def test_factory_must_be_a_module_and_an_attribute(factory: str) -> None:
    with pytest.raises(PluginError, match="module:attribute"):
        spec(factory=factory)


@pytest.mark.parametrize("address", ["arxiv.org/abs/1", "https://", "https://arxiv.org/abs 1", "javascript:alert(1)"])
@pytest.mark.parametrize("what", ["paper", "code"])
def test_spec_rejects_invalid_addresses(what: str, address: str) -> None:
    with pytest.raises(PluginError, match=f"{what} .* is not an address"):
        spec(**{what: address})
    assert getattr(spec(**{what: "https://arxiv.org/abs/1709.04108"}), what).endswith("04108")


def test_parameter_declared_twice_is_rejected() -> None:
    with pytest.raises(PluginError, match="declared twice: lr"):
        spec(params=(Param("lr", 1.0), Param("lr", 2.0)))


def test_specs_are_frozen_and_load_lazily() -> None:
    lazy = spec(factory="collections:OrderedDict")
    with pytest.raises(dataclasses.FrozenInstanceError):
        lazy.name = "other"  # type: ignore[misc]
    assert lazy.load() is __import__("collections").OrderedDict
    spec(factory="no_such_module_at_all:Thing")  # costs nothing until it is loaded
    with pytest.raises(ModuleNotFoundError):
        spec(factory="no_such_module_at_all:Thing").load()


def test_resolve_checks_values_and_adds_defaults() -> None:
    toy = spec(params=(Param("lr", 0.1, high=1.0), Param("epochs", 20)))
    assert toy.resolve({}) == {"lr": 0.1, "epochs": 20}
    resolved = toy.resolve({"epochs": 5.0})
    assert resolved == {"lr": 0.1, "epochs": 5}
    assert type(resolved["epochs"]) is int
    assert list(resolved) == ["lr", "epochs"]  # the declared order, whatever was given
    with pytest.raises(UsageError):
        toy.resolve({"lr": 2.0})
    with pytest.raises(UnknownNameError, match=r"parameter of toy: 'epoch'.*Did you mean 'epochs'"):
        toy.resolve({"epoch": 5})


def test_task_follows_from_the_number_of_classes() -> None:
    assert DatasetSpec(name="d", factory="d:load").task == "binary"
    assert DatasetSpec(name="d", factory="d:load", classes=3).task == "multiclass"


def test_public_names_match_their_declaration() -> None:
    for name in llpbench.__all__:
        assert getattr(llpbench, name) is not None
    assert sorted(llpbench.__all__) == sorted(set(dir(llpbench)) - {"__version__"})
    with pytest.raises(AttributeError, match="Registry"):
        llpbench.Registry  # noqa: B018


def test_seed_depends_on_the_purpose_and_the_axes_alone() -> None:
    seed = derive_seed("bags", seed=0, dataset="toy", bag_size=8)
    assert seed == derive_seed("bags", bag_size=8, dataset="toy", seed=0)
    others = [
        derive_seed("noise", seed=0, dataset="toy", bag_size=8),
        derive_seed("bags", seed=1, dataset="toy", bag_size=8),
        derive_seed("bags", seed=0, dataset="toy", bag_size=80),
        derive_seed("bags", seed=0, dataset="toy"),
    ]
    assert len({seed, *others}) == 5
    assert all(0 <= s < 2**31 for s in (seed, *others))


def test_seeds_do_not_change_between_versions() -> None:
    # Published results name their seeds by these numbers: a change here makes every old result irreproducible.
    assert derive_seed("bags", seed=0, dataset="adult", bag_size=8, scheme="random") == 1789471393


def test_new_option_does_not_change_cell_ids() -> None:
    old = MethodSpec(name="toy", factory="toy:Toy", params=(Param("lr", 0.1),))
    option = Param("centre", "none", choices=("none", "rows"), omit_default=True)
    new = dataclasses.replace(old, params=(*old.params, option))

    def cell(spec: MethodSpec, **given: str) -> Cell:
        return Cell(dataset="d", method="toy", bag_size=8, seed=0, params=spec.resolve(given))

    assert cell(new) == cell(old)
    assert cell(new, centre="none").id == cell(old).id
    assert cell(new, centre="rows").params == {"lr": 0.1, "centre": "rows"}
    assert new.complete({}) == {"lr": 0.1, "centre": "none"}
    assert search_space(new) == search_space(old)
    assert Variant(new, {}).name == "toy"
    assert Variant(new, {"centre": "rows"}).name == "toy[centre=rows]"
    with pytest.raises(UnknownNameError, match="centre"):
        new.resolve({"centre": "columns"})


def test_options_of_published_methods_do_not_change_their_cells() -> None:
    methods = load_registry().methods
    assert "center" not in methods["easyllp"].resolve({})
    assert "outputs" not in methods["count-nll"].resolve({})
