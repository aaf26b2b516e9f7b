"""Encoders: a compact convolutional network for a CPU, and ResNet-18 for a GPU. One projection head for both.

A network is a Keras model from images (any size) to the maps of its last stages. Weights are plain arrays in the
model's own order, drawn by numpy, so that a seed means the same on every backend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench import UnknownNameError
from llpbench_datasets.feature_cache import Array
from llpbench_datasets.keras_backend import keras
from llpbench_datasets.simclr.settings import ENCODERS

Tensor = Any

SMALL_WIDTHS = (48, 96, 192)


def encoder(name: str) -> Any:
    """The encoder of that name: a model from (n, side, side, 3) to the list of its last two maps."""
    image = keras.Input((None, None, 3))
    if name == "small":
        maps = _small(image)
    elif name == "resnet18":
        maps = _resnet18(image)
    else:
        raise UnknownNameError("network", name, ENCODERS)
    return keras.Model(image, maps[-2:], name=name)


def with_head(network: Any, *, hidden: int = 256, out: int = 128) -> Any:
    """The encoder's last map, averaged over the image and sent through the projection head."""
    x = keras.layers.GlobalAveragePooling2D(name="pool")(network.outputs[-1])
    x = keras.layers.Dense(hidden, use_bias=False, name="head_1")(x)
    x = _norm_relu(x, "head_1")
    return keras.Model(network.inputs[0], keras.layers.Dense(out, name="head_2")(x), name="simclr")


def draw_weights(model: Any, seed: int) -> None:
    """Start all kernels from He's normal distribution; other weights keep what their layers give them (0 or 1)."""
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        if variable.path.endswith("kernel"):
            fan_in = int(np.prod(variable.shape[:-1]))
            variable.assign(rng.normal(0.0, np.sqrt(2.0 / fan_in), variable.shape).astype(np.float32))


def pooled(maps: list[Array]) -> Array:
    """Features of each image: every map averaged over each of its four quadrants, side by side."""
    parts = []
    for x in maps:
        rows, columns = (np.array_split(np.arange(x.shape[axis]), 2) for axis in (1, 2))
        parts += [x[:, r[0] : r[-1] + 1, c[0] : c[-1] + 1].mean(axis=(1, 2)) for r in rows for c in columns]
    return np.concatenate(parts, axis=1)


def _small(x: Tensor) -> list[Tensor]:
    """Three strided convolutions with normalisation: 3.4 million multiplications for a view of 24 x 24 pixels."""
    maps = []
    for stage, width in enumerate(SMALL_WIDTHS):
        x = _norm_relu(_conv(x, width, 3 if stage else 4, 2, f"stage_{stage}"), f"stage_{stage}")
        maps.append(x)
    return maps


def _resnet18(x: Tensor) -> list[Tensor]:
    """ResNet-18 as used for small images: a 3 x 3 stem, four stages of two blocks, no pooling before them."""
    x = _norm_relu(_conv(x, 64, 3, 1, "stem"), "stem")
    maps = []
    for stage, width in enumerate((64, 128, 256, 512)):
        for block in range(2):
            name, stride = f"stage_{stage}_{block}", 2 if stage and not block else 1
            y = _norm_relu(_conv(x, width, 3, stride, f"{name}_1"), f"{name}_1")
            y = _norm(_conv(y, width, 3, 1, f"{name}_2"), f"{name}_2")
            if x.shape[-1] != width:
                x = _norm(_conv(x, width, 1, stride, f"{name}_skip"), f"{name}_skip")
            x = keras.layers.ReLU(name=f"{name}_relu")(keras.layers.Add(name=f"{name}_sum")([x, y]))
        maps.append(x)
    return maps


def _conv(x: Tensor, width: int, kernel: int, stride: int, name: str) -> Tensor:
    layer = keras.layers.Conv2D(
        width, kernel, strides=stride, padding="same", use_bias=False, kernel_initializer="zeros", name=f"{name}_conv"
    )
    return layer(x)


def _norm(x: Tensor, name: str) -> Tensor:
    return keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-5, name=f"{name}_norm")(x)


def _norm_relu(x: Tensor, name: str) -> Tensor:
    return keras.layers.ReLU(name=f"{name}_act")(_norm(x, name))
