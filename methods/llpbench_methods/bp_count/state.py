"""The fitted model of bp-count as plain arrays, and back.

A model is a blend of linear fields, themselves a blend without learner around the regression, and of the fields of
the last learner: boosted trees, a network, or a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench import State
from llpbench_methods.bp_count.learners import Fields, _Layers
from llpbench_methods.bp_count.linear import LinearField
from llpbench_methods.bp_count.priors import Average
from llpbench_methods.bp_count.selftrain import Blend
from llpbench_methods.bp_count.trees import ConstantFields, TreeFields, dump_trees, load_trees
from llpbench_methods.shared.columns import ColumnGroups, TableView, hats_state, restored_hats

Array = NDArray[np.float64]

_WEIGHTS = ("weights", "factor", "centre")


def model_state(model: Blend) -> State:
    """The state of the model that `BPCount` predicts with."""
    inner = model.linear
    assert isinstance(inner, Blend)
    assert isinstance(inner.linear, LinearField)
    state: dict[str, Any] = {**_blend_state(model, "outer."), **_blend_state(inner, "inner.")}
    return {**state, **_linear_state(inner.linear), **_learner_state(model.learner)}


def restored_model(state: State) -> Blend:
    """The model a state describes."""
    linear = _blend(state, "inner.", _linear(state), None)
    return _blend(state, "outer.", linear, _learner(state))


def _blend_state(blend: Blend, at: str) -> dict[str, Any]:
    numbers = {f"{at}mix": np.float64(blend.mix), f"{at}slope": np.float64(blend.slope)}
    return {**numbers, f"{at}shift": np.asarray(blend.shift, np.float64)}


def _blend(state: State, at: str, linear: Fields, learner: Fields | None) -> Blend:
    shift = _array(state, f"{at}shift", np.atleast_1d(np.asarray(state[f"{at}shift"])).shape)
    return Blend(_number(state, f"{at}mix"), _number(state, f"{at}slope"), shift, linear, learner)


def _linear_state(field: LinearField) -> dict[str, Any]:
    """The regression: hat functions and, class after class, the law of the weights."""
    state: dict[str, Any] = {
        **hats_state(field.hats),
        "rates": np.asarray(field.rates, np.float64),
        "temper": field.temper,
    }
    for c, law in enumerate(field.averages):
        state |= {f"law_{c}.{name}": np.asarray(getattr(law, name), np.float64) for name in _WEIGHTS}
        state[f"law_{c}.intercept"] = np.float64(law.intercept)
    return state


def _linear(state: State) -> LinearField:
    hats = restored_hats(state)
    rates = np.asarray(state["rates"], np.float64)
    laws = []
    for c in range(rates.size):
        weights, factor, centre = (np.asarray(state[f"law_{c}.{name}"], np.float64) for name in _WEIGHTS)
        if factor.ndim != 2 or weights.shape != centre.shape or weights.shape != factor.shape[:1]:
            raise ValueError(f"the weights of class {c} have inconsistent shapes")
        intercept = _number(state, f"law_{c}.intercept")
        laws.append(Average(weights, factor, centre, intercept, float("nan"), {}, float("nan")))
    return LinearField(hats, tuple(laws), rates, bool(state["temper"]))


def _learner_state(learner: Fields | None) -> dict[str, Any]:
    if learner is None:
        return {"learner": "none"}
    if isinstance(learner, ConstantFields):
        return {"learner": "constant", "constant": learner.value}
    if isinstance(learner, _Layers):
        weights = {f"network.weight_{i}": weight for i, weight in enumerate(learner.weights)}
        return {"learner": "network", "network.centre": learner.centre, "network.scale": learner.scale, **weights}
    assert isinstance(learner, TreeFields)
    cuts = dict(learner.cuts)
    return {
        "learner": "trees",
        "trees.model": dump_trees(learner),
        **{f"view.{f.name}": getattr(learner.view.groups, f.name) for f in fields(ColumnGroups)},
        "view.categorical": learner.view.categorical,
        "view.present": learner.present,
        "view.n_fields": learner.n_fields,
        "cuts.columns": np.array(list(cuts), np.int64),
        "cuts.lengths": np.array([len(c) for c in cuts.values()], np.int64),
        "cuts.values": np.concatenate([*cuts.values(), np.zeros(0, np.float32)]),
    }


def _learner(state: State) -> Fields | None:
    kind = state["learner"]
    if kind == "none":
        return None
    if kind == "constant":
        return ConstantFields(np.asarray(state["constant"], np.float64))
    if kind == "network":
        weights: list[NDArray[Any]] = []
        while f"network.weight_{len(weights)}" in state:
            weights.append(np.asarray(state[f"network.weight_{len(weights)}"]))
        if len(weights) < 2 or len(weights) % 2:
            raise ValueError(f"expected an even number of network weights, at least 2, got {len(weights)}")
        centre = np.asarray(state["network.centre"], np.float64)
        return _Layers(centre, _number(state, "network.scale"), tuple(weights))
    if kind != "trees":
        raise ValueError(f"unknown learner {kind!r}")
    groups = ColumnGroups(*(np.asarray(state[f"view.{f.name}"]) for f in fields(ColumnGroups)))
    view = TableView(groups, np.asarray(state["view.categorical"]))
    model, saved = load_trees(np.asarray(state["trees.model"]))
    columns, lengths = _whole(state, "cuts.columns"), _whole(state, "cuts.lengths")
    values = np.asarray(state["cuts.values"])
    if len(columns) != len(lengths) or int(lengths.sum()) != len(values):
        raise ValueError("the bins of the trees have inconsistent shapes")
    parts = np.split(values, np.cumsum(lengths)[:-1])
    cuts: Mapping[int, Any] = {int(column): part for column, part in zip(columns, parts, strict=False)}
    n_fields, present = int(np.asarray(state["view.n_fields"])), _whole(state, "view.present")
    return TreeFields(model, view, cuts, n_fields, present, saved)


def _number(state: State, name: str) -> float:
    return float(np.asarray(state[name]))


def _whole(state: State, name: str) -> NDArray[np.int64]:
    values = np.asarray(state[name])
    if values.ndim != 1 or values.dtype.kind not in "iu" or (name.endswith("lengths") and values.min(initial=0) < 0):
        raise ValueError(f"{name} must be a vector of integers")
    return values.astype(np.int64)


def _array(state: State, name: str, shape: tuple[int, ...]) -> Array:
    values = np.asarray(state[name], np.float64)
    if values.shape != shape:
        raise ValueError(f"expected shape {shape} for {name}, got {values.shape}")
    return values
