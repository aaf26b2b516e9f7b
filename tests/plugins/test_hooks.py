"""Every hook, through a plugin that pip installed and the real command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli_runner import llpbench, table
from helpers import make_cell, make_result
from plugin_install import SOURCES, with_module, with_plugins

from llpbench import LLPBenchError
from llpbench.plugins import hooks
from llpbench.plugins.registry import Registry, load_registry
from llpbench.results.store import Store

ALL_GOOD = ("extras", "good-dataset", "good-method")
SMALL = ("--datasets", "synthetic[rows=600]", "--bags", "8", "--seeds", "1", "--quiet")


def listed(kind: str, *plugins: str) -> dict[str, dict[str, object]]:
    done = llpbench("list", "--json", cwd=Path.cwd(), **with_plugins(*plugins))
    assert done.returncode == 0, done.stderr
    return {item["name"]: item for item in json.loads(done.stdout)[kind]}


@pytest.fixture(scope="module")
def plugin_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One grid in which every part comes from a plugin: method, dataset, metric, scheme, executor and tracker."""
    folder = tmp_path_factory.mktemp("run")
    arguments = ["--methods", "bag-means[penalty=0.001;10]", "--datasets", "two-clouds", "--bags", "6", "--seeds", "2"]
    arguments += ["--schemes", "in-order[stride=5]", "--executor", "inline[greeting=here]", "--out", "out", "--quiet"]
    environment = {**with_plugins(*ALL_GOOD), "LLP_EXTRAS_LOG": str(folder / "cells.log")}
    done = llpbench("run", *arguments, cwd=folder, **environment)
    assert done.returncode == 0, done.stderr
    (folder / "printed.txt").write_text(done.stdout)
    return folder


def results(folder: Path) -> list[dict[str, object]]:
    files = sorted((folder / "out" / "cells").glob("*.json"))
    return [json.loads(path.read_text())["result"] for path in files]


@pytest.mark.slow
def test_hook_llpbench_methods(tmp_path: Path) -> None:
    entry = listed("methods", "good-method")["bag-means"]
    assert entry["distribution"] == "llpbench-good-method 1.2.0"
    assert entry["plugin"] == "good-method"
    assert [p["name"] for p in entry["params"]] == ["penalty"]
    done = llpbench(
        "run", "--methods", "bag-means", *SMALL, "--out", "out", cwd=tmp_path, **with_plugins("good-method")
    )
    assert done.returncode == 0, done.stderr
    (row,) = table(tmp_path / "out", "--rule", "bags")
    assert (row["method"], row["status"], row["seeds"]) == ("bag-means", "ok", 1)
    assert row["mean"] > 65  # the clouds are 2 sd apart: a working method is far from chance
    versions = results(tmp_path)[0]["versions"]
    assert versions["llpbench-good-method"] == "1.2.0"


def test_example_method_is_short() -> None:
    lines = (SOURCES / "good-method" / "llp_good_method" / "__init__.py").read_text().splitlines()
    assert len(lines) < 30


@pytest.mark.slow
def test_hook_llpbench_datasets(plugin_run: Path) -> None:
    entry = listed("datasets", "good-dataset")["two-clouds"]
    assert entry["distribution"] == "llpbench-good-dataset 0.3.0"
    found = results(plugin_run)
    assert {r["cell"]["dataset"] for r in found} == {"two-clouds"}
    assert all(r["rows"] == {"train": 480, "valid": 60, "test": 60} for r in found)
    assert all(r["selected"]["bags"]["metrics"]["auroc"] > 0.8 for r in found)


def test_hook_llpbench_metrics(plugin_run: Path) -> None:
    assert listed("metrics", "extras")["positive_share"]["plugin"] == "extras"
    for result in results(plugin_run):
        assert 0 < result["selected"]["bags"]["metrics"]["positive_share"] < 1
    printed = ["table", "out", "--metric", "positive_share", "--format", "json"]
    done = llpbench(*printed, cwd=plugin_run, **with_plugins(*ALL_GOOD))
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == 6  # two settings of the method, three rules
    assert all(row["metric"] == "positive_share" and 0 < row["mean"] < 100 for row in rows)
    without = llpbench(*printed, cwd=plugin_run)
    assert without.returncode == 2
    assert "unknown metric 'positive_share'" in without.stderr


