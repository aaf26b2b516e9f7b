"""What the harness itself costs: wall time of a grid of cells that do nothing, divided by their number.

Also how fast the command line answers. ``python benchmarks/harness_overhead.py [--cells 60] [--json FILE]``
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLUGIN = """
from llpbench import MethodSpec, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="no-op", factory="no_op:NoOp")]

class NoOp:
    def fit(self, bags, *, monitor, seed):
        return self
    def predict_scores(self, X):
        return X[:, 0]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=60)
    parser.add_argument("--start", default="fork,spawn", help="how cells are started")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "no_op.py").write_text(PLUGIN)
        command = [sys.executable, "-m", "llpbench", "run", "--plugin", "no_op.py", "--methods", "no-op"]
        command += ["--datasets", "synthetic", "--bags", "8", "--seeds", str(options.cells), "--quiet", "--out"]
        for start in options.start.split(","):
            seconds = timed([*command, start, "--start", start], folder)
            rows.append({"what": f"cell, {start}", "cells": options.cells, "seconds_each": seconds / options.cells})
        for verb in ("--help", "list"):
            best = min(timed([sys.executable, "-m", "llpbench", verb], folder) for _ in range(5))
            rows.append({"what": f"llpbench {verb}", "cells": 1, "seconds_each": best})
    for row in rows:
        print(f"{row['what']:<20}{row['cells']:>6}{row['seconds_each']:>10.3f} s")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def timed(command: list[str], folder: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
