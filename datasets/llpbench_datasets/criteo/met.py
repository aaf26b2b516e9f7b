r"""Masked self-supervised encoding of tables, after MET (Majmundar, Goyal, Netrapalli and Jain, 2022).

Each of the 39 columns is a token: a learned vector of the column plus an embedding of its value (a line
``x_c a_c`` for a number, a row of a table for a bucket, a vector of its own for a missing number). In training a share
of the columns, drawn anew for each row and step, is masked: the encoder, a transformer, is given the other columns
only. A decoder sees the encoder's output at those places and one learned mask vector, with the column's, at the masked
ones, and reconstructs all columns:

.. math:: L = \frac1{39} \Big(\sum_{c \le 13} (\hat x_c - x_c)^2 + \sum_{c > 13} -\log \hat p_c(b_c)\Big)

with missing numbers left out. Afterwards the encoder is given all columns, and its tokens are the features
(``represent``). Labels are never used. The adversarial perturbation that MET adds to the input is left out: it doubles
the cost.

Runs on any backend of Keras 3; all random numbers are drawn by numpy, so backends differ by rounding only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from llpbench import FloatArray, IntArray
from llpbench_datasets.components import principal_directions
from llpbench_datasets.criteo.encode import Encoded
from llpbench_datasets.criteo.text import CATEGORIES, INTEGERS
from llpbench_datasets.keras_backend import keras, ops

Tensor = Any
COLUMNS = INTEGERS + CATEGORIES
FIT_ROWS = 16_384
"""Training rows that the principal directions are found on."""


@dataclass(frozen=True)
class MetSettings:
    """Size and training of the network; ``steps`` batches of ``batch`` rows."""

    width: int = 32
    heads: int = 4
    layers: int = 2
    mask: float = 0.7
    steps: int = 400
    batch: int = 128
    rate: float = 2e-3


class TransformerBlock(keras.layers.Layer):  # type: ignore[misc]
    """A transformer block: attention and a two-layer network, each after a norm and beside a shortcut."""

    def __init__(self, width: int, heads: int, name: str) -> None:
        super().__init__(name=name)
        self.width, self.heads = width, heads
        self.before, self.between = (keras.layers.LayerNormalization(epsilon=1e-5) for _ in range(2))
        self.triple, self.merge = keras.layers.Dense(3 * width), keras.layers.Dense(width)
        self.up, self.down = keras.layers.Dense(2 * width, activation="relu"), keras.layers.Dense(width)

    def build(self, shape: tuple[int | None, ...]) -> None:
        """Make the weights for tokens of this width."""
        for layer in (self.before, self.between, self.triple, self.merge, self.up):
            layer.build((*shape[:-1], self.width))
        self.down.build((*shape[:-1], 2 * self.width))
        self.built = True

    def call(self, x: Tensor) -> Tensor:
        """Tokens (rows, columns, width) to tokens."""
        n, each = x.shape[1], self.width // self.heads
        joint = ops.reshape(self.triple(self.before(x)), (-1, n, 3, self.heads, each))
        query, key, value = (ops.transpose(joint[:, :, i], (0, 2, 1, 3)) for i in range(3))
        weight = ops.softmax(ops.matmul(query, ops.transpose(key, (0, 1, 3, 2))) / each**0.5, axis=-1)
        mixed = ops.transpose(ops.matmul(weight, value), (0, 2, 1, 3))
        x = x + self.merge(ops.reshape(mixed, (-1, n, self.width)))
        return x + self.down(self.up(self.between(x)))


class Met(keras.Model):  # type: ignore[misc]
    """The autoencoder. Input: numbers, absent, buckets, and the places of the visible columns."""

    def __init__(self, size: int, settings: MetSettings) -> None:
        super().__init__(name="met")
        width, self.size = settings.width, size
        self.encoder = [TransformerBlock(width, settings.heads, f"encoder_{i}") for i in range(settings.layers)]
        self.decoder = TransformerBlock(width, settings.heads, "decoder")
        self.norm, self.last = (keras.layers.LayerNormalization(epsilon=1e-5) for _ in range(2))
        for layer in (*self.encoder, self.decoder, self.norm, self.last):
            layer.build((None, COLUMNS, width))

        def weight(name: str, *shape: int) -> Any:
            return self.add_weight(name=name, shape=shape, initializer="zeros")

        self.column = weight("column", COLUMNS, width)
        self.slope, self.gone = weight("slope", INTEGERS, width), weight("gone", INTEGERS, width)
        self.table = weight("table", CATEGORIES, size, width)
        self.hidden = weight("hidden", 1, width)
        self.number_head, self.number_bias = weight("number_head", INTEGERS, width), weight("number_bias", INTEGERS)
        self.bucket_head = weight("bucket_head", CATEGORIES, width, size)
        self.bucket_bias = weight("bucket_bias", CATEGORIES, 1, size)
        self.built = True

    def tokens(self, numbers: Tensor, absent: Tensor, buckets: Tensor) -> Tensor:
        """All columns of each row as tokens, (rows, 39, width)."""
        values = numbers[..., None] * self.slope + absent[..., None] * self.gone
        place = buckets + np.arange(CATEGORIES, dtype=np.int32) * np.int32(self.size)
        table = ops.reshape(self.table, (CATEGORIES * self.size, -1))
        return ops.concatenate([values, ops.take(table, place, axis=0)], axis=1) + self.column

    def encode(self, numbers: Tensor, absent: Tensor, buckets: Tensor, visible: Tensor) -> Tensor:
        """The encoder's view of the visible columns, (rows, visible columns, width)."""
        x = ops.take_along_axis(self.tokens(numbers, absent, buckets), visible[..., None], axis=1)
        for block in self.encoder:
            x = block(x)
        return x

    def reconstruct(self, x: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
        """All columns again: numbers (rows, 13) and logits of the buckets (26, rows, size)."""
        where = ops.one_hot(visible, COLUMNS)
        masked = 1.0 - ops.sum(where, axis=1)[..., None]
        x = ops.matmul(ops.transpose(where, (0, 2, 1)), self.norm(x)) + masked * self.hidden + self.column
        x = self.last(self.decoder(x))
        numbers = ops.sum(x[:, :INTEGERS] * self.number_head, axis=-1) + self.number_bias
        return numbers, ops.matmul(ops.transpose(x[:, INTEGERS:], (1, 0, 2)), self.bucket_head) + self.bucket_bias

    def call(self, inputs: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
        """The loss of each row, (rows,)."""
        numbers, absent, buckets, visible = inputs
        guess, logits = self.reconstruct(self.encode(*inputs), visible)
        square = ops.sum((1.0 - absent) * (guess - numbers) ** 2, axis=1)
        target = ops.one_hot(ops.transpose(buckets), self.size)
        entropy = -ops.sum(target * ops.log_softmax(logits, axis=-1), axis=(0, 2))
        return (square + entropy) / COLUMNS


class Encoder(keras.Model):  # type: ignore[misc]
    """The trained encoder on all columns: its tokens side by side."""

    def __init__(self, met: Met) -> None:
        super().__init__(name="met_encoder")
        self.met = met
        self.built = True

    def call(self, inputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Tokens of each row, (rows, 39 * width)."""
        numbers, absent, buckets = inputs
        everything = ops.zeros_like(numbers[:, :1], dtype="int32") + np.arange(COLUMNS, dtype=np.int32)
        tokens = self.met.encode(numbers, absent, buckets, everything)
        return ops.reshape(tokens, (-1, COLUMNS * tokens.shape[2]))


class MaskedBatches(keras.utils.PyDataset):  # type: ignore[misc]
    """Batches of one shape for one long epoch: rows in a new random order each time through, new masks each step.

    A batch depends on the seed and its step alone, since a backend may ask for one ahead of time or more than once.
    """

    def __init__(self, encoded: Encoded, settings: MetSettings, seed: int) -> None:
        super().__init__(workers=1, use_multiprocessing=False)
        self.encoded, self.settings, self.seed = encoded, settings, seed
        self.batch = min(settings.batch, len(encoded))
        self._order: tuple[int, IntArray] = (-1, np.empty(0, np.int64))

    def __len__(self) -> int:
        return self.settings.steps

    def __getitem__(self, step: int) -> tuple[tuple[Any, ...], FloatArray]:
        through, place = divmod(step, len(self.encoded) // self.batch)
        order = self._rows_in_order(through)
        rows = np.sort(order[place * self.batch : (place + 1) * self.batch])
        visible = draw_visible(np.random.default_rng([self.seed, 2, step]), self.batch, self.settings.mask)
        return (*inputs(self.encoded, rows), visible), np.zeros(self.batch, np.float32)

    def _rows_in_order(self, through: int) -> IntArray:
        """The order of one time through all rows, kept until another is asked for."""
        if self._order[0] != through:
            rng = np.random.default_rng([self.seed, 1, through])
            self._order = (through, rng.permutation(len(self.encoded)))
        return self._order[1]


def draw_visible(rng: np.random.Generator, rows: int, mask: float) -> IntArray:
    """Places of the columns that each row shows, ascending: a fixed number, every subset equally likely."""
    shown = max(1, round((1.0 - mask) * COLUMNS))
    return np.sort(np.argsort(rng.random((rows, COLUMNS)), axis=1)[:, :shown], axis=1).astype(np.int32)


def inputs(encoded: Encoded, rows: IntArray | slice) -> tuple[Any, Any, Any]:
    """Input of the network for some rows."""
    return encoded.numbers[rows], encoded.absent[rows], encoded.buckets[rows]


def train(encoded: Encoded, settings: MetSettings, seed: int) -> tuple[Met, list[float]]:
    """Train on the given rows; returns the network and the mean loss of each tenth of the training."""
    rng = np.random.default_rng(seed)
    model = Met(encoded.size, settings)
    for variable in model.trainable_variables:
        variable.assign(initial(variable, rng))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, settings.steps, warmup_target=settings.rate, warmup_steps=max(1, settings.steps // 20)
    )
    model.compile(optimizer=keras.optimizers.AdamW(schedule, weight_decay=1e-4), loss=_mean_output)
    history: list[float] = []
    watch = keras.callbacks.LambdaCallback(on_train_batch_end=lambda _, logs: history.append(float(logs["loss"])))
    model.fit(MaskedBatches(encoded, settings, seed), epochs=1, shuffle=False, verbose=0, callbacks=[watch])
    return model, history


def initial(variable: Any, rng: np.random.Generator) -> FloatArray:
    """Initial value of a weight: kernels by Glorot's uniform law, embeddings small and normal, scales 1, biases 0."""
    shape = tuple(variable.shape)
    name = variable.path.rsplit("/", 1)[-1]
    if name == "kernel":
        limit = np.sqrt(6.0 / (shape[0] + shape[1]))
        value = rng.uniform(-limit, limit, shape)
    elif name in ("bias", "beta") or name.endswith("_bias"):
        value = np.zeros(shape)
    elif name == "gamma":
        value = np.ones(shape)
    elif name.endswith("_head"):
        value = rng.standard_normal(shape) / np.sqrt(shape[1])
    else:
        value = rng.standard_normal(shape) * 0.3
    return value.astype(np.float32)


def _mean_output(_: Tensor, losses: Tensor) -> Tensor:
    return losses


def represent(model: Met, encoded: Encoded, train: int, dim: int) -> FloatArray:
    """Features of rows, (n, dim) float32: the encoder's tokens of all columns in their first principal directions.

    MET puts the tokens of all columns side by side too; their mean mixes the columns, and lost four points of AUROC in
    a trial. Directions are found on the first training rows (at most ``FIT_ROWS``), and are not rescaled.
    """
    encoder = Encoder(model)
    encoder.compile()
    width = COLUMNS * model.column.shape[1]
    fitted = min(train, FIT_ROWS)
    total, square = np.zeros(width), np.zeros((width, width))
    for tokens in _tokens(encoder, encoded, fitted):
        total += tokens.sum(axis=0, dtype=np.float64)
        square += tokens.T @ tokens
    mean = total / fitted
    directions = principal_directions(square / fitted - np.outer(mean, mean), dim).astype(np.float32)
    X = np.empty((len(encoded), dim), np.float32)
    start = 0
    for tokens in _tokens(encoder, encoded, len(encoded)):
        X[start : start + len(tokens)] = (tokens - mean.astype(np.float32)) @ directions
        start += len(tokens)
    return X


def _tokens(encoder: Encoder, encoded: Encoded, rows: int, batch: int = 1024) -> Iterator[FloatArray]:
    """The encoder's tokens of the first ``rows`` rows, in batches of one shape."""
    for start in range(0, rows, batch):
        part = inputs(encoded, slice(start, min(start + batch, rows)))
        short = batch - len(part[0])
        padded = tuple(np.pad(array, ((0, short), (0, 0))) for array in part) if short else part
        yield np.asarray(encoder.predict_on_batch(padded))[: len(part[0])]
