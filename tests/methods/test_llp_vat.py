"""LLP-VAT: the adversary, the ramp, and what leaves the network's statistics alone."""

from __future__ import annotations

import numpy as np
import pytest
from backends import close, each_backend, figures

from llpbench_methods.llp_vat import LLP_VAT


@pytest.mark.slow
@each_backend
def test_adversary_of_a_logistic_model(backend):
    got = figures(backend)["losses.llp_vat"]
    close(np.abs(got["directions"]), [[0.6, 0.8], [0.6, 0.8]], 1e-4)
    close(got["kl"], [[1.65819255, 0.02679431], [1.95922718, 0.65296758]], 1e-5)
    close(got["kl_softmax"], got["kl"][0], 1e-5)


@pytest.mark.slow
@each_backend
def test_directions_have_unit_length_and_find_the_curvature(backend):
    got = figures(backend)["losses.llp_vat"]
    close(np.linalg.norm(got["direction"], axis=1), 1.0, 1e-5)
    agreement = np.abs(np.sum(np.array(got["better"]) * np.array(got["converged"]), axis=1))
    assert np.median(agreement) > 0.95
    assert np.median(np.linalg.norm(got["official"], axis=1)) < 1e-2


@pytest.mark.slow
@each_backend
def test_constant_networks_have_finite_directions(backend):
    got = figures(backend)["losses.llp_vat"]
    assert got["no_shift"] == 0.0
    assert not np.any(got["constant_network"])
    assert not np.any(got["zero_rows"])


@pytest.mark.slow
@each_backend
def test_ramp(backend):
    got = figures(backend)["losses.llp_vat"]
    close(got["ramp"], [0.006738, 0.017422, 0.060055, 0.286505, 0.731616, 1.0, 1.0], 1e-5)
    assert got["no_ramp"] == 1.0


@pytest.mark.slow
@each_backend
def test_without_weight_it_is_dllp(backend):
    got = figures(backend)["losses.llp_vat"]
    assert got["weight_0_is_dllp"]
    assert got["weight_matters"] > 1e-3


@pytest.mark.slow
@each_backend
def test_chunks_give_the_value_and_gradient_of_the_whole(backend):
    got = figures(backend)["losses.chunks"]
    close(got["parts"]["value"], got["whole"]["value"])
    close(got["parts"]["gradient"], got["whole"]["gradient"], 1e-5)
    assert figures(backend)["losses.llp_vat"]["chunks_change"] < 2e-3


@pytest.mark.slow
@each_backend
def test_only_clean_passes_move_running_statistics(backend):
    got = figures(backend)["losses.chunks"]
    start = [[0.0] * 8, [1.0] * 8]
    assert got["clean"]["others"] != start
    close(got["frozen"]["others"], got["clean"]["others"])
    assert got["normalised"]["others"] != start


def test_defaults():
    assert LLP_VAT.param("weight").default == 0.05
    assert LLP_VAT.param("official_numerics").default is False
    assert LLP_VAT.tasks == ("binary", "multiclass")
