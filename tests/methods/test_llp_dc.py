"""LLP-DC: its loss on each backend, a fit in two stages, and the temperature fitted on bags."""

from __future__ import annotations

import numpy as np
import pytest
from backends import close, each_backend, figures

from llpbench import Bags
from llpbench_methods.llp_dc.method import LLPDC
from llpbench_methods.shared.temperature import bag_loss, bag_temperature, tempered

Z = np.array([-1.0, 0.0, 0.5, 2.0])
LABELS = np.array([0, 0, 0, 1])
PER_ROW = np.logaddexp(0, Z) - LABELS * Z
BAGS = 0.7709698346


@pytest.mark.slow
@each_backend
def test_loss_is_that_of_bags_and_that_of_labels(backend: str) -> None:
    got = figures(backend)["losses.llp_dc"]
    close(got["labels"], LABELS)  # the row with the highest logit, for a count of one
    close(got["whole"][0], BAGS + 0.67 * PER_ROW.mean())
    p = 1 / (1 + np.exp(-Z))
    slope = np.array([0.0637124592, 0.0810129606, 0.0761533859, 0.0340233648])
    close(got["whole"][1], slope + 0.67 * (p - LABELS) / 4)
    close(got["no_weight"][0], BAGS)
    close(got["no_weight"][1], slope)
    close(got["padded"], got["whole"][0])


@pytest.mark.slow
@each_backend
def test_labels_below_the_threshold_do_not_count(backend: str) -> None:
    got = figures(backend)["losses.llp_dc"]
    counts = np.exp(-PER_ROW) >= 0.6
    assert counts.tolist() == [True, False, False, True]
    close(got["confident"][0], BAGS + 0.5 * (PER_ROW * counts).mean())
    p = 1 / (1 + np.exp(-Z))
    slope = np.array([0.0637124592, 0.0810129606, 0.0761533859, 0.0340233648])
    close(got["confident"][1], slope + 0.5 * (p - LABELS) * counts / 4)
    close(got["multiclass"], got["multiclass_numpy"])


@pytest.mark.slow
@each_backend
def test_second_stage_starts_at_the_best_model_and_must_improve(backend: str) -> None:
    got = figures(backend)["losses.llp_dc"]
    assert got["stages"] == ["bags"] * 3 + ["labels"] * 4  # the start of the second is reported too
    assert got["starts_at_best"]
    assert got["warmup_is_dllp"]
    assert got["kept_when_worse"]
    assert got["kept_when_better"]
    assert got["labels_fit"]


def held_out(classes: int, size: int = 8, n: int = 4000) -> tuple[Bags, np.ndarray]:
    """Bags, and the logits of the law that their labels have."""
    rng = np.random.default_rng(classes)
    z = 2.0 * rng.normal(size=(n, classes))
    y = np.argmax(z + rng.gumbel(size=z.shape), axis=1)
    offsets = np.arange(0, n + 1, size)
    counts = np.add.reduceat(np.eye(classes)[y], offsets[:-1], axis=0)
    bags = Bags(np.zeros((n, 1), np.float32), offsets, counts[:, 1:] if classes == 2 else counts, classes)
    return bags, z[:, 1] - z[:, 0] if classes == 2 else z


@pytest.mark.parametrize("classes", [2, 3])
def test_temperature_corrects_overconfidence(classes: int) -> None:
    bags, z = held_out(classes)
    right = bag_temperature(z, bags)
    assert 0.7 < right < 1.4
    assert bag_temperature(6.0 * z, bags) == pytest.approx(6.0 * right, rel=0.1)
    close(tempered(6.0 * z, 6.0), tempered(z, 1.0), 1e-12)
    assert tempered(z, 2.0).shape == z.shape


@pytest.mark.parametrize("classes", [2, 3])
def test_loss_of_a_temperature_is_that_of_the_rule(classes: int) -> None:
    from llpbench.contracts.data import HeldOut
    from llpbench.experiment.rules import bag_cross_entropy

    bags, z = held_out(classes)
    for temperature in (0.5, 1.0, 5.0):
        p = tempered(z, temperature)
        wanted = bag_cross_entropy(HeldOut(p, p, bags, None))
        assert bag_loss(z, bags, temperature) == pytest.approx(wanted, abs=1e-4)


def test_restore_rejects_an_invalid_temperature() -> None:
    with pytest.raises(ValueError, match="invalid temperature -1"):
        LLPDC().restore({"temperature": -1.0})
