"""The shared training loop against a bare hand-written jitted loop of the same network on the same batches.

Both train the 256-128-64 network with DLLP's loss on rows of Adult's shape (39,562 x 108, bags of 8, 1,024 rows
per batch), turn about in one process, so the ratio does not depend on the machine. Goal: at most 1.2.
tensorflow and torch run the shared loop in processes of their own, for information.

    taskset -c 0 python benchmarks/training_loop.py --json training_loop.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

ROWS, FEATURES, BAG, BATCH_ROWS, GOAL = 39_562, 108, 8, 1024, 1.2


def rows_and_counts(n_rows: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, FEATURES)).astype(np.float32)
    y = X[:, :5].sum(axis=1) + rng.normal(size=n_rows) > 1.5
    offsets = np.append(np.arange(0, n_rows, BAG), n_rows)
    return X, offsets, np.add.reduceat(y.astype(np.float64), offsets[:-1])[:, None]


def shared_loop(n_rows: int, epochs: int) -> Iterator[tuple[float, float]]:
    """(Seconds of the first epoch with compilation, least seconds of the others), once for each ``next``."""
    from llpbench import Bags, QuietMonitor
    from llpbench_methods.nets.batches import BagBatches
    from llpbench_methods.nets.mlp import mlp
    from llpbench_methods.nets.network import proportion_loss as loss
    from llpbench_methods.nets.params import NetworkSettings
    from llpbench_methods.nets.training import Trainer, TrainingData

    class Clock(QuietMonitor):
        def __init__(self) -> None:
            self.times = [time.perf_counter()]

        def report(self, predict: Any, *, stage: str = "") -> bool:  # noqa: ARG002
            self.times.append(time.perf_counter())
            return True

    bags = Bags(*rows_and_counts(n_rows))
    trainer = Trainer(mlp(FEATURES, (256, 128, 64), 1), loss)
    data = TrainingData(bags.X, bags={"proportions": bags.clipped_proportions})
    while True:
        clock = Clock()
        settings = NetworkSettings(epochs=epochs + 1)
        trainer.fit(data, BagBatches(bags.sizes, BATCH_ROWS), settings, monitor=clock, seed=0)
        seconds = np.diff(clock.times)
        yield float(seconds[0]), float(min(seconds[1:]))


def bare_loop(n_rows: int, epochs: int) -> Iterator[tuple[float, float]]:
    """The same by hand: one jitted step, rows on the device, batches of equal bags by a reshape."""
    import jax
    import jax.numpy as jnp

    X, _, counts = rows_and_counts(n_rows)
    full = n_rows // BAG
    X, shares = jnp.asarray(X), jnp.asarray(counts[:, 0] / BAG, jnp.float32)
    rng = np.random.default_rng(0)
    widths = (FEATURES, 256, 128, 64, 1)
    start = [
        (jnp.asarray(rng.normal(size=(a, b)) / np.sqrt(a), jnp.float32), jnp.zeros(b)) for a, b in pairwise(widths)
    ]

    def loss(weights: Any, rows: Any, share: Any) -> Any:
        for kernel, bias in weights[:-1]:
            rows = jax.nn.relu(rows @ kernel + bias)
        kernel, bias = weights[-1]
        logits = (rows @ kernel + bias).reshape(-1, BAG)
        positive = jax.nn.logsumexp(jax.nn.log_sigmoid(logits), axis=1) - np.log(BAG)
        negative = jax.nn.logsumexp(jax.nn.log_sigmoid(-logits), axis=1) - np.log(BAG)
        return jnp.mean(-share * positive - (1 - share) * negative)

    @jax.jit
    def step(state: Any, X: Any, shares: Any, bags: Any) -> Any:
        weights, first, second, t = state
        rows = (bags[:, None] * BAG + jnp.arange(BAG)).reshape(-1)
        value, gradient = jax.value_and_grad(loss)(weights, X[rows], shares[bags])
        t = t + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
        alpha = 1e-3 * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        weights = jax.tree.map(
            lambda w, m, v: w * (1 - 1e-8) - alpha * m / (jnp.sqrt(v) + 1e-7), weights, first, second
        )
        return (weights, first, second, t), value

    while True:
        zeros = jax.tree.map(jnp.zeros_like, start)
        state, seconds = (start, zeros, zeros, jnp.float32(0)), []
        for _ in range(epochs + 1):
            begin = time.perf_counter()
            order = rng.permutation(full).astype(np.int32)
            values = []
            for at in range(0, full - BATCH_ROWS // BAG + 1, BATCH_ROWS // BAG):
                state, value = step(state, X, shares, order[at : at + BATCH_ROWS // BAG])
                values.append(value)
            float(np.mean(values))
            seconds.append(time.perf_counter() - begin)
        yield seconds[0], float(min(seconds[1:]))


def compare(n_rows: int, epochs: int, rounds: int) -> dict[str, float]:
    """Both loops turn about; least times, so that other work on the machine does not count."""
    ours, bare = shared_loop(n_rows, epochs), bare_loop(n_rows, epochs)
    pairs = [(next(ours), next(bare)) for _ in range(rounds)]
    shared, by_hand = min(a for (_, a), _ in pairs), min(b for _, (_, b) in pairs)
    steps_shared, steps_bare = -(-n_rows // BATCH_ROWS), n_rows // BAG // (BATCH_ROWS // BAG)
    return {
        "first_epoch_shared": pairs[0][0][0],
        "first_epoch_bare": pairs[0][1][0],
        "epoch_shared": shared,
        "epoch_bare": by_hand,
        "steps_shared": steps_shared,
        "steps_bare": steps_bare,
        "ratio": (shared / steps_shared) / (by_hand / steps_bare),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--backend", choices=("tensorflow", "torch"), help=argparse.SUPPRESS)
    parser.add_argument("--jax-only", action="store_true", help="leave tensorflow and torch out")
    args = parser.parse_args()
    if args.backend:
        first, epoch = next(shared_loop(args.rows, args.epochs))
        print(json.dumps({"first_epoch": first, "epoch": epoch}))
        return 0
    result: dict[str, Any] = {"jax": compare(args.rows, args.epochs, args.rounds), "goal": GOAL}
    jax = result["jax"]
    print(f"jax         {jax['epoch_shared']:.3f} s per epoch, bare loop {jax['epoch_bare']:.3f} s")
    print(f"            first epoch with compilation {jax['first_epoch_shared']:.2f} s")
    print(f"ratio       {jax['ratio']:.2f} per step (goal at most {GOAL})")
    for backend in () if args.jax_only else ("tensorflow", "torch"):
        command = [sys.executable, __file__, "--backend", backend, "--rows", str(args.rows)]
        command += ["--epochs", str(args.epochs)]
        run = subprocess.run(
            command, env={**os.environ, "KERAS_BACKEND": backend}, capture_output=True, text=True, check=False
        )
        if run.returncode:
            print(f"{backend:<11} not available")
            continue
        result[backend] = json.loads(run.stdout.strip().splitlines()[-1])
        print(f"{backend:<11} {result[backend]['epoch']:.3f} s per epoch")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if jax["ratio"] <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
