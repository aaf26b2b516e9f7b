"""The one training loop: a method brings a network and a loss, the loop does the rest.

A loss is a function ``loss(net, batch) -> scalar``. It calls ``net`` (or parts of it) like any Keras model,
any number of times; the method's own values are part of the batch: per row, per bag, or shared by all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from llpbench import FloatArray, Monitor, Predict
from llpbench_methods.nets.backend import backend, keras, ops
from llpbench_methods.nets.batches import Batches, power_of_two
from llpbench_methods.nets.mlp import draw_weights
from llpbench_methods.nets.optimiser import Moments, adamw
from llpbench_methods.nets.params import NetworkSettings

Tensor = Any


class Batch(NamedTuple):
    """The argument of a loss. All batches of a fit have the same shapes: R rows, K bags, some of them padding.

    Attributes:
        X: (R, ...) inputs.
        row_mask: (R,) 1 for rows, 0 for padding.
        bag_of: (R,) position of the row's bag in the batch; K for padding.
        bag_mask: (K,) 1 for bags, 0 for padding. Bags in use come first.
        sizes: (K,) rows of each bag in the batch; 0 for padding.
        rows: per-row values, each (R, ...).
        bags: per-bag values, each (K, ...).
        shared: values that every batch sees whole.
        step: number of optimiser steps before this one (for ramps).
        key: two integers, new at every step (for ``backend().normal``).
    """

    X: Tensor
    row_mask: Tensor
    bag_of: Tensor
    bag_mask: Tensor
    sizes: Tensor
    rows: dict[str, Tensor]
    bags: dict[str, Tensor]
    shared: dict[str, Tensor]
    step: Tensor
    key: Tensor


Loss = Callable[[Any, Batch], Tensor]
Head = Callable[[Any, Tensor], Tensor]


@dataclass(frozen=True)
class TrainingData:
    """The rows and a method's own values (targets, weights, proportions, matrices)."""

    X: FloatArray
    rows: Mapping[str, Any] = field(default_factory=dict)
    bags: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, dict[str, Any]]:
        """The method's values in the backend's number types.

        Bags are padded to a power of two, so that another draw of uneven bags finds the same shapes.
        """
        return {
            "rows": {name: _narrow(value) for name, value in self.rows.items()},
            "bags": {name: _padded(_narrow(value)) for name, value in self.bags.items()},
            "shared": {name: _narrow(value) for name, value in self.shared.items()},
        }


class _State(NamedTuple):
    """The values that a training step changes."""

    weights: list[Tensor]
    others: list[Tensor]
    moments: Moments
    step: Tensor


