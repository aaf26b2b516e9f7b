"""The shared network for a kind of input, and how a loss calls it.

Tables get the multilayer perceptron. Images get WideResNet-16-4, the usual augmentation, and work in chunks of
rows, so that a batch of 1024 images or a bag of 2048 needs the memory of 128.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from llpbench import Bags, FloatArray
from llpbench_methods.nets.backend import ops
from llpbench_methods.nets.chunked import loss_in_chunks
from llpbench_methods.nets.losses import bag_cross_entropy, instance_cross_entropy
from llpbench_methods.nets.mlp import mlp
from llpbench_methods.nets.params import MLP_WIDTHS
from llpbench_methods.nets.training import Batch, Loss, Trainer
from llpbench_methods.nets.wrn import augment, wide_resnet

Tensor = Any

IMAGE_ROWS = 128
"""Images a network works on at once; also the rows of a batch normalisation."""

REFERENCE_ROWS = 1024
"""Rows that stand for all data where a loss needs a mean over it."""


def trainer_for(bags: Bags, size: str, loss: Loss) -> Trainer:
    """A trainer of the shared network for these bags: the MLP of the named size, or WideResNet-16-4 for images.

    Args:
        bags: rows of features (n, d) or images (n, height, width, channels).
        size: the shared setting ``mlp``; images have one size of network.
        loss: ``loss(net, batch)``.
    """
    return trainer_of_shape(bags.X.shape[1:], 1 if bags.classes == 2 else bags.classes, size, loss)


def trainer_of_shape(shape: Sequence[int], outputs: int, size: str, loss: Loss) -> Trainer:
    """The same for a row of that shape and that many logits."""
    if len(shape) == 1:
        return Trainer(mlp(shape[0], MLP_WIDTHS[size], outputs), loss)
    return Trainer(wide_resnet(shape, outputs), loss, predict_rows=2 * IMAGE_ROWS)


def is_image(X: Tensor) -> bool:
    """Whether rows are images (height, width, channels)."""
    return len(X.shape) == 4


def reference_rows(X: FloatArray, seed: int) -> FloatArray:
    """Up to ``REFERENCE_ROWS`` of the rows, drawn once: their mean stands for that of all data in every batch."""
    chosen = np.random.default_rng([seed, len(X)]).permutation(len(X))[:REFERENCE_ROWS]
    return np.asarray(X[np.sort(chosen)])


def loss_of_logits(
    net: Any, batch: Batch, of_logits: Callable[[Tensor], Tensor], *, beside: Tensor | None = None
) -> Tensor:
    """``of_logits`` of the network's logits for the batch's rows, in training mode.

    Images are augmented first and worked through in chunks; value and gradient are those of the whole batch,
    but for batch normalisation, which sees a chunk at a time.

    Args:
        net: the network.
        batch: the batch.
        of_logits: loss as a function of the logits of all rows, (R,) or (R, C).
        beside: further rows; their logits follow those of the batch.
    """
    X = batch.X if beside is None else ops.concatenate([batch.X, beside])
    if not is_image(X):
        return of_logits(net(X, training=True))
    return loss_in_chunks(net, (augment(X, batch.key),), of_logits, rows_at_once=IMAGE_ROWS)


def proportion_loss(net: Any, batch: Batch) -> Tensor:
    """Mean over the batch's bags of ``−α log p̄ − (1−α) log(1−p̄)`` for their ``proportions``: the loss of DLLP."""
    return loss_of_logits(
        net,
        batch,
        lambda z: bag_cross_entropy(z, batch.bag_of, batch.sizes, batch.bags["proportions"], batch.bag_mask),
    )


def label_loss(net: Any, batch: Batch) -> Tensor:
    """Mean cross-entropy of the batch's rows for their ``labels``."""
    return loss_of_logits(net, batch, lambda z: instance_cross_entropy(z, batch.rows["labels"], batch.row_mask))
