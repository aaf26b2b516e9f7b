"""Belief propagation engines against PGMax: one table of build, seconds per round, memory, ratio and agreement.

    python benchmarks/bp_engines.py [--quick] [--json FILE] [--threads N]

All ratios are of CPU seconds between engines of this same process. PGMax compiles anew for every graph, so its total
is build + compile + run, and `ratio` compares that with build + run of an engine; numba compiles once per machine and
keeps the code on disk (the first table). `ratio, run alone` leaves every compilation out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _bp_tools import bytes_per_round, copy_bandwidth, line_model, mark_memory, measure, memory_since
from tabulate import tabulate

from llpbench_methods.inference import GibbsModel, OscillationWarning, marginals
from llpbench_methods.inference.engines import start
from llpbench_methods.inference.messages import sigmoid

GOALS = {"pairwise": {8: 25, 128: 60, 512: 200}, "count": {8: 300, 128: 2000, 512: 5000}}
_FIRST_CALL = """
import time, sys, warnings
import numpy as np
from llpbench_methods.inference import gibbs_model, marginals
model = gibbs_model(None, np.arange(64) // 8, np.full(8, 2), lambda_b=0.1)
begin = time.process_time()
marginals(model, sys.argv[1], rounds=2, damping=0.5, tol=0.0)
print(time.process_time() - begin)
"""


_MILLION = """
import sys
sys.path.insert(0, "benchmarks_folder")
from _bp_tools import line_model, memory_since
from llpbench_methods.inference import marginals
model = line_model(1_000_000, 128, k=5, g=5.0, lambda_s=0.2)
assert marginals(model, "count", damping=0.0, threads=int(sys.argv[1])).converged
print(memory_since(0.0))
""".replace("benchmarks_folder", str(Path(__file__).parent))


@dataclass
class Row:
    """One measurement. Times are CPU seconds; `first_s` is compilation for this very graph."""

    part: str
    engine: str
    rows: int
    bag: int
    k: int
    threads: int
    rounds: int
    build_s: float
    run_s: float
    wall_s: float
    first_s: float | None
    peak_mb: float
    bandwidth_share: float | None
    ratio_to_pgmax: float | None = None
    ratio_without_compile: float | None = None
    goal: float | None = None
    max_abs_dp: float | None = None

    @property
    def total_s(self) -> float:
        """What a user pays for one more model: only PGMax and the dense JAX engine compile again."""
        return self.build_s + self.run_s + (self.first_s or 0.0)


def run_engine(
    part: str, model: GibbsModel, name: str, k: int, rounds: int, tol: float, threads: int, bandwidth: float
) -> tuple[Row, Any]:
    """Build and run one engine; repeats short runs and keeps the fastest, as a clock of microseconds needs."""
    mark = mark_memory()
    engine, built = measure(lambda: start(name, model, "sum", threads))
    first = _compile(engine, rounds, name, model, threads)
    damping = 0.0 if name == "count" else 0.5
    residuals, ran = measure(lambda: engine.advance(rounds, damping, tol))
    answer = sigmoid(engine.log_odds())
    peak = memory_since(mark)
    repeats = 4 if built.cpu + ran.cpu < 1.0 and name != "pgmax" else 0
    for _ in range(repeats):
        again, b = measure(lambda: start(name, model, "sum", threads))
        built = min(built, b, key=lambda m: m.cpu)
        _, r = measure(lambda again=again: again.advance(rounds, damping, tol))  # type: ignore[misc]
        ran = min(ran, r, key=lambda m: m.cpu)
    share = bytes_per_round(model, name) / bandwidth / (ran.cpu / max(1, len(residuals)))
    row = Row(
        part, name, model.n, int(model.bags.sizes.max()), k, threads, len(residuals), built.cpu, ran.cpu,
        built.wall + ran.wall, first, peak, share if name != "pgmax" else None,
    )  # fmt: skip
    return row, answer


def _compile(engine: Any, rounds: int, name: str, model: GibbsModel, threads: int) -> float | None:
    """Compile what the run will need and say how long it took."""
    if name == "pgmax":
        runner = engine._runner(rounds)
        compiled, spent = measure(lambda: runner.lower(engine.messages, 0.5).compile())
        engine.compiled[rounds] = compiled
        return spent.cpu
    if name == "jax":
        _, spent = measure(lambda: start(name, model, "sum", threads).advance(1, 0.5, 0.0))
        return spent.cpu
    return None


def against_pgmax(sizes: list[tuple[int, int]], bandwidth: float) -> Iterator[Row]:
    """8,192 rows, k = 1, damping 1/2: PGMax, then the others on the same model."""
    for bag, rounds in sizes:
        model = line_model(8192, bag, k=1, g=1.5)
        base, truth = run_engine("pgmax", model, "pgmax", 1, rounds, 0.0, 1, bandwidth)
        base.ratio_to_pgmax = base.ratio_without_compile = 1.0
        yield base
        settled = marginals(model, "count", rounds=500, damping=0.0, tol=1e-12).beliefs
        for name in ("jax", "pairwise", "count"):
            if name == "jax" and bag > 128:
                continue
            tol, goal_rounds, right = (1e-4, 100, settled) if name == "count" else (0.0, rounds, truth)
            row, answer = run_engine("pgmax", model, name, 1, goal_rounds, tol, 1, bandwidth)
            row.ratio_to_pgmax = base.total_s / row.total_s
            row.ratio_without_compile = (base.build_s + base.run_s) / (row.build_s + row.run_s)
            row.goal = GOALS.get(name, {}).get(bag)
            row.max_abs_dp = float(np.abs(answer - right).max())
            yield row


def large(bags: list[int], quick: bool, threads: int, bandwidth: float) -> Iterator[Row]:
    """40,960 rows by bag size, exact rounds and counting; at bag 2048 all hundred rounds."""
    for bag in bags:
        model = line_model(40960, bag, k=1, g=1.5)
        rounds = 100 if bag == 2048 or not quick else 20
        for used in sorted({1, threads}):
            yield run_engine("40k", model, "pairwise", 1, rounds, 0.0, used, bandwidth)[0]
        yield run_engine("40k", model, "count", 1, 100, 1e-4, 1, bandwidth)[0]


def million(threads: int, bandwidth: float) -> Iterator[Row]:
    """A million rows, bag 128, k = 5, by counting; the memory is all that a fresh process ever holds."""
    model = line_model(1_000_000, 128, k=5, g=5.0, lambda_s=0.2)
    for used in sorted({1, threads}):
        row = run_engine("1M", model, "count", 5, 100, 1e-4, used, bandwidth)[0]
        row.peak_mb = float(_fresh(_MILLION, str(used)))
        yield row


def curve(bandwidth: float) -> Iterator[Row]:
    """The cost of a counting round per row, by bag size."""
    for bag in [2**e for e in range(3, 14)]:
        model = line_model(131072, bag, k=1, g=1.5)
        yield run_engine("curve", model, "count", 1, 10, 0.0, 1, bandwidth)[0]


def _fresh(script: str, *arguments: str, **environment: str) -> str:
    """What a script prints in a process of its own."""
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, text=True).stdout


def first_calls() -> list[list[Any]]:
    """Seconds of the first call in a fresh process, with an empty numba cache and with the one it left behind."""
    lines = []
    for name in ("pairwise", "count"):
        with tempfile.TemporaryDirectory() as cache:
            lines.append([name, *(float(_fresh(_FIRST_CALL, name, NUMBA_CACHE_DIR=cache)) for _ in range(2))])
    return lines


def table(rows: list[Row]) -> str:
    def line(row: Row) -> list[Any]:
        ratio = "" if row.ratio_to_pgmax is None else f"{row.ratio_to_pgmax:,.0f}x"
        alone = "" if row.ratio_without_compile is None else f"{row.ratio_without_compile:,.0f}x"
        return [
            row.part, row.engine, f"{row.rows:,}", row.bag, row.threads, row.rounds,
            "" if row.first_s is None else f"{row.first_s:.2f}",
            f"{row.build_s * 1e3:,.1f}", f"{row.run_s / max(1, row.rounds) * 1e3:,.3f}",
            f"{row.run_s / max(1, row.rounds) / row.rows * 1e9:,.0f}", f"{row.total_s:,.4f}", f"{row.wall_s:,.4f}",
            f"{row.peak_mb:,.0f}", ratio, "" if row.goal is None else f"{row.goal:,.0f}x",
            alone,
            "" if row.bandwidth_share is None else f"{row.bandwidth_share:.2f}",
            "" if row.max_abs_dp is None else f"{row.max_abs_dp:.1e}",
        ]  # fmt: skip

    heads = [
        "part", "engine", "rows", "bag", "threads", "rounds", "compile s", "build ms", "ms/round", "ns/row/round",
        "total CPU s", "wall s", "peak MB", "ratio", "goal", "ratio, run alone", "of bandwidth", "max |dp|",
    ]  # fmt: skip
    return tabulate([line(row) for row in rows], headers=heads, tablefmt="github", disable_numparse=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds; within five minutes")
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    options = parser.parse_args()
    warnings.simplefilter("ignore", OscillationWarning)
    bandwidth = copy_bandwidth()
    print(f"plain copy: {bandwidth / 1e9:.1f} GB/s read and written, one thread\n", flush=True)
    print("first call in a fresh process, CPU seconds")
    print(tabulate(first_calls(), headers=["engine", "empty cache", "cached"], floatfmt=".2f"), "\n", flush=True)
    start("pgmax", line_model(256, 8, 1, 1.0), "sum", 1).advance(
        2, 0.5, 0.0
    )  # imports and a first use of every engine,
    start("jax", line_model(256, 8, 1, 1.0), "sum", 1).advance(2, 0.5, 0.0)  # before any clock runs
    for name in ("pairwise", "count"):
        for lane_limit in (0, 1024) if name == "pairwise" else (None,):
            extra = {} if lane_limit is None else {"lane_limit": lane_limit}
            start(name, line_model(256, 8, 1, 1.0), "sum", 1, **extra).advance(1, 0.5, 0.0)
    sizes = [(8, 100), (128, 100), (512, 30 if options.quick else 100)]
    bags = [8, 128, 512, 2048] if options.quick else [8, 32, 128, 512, 1024, 2048]
    rows: list[Row] = []
    for part in (
        against_pgmax(sizes, bandwidth),
        large(bags, options.quick, options.threads, bandwidth),
        million(options.threads, bandwidth),
        curve(bandwidth),
    ):
        for row in part:
            rows.append(row)
            print(f"  {row.part} {row.engine} bag {row.bag}: {row.total_s:.3f} s", file=sys.stderr, flush=True)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
