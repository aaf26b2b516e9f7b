"""The shared network on soft labels; a module of its own, so that trees import no backend."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llpbench import FloatArray, Monitor
from llpbench_methods.nets.batches import RowBatches
from llpbench_methods.nets.losses import instance_cross_entropy
from llpbench_methods.nets.mlp import mlp
from llpbench_methods.nets.params import MLP_WIDTHS, NetworkSettings
from llpbench_methods.nets.training import Batch, Trainer, TrainingData


def loss(net: Any, batch: Batch) -> Any:
    """Mean cross-entropy against the soft labels."""
    return instance_cross_entropy(net(batch.X, training=True), batch.rows["targets"], batch.row_mask)


def soft_label_trainer(n_features: int, n_outputs: int) -> Trainer:
    """A trainer of the small network with one logit, or one for each class."""
    return Trainer(mlp(n_features, MLP_WIDTHS["small"], n_outputs), loss)


def train_on_soft_labels(
    trainer: Trainer,
    X: FloatArray,
    targets: NDArray[np.float64],
    rows: NDArray[np.int64],
    *,
    epochs: int,
    seed: int,
    monitor: Monitor,
    batch_rows: int = 256,
) -> list[NDArray[Any]]:
    """Train from fresh weights, the rate falling by a cosine; the weights after the last epoch."""
    settings = NetworkSettings(epochs=epochs, batch_rows=batch_rows)
    values = targets[:, 0] if targets.shape[1] == 1 else targets
    data = TrainingData(X, rows={"targets": values})
    trainer.fit(
        data,
        RowBatches(len(X), batch_rows, rows),
        settings,
        monitor=monitor,
        seed=seed % 2**31,
        schedule=lambda epoch: 0.5 * (1.0 + float(np.cos(np.pi * epoch / epochs))),
    )
    return trainer.weights
