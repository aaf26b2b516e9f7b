"""Seconds and memory against rows, stage by stage: reading, features, bags, neighbours, three methods.

    python benchmarks/scale.py [--rows 10000,100000,1000000] [--bags 8,128,2048] [--quick] [--met] [--json FILE]

A file in Criteo's format is written (synthetic, 1.45 lines for each training row, so that validation and test have
their shares) and read by the real loader. Every stage runs in a process of its own: its peak memory is its own, with
imports and whatever it loads. Times are CPU seconds of the stage alone, one thread; `order` is the slope of log seconds
against log rows between the first and the last size that were measured. A stage that passes `--limit` (CPU seconds) or
`--memory` is ended, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from tabulate import tabulate

TOTAL = 1.45
METHODS = {"mean-ridge": {}, "bp-count": {}, "dllp": {"epochs": 3}}
"""Methods and the parameters they are run with: DLLP for three epochs, since epochs are what it takes more of."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass
class Row:
    """One stage at one size; `status` is ok, time, memory or failed."""

    stage: str
    rows: int
    bag: int | None
    status: str
    cpu_s: float | None = None
    peak_mb: float | None = None
    phases: dict[str, float] = field(default_factory=dict)


def child(stage: str, folder: Path, rows: int, bag: int | None) -> dict[str, Any]:
    """Do one stage in this process; what it needs from earlier stages is read from their files, off the clock."""
    import numpy as np

    from llpbench_datasets.criteo import encode, load, sample, synthetic

    text, table, hashed = (folder / f"{rows}{end}" for end in (".txt", ".rows.npy", ".hashed.npy"))
    total = round(rows * TOTAL)
    train = sample.part_sizes(total)[0]
    phases: dict[str, float] = {}
    work: Callable[[], Any]
    if stage == "write":
        work = lambda: synthetic.write_synthetic(text, total)  # noqa: E731
    elif stage == "read":
        work = lambda: np.save(table, sample.draw(text, total, 0))  # noqa: E731
    elif stage == "hashed":
        drawn = np.load(table, mmap_mode="r")
        work = lambda: np.save(hashed, encode.hashed_features(drawn, train, 0, dim=64, size=128))  # noqa: E731
    elif stage == "met":
        drawn = np.load(table, mmap_mode="r")
        work = lambda: load.embed(drawn, train, 0, "met", dim=64, buckets=128, mask=0.7, steps="auto")  # noqa: E731
    elif stage == "graph":
        from llpbench_methods.inference.graph import build_graph

        X = np.load(hashed, mmap_mode="r")[:train]
        build_graph(np.array(X[:500]), 10, metric="euclidean", search="approximate")  # compiles
        work = lambda: build_graph(X, 10, metric="euclidean", search="approximate")  # noqa: E731
    else:
        work = _bag_work(stage, np.load(table, mmap_mode="r")[:, 0], np.load(hashed, mmap_mode="r"), bag or 1, phases)
    began = time.process_time()
    work()
    return {"cpu_s": time.process_time() - began, "peak_mb": high_water(), "phases": phases}


def _bag_work(stage: str, labels: Any, X: Any, bag: int, phases: dict[str, float]) -> Callable[[], Any]:
    """Bagging, or a fit on bags under the harness's own monitor."""
    from dataclasses import replace

    import numpy as np

    from llpbench.contracts.data import Part
    from llpbench.experiment.bags import gather
    from llpbench.experiment.monitor import HarnessMonitor, fit_method
    from llpbench.experiment.rules import make_rules
    from llpbench.experiment.schemes import random_bags
    from llpbench.plugins.registry import load_registry
    from llpbench_datasets.criteo.sample import part_sizes

    sizes = part_sizes(len(X))
    cuts = (sizes[0], sizes[0] + sizes[1])
    y = labels.astype(np.int64)
    train, valid, test = (Part(x, part) for x, part in zip(np.split(X, cuts), np.split(y, cuts), strict=True))
    shape: dict[str, Any] = {"classes": 2, "columns": (), "rng": np.random.default_rng(0)}

    def bagged() -> Any:
        (bags, train_labels), (held, held_labels) = (
            gather(p, random_bags(p.X, bag, columns=(), rng=shape["rng"]), **shape) for p in (train, valid)
        )
        return replace(bags, validation=held), train_labels, held_labels

    if stage == "bags":
        return bagged
    bags, train_labels, held_labels = bagged()
    spec = load_registry().methods[stage]
    monitor = HarnessMonitor(
        rules=make_rules(bags.validation, held_labels),
        valid=bags.validation,
        test_rows=test.X,
        train_labels=train_labels,
        classes=2,
        score_kind=spec.scores,
        patience=20,
    )
    method = spec.load()(**spec.resolve(METHODS[stage]))

    def fit() -> None:
        fit_method(method, bags, monitor, 0)
        phases.update(monitor.clock.stop())

    return fit


