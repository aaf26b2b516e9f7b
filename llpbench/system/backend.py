"""The backends that networks run on (jax, tensorflow, torch) and how Keras is told which one to use."""

from __future__ import annotations

import os
import sys

BACKENDS = ("jax", "tensorflow", "torch")


def prepare_keras() -> None:
    """Set the backend of Keras; call it before ``import keras``, which fixes the backend for the whole process.

    The backend is that of the environment variable ``KERAS_BACKEND``, and jax when nobody chose. TensorFlow's
    start-up messages are silenced.
    """
    if "keras" not in sys.modules:
        os.environ.setdefault("KERAS_BACKEND", BACKENDS[0])
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
