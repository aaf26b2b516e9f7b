"""Seconds by phase and memory of whole cells against rows, on the large tables of the pack.

    python benchmarks/large_tables.py [--dataset flights-3m] [--rows 10000,100000,1000000,3000000] [--bag 256]
                                      [--methods mean-ridge,bag-logistic,average,bp-count,dllp] [--figure FILE]

Every cell runs as `llpbench run` runs it: one at a time, with the data in a process of its own and sixty percent of the
rows in training bags. Seconds are wall-clock seconds, so run it on a quiet machine; `order` is the slope of log seconds
of the fit against log rows between the first and the last size. Finished cells in `--out` are not run again.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from tabulate import tabulate

import llpbench
from llpbench import CellResult

SEED = "100-100"


def cells(dataset: str, rows: list[int], methods: list[str], bag: int, out: str, memory: str) -> list[CellResult]:
    """The results of all methods at all sizes, smallest size first."""
    found: list[CellResult] = []
    for size in rows:
        setting = f"{dataset}[rows={size}]"
        run = llpbench.run(
            methods=methods,
            datasets=[setting],
            bags=[bag],
            seeds=SEED,
            jobs=1,
            memory=memory,
            timeout="2h",
            out=Path(out) / str(size),
        )
        found += run.results
    return found


def rows_of(result: CellResult) -> int:
    """Rows of the three parts together."""
    return sum(result.rows.values())


def table(results: list[CellResult]) -> str:
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
            f"{result.peak_memory_mb:,.0f}",
        ]
        for result in sorted(results, key=lambda result: (result.method_name, rows_of(result)))
    ]
    heads = ["method", "rows", "status", "data, s", *(f"{name}, s" for name in phases), "fit, s", "MB"]
    return tabulate(lines, headers=heads, tablefmt="github", disable_numparse=True)


def points(results: list[CellResult]) -> dict[str, list[tuple[int, float]]]:
    """(rows, seconds of the fit) of each method's finished cells, by rows."""
    found: dict[str, list[tuple[int, float]]] = {}
    for result in sorted(results, key=rows_of):
        if result.status == "ok":
            found.setdefault(result.method_name, []).append((rows_of(result), result.fit_seconds))
    return found


def orders(results: list[CellResult]) -> str:
    """The exponent p of seconds ~ rows^p of each method."""
    lines = [
        [name, f"{math.log(last[1] / first[1]) / math.log(last[0] / first[0]):.2f}"]
        for name, ((first, *_), (*_, last)) in ((n, (p, p)) for n, p in points(results).items() if len(p) > 1)
    ]
    return tabulate(lines, headers=["method", "order"], tablefmt="github", disable_numparse=True)


def draw(results: list[CellResult], file: str, title: str) -> None:
    """The seconds of fits against rows."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panel = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
    for name, at in points(results).items():
        panel.loglog(*zip(*at, strict=True), marker="o", label=name)
    panel.set(title=title, xlabel="rows", ylabel="seconds of the fit")
    panel.grid(alpha=0.3)
    panel.legend()
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
    results = cells(given.dataset, given.rows, given.methods.split(","), given.bag, given.out, given.memory)
    print(table(results), orders(results), sep="\n\n")
    if given.figure:
        draw(results, given.figure, f"{given.dataset}, bags of {given.bag}")


if __name__ == "__main__":
    main()
