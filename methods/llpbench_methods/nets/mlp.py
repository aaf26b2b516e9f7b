"""The networks: hidden ReLU layers and a linear output of logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from llpbench_methods.nets.backend import backend, keras, ops


class Zeros(keras.initializers.Initializer):  # type: ignore[misc]
    """Zeros made by numpy. Keras's own would compile a program for each shape before any training starts."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Any:
        """Zeros of the given shape."""
        return ops.convert_to_tensor(np.zeros(tuple(shape), dtype or "float32"))


class Ones(Zeros):
    """Ones made by numpy."""

    def __call__(self, shape: Sequence[int], dtype: Any = None) -> Any:
        """Ones of the given shape."""
        return ops.convert_to_tensor(np.ones(tuple(shape), dtype or "float32"))


def dense(width: int, activation: str | None, name: str) -> Any:
    """A dense layer of zeros; ``draw_weights`` gives its initial kernel, equal on every backend."""
    return keras.layers.Dense(
        width, activation=activation, kernel_initializer=Zeros(), bias_initializer=Zeros(), name=name
    )


def mlp(n_features: int, widths: Sequence[int], n_outputs: int) -> Any:
    """A multilayer perceptron: ReLU layers of the given widths, then ``n_outputs`` logits.

    With one output the logits have the shape (rows,), otherwise (rows, n_outputs).
    """
    backend()
    layers = [keras.Input((n_features,))]
    layers += [dense(width, "relu", f"hidden_{i}") for i, width in enumerate(widths)]
    layers.append(dense(n_outputs, None, "logits"))
    if n_outputs == 1:
        layers.append(keras.layers.Reshape((), name="flat"))
    kind = _DirectMLP if backend().name == "torch" else keras.Sequential
    return kind(layers, name="mlp")


class _DirectMLP(keras.Sequential):  # type: ignore[misc]
    """The network on torch: the same layers and weights, called without Keras.

    Torch runs eagerly, so Keras's checks and bookkeeping are repeated for every layer of every batch. There they take
    longer than the arithmetic of a small batch; jax and tensorflow need them once, when a program is compiled.
    """

    def __call__(self, X: Any, training: bool = False) -> Any:  # noqa: ARG002
        """The logits of rows; weights are those of the surrounding ``StatelessScope``, if there is one."""
        import torch

        hidden = [layer for layer in self.layers if hasattr(layer, "kernel")]
        for layer in hidden:
            X = torch.addmm(layer.bias.value, X, layer.kernel.value)
            X = X if layer is hidden[-1] else torch.relu(X)
        return X.reshape(-1) if len(self.output_shape) == 1 else X


def draw_weights(variables: Sequence[Any], rng: np.random.Generator) -> list[np.ndarray[Any, Any]]:
    """Initial values of a network's variables, the same on every backend for the same generator.

    Every kernel is drawn from the Glorot uniform law ``U(±sqrt(6 / (fan_in + fan_out)))`` (Keras's default);
    everything else keeps the value it was built with (biases 0, scales 1).
    """
    values = []
    for variable in variables:
        shape = tuple(variable.shape)
        if len(shape) < 2:
            values.append(backend().numpy(variable.value))
            continue
        field = int(np.prod(shape[:-2]))
        limit = np.sqrt(6.0 / (field * (shape[-2] + shape[-1])))
        values.append(rng.uniform(-limit, limit, size=shape).astype(np.float32))
    return values
