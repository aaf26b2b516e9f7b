"""All baselines on each backend: they learn, repeat themselves, and agree."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from baselines import BACKENDS, close, each_backend, figures

from llpbench_methods.nets.params import NETWORK_PARAMS

MODULES = {
    "best-feature": "best_feature",
    "count-nll": "count_nll",
    "dllp": "dllp",
    "dsq": "dsq",
    "easyllp": "easyllp",
    "genbags": "genbags",
    "llp-dc": "llp_dc",
    "llp-fc": "llp_fc",
    "llp-mm": "llp_mm",
    "llp-vat": "llp_vat",
    "mean-map": "mean_map",
    "mixbag": "mixbag",
    "random-labels": "random_labels",
}
TRAINED = (
    "dllp-mse", "easyllp", "easyllp-one", "genbags", "genbags-drawn", "llp-fc", "llp-vat", "count-nll", "count-nll-ovr",
    "dsq", "dsq-others", "easyllp-centred", "llp-dc", "llp-mm", "mixbag",
)  # fmt: skip
NO_NETWORK = ("best-feature", "mean-map")
DRAWS_ON_THE_BACKEND = ("easyllp-one", "genbags-drawn", "llp-vat")


def spec(name):
    (found,) = importlib.import_module(f"llpbench_methods.{MODULES[name]}").llpbench_methods()
    return found


@pytest.mark.parametrize("name", MODULES)
def test_spec(name):
    found = spec(name)
    assert found.name == name
    assert found.scores == "probability"
    assert not found.oracle
    assert all(p.doc for p in found.params)
    assert found.complete({}) == {p.name: p.default for p in found.params}
    shared = {p.name for p in NETWORK_PARAMS} if name not in NO_NETWORK else set()
    own = {p.name: p.default for p in found.params if p.name not in shared}
    signature = inspect.signature(found.load())
    taken = {n: p.default for n, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD}
    assert own == taken
    if name not in NO_NETWORK:
        first = found.params[: len(NETWORK_PARAMS)]
        same = [replace(p, default=usual.default) for p, usual in zip(first, NETWORK_PARAMS, strict=True)]
        assert tuple(same) == NETWORK_PARAMS
        changed = {p.name for p, usual in zip(first, NETWORK_PARAMS, strict=True) if p != usual}
        assert changed <= {"lr"}  # the one shared setting that a method may have of its own
        assert {p.name: p.default for p in first} == vars(found.load()().settings)


def test_listing_imports_nothing_heavy():
    modules = ", ".join(f"llpbench_methods.{module}" for module in MODULES.values())
    heavy = ("keras", "jax", "torch", "tensorflow", "scipy", "numpy", "sklearn", "pandas", "cvxpy")
    code = f"import sys, {modules}; print([m for m in {heavy} if m in sys.modules])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.slow
@each_backend
@pytest.mark.parametrize("name", TRAINED)
def test_it_learns_and_repeats_itself(backend, name):
    got = figures(backend)["training"][name]
    assert got["auc"] > 0.85
    assert got["same_seed"]
    assert got["programs"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("name", [name for name in TRAINED if name not in DRAWS_ON_THE_BACKEND])
def test_backends_agree_after_an_epoch(backend, name):
    ours, theirs = (figures(e)["training"][name]["first_epoch"] for e in ("jax", backend))
    close(theirs, ours, 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_several_classes(name):
    got = figures("torch")["multiclass"]
    assert got[name] > got["majority"] + 0.1


@pytest.mark.slow
def test_odd_bags():
    got = figures("torch")["odd_bags"]
    assert len(got) == 6 * (len(TRAINED) + 1)
    assert [case for case, fine in got.items() if not fine] == []


@pytest.mark.slow
@each_backend
def test_random_labels_train(backend):
    assert figures(backend)["training"]["random-labels"]["finite"]
    assert np.isfinite(figures(backend)["training"]["count-nll"]["auc"])
