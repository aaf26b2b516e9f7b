"""The one module that knows the backends: jax, tensorflow and torch behind the same few functions.

Keras fixes its backend when it is first imported, so everything that uses Keras imports it from here. The
backend is that of the environment variable ``KERAS_BACKEND``, and jax when nobody chose. Importing this module
starts no device and no thread, so a process may import it and fork.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from llpbench import UsageError, cache_root, prepare_keras

prepare_keras()

import keras  # noqa: E402
from keras import ops  # noqa: E402

Tensor = Any
Array = np.ndarray[Any, Any]

__all__ = ["Backend", "backend", "keras", "ops"]


class Backend(Protocol):
    """The functions that a backend provides; arrays are the backend's own until ``numpy`` converts them."""

    name: str

    def device(self, values: Any) -> Any:
        """Arrays (or a tuple, list or dict of them) as arrays of the backend."""
        ...

    def numpy(self, tensor: Tensor) -> Array:
        """An array of the backend as a numpy array."""
        ...

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A compiled form of a function of arrays, compiled once for each shape of its arguments."""
        ...

    def value_and_gradient(
        self, function: Callable[[list[Tensor]], tuple[Tensor, Any]], weights: list[Tensor]
    ) -> tuple[tuple[Tensor, Any], list[Tensor]]:
        """``((value, extra), d value / d weights)`` of a function ``weights -> (value, extra)``."""
        ...

    def input_gradient(self, function: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        """``d function(inputs) / d inputs`` as a constant; may be used inside a loss (as VAT does)."""
        ...

    def repeat(self, count: Tensor, body: Callable[[Tensor, Any], Any], carry: Any) -> Any:
        """``carry = body(i, carry)`` for i from 0 to count − 1; the count is a value, not a shape."""
        ...

    def normal(self, key: Tensor, shape: Sequence[int]) -> Tensor:
        """Standard normal numbers that depend on the key (two integers) alone."""
        ...


class _Jax:
    """An epoch is one XLA program; programs are kept on disk, so that equal fits compile once ever."""

    name = "jax"

    def __init__(self) -> None:
        import jax

        self._jax = jax
        folder = cache_root() / "compiled" / "jax"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

    def device(self, values: Any) -> Any:
        return self._jax.device_put(values)

    def numpy(self, tensor: Tensor) -> Array:
        return np.asarray(tensor)

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = self._jax.jit(function)
        return compiled

    def value_and_gradient(
        self, function: Callable[[list[Tensor]], tuple[Tensor, Any]], weights: list[Tensor]
    ) -> tuple[tuple[Tensor, Any], list[Tensor]]:
        both: tuple[tuple[Tensor, Any], list[Tensor]]
        both = self._jax.value_and_grad(function, has_aux=True)(weights)
        return both

    def input_gradient(self, function: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        return self._jax.lax.stop_gradient(self._jax.grad(function)(inputs))

    def repeat(self, count: Tensor, body: Callable[[Tensor, Any], Any], carry: Any) -> Any:
        return self._jax.lax.fori_loop(0, count, body, carry)

    def normal(self, key: Tensor, shape: Sequence[int]) -> Tensor:
        random = self._jax.random
        return random.normal(random.wrap_key_data(ops.cast(key, "uint32")), tuple(shape))


class _TensorFlow:
    """An epoch is one graph with a loop in it."""

    name = "tensorflow"

    def __init__(self) -> None:
        import tensorflow as tf

        self._tf = tf

    def device(self, values: Any) -> Any:
        return self._tf.nest.map_structure(self._tf.convert_to_tensor, values)

    def numpy(self, tensor: Tensor) -> Array:
        return np.asarray(tensor.numpy())

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        compiled: Callable[..., Any] = self._tf.function(function, autograph=False)
        return compiled

    def value_and_gradient(
        self, function: Callable[[list[Tensor]], tuple[Tensor, Any]], weights: list[Tensor]
    ) -> tuple[tuple[Tensor, Any], list[Tensor]]:
        with self._tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(weights)
            value, extra = function(weights)
        zero = self._tf.UnconnectedGradients.ZERO
        return (value, extra), tape.gradient(value, weights, unconnected_gradients=zero)

    def input_gradient(self, function: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        with self._tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(inputs)
            value = function(inputs)
        return self._tf.stop_gradient(tape.gradient(value, inputs))

    def repeat(self, count: Tensor, body: Callable[[Tensor, Any], Any], carry: Any) -> Any:
        def step(i: Tensor, carry: Any) -> tuple[Tensor, Any]:
            return i + 1, body(i, carry)

        start = self._tf.constant(0)
        return self._tf.while_loop(lambda i, _: i < count, step, (start, carry), parallel_iterations=1)[1]

    def normal(self, key: Tensor, shape: Sequence[int]) -> Tensor:
        return self._tf.random.stateless_normal(tuple(shape), self._tf.cast(key, self._tf.int32))


class _Torch:
    """Runs eagerly, without compilation."""

    name = "torch"

    def __init__(self) -> None:
        import torch

        self._torch = torch
        if torch.get_num_threads() > available_cores():
            torch.set_num_threads(available_cores())

    def device(self, values: Any) -> Any:
        if isinstance(values, dict):
            return {name: self.device(value) for name, value in values.items()}
        if isinstance(values, tuple) and hasattr(values, "_fields"):
            return type(values)(*(self.device(value) for value in values))
        if isinstance(values, list | tuple):
            return type(values)(self.device(value) for value in values)
        return ops.convert_to_tensor(np.require(values, requirements="W"))

    def numpy(self, tensor: Tensor) -> Array:
        return np.asarray(tensor.detach().cpu().numpy())

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            with self._torch.no_grad():
                return function(*args)

        return run

    def value_and_gradient(
        self, function: Callable[[list[Tensor]], tuple[Tensor, Any]], weights: list[Tensor]
    ) -> tuple[tuple[Tensor, Any], list[Tensor]]:
        with self._torch.enable_grad():
            leaves = [weight.detach().requires_grad_() for weight in weights]
            value, extra = function(leaves)
            gradients = self._torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
        return (value.detach(), extra), list(gradients)

    def input_gradient(self, function: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        with self._torch.enable_grad():
            leaf = inputs.detach().requires_grad_()
            (gradient,) = self._torch.autograd.grad(function(leaf), leaf)
        return gradient

    def repeat(self, count: Tensor, body: Callable[[Tensor, Any], Any], carry: Any) -> Any:
        for i in range(int(count)):
            carry = body(i, carry)
        return carry

    def normal(self, key: Tensor, shape: Sequence[int]) -> Tensor:
        high, low = (int(part) & 0xFFFFFFFF for part in key)
        generator = self._torch.Generator().manual_seed((high << 32 | low) & 0x7FFF_FFFF_FFFF_FFFF)
        return ops.convert_to_tensor(self._torch.randn(tuple(shape), generator=generator))


def available_cores() -> int:
    """Cores this process may use: a pinned process must not start more threads than it has cores."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


_KNOWN: dict[str, type[Any]] = {"jax": _Jax, "tensorflow": _TensorFlow, "torch": _Torch}
_started: Backend | None = None


def backend() -> Backend:
    """The backend of this process, started on first use."""
    global _started
    if _started is None:
        name = keras.backend.backend()
        if name not in _KNOWN:
            raise UsageError(f"Keras backend {name!r} is not supported. Choose one of: {', '.join(_KNOWN)}.")
        _started = _KNOWN[name]()
    return _started
