"""Stage 1: fields from the regression on bag means, each row's field reduced where the bags leave it uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench import Column, FloatArray
from llpbench_methods.bp_count.priors import (
    CONCENTRATIONS,
    Average,
    Family,
    average,
    group_family,
    log_evidence,
    sparse_family,
    spectrum_family,
)
from llpbench_methods.shared.bag_effect import choose_effect
from llpbench_methods.shared.bag_means import bag_means
from llpbench_methods.shared.columns import ColumnGroups, HatFunctions
from llpbench_methods.shared.mean_regression import Array, Regression, noise_variances, regression, smoothed_rate
from llpbench_methods.shared.spectrum import principal_components

Ints = NDArray[np.int64]

_CHUNK = 16384
_WORK = 4e8
_PROBES = 6
"""Members of each family by which the bag effect is chosen."""


@dataclass(frozen=True)
class LinearField:
    """The regression on bag means as fields of single rows.

    Two classes: ``θ(x) = logit p + t(x) (x − x̄)·w / (p(1−p))``, the logistic curve with the value and slope of the
    linear predictor at the mean row. The temper ``t = (1 + (π/8) var / (p(1−p))²)^(−1/2)`` is that of a probability
    whose log-odds are uncertain (the logistic curve averaged over a Gaussian law). Several classes:
    ``log p_c + t_c (x − x̄)·w_c / p_c``.

    Attributes:
        hats: the features' expansion.
        averages: posterior of each class's weights.
        rates: (1,) or (C,) shares of the classes.
        temper: whether fields are tempered.
        effects: variance of the bag effect on the proportions of each class, as it was found.
    """

    hats: HatFunctions
    averages: tuple[Average, ...]
    rates: Array
    temper: bool = True
    effects: tuple[float, ...] = ()

    def __call__(self, X: FloatArray) -> Array:
        """(n, 1) or (n, C) fields."""
        parts = [self._chunk(X[start : start + _CHUNK]) for start in range(0, len(X), _CHUNK)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.rates)))

    def _chunk(self, X: FloatArray) -> Array:
        features = self.hats.extend(X)
        binary = len(self.rates) == 1
        columns = []
        for rate, law in zip(self.rates, self.averages, strict=True):
            unit = rate * (1.0 - rate) if binary else rate
            slope = law.offset(features) / unit
            if self.temper:
                slope = slope / np.sqrt(1.0 + np.pi / 8.0 * law.variance(features) / unit**2)
            columns.append((np.log(rate) - np.log1p(-rate) if binary else np.log(rate)) + slope)
        return np.column_stack(columns)


class MeanRegression:
    """The regression on bag means, ready to be fitted on any of the bags.

    All that depends on features alone (hat functions, components, families of priors, bag means) is made once.

    Args:
        X: rows, bag after bag.
        offsets: row offsets of the bags.
        columns: the table's columns, if any.
        rng: draws the members of the families.
        members: of overlapping bags, the row of each entry; ``X`` then has each row once.
        draws: draws for each concentration, fewer where a member is costly.
        temper: whether fields are tempered by their variance.
    """

    def __init__(
        self,
        X: FloatArray,
        offsets: Ints,
        columns: Sequence[Column],
        rng: np.random.Generator,
        *,
        members: Ints | None = None,
        draws: int = 20,
        temper: bool = True,
    ) -> None:
        groups = ColumnGroups.of(columns, X.shape[1])
        nothing = HatFunctions((), (), ())
        self.hats = HatFunctions.of(X, groups) if columns else nothing
        self._temper = temper
        self._offsets = offsets
        self._means, variances = extended_means(X, offsets, self.hats, members)
        width = self._means.shape[1]
        least = min(len(offsets) - 1, width)
        draws = int(np.clip(_WORK / (len(CONCENTRATIONS) * 2 * least**2 * width), 8, draws))
        self._families = _families(X, groups, self.hats, variances, bool(columns), draws, rng)

    def fit(self, chosen: Ints, counts: Array, count_sd: float) -> LinearField:
        """Fields from the chosen bags; ``counts`` are those of the chosen bags, as they were given."""
        sizes = np.diff(self._offsets)[chosen]
        means = self._means[chosen]
        averages, rates, effects = [], [], []
        for column in counts.T:
            setting = _OneClass(means, column / sizes, sizes, smoothed_rate(column, int(sizes.sum())), count_sd)
            effect = setting.effect([family.thinned(_PROBES) for family in self._families])
            problem, label_noise = setting.problem(effect)
            averages.append(
                average(problem, self._families, rate=setting.rate, dimensions=len(sizes) - 1, label_noise=label_noise)
            )
            rates.append(setting.rate)
            effects.append(effect)
        return LinearField(self.hats, tuple(averages), np.array(rates), self._temper, tuple(effects))


@dataclass(frozen=True)
class _OneClass:
    """The regression of one class's proportions on bag means, for any variance of the bag effect."""

    means: Array
    proportions: Array
    sizes: Ints
    rate: float
    count_sd: float

    def problem(self, effect: float) -> tuple[Regression, float]:
        """The regression, and the part of its noise that comes from labels."""
        noise = noise_variances(self.sizes, self.rate, self.count_sd, effect)
        label_noise = float(np.mean(self.rate * (1.0 - self.rate) / self.sizes / noise))
        return regression(self.means, self.proportions, noise), label_noise

    def effect(self, families: Sequence[Family]) -> float:
        """The variance of the bag effect that has the highest evidence under a few priors.

        It is chosen and not averaged over, as priors are: one number that all bags tell of is known well as soon as it
        matters, and every further value would cost as much as all priors together.
        """

        def evidence(effect: float) -> float:
            problem, label_noise = self.problem(effect)
            return log_evidence(
                problem, families, rate=self.rate, dimensions=len(self.sizes) - 1, label_noise=label_noise
            )

        return choose_effect(self.proportions, noise_variances(self.sizes, self.rate, self.count_sd), evidence)


