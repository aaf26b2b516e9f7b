"""Models, clocks and memory for the belief propagation benchmark."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from llpbench_methods.inference import GibbsModel, Neighbours, gibbs_model, graph_of_neighbours

T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """One timed step: CPU seconds of the whole process, and wall seconds."""

    cpu: float
    wall: float


def _status(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return float(line.split()[1]) / 1024.0
    return float("nan")


def mark_memory() -> float:
    """Give unused memory back, reset the high-water mark of the resident set, and return what is in use (MB)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def memory_since(mark: float) -> float:
    """How far the resident set rose above a mark at most (MB)."""
    return max(0.0, _status("VmHWM") - mark)


def measure(work: Callable[[], T]) -> tuple[T, Measured]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return result, Measured(cpu, wall)


def copy_bandwidth(megabytes: int = 256) -> float:
    """Bytes moved per second (read and written) by a plain copy, one thread."""
    source = np.ones(megabytes * (1 << 17))
    target = np.empty_like(source)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        np.copyto(target, source)
        best = min(best, time.process_time() - start)
    return 2.0 * source.nbytes / best


def line_model(rows: int, bag: int, k: int, g: float, lambda_s: float = 0.5, seed: int = 0) -> GibbsModel:
    """Rows scattered on a line, joined to their `k` nearest, in random bags of equal size.

    `lambda_b` gives a bag of the overall rate 1/4 the stability index `g`.
    """
    rng = np.random.default_rng(seed)
    rows -= rows % bag
    place = np.sort(rng.random(rows))
    reach = np.arange(-k, k + 1)
    near = np.clip(np.arange(rows)[:, None] + reach[reach != 0], 0, rows - 1)
    gap = np.abs(place[near] - place[:, None])
    gap[near == np.arange(rows)[:, None]] = np.inf
    chosen = np.argsort(gap, axis=1, kind="stable")[:, :k]
    index, distance = np.take_along_axis(near, chosen, 1), np.take_along_axis(gap, chosen, 1)
    index[np.isinf(distance)] = -1
    graph = graph_of_neighbours(Neighbours(index, distance))
    bag_of = rng.permutation(rows) // bag
    labels = rng.random(rows) < 0.25
    counts = np.bincount(bag_of, weights=labels, minlength=rows // bag)
    lambda_b = g / (2.0 * (bag - 1) * 0.25 * 0.75)
    return gibbs_model(graph, bag_of, counts, lambda_b=lambda_b, lambda_s=lambda_s)


def clique_pairs(model: GibbsModel) -> int:
    sizes = model.bags.sizes
    return int((sizes * (sizes - 1) // 2).sum())


def bytes_per_round(model: GibbsModel, engine: str) -> float:
    """What one round must at least read and write once: messages and node beliefs in the engine's own precision."""
    edges, rows = len(model.edges), model.n
    sparse = edges * (2 * 4 + 8 + 4 * 8)  # ends, coupling, two messages read and written
    if engine == "count":
        return sparse + rows * 6 * 8  # incoming, message and belief, read and written
    return sparse + clique_pairs(model) * 4 * 4 + rows * 2 * 8
