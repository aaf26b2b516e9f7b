r"""Features of images from a dictionary of patches, learned without any label (Coates, Ng & Lee 2011).

1. Random patches of training images, each less its mean and divided by :math:`\sqrt{\mathrm{var} + 10}`, whitened by
   ZCA: :math:`x \mapsto (x - m)\, U (\Lambda + 0.1)^{-1/2} U^\top`.
2. k-means gives the dictionary.
3. Every patch of an image (all positions) is described by how much nearer than average each centroid is, the
   *triangle* activation :math:`f_k = \max(0, \bar z - z_k)` with :math:`z_k = \lVert x - c_k \rVert`, averaged over
   each quadrant of the image.
4. Of the square roots of these averages (roots, so that rare strong activations do not dominate the variance) the sums
   of left and right quadrants are kept, and half their differences (an image and its mirror image mean the same). They
   are projected onto their leading principal components. Components keep their natural scale: they are **not**
   whitened, because regression on bag means needs the directions of large variance to stay large. One common factor
   makes their mean variance 1.

Everything is fitted on the first ``fit`` images. The work is done in blocks: memory is bounded by the square-root
features in half precision, ``8 * centroids`` bytes for each image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench_datasets.components import principal_components
from llpbench_datasets.feature_cache import Array

VERSION = 1
"""Raise it when equal options would give other features."""
CONTRAST, WHITEN = 10.0, 0.1
_BLOCK = 2
"""Images worked on at once."""
Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """Settings of the features.

    Attributes:
        centroids: entries of the dictionary.
        patch: side of a patch in pixels.
        samples: random patches that the dictionary is learned from.
        rounds: rounds of k-means.
        dims: principal components that are kept.
        seed: seed of the patches, the first centroids and the iteration for principal components.
    """

    centroids: int = 1600
    patch: int = 6
    samples: int = 200_000
    rounds: int = 10
    dims: int = 256
    seed: int = 0


@dataclass(frozen=True)
class Dictionary:
    """Whitening and centroids: a patch x (of pixels 0 to 255) becomes ``(normalised(x) - mean) @ whiten``."""

    mean: Array
    whiten: Array
    centroids: Array
    patch: int


def patch_features(images: Array, fit: int, options: Options, say: Say = lambda _: None) -> Array:
    """Features of all images, fitted on the first ``fit`` of them alone.

    Args:
        images: (n, 3, side, side), uint8.
        fit: the dictionary and the components are learned from so many of the first images.
        options: how.
        say: is told how far the work is.

    Returns:
        (n, dims) float32; dims is smaller where the images do not have as many components.
    """
    dictionary = learn_dictionary(images[:fit], options, say)
    encoded = np.empty((len(images), 4 * len(dictionary.centroids)), np.float16)
    for start, block in encode(images, dictionary):
        encoded[start : start + len(block)] = folded(np.sqrt(block))
        if start % 4000 == 0:
            say(f"patches: {start:,} of {len(images):,} images")
    return principal_components(encoded, fit, options.dims, options.seed)


def learn_dictionary(images: Array, options: Options, say: Say = lambda _: None) -> Dictionary:
    """Whitening and centroids from random patches of ``images``."""
    rng = np.random.default_rng([options.seed, 1])
    patches = normalised(random_patches(images, options.samples, options.patch, rng))
    mean = patches.mean(axis=0)
    patches -= mean
    values, vectors = np.linalg.eigh((patches.T @ patches / len(patches)).astype(np.float64))
    whiten = (vectors / np.sqrt(np.maximum(values, 0.0) + WHITEN) @ vectors.T).astype(np.float32)
    patches = patches @ whiten
    say(f"patches: dictionary of {options.centroids} from {len(patches):,} patches")
    return Dictionary(mean, whiten, kmeans(patches, options.centroids, options.rounds, rng), options.patch)


def random_patches(images: Array, count: int, side: int, rng: np.random.Generator) -> Array:
    """``count`` patches (count, 3 side²) float32 at random places of random images."""
    which = rng.integers(len(images), size=count)
    rows = rng.integers(images.shape[2] - side + 1, size=count)
    columns = rng.integers(images.shape[3] - side + 1, size=count)
    windows = np.lib.stride_tricks.sliding_window_view(images, (side, side), axis=(2, 3))
    found = windows[which, :, rows, columns]
    return found.reshape(count, -1).astype(np.float32)


def normalised(patches: Array) -> Array:
    """Each patch less its mean, divided by the square root of its variance plus ``CONTRAST``."""
    patches = patches - patches.mean(axis=1, keepdims=True)
    variance = np.einsum("ij,ij->i", patches, patches) / (patches.shape[1] - 1)
    patches /= np.sqrt(variance + CONTRAST)[:, None]
    return patches


def kmeans(rows: Array, count: int, rounds: int, rng: np.random.Generator) -> Array:
    """Centroids after some rounds of Lloyd's algorithm from random rows; one without members starts anew."""
    count = min(count, len(rows))
    centroids: Array = rows[rng.choice(len(rows), count, replace=False)].copy()
    for _ in range(rounds):
        sums, sizes = np.zeros_like(centroids, dtype=np.float64), np.zeros(count, np.int64)
        half = 0.5 * np.einsum("ij,ij->i", centroids, centroids)
        for start in range(0, len(rows), 4096):
            block = rows[start : start + 4096]
            nearest = np.argmax(block @ centroids.T - half, axis=1)
            order = np.argsort(nearest, kind="stable")
            here, first = np.unique(nearest[order], return_index=True)
            sums[here] += np.add.reduceat(block[order], first, axis=0)
            sizes[here] += np.diff([*first, len(block)])
        empty = sizes == 0
        centroids = (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)
        centroids[empty] = rows[rng.integers(len(rows), size=int(empty.sum()))]
    return centroids


