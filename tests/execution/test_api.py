"""``llpbench.run`` and ``llpbench.tune``: what the command line does, as Python calls."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from cli_runner import FAULTY, llpbench, table
from helpers import PATIENCE

from llpbench import Results, UsageError, run, tune
from llpbench.results.store import Store
from llpbench.tuning.request import TuneRequest
from llpbench.tuning.verb import tune as tune_command

TUNABLE = Path(__file__).parents[1] / "support" / "tunable" / "tunable.py"
SMALL: dict[str, Any] = {"datasets": "synthetic[rows=600;dim=4]", "bags": [8, 32], "seeds": 2, "progress": False}
METHODS = "bp[epochs=2;iterations=1],dllp[epochs=2]"
TIMES = {"started", "phases", "machine", "limits"}


def content(folder: Path) -> dict[str, Any]:
    """Everything that results say, but for clocks and memory."""

    def fields(result: Any) -> dict[str, Any]:
        found = msgspec.to_builtins(result)
        # A residual of message passing is the difference of nearly equal numbers: its last digits tell whether numba
        # compiled in this process or loaded what another had compiled.
        found["notes"] = {k: pytest.approx(v) if isinstance(v, float) else v for k, v in found.get("notes", {}).items()}
        return {k: v for k, v in found.items() if k not in TIMES and not k.endswith(("_seconds", "_mb"))}

    return {result.id: fields(result) for result in Store(folder).results()}


@pytest.mark.slow
def test_run_returns_the_cells_of_the_command(tmp_path: Path) -> None:
    results = run(METHODS, out=tmp_path / "called", **SMALL)
    command = ["run", "--methods", METHODS, "--datasets", SMALL["datasets"], "--bags", "8,32", "--seeds", "2"]
    done = llpbench(*command, "--out", "typed", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    called, typed = content(tmp_path / "called"), content(tmp_path / "typed")
    assert len(called) == 8
    assert called == typed
    assert table(tmp_path / "called") == table(tmp_path / "typed")
    assert results.failed == 0


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(["mean-ridge", "best-feature"], out=tmp_path_factory.mktemp("run") / "out", noise="none,high", **SMALL)


@pytest.mark.slow
def test_cells_has_one_row_per_cell_and_rule(results: Results) -> None:
    cells = results.cells
    assert len(cells) == 2 * 2 * 2 * 2 * 2  # methods, noise levels, bag sizes, seeds, rules
    assert set(cells["rule"]) == {"bags", "instances"}
    assert cells.loc[cells["method"] == "mean-ridge", "auroc"].between(0.5, 1).all()
    assert set(cells.loc[cells["noise"] == "high", "epsilon"]) == {1.0}
    assert cells.loc[cells["noise"] == "none", "epsilon"].isna().all()
    assert (cells["status"] == "ok").all()


def test_table_equals_the_printed_one(results: Results) -> None:
    frame = results.table()
    assert list(frame.columns) == [8, 32]
    done = llpbench("table", str(results.folder), "--rule", "bags", "--format", "markdown", cwd=results.folder.parent)
    assert results.table(format="markdown").strip() == done.stdout.strip()
    for text in frame.to_numpy().ravel():
        assert text in done.stdout
    by_log_loss = results.table("log_loss", rule="all")
    assert len(by_log_loss) == 2 * len(frame)
    assert not by_log_loss.equals(frame)
    html = results._repr_html_()
    assert "16 with numbers" in html
    assert frame.iloc[0, 0] in html
    with pytest.raises(UsageError, match="unknown metric 'aurok'"):
        results.table("aurok")
    with pytest.raises(UsageError, match="unknown format 'word'"):
        results.table(format="word")


def test_curve_holds_the_means_over_seeds(results: Results) -> None:
    curve = results.curve(rule="instances").set_index(["method", "noise", "bag_size"])
    cells = results.cells
    one = cells[(cells["rule"] == "instances") & (cells["method"] == "mean-ridge") & (cells["noise"] == "high")]
    expected = 100 * one[one["bag_size"] == 8]["auroc"].mean()
    assert curve.loc[("mean-ridge", "high", 8), "mean"] == pytest.approx(expected)
    assert curve["seeds"].eq(2).all()


def test_plot_names_the_missing_package(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'llpbench\[plot\]'"):
        results.plot()


def test_plot_has_a_line_for_each_method(results: Results) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = results.plot()
    assert len(axes) == 2  # noise levels
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["mean-ridge", "best-feature"]
    assert axes[0].get_ylabel() == "AUROC %, rule bags"
    assert [tick.get_text() for tick in axes[0].get_xticklabels()] == ["8", "32"]


def test_every_kind_of_chart_has_a_panel_for_each_setting(results: Results, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    panels = {"bags": 2, "noise": 2, "time": 4, "curves": 4}  # two bag sizes, two noise levels
    for kind, number in panels.items():
        assert sum(axis.get_visible() for axis in results.plot(kind)) == number
    with pytest.raises(UsageError, match="unknown kind of chart 'pie'"):
        results.plot("pie")
    done = llpbench("plot", str(results.folder), "--bags", "8", "-o", "chart.svg", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first = (tmp_path / "chart.svg").read_bytes()
    assert llpbench("plot", str(results.folder), "-b", "8", "-o", "chart.svg", cwd=tmp_path).returncode == 0
    assert (tmp_path / "chart.svg").read_bytes() == first
    nothing = llpbench("plot", str(results.folder), "--bags", "7", "-o", "chart.svg", cwd=tmp_path)
    assert (nothing.returncode, "nothing to draw" in nothing.stderr) == (2, True)


def test_history_has_every_report_and_marks_the_selected_one(results: Results) -> None:
    history = results.history("instances")
    by_id = {result.id: result for result in results.results}
    assert history.groupby("id").size().to_dict() == {i: len(r.history) for i, r in by_id.items()}
    chosen = history[history["selected"]].set_index("id")
    assert chosen["report"].to_dict() == {i: r.selected["instances"].report for i, r in by_id.items()}
    assert all(value == by_id[i].selected["instances"].value for i, value in chosen["value"].items())


def test_curves_are_cut_where_a_stage_starts(results: Results) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    fit = msgspec.structs.replace(
        next(r for r in results.results if r.cell.method == "mean-ridge"),
        history=[{"bags": value} for value in (3.0, 2.0, 5.0, 4.0)],
        stage_starts={"one": 0, "two": 2},
    )
    staged = copy.copy(results)
    staged.results = [fit]
    assert list(staged.history()["stage"]) == ["one", "one", "two", "two"]
    (axis, *_) = staged.plot("curves")
    lines = [list(line.get_ydata()) for line in axis.lines if line.get_linestyle() == "-"]
    assert lines == [[3.0, 2.0], [5.0, 4.0]]
    assert [text.get_text() for text in axis.texts] == ["two"]


def test_folder_can_be_read_again(results: Results) -> None:
    again = Results.of(results.folder)
    pd.testing.assert_frame_equal(again.cells, results.cells)
    assert repr(again) == repr(results)


def test_same_call_keeps_finished_cells(tmp_path: Path) -> None:
    first = run("mean-ridge", out=tmp_path / "out", **SMALL)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}
    second = run("mean-ridge", out=tmp_path / "out", **SMALL)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()} == before
    pd.testing.assert_frame_equal(first.cells, second.cells)
    (command,) = Store(tmp_path / "out").manifest().commands
    assert str(command).startswith("llpbench.run(methods='mean-ridge', datasets=")


class Interrupted:
    """A user's view with two of the methods, who presses Ctrl-C when the second cell has ended."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.notes: list[str] = []

    def finished(self, result: Any) -> None:
        self.ended.append(result.id)
        if len(self.ended) == 2:
            raise KeyboardInterrupt

    def note(self, message: str) -> None:
        self.notes.append(message)


