"""From images to SimCLR features, by weights that were trained before."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from llpbench_datasets.components import principal_components
from llpbench_datasets.feature_cache import Array
from llpbench_datasets.simclr.encoder import encoder, pooled
from llpbench_datasets.simclr.weights import unpack

VERSION = 1
"""Raise it when equal weights would give other features."""
DIMS = 256
_BLOCK = 250


def features(images: Array, fit: int, network: str, contents: bytes, say: Callable[[str], None]) -> Array:
    """The last maps of the encoder, averaged over quadrants, projected onto their principal components.

    Components keep their natural scale, as those of the patch dictionary do.

    Args:
        images: (n, 3, side, side), uint8.
        fit: the components are learned from so many of the first images.
        network: name of the encoder.
        contents: contents of the file of its weights.
        say: is told how far the work is.

    Returns:
        (n, dims) float32, dims at most 256.
    """
    from llpbench_datasets.keras_backend import keras

    model = encoder(network)
    model.set_weights(unpack(contents))
    parts = []
    for start in range(0, len(images), _BLOCK):
        block = images[start : start + _BLOCK].transpose(0, 2, 3, 1) * np.float32(1 / 255)
        maps = [np.asarray(keras.ops.convert_to_numpy(x)) for x in model.predict_on_batch(block)]
        parts.append(pooled(maps).astype(np.float16))
        if start % 5000 == 0:
            say(f"simclr: {start:,} of {len(images):,} images")
    return principal_components(np.concatenate(parts), fit, DIMS, seed=0)
