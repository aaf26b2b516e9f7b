"""Two thousand tiny cells: the parent's memory while they run, and how fast their folder is read.

``python benchmarks/load.py [--cells 2000] [--json FILE]``. Memory is the parent's resident set, sampled while the
grid runs; it is flat when the second half of the run adds next to nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

PLUGIN = """
import numpy as np
from llpbench import DatasetSpec, MethodSpec, Part, Split, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="tiny", factory="tiny:Tiny")]

@hookimpl
def llpbench_datasets():
    return [DatasetSpec(name="tiny-rows", factory="tiny:load")]

class Tiny:
    def fit(self, bags, *, monitor, seed):
        return self
    def predict_scores(self, X):
        return X[:, 0]

def load(files, *, seed):
    X = np.random.default_rng(seed).normal(size=(60, 2)).astype(np.float32)
    y = (X[:, 0] > 0).astype(np.int64)
    return Split(train=Part(X[:40], y[:40]), valid=Part(X[40:50], y[40:50]), test=Part(X[50:], y[50:]))
"""


def run_grid(folder: Path, cells: int) -> tuple[float, list[tuple[int, float]]]:
    """Run the grid; its seconds, and pairs (finished cells, MB of the parent) taken while it ran."""
    (folder / "tiny.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "llpbench", "run", "--plugin", "tiny.py", "--methods", "tiny"]
    command += ["--datasets", "tiny-rows", "--bags", "4", "--seeds", str(cells), "--quiet", "--out", "out"]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    parent = psutil.Process(process.pid)
    samples: list[tuple[int, float]] = []
    while process.poll() is None:
        done = sum(1 for _ in (folder / "out" / "cells").glob("*.json"))
        try:
            memory = parent.memory_info().rss / 2**20
        except psutil.Error:
            break
        if 0 < done < cells:  # the table at the end is not the run
            samples.append((done, memory))
        time.sleep(0.5)
    if process.wait() != 0:
        raise SystemExit(f"the run failed with exit code {process.returncode}")
    return time.perf_counter() - began, samples


def growth(samples: list[tuple[int, float]]) -> float:
    """MB that the parent gained from the first quarter of the cells to the last."""
    last = samples[-1][0]
    early = [memory for done, memory in samples if done <= last / 4] or [samples[0][1]]
    late = [memory for done, memory in samples if done >= 3 * last / 4]
    return max(late) - max(early)


def status_seconds(folder: Path) -> float:
    """The best of three calls of ``llpbench status --json`` on the folder, start of Python included."""
    times = []
    for _ in range(3):
        began = time.perf_counter()
        command = [sys.executable, "-m", "llpbench", "status", "out", "--json"]
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
        counts = json.loads(done.stdout)["counts"]
        assert set(counts) == {"ok"}, counts
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds, samples = run_grid(folder, options.cells)
        row = {
            "cells": options.cells,
            "seconds": round(seconds, 1),
            "seconds_each": round(seconds / options.cells, 3),
            "parent_mb_first": round(samples[0][1], 1),
            "parent_mb_last": round(samples[-1][1], 1),
            "parent_mb_growth": round(growth(samples), 1),
            "status_seconds": round(status_seconds(folder), 3),
        }
    for key, value in row.items():
        print(f"{key:<18}{value:>10}")
    if options.json:
        options.json.write_text(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()