def extended_means(
    X: NDArray[Any], offsets: Ints, hats: HatFunctions, members: Ints | None = None
) -> tuple[Array, Array]:
    """Bag means of features and hat functions, (bags, D), and the entries' variances, (D,), in chunks of whole bags."""
    cuts = [0]
    while cuts[-1] < len(offsets) - 1:
        reach = int(np.searchsorted(offsets, offsets[cuts[-1]] + _CHUNK, side="right")) - 1
        cuts.append(min(max(reach, cuts[-1] + 1), len(offsets) - 1))
    centre = hats.extend(X[: min(len(X), _CHUNK)]).mean(axis=0)
    parts, first, second = [], np.zeros_like(centre), np.zeros_like(centre)
    for start, stop in pairwise(cuts):
        edges = offsets[start : stop + 1]
        inside = slice(edges[0], edges[-1])
        block = hats.extend(X[inside] if members is None else X[members[inside]]) - centre
        first += block.sum(axis=0)
        second += np.einsum("ij,ij->j", block, block)
        parts.append(bag_means(block, edges - edges[0]) + centre)
    entries = int(offsets[-1])
    variances = second / entries - (first / entries) ** 2
    return np.concatenate(parts), np.where(variances > 1e-12 * np.maximum(centre**2, 1e-12), variances, 0.0)


def _families(
    X: FloatArray,
    groups: ColumnGroups,
    hats: HatFunctions,
    variances: Array,
    table: bool,
    draws: int,
    rng: np.random.Generator,
) -> list[Family]:
    """A and, for a table, B and N; for other features A and E."""
    spectrum = principal_components(X)
    width = len(variances)
    families = [spectrum_family(spectrum, width)]
    if not table:
        return [*families, sparse_family(spectrum, width, draws, rng)]
    own = groups.group_of
    behind = hats.group_of
    families.append(group_family("B", variances, np.concatenate([own, np.full(len(behind), -1)]), draws, rng))
    if len(behind):
        families.append(group_family("N", variances, np.concatenate([own, behind]), draws, rng))
    return families