def encode(images: Array, dictionary: Dictionary) -> Iterator[tuple[int, Array]]:
    """Mean triangle activations over quadrants: pairs (first row, (rows, 4 centroids) float32), block after block."""
    activate = _activations()
    side, count = dictionary.patch, len(dictionary.centroids)
    places = images.shape[2] - side + 1, images.shape[3] - side + 1
    quadrants = quadrant_of(*places)
    weights = 1.0 / np.bincount(quadrants, minlength=4).astype(np.float32)
    squares = np.einsum("ij,ij->i", dictionary.centroids, dictionary.centroids)
    across = np.ascontiguousarray(-2.0 * dictionary.centroids.T)
    for start in range(0, len(images), _BLOCK):
        block = images[start : start + _BLOCK].astype(np.float32)
        windows = np.lib.stride_tricks.sliding_window_view(block, (side, side), axis=(2, 3))
        rows = normalised(windows.transpose(0, 2, 3, 1, 4, 5).reshape(len(block) * len(quadrants), -1))
        rows = (rows - dictionary.mean) @ dictionary.whiten
        out = np.zeros((len(block), 4, count), np.float32)
        activate(rows @ across, np.einsum("ij,ij->i", rows, rows), squares, quadrants, weights, out)
        yield start, out.reshape(len(block), -1)


def folded(quadrants: Array) -> Array:
    """Of (n, 4 K) values by quadrant: sums of left and right ones, and half their differences."""
    upper_left, upper_right, lower_left, lower_right = np.split(quadrants, 4, axis=1)
    sums = upper_left + upper_right, lower_left + lower_right
    differences = upper_left - upper_right, lower_left - lower_right
    return np.concatenate([*sums, *(0.5 * part for part in differences)], axis=1)


def quadrant_of(rows: int, columns: int) -> Array:
    """The quadrant (0 to 3) of each position of a grid, row by row; a middle line belongs to the first half."""
    down, along = (np.arange(n) >= (n + 1) // 2 for n in (rows, columns))
    return (2 * down[:, None] + along[None, :]).astype(np.int64).reshape(-1)


def _activations() -> Callable[..., None]:
    """The inner loop, compiled: sums ``weight * max(0, mean z - z)`` of each quadrant into ``out``."""
    import numba

    def loop(products: Any, lengths: Any, squares: Any, quadrants: Any, weights: Any, out: Any) -> None:
        places, count = len(quadrants), products.shape[1]
        distance = np.empty(count, np.float32)
        for i in range(products.shape[0]):
            total = np.float32(0.0)
            for k in range(count):
                z = np.sqrt(max(products[i, k] + squares[k] + lengths[i], np.float32(0.0)))
                distance[k] = z
                total += z
            mean = total / np.float32(count)
            quadrant = quadrants[i % places]
            weight = weights[quadrant]
            target = out[i // places, quadrant]
            for k in range(count):
                target[k] += weight * max(mean - distance[k], np.float32(0.0))

    compiled: Callable[..., None] = numba.njit(fastmath={"reassoc", "contract", "nsz", "nnan"}, error_model="numpy")(
        loop
    )
    return compiled