@pytest.mark.slow
def test_interrupt_keeps_finished_cells(tmp_path: Path) -> None:
    view = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run("mean-ridge", out=tmp_path / "out", **{**SMALL, "progress": view})
    cells = tmp_path / "out" / "cells"
    kept = {path.stem: path.stat().st_mtime_ns for path in cells.iterdir()}
    assert len(view.ended) == 2
    assert set(view.ended) <= set(kept)
    assert "the same command goes on" in view.notes[-1]
    assert list((tmp_path / "out" / "claims").iterdir()) == []
    whole = run("mean-ridge", out=tmp_path / "out", **SMALL)
    assert whole.cells["status"].eq("ok").all()
    assert len(whole.results) == 4
    assert all((cells / f"{name}.json").stat().st_mtime_ns == when for name, when in kept.items())


def test_failures_are_in_the_table_with_their_reason(tmp_path: Path) -> None:
    found = run("faulty-good,faulty-raise", out=tmp_path / "out", plugins=FAULTY, **{**SMALL, "bags": 8, "seeds": 1})
    assert found.failed == 1
    cells = found.cells.set_index("method")
    assert cells.loc["faulty-raise", "reason"] == "ValueError: the method is unhappy"
    assert found.table().to_numpy().ravel().tolist().count("failed") == 1


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_run_works_in_scripts_without_main_guard(tmp_path: Path, start: str) -> None:
    script = "import os, llpbench\nforks = []\nos.register_at_fork(before=lambda: forks.append(1))\n"
    script += "found = llpbench.run('mean-ridge', datasets='synthetic[rows=600]', bags=8, seeds=1, "
    script += f"start={start!r}, out='out')\nprint(len(found.cells), forks)\n"
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "2 []\n", done.stderr  # and a process that may be full of threads is not forked
    assert "1 cell, 0 already done" in done.stderr  # progress as on the command line


