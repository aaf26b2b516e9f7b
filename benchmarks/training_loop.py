"""The shared training loop against hand-written loops of the same network on the same batches.

All train the 256-128-64 network with DLLP's loss on rows of Adult's shape (39,562 x 108, bags of 8, 1,024 rows per
batch). The shared loop on jax is compared with a bare jitted loop (goal: at most 1.2 times its time per step), on torch
with a plain eager loop (goal: at most 1.5). The two loops of a comparison run turn about in one process; times are CPU
seconds of one thread and the least of several rounds, so the ratio depends little on the machine and on other work.
tensorflow is run for information.

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

ROWS, FEATURES, BAG, BATCH_ROWS = 39_562, 108, 8, 1024
GOALS = {"jax": 1.2, "torch": 1.5}


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
            self.times = [time.process_time()]

        def report(self, predict: Any, *, stage: str = "") -> bool:  # noqa: ARG002
            self.times.append(time.process_time())
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
            begin = time.process_time()
            order = rng.permutation(full).astype(np.int32)
            values = []
            for at in range(0, full - BATCH_ROWS // BAG + 1, BATCH_ROWS // BAG):
                state, value = step(state, X, shares, order[at : at + BATCH_ROWS // BAG])
                values.append(value)
            float(np.mean(values))
            seconds.append(time.process_time() - begin)
        yield seconds[0], float(min(seconds[1:]))


def plain_torch_loop(n_rows: int, epochs: int) -> Iterator[tuple[float, float]]:
    """The same as a torch user writes it: ``nn.Sequential``, ``AdamW``, batches of equal bags by a reshape."""
    import torch
    from torch.nn.functional import logsigmoid

    X, _, counts = rows_and_counts(n_rows)
    full = n_rows // BAG
    X, shares = torch.from_numpy(X), torch.from_numpy((counts[:, 0] / BAG).astype(np.float32))
    rng = np.random.default_rng(0)
    widths = (FEATURES, 256, 128, 64, 1)
    layers = [layer for a, b in pairwise(widths) for layer in (torch.nn.Linear(a, b), torch.nn.ReLU())][:-1]
    net = torch.nn.Sequential(*layers)
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-5)
    within = torch.arange(BAG)
    while True:
        seconds = []
        for _ in range(epochs + 1):
            begin = time.process_time()
            order = torch.from_numpy(rng.permutation(full))
            total = torch.zeros(())
            for at in range(0, full - BATCH_ROWS // BAG + 1, BATCH_ROWS // BAG):
                bags = order[at : at + BATCH_ROWS // BAG]
                logits = net(X[(bags[:, None] * BAG + within).reshape(-1)]).reshape(-1, BAG)
                positive = torch.logsumexp(logsigmoid(logits), dim=1) - np.log(BAG)
                negative = torch.logsumexp(logsigmoid(-logits), dim=1) - np.log(BAG)
                loss = torch.mean(-shares[bags] * positive - (1 - shares[bags]) * negative)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += loss.detach()
            float(total)
            seconds.append(time.process_time() - begin)
        yield seconds[0], float(min(seconds[1:]))


def compare(backend: str, n_rows: int, epochs: int, rounds: int) -> dict[str, float]:
    """Both loops of a backend turn about."""
    ours = shared_loop(n_rows, epochs)
    by_hand = (bare_loop if backend == "jax" else plain_torch_loop)(n_rows, epochs)
    pairs = [(next(ours), next(by_hand)) for _ in range(rounds)]
    shared, bare = min(a for (_, a), _ in pairs), min(b for _, (_, b) in pairs)
    steps_shared, steps_bare = -(-n_rows // BATCH_ROWS), n_rows // BAG // (BATCH_ROWS // BAG)
    return {
        "first_epoch_shared": pairs[0][0][0],
        "first_epoch_bare": pairs[0][1][0],
        "epoch_shared": shared,
        "epoch_bare": bare,
        "steps_shared": steps_shared,
        "steps_bare": steps_bare,
        "ratio": (shared / steps_shared) / (bare / steps_bare),
    }


def run_backend(backend: str, n_rows: int, epochs: int, rounds: int) -> dict[str, float]:
    """The measurements of one backend; this process is already set to it."""
    if backend in GOALS:
        return compare(backend, n_rows, epochs, rounds)
    first, epoch = next(shared_loop(n_rows, epochs))
    return {"first_epoch_shared": first, "epoch_shared": epoch}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--backend", choices=("jax", "tensorflow", "torch"), help="measure this backend only")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    sizes = (args.rows, args.epochs, args.rounds)
    if args.here:
        print(json.dumps(run_backend(args.backend, *sizes)))
        return 0
    result: dict[str, Any] = {"goals": GOALS}
    for backend in (args.backend,) if args.backend else ("jax", "torch", "tensorflow"):
        command = [sys.executable, __file__, "--here", "--backend", backend]
        command += [f"--{name}={size}" for name, size in zip(("rows", "epochs", "rounds"), sizes, strict=True)]
        threads = {"KERAS_BACKEND": backend, "OMP_NUM_THREADS": "1"}
        run = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True, check=False)
        if run.returncode:
            print(f"{backend:<11} not available")
            continue
        found = result[backend] = json.loads(run.stdout.strip().splitlines()[-1])
        words = f"{found['epoch_shared']:.3f} s per epoch, first epoch {found['first_epoch_shared']:.2f} s"
        if "ratio" in found:
            words += f"; by hand {found['epoch_bare']:.3f} s; ratio {found['ratio']:.2f} (goal {GOALS[backend]})"
        print(f"{backend:<11} {words}")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    return int(any(result[b]["ratio"] > goal for b, goal in GOALS.items() if b in result))


if __name__ == "__main__":
    sys.exit(main())
