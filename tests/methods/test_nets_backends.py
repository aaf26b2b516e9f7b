"""Losses, gradients and the training loop on each backend (computed by nets_probe.py)."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from backends import BACKENDS, close, compile_cache, figures, run_probe

pytestmark = pytest.mark.slow


@pytest.fixture(params=BACKENDS)
def probe(request):
    return figures(request.param)


def test_bag_cross_entropy_has_the_known_values(probe):
    got = probe["nets.losses"]
    close(got["binary"], 0.7709698346)
    close(got["binary"] - entropy([0.25, 0.75]), 0.2086346900)
    assert abs(got["binary"] - 0.9331034658) > 0.1  # the mean of logarithms, a different loss
    close(got["binary_gradient"], [0.0637124592, 0.0810129606, 0.0761533859, 0.0340233648])
    close(got["multiclass"], 1.0515577003)
    close(got["multiclass"] - entropy([0.5, 0.25, 0.25]), 0.0118369295)
    close(got["squeezed"], -math.log1p(-0.5680494576))


def entropy(shares):
    return -sum(s * math.log(s) for s in shares)


def test_bags_of_one_row_give_the_instance_loss(probe):
    got = probe["nets.losses"]
    close(got["single_rows"], got["single_rows_numpy"])
    close(got["single_rows_instance"], got["single_rows_numpy"])


def test_uneven_and_padded_bags_give_the_mean_of_single_bags(probe):
    got = probe["nets.losses"]
    close(got["uneven"], got["uneven_apart"])
    close(got["uneven_padded"], got["uneven_apart"])


def test_order_inside_a_bag_does_not_matter(probe):
    close(probe["nets.losses"]["permuted"], probe["nets.losses"]["uneven"])


def test_two_logits_are_the_binary_form(probe):
    close(probe["nets.losses"]["two_logits"], probe["nets.losses"]["uneven"])


def test_confident_networks_need_no_clamp(probe):
    got = probe["nets.losses"]
    close(got["confident"], entropy([0.25, 0.75]))
    close(got["wrong_and_confident"], 200.0)
    assert math.isnan(got["not_a_number"])


def test_best_constant_is_the_proportion(probe):
    close(probe["nets.losses"]["best_constant"], 0.25)


def test_instance_cross_entropy_with_hard_and_soft_targets(probe):
    close(probe["nets.losses"]["soft"], probe["nets.losses"]["soft_numpy"])
    close(probe["nets.losses"]["hard"], probe["nets.losses"]["hard_numpy"])


def test_segments(probe):
    close(probe["nets.losses"]["segment_mean"], probe["nets.losses"]["segment_mean_numpy"])
    close(probe["nets.losses"]["segment_logsumexp_empty"], [2 + math.log1p(math.exp(-1)), 0, 0])


def test_gradient_of_the_network_is_the_slope_of_its_loss(probe):
    got = probe["nets.network_gradient"]
    close(got["slope"], got["slope_by_difference"], 3e-2)


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_backends_agree_on_loss_gradient_and_training(backend):
    ours, theirs = figures("jax"), figures(backend)
    close(theirs["nets.network_gradient"]["loss"], ours["nets.network_gradient"]["loss"], 1e-6)
    close(theirs["nets.network_gradient"]["gradient"], ours["nets.network_gradient"]["gradient"], 1e-6)
    close(theirs["nets.training"]["scores"], ours["nets.training"]["scores"], 1e-3)


def test_same_seed_gives_the_same_bits(probe):
    assert probe["nets.training"]["same_seed"]
    assert not probe["nets.training"]["other_seed"]


def test_best_weights_are_restored_and_training_stops_on_request(probe):
    got = probe["nets.training"]
    assert got["reports"] == 4
    assert got["restored_best"]
    assert got["reports_differ"]
    assert got["never_best"]
    assert got["chunk_free"]
    assert got["no_rows"] == [0]


def test_network_learns(probe):
    got = probe["nets.training"]
    assert got["auc"] > 0.9
    assert got["supervised_auc"] > 0.9
    assert got["multiclass_shape"] == [600, 3]
    assert got["multiclass_sums"]
    assert got["multiclass_accuracy"] > got["majority"] + 0.2
    assert got["multiclass_supervised"] > got["majority"] + 0.2


@pytest.mark.parametrize("case", ["bag_of_one", "two_bags", "one_bag"])
def test_degenerate_bags_give_finite_scores(probe, case):
    assert probe["nets.training"][case]


def test_uneven_bags_and_new_settings_compile_once(probe):
    assert probe["nets.training"]["programs"] == 1
    assert probe["nets.later_methods"]["programs"] == 1
    assert probe["nets.later_methods"]["programs_after_new_settings"] == 1


@pytest.mark.parametrize(("when", "reports"), [("later", 2), ("at_once", 1)])
def test_divergence_ends_the_fit_at_the_best_weights(probe, when, reports):
    assert probe["nets.divergence"][when] == {"reports": reports, "noted": True, "kept": True, "finite": True}


def test_custom_losses_train(probe):
    got = probe["nets.later_methods"]
    for name in ("two_heads", "adversarial", "blocks", "noisy_groups"):
        assert got[name] > 0.85, name
    assert got["embedding"] == [600, 8]
    assert got["kept_weights"]


def test_input_gradient_finds_the_adversary_of_a_logistic_model(probe):
    close(np.abs(probe["nets.input_gradient"]), [[0.6, 0.8], [0.6, 0.8]])


def test_adamw_is_that_of_keras(probe):
    for ours, theirs in zip(probe["nets.optimiser"]["ours"], probe["nets.optimiser"]["keras"], strict=True):
        close(ours, theirs)


def test_running_statistics_follow_the_batches_unless_frozen(probe):
    got = probe["nets.running_statistics"]
    assert got["moving_finite"]
    assert got["frozen_finite"]
    start = [[0.0] * 8, [1.0] * 8]
    assert got["frozen"] == start
    assert got["moving"] != start


def test_forked_child_trains_to_the_same_bits(probe):
    assert probe["nets.in_a_fork"] == probe["nets.training"]["scores"]


def test_normal_numbers_depend_on_the_key_alone(probe):
    got = probe["nets.randomness"]
    assert got["same"]
    assert got["differ"]
    assert abs(got["mean"]) < 0.1
    assert abs(got["sd"] - 1) < 0.1


def test_jax_does_not_compile_again_in_another_process(tmp_path):
    first = figures("jax")
    folder = compile_cache() / "compiled" / "jax"
    before = {path.name for path in folder.iterdir() if path.name.endswith("-cache")}
    assert any("run_epoch" in name for name in before)
    assert run_probe("jax", tmp_path / "again.json", "nets.training").returncode == 0
    assert {path.name for path in folder.iterdir() if path.name.endswith("-cache")} == before
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["nets.training"]["scores"] == first["nets.training"]["scores"]


def test_default_backend_is_jax_and_unknown_ones_are_rejected(tmp_path):
    code = "from llpbench_methods.nets.backend import backend; print(backend().name)"
    env = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    env |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "LLPBENCH_CACHE": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "jax"
    code = "import keras; keras.backend.backend = lambda: 'abacus'\n" + code
    env["KERAS_BACKEND"] = "jax"
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert "abacus" in run.stderr
    assert "jax, tensorflow, torch" in run.stderr
