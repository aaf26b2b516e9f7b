"""Tables as a paper prints them: marks, statuses, and the four file formats."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from llpbench.plugins.registry import load_registry
from llpbench.report.notes import merge_equal_rules, notes_on_defaults
from llpbench.report.render import choose
from llpbench.report.tables import (
    Table,
    TableEntry,
    build_noise_tables,
    build_tables,
    format_value,
    rows_as_text,
    to_latex,
    to_markdown,
)
from llpbench.report.terminal import print_tables
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import Row, mean_sd

AUROC = MetricStyle("auroc", words="AUROC")
SECONDS = MetricStyle("fit_seconds", higher_is_better=False, percent=False)
KEYS = {"dataset", "method", "bag_size", "noise", "rule", "metric", "mean", "sd", "seeds", "status"}


def row(method: str, bag_size: int = 8, mean: float | None = 90.0, **facts: object) -> Row:
    known: dict[str, object] = {
        "dataset": "toy",
        "noise": "none",
        "rule": "bags",
        "metric": "auroc",
        "sd": None if mean is None else 0.5,
        "seeds": 0 if mean is None else 3,
        "planned": 3,
        "status": "missing" if mean is None else "ok",
        "unit": "%",
    }
    seeds = facts.get("seeds", known["seeds"])
    facts = {"values": [mean] * seeds, "value_seeds": list(range(seeds)), **facts}  # type: ignore[call-overload]
    return Row(method=method, bag_size=bag_size, mean=mean, **{**known, **facts})  # type: ignore[arg-type]


def one_table(*rows: Row, metric: MetricStyle = AUROC) -> Table:
    (table,) = build_tables(rows, metric)
    return table


def marks(table: Table, size: int = 8) -> dict[str, str]:
    return {method: table.entries[method, size].mark for method in table.methods if (method, size) in table.entries}


def printed(table: Table, width: int = 120, terminal: bool = False) -> str:
    out = io.StringIO()
    print_tables([table], Console(file=out, width=width, force_terminal=terminal, no_color=True, highlight=False))
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())


def test_rules_with_equal_numbers_share_a_table_and_notes_appear_once() -> None:
    table = one_table(row("good", 8, 91.0), row("bad", 8, None, status="failed", reasons=["oh"]))
    other = replace(table, entries={**table.entries, ("good", 8): TableEntry("90.0")})
    third, same, differing = (replace(table, rule="counts"), replace(table, rule="one"), replace(other, rule="two"))
    merged = merge_equal_rules([table, same, differing, third])
    assert [t.rule for t in merged] == [f"{table.rule}, one, counts (equal)", "two"]
    assert [t.notes for t in merged] == [table.notes, []]


def test_default_of_a_varied_parameter_is_noted() -> None:
    defaults = {"net": {"lr": 1e-3, "depth": 2, "loss": "log"}, "other": {"lr": 1.0}}
    names = ["net", "net[lr=0.01]", "net[depth=3;lr=0.01]", "other", "third[lr=2]"]
    assert notes_on_defaults(names, defaults) == ["net: lr=0.001, depth=2 (default)"]


MIXED = (
    row("good", 8, 91.234),
    row("better", 8, 92.0),
    row("worse", 8, 80.0),
    row("good", 32, 85.0, sd=None, seeds=1, status="partial", reasons=["1 h was too short"]),
    row("better", 32, None, status="timeout", reasons=["took more than 1 h"]),
    row("worse", 128, None),
    row("bound", 8, 99.0, oracle=True),
    row("bound", 32, 99.0, oracle=True),
)


# -- entries and marks -------------------------------------------------------------------------------------------------


def test_an_entry_is_mean_and_sd_or_a_status() -> None:
    assert format_value(row("a")) == "90.00 (0.50)"
    assert format_value(row("a", sd=None, seeds=1, planned=1)) == "90.00"
    assert format_value(row("a", status="partial", seeds=2)) == "90.00 (0.50) [2/3]"
    for status in ("missing", "failed", "timeout", "memory", "crashed", "skipped", "undefined"):
        assert format_value(row("a", mean=None, status=status)) == status


def test_best_and_second_of_each_column_are_marked() -> None:
    table = one_table(*MIXED)
    assert marks(table) == {"good": "second", "better": "best", "worse": ""}
    assert marks(table, 32) == {"good": "", "better": ""}  # a lone number has not won against anybody


def test_for_times_the_least_is_best() -> None:
    rows = [row(m, mean=v, metric="fit_seconds", unit="") for m, v in (("a", 3.0), ("b", 1.0), ("c", 2.0))]
    assert marks(one_table(*rows, metric=SECONDS)) == {"a": "", "b": "best", "c": "second"}


def test_equal_numbers_share_a_mark() -> None:
    tied = one_table(*(row(m, mean=v) for m, v in (("a", 90.0), ("b", 90.0), ("c", 80.0), ("d", 70.0))))
    assert marks(tied) == {"a": "best", "b": "best", "c": "second", "d": ""}


def test_a_bound_is_in_the_heading_and_never_a_row() -> None:
    table = one_table(*MIXED)
    assert table.methods == ["good", "better", "worse"]
    assert table.bounds == ["bound 99.00 (0.50)"]
    assert table.title == "toy · AUROC % · selection rule: bags · bound 99.00 (0.50)"


def test_a_bound_that_failed_is_explained_once() -> None:
    failed = [row("bound", b, None, oracle=True, status="failed", reasons=["no labels"]) for b in (8, 32)]
    table = one_table(row("a", 8), row("a", 32), *failed)
    assert table.bounds == ["bound failed"]
    assert table.notes == ["bound: failed: no labels"]


def test_every_dataset_noise_and_rule_is_a_table_that_says_so() -> None:
    rows = [
        row("a", dataset=d, noise=n, rule=r)
        for d in ("x", "y")
        for n in ("none", "high")
        for r in ("bags", "instances")
    ]
    tables = build_tables([*rows, row("a", metric="accuracy")], AUROC)
    assert len(tables) == 8
    assert [t.title for t in tables[:3]] == [
        "x · AUROC % · selection rule: bags",
        "x · AUROC % · selection rule: instances",
        "x · noise high · AUROC % · selection rule: bags",
    ]


def test_bag_sizes_are_in_order_and_a_cell_outside_the_plan_is_empty() -> None:
    table = one_table(row("a", 128), row("a", 8), row("b", 32))
    assert list(table.columns) == [8, 32, 128]
    assert [entry.text for entry in table.row("a")] == ["90.00 (0.50)", "", "90.00 (0.50)"]


def test_reasons_are_listed_for_what_has_no_number() -> None:
    assert one_table(*MIXED).notes == [
        "good, bag size 32: partial: 1 h was too short",
        "better, bag size 32: timeout: took more than 1 h",
    ]


def test_unequal_numbers_of_seeds_are_told() -> None:
    assert one_table(row("a", seeds=3), row("b", seeds=3)).notes == []
    table = one_table(
        row("a", seeds=3), row("b", seeds=3), row("c", seeds=10), row("d", 32, seeds=5), row("d", seeds=3)
    )
    assert table.notes == ["where seeds differ, best and second are those of the seeds that methods share (0, 1, 2)"]
    assert [table.entries[m, 8].text for m in "abcd"] == ["90.00 (0.50)"] * 2 + [
        "90.00 (0.50) [10 seeds]",
        "90.00 (0.50)",
    ]
    short = one_table(row("a", seeds=3), row("b", seeds=3), row("c", seeds=1, mean=99.0))
    assert short.notes[0].endswith("(0, 1, 2); not compared, for lack of some of them: c")
    assert marks(short) == {"a": "best", "b": "best", "c": ""}
    bound = row("top", seeds=1, oracle=True)
    assert one_table(row("a", seeds=3), bound).notes == []


def test_picked_seeds_are_told_once_where_all_have_them_and_beside_each_number_where_not() -> None:
    picked = {"value_seeds": [100, 101, 102]}
    bound = row("top", oracle=True, **picked)
    table = one_table(row("a", **picked), row("b", 32, **picked), row("c", 32, None), bound)
    assert table.title == "toy · seeds 100-102 · AUROC % · selection rule: bags · top 90.00 (0.50)"
    assert {entry.text for entry in table.entries.values()} == {"90.00 (0.50)", "missing"}
    mixed = one_table(row("a", **picked), row("b", 32))
    assert mixed.title == "toy · AUROC % · selection rule: bags"
    assert [mixed.entries[place].text for place in (("a", 8), ("b", 32))] == [
        "90.00 (0.50) [seeds 100-102]",
        "90.00 (0.50)",
    ]


def test_only_what_is_compared_is_told_to_have_other_seeds() -> None:
    """Parameters of another rule are out of the comparison, whatever seeds they have."""
    tuned = row("a[params=tuned-instances]", seeds=1, options={"params": "tuned-instances"})
    apart = "a[params=tuned-instances]: another rule chose its parameters; compared under that rule alone"
    assert one_table(row("a"), row("b"), tuned).notes == [apart]
    assert len(one_table(row("a"), row("b", seeds=5), row("c"), tuned).notes) == 2


# -- noise -------------------------------------------------------------------------------------------------------------


def level(method: str, values: list[float], noise: str = "none", seeds: list[int] | None = None, **facts: Any) -> Row:
    """A method at a noise level, with its number for each seed."""
    known = {"epsilon": {"none": None, "medium": 10.0, "high": 1.0}[noise], "planned": len(values), **facts}
    mean, sd = mean_sd(values)
    places = list(range(len(values))) if seeds is None else seeds
    return row(method, 8, mean, noise=noise, sd=sd, seeds=len(values), values=values, value_seeds=places, **known)


def noise_texts(*rows: Row) -> tuple[Table, dict[str, list[str]]]:
    (table,) = build_noise_tables(rows, AUROC)
    return table, {method: [entry.text for entry in table.row(method)] for method in table.methods}


def test_a_noise_table_has_the_same_seeds_along_a_line() -> None:
    easy = [80.0, 82.0, 84.0, 99.0, 99.0]  # seeds 3 and 4 have no number with noise
    hard = [90.0, 90.0, 90.0, 10.0, 10.0]
    table, texts = noise_texts(
        level("a", easy), level("b", hard), level("a", easy[:3], "high"), level("b", hard[:3], "high")
    )
    assert texts == {"a": ["82.00 (2.00)"] * 2, "b": ["90.00 (0.00)"] * 2}
    assert table.title == "toy · bag 8 · seeds 0-2 · AUROC % · selection rule: bags"
    assert [table.entries["b", noise].mark for noise in ("none", "high")] == ["best", "best"]
    assert table.notes == [
        "every method with the seeds that it has at all of its noise levels, so that a line can be read along"
    ]
    assert "92.80" not in to_latex([table]) + to_markdown([table])
    assert "seeds 0-2" in to_latex([table]).splitlines()[0]


def test_a_noise_table_of_equal_seeds_says_nothing_of_them() -> None:
    table, texts = noise_texts(level("a", [80.0, 82.0]), level("a", [70.0, 72.0], "high"))
    assert texts == {"a": ["81.00 (1.41)", "71.00 (1.41)"]}
    assert table.title == "toy · bag 8 · AUROC % · selection rule: bags"
    assert table.notes == []


def test_other_seeds_than_the_title_names_are_told_in_a_noise_table() -> None:
    tuned = level("tuned", [88.0], options={"params": "tuned-bags"})
    _, texts = noise_texts(
        *(level(m, [80.0, 82.0, 84.0, 99.0, 99.0]) for m in "ab"),
        *(level(m, [70.0, 72.0, 74.0], noise) for m in "ab" for noise in ("medium", "high")),
        level("c", [60.0, 62.0, 64.0]),
        level("c", [50.0, 52.0], "high", seeds=[0, 2], planned=3, status="partial", reasons=["too long"]),
        tuned,
        level("d", [40.0], seeds=[7]),
        level("d", [40.0, 41.0], "high"),
    )
    assert texts["a"] == ["82.00 (2.00)", "72.00 (2.00)", "72.00 (2.00)"]
    assert texts["c"] == ["62.00 (2.83) [seeds 0, 2 of 3]", "", "51.00 (1.41) [2/3, seeds 0, 2 of 3]"]
    assert texts["tuned"] == ["88.00 [1 seed]", "", ""]
    assert texts["d"] == ["no shared seed", "", "no shared seed"]


def numbers(text: str) -> list[str]:
    return re.findall(r"\d+\.\d+", text)


def test_a_missing_cell_is_never_a_number_in_any_format() -> None:
    rows = [row("a", mean=None, status=s, bag_size=b) for b, s in ((8, "missing"), (9, "failed"), (10, "undefined"))]
    table = one_table(*rows)
    for text in (
        to_markdown([table]),
        to_latex([table]),
        printed(table),
        rows_as_text(rows, "csv"),
        rows_as_text(rows, "json"),
    ):
        assert numbers(text) == []
        for status in ("missing", "failed", "undefined"):
            assert status in text
    assert all(item["mean"] is None and item["sd"] is None for item in json.loads(rows_as_text(rows, "json")))
    assert all(line["mean"] == "" for line in csv.DictReader(io.StringIO(rows_as_text(rows, "csv"))))


# -- formats -----------------------------------------------------------------------------------------------------------


def test_markdown() -> None:
    lines = to_markdown([one_table(*MIXED)]).splitlines()
    assert lines[0].startswith("**toy · AUROC %")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert cells[0] == ["method", "bag 8", "bag 32", "bag 128"]
    assert cells[2] == ["good", "<u>91.23 (0.50)</u>", "85.00 [1/3]", ""]
    assert cells[3] == ["better", "**92.00 (0.50)**", "timeout", ""]
    assert cells[4] == ["worse", "80.00 (0.50)", "", "missing"]
    assert lines[-1] == "- better, bag size 32: timeout: took more than 1 h"


def test_a_bar_does_not_break_a_markdown_row() -> None:
    text = to_markdown([one_table(row("a[x=b|c]"))])
    assert r"a[x=b\|c]" in text


def test_latex() -> None:
    text = to_latex([one_table(*MIXED, row("snake_case[share=5%]", 8, 70.0))])
    assert text.startswith("% toy")
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\hline")] == [1, 1, 1, 0]
    assert r"\begin{tabular}{lrrr}" in text
    assert r"\textbf{92.00 (0.50)}" in text
    assert r"\underline{91.23 (0.50)}" in text
    assert r"snake\_case[share=5\%]" in text
    body = [line for line in text.splitlines() if line.rstrip().endswith(r"\\")]
    assert len(body) == 5
    assert all(line.count("&") == 3 for line in body)


def test_csv() -> None:
    lines = list(csv.DictReader(io.StringIO(rows_as_text([*MIXED, row('odd,"name"')], "csv"))))
    assert set(lines[0]) >= KEYS
    assert len(lines) == len(MIXED) + 1
    assert float(lines[0]["mean"]) == 91.234  # all digits
    assert lines[4]["status"] == "timeout"
    assert lines[-1]["method"] == 'odd,"name"'


def test_json() -> None:
    items = json.loads(rows_as_text(MIXED, "json"))
    assert len(items) == len(MIXED)
    assert all(set(item) >= KEYS for item in items)
    assert items[0]["mean"] == 91.234
    assert items[4]["reasons"] == ["took more than 1 h"]
    assert [item["oracle"] for item in items] == [False] * 6 + [True] * 2


def test_nothing_to_show_is_not_an_error() -> None:
    assert build_tables([], AUROC) == []
    assert to_markdown([]) == ""
    assert json.loads(rows_as_text([], "json")) == []
    assert rows_as_text([], "csv").startswith("dataset,method,")
    only_bound = one_table(row("bound", 1, 99.0, oracle=True))
    assert "bound 99.00" in to_markdown([only_bound])
    assert "bound 99.00" in printed(only_bound)


@pytest.mark.parametrize(("width", "terminal"), [(120, True), (120, False), (20, False), (50, True)])
def test_the_terminal_shows_every_entry_whole(width: int, terminal: bool) -> None:
    text = printed(one_table(*MIXED), width, terminal)
    for word in ("good", "better", "worse", "91.23", "(0.50)", "92.00", "timeout", "missing", "[1/3]", "bound 99.00"):
        assert word in text
    assert "…" not in text


def test_the_terminal_does_not_read_names_as_markup() -> None:
    assert "dllp[bold]" in printed(one_table(row("dllp[bold]")))


def test_the_terminal_shows_the_first_notes_and_counts_the_others() -> None:
    rows = [row("a", b, None, status="failed", reasons=[f"reason {b}"]) for b in range(1, 12)]
    text = printed(one_table(*rows), 200)
    assert "reason 8" in text
    assert "reason 9" not in text
    assert "and 3 more" in text


def test_without_any_number_the_rules_are_those_that_every_cell_has() -> None:
    registry = load_registry()
    shown = choose(registry, []).rules
    assert "bags" in shown
    assert not [name for name in shown if registry.rules[name].cross_validated or registry.rules[name].on_request]
    assert [spec.name for spec in registry.rules.specs if spec.cross_validated]
