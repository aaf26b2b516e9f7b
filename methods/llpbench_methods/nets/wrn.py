"""WideResNet (Zagoruyko & Komodakis 2016) for raw images, and the augmentation that goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llpbench_methods.nets.backend import backend, keras, ops
from llpbench_methods.nets.mlp import Ones, Zeros, dense

Tensor = Any

SHIFT = 4
"""Pixels an image may move to each side (a crop of the image padded by as many)."""


class Convolution(keras.layers.Conv2D):  # type: ignore[misc]
    """A convolution without bias, zeros around the image; on jax as a sum of matrix products.

    Inside a compiled loop XLA has no fast kernel for the gradient of a convolution on a CPU (some 30 times slower),
    while products of matrices are fast everywhere.
    """

    def __init__(self, channels: int, kernel: int, stride: int, name: str) -> None:
        super().__init__(
            channels, kernel, strides=stride, padding="same", use_bias=False, kernel_initializer=Zeros(), name=name
        )

    def convolution_op(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """Keras's own, or the sum of products."""
        if keras.backend.backend() == "jax":
            return shifted_products(inputs, kernel, self.strides[0])
        return super().convolution_op(inputs, kernel)


def shifted_products(images: Tensor, kernel: Tensor, stride: int) -> Tensor:
    """The convolution ``y[r, u, v] = sum_ij x[r, s u + i − p, s v + j − p] K[i, j]``, one product for each ``i, j``.

    Args:
        images: (R, height, width, channels); zeros lie around them, where uneven one more at the far side.
        kernel: (k, k, channels, out channels).
        stride: the step ``s``.
    """
    size, _, channels, out = kernel.shape
    _, height, width, _ = images.shape
    (rows, above, below), (columns, left, right) = (_same(n, size, stride) for n in (height, width))
    padded = ops.pad(images, ((0, 0), (above, below), (left, right), (0, 0)))
    total: Tensor = 0.0
    for i in range(size):
        for j in range(size):
            seen = padded[:, i : i + stride * (rows - 1) + 1 : stride, j : j + stride * (columns - 1) + 1 : stride]
            total = total + ops.matmul(ops.reshape(seen, (-1, channels)), kernel[i, j])
    return ops.reshape(total, (-1, rows, columns, out))


def _same(length: int, kernel: int, stride: int) -> tuple[int, int, int]:
    """Outputs along one side, and the zeros before and after it."""
    outputs = -(-length // stride)
    zeros = max((outputs - 1) * stride + kernel - length, 0)
    return outputs, zeros // 2, zeros - zeros // 2


def wide_resnet(shape: Sequence[int], n_outputs: int, *, depth: int = 16, width: int = 4) -> Any:
    """A wide residual network: three groups of ``(depth − 4)/6`` blocks with 16k, 32k and 64k channels.

    A block is ``x + conv(relu(norm(conv(relu(norm(x))))))``, 3 × 3 kernels; where the number of channels
    changes, ``x`` is ``relu(norm(x))`` through a 1 × 1 convolution. Groups two and three halve the image.
    The first normalisation takes out the scale of the inputs.

    Args:
        shape: height, width and channels of an image.
        n_outputs: logits; with one output they have the shape (rows,), otherwise (rows, n_outputs).
        depth: convolutions on the longest path, 6 n + 4.
        width: the factor k.
    """
    if (depth - 4) % 6:
        raise ValueError(f"the depth of a wide residual network is 6 n + 4, not {depth}")
    backend()
    image = keras.Input(tuple(shape))
    x = Convolution(16, 3, 1, "stem")(image)
    for group, channels in enumerate((16 * width, 32 * width, 64 * width)):
        for block in range((depth - 4) // 6):
            stride = 2 if group and not block else 1
            x = _block(x, channels, stride, f"group_{group}_block_{block}")
    x = _norm_relu(x, "head")
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    x = dense(n_outputs, None, "logits")(x)
    if n_outputs == 1:
        x = keras.layers.Reshape((), name="flat")(x)
    return keras.Model(image, x, name="wrn")


def _block(x: Tensor, channels: int, stride: int, name: str) -> Tensor:
    before = _norm_relu(x, f"{name}_first")
    if x.shape[-1] != channels:
        x = Convolution(channels, 1, stride, f"{name}_skip")(before)
    y = Convolution(channels, 3, stride, f"{name}_conv_1")(before)
    y = Convolution(channels, 3, 1, f"{name}_conv_2")(_norm_relu(y, f"{name}_second"))
    return keras.layers.Add(name=f"{name}_sum")([x, y])


def _norm_relu(x: Tensor, name: str) -> Tensor:
    norm = keras.layers.BatchNormalization(
        momentum=0.9,
        epsilon=1e-5,
        beta_initializer=Zeros(),
        gamma_initializer=Ones(),
        moving_mean_initializer=Zeros(),
        moving_variance_initializer=Ones(),
        name=f"{name}_norm",
    )
    return keras.layers.ReLU(name=f"{name}_relu")(norm(x))


def augment(images: Tensor, key: Tensor, *, shift: int = SHIFT) -> Tensor:
    """Each image moved by up to ``shift`` pixels in each direction and mirrored half the time.

    Equal to a random crop of the image padded with ``shift`` zeros on every side, then a horizontal flip.
    The crop is a product with two 0/1 matrices, ``Y = A X Bᵀ`` for each channel, the same on every backend.

    Args:
        images: (R, height, width, channels).
        key: two integers, as ``backend().normal`` takes them.
        shift: most pixels to a side.
    """
    rows, height, width, _ = images.shape
    noise = backend().normal(key, (rows, 3))
    uniform = 0.5 * (1.0 + ops.erf(noise[:, :2] / 2.0**0.5))
    moves = ops.clip(ops.floor(uniform * (2 * shift + 1)), 0.0, 2.0 * shift) - shift
    down = ops.arange(height, dtype="float32")[None, :] + moves[:, :1]
    along = ops.arange(width, dtype="float32")[None, :] * ops.ones((rows, 1))
    along = ops.where(noise[:, 2:] > 0, width - 1.0 - along, along) + moves[:, 1:]
    moved = ops.einsum("rij,rjkc->rikc", _picks(down, height), images)
    return ops.einsum("rij,rkjc->rkic", _picks(along, width), moved)


def _picks(source: Tensor, size: int) -> Tensor:
    """0/1 matrices (R, size, size): row i has its 1 at ``source[i]``, and none when that lies outside."""
    columns = ops.arange(size, dtype="float32")[None, None, :]
    return ops.cast(ops.abs(source[:, :, None] - columns) < 0.5, "float32")
