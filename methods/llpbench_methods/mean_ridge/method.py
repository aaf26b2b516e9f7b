"""mean-ridge: regression from bag means to proportions with the spectrum of the features as prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax

from llpbench import Bags, FloatArray, Monitor, Skip, State
from llpbench_methods.shared.bag_effect import spectral_effect
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.mean_regression import (
    SCALES,
    Array,
    Decomposition,
    Posterior,
    decompose,
    noise_variances,
    regression,
    smoothed_rate,
)
from llpbench_methods.shared.spectrum import Spectrum, principal_components

GAMMAS = np.arange(0.0, 3.01, 0.25)
_NUMBERS = ("gamma", "scale", "log_evidence", "rate", "effect")


@dataclass(frozen=True)
class ChosenPrior:
    """A prior that was chosen, and what it gives.

    Attributes:
        gamma: trust in the leading components.
        scale: prior variance ``s²`` of ``(x − x̄)·w`` for a random row.
        log_evidence: log marginal likelihood of the training bags' proportions.
        rate: share of the class.
        effect: variance of the bag effect on proportions.
        posterior: law of the linear predictor.
    """

    gamma: float
    scale: float
    log_evidence: float
    rate: float
    effect: float
    posterior: Posterior


class MeanRidge:
    """Bayesian regression on bag means: ``w ~ N(0, s² C^(γ−1))``, noise known, ``s`` and ``γ`` by evidence.

    ``C`` is the covariance of the rows, which needs no label. With penalty and gamma given this is the ridge
    ``min_w Σ_b B_b (p_b − p − (x̄_b − x̄)·w)² + penalty · wᵀ C^(1−γ) w``. Several classes: one against
    the rest. Noise is that of labels and counts and, where the evidence is clear, that of a bag effect.

    Scores are probabilities: the linear predictor is put through the logistic curve that has the same value
    and slope at the mean row, ``σ(logit p + (x − x̄)·w / (p(1−p)))``. It is monotone, so ranks stay those
    of the linear predictor, and no rows are tied as they would be by clipping to [0, 1]. For several classes
    it is ``softmax(log p_c + (x − x̄)·w_c / p_c)``, which agrees with the linear predictor to first order.

    Where bags have an effect, a row of a new bag has one that nobody knows: its log-odds are divided by
    ``√(1 + (π/8) (var f(x) + v) / (p(1−p))²)``, the logistic curve averaged over what is unknown of them. Few natural
    bags leave much unknown. Scores on random bags are as they were.

    Args:
        choice: ``"evidence"`` or ``"validation"`` (likelihood of the held-out bags): how penalty and gamma
            are chosen where they are not given.
        penalty: ``p(1−p)/s²``, with ``s²`` the variance in ``w ~ N(0, s² C^(γ−1))``; None to choose.
        gamma: exponent of the spectrum; None to choose.
    """

    def __init__(self, choice: str = "evidence", penalty: float | None = None, gamma: float | None = None) -> None:
        self.choice, self.penalty, self.gamma = choice, penalty, gamma

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> MeanRidge:  # noqa: ARG002
        """Choose the prior, take the posterior, report once."""
        if self.choice == "validation" and bags.validation is None:
            raise Skip("choice=validation needs validation bags")
        with monitor.phase("regression"):
            spectrum = principal_components(bags.X)
            means = bag_means(bags.X, bags.offsets)
            self.choices_ = [self._fit_class(bags, c, means, spectrum) for c in range(bags.counts.shape[1])]
        for c, chosen in enumerate(self.choices_):
            suffix = f"_{c}" if len(self.choices_) > 1 else ""
            monitor.note(f"gamma{suffix}", chosen.gamma)
            monitor.note(f"scale{suffix}", chosen.scale)
            monitor.note(f"log_evidence{suffix}", chosen.log_evidence)
            monitor.note(f"effect{suffix}", chosen.effect)
        monitor.report(self.predict_scores)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C)."""
        rate = np.array([chosen.rate for chosen in self.choices_])
        unit = rate * (1.0 - rate) if len(rate) == 1 else rate
        offset = np.column_stack([chosen.posterior.offset(X) for chosen in self.choices_]) / unit
        for c, chosen in enumerate(self.choices_):
            if chosen.effect > 0.0:
                unknown = (chosen.posterior.variance(X) + chosen.effect) / unit[c] ** 2
                offset[:, c] /= np.sqrt(1.0 + np.pi / 8.0 * unknown)
        if len(rate) == 1:
            return np.asarray(expit((np.log(rate) - np.log1p(-rate) + offset)[:, 0]))
        return np.asarray(softmax(np.log(rate) + offset, axis=1))

    def state(self) -> State:
        """Every class's choice and the law of its weights, the class's number at the end of each name."""
        found: dict[str, Any] = {"classes": len(self.choices_)}
        for c, chosen in enumerate(self.choices_):
            for name in _NUMBERS:
                found[f"{name}_{c}"] = np.float64(getattr(chosen, name))
            for field in fields(Posterior):
                found[f"{field.name}_{c}"] = np.asarray(getattr(chosen.posterior, field.name), np.float64)
        return found

    def restore(self, state: State) -> MeanRidge:
        """Take up saved choices."""
        self.choices_ = []
        for c in range(int(np.asarray(state["classes"]))):
            arrays = {field.name: np.asarray(state[f"{field.name}_{c}"], np.float64) for field in fields(Posterior)}
            law: dict[str, Any] = {name: value if value.ndim else float(value) for name, value in arrays.items()}
            gamma, scale, evidence, rate = (float(np.asarray(state[f"{name}_{c}"])) for name in _NUMBERS[:-1])
            effect = float(np.asarray(state.get(f"effect_{c}", 0.0)))  # models of before had none
            self.choices_.append(ChosenPrior(gamma, scale, evidence, rate, effect, Posterior(**law)))
        return self

    def _fit_class(self, bags: Bags, column: int, means: Array, spectrum: Spectrum) -> ChosenPrior:
        """Regression of one class's proportions on bag means."""
        rate = smoothed_rate(bags.counts[:, column], int(bags.sizes.sum()))
        proportions = bags.proportions[:, column].astype(np.float64)
        effect = spectral_effect(proportions, bags.sizes, rate, bags.count_sd, lambda: (means, spectrum))
        problem = regression(means, proportions, noise_variances(bags.sizes, rate, bags.count_sd, effect))
        best: tuple[float, float, float, Decomposition] | None = None
        for gamma in GAMMAS if self.gamma is None else [self.gamma]:
            seen = decompose(problem, spectrum.prior_factor(gamma))
            scale, value = self._scale(seen, gamma, rate, effect, spectrum, bags, column)
            if best is None or value > best[0]:
                best = (value, float(gamma), scale, seen)
        assert best is not None
        _, gamma, scale, seen = best
        return ChosenPrior(gamma, scale, float(seen.log_evidence(scale)[0]), rate, effect, seen.posterior(scale))

    def _scale(
        self, seen: Decomposition, gamma: float, rate: float, effect: float, spectrum: Spectrum, bags: Bags, column: int
    ) -> tuple[float, float]:
        """The prior variance to use with this gamma, and how good it is by the rule of choice."""
        if self.choice == "evidence":

            def goodness(scale: Array) -> Array:
                return seen.log_evidence(scale)

        else:
            assert bags.validation is not None
            held_out = _HeldOutBags.of(bags.validation, column, rate, effect)

            def goodness(scale: Array) -> Array:
                return np.array([held_out.log_likelihood(seen.posterior(float(s))) for s in scale])

        spread = rate * (1.0 - rate)
        if self.penalty is not None:
            total = float(np.sum(spectrum.variances**gamma))
            scale = spread / self.penalty * total
            return scale, float(goodness(np.array([scale]))[0])
        return best_scale(goodness, spread * SCALES)


