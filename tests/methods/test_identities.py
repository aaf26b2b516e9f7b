"""Losses of different publications that are the same function, and two that are almost the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from llpbench_methods.inference.counting import bag_posterior
from llpbench_methods.shared.mean_regression import decompose, noise_variances, regression

RNG = np.random.default_rng(0)
SIZES = np.array([6, 1, 4, 5])
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
BAG_OF = np.repeat(np.arange(len(SIZES)), SIZES)
POSITION = np.arange(len(BAG_OF)) - OFFSETS[BAG_OF]
COUNTS = np.array([2, 1, 0, 5])
LOGITS = RNG.normal(size=len(BAG_OF)) * 1.5
ONES = np.ones(len(SIZES), np.float32)


def moment_loss(order: int, bag: int, logits: np.ndarray) -> float:
    """llp-mm's loss of one order for one bag, without smoothing."""
    from llpbench_methods.llp_mm.loss import groups_for, moment_losses, row_laws, subset_sums
    from llpbench_methods.llp_mm.terms import Terms

    rows, size = np.flatnonzero(bag == BAG_OF), SIZES[bag : bag + 1]
    terms = Terms(2, order)
    targets = terms.targets(np.array([[[SIZES[bag] - COUNTS[bag], COUNTS[bag]]]])) * (terms.degrees == order)
    sums = subset_sums(
        row_laws(logits[rows].astype(np.float32)), BAG_OF[rows] * 0, POSITION[rows], size.astype(np.float32), terms,
        groups_for(int(size[0])),
    )  # fmt: skip
    given = [x.astype(np.float32) for x in (terms.factors(size), targets, terms.uniform)]
    return float(moment_losses(sums, *given, 0.0)[0])


@pytest.mark.parametrize("bag", range(4))
def test_llp_mm_of_order_1_is_dllp_and_of_all_rows_count_nll(bag):
    from llpbench_methods.count_nll.loss import count_losses
    from llpbench_methods.nets.losses import bag_cross_entropy

    sizes, share = SIZES.astype(np.float32), (COUNTS / SIZES)[:, None].astype(np.float32)
    z = LOGITS.astype(np.float32)
    only = (np.arange(4) == bag).astype(np.float32)
    assert moment_loss(1, bag, LOGITS) == pytest.approx(
        float(bag_cross_entropy(z, BAG_OF, sizes, share, only)), abs=1e-6
    )
    counts = COUNTS[:, None].astype(np.float32)
    likelihood = count_losses(z, BAG_OF, POSITION, sizes, counts, exact_rows=6, gaussian=False)
    assert moment_loss(int(SIZES[bag]), bag, LOGITS) == pytest.approx(float(likelihood[bag]), abs=1e-6)


@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_centring_on_the_batch_itself_is_easyllp(classes, square):
    """Applebaum et al.: mean_b Σ_c (α_c − π_c) Σ_i (ℓ_ic − E_c) + Σ_c π_c E_c, with the batch's own π and E."""
    from llpbench_methods.easyllp.loss import debiased_targets, mean_over_bags, reference_excess, row_losses

    size, bags = 4, 5
    bag_of = np.repeat(np.arange(bags), size)
    sizes = np.full(bags, size)
    z = RNG.normal(size=(bags * size, classes))[:, 0 if classes == 2 else slice(None)].astype(np.float32)
    counts = RNG.multinomial(size, np.full(classes, 1 / classes), bags)[:, 1 if classes == 2 else 0 :].astype(float)
    prior = counts.mean(axis=0) / size
    targets = debiased_targets(counts, sizes, prior).astype(np.float32)
    plain = float(
        mean_over_bags(row_losses(z, targets[bag_of], square=square), bag_of, sizes.astype(np.float32), np.ones(bags))
    )

    def of_class(c: int) -> np.ndarray:
        """Loss of every row if its class was c."""
        one = np.full((len(z), 1), float(c)) if classes == 2 else np.tile(np.eye(classes)[c], (len(z), 1))
        return np.asarray(row_losses(z, one.astype(np.float32), square=square), np.float64)

    shares = counts / size if classes > 2 else np.column_stack([1 - counts / size, counts / size])
    means = shares.mean(axis=0)
    centred = 0.0
    for c in range(classes):
        loss, mean = of_class(c), of_class(c).mean()
        excess = np.bincount(bag_of, loss - mean)
        centred += np.mean((shares[:, c] - means[c]) * excess) + means[c] * mean
    assert centred == pytest.approx(plain, abs=1e-6)
    given = (targets, np.ones(bags, np.float32), prior.astype(np.float32))
    assert float(reference_excess(z, *given, square=square)) == pytest.approx(0.0, abs=1e-6)
    other = z + RNG.normal(size=z.shape).astype(np.float32)  # with rows of another law and another π it is not the same
    assert abs(float(reference_excess(other, *given[:2], given[2] + 0.1, square=square))) > 1e-3


