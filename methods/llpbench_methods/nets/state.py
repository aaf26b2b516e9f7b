"""The fitted state of a network as plain arrays, and back: what network methods save and load."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench import State
from llpbench_methods.nets.training import Trainer


def trainer_state(trainer: Trainer, first: Any, last: Any) -> State:
    """The state of a trainer; ``first`` is the Keras model that takes rows, ``last`` the one that gives logits."""
    weights = {f"weight_{i}": weight for i, weight in enumerate(trainer.weights)}
    others = {f"other_{i}": value for i, value in enumerate(trainer.others)}
    outputs = 1 if len(last.output_shape) == 1 else int(last.output_shape[-1])
    return {"inputs": np.array(first.input_shape[1:], np.int64), "outputs": outputs, **weights, **others}


def network_shape(state: State) -> tuple[tuple[int, ...], int]:
    """Shape of an input row and number of logits; a table's width must be that of the first weights.

    Raises:
        ValueError: the two do not agree (a large network would be built for nothing).
    """
    shape = tuple(int(n) for n in np.asarray(state["inputs"]).reshape(-1))
    outputs = int(np.asarray(state["outputs"]))
    first = np.asarray(state["weight_0"])
    if min((*shape, outputs), default=0) < 1 or (len(shape) == 1 and first.shape[:1] != shape):
        raise ValueError(f"first weights of shape {first.shape} do not match inputs of shape {shape}")
    return shape, outputs


def load_weights(trainer: Trainer, state: State) -> Trainer:
    """Give a trainer the weights of a state."""
    trainer.set_weights(_numbered(state, "weight"), _numbered(state, "other"))
    return trainer


def no_loss(net: Any, batch: Any) -> Any:
    """In place of a loss: a restored network predicts, it is not trained."""
    raise NotImplementedError("a restored network cannot be trained; make a new method and fit it")


def _numbered(state: State, name: str) -> list[np.ndarray[Any, Any]]:
    """The arrays ``name_0``, ``name_1``, ... of a state."""
    found: list[np.ndarray[Any, Any]] = []
    while f"{name}_{len(found)}" in state:
        found.append(np.asarray(state[f"{name}_{len(found)}"]))
    return found
