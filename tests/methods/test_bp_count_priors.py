"""Evidence, averaging and fields of bp-count's regression, against brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from llpbench import Column
from llpbench_methods.bp_count.linear import LinearField, MeanRegression, extended_means
from llpbench_methods.bp_count.priors import (
    Family,
    average,
    dirichlet_draws,
    group_family,
    log_evidences,
    noise_factors,
    sparse_family,
    spectral_variances,
    spectrum_family,
)
from llpbench_methods.shared.columns import ColumnGroups, HatFunctions, TableView
from llpbench_methods.shared.mean_regression import decompose, regression
from llpbench_methods.shared.spectrum import principal_components

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(60, 4)) * [1.0, 2.0, 0.5, 1.0] + RNG.normal(size=(60, 1))


def _problem(n_bags: int = 7, d: int = 4):
    rng = np.random.default_rng(n_bags)
    means, proportions = rng.normal(size=(n_bags, d)), rng.uniform(0.1, 0.5, n_bags)
    noise = rng.uniform(0.005, 0.02, n_bags)
    return means, proportions, noise, regression(means, proportions, noise)


@pytest.mark.parametrize("n_bags", [3, 7, 12])
def test_evidence_is_the_density_of_the_contrasts(n_bags: int) -> None:
    means, proportions, noise, problem = _problem(n_bags)
    variances = np.array([0.5, 1.0, 0.1, 2.0])
    scales, factors = np.array([0.01, 0.3]), np.array([0.9, 0.4])
    seen = decompose(problem, np.diag(np.sqrt(variances)))
    found = log_evidences(seen, scales, factors) - 0.5 * (n_bags - 1) * np.log(factors)
    contrasts = np.linalg.svd(np.ones((1, n_bags)))[2][1:]
    for value, s2, nu in zip(found, scales, factors, strict=True):
        covariance = s2 * (means * variances) @ means.T + nu * np.diag(noise)
        law = multivariate_normal(np.zeros(n_bags - 1), contrasts @ covariance @ contrasts.T)
        assert value == pytest.approx(law.logpdf(contrasts @ proportions) - 0.5 * np.log(n_bags), abs=1e-8)


def _one_model(means, proportions, noise, variances, s2):
    """Posterior of the weights and evidence, the intercept as one more weight with a nearly flat prior."""
    design = np.column_stack([means, np.ones(len(means))])
    prior = np.append(s2 * variances, 1e5)
    marginal = design @ (prior[:, None] * design.T) + np.diag(noise)
    gain = (prior[:, None] * design.T) @ np.linalg.inv(marginal)
    covariance = np.diag(prior) - gain @ design @ np.diag(prior)
    evidence = multivariate_normal(np.zeros(len(means)), marginal).logpdf(proportions)
    return (gain @ proportions)[:-1], covariance[:-1, :-1], evidence


def test_average_has_the_moments_of_the_mixture() -> None:
    """Members weighed by their evidence under the noise that they leave, estimated under the full noise."""
    means, proportions, noise, problem = _problem()
    rate, shares = 0.3, np.array([0.1, 0.6])
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    direct = Family("B", None, np.array([[1.0, 0.2, 0.0, 3.0], [0.1, 0.1, 2.0, 0.1]]))
    turned = Family("A", turn, np.array([[2.0, 1.0, 0.5, 0.1]]))
    found = average(problem, [direct, turned], rate=rate, dimensions=6, label_noise=0.8, shares=shares)
    models, judged = [], []
    for family in (direct, turned):
        basis = np.eye(4) if family.basis is None else family.basis
        for v in family.variances:
            within = []
            for share in shares:
                s2 = share * rate * (1 - rate)
                w, cov, evidence = _one_model(means @ basis, proportions, noise, v, s2)
                within.append((basis @ w, basis @ cov @ basis.T, np.exp(evidence)))
                judge = _one_model(means @ basis, proportions, (1.0 - 0.8 * share) * noise, v, s2)[2]
                judged.append((np.exp(judge) / len(family.variances), share))
            total = sum(m[2] for m in within)
            member = judged[-2][0] + judged[-1][0]
            models += [(w, cov, member * e / total) for w, cov, e in within]
    weight = np.array([m[2] for m in models])
    weight /= weight.sum()
    mean = sum(p * m[0] for p, m in zip(weight, models, strict=True))
    covariance = sum(p * (m[1] + np.outer(m[0] - mean, m[0] - mean)) for p, m in zip(weight, models, strict=True))
    np.testing.assert_allclose(found.weights, mean, atol=1e-6)
    np.testing.assert_allclose(found.factor @ found.factor.T, covariance, atol=1e-6)
    assert found.family_mass["A"] == pytest.approx(weight[4:].sum(), abs=1e-5)
    mass = np.array(judged)
    assert found.explained == pytest.approx(mass[:, 0] @ mass[:, 1] / mass[:, 0].sum(), abs=1e-5)
    x = RNG.normal(size=(3, 4)) - found.centre
    np.testing.assert_allclose(found.variance(x + found.centre), np.sum((x @ covariance) * x, axis=1), atol=1e-6)


def test_every_prior_has_unit_variance_over_rows() -> None:
    spectrum = principal_components(ROWS)
    C = np.cov(ROWS.T, bias=True)
    rng = np.random.default_rng(0)
    groups = group_family("B", np.diag(C), np.array([0, 0, 1, 2]), 3, rng)
    assert len(groups.variances) == 9
    np.testing.assert_allclose(groups.variances @ np.diag(C), 1.0)
    np.testing.assert_allclose(groups.variances[:, 0], groups.variances[:, 1])
    for family in (spectrum_family(spectrum, 4), sparse_family(spectrum, 4, 3, rng)):
        assert family.basis is not None
        for v in family.variances:
            assert np.trace((family.basis * v) @ family.basis.T @ C) == pytest.approx(1.0)


def test_spectrum_family_is_the_prior_of_mean_ridge() -> None:
    spectrum = principal_components(ROWS)
    for gamma in (0.0, 1.0, 2.5):
        factor = spectrum.prior_factor(gamma)
        variances = spectral_variances(spectrum.variances, [gamma])[0]
        ours = (spectrum.components * variances) @ spectrum.components.T
        np.testing.assert_allclose(ours, factor @ factor.T, atol=1e-12)


def test_group_without_variance_or_of_no_family_has_no_prior() -> None:
    family = group_family("B", np.array([1.0, 0.0, 2.0]), np.array([0, 1, -1]), 2, np.random.default_rng(0))
    np.testing.assert_array_equal(family.variances[:, 1:], 0.0)
    np.testing.assert_allclose(family.variances[:, 0], 1.0)
    assert len(group_family("B", np.zeros(2), np.array([0, 1]), 2, np.random.default_rng(0)).variances) == 0


def test_shares_are_shares_also_for_small_concentrations() -> None:
    draws = np.array(list(dirichlet_draws(2000, 2, np.random.default_rng(0))))
    np.testing.assert_allclose(draws.sum(axis=1), 1.0)
    largest = draws.max(axis=1)
    assert largest[:2].mean() > 2 * largest[-2:].mean()


def test_count_noise_is_not_explained_away() -> None:
    np.testing.assert_allclose(noise_factors(np.array([0.5]), 0.2), 0.9)


def test_hat_functions_interpolate_and_add_up_to_one() -> None:
    X = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32)
    X[:, 1] = X[:, 1] > 0
    hats = HatFunctions.of(X, ColumnGroups.of((Column("x", "numeric"), Column("flag", "numeric")), 2))
    assert hats.features == (0,)
    values = hats.transform(X)
    np.testing.assert_allclose(values.sum(axis=1), 1.0)
    np.testing.assert_allclose(values @ hats.knots[0], X[:, 0], atol=1e-6)
    np.testing.assert_array_equal(hats.transform(np.array([[1e9, 0.0]])), np.eye(7)[-1:])
    assert hats.extend(X).shape == (500, 9)


def test_table_is_seen_in_its_own_columns() -> None:
    columns = (Column("a", "numeric"), Column("b", "category", 3), Column("c", "category", 1))
    X = np.array([[0.5, 0, 0, 1, 1], [1.5, 1, 0, 0, 0], [2.5, 0, 0, 0, 1]], np.float32)
    view = TableView.of(columns, 5)
    np.testing.assert_array_equal(view.transform(X), [[0.5, 2, 1], [1.5, 0, 0], [2.5, 3, 1]])
    np.testing.assert_array_equal(view.categorical_columns, [False, True, False])
    narrow = TableView.of(columns, 5, most=2)
    np.testing.assert_array_equal(narrow.transform(X), X)


def test_means_of_features_and_hats_match_plain_ones() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 2)).astype(np.float32)
    offsets = np.array([0, 3, 20_000, 20_001, 40_000])
    hats = HatFunctions.of(X, ColumnGroups.of((), 2))
    means, variances = extended_means(X, offsets, hats)
    full = hats.extend(X)
    plain = [full[a:b].mean(axis=0) for a, b in pairwise(offsets)]
    np.testing.assert_allclose(means, plain, atol=1e-9)
    np.testing.assert_allclose(variances, full.var(axis=0), atol=1e-9)


def test_variance_tempers_a_field_but_keeps_its_side() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    offsets = np.arange(0, 401, 20)
    counts = np.add.reduceat((X[:, 0] > 0.5).astype(float), offsets[:-1])[:, None]
    plain, tempered = (
        MeanRegression(X, offsets, (), np.random.default_rng(0), draws=2, temper=t).fit(np.arange(20), counts, 0.0)
        for t in (False, True)
    )
    assert isinstance(plain, LinearField)
    rate = plain.rates[0]
    middle = np.log(rate / (1 - rate))
    offset = plain.averages[0].offset(X.astype(float)) / (rate * (1 - rate))
    spread = plain.averages[0].variance(X.astype(float)) / (rate * (1 - rate)) ** 2
    np.testing.assert_allclose(plain(X)[:, 0], middle + offset, atol=1e-9)
    np.testing.assert_allclose(tempered(X)[:, 0], middle + offset / np.sqrt(1 + np.pi / 8 * spread), atol=1e-9)
    assert np.corrcoef(plain(X)[:, 0], X[:, 0])[0, 1] > 0.7
