r"""Random views of images: resized crop, mirror, colour jitter, grayscale. Plain numpy, the same on every backend.

All of it is linear, so that a view is a few small matrix products:
:math:`Y_c = \sum_{c'} C_{cc'} \, A X_{c'} B^\top + d_c`, where the rows of ``A`` and ``B`` interpolate between two
neighbouring pixels of the crop (``B`` also mirrors) and ``C``, ``d`` hold brightness, contrast, saturation, hue and
grayscale. The result is cut off to [0, 1] once, at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llpbench_datasets.feature_cache import Array

GRAY = np.array([0.299, 0.587, 0.114])
"""Weights of red, green and blue in the brightness of a pixel."""
_YIQ = np.array([GRAY, [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
_RGB = np.linalg.inv(_YIQ)


@dataclass(frozen=True)
class Views:
    """Settings of the random views.

    Attributes:
        size: side of a view in pixels.
        area: least share of the image's area that a crop covers.
        ratio: a crop's sides differ by at most this factor.
        strength: of the colour jitter: brightness, contrast and saturation change by factors within
            1 ± 0.8 strength, the hue by ± 0.2 strength of a full turn.
        jitter: probability of the colour jitter.
        gray: probability that colours are lost.
    """

    size: int = 32
    area: float = 0.2
    ratio: float = 4.0 / 3.0
    strength: float = 0.5
    jitter: float = 0.8
    gray: float = 0.2


def random_views(images: Array, rng: np.random.Generator, views: Views) -> Array:
    """One view of each image.

    Args:
        images: (n, 3, height, width), uint8.
        rng: source of randomness.
        views: how to draw.

    Returns:
        (n, size, size, 3) float32 in [0, 1].
    """
    n, _, height, width = images.shape
    top, left, tall, wide = crop_boxes(rng, n, height, width, views)
    down = resampling(top, tall, height, views.size)
    along = resampling(left, wide, width, views.size)
    mirrored = rng.random(n) < 0.5
    along[mirrored] = along[mirrored, ::-1]
    colours, offsets = colour_maps(rng, n, views)
    x = (images * np.float32(1 / 255)).reshape(n, 3 * height, width) @ along.transpose(0, 2, 1)
    x = down[:, None] @ x.reshape(n, 3, height, views.size)
    flat = x.reshape(n, 3, -1)
    grey = np.einsum("c,nc->n", GRAY, flat.mean(axis=2)).astype(np.float32)
    flat = colours @ flat + (offsets * grey)[:, None, None]
    np.clip(flat, 0.0, 1.0, out=flat)
    return np.ascontiguousarray(flat.reshape(n, 3, views.size, views.size).transpose(0, 2, 3, 1))


def crop_boxes(rng: np.random.Generator, n: int, height: int, width: int, views: Views) -> tuple[Array, ...]:
    """Top, left, height and width (in pixels, not whole) of ``n`` crops inside an image."""
    area = rng.uniform(views.area, 1.0, n) * height * width
    ratio = np.exp(rng.uniform(-1.0, 1.0, n) * np.log(views.ratio))
    tall = np.minimum(np.sqrt(area / ratio), height)
    wide = np.minimum(np.sqrt(area * ratio), width)
    return rng.random(n) * (height - tall), rng.random(n) * (width - wide), tall, wide


def resampling(start: Array, length: Array, source: int, size: int) -> Array:
    """Matrices (n, size, source): row i has the weights of linear interpolation at the centre of pixel i of a crop."""
    at = start[:, None] + length[:, None] * (np.arange(size) + 0.5) / size - 0.5
    at = np.clip(at, 0.0, source - 1.0)
    distance = np.abs(at[:, :, None] - np.arange(source))
    weights: Array = np.maximum(1.0 - distance, 0.0).astype(np.float32)
    return weights


def colour_maps(rng: np.random.Generator, n: int, views: Views) -> tuple[Array, Array]:
    """Matrices (n, 3, 3) and factors (n,): a view's colours are ``matrix @ rgb + factor * its mean brightness``."""
    span = 0.8 * views.strength
    bright, contrast, saturation = (rng.uniform(1 - span, 1 + span, n) for _ in range(3))
    turn = rng.uniform(-1.0, 1.0, n) * 0.2 * views.strength * 2 * np.pi
    still = rng.random(n) >= views.jitter
    for factor in (bright, contrast, saturation):
        factor[still] = 1.0
    turn[still] = 0.0
    saturation[rng.random(n) < views.gray] = 0.0
    hue = np.zeros((n, 3, 3))  # brightness stays, the two axes of colour turn and shrink
    hue[:, 0, 0] = 1.0
    hue[:, 1, 1] = hue[:, 2, 2] = saturation * np.cos(turn)
    hue[:, 1, 2] = saturation * -np.sin(turn)
    hue[:, 2, 1] = saturation * np.sin(turn)
    matrix = (bright * contrast)[:, None, None] * (_RGB @ hue @ _YIQ)
    return matrix.astype(np.float32), (bright * (1.0 - contrast)).astype(np.float32)
