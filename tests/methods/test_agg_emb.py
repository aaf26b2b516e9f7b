"""The Agg-Emb network and its loss on each backend (computed by agg_emb_probe.py)."""

from __future__ import annotations

import numpy as np
import pytest
from backends import BACKENDS, close, figures

from llpbench_methods.bp.agg_emb import AggEmb

pytestmark = pytest.mark.slow


@pytest.fixture(params=BACKENDS)
def probe(request):
    return figures(request.param)


def test_loss_has_the_known_values(probe):
    close(probe["agg_emb.acceptance"]["sum"], 7.7154002735)
    close(probe["agg_emb.acceptance"]["mean"], 7.4254910258)


def test_order_inside_a_bag_and_padding_do_not_matter(probe):
    assert len(probe["agg_emb.networks"]) == 2
    for found in probe["agg_emb.networks"].values():
        for change in ("permuted", "padded"):
            close(found[change]["loss"], found["plain"]["loss"], 1e-5)
            close(found[change]["slope"], found["plain"]["slope"], 1e-3)


def test_softmax_over_bags_sums_to_one_in_each(probe):
    share = np.array(probe["agg_emb.pooled"]["share"])
    close(share[:3], probe["agg_emb.pooled"]["first"], 1e-5)
    close(share[3], 1.0)
    close(share[4:].sum(axis=0), 1.0)  # padding is a bag of its own


def test_method_learns_with_two_and_three_classes(probe):
    for name, found in probe["agg_emb.training"].items():
        assert found["embedding"] == [600, 128]
        assert found["accuracy"] > (0.7 if name.startswith("2") else 0.5), name


@pytest.mark.parametrize("other", ["tensorflow", "torch"])
def test_backends_agree(other):
    here, there = figures("jax"), figures(other)
    for name, found in here["agg_emb.networks"].items():
        close(there["agg_emb.networks"][name]["plain"]["loss"], found["plain"]["loss"], 1e-5)
        close(there["agg_emb.networks"][name]["plain"]["slope"], found["plain"]["slope"], 1e-3)
    close(there["agg_emb.training"]["2 mean"]["scores"], here["agg_emb.training"]["2 mean"]["scores"], 0.05)


def test_sizes_of_the_network():
    shapes = [tuple(v.shape) for v in AggEmb(14, 1, size="paper").trainable_variables]
    kernels = [s for s in shapes if len(s) == 2]
    trunk = [(14, 5040), (5040, 1280), (1280, 320), (320, 128)]
    assert kernels == [*trunk, (128, 64), (64, 1), (128, 64), (64, 1)]
    small = [tuple(v.shape) for v in AggEmb(14, 3, size="small", instance_head="direct").trainable_variables]
    assert [s for s in small if len(s) == 2] == [(14, 256), (256, 128), (128, 3), (128, 64), (64, 3)]
    attention = AggEmb(14, 1, size="small", pooling="attention").trainable_variables
    assert sum(int(np.prod(v.shape)) for v in attention) > 5 * 128 * 128
