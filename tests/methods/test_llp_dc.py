"""LLP-DC: its loss on each backend, and a fit in two stages."""

from __future__ import annotations

import numpy as np
import pytest
from baselines import close, each_backend, figures


Z = np.array([-1.0, 0.0, 0.5, 2.0])
LABELS = np.array([0, 0, 0, 1])
PER_ROW = np.logaddexp(0, Z) - LABELS * Z
BAGS = 0.7709698346


@pytest.mark.slow
@each_backend
def test_loss_is_that_of_bags_and_that_of_labels(backend: str) -> None:
    got = figures(backend)["llp_dc"]
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
    got = figures(backend)["llp_dc"]
    counts = np.exp(-PER_ROW) >= 0.6
    assert counts.tolist() == [True, False, False, True]
    close(got["confident"][0], BAGS + 0.5 * (PER_ROW * counts).mean())
    p = 1 / (1 + np.exp(-Z))
    slope = np.array([0.0637124592, 0.0810129606, 0.0761533859, 0.0340233648])
    close(got["confident"][1], slope + 0.5 * (p - LABELS) * counts / 4)
    close(got["multiclass"], got["multiclass_numpy"])


@pytest.mark.slow
@each_backend
def test_the_second_stage_begins_at_the_best_of_the_first_and_stands_only_if_it_is_better(backend: str) -> None:
    got = figures(backend)["llp_dc"]
    assert got["stages"] == ["bags"] * 3 + ["labels"] * 4  # the start of the second is reported too
    assert got["starts_at_best"]
    assert got["warmup_is_dllp"]
    assert got["kept_when_worse"]
    assert got["kept_when_better"]
    assert got["labels_fit"]
