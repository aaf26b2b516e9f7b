"""DLLP's squared errors."""

from __future__ import annotations

import numpy as np
import pytest
from backends import close, each_backend, figures

MEAN = 0.5680494576


@pytest.mark.slow
@each_backend
def test_squared_errors_have_the_known_values(backend):
    got = figures(backend)["losses.dllp"]
    close(got["proportion"][0], 0.1011554575)
    close(got["count"][0], 1.6184873201)
    close(got["multiclass"], np.sum((np.array([0.4586920063, 0.2214200722, 0.3198879216]) - [0.5, 0.25, 0.25]) ** 2))


@pytest.mark.slow
@each_backend
def test_gradient(backend):
    p = 1 / (1 + np.exp(-np.array([-1.0, 0.0, 0.5, 2.0])))
    expected = 2 * (MEAN - 0.25) * p * (1 - p) / 4
    close(figures(backend)["losses.dllp"]["proportion"][1], expected)
    close(figures(backend)["losses.dllp"]["count"][1], 16 * expected)


@pytest.mark.slow
@each_backend
def test_uneven_bags_weigh_as_their_size_squared_and_padding_not_at_all(backend):
    p = 1 / (1 + np.exp(-np.array([-1.0, 0.0, 0.5])))
    close(figures(backend)["losses.dllp"]["uneven"], ((p[0] - 0.5) ** 2 + (p[1] + p[2] - 3.0) ** 2) / 2)
