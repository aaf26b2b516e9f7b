"""Keras on the engine of the environment variable ``KERAS_BACKEND``, and on jax when nobody chose."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

if "keras" not in sys.modules:
    os.environ.setdefault("KERAS_BACKEND", "jax")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
from keras import ops

from llpbench_datasets.feature_cache import Array

__all__ = ["arrays_of", "keras", "ops"]


def arrays_of(variables: list[Any]) -> list[Array]:
    """The values of Keras variables, as numpy arrays."""
    return [np.asarray(ops.convert_to_numpy(variable.value)) for variable in variables]
