"""Stability of pairwise belief propagation: the index g and automatic damping."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llpbench_methods.inference import (
    MOST_DAMPING,
    GibbsModel,
    OscillationWarning,
    auto_damping,
    build_graph,
    critical_damping,
    damping_limit,
    gibbs_model,
    marginals,
    potts_model,
    stability_index,
)
from llpbench_methods.inference.damping import advance_with_auto_damping, swing_of


def test_stability_index_has_the_stated_formula() -> None:
    for size, count, lam in ((128, 31, 0.3422), (512, 123, 0.0796), (2048, 492, 0.0184)):
        model = gibbs_model(None, np.zeros(size, dtype=int), [count], lambda_b=lam)
        g = stability_index(model)
        assert g == pytest.approx(2 * lam * (size - 1) * (count / size) * (1 - count / size))
    assert stability_index(gibbs_model(None, [0, 1, 1], [1, 1], lambda_b=[5.0, 0.0])).tolist() == [0.0, 0.0]
    multi = potts_model(None, np.zeros(4, dtype=int), [[1, 1, 2]], lambda_b=0.5)
    assert stability_index(multi).shape == (1, 3)


def test_damping_formulas() -> None:
    assert damping_limit(0.5) == pytest.approx(3.0)
    assert damping_limit(0.0) == 1.0
    for g in (1.5, 3.0, 16.0):
        assert damping_limit(critical_damping(g)) == pytest.approx(g)
        assert auto_damping(g) > critical_damping(g)
    assert critical_damping(0.7) == auto_damping(0.7) == 0.0
    assert critical_damping(16.0) == pytest.approx(0.882, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("damping", "settles"), [(0.85, False), (0.91, True)])
def test_critical_damping_at_g_16(damping: float, settles: bool) -> None:
    rng = np.random.default_rng(0)
    lam = 16.0 / (2 * 127 * 0.25 * 0.75)
    model = gibbs_model(None, np.arange(512) // 128, np.full(4, 32), lambda_b=lam, fields=1e-3 * rng.normal(size=512))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OscillationWarning)
        result = marginals(model, "pairwise", rounds=600, damping=damping, tol=1e-3)
    assert result.converged is settles


@pytest.mark.parametrize("engine", ["reference", "pairwise"])
@pytest.mark.parametrize("lambda_b", [0.01, 0.3, 1.0])
def test_auto_damping_settles(engine: str, lambda_b: float) -> None:
    rng = np.random.default_rng(1)
    graph = build_graph(rng.normal(size=(160, 3)), 1)
    model = gibbs_model(graph, np.arange(160) // 32, [8, 7, 9, 6, 10], lambda_b=lambda_b, lambda_s=0.5)
    result = marginals(model, engine, rounds=1500, damping="auto", tol=1e-4)
    assert result.converged
    assert result.rounds < 1500
    assert result.residuals.shape == (result.rounds,)
    assert result.stability == pytest.approx(stability_index(model).max())


def test_auto_damping_raises_itself_when_the_guess_is_too_low() -> None:
    # Strong repelling edges, which the index of the bags does not see: a frustrated odd ring plus chords.
    n = 9
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    model = GibbsModel(np.full(n, 3.0), edges, np.full(len(edges), -1.5), np.full(n, -1), np.zeros(0), np.zeros(0))
    with pytest.warns(OscillationWarning):
        assert not marginals(model, "reference", rounds=100, damping=0.0, tol=1e-6).converged
    result = marginals(model, "reference", rounds=800, damping="auto", tol=1e-6)
    assert result.converged
    assert result.damping >= 0.5


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.2, 12.0))
def test_auto_damping_stays_near_what_stability_asks_for(seed: int, g: float) -> None:
    """Bags without edges: messages settle, and at no more damping than one step above where they began."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(4, 40))
    count = int(rng.integers(1, size))
    lam = g / (2 * (size - 1) * count / size * (1 - count / size))
    fields = 0.3 * rng.normal(size=2 * size)
    model = gibbs_model(None, np.arange(2 * size) // size, [count, count], lambda_b=min(lam, 2.0), fields=fields)
    start = auto_damping(float(stability_index(model).max()))
    result = marginals(model, "reference", rounds=1500, damping="auto", tol=1e-5)
    assert result.converged
    assert start - 1e-12 <= result.damping <= 1 - 0.25 * (1 - start)


@pytest.mark.parametrize("gain", [0.995, 1.05, 1.2])
def test_slow_convergence_without_swings_is_not_damped(gain: float) -> None:
    """Near the critical strength residuals stand still or grow for many rounds, but nothing swings."""
    n = 60
    ring = np.array(sorted(tuple(sorted((i, (i + step) % n))) for i in range(n) for step in (1, 2, 3)))
    coupling = 4.0 * np.arctanh(gain / 5.0)  # six neighbours, of which the receiver is left out
    model = GibbsModel(
        np.full(n, 1e-3 - 3.0 * coupling), ring, np.full(len(ring), coupling), np.full(n, -1), np.zeros(0), np.zeros(0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OscillationWarning)
        result = marginals(model, "reference-count", rounds=40, damping="auto", tol=1e-9)
    assert result.residuals[19] > 0.9 * result.residuals[9]
    assert result.damping == 0.0


def test_damping_is_lowered_again_after_a_first_swing() -> None:
    """A bag far from its count swings at first; what then goes on is one-way, and is not slowed for ever."""

    class Swings:
        """One row that swings for 25 rounds whatever the damping, and then creeps."""

        def __init__(self) -> None:
            self.t, self.x = 0, np.zeros(1)

        def advance(self, rounds: int, damping: float, tol: float) -> np.ndarray:
            moved = []
            for _ in range(rounds):
                self.t += 1
                change = (-1.0) ** self.t if self.t < 25 else 0.5
                self.x = self.x + (1 - damping) * change
                moved.append(abs((1 - damping) * change))
            return np.array(moved)

        def log_odds(self) -> np.ndarray:
            return self.x

    residuals, damping = advance_with_auto_damping(Swings(), 24, 0.5, 1e-6)
    assert (len(residuals), damping) == (24, 0.75)
    residuals, damping = advance_with_auto_damping(Swings(), 200, 0.5, 1e-6)
    assert (len(residuals), damping) == (200, 0.5)


def test_swing_reverses_the_previous_change() -> None:
    zero, one, two = np.zeros(3), np.array([1.0, -1.0, 2.0]), np.array([0.5, -3.0, 2.0])
    assert swing_of(zero, one, two) == 0.5  # the second row moves most, but goes on; the third stands
    assert swing_of(zero, one, 2 * one) == 0.0
    assert swing_of(np.full(1, np.inf), np.full(1, np.inf), np.zeros(1)) == 0.0


def test_stable_run_does_not_warn() -> None:
    model = gibbs_model(None, np.arange(32) // 8, [2, 2, 3, 1], lambda_b=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = marginals(model, "pairwise", rounds=200, damping=0.5, tol=1e-5)
    assert result.converged
    assert result.residuals[-1] <= 1e-5 < result.residuals[-2]


@pytest.mark.parametrize("engine", ["reference", "pairwise"])
def test_frozen_messages_are_not_called_converged(engine: str) -> None:
    """Ten rows with a strong bag term: damping until nothing moves is no answer; the exact one is three of ten."""
    model = gibbs_model(None, np.zeros(10, int), [3], lambda_b=10.0, fields=np.linspace(-0.5, 0.5, 10))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = marginals(model, engine, rounds=300, damping="auto", tol=1e-4)
    assert result.damping <= MOST_DAMPING
    if result.converged:
        settled = marginals(model, engine, rounds=20_000, damping=0.99, tol=1e-6)
        np.testing.assert_allclose(result.beliefs, settled.beliefs, atol=1e-2)
    else:
        assert any(issubclass(w.category, OscillationWarning) for w in said)


def test_residual_is_that_of_an_undamped_round() -> None:
    """From the same messages, a damped round changes a share `1 - d` of what an undamped one does."""
    model = gibbs_model(None, np.arange(32) // 8, [2, 2, 3, 1], lambda_b=0.1, fields=np.linspace(-1, 1, 32))
    first = [marginals(model, "reference", rounds=1, damping=d, tol=0.0).residuals[0] for d in (0.0, 0.5, 0.9)]
    np.testing.assert_allclose(first, first[0], rtol=1e-6)
