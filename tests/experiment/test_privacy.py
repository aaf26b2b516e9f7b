"""Noise on counts: the Gaussian mechanism with the paper's numbers, the analytic one, and noise on features."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from helpers import bags_and_labels, make_cell, make_part, make_plan, make_result, quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from llpbench import DataUnavailableError, UsageError
from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Part, Split
from llpbench.contracts.job import Job
from llpbench.execution.settings import combine
from llpbench.execution.worker import run_job
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.privacy import (
    add_count_noise,
    count_noise_sd,
    count_sensitivity,
    epsilon_of,
    log_gaussian_delta,
    noise_name,
)
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.seeds import derive_seed, secret_rng
from llpbench.experiment.split import load_split
from llpbench.plugins.registry import load_registry
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import aggregate

REGISTRY = load_registry()


def test_standard_deviation_is_that_of_the_gaussian_mechanism() -> None:
    assert count_noise_sd(1.0, 1e-5) == pytest.approx(4.8448, abs=5e-5)
    assert count_noise_sd(10.0, 1e-5) == pytest.approx(0.48448, abs=5e-6)
    assert count_noise_sd(epsilon_of("high"), 1e-5) == count_noise_sd(1.0, 1e-5)
    assert count_noise_sd(epsilon_of("medium"), 1e-5) == count_noise_sd(10.0, 1e-5)
    assert count_noise_sd(epsilon_of("none"), 1e-5) == 0.0


@quick
@given(epsilon=st.floats(0.01, 100), delta=st.floats(1e-9, 0.5), size=st.integers(1, 4096))
def test_proportion_noise_has_the_documented_formula(epsilon: float, delta: float, size: int) -> None:
    wanted = math.sqrt(2 * math.log(1.25 / delta)) / (epsilon * size)
    assert count_noise_sd(epsilon, delta) / size == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, float("nan")])
def test_impossible_delta_is_rejected(delta: float) -> None:
    with pytest.raises(UsageError, match="--delta"):
        count_noise_sd(1.0, delta)


def test_unknown_mechanism_is_rejected() -> None:
    with pytest.raises(UsageError, match=r"unknown noise mechanism 'laplace'.*analytic, gaussian"):
        count_noise_sd(1.0, 1e-5, "laplace")


@pytest.mark.parametrize(
    ("text", "label", "epsilon"),
    [
        ("none", "none", None),
        ("medium", "medium", 10.0),
        ("epsilon=10", "medium", 10.0),
        ("1.0", "high", 1.0),
        ("epsilon=3", "epsilon=3", 3.0),
        ("0.50", "epsilon=0.5", 0.5),
    ],
)
def test_levels_have_one_name_each(text: str, label: str, epsilon: float | None) -> None:
    assert noise_name(text) == label
    assert epsilon_of(text) == epsilon


@quick
@given(st.floats(min_value=1e-300, allow_infinity=False))
def test_level_keeps_its_epsilon_to_the_last_digit(epsilon: float) -> None:
    assert epsilon_of(noise_name(f"epsilon={epsilon!r}")) == epsilon


@pytest.mark.parametrize("text", ["", "loud", "0", "-1", "nan", "inf", "epsilon=", "epsilon=x"])
def test_other_levels_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="positive epsilon"):
        epsilon_of(text)


def test_noise_has_the_given_spread_is_seeded_and_leaves_the_counts_alone() -> None:
    counts = np.zeros((40_000, 1))
    noisy = add_count_noise(counts, 4.8448, np.random.default_rng(0))
    assert noisy.std() == pytest.approx(4.8448, rel=0.02)
    assert abs(noisy.mean()) < 0.1
    assert (noisy < 0).any()  # not clipped
    assert not counts.any()
    np.testing.assert_array_equal(noisy, add_count_noise(counts, 4.8448, np.random.default_rng(0)))
    assert add_count_noise(counts, 0.0, np.random.default_rng(0)) is counts


# -- the analytic mechanism --------------------------------------------------------------------------------------------

EPSILONS, DELTAS = st.floats(0.01, 50.0), st.floats(1e-10, 0.5)


def least_delta(epsilon: float, sd: float, sensitivity: float = 1.0) -> float:
    """The least delta for which N(0, sd^2) noise is (epsilon, delta)-private, from the definition alone.

    ``sup_A P(A) - e^epsilon Q(A)`` is taken at ``A = {p > e^epsilon q}``: the integral of the positive part of
    ``p - e^epsilon q``, p and q being the densities of the outputs for two neighbours.
    """

    def positive(x: float) -> float:
        p = norm.pdf(x, sensitivity, sd)
        return max(0.0, p - p * math.exp(epsilon + norm.logpdf(x, 0, sd) - norm.logpdf(x, sensitivity, sd)))

    start = sensitivity / 2 + epsilon * sd**2 / sensitivity  # where the densities' ratio is e^epsilon
    total, _ = quad(positive, start, max(start, sensitivity) + 12 * sd, epsabs=0, epsrel=1e-10, limit=400)
    return float(total)


@quick
@given(EPSILONS, DELTAS)
def test_analytic_noise_solves_its_equation(epsilon: float, delta: float) -> None:
    sd = count_noise_sd(epsilon, delta, "analytic")
    assert log_gaussian_delta(epsilon, sd) == pytest.approx(math.log(delta), abs=1e-9)
    a, b = 1 / (2 * sd) - epsilon * sd, -1 / (2 * sd) - epsilon * sd
    assert norm.cdf(a) - math.exp(epsilon) * norm.cdf(b) == pytest.approx(delta, abs=1e-10)


@pytest.mark.parametrize("sensitivity", [1.0, math.sqrt(2.0)])
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-2])
def test_analytic_noise_is_private_and_minimal(epsilon: float, delta: float, sensitivity: float) -> None:
    sd = count_noise_sd(epsilon, delta, "analytic", sensitivity)
    assert least_delta(epsilon, sd, sensitivity) == pytest.approx(delta, rel=1e-6)
    assert least_delta(epsilon, 1.001 * sd, sensitivity) < delta
    assert least_delta(epsilon, 0.999 * sd, sensitivity) > delta


def test_privacy_inequality_holds_for_every_event() -> None:
    epsilon, delta = 3.0, 1e-2
    sd = count_noise_sd(epsilon, delta, "analytic")
    ends = np.sort(np.random.default_rng(0).uniform(-6, 8, (5000, 2)), axis=1)
    for one, other in ((0.0, 1.0), (1.0, 0.0)):
        p, q = (norm.cdf(ends[:, 1], c, sd) - norm.cdf(ends[:, 0], c, sd) for c in (one, other))
        assert (p <= math.exp(epsilon) * q + delta).all()
        assert not (p <= math.exp(epsilon) * q + 0.9 * delta).all()  # nearly tight: the check can fail


def test_classic_formula_fails_above_epsilon_one() -> None:
    for epsilon in (0.1, 0.5, 0.99):
        assert least_delta(epsilon, count_noise_sd(epsilon, 1e-5)) < 1e-5
        assert count_noise_sd(epsilon, 1e-5, "analytic") < count_noise_sd(epsilon, 1e-5)
    assert least_delta(10.0, count_noise_sd(10.0, 1e-5)) > 1.5e-5  # the level called medium


@quick
@given(EPSILONS, DELTAS, st.floats(1.01, 3.0))
def test_more_privacy_needs_more_noise(epsilon: float, delta: float, factor: float) -> None:
    sd = count_noise_sd(epsilon, delta, "analytic")
    assert count_noise_sd(epsilon * factor, delta, "analytic") < sd
    assert count_noise_sd(epsilon, min(delta * factor, 0.99), "analytic") < sd
    assert count_noise_sd(epsilon, delta, "analytic", factor) == pytest.approx(factor * sd)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 100.0, 1e4, 1e8])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 0.5, 1 - 1e-9])
def test_extreme_levels_have_finite_noise(epsilon: float, delta: float) -> None:
    sd = count_noise_sd(epsilon, delta, "analytic")
    assert 0 < sd < math.inf
    assert log_gaussian_delta(epsilon, sd) == pytest.approx(math.log(delta), rel=1e-6, abs=1e-6)


def test_changed_label_moves_two_counts_of_several_classes() -> None:
    assert count_sensitivity(2) == 1.0
    labels = np.array([0, 2, 1, 1])
    other = np.array([0, 2, 1, 0])
    gap = np.bincount(labels, minlength=3) - np.bincount(other, minlength=3)
    assert count_sensitivity(3) == pytest.approx(np.linalg.norm(gap))


# -- from the request to the bags --------------------------------------------------------------------------------------


def small_job(**changes: object) -> Job:
    options = REGISTRY.datasets["synthetic"].resolve({"rows": 600, "dim": 3, **changes.pop("options", {})})  # type: ignore[dict-item]
    facts = {"dataset": "synthetic", "dataset_options": options, "method": "mean-ridge", **changes}
    facts["params"] = REGISTRY.methods["mean-ridge"].resolve({})
    return Job(cell=make_cell(**facts), method_name="", dataset_name="", out="unused")


def loaded(job: Job) -> Split:
    return load_split(job, REGISTRY.datasets["synthetic"])


@pytest.mark.parametrize(
    ("file", "flags", "noise"),
    [
        ({"epsilon": [1.0]}, {"noise": ["none"]}, ["none"]),
        ({"noise": ["high"]}, {"epsilon": [3.0]}, ["epsilon=3.0"]),
        ({"noise": ["none"], "epsilon": [1.0]}, {}, ["none", "epsilon=1.0"]),
        ({"noise": ["high"], "epsilon": [1.0]}, {"noise": ["none"], "epsilon": [3.0]}, ["none", "epsilon=3.0"]),
    ],
)
def test_noise_by_flag_wins_over_that_of_the_file_in_either_form(
    file: dict[str, list[object]], flags: dict[str, list[object]], noise: list[str]
) -> None:
    spec = combine({"methods": ["mean-ridge"], **file}, flags, RunSettings)
    assert spec.noise == noise


def test_noise_levels_by_epsilon_are_cells_of_their_own() -> None:
    flags = {"methods": ["mean-ridge"], "datasets": ["synthetic"], "bags": [8], "seeds": 1}
    spec = combine({}, {**flags, "epsilon": [10.0, 3.0, 1.0, 0.3]}, RunSettings)
    plans = plan_cells(spec, REGISTRY)
    assert [p.cell.noise for p in plans] == ["medium", "epsilon=3", "high", "epsilon=0.3"]
    other = plan_cells(spec.replace(mechanism="analytic"), REGISTRY)
    assert all(p.cell.mechanism == "analytic" for p in other)
    assert not {p.cell.id for p in plans} & {p.cell.id for p in other}
    named = plan_cells(spec.replace(mechanism="".join(["gauss", "ian"])), REGISTRY)
    assert [p.cell.id for p in named] == [p.cell.id for p in plans]
    quiet = spec.replace(mechanism="analytic", noise=["none"])
    assert plan_cells(quiet, REGISTRY)[0].cell.mechanism == "gaussian"  # without noise there is no mechanism
    with pytest.raises(UsageError, match="unknown mechanism 'laplace'"):
        spec.replace(mechanism="laplace")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("mechanism", ["gaussian", "analytic"])
def test_noise_of_counts_matches_count_sd(classes: int, mechanism: str) -> None:
    job = small_job(noise="epsilon=0.3", mechanism=mechanism, bag_size=2, options={"classes": classes})
    split = loaded(job)
    noisy, *_ = bags_and_labels(job, split, REGISTRY)
    exact, *_ = bags_and_labels(small_job(bag_size=2, options={"classes": classes}), split, REGISTRY)
    wanted = count_noise_sd(0.3, 1e-5, mechanism, count_sensitivity(classes))
    for a, b in ((noisy, exact), (noisy.validation, exact.validation)):
        assert a is not None
        assert b is not None
        assert a.count_sd == wanted
        assert b.count_sd == 0.0
        np.testing.assert_array_equal(a.X, b.X)
        spread = (a.counts - b.counts).std()
        assert spread == pytest.approx(wanted, rel=0.2)
        assert a.proportions.min() < 0
        assert a.proportions.max() > 1
        assert a.clipped_proportions.min() >= 0
        assert a.clipped_proportions.max() <= 1


def test_result_records_the_noise_of_counts(tmp_path: Path) -> None:
    job = small_job(noise="epsilon=3", mechanism="analytic", bag_size=4)
    result = run_job(Job(cell=job.cell, method_name="", dataset_name="", out=str(tmp_path)))
    assert result.status == "ok", result.reason
    assert result.count_sd == count_noise_sd(3.0, 1e-5, "analytic")
    assert (result.cell.noise, result.cell.delta, result.cell.mechanism) == ("epsilon=3", 1e-5, "analytic")


def test_tables_distinguish_mechanisms() -> None:
    cells = [make_cell(noise="high"), make_cell(noise="high", mechanism="analytic")]
    results = [make_result(cell, value) for cell, value in zip(cells, (0.6, 0.7), strict=True)]
    rows = aggregate([make_plan(cell) for cell in cells], results, [MetricStyle("auroc")], ["bags"])
    assert [(row.noise, row.mean) for row in rows] == [("high", 60.0), ("high, analytic", 70.0)]


# -- noise on features -------------------------------------------------------------------------------------------------


def test_feature_noise_is_added_to_the_features_of_all_parts_alike() -> None:
    plain, noisy, louder = (loaded(small_job(feature_noise=sigma)) for sigma in (0.0, 0.05, 0.1))
    for part in ("train", "valid", "test"):
        a, b, c = (getattr(split, part) for split in (plain, noisy, louder))
        assert (b.X - a.X).std() == pytest.approx(0.05, rel=0.1)
        np.testing.assert_allclose(c.X - a.X, 2 * (b.X - a.X), atol=1e-6)  # the same draws, twice as large
        np.testing.assert_array_equal(a.y, b.y)
        assert b.X.dtype == np.float32
    again = loaded(small_job(feature_noise=0.05))
    np.testing.assert_array_equal(again.train.X, noisy.train.X)
    other = loaded(small_job(feature_noise=0.05, seed=1))
    assert not np.array_equal(other.train.X - loaded(small_job(seed=1)).train.X, noisy.train.X - plain.train.X)


@pytest.mark.slow
def test_feature_noise_meets_standardised_numbers() -> None:
    """On a table the noise is in units of a column's standard deviation: numbers arrive standardised."""
    names = {e.spec.name for e in REGISTRY.datasets}
    assert "adult" in names
    cell = Cell(
        dataset="adult",
        dataset_options=REGISTRY.datasets["adult"].resolve({"encoding": "ordinal"}),
        method="mean-ridge",
        bag_size=8,
        seed=0,
    )
    try:
        split = load_split(Job(cell=cell, method_name="", dataset_name="", out=""), REGISTRY.datasets["adult"])
    except DataUnavailableError as error:
        pytest.skip(str(error))
    assert np.abs(split.train.X.mean(axis=0)).max() < 0.05
    spread = split.train.X.std(axis=0)
    assert np.median(spread) == pytest.approx(1.0, abs=0.05)  # clipping at four deviations narrows long tails
    assert spread.min() > 0.3


