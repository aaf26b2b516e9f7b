"""Belief propagation over overlapping bags: seconds per round and memory per entry.

::

    python benchmarks/overlap.py [--rows 1000000] [--groupings 8] [--size 512] [--rounds 5]
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from llpbench_methods.inference import OverlapModel
from llpbench_methods.inference.overlap import OverlapEngine


def model(rows: int, groupings: int, size: int) -> OverlapModel:
    """Random groupings of rows whose labels follow known log-odds, with exact counts."""
    rng = np.random.default_rng(0)
    fields = rng.normal(-1.0, 1.5, rows)
    labels = (rng.random(rows) < 1.0 / (1.0 + np.exp(-fields))).astype(np.float64)
    members = np.concatenate([rng.permutation(rows) for _ in range(groupings)])
    starts = np.concatenate([np.arange(0, rows, size) + k * rows for k in range(groupings)])
    offsets = np.append(starts, len(members))
    grouping_of = np.repeat(np.arange(groupings), len(starts) // groupings)
    counts = np.add.reduceat(labels[members], starts)
    return OverlapModel(fields, members, offsets, grouping_of, counts, np.full(len(counts), np.inf))


def main() -> None:
    """Print one line for each size of the problem, up to the full one, so that the growth shows."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, default in (("rows", 1_000_000), ("groupings", 8), ("size", 512), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    for share in (16, 4, 1):
        rows = asked.rows // share
        problem = model(rows, asked.groupings, asked.size)
        state = OverlapEngine(problem)
        began, worked = time.perf_counter(), time.process_time()
        rounds = len(state.advance(asked.rounds, 0.0, 1e-9))
        each, work = (time.perf_counter() - began) / rounds, (time.process_time() - worked) / rounds
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{rows:>9,} rows x {asked.groupings} groupings of bags of {asked.size}: {each:.2f} s per round "
            f"({work:.2f} s of processor, {1e9 * work / len(problem.members):.0f} ns per entry), {rounds} rounds; "
            f"peak of the process so far {peak:,.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