def test_hook_llpbench_bag_schemes(plugin_run: Path) -> None:
    assert [p["name"] for p in listed("schemes", "extras")["in-order"]["params"]] == ["stride"]
    for result in results(plugin_run):
        assert result["cell"]["scheme_options"] == {"stride": 5}
        assert result["dataset_label"] == "two-clouds, in-order[stride=5]"
        assert result["bags"] == {"train": 80, "valid": 10, "test": 10}


def test_hook_llpbench_selection_rules(plugin_run: Path) -> None:
    assert listed("rules", "extras")["bag-error"]["plugin"] == "extras"
    for result in results(plugin_run):
        assert list(result["selected"]) == ["bag-error", "bags", "counts", "instances"]  # keys of a file are sorted
        values = [report["bag-error"] for report in result["history"]]
        assert result["selected"]["bag-error"]["value"] == min(values)
    rows = table(plugin_run / "out", "--rule", "bag-error", **with_plugins(*ALL_GOOD))
    assert [row["rule"] for row in rows] == ["bag-error"] * 2
    without = llpbench("table", "out", "--rule", "bag-error", cwd=plugin_run)
    assert without.returncode == 2
    assert "unknown selection rule 'bag-error'" in without.stderr
    # the results stay readable where nobody knows the rule
    assert {row["rule"] for row in table(plugin_run / "out")} == {"bags", "instances"}


