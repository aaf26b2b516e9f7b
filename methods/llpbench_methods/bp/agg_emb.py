"""The Agg-Emb network: one trunk, a head for rows, and a head for bags on their pooled embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from llpbench_methods.nets.backend import backend, keras, ops
from llpbench_methods.nets.losses import row_cross_entropy, segment_logsumexp, segment_mean, segment_sum, weighted_mean
from llpbench_methods.nets.mlp import Ones, Zeros, dense
from llpbench_methods.nets.params import MLP_WIDTHS
from llpbench_methods.nets.training import Batch

Tensor = Any
HEADS = 2


class AggEmb:
    """Trunk `e(x)`, instance head `f(e)`, and bag head `g(pool of e over the bag)`; all outputs are logits.

    The last hidden width is that of the heads, the others make the trunk: `paper` is a trunk of 5040-1280-320-128
    and heads of 64, `small` a trunk of 256-128 and heads of 64. The embedding is the trunk's 128 ReLU units.

    Args:
        n_features: columns of the input.
        n_outputs: 1 logit for two classes, C for more.
        size: `small` or `paper`.
        pooling: `mean` or `attention`.
        instance_head: `hidden` (through the head's own layer) or `direct` (a linear map of the embedding).
    """

    def __init__(
        self, n_features: int, n_outputs: int, *, size: str, pooling: str = "mean", instance_head: str = "hidden"
    ) -> None:
        backend()
        *trunk, head = MLP_WIDTHS[size]
        width = trunk[-1]
        self.trunk = _stack(n_features, trunk, None, "trunk")
        self.instance_head = _stack(width, [head] if instance_head == "hidden" else [], n_outputs, "row")
        self.pool: Callable[[Tensor, Batch], Tensor] = mean_pooling
        parts: list[Any] = [self.trunk, self.instance_head]
        if pooling == "attention":
            attention = AttentionPooling(width, HEADS)
            parts.append(attention)
            self.pool = attention
        self.bag_head = _stack(width, [head], n_outputs, "bag")
        parts.append(self.bag_head)
        self.trainable_variables = [v for part in parts for v in part.trainable_variables]
        self.non_trainable_variables = [v for part in parts for v in part.non_trainable_variables]


def instance_logits(net: AggEmb, X: Tensor) -> Tensor:
    """`f(e(x))`: what predicts."""
    return net.instance_head(net.trunk(X))


def embedding(net: AggEmb, X: Tensor) -> Tensor:
    """`e(x)`: the covariates of the next iteration."""
    return net.trunk(X)


def mean_pooling(embeddings: Tensor, batch: Batch) -> Tensor:
    """(K, d): the mean embedding of each bag."""
    return segment_mean(embeddings, batch.bag_of, batch.sizes)


class AttentionPooling:
    """Pooling by multi-head attention (Set Transformer, Lee et al. 2019), with one learned seed `s`.

    Rows give `z = relu(e W + b)`, keys `K = z W_K`, values `V = z W_V`; the seed a query `q = s W_Q`. In each head
    `a_i = softmax over the bag of (q . K_i / sqrt(d / heads))` and `o = q + sum_i a_i V_i`; heads side by side,
    `h = LayerNorm(o)` and the pooled vector is `LayerNorm(h + relu(h W_O))`.
    """

    def __init__(self, width: int, heads: int) -> None:
        if width % heads:
            raise ValueError(f"{heads} heads do not divide {width} units")
        self.heads, self.depth = heads, width // heads
        self.seed = keras.Variable(np.zeros((1, width), np.float32), name="seed")
        self.rows = _layer(dense(width, "relu", "pool_rows"), width)
        self.query, self.key, self.value = (_layer(dense(width, None, f"pool_{n}"), width) for n in "qkv")
        self.output = _layer(dense(width, "relu", "pool_output"), width)
        self.norms = [_layer(_layer_norm(f"pool_norm_{i}"), width) for i in range(2)]
        layers = [self.rows, self.query, self.key, self.value, self.output, *self.norms]
        self.trainable_variables = [self.seed, *(v for layer in layers for v in layer.trainable_variables)]
        self.non_trainable_variables: list[Any] = []

    def __call__(self, embeddings: Tensor, batch: Batch) -> Tensor:
        """(K, d): one vector for each bag."""
        rows = self.rows(embeddings)
        query = self.query(ops.convert_to_tensor(self.seed))
        shape = (-1, self.heads, self.depth)
        key, value = ops.reshape(self.key(rows), shape), ops.reshape(self.value(rows), shape)
        scores = ops.sum(key * ops.reshape(query, shape), axis=-1) / self.depth**0.5
        share = segment_softmax(scores, batch.bag_of, batch.sizes)
        pooled = segment_sum(share[:, :, None] * value, batch.bag_of, batch.sizes.shape[0])
        first = self.norms[0](query + ops.reshape(pooled, (-1, self.heads * self.depth)))
        return self.norms[1](first + self.output(first))


def segment_softmax(scores: Tensor, bag_of: Tensor, sizes: Tensor) -> Tensor:
    """`a_i = exp(s_i) / sum_{j in bag of i} exp(s_j)` for scores (rows, heads); padding is a bag of its own."""
    padding = ops.cast(scores.shape[0], sizes.dtype) - ops.sum(sizes)
    total = segment_logsumexp(scores, bag_of, ops.concatenate([sizes, ops.reshape(padding, (1,))]))
    return ops.exp(scores - ops.take(total, bag_of, axis=0))


def bag_losses(logits: Tensor, proportions: Tensor) -> Tensor:
    """Cross-entropy between each bag's proportion and the bag head's output, (K,)."""
    return row_cross_entropy(logits, proportions[:, 0] if len(logits.shape) == 1 else proportions)


def combine(rows: Tensor, bags: Tensor, batch: Batch, lambda_a: Tensor, reduction: str) -> Tensor:
    """Join the losses of rows and bags.

    `mean`: `(1/R) sum_i w_i l_i + lambda_a (1/K) sum_b l_b`.
    `sum`: `(1/K) sum_b [ sum_{i in b} w_i l_i + lambda_a l_b ]`.

    Args:
        rows: (R,) weighted losses of the rows.
        bags: (K,) losses of the bags.
        batch: the batch, for its masks.
        lambda_a: weight of the bag losses.
        reduction: `mean` or `sum`.
    """
    over_bags = lambda_a * weighted_mean(bags, batch.bag_mask)
    if reduction == "mean":
        return weighted_mean(rows, batch.row_mask) + over_bags
    return ops.sum(rows * batch.row_mask) / ops.maximum(ops.sum(batch.bag_mask), 1.0) + over_bags


def agg_emb_loss(reduction: str) -> Callable[[AggEmb, Batch], Tensor]:
    """The loss: cross-entropy of rows on pseudo-labels plus `lambda_a` times that of bags on their proportions.

    The batch carries `targets` and `weights` for rows, `proportions` for bags, and shares `lambda_a`.
    """

    def loss(net: AggEmb, batch: Batch) -> Tensor:
        embeddings = net.trunk(batch.X)
        rows = row_cross_entropy(net.instance_head(embeddings), batch.rows["targets"]) * batch.rows["weights"]
        bags = bag_losses(net.bag_head(net.pool(embeddings, batch)), batch.bags["proportions"])
        return combine(rows, bags, batch, ops.reshape(batch.shared["lambda_a"], ()), reduction)

    return loss


def _stack(n_inputs: int, widths: Sequence[int], n_outputs: int | None, name: str) -> Any:
    """ReLU layers, then logits if asked for (flat when there is one)."""
    layers = [keras.Input((n_inputs,))]
    layers += [dense(width, "relu", f"{name}_{i}") for i, width in enumerate(widths)]
    if n_outputs is not None:
        layers.append(dense(n_outputs, None, f"{name}_logits"))
    if n_outputs == 1:
        layers.append(keras.layers.Reshape((), name=f"{name}_flat"))
    return keras.Sequential(layers, name=name)


def _layer_norm(name: str) -> Any:
    return keras.layers.LayerNormalization(epsilon=1e-5, gamma_initializer=Ones(), beta_initializer=Zeros(), name=name)


def _layer(layer: Any, width: int) -> Any:
    layer.build((None, width))
    return layer
