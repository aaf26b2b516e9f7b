"""The table of a publication's protocol: which row stands in which column, and what is said of how sure it is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from cli_runner import llpbench

from llpbench import Reference
from llpbench.board.maths.bootstrap import interval_over_rows
from llpbench.board.protocol_tables import protocol_tables
from llpbench.contracts.result import CellResult, Selected
from llpbench.report.tables import Table, to_latex, to_markdown
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import Row

AUROC = MetricStyle("auroc", words="AUROC")
PLUGIN = Path(__file__).parents[1] / "support" / "tunable" / "tunable.py"


def row(method: str, rule: str, mean: float | None, params: str = "", seeds: int = 3, **facts: object) -> Row:
    known: dict[str, object] = {
        "dataset": "toy",
        "base_dataset": "toy",
        "bag_size": 8,
        "noise": "none",
        "metric": "auroc",
        "unit": "%",
        "base_method": method.partition("[")[0],
        "backend": "jax",
        "options": {"params": params} if params else {},
        "sd": 0.5 if seeds > 1 else None,
        "seeds": 0 if mean is None else seeds,
        "planned": seeds,
        "values": [] if mean is None else [mean] * seeds,
        "value_seeds": [] if mean is None else list(range(seeds)),
        "status": "timeout" if mean is None else "ok",
        "cell_ids": [f"{method}-{params}-{seed}" for seed in range(seeds)],
    }
    label = f"{method}[params={params}]" if params else method
    return Row(method=label, rule=rule, mean=mean, **{**known, **facts})  # type: ignore[arg-type]


def reference(method: str, mean: float | None, bag_size: int = 8, note: str = "") -> Reference:
    return Reference(
        source="Somebody 2024",
        dataset="toy",
        title=method.upper(),
        method=method,
        bag_size=bag_size,
        metric="auroc",
        mean=mean,
        rule="instances",
        note=note,
    )


def rows_of(method: str, shipped: float, by_bags: float, by_labels: float, **facts: int) -> list[Row]:
    """A method as three runs leave it: every cell has a number under both rules, only one of which is shown."""
    return [
        *(row(method, rule, value, **facts) for rule, value in (("bags", shipped), ("instances", 11.0))),
        *(row(method, rule, value, "tuned-bags", **facts) for rule, value in (("bags", by_bags), ("instances", 22.0))),
        *(
            row(method, rule, value, "tuned-instances", **facts)
            for rule, value in (("bags", 33.0), ("instances", by_labels))
        ),
    ]


def texts(table: Table, method: str) -> list[str]:
    return [entry.text for entry in table.row(method)]


def test_each_row_stands_where_it_was_tuned_and_selected() -> None:
    rows = [*rows_of("a", 80.0, 81.0, 84.0), *rows_of("b", 70.0, 82.0, 83.0)]
    known = [reference("a", 0.9), reference("b", None, note="ran out of memory"), reference("a", 0.1, bag_size=32)]
    (table,) = protocol_tables(rows, known, AUROC)
    assert list(table.columns.values()) == [
        "tuned and selected by instances",
        "Somebody 2024",
        "tuned and selected by bags",
        "as shipped, selected by bags",
    ]
    assert table.methods == ["a", "b"]
    assert texts(table, "a") == ["84.00 (0.50)", "90.00", "81.00 (0.50)", "80.00 (0.50)"]
    assert texts(table, "b") == ["83.00 (0.50)", "ran out of memory", "82.00 (0.50)", "70.00 (0.50)"]
    assert [entry.mark for entry in table.row("a")] == ["best", "", "second", "best"]
    for text in (to_markdown([table]), to_latex([table])):
        assert "11.00" not in text
        assert "33.00" not in text
        assert "84.00" in text


def test_settings_are_tables_of_their_own_and_what_is_missing_is_told() -> None:
    rows = [
        row("a", "bags", 80.0),
        row("a", "bags", 70.0, bag_size=32),
        row("a", "bags", None, "tuned-bags", bag_size=32, reasons=["took more than 1 h"]),
        row("bound", "bags", 99.0, oracle=True),
        row("c[lr=0.1]", "bags", 60.0, options={"lr": "0.1"}),
        msgspec.structs.replace(
            row("c", "bags", 61.0, options={"lr": "0.1", "params": "tuned-bags"}), method="c[lr=0.1;params=tuned-bags]"
        ),
    ]
    small, large = protocol_tables(rows, [], AUROC)
    assert small.title == "toy · bag 8 · AUROC %"
    assert small.methods == ["a", "c[lr=0.1]"]
    assert list(small.columns.values()) == ["tuned and selected by bags", "as shipped, selected by bags"]
    assert texts(small, "c[lr=0.1]") == ["61.00 (0.50)", "60.00 (0.50)"]
    assert texts(large, "a") == ["timeout", "70.00 (0.50)"]
    assert any("took more than 1 h" in note for note in large.notes)


def test_a_single_seed_has_the_interval_of_its_own_cell_and_rule() -> None:
    asked: list[tuple[str, str]] = []

    def interval(cell_id: str, rule: str) -> tuple[float, float] | None:
        asked.append((cell_id, rule))
        return None if "bags" in cell_id else (79.123, 81.456)

    (table,) = protocol_tables(rows_of("a", 80.0, 81.0, 84.0, seeds=1), [reference("a", 0.9)], AUROC, interval)
    assert texts(table, "a") == ["84.00 [79.12, 81.46]", "90.00", "81.00", "80.00 [79.12, 81.46]"]
    assert sorted(asked) == [("a--0", "bags"), ("a-tuned-bags-0", "bags"), ("a-tuned-instances-0", "instances")]
    assert [note[:3] for note in table.notes] == ["[…]"]
    asked.clear()
    (table,) = protocol_tables(rows_of("a", 80.0, 81.0, 84.0), [], AUROC, interval)
    assert asked == []  # several seeds tell more
    assert [note[:3] for note in table.notes] == ["(…)"]


def test_the_interval_over_test_rows_is_as_wide_as_theory_has_it(tmp_path: Path) -> None:
    """The spread of an AUROC of half over n positives and m negatives: variance (n + m + 1) / (12 n m)."""
    rng = np.random.default_rng(5)
    labels = rng.permutation(np.repeat([0, 1], [300, 500]))
    scores = rng.random(800)
    np.savez(tmp_path / "cell.npz", labels=labels, bags=scores)
    cell = {"dataset": "d", "method": "m", "bag_size": 8, "seed": 0}
    plain = {"id": "0" * 16, "cell": cell, "status": "ok", "seeds": {"split": 3}}
    result = msgspec.convert(plain, CellResult)
    result.selected = {"bags": Selected(report=0, metrics={"auroc": 0.5})}
    low, high = interval_over_rows(tmp_path / "cell.npz", result, "bags") or (0.0, 0.0)
    assert (low + high) / 2 == pytest.approx(0.5)
    assert high - low == pytest.approx(2 * 1.96 * (801 / (12 * 300 * 500)) ** 0.5, rel=0.25)
    assert interval_over_rows(tmp_path / "cell.npz", result, "instances") is None
    assert interval_over_rows(tmp_path / "none.npz", result, "bags") is None


@pytest.mark.slow
def test_a_protocol_from_its_run_file_to_its_table(tmp_path: Path) -> None:
    (tmp_path / "protocol.toml").write_text(
        'methods = ["tilt"]\ndatasets = ["halves"]\nbags = [4]\nseeds = 1\njobs = 1\n'
        '[search]\ntrials = 4\nrule = "all"\nshared = true\nper_seed = true\n[search.ranges]\nslope = [-1, 2]\n'
    )
    common = ("--plugin", str(PLUGIN), "--config", "protocol.toml", "--quiet")
    done = llpbench("tune", *common, "--out", "tuned", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "each trial serves the rules bags and instances" in done.stdout
    assert len(list((tmp_path / "tuned" / "cells").glob("*.json"))) == 4
    for more in ((), ("--params", "tuned"), ("--params", "tuned", "--params-rule", "instances")):
        assert llpbench("run", *common, "--out", "out", *more, cwd=tmp_path).returncode == 0
    shown = llpbench("table", "out", "--kind", "protocol", "--plugin", str(PLUGIN), cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "halves · bag 4 · AUROC %" in shown.stdout
    for heading in ("tuned and selected by instances", "tuned and selected by bags", "as shipped, selected by bags"):
        assert heading in shown.stdout
    assert "95 % interval" in shown.stdout
    by_log_loss = llpbench(
        "table",
        "out",
        "--kind",
        "protocol",
        "--metric",
        "log_loss",
        "--format",
        "csv",
        "--plugin",
        str(PLUGIN),
        cwd=tmp_path,
    )
    assert "halves" in by_log_loss.stdout
