"""Methods trained on each backend: they learn, repeat themselves, and agree (computed by losses_probe.py)."""

from __future__ import annotations

import pytest
from backends import BACKENDS, close, each_backend, figures

pytestmark = pytest.mark.slow

TRAINED = (
    "dllp-mse", "easyllp", "easyllp-one", "genbags", "genbags-drawn", "llp-fc", "llp-vat", "count-nll", "count-nll-ovr",
    "dsq", "dsq-others", "easyllp-centred", "llp-dc", "llp-mm", "mixbag",
)  # fmt: skip
FAMILIES = ("dllp-mse", "easyllp-one", "genbags", "llp-fc", "llp-vat", "count-nll", "llp-mm", "mixbag")
DRAWS_ON_THE_BACKEND = ("easyllp-one", "llp-vat")


@each_backend
@pytest.mark.parametrize("name", FAMILIES)
def test_training_learns_and_repeats_itself(backend, name):
    got = figures(backend)["losses.training"][name]
    assert got["auc"] > 0.85
    assert got["same_seed"]
    assert got["programs"] == 1


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in DRAWS_ON_THE_BACKEND])
def test_backends_agree_after_an_epoch(backend, name):
    ours, theirs = (figures(e)["losses.training"][name]["first_epoch"] for e in ("jax", backend))
    close(theirs, ours, 1e-3)


@pytest.mark.parametrize("name", TRAINED)
def test_methods_learn_several_classes(name):
    got = figures("torch")["losses.multiclass"]
    assert got[name] > got["majority"] + 0.1


def test_scores_are_finite_for_odd_bags():
    got = figures("torch")["losses.odd_bags"]
    assert len(got) == 6 * (len(TRAINED) + 1)
    assert [case for case, fine in got.items() if not fine] == []


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_methods_pass_the_conformance_kit_on_other_backends(backend):
    got = figures(backend)["losses.contract"]
    assert len(got) == 16
    assert set(got.values()) == {"passed"}, got
