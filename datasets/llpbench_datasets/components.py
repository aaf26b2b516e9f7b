"""Principal components: of many rows block by block, and of a covariance. Their scales are kept, not whitened."""

from __future__ import annotations

import numpy as np

from llpbench_datasets.feature_cache import Array

_EXACT = 1500
"""Widths up to which all components are computed; beyond, an iteration finds the leading ones."""


def principal_components(encoded: Array, fit: int, dims: int, seed: int) -> Array:
    """Project rows onto the leading components of the first ``fit`` rows.

    Components keep their natural scales; one common factor makes their mean variance 1.

    Args:
        encoded: (n, width) rows, in half precision.
        fit: how many of the first rows the components are found on.
        dims: components to keep.
        seed: seed of the iteration.

    Returns:
        (n, dims) float32.
    """
    from scipy.linalg import blas
    from scipy.sparse.linalg import eigsh

    width = encoded.shape[1]
    mean = encoded[:fit].mean(axis=0, dtype=np.float64).astype(np.float32)
    covariance = np.zeros((width, width), np.float32, order="F")
    for start in range(0, fit, 4096):
        block = encoded[start : min(start + 4096, fit)].astype(np.float32) - mean
        covariance = blas.ssyrk(1.0, block.T, beta=1.0, c=covariance, overwrite_c=True)
    covariance /= fit
    covariance += np.triu(covariance, 1).T
    dims = min(dims, width, fit - 1)
    if width > _EXACT and covariance.any():
        start_vector = np.random.default_rng([seed, 2]).standard_normal(width).astype(np.float32)
        values, vectors = eigsh(covariance, k=dims, v0=start_vector)
    else:
        values, vectors = np.linalg.eigh(covariance)
        values, vectors = values[-dims:], vectors[:, -dims:]
    vectors = fix_signs(vectors[:, np.argsort(values)[::-1]])
    scale = 1.0 / np.sqrt(max(float(values.mean()), 1e-12))
    out = np.empty((len(encoded), dims), np.float32)
    for start in range(0, len(encoded), 4096):
        block = encoded[start : start + 4096].astype(np.float32) - mean
        out[start : start + 4096] = block @ (vectors * scale).astype(np.float32)
    return out


def principal_directions(covariance: Array, dim: int) -> Array:
    """The ``dim`` eigenvectors of the largest eigenvalues, largest first."""
    return fix_signs(np.linalg.eigh(covariance)[1][:, ::-1][:, :dim])


def fix_signs(vectors: Array) -> Array:
    """Columns times -1 where their largest entry is negative: eigenvectors have no sign of their own."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    turned: Array = vectors * np.where(largest < 0, -1, 1).astype(vectors.dtype)
    return turned