def test_hook_llpbench_executors(plugin_run: Path, tmp_path: Path) -> None:
    found = results(plugin_run)
    assert (plugin_run / "printed.txt").read_text().count("here\n") == 4  # its own option reached it
    assert len(found) == 4
    assert all(r["status"] == "ok" for r in found)
    # No process of its own: an inline cell leaves no server and no log behind, and nobody else answers to the name.
    done = llpbench("run", "--methods", "mean-ridge", *SMALL, "--executor", "inline", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown executor 'inline'" in done.stderr
    assert not list(tmp_path.glob("results/*/cells/*.json"))


def test_hook_llpbench_cell_finished(plugin_run: Path) -> None:
    lines = (plugin_run / "cells.log").read_text().splitlines()
    assert sorted(lines) == sorted(f"bag-means two-clouds 6 {seed} ok" for seed in (0, 1) for _ in range(2))


@pytest.mark.slow
def test_error_in_a_tracker_does_not_fail_the_run(tmp_path: Path) -> None:
    tracker = (
        "from llpbench import hookimpl\n@hookimpl\ndef llpbench_cell_finished(result):\n    raise OSError('no disk')\n"
    )
    (tmp_path / "tracker.py").write_text(tracker)
    arguments = ["--methods", "bag-means", *SMALL, "--executor", "inline", "--plugin", "tracker.py", "--out", "out"]
    done = llpbench("run", *arguments, cwd=tmp_path, **with_plugins("extras", "good-method"))
    assert done.returncode == 0, done.stderr
    assert "tracker failed on a finished cell: OSError: no disk" in done.stderr
    assert [r["status"] for r in results(tmp_path)] == ["ok"]


def test_unresponsive_tracker_is_no_longer_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = (
        "import threading\nfrom llpbench import hookimpl\nnever, calls = threading.Event(), []\n\n"
        "@hookimpl\ndef llpbench_cell_finished(cell, result):\n"
        "    calls.append(threading.current_thread().name)\n    never.wait()\n"
    )
    good = source.replace("    never.wait()\n", "")
    for name, text in (("silent_tracker", source), ("good_tracker", good)):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(hooks, "HOOK_SECONDS", 0.05)
    registry = load_registry([tmp_path / "silent_tracker.py", tmp_path / "good_tracker.py"])
    silent, fine = (sys.modules.pop(name) for name in ("silent_tracker", "good_tracker"))
    try:
        for _ in range(3):
            registry.cell_finished(make_cell(), make_result())
    finally:
        silent.never.set()
    assert len(silent.calls) == 1
    assert len(fine.calls) == 3
    assert len(set(fine.calls)) == 1  # always the same thread
    told = [message for message in caplog.messages if "silent_tracker" in message]
    assert len(told) == 1
    assert "is not notified of further cells: no answer within 0.05 seconds" in told[0]


def test_hook_llpbench_commands(tmp_path: Path) -> None:
    environment = with_plugins("extras")
    assert llpbench("hello", "bag", cwd=tmp_path, **environment).stdout == "hello bag\n"
    overview = llpbench("--help", cwd=tmp_path, **environment).stdout
    assert "hello" in overview
    assert "Greet somebody" in overview
    without = llpbench("hello", cwd=tmp_path)
    assert without.returncode == 2
    assert "unknown command 'hello'" in without.stderr


def test_failing_commands_hook_does_not_affect_other_verbs(tmp_path: Path) -> None:
    source = "from llpbench import hookimpl\n@hookimpl\ndef llpbench_commands(group):\n    1 / 0\n"
    done = llpbench("--help", cwd=tmp_path, **with_module(tmp_path, "clumsy", source))
    assert done.returncode == 0
    assert "doctor" in done.stdout
    assert "clumsy failed to add its commands: ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("verb", ["list", "plugins"])
def test_plugin_cannot_replace_a_built_in_verb(tmp_path: Path, verb: str) -> None:
    source = (
        "import click\nfrom llpbench import hookimpl\n@hookimpl\ndef llpbench_commands(group):\n"
        f"    @group.command('{verb}')\n    def other():\n        click.echo('mine')\n"
    )
    done = llpbench(verb, cwd=tmp_path, **with_module(tmp_path, "greedy", source))
    assert done.returncode == 0
    assert "mean-ridge" in done.stdout
    assert "mine" not in done.stdout


BROKEN_AND_GOOD = """
from llpbench import hookimpl

@hookimpl
def {hook}({argument}):
    {body}
"""


def with_broken_and_good(tmp_path: Path, hook: str, argument: str, good: str) -> Registry:
    """A registry with two plugins that implement a hook: the first one raises, the second one works."""
    files = []
    for name, body in ((f"broken_{hook}", "raise OSError('no disk')"), (f"good_{hook}", good)):
        files.append(tmp_path / f"{name}.py")
        files[-1].write_text(BROKEN_AND_GOOD.format(hook=hook, argument=argument, body=body))
    return load_registry(files)


def test_hook_llpbench_run_finished(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = with_broken_and_good(tmp_path, "llpbench_run_finished", "results", "return f'page of {results}'")
    for plugin in list(registry.manager.get_plugins()):
        if "llpbench.board" in getattr(plugin, "__name__", ""):
            registry.manager.unregister(plugin)
    assert registry.run_finished("a run") == ["page of a run"]  # type: ignore[arg-type]
    assert "broken_llpbench_run_finished failed on a finished run: OSError: no disk" in caplog.text


def test_hook_llpbench_published_results(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = "from helpers import make_result; return [make_result()] if folder is None else []"
    registry = with_broken_and_good(tmp_path, "llpbench_published_results", "folder", source)
    assert make_result() in registry.published_results(None)
    assert "broken_llpbench_published_results failed to give published results: OSError: no disk" in caplog.text


def test_hook_llpbench_table_kinds(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = with_broken_and_good(tmp_path, "llpbench_table_kinds", "", "return {'mine': 'my_package:tables'}")
    assert registry.table_kinds()["mine"] == "my_package:tables"
    assert "broken_llpbench_table_kinds failed to name tables: OSError: no disk" in caplog.text


def test_table_rejects_unknown_kinds(tmp_path: Path) -> None:
    Store(tmp_path / "run").plan([], "llpbench run", "")
    done = llpbench("table", "run", "--kind", "tim", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown kind of table 'tim'" in done.stderr
    assert "time" in done.stderr


def test_hook_llpbench_suite_tables(tmp_path: Path) -> None:
    source = (
        "from llpbench import hookimpl\n@hookimpl\ndef llpbench_suite_tables(suite, part, own, fmt):\n"
        "    return f'{suite.name} {part} {len(own)} {fmt}' if part == 'random' else None\n"
    )
    (tmp_path / "other_tables.py").write_text(source)
    Store(tmp_path / "run").plan([], "llpbench run", "")
    asked = ("table", "run", "--suite", "llpbench-2026.1/random", "--format", "csv", "--plugin", "other_tables.py")
    assert llpbench(*asked, cwd=tmp_path).stdout == "llpbench-2026.1 random 0 csv\n"


def test_hook_llpbench_joint_posterior(tmp_path: Path) -> None:
    (tmp_path / "exact.py").write_text(
        "from llpbench import hookimpl\n@hookimpl\ndef llpbench_joint_posterior(bags):\n    return bags\n"
    )
    found = load_registry([tmp_path / "exact.py"]).manager.hook.llpbench_joint_posterior(bags=3, log_odds=None)
    assert found == 3


def test_published_results_of_a_missing_folder_are_an_error() -> None:
    with pytest.raises(LLPBenchError, match="nowhere"):
        load_registry().published_results(Path("nowhere"))
