"""The trend under the field: probabilities that are linear in the features, learned from the means of bags."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llpbench import Bags
from llpbench_methods.shared.bag_effect import GAMMAS, spectral_effect
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.mean_regression import (
    SCALES,
    average_weights,
    noise_variances,
    regression,
    smoothed_rate,
)
from llpbench_methods.shared.spectrum import principal_components

Floats = NDArray[np.float64]


class LinearTrend:
    """Bayesian regression of proportions on bag means, one class against the rest, for any of the bags.

    Priors from the rows' spectrum are averaged by their evidence. Without evidence the trend is the overall rate.

    Args:
        bags: all bags; features and sizes of all of them are used, counts only where asked for.
    """

    def __init__(self, bags: Bags) -> None:
        self._bags = bags
        self._means = bag_means(bags.X, bags.offsets)
        self._spectrum = principal_components(bags.X)
        self._factors = [self._spectrum.prior_factor(gamma) for gamma in GAMMAS]

    def __call__(self, kept: NDArray[np.bool_]) -> Floats:
        """(n, 1) or (n, C) probabilities of all rows from the marked bags; they may be outside of [0, 1]."""
        return np.column_stack([self._one_class(column, kept) for column in range(self._bags.counts.shape[1])])

    def _one_class(self, column: int, kept: NDArray[np.bool_]) -> Floats:
        bags = self._bags
        sizes, means = bags.sizes[kept], self._means[kept]
        counts = np.asarray(bags.counts[kept, column], np.float64)
        rate = smoothed_rate(counts, int(sizes.sum()))
        if len(sizes) < 2:
            return np.full(len(bags.X), rate)
        proportions = counts / sizes
        effect = spectral_effect(proportions, sizes, rate, bags.count_sd, lambda: (means, self._spectrum))
        problem = regression(means, proportions, noise_variances(sizes, rate, bags.count_sd, effect))
        weights = average_weights(problem, self._factors, rate * (1.0 - rate) * SCALES)
        # float32 features: the product in their type, without a float64 copy of all rows.
        offset = np.asarray(bags.X @ weights.astype(bags.X.dtype), np.float64) - float(problem.centre @ weights)
        return problem.intercept + offset