def test_noise_seed_depends_on_the_labels() -> None:
    """A method knows every axis of its cell; but one label exchanged makes other noise."""
    labels = [np.array([0, 1, 1, 0]), np.array([1])]
    axes = {"bags": 7, "noise": "high"}
    draw = secret_rng("noise", labels, **axes).normal(size=4)
    again = secret_rng("noise", [part.astype(np.int16) for part in labels], **axes)
    np.testing.assert_array_equal(draw, again.normal(size=4))
    others = [
        secret_rng("noise", [np.array([1, 0, 1, 0]), np.array([1])], **axes),
        secret_rng("noise", labels, **{**axes, "bags": 8}),
        secret_rng("feature-noise", labels, **axes),
        np.random.default_rng(derive_seed("noise", **axes)),
    ]
    for other in others:
        assert not np.isclose(other.normal(size=4), draw).any()


def test_noise_of_a_cell_follows_its_labels() -> None:
    """Labels exchanged inside a bag leave all counts as they are, and give other noise."""
    part, other = make_part(40, seed=1), make_part(40, seed=2)
    swapped = part.y.copy()
    swapped[[int(np.flatnonzero(part.y == 0)[0]), int(np.flatnonzero(part.y == 1)[0])]] = [1, 0]
    job = Job(cell=make_cell(noise="high", bag_size=40), method_name="m", dataset_name="d", out="/x")
    splits = [Split(Part(part.X, y), other, other) for y in (part.y, swapped)]
    first, second = (bags_and_labels(job, split, REGISTRY)[0] for split in splits)
    assert abs(first.counts - second.counts).min() > 1e-6
    assert first.validation is not None
    assert second.validation is not None
    assert abs(first.validation.counts - second.validation.counts).min() > 1e-6
