"""The Agg-Emb network and its loss on each backend (computed in processes of their own by agg_emb_probe.py)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from llpbench_methods.bp.agg_emb import AggEmb

pytestmark = pytest.mark.slow

BACKENDS = ("jax", "tensorflow", "torch")
PROBE = Path(__file__).with_name("agg_emb_probe.py")
DONE: dict[str, dict] = {}


def figures(backend, folder):
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    if backend not in DONE:
        out = folder / f"{backend}.json"
        env = {
            **os.environ,
            "KERAS_BACKEND": backend,
            "PYTHONPATH": os.pathsep.join([str(PROBE.parent), *filter(None, sys.path)]),
            "OMP_NUM_THREADS": "1",
        }
        run = subprocess.run(
            [sys.executable, str(PROBE), str(out)], env=env, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr[-4000:]
        DONE[backend] = json.loads(out.read_text())
    return DONE[backend]


@pytest.fixture(params=BACKENDS)
def probe(request, tmp_path):
    return figures(request.param, tmp_path)


def close(value, expected, tolerance=2e-6):
    np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


def test_the_loss_has_the_known_values(probe):
    close(probe["acceptance"]["sum"], 7.7154002735)
    close(probe["acceptance"]["mean"], 7.4254910258)


def test_order_inside_a_bag_and_padding_do_not_matter(probe):
    assert len(probe["networks"]) == 4
    for found in probe["networks"].values():
        for change in ("permuted", "padded"):
            close(found[change]["loss"], found["plain"]["loss"], 1e-5)
            close(found[change]["slope"], found["plain"]["slope"], 1e-3)


def test_a_softmax_over_bags_sums_to_one_in_each(probe):
    share = np.array(probe["pooled"]["share"])
    close(share[:3], probe["pooled"]["first"], 1e-5)
    close(share[3], 1.0)
    close(share[4:].sum(axis=0), 1.0)  # padding is a bag of its own


def test_the_method_learns_with_two_and_three_classes(probe):
    for name, found in probe["training"].items():
        assert found["embedding"] == [600, 128]
        assert found["accuracy"] > (0.7 if name.startswith("2") else 0.5), name


@pytest.mark.slow
@pytest.mark.parametrize("other", ["tensorflow", "torch"])
def test_backends_agree(other, tmp_path):
    here, there = figures("jax", tmp_path), figures(other, tmp_path)
    for name, found in here["networks"].items():
        close(there["networks"][name]["plain"]["loss"], found["plain"]["loss"], 1e-5)
        close(there["networks"][name]["plain"]["slope"], found["plain"]["slope"], 1e-3)
    close(there["training"]["2 mean"]["scores"], here["training"]["2 mean"]["scores"], 0.05)


def test_sizes_of_the_network():
    shapes = [tuple(v.shape) for v in AggEmb(14, 1, size="paper").trainable_variables]
    kernels = [s for s in shapes if len(s) == 2]
    trunk = [(14, 5040), (5040, 1280), (1280, 320), (320, 128)]
    assert kernels == [*trunk, (128, 64), (64, 1), (128, 64), (64, 1)]
    small = [tuple(v.shape) for v in AggEmb(14, 3, size="small", instance_head="direct").trainable_variables]
    assert [s for s in small if len(s) == 2] == [(14, 256), (256, 128), (128, 3), (128, 64), (64, 3)]
    attention = AggEmb(14, 1, size="small", pooling="attention").trainable_variables
    assert sum(int(np.prod(v.shape)) for v in attention) > 5 * 128 * 128
