"""Similarity kernels of a distance: RBF and Matérn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]


def rbf(distance: ArrayLike, gamma: float = 1.0) -> Floats:
    """The squared-exponential kernel `exp(-gamma d^2)`."""
    d = np.asarray(distance, dtype=np.float64)
    return np.asarray(np.exp(-gamma * d * d))


def matern(distance: ArrayLike, nu: float = 0.5, length_scale: float = 1.0) -> Floats:
    """The Matérn kernel of smoothness `nu`, amplitude 1.

    With `z = sqrt(2 nu) d / l` it is `2^(1-nu) / Gamma(nu) z^nu K_nu(z)`. The half-integers 1/2, 3/2 and 5/2 have
    closed forms (`exp(-z)` times a polynomial); `nu = inf` is `exp(-d^2 / (2 l^2))`.
    """
    if not nu > 0:
        raise ValueError(f"nu must be positive, got {nu}")
    if not length_scale > 0:
        raise ValueError(f"length_scale must be positive, got {length_scale}")
    d = np.asarray(distance, dtype=np.float64) / length_scale
    if np.isinf(nu):
        return rbf(d, 0.5)
    z = np.sqrt(2.0 * nu) * d
    if nu == 0.5:
        return np.asarray(np.exp(-z))
    if nu == 1.5:
        return np.asarray((1.0 + z) * np.exp(-z))
    if nu == 2.5:
        return np.asarray((1.0 + z + z * z / 3.0) * np.exp(-z))
    return matern_bessel(z, nu)


def matern_bessel(z: ArrayLike, nu: float) -> Floats:
    """The Bessel form at scaled distance `z = sqrt(2 nu) d / l`, in logarithms so that no factor overflows.

    Where `K_nu(z)` itself overflows (`z` far below `nu`), the kernel is `1 - z^2 / (4 (nu - 1)) + O(z^4)` for
    `nu > 1`, and 1 to machine precision otherwise.
    """
    scaled = np.asarray(z, dtype=np.float64)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_bessel = np.log(special.kve(nu, scaled)) - scaled
        log_kernel = (1.0 - nu) * np.log(2.0) - special.gammaln(nu) + nu * np.log(scaled) + log_bessel
    near = np.exp(-scaled * scaled / (4.0 * (nu - 1.0))) if nu > 1.0 else np.ones_like(scaled)
    # z = inf gives inf - inf above; the kernel is 0 there.
    value = np.where(np.isfinite(log_bessel), np.exp(np.minimum(log_kernel, 0.0)), near)
    return np.asarray(np.where(scaled == 0.0, 1.0, np.where(np.isinf(scaled), 0.0, value)))
