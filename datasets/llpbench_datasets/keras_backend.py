"""Keras, on the backend that the environment variable ``KERAS_BACKEND`` names, or on jax."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench import prepare_keras

prepare_keras()

import keras  # noqa: E402 - its import fixes the backend
from keras import ops  # noqa: E402

__all__ = ["arrays_of", "keras", "ops"]


def arrays_of(variables: list[Any]) -> list[np.ndarray[Any, Any]]:
    """The values of Keras variables, as numpy arrays."""
    return [np.asarray(ops.convert_to_numpy(variable.value)) for variable in variables]