def high_water() -> float:
    """Most resident memory this process ever held (MB)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return float(line.split()[1]) / 1024
    return float("nan")


def run(stage: str, folder: Path, rows: int, bag: int | None, limit: float, memory: float) -> Row:
    """Run a stage in a child and watch its CPU time and memory."""
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--child", stage, "--folder", str(folder), "--rows", str(rows)]
    command += ["--bags", str(bag)] if bag else []
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    with (folder / "child.log").open("w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    watched, status = psutil.Process(process.pid), "ok"
    while process.poll() is None:
        time.sleep(0.25)
        try:
            spent, held = watched.cpu_times(), watched.memory_info().rss / 2**20
        except psutil.Error:
            continue
        status = "time" if spent.user + spent.system > limit else "memory" if held > memory else "ok"
        if status != "ok":
            process.kill()
            process.wait()
            return Row(stage, rows, bag, status, limit if status == "time" else None, held)
    if process.returncode != 0:
        print((folder / "child.log").read_text()[-2000:], file=sys.stderr)
        return Row(stage, rows, bag, "failed")
    return Row(stage, rows, bag, "ok", **json.loads(answer.read_text()))


def order(rows: list[Row], stage: str, bag: int | None) -> str:
    """The exponent p of seconds ~ rows^p between the smallest and the largest size that ended well."""
    good = [r for r in rows if (r.stage, r.bag) == (stage, bag) and r.status == "ok" and r.cpu_s]
    if len(good) < 2:
        return ""
    first, last = min(good, key=lambda r: r.rows), max(good, key=lambda r: r.rows)
    return f"{math.log(last.cpu_s / first.cpu_s) / math.log(last.rows / first.rows):.2f}"  # type: ignore[operator]


def table(rows: list[Row], sizes: list[int]) -> str:
    def cell(stage: str, bag: int | None, size: int) -> list[str]:
        for row in rows:
            if (row.stage, row.bag, row.rows) == (stage, bag, size):
                if row.status != "ok":
                    return [f"over {row.cpu_s:,.0f}" if row.status == "time" else row.status, ""]
                return [f"{row.cpu_s:,.2f}", f"{row.peak_mb:,.0f}"]
        return ["", ""]

    keys = list(dict.fromkeys((row.stage, row.bag) for row in rows))
    lines = [
        [stage, bag or "", *(text for size in sizes for text in cell(stage, bag, size)), order(rows, stage, bag)]
        for stage, bag in keys
    ]
    heads = ["stage", "bag", *(text for size in sizes for text in (f"{size:,} rows, s", "MB")), "order"]
    return tabulate(lines, headers=heads, tablefmt="github", disable_numparse=True)


def numbers(text: str) -> list[int]:
    return [int(float(part)) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=numbers, default=[10_000, 100_000, 1_000_000], help="training rows")
    parser.add_argument("--bags", type=numbers, default=[8, 128, 2048])
    parser.add_argument("--quick", action="store_true", help="2,000 and 10,000 rows, bags of 8 and 128")
    parser.add_argument("--stages", default="", help="only these, comma-separated; their input must be in --folder")
    parser.add_argument("--met", action="store_true", help="also train the masked encoder at every size")
    parser.add_argument("--limit", type=float, default=3600.0, help="CPU seconds a stage may take")
    parser.add_argument("--memory", type=float, default=12.0, help="GB a stage may hold")
    parser.add_argument("--folder", type=Path, help="where files are written; a temporary folder by default")
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        bag = options.bags[0] if len(options.bags) == 1 else None
        answer = child(options.child, options.folder, options.rows[0], bag)
        (options.folder / "answer.json").write_text(json.dumps(answer))
        return
    if options.quick:
        options.rows, options.bags = [2_000, 10_000], [8, 128]
    plan: list[tuple[str, int | None]] = [("write", None), ("read", None), ("hashed", None)]
    plan += [("met", None)] if options.met else []
    plan += [("graph", None)]
    plan += [(stage, bag) for stage in ("bags", *METHODS) for bag in options.bags]
    wanted = [name for name in options.stages.split(",") if name]
    plan = [(stage, bag) for stage, bag in plan if not wanted or stage in wanted]
    if unknown := set(wanted) - {stage for stage, _ in plan}:
        parser.error(f"unknown stages: {', '.join(sorted(unknown))}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for size in options.rows:
            for stage, bag in plan:
                row = run(stage, folder, size, bag, options.limit, 1024 * options.memory)
                rows.append(row)
                longest = max(row.phases, key=row.phases.__getitem__, default="")
                spent = "" if row.cpu_s is None else f"{row.cpu_s:.2f} s"
                print(f"  {size:,} {stage} {bag or ''}: {row.status} {spent} {longest}", file=sys.stderr, flush=True)
                if options.json:
                    options.json.write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n")
    print(table(rows, options.rows))


if __name__ == "__main__":
    main()