@dataclass(frozen=True)
class _HeldOutBags:
    """Validation bags, to compare posteriors."""

    means: Array
    proportions: Array
    variances: Array

    @classmethod
    def of(cls, bags: Bags, column: int, rate: float, effect: float) -> _HeldOutBags:
        means = bag_means(bags.X, bags.offsets)
        noise = noise_variances(bags.sizes, rate, bags.count_sd, effect)
        return cls(means, bags.proportions[:, column].astype(np.float64), noise)

    def log_likelihood(self, posterior: Posterior) -> float:
        """Gaussian log-likelihood of the proportions, up to a constant: ``−½ Σ_b (p_b − f(x̄_b))² / v_b``."""
        error = self.proportions - posterior.intercept - posterior.offset(self.means)
        return -0.5 * float(np.sum(error**2 / self.variances))


def best_scale(goodness: Callable[[Array], Array], grid: Array) -> tuple[float, float]:
    """Maximise over a rising grid of scales, then between the neighbours of the best."""
    values = goodness(grid)
    top = int(np.argmax(values))
    low, high = np.log(grid[max(top - 1, 0)]), np.log(grid[min(top + 1, len(grid) - 1)])
    found = minimize_scalar(
        lambda log_scale: -float(goodness(np.exp([log_scale]))[0]), bounds=(low, high), method="bounded"
    )
    if -found.fun > values[top]:
        return float(np.exp(found.x)), float(-found.fun)
    return float(grid[top]), float(values[top])
