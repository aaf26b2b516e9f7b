"""Principal components of rows, and the priors on weights that they suggest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_RANK = 1e-10


@dataclass(frozen=True)
class Spectrum:
    """Principal components of unlabelled rows: covariance ``C = V diag(λ) Vᵀ`` without its null space.

    Attributes:
        mean: (d,) mean of the rows.
        components: (d, r) columns of ``V``.
        variances: (r,) eigenvalues ``λ``, falling.
    """

    mean: Array
    components: Array
    variances: Array

    def prior_factor(self, gamma: float) -> Array:
        """``L = V diag(λ^((γ−1)/2)) / sqrt(Σ λ^γ)``, so that ``w ~ N(0, s² L Lᵀ)`` is ``w ∝ C^((γ−1)/2)``.

        γ = 0 whitens the features, 1 takes them as they are, above 1 trusts the leading components. The
        scale makes ``s²`` the prior variance of ``(x − x̄)·w`` for a random row, whatever γ.
        """
        if not len(self.variances):
            return self.components
        relative = self.variances / self.variances[0]
        unit = np.sqrt(self.variances[0] * np.sum(relative**gamma))
        factor: Array = self.components * (relative ** ((gamma - 1.0) / 2.0) / unit)
        return factor


def principal_components(X: NDArray[Any], chunk: int = 8192) -> Spectrum:
    """The spectrum of the rows' covariance; directions without variance (constant features) are left out."""
    n, d = X.shape
    mean = X.mean(axis=0, dtype=np.float64)
    if n < d:
        centred = X - mean
        _, singular, vectors = np.linalg.svd(centred, full_matrices=False)
        variances, components = singular**2 / n, vectors.T
    else:
        covariance = np.zeros((d, d))
        for start in range(0, n, chunk):
            part = X[start : start + chunk] - mean
            covariance += part.T @ part
        variances, components = np.linalg.eigh(covariance / n)
        variances, components = variances[::-1], components[:, ::-1]
    rounding = 1e-14 * float(np.max(mean**2))
    kept = variances > max(_RANK * float(variances[0]), rounding)
    return Spectrum(mean, np.ascontiguousarray(components[:, kept]), variances[kept])
