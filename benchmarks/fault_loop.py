"""Kill random processes of a run again and again: its table must be byte-equal to that of an untouched run.

Victims are the command itself, a fork server (killed or stopped), a judge, or a method's process. The command is
started again when it has ended, and cells that failed by a kill are run again (``--rerun failed``).
``python benchmarks/fault_loop.py [--kills 30] [--cells 24] [--seed 0]``
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

PLUGIN = """
import time
from llpbench import MethodSpec, Param, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="slow", factory="slow:Slow", params=(Param("seconds", 0.5, low=0.0),))]

class Slow:
    def __init__(self, seconds=0.5):
        self.seconds = seconds
    def fit(self, bags, *, monitor, seed):
        weights = (bags.proportions - bags.proportions.mean()).repeat(bags.sizes, axis=0)
        self.w = (bags.X * weights).mean(axis=0)
        for _ in range(5):
            time.sleep(self.seconds / 5)
            monitor.report(self.predict_scores)
        return self
    def predict_scores(self, X):
        return X @ self.w
"""
KINDS = ("command", "server", "stopped server", "judge", "method")
PATIENCE = 1800.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--cells", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slow.py").write_text(PLUGIN)
        untouched = finish(folder, "untouched", options.cells)
        struck = strike(folder, options.kills, options.cells, rng)
        survived = finish(folder, "struck", options.cells)
        leftovers = [p for p in psutil.process_iter(["cmdline"]) if name in " ".join(p.info["cmdline"] or [])]
    for kind in KINDS:
        print(f"{kind:<16}{struck[kind]:>4}")
    equal = untouched == survived
    print(f"tables {'equal byte for byte' if equal else 'DIFFER'}; {len(leftovers)} processes left")
    return 0 if equal and not leftovers else 1


def command(out: str, cells: int) -> list[str]:
    seeds = str(max(1, cells // 3))
    grid = ["--methods", "slow", "--datasets", "synthetic[rows=400;dim=4]", "--bags", "4,8,16", "--seeds", seeds]
    return [sys.executable, "-m", "llpbench", "run", "--plugin", "slow.py", *grid, "--rerun", "failed", "--out", out]


def finish(folder: Path, out: str, cells: int) -> bytes:
    """Run to the end; returns the table with all digits."""
    subprocess.run([*command(out, cells), "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    shown = [sys.executable, "-m", "llpbench", "table", out, "--format", "json"]
    return subprocess.run(shown, cwd=folder, check=True, capture_output=True).stdout


def strike(folder: Path, kills: int, cells: int, rng: random.Random) -> collections.Counter[str]:
    """Kill random processes; returns the number of kills of each kind."""
    struck: collections.Counter[str] = collections.Counter()
    run: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + PATIENCE
    while struck.total() < kills and time.monotonic() < deadline:
        if run is None or run.poll() is not None:
            if struck.total() and not struck.total() % 5:
                with contextlib.suppress(OSError):  # so that there is something to kill for long enough
                    for path in sorted((folder / "struck" / "cells").glob("*.json"))[:12]:
                        path.unlink()
            run = subprocess.Popen(
                command("struck", cells), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        time.sleep(rng.uniform(0.05, 1.5))
        found = processes(run.pid)
        kind = min((k for k in KINDS if found[k]), key=lambda k: (struck[k], rng.random()), default="")
        if kind and (found["judge"] or rng.random() < 0.2):  # mostly while cells run, sometimes before
            with contextlib.suppress(psutil.Error):
                rng.choice(found[kind]).send_signal(signal.SIGSTOP if kind == "stopped server" else signal.SIGKILL)
                struck[kind] += 1
    if run is not None:
        run.wait(PATIENCE)
    return struck


def processes(pid: int) -> dict[str, list[psutil.Process]]:
    """The processes of a run by kind: judges are children of a server, methods are children of a judge."""
    found: dict[str, list[psutil.Process]] = {kind: [] for kind in KINDS}
    with contextlib.suppress(psutil.Error):
        found["command"] = [psutil.Process(pid)]
        found["server"] = found["stopped server"] = psutil.Process(pid).children()
        for server in found["server"]:
            with contextlib.suppress(psutil.Error):
                found["judge"] += server.children()
        for judge in found["judge"]:
            with contextlib.suppress(psutil.Error):
                found["method"] += judge.children()
    return found


if __name__ == "__main__":
    sys.exit(main())
