"""Seconds by phase and memory of whole cells against rows, on the large tables of the pack.

    python benchmarks/large_tables.py [--dataset flights-3m] [--rows 10000,100000,1000000,3000000] [--bag 256]
                                      [--methods mean-ridge,bag-logistic,average,bp-count,dllp] [--figure FILE]

Every cell runs as `llpbench run` runs it: one at a time, with the data in a process of its own and sixty percent of the
rows in training bags. Seconds are wall-clock seconds, so run it on a quiet machine; `CPU` are those of the whole cell,
start and data included, if it was run just now. `order` is the slope of log seconds of the fit against log rows between
the first and the last size. Finished cells in `--out` are not run again.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from datetime import datetime
from itertools import product
from pathlib import Path

from tabulate import tabulate

import llpbench
from llpbench import CellResult

SEED = "100-100"


def cells(
    dataset: str, rows: list[int], methods: list[str], bag: int, out: str, memory: str
) -> tuple[list[CellResult], dict[str, float]]:
    """The results of all methods at all sizes, smallest size first, and the CPU seconds of new ones by cell."""
    found: list[CellResult] = []
    cpu: dict[str, float] = {}
    for size, method in product(rows, methods):
        before, began = cpu_seconds(), time.time()
        run = llpbench.run(
            methods=[method],
            datasets=[f"{dataset}[rows={size}]"],
            bags=[bag],
            seeds=SEED,
            jobs=1,
            memory=memory,
            timeout="2h",
            out=Path(out) / str(size),
        )
        (result,) = run.results
        found.append(result)
        if datetime.fromisoformat(result.started).timestamp() >= began - 1:
            cpu[result.id] = cpu_seconds() - before
        print(table([result], cpu), flush=True)
    return found, cpu


def cpu_seconds() -> float:
    """CPU seconds of this process and its finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def rows_of(result: CellResult) -> int:
    """Rows of the three parts together."""
    return sum(result.rows.values())


def table(results: list[CellResult], cpu: dict[str, float]) -> str:
    """A line for each cell: rows, seconds by phase and memory."""
    phases = list(dict.fromkeys(name for result in results for name in result.phases))
    lines = [
        [
            result.method_name,
            f"{rows_of(result):,}",
            result.status,
            f"{result.data_seconds:.1f}",
            *(f"{result.phases[name]:.1f}" if name in result.phases else "" for name in phases),
            f"{result.fit_seconds:.1f}",
            f"{cpu[result.id]:.1f}" if result.id in cpu else "",
            f"{result.peak_memory_mb:,.0f}",
        ]
        for result in sorted(results, key=lambda result: (result.method_name, rows_of(result)))
    ]
    heads = ["method", "rows", "status", "data, s", *(f"{name}, s" for name in phases), "fit, s", "CPU, s", "MB"]
    return tabulate(lines, headers=heads, tablefmt="github", disable_numparse=True)


def points(results: list[CellResult]) -> dict[str, list[CellResult]]:
    """Each method's finished cells, by rows."""
    found: dict[str, list[CellResult]] = {}
    for result in sorted(results, key=rows_of):
        if result.status == "ok":
            found.setdefault(result.method_name, []).append(result)
    return found


def orders(results: list[CellResult]) -> str:
    """The exponent p of seconds ~ rows^p of each method."""
    lines = []
    for name, (first, *_, last) in ((name, at) for name, at in points(results).items() if len(at) > 1):
        growth = math.log(last.fit_seconds / first.fit_seconds) / math.log(rows_of(last) / rows_of(first))
        lines.append([name, f"{growth:.2f}"])
    return tabulate(lines, headers=["method", "order"], tablefmt="github", disable_numparse=True)


def draw(results: list[CellResult], file: str, title: str) -> None:
    """The seconds and the peak memory of fits against rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (seconds, memory) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
    for name, at in points(results).items():
        rows = [rows_of(result) for result in at]
        seconds.loglog(rows, [result.fit_seconds for result in at], marker="o", label=name)
        memory.semilogx(rows, [result.peak_memory_mb / 1024 for result in at], marker="o")
    seconds.set(title=title, xlabel="rows", ylabel="seconds of the fit")
    memory.set(title="data included", xlabel="rows", ylabel="peak memory, GB")
    for panel in (seconds, memory):
        panel.grid(alpha=0.3)
    figure.legend(loc="outside right center")
    figure.savefig(file, dpi=110)


def numbers(text: str) -> list[int]:
    return [int(float(part)) for part in text.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", default="flights-3m")
    parser.add_argument("--rows", type=numbers, default=[10_000, 100_000, 1_000_000, 3_000_000])
    parser.add_argument("--methods", default="mean-ridge,bag-logistic,average,bp-count,dllp")
    parser.add_argument("--bag", type=int, default=256)
    parser.add_argument("--memory", default="16GB", help="limit of each cell")
    parser.add_argument("--out", default="results/large-tables")
    parser.add_argument("--figure", help="write the figure of seconds against rows to this file")
    given = parser.parse_args()
    results, cpu = cells(given.dataset, given.rows, given.methods.split(","), given.bag, given.out, given.memory)
    print(table(results, cpu), orders(results), sep="\n\n")
    if given.figure:
        draw(results, given.figure, f"{given.dataset}, bags of {given.bag}")


if __name__ == "__main__":
    main()