def test_dsq_with_plug_in_means_is_the_difference_of_two_squares():
    """Li et al.: mean_b B (α_b − p̄_b)² − (B − 1)(μ − π)², where μ and π are means over the same bags."""
    from llpbench_methods.dsq.loss import debiased_square

    size, bags = 5, 7
    p = RNG.random((size * bags, 1))
    alpha = RNG.integers(0, size + 1, (bags, 1)) / size
    bag_of = np.repeat(np.arange(bags), size)
    mean, prior = p.mean(axis=0), alpha.mean(axis=0)
    wanted = np.mean(size * (alpha - p.reshape(bags, size).mean(axis=1, keepdims=True)) ** 2)
    wanted -= (size - 1) * float((mean - prior)[0]) ** 2
    given = [x.astype(np.float32) for x in (p, np.full(bags, size), alpha, np.ones(bags), prior, mean[None])]
    got = debiased_square(given[0], bag_of, *given[1:4], prior=given[4], mean=given[5])
    assert float(got) == pytest.approx(wanted, abs=1e-6)


def test_mean_ridge_is_dsq_of_a_linear_model_with_a_ridge():
    """The slope of DSQ at the weights of `mean-ridge`'s regression is that of its ridge, ``−2 λ w``."""
    from llpbench_methods.dsq.loss import debiased_square

    rng = np.random.default_rng(3)
    size, bags, width, variance = 8, 40, 3, 0.5
    X = rng.normal(size=(size * bags, width))
    y = rng.random(size * bags) < 1 / (1 + np.exp(-X[:, 0]))
    bag_of, alpha = np.repeat(np.arange(bags), size), y.reshape(bags, size).mean(axis=1)
    rate = float(alpha.mean())
    problem = regression(
        X.reshape(bags, size, width).mean(axis=1), alpha, noise_variances(np.full(bags, size), rate, 0.0)
    )
    fitted = decompose(problem, np.eye(width)).posterior(variance)

    def loss(w: np.ndarray) -> float:
        p = (rate + (X - X.mean(axis=0)) @ w)[:, None]
        args = (np.full(bags, float(size)), alpha[:, None], np.ones(bags))
        return float(debiased_square(p, bag_of, *args, prior=np.array([rate]), mean=p.mean(axis=0)[None]))

    centre, steps = np.zeros(width), np.eye(width)
    # A quadratic function: its slope at w is exact from three values along every axis and pair of axes.
    hessian = np.array([[loss(a + b) - loss(a) - loss(b) + loss(centre) for b in steps] for a in steps])
    slope = np.array([loss(a) - loss(-a) for a in steps]) / 2 + hessian @ fitted.weights
    ridge = rate * (1 - rate) / variance / bags
    np.testing.assert_allclose(slope, -2 * ridge * fitted.weights, atol=2e-5)


def test_llp_pvc_is_count_nll_with_a_sigmoid_for_each_class():
    """−Σ_c log P(Σ_i Y_ic = n_c), Y_ic ~ σ(z_ic − log(C − 1)), by enumeration of all labellings."""
    from llpbench_methods.count_nll.loss import count_losses

    z, counts = RNG.normal(size=(5, 4)), np.array([2, 0, 1, 2])
    p = 1 / (1 + np.exp(-(z - np.log(3))))
    wanted = 0.0
    for c, count in enumerate(counts):
        ways = [np.array(y) for y in itertools.product((0, 1), repeat=5) if sum(y) == count]
        wanted -= np.log(sum(np.prod(np.where(y, p[:, c], 1 - p[:, c])) for y in ways))
    given = (z.astype(np.float32), np.zeros(5, int), np.arange(5), np.array([5.0], np.float32))
    got = count_losses(*given, counts[None].astype(np.float32), exact_rows=5, gaussian=False, one_vs_rest=True)
    assert float(got[0]) == pytest.approx(wanted, abs=1e-5)


def sinkhorn(p: np.ndarray, count: float, rounds: int = 500) -> np.ndarray:
    """Soft optimal-transport targets of class 1: rows hold 1, classes hold their counts, entropy of weight 1."""
    plan = np.column_stack([1 - p, p])
    for _ in range(rounds):
        plan *= np.array([len(p) - count, count]) / plan.sum(axis=0)
        plan /= plan.sum(axis=1, keepdims=True)
    return plan[:, 1]


@pytest.mark.parametrize(("size", "stated"), [(8, 0.037), (32, 0.013), (128, 0.004)])
def test_transport_targets_are_near_the_posteriors_of_count_nll(size, stated):
    """Mean over bags of the largest difference in a bag; it falls as one over the bag's size."""
    rng = np.random.default_rng(0)
    gaps = []
    for _ in range(60):
        z = rng.normal(-1.0, 1.0, size)
        p = 1 / (1 + np.exp(-z))
        count = float(np.clip(round(p.sum()), 1, size - 1))
        posterior = bag_posterior(z, np.array([0, size]), np.array([count]), np.inf)
        assert posterior.sum() == pytest.approx(count, abs=1e-6)
        gaps.append(np.abs(sinkhorn(p, count) - posterior).max())
    assert np.mean(gaps) == pytest.approx(stated, rel=0.3)
