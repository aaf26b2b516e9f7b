"""Train an encoder by SimCLR; an interrupted run resumes from its last epoch with the same result."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from llpbench import UsageError, write_atomically
from llpbench_datasets.feature_cache import Array
from llpbench_datasets.keras_backend import arrays_of, keras
from llpbench_datasets.simclr.augment import Views, random_views
from llpbench_datasets.simclr.encoder import draw_weights, encoder, with_head
from llpbench_datasets.simclr.loss import nt_xent
from llpbench_datasets.simclr.settings import SimclrSettings

Say = Callable[[str], None]


def train(images: Array, settings: SimclrSettings, checkpoint: Path, say: Say = lambda _: None) -> list[Array]:
    """Train on ``images`` (n, 3, side, side), uint8, without labels; returns the encoder's weights.

    Args:
        images: training images.
        settings: what to train.
        checkpoint: file that holds the state after each epoch; gone when training is complete.
        say: is told of each epoch.
    """
    steps = len(images) // settings.batch
    if not steps:
        raise UsageError(f"a batch of {settings.batch} images needs as many images, not {len(images)}.")
    network = encoder(settings.network)
    model = with_head(network)
    draw_weights(model, settings.seed)
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, max(1, (settings.epochs - 1) * steps), warmup_target=settings.rate, warmup_steps=steps
    )
    model.compile(
        optimizer=keras.optimizers.AdamW(schedule, weight_decay=settings.decay),
        loss=lambda _, projections: nt_xent(projections, settings.temperature),
    )
    model.optimizer.build(model.trainable_variables)
    state = [*model.weights, *model.optimizer.variables]
    first = _resume(checkpoint, settings.key, state)
    views = Views(size=settings.view)
    blank = np.zeros(2 * settings.batch, np.float32)
    for epoch in range(first, settings.epochs):
        began = time.perf_counter()
        rng = np.random.default_rng([settings.seed, epoch])
        order = rng.permutation(len(images))[: steps * settings.batch].reshape(steps, settings.batch)
        losses = []
        for rows in order:
            batch = images[rows]
            pair = np.concatenate([random_views(batch, rng, views) for _ in range(2)])
            losses.append(float(model.train_on_batch(pair, blank)))
            model.reset_metrics()
        _keep(checkpoint, settings.key, epoch + 1, state)
        seconds = time.perf_counter() - began
        say(f"epoch {epoch + 1}/{settings.epochs}: loss {np.mean(losses):.4f}, {seconds:.0f} s")
    trained = arrays_of(network.weights)
    checkpoint.unlink(missing_ok=True)
    return trained


def _keep(path: Path, key: str, epochs: int, state: list[Any]) -> None:
    arrays = {f"state_{i}": array for i, array in enumerate(arrays_of(state))}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, key=np.array(key), epochs=np.array(epochs), **arrays)
    write_atomically(path, buffer.getvalue())


def _resume(path: Path, key: str, state: list[Any]) -> int:
    """Load a checkpoint of the same settings into ``state``; returns how many epochs it holds, 0 for none."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as kept:
            if str(kept["key"]) != key:
                return 0
            arrays = [kept[f"state_{i}"] for i in range(len(state))]
            epochs = int(kept["epochs"])
    except (OSError, ValueError, KeyError, EOFError):
        return 0
    for variable, array in zip(state, arrays, strict=True):
        variable.assign(array)
    return epochs
