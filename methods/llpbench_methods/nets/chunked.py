"""A loss worked through in chunks of rows: exact value and gradient in the memory of one chunk.

The loss is ``L(z_1 … z_R) + Σ_i e_i``: any function of all rows' logits, and terms that add over rows. A first
pass computes the logits alone, from which ``c_i = ∂L/∂z_i`` follows. A second pass back-propagates
``Σ_i c_i z_i + Σ_i e_i`` chunk by chunk, which is the gradient of the whole. The gradient ``g`` so gathered is
attached to the loss as ``Σ (w − w₀) · g`` with ``w₀`` and ``g`` held constant: it adds 0 to the value and ``g`` to the
gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llpbench_methods.nets.backend import backend, keras, ops
from llpbench_methods.nets.training import frozen_state

Tensor = Any
RowTerms = Callable[[Any, Sequence[Tensor], Tensor], Tensor]


def loss_in_chunks(
    net: Any,
    inputs: Sequence[Tensor],
    of_logits: Callable[[Tensor], Tensor],
    *,
    rows_at_once: int,
    row_terms: RowTerms | None = None,
) -> Tensor:
    """``of_logits(z) + Σ row_terms``, a chunk of rows at a time when there are more than ``rows_at_once``.

    Batch normalisation, where a network has it, uses the statistics of a chunk; its running statistics follow
    the chunks one after the other.

    Args:
        net: the network, called in training mode.
        inputs: arrays of R rows each; the first one goes into the network.
        of_logits: loss as a function of the logits of all rows.
        rows_at_once: most rows of a chunk.
        row_terms: ``row_terms(net, parts, logits)`` of a chunk: a scalar that adds over rows, so that padding
            must have weight 0 in it (rows that fill up the last chunk repeat the first input and are 0 in the
            others).
    """
    rows = inputs[0].shape[0]
    if rows <= rows_at_once:
        logits = net(inputs[0], training=True)
        loss = of_logits(logits)
        return loss if row_terms is None else loss + row_terms(net, inputs, logits)
    n_chunks = -(-rows // rows_at_once)
    size = -(-rows // n_chunks)
    filler = n_chunks * size - rows
    parts = [_cut(ops.concatenate([inputs[0], inputs[0][:filler]]), n_chunks, size)]
    parts += [_cut(values, n_chunks, size) for values in inputs[1:]]
    weights = [ops.stop_gradient(v.value) for v in net.trainable_variables]
    others = [v.value for v in net.non_trainable_variables]

    with frozen_state(net):
        logits = ops.stop_gradient(_all_logits(net, weights, others, parts[0], n_chunks))
    whole = _joined(logits, rows)
    pull = _cut(backend().input_gradient(of_logits, whole), n_chunks, size)

    def body(i: Tensor, carry: tuple[list[Tensor], list[Tensor], Tensor]) -> tuple[list[Tensor], list[Tensor], Tensor]:
        sums, others, terms = carry
        chunk = [part[i] for part in parts]

        def of_weights(weights: list[Tensor]) -> tuple[Tensor, tuple[Tensor, list[Tensor]]]:
            with _scope(net, weights, others) as scope:
                logits = net(chunk[0], training=True)
                extra = ops.zeros(()) if row_terms is None else row_terms(net, chunk, logits)
            moved = [scope.get_current_value(v) for v in net.non_trainable_variables]
            return ops.sum(pull[i] * logits) + extra, (ops.stop_gradient(extra), moved)

        (_, (extra, moved)), gradients = backend().value_and_gradient(of_weights, weights)
        moved = [ops.stop_gradient(value) for value in moved]
        return [s + g for s, g in zip(sums, gradients, strict=True)], moved, terms + extra

    start = ([ops.zeros_like(w) for w in weights], others, ops.zeros(()))
    gradients, others, terms = backend().repeat(n_chunks, body, start)
    for variable, value in zip(net.non_trainable_variables, others, strict=True):
        variable.assign(ops.stop_gradient(value))
    value = ops.stop_gradient(of_logits(whole) + terms)
    slopes = zip(net.trainable_variables, weights, gradients, strict=True)
    return value + sum(ops.sum((v.value - w) * ops.stop_gradient(g)) for v, w, g in slopes)


def _all_logits(net: Any, weights: list[Tensor], others: list[Tensor], X: Tensor, n_chunks: int) -> Tensor:
    """Logits of all chunks, (chunks, rows, ...), one chunk at a time and without their gradient."""

    def body(i: Tensor, found: Tensor) -> Tensor:
        with _scope(net, weights, others):
            logits = ops.stop_gradient(net(X[i], training=True))
        place = ops.reshape(ops.one_hot(i, n_chunks, dtype=logits.dtype), (-1,) + (1,) * len(logits.shape))
        return found + place * logits[None]

    shape = (n_chunks, X.shape[1], *net.output_shape[1:])
    return backend().repeat(n_chunks, body, ops.zeros(shape))


def _scope(net: Any, weights: Sequence[Tensor], others: Sequence[Tensor]) -> Any:
    variables = [*net.trainable_variables, *net.non_trainable_variables]
    return keras.StatelessScope(state_mapping=list(zip(variables, [*weights, *others], strict=True)))


def _cut(values: Tensor, n_chunks: int, size: int) -> Tensor:
    """(rows, ...) as (chunks, size, ...), zeros at the end."""
    missing = n_chunks * size - values.shape[0]
    padded = ops.pad(values, [(0, missing)] + [(0, 0)] * (len(values.shape) - 1))
    return ops.reshape(padded, (n_chunks, size, *values.shape[1:]))


def _joined(values: Tensor, rows: int) -> Tensor:
    """(chunks, size, ...) as (rows, ...)."""
    return ops.reshape(values, (-1, *values.shape[2:]))[:rows]