def test_run_rejects_invalid_settings_before_running(tmp_path: Path) -> None:
    for wrong, words in (
        ({"methods": "mean-rigde"}, "Did you mean 'mean-ridge'"),
        ({"methods": "mean-ridge", "bags": 0}, "bag size 0 is not possible"),
        ({"methods": "mean-ridge", "rerun": "sometimes"}, "sometimes"),
        ({"methods": "mean-ridge", "timeout": "soon"}, "'soon' is not a positive amount"),
        ({"methods": "mean-ridge", "executor": "lokal"}, "Did you mean 'local'"),
        ({}, "no methods given"),
    ):
        with pytest.raises(UsageError, match=words):
            run(**{**SMALL, "out": tmp_path / "out", **wrong})
    assert not (tmp_path / "out" / "cells").exists()
    with pytest.raises(UsageError, match=r"unknown setting 'dataset'\. Did you mean 'datasets'"):
        tune("mean-ridge", dataset="synthetic", out=tmp_path / "tuned")
    with pytest.raises(UsageError, match=r"unknown sampler 'tpee'\. Did you mean 'tpe'"):
        tune("mean-ridge", sampler="tpee", out=tmp_path / "tuned")
    with pytest.raises(UsageError, match="trials must be at least 1, got 0"):
        tune("mean-ridge", trials=0, out=tmp_path / "tuned")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[TuneRequest]:
    """What ``tune`` is about to run: it ends there."""
    found: list[TuneRequest] = []

    def end(request: TuneRequest, *_: object) -> None:
        found.append(request)
        sys.exit()

    monkeypatch.setattr(TuneRequest, "run", end)
    return found


def test_tune_receives_ranges_unchanged(asked: list[TuneRequest], tmp_path: Path) -> None:
    ranges = {"tilt": {"slope": (np.float64(-0.5), 0.5)}, "slope": np.array([-1.0, 1.0])}
    with pytest.raises(SystemExit):
        tune("tilt", ranges=ranges, datasets="halves", bags=4, plugins=TUNABLE, out=tmp_path)
    assert asked[0].settings.ranges == {"tilt": {"slope": [-0.5, 0.5]}, "slope": [-1.0, 1.0]}


def test_tune_writes_to_the_folder_of_its_file_unless_overridden(asked: list[TuneRequest], tmp_path: Path) -> None:
    file, plain = tmp_path / "run.toml", tmp_path / "plain.toml"
    plain.write_text('methods = ["tilt"]\ndatasets = ["halves"]\nbags = [4]\n')
    file.write_text(f'{plain.read_text()}out = "searches"\n')
    for config, out, folder in ((file, None, "searches"), (file, "mine", "mine"), (plain, None, "tuned")):
        with pytest.raises(SystemExit):
            tune(config=config, out=out, plugins=TUNABLE)
        flags = ["--config", str(config), "--plugin", str(TUNABLE), *(["--out", out] if out else [])]
        with pytest.raises(SystemExit):
            tune_command.main(flags, standalone_mode=False)
        assert [request.store.root for request in asked] == [Path(folder)] * 2
        asked.clear()


@pytest.mark.slow
def test_tune_can_be_called_from_python(tmp_path: Path) -> None:
    settings = {"datasets": "halves", "bags": [4], "plugins": [TUNABLE], "progress": False}
    found = tune("tilt", trials=4, rule="all", out=tmp_path / "tuned", **settings)
    assert found.complete
    assert list(found.chosen["rule"]) == ["bags", "instances"]
    assert len(found.trials) == 8
    assert found.trials["status"].isin(["ok", "pruned"]).all()
    used = run("tilt", seeds=1, params=found.folder, out=tmp_path / "out", **settings)
    assert used.cells["method"].eq("tilt[params=tuned-bags]").all()
