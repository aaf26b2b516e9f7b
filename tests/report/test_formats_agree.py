"""Every format of a table has the same numbers: those of CSV and JSON, rounded, are what people read."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import msgspec
import pytest
from cli_runner import llpbench
from helpers import make_cell, make_plan, make_result

from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.experiment.plan import Planned
from llpbench.experiment.suites.file import find_suite
from llpbench.experiment.suites.plan import Limits, plan_suite
from llpbench.plugins.registry import load_registry
from llpbench.report.render import Wanted, make_tables, render
from llpbench.results.metric_style import MetricStyle
from llpbench.results.store import Store

REGISTRY = load_registry()
NAME = "llpbench-2026.1"
SUITE = find_suite(NAME, REGISTRY)[0]


def values_of(method: str, values: list[float], noise: str = "none", bag_size: int = 8) -> list[CellResult]:
    return [
        make_result(make_cell(method=method, seed=seed, noise=noise, bag_size=bag_size), value)
        for seed, value in enumerate(values)
    ]


def test_a_table_by_noise_level_has_the_same_entries_in_every_format() -> None:
    """CSV averaged every seed of a level, where the printed table has those of all levels, and had bounds beside."""
    results = [
        *values_of("quick", [0.80, 0.82, 0.84, 0.99, 0.99]),
        *values_of("quick", [0.70, 0.72, 0.74], "high"),
        *values_of("slow", [0.6] * 3),
        *values_of("slow", [0.5] * 3, "high"),
        *values_of("quick", [0.9] * 5, bag_size=32),  # without noise alone: no such table
    ]
    bound = make_result(make_cell(method="truth", bag_size=1), 0.95, oracle=True)
    plans = [*(make_plan(result.cell) for result in results), make_plan(bound.cell, oracle=True)]
    wanted = Wanted(MetricStyle("auroc", words="AUROC"), ["bags", "instances"], "noise")
    every = [*results, bound]
    tables = make_tables(plans, every, wanted)
    printed = {
        (table.rule, method, noise): float(table.entries[method, noise].text.split()[0])
        for table in tables
        for method, noise in table.entries
    }
    assert printed["bags", "quick", "none"] == 82.0
    rows = json.loads(render(plans, every, wanted, "json"))
    assert {(r["rule"], r["method"], r["noise"]): round(r["mean"], 2) for r in rows} == printed
    assert {(r["bag_size"], r["seeds"], r["status"]) for r in rows} == {(8, 3, "ok")}
    lines = list(csv.DictReader(io.StringIO(render(plans, every, wanted, "csv"))))
    assert [float(line["mean"]) for line in lines] == [r["mean"] for r in rows]


def folder_of(root: Path, results: list[CellResult]) -> Path:
    store = Store(root)
    store.plan([Planned.of(result) for result in results], "llpbench run", "0.1.0")
    for result in results:
        store.write(result)
    return root


def made_up(part: str, method: str, dataset: str) -> list[CellResult]:
    """A number for every cell of a method on a dataset in a part of the suite; seeds differ by a hundredth."""
    plans = [plan for block in plan_suite(SUITE, REGISTRY, Limits(part=part)) for plan in block.cells]
    return [
        make_result(
            plan.cell,
            0.5 + plan.cell.seed / 100,
            protocol=PROTOCOL,
            oracle=plan.oracle,
            method_name=plan.method_name,
            dataset_name=plan.dataset_name,
        )
        for plan in plans
        if (plan.cell.method, plan.cell.dataset) == (method, dataset)
    ]


def suite_rows(folder: Path, name: str = NAME) -> list[dict[str, str]]:
    done = llpbench("table", str(folder), "--suite", name, "--format", "csv", cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    return [row for row in csv.DictReader(io.StringIO(done.stdout)) if row["mean"]]


def suite_lines(folder: Path, name: str = NAME) -> str:
    return llpbench("table", str(folder), "--suite", name, "--format", "markdown", cwd=folder.parent).stdout


def test_a_suite_takes_cells_of_its_own_protocol_in_every_format(tmp_path: Path) -> None:
    """CSV averaged a cell of protocol 1 in that the printed table left out."""
    results = made_up("random", "mean-ridge", "criteo")
    first = next(r for r in results if (r.cell.seed, r.cell.bag_size) == (0, 8))
    older = msgspec.structs.replace(make_result(first.cell, 0.99), dataset_name=first.dataset_name, protocol=1)
    folder = folder_of(tmp_path / "run", [older if r.id == first.id else r for r in results])
    (row,) = [row for row in suite_rows(folder, f"{NAME}/random") if row["bag_size"] == "8"]
    assert (f"{float(row['mean']):.2f}", row["seeds"], row["planned"], row["status"]) == ("51.50", "2", "3", "partial")
    assert re.search(r"^\| mean-ridge *\| 51.50 \(0.71\) \[2/3", suite_lines(folder, f"{NAME}/random"), re.MULTILINE)
    said = llpbench("table", str(folder), "--suite", NAME, "--format", "json", cwd=tmp_path).stderr
    assert f"1 cell left out: {NAME} is of protocol {SUITE.protocol}" in said


def test_an_older_cell_of_ones_own_does_not_hide_the_published_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llpbench.cli import suite as verb

    results = made_up("random", "mean-ridge", "criteo")
    older = [msgspec.structs.replace(result, protocol=1) for result in results]
    monkeypatch.setattr(verb, "read_results", lambda *_: verb.Read(older, results))
    assert {row["status"] for row in suite_rows(tmp_path / "run", f"{NAME}/random")} == {"ok"}


def test_a_part_of_a_suite_has_its_own_seeds_in_every_format(tmp_path: Path) -> None:
    """A bound with more seeds in one part than in another had those of both in the CSV of each."""
    results = {r.id: r for part in ("random", "privacy") for r in made_up(part, "supervised", "adult")}
    results |= {r.id: r for part in ("random", "privacy") for r in made_up(part, "mean-ridge", "adult")}
    folder = folder_of(tmp_path / "run", list(results.values()))
    rows = [row for row in suite_rows(folder) if row["method"] == "supervised"]
    found = {(row["noise"], f"{float(row['mean']):.2f}", row["seeds"]) for row in rows if row["dataset"] == "adult"}
    assert found == {("none", "52.00", "5"), ("medium", "51.00", "3"), ("high", "51.00", "3")}
    printed = re.findall(r"^\| supervised *\| +(\d\d\.\d\d)", suite_lines(folder), re.MULTILINE)
    assert printed[0] == "52.00"
    assert set(printed[1:]) == {"51.00"}
