"""What the built-in methods declare: names, scores, parameters and their defaults."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace

import pytest

from llpbench import UsageError
from llpbench.plugins.registry import load_registry
from llpbench_methods.nets.params import NETWORK_PARAMS, NetworkSettings

METHODS = load_registry().methods
NETWORKS = (
    "count-nll", "dllp", "dsq", "easyllp", "genbags", "llp-dc", "llp-fc", "llp-mm", "llp-vat", "mixbag",
    "random-labels", "supervised",
)  # fmt: skip
NO_NETWORK = ("best-feature", "max-entropy", "mean-map", "mean-ridge")


@pytest.mark.parametrize("name", [*NETWORKS, *NO_NETWORK])
def test_parameters_are_those_of_the_constructor(name):
    spec = METHODS[name]
    assert spec.scores == "probability"
    assert spec.oracle == (name == "supervised")
    assert all(p.doc for p in spec.params)
    assert spec.complete({}) == {p.name: p.default for p in spec.params}
    shared = {p.name for p in NETWORK_PARAMS} if name in NETWORKS else set()
    own = {p.name: p.default for p in spec.params if p.name not in shared}
    signature = inspect.signature(spec.load())
    assert own == {n: p.default for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_share_their_parameters(name):
    spec = METHODS[name]
    first = spec.params[: len(NETWORK_PARAMS)]
    same = [replace(p, default=usual.default) for p, usual in zip(first, NETWORK_PARAMS, strict=True)]
    assert tuple(same) == NETWORK_PARAMS
    changed = {p.name for p, usual in zip(first, NETWORK_PARAMS, strict=True) if p != usual}
    assert changed <= {"lr"}  # the one shared setting that a method may have of its own
    assert {p.name: p.default for p in first} == vars(spec.load()().settings)


def test_shared_parameters_are_the_settings():
    assert [p.name for p in NETWORK_PARAMS] == [f.name for f in fields(NetworkSettings)]
    assert {p.name: p.default for p in NETWORK_PARAMS} == vars(NetworkSettings())
    for p in NETWORK_PARAMS:
        assert p.check(p.default) == p.default
    with pytest.raises(UsageError):
        METHODS["dllp"].resolve({"lr": 2.0})
