"""What the network methods and mean-ridge say about themselves, and that saying it is cheap."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from dataclasses import fields

import pytest

from llpbench import UsageError
from llpbench_methods.nets.params import NETWORK_PARAMS, NetworkSettings

MODULES = {"dllp": "dllp", "supervised": "supervised", "mean-ridge": "mean_ridge"}


def spec(name):
    (found,) = importlib.import_module(f"llpbench_methods.{MODULES[name]}").llpbench_methods()
    return found


@pytest.mark.parametrize("name", MODULES)
def test_spec(name):
    found = spec(name)
    assert found.name == name
    assert found.tasks == ("binary", "multiclass")
    assert found.scores == "probability"
    assert found.oracle == (name == "supervised")
    assert all(p.doc for p in found.params)
    assert found.resolve({}) == {p.name: p.default for p in found.params}


def test_shared_parameters_are_the_settings():
    assert [p.name for p in NETWORK_PARAMS] == [f.name for f in fields(NetworkSettings)]
    assert {p.name: p.default for p in NETWORK_PARAMS} == vars(NetworkSettings())
    for p in NETWORK_PARAMS:
        assert p.check(p.default) == p.default
    with pytest.raises(UsageError):
        spec("dllp").resolve({"lr": 2.0})


def test_mean_ridge_parameters_match_its_constructor():
    cls = spec("mean-ridge").load()
    declared = {p.name: p.default for p in spec("mean-ridge").params}
    taken = {k: v.default for k, v in inspect.signature(cls).parameters.items()}
    assert declared == taken
    assert spec("mean-ridge").resolve({"penalty": 2, "gamma": 1})["penalty"] == 2.0


def test_listing_imports_nothing_heavy():
    code = (
        "import sys, llpbench_methods.dllp, llpbench_methods.supervised, llpbench_methods.mean_ridge;"
        "print([m for m in ('keras', 'jax', 'torch', 'tensorflow', 'scipy', 'sklearn', 'pandas') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
