"""The method behind a model: found by its name, and made ready to run in this process."""

from __future__ import annotations

import os
import sys

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.contracts.specs import MethodSpec
from llpbench.plugins.registry import Entry, Registry, unmet_needs


def find_method(registry: Registry, name: str) -> Entry[MethodSpec]:
    """The method of that name, if it learns from bags.

    Raises:
        UsageError: it learns from the label of every row.
    """
    entry = registry.methods.entry(name)
    if entry.spec.oracle:
        raise UsageError(f"{name} learns from the label of every row: it is a bound for benchmarks, not for bags.")
    return entry


def choose_backend(entry: Entry[MethodSpec], wanted: str, usual: str = "") -> str:
    """Choose the backend of a method's networks and set ``KERAS_BACKEND`` to it.

    The first that is known counts: the one that is wanted, the one Keras runs on in this process, ``usual``, the
    variable ``KERAS_BACKEND``, the first that the method declares.

    Args:
        entry: the method.
        wanted: the backend that the user asked for; empty when none.
        usual: the backend that a saved model was fitted with; empty when none.

    Returns:
        The backend; empty for a method without networks.

    Raises:
        UsageError: the method cannot run here, with what is missing.
    """
    spec = entry.spec
    backend = ""
    if spec.backends:
        keras = sys.modules.get("keras")
        running = str(keras.backend.backend()) if keras is not None else ""
        backend = wanted or running or usual or os.environ.get("KERAS_BACKEND", "") or spec.backends[0]
        if backend not in spec.backends:
            raise UnknownNameError(f"backend of {spec.name}:", backend, spec.backends)
        if running and running != backend:
            raise UsageError(f"Keras runs on {running} in this process; start another process for {backend}.")
    elif wanted:
        raise UsageError(f"{spec.name} has no networks, so backend={wanted!r} has no meaning.")
    needs = unmet_needs(entry, backend)
    if needs:
        raise UsageError(needs)
    if backend:
        os.environ["KERAS_BACKEND"] = backend
    return backend