class Trainer:
    """Trains one network with one loss; compiled once, whatever the number of fits, epochs and settings.

    Args:
        net: a Keras model (or any object with ``trainable_variables``, ``non_trainable_variables`` and
            callable parts).
        loss: ``loss(net, batch)``, a scalar of the backend.
        head: ``head(net, X)``: what ``predict`` returns; the network's output when not given.
        predict_rows: rows that ``predict`` works on at once.
    """

    def __init__(self, net: Any, loss: Loss, *, head: Head | None = None, predict_rows: int = 1024) -> None:
        self.net = net
        self._predict_rows = predict_rows
        self._loss = loss
        self._variables = list(net.trainable_variables)
        self._other_variables = list(net.non_trainable_variables)
        self._backend = backend()
        self._epoch = self._backend.compile(self._run_epoch)
        self._heads: dict[Head, Callable[..., Any]] = {}
        self._head = head or _output
        self._weights: list[Tensor] = []
        self._others: list[Tensor] = []

    def fit(
        self,
        data: TrainingData,
        batches: Batches,
        settings: NetworkSettings,
        *,
        monitor: Monitor,
        seed: int,
        predict: Predict | None = None,
        stage: str = "",
        refresh: Callable[[int], tuple[TrainingData, Batches] | None] | None = None,
        schedule: Callable[[int], float] | None = None,
        keep_weights: bool = False,
        report_start: bool = False,
    ) -> Trainer:
        """Train from fresh weights until the monitor stops the fit or the last epoch ends; keep the best weights.

        After every epoch the model is reported. The weights kept in the end are those of the last
        report that the monitor called the best (of the first report, when it never did). A loss that is no
        longer finite ends the fit at the weights that were best until then, the initial ones at the least.

        Args:
            data: rows and the method's values.
            batches: where each epoch's batches come from.
            settings: learning rate, weight decay, epochs.
            monitor: watches the fit.
            seed: draws initial weights and batches.
            predict: what is reported; class probabilities of the network when not given.
            stage: name of this part of the fit, for the monitor.
            refresh: called before each epoch with its number from 0; new data (of the same shapes, same X)
                and batches, or None to keep the current ones.
            schedule: factor on the learning rate for each epoch from 0; constant when not given.
            keep_weights: go on from the weights of the previous fit instead of fresh ones.
            report_start: report the weights it starts from too, and keep them unless an epoch is better.

        Returns:
            The trainer itself.
        """
        rng = np.random.default_rng(seed)
        state = self._start(rng, keep_weights)
        best = start = (state.weights, state.others)
        device = self._backend.device
        X, values = device(np.ascontiguousarray(data.X, np.float32)), device(data.values())
        key = np.int32(rng.integers(2**31))
        if report_start:
            monitor.report(predict or self.probabilities, stage=stage)
        for epoch in range(settings.epochs):
            fresh = refresh(epoch) if refresh else None
            if fresh is not None:
                values, batches = device(fresh[0].values()), fresh[1]
            rate = settings.lr * (schedule(epoch) if schedule else 1.0)
            numbers = {"rate": np.float32(rate), "decay": np.float32(settings.weight_decay), "key": key}
            loss = 0.0
            for *tables, n_batches in batches.plans(rng):
                given = device({**numbers, "n_batches": np.int32(n_batches)})
                state, part = self._epoch(state, X, values, device(tuple(tables)), given)
                loss += float(part)
            if not np.isfinite(loss):
                monitor.note("diverged", True)
                self._weights, self._others = best
                if epoch == 0:
                    monitor.report(predict or self.probabilities, stage=stage)
                break
            self._weights, self._others = state.weights, state.others
            is_best = monitor.report(predict or self.probabilities, stage=stage)
            if is_best or (best is start and not report_start):
                best = (state.weights, state.others)
            if monitor.should_stop:
                break
        self._weights, self._others = best
        return self

    def predict(self, X: FloatArray, head: Head | None = None) -> FloatArray:
        """The head's output for each row (logits, embeddings, ...), worked through in chunks of one shape.

        Each head is compiled once; pass the same function again, not a new one that does the same.
        """
        head = head or self._head
        if head not in self._heads:
            self._heads[head] = self._backend.compile(self._forward(head))
        forward, chunk = self._heads[head], self._predict_rows
        parts = []
        for start in range(0, max(len(X), 1), chunk):
            rows = np.ascontiguousarray(X[start : start + chunk], np.float32)
            padding = [(0, chunk - len(rows))] + [(0, 0)] * (rows.ndim - 1)
            padded = self._backend.device(np.pad(rows, padding))
            output = forward(self._weights, self._others, padded)
            parts.append(self._backend.numpy(output)[: len(rows)])
        return np.concatenate(parts)

    def probabilities(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C).

        Taken from the logits in double precision: single precision would tie all confident rows at 1.
        """
        logits = self.predict(X).astype(np.float64)
        result: FloatArray = expit(logits) if logits.ndim == 1 else softmax(logits, axis=-1)
        return result

    @property
    def weights(self) -> list[np.ndarray[Any, Any]]:
        """The current trainable weights as numpy arrays."""
        return [self._backend.numpy(w) for w in self._weights]

    @property
    def others(self) -> list[np.ndarray[Any, Any]]:
        """The state that training changes besides the weights (running statistics), as numpy arrays."""
        return [self._backend.numpy(value) for value in self._others]

    def set_weights(self, weights: Sequence[np.ndarray[Any, Any]], others: Sequence[np.ndarray[Any, Any]]) -> None:
        """Predict with these weights from now on.

        Raises:
            ValueError: their shapes are not those of the network.
        """
        for kind, given, variables in (
            ("weights", weights, self._variables),
            ("statistics", others, self._other_variables),
        ):
            wanted = [tuple(variable.shape) for variable in variables]
            if [value.shape for value in given] != wanted:
                raise ValueError(f"expected {kind} of shapes {wanted}, got {[value.shape for value in given]}")
        device = self._backend.device
        self._weights = device([np.array(weight, np.float32) for weight in weights])
        kinds = [self._backend.numpy(variable.value).dtype for variable in self._other_variables]
        self._others = device([np.array(value, kind) for value, kind in zip(others, kinds, strict=True)])

    def _start(self, rng: np.random.Generator, keep_weights: bool) -> _State:
        device = self._backend.device
        if not (keep_weights and self._weights):
            self._weights = device(draw_weights(self._variables, rng))
            self._others = device([self._backend.numpy(v.value) for v in self._other_variables])
        zeros = [np.zeros(tuple(v.shape), np.float32) for v in self._variables]
        return _State(self._weights, self._others, Moments(device(zeros), device(zeros)), device(np.int32(0)))

    def _run_epoch(
        self,
        state: _State,
        X: Tensor,
        values: dict[str, dict[str, Tensor]],
        plan: tuple[Tensor, Tensor, Tensor],
        numbers: dict[str, Tensor],
    ) -> tuple[_State, Tensor]:
        """All steps of a plan: ``(state, mean loss)``; the loss is NaN when a weight is not finite."""

        def body(i: Tensor, carry: tuple[_State, Tensor]) -> tuple[_State, Tensor]:
            state, total = carry
            batch = _gather(X, values, [table[i] for table in plan], state.step, numbers["key"])
            state, loss = self._step(state, batch, numbers["rate"], numbers["decay"])
            return state, total + loss

        zero = ops.zeros((), "float32")
        state, total = self._backend.repeat(numbers["n_batches"], body, (state, zero))
        mean_loss = total / ops.cast(numbers["n_batches"], "float32")
        exploded = sum(0.0 * ops.sum(weight) for weight in state.weights)
        return state, mean_loss + exploded

    def _step(self, state: _State, batch: Batch, rate: Tensor, decay: Tensor) -> tuple[_State, Tensor]:
        """One step of the optimiser on one batch."""

        def loss_of(weights: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
            with self._scope(weights, state.others) as scope:
                loss = self._loss(self.net, batch)
            return loss, [scope.get_current_value(v) for v in self._other_variables]

        (loss, others), gradients = self._backend.value_and_gradient(loss_of, state.weights)
        step = state.step + 1
        weights, moments = adamw(
            state.weights,
            gradients,
            state.moments,
            time=ops.cast(step, "float32"),
            rate=rate,
            decay=decay,
        )
        return _State(weights, others, moments, step), loss

    def _forward(self, head: Head) -> Callable[[list[Tensor], list[Tensor], Tensor], Tensor]:
        def forward(weights: list[Tensor], others: list[Tensor], X: Tensor) -> Tensor:
            with self._scope(weights, others):
                return head(self.net, X)

        return forward

    def _scope(self, weights: Sequence[Tensor], others: Sequence[Tensor]) -> Any:
        variables = [*self._variables, *self._other_variables]
        return keras.StatelessScope(state_mapping=list(zip(variables, [*weights, *others], strict=True)))


@contextmanager
def frozen_state(net: Any) -> Iterator[None]:
    """Inside a loss: calls of ``net`` in this block do not change its running statistics."""
    before = [(variable, variable.value) for variable in net.non_trainable_variables]
    yield
    for variable, value in before:
        variable.assign(value)


def _output(net: Any, X: Tensor) -> Tensor:
    return net(X, training=False)


def _gather(
    X: Tensor, values: dict[str, dict[str, Tensor]], plan: Sequence[Tensor], step: Tensor, key: Tensor
) -> Batch:
    """The batch that a row of the plan names, gathered on the device."""
    rows, bag_of, bags = plan
    n_bags = bags.shape[0]
    row_mask = ops.cast(bag_of < n_bags, "float32")
    bag_index = ops.maximum(bags, 0)
    return Batch(
        X=ops.take(X, rows, axis=0),
        row_mask=row_mask,
        bag_of=bag_of,
        bag_mask=ops.cast(bags >= 0, "float32"),
        sizes=ops.segment_sum(row_mask, bag_of, num_segments=n_bags + 1)[:n_bags],
        rows={name: ops.take(value, rows, axis=0) for name, value in values["rows"].items()},
        bags={name: ops.take(value, bag_index, axis=0) for name, value in values["bags"].items()},
        shared=values["shared"],
        step=step,
        key=ops.stack([key, step]),
    )


def _padded(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """With rows of zeros at the end, up to a power of two."""
    missing = power_of_two(len(value)) - len(value)
    return np.pad(value, [(0, missing)] + [(0, 0)] * (value.ndim - 1))


def _narrow(value: Any) -> Any:
    """Floats as float32, integers as int32."""
    array = np.asarray(value)
    return np.ascontiguousarray(array, np.float32 if array.dtype.kind == "f" else np.int32)
