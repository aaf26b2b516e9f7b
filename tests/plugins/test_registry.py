"""Loading: broken, duplicate and misspelt plugins, the switches, and single files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
from cli_runner import llpbench
from plugin_install import with_module, with_plugins

from llpbench import hookimpl
from llpbench.contracts.errors import PluginError, UnknownNameError, UsageError
from llpbench.contracts.executor import ExecutorSettings
from llpbench.contracts.specs import MethodSpec
from llpbench.plugins.loading import Plugin
from llpbench.plugins.registry import Catalog, Entry, install_hint, load_registry, missing_modules

BUILT_IN = {"dllp", "mean-ridge", "supervised"}
DRY = ("run", "--datasets", "synthetic", "--bags", "8", "--seeds", "1", "--dry-run")
GOOD_FILE = """
import numpy as np
from llpbench import MethodSpec, hookimpl

class First:
    def fit(self, bags, *, monitor, seed):
        return self
    def predict_scores(self, X):
        return X[:, 0].astype(float)

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="first-column", factory="mymethod:First", scores="logit")]
"""


def listing(cwd: Path, *arguments: str, **environment: str) -> dict[str, Any]:
    done = llpbench("list", "--json", *arguments, cwd=cwd, **environment)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def names(content: dict[str, Any]) -> set[str]:
    return {item["name"] for item in content["methods"]}


def troubles(content: dict[str, Any]) -> list[dict[str, str]]:
    """Broken plugins that are not our own (that none of ours is broken has a test of its own)."""
    return [b for b in content["broken"] if not b["distribution"].startswith("llpbench 0")]


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2, a sentence and no traceback."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


# -- broken plugins ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_broken_plugin_is_reported_and_ignored(tmp_path: Path) -> None:
    environment = with_plugins("broken", "good-method")
    content = listing(tmp_path, **environment)
    assert BUILT_IN | {"bag-means"} <= names(content)
    assert troubles(content) == [
        {
            "plugin": "broken",
            "distribution": "llpbench-broken 0.0.1",
            "error": "ModuleNotFoundError: No module named 'a_module_that_nobody_has'",
        }
    ]
    text = llpbench("list", cwd=tmp_path, **environment).stdout
    assert "broken plugin broken (llpbench-broken 0.0.1): ModuleNotFoundError" in text
    doctor = llpbench("doctor", "--no-imports", cwd=tmp_path, **environment)
    assert doctor.returncode == 1
    assert "broken plugin broken (llpbench-broken 0.0.1)" in doctor.stdout
    planned = llpbench(*DRY, "--methods", "bag-means", cwd=tmp_path, **environment)
    assert planned.returncode == 0, planned.stderr
    assert "bag-means" in planned.stdout


def test_no_built_in_plugin_is_broken_or_in_conflict() -> None:
    registry = load_registry()
    assert [b for b in registry.broken if b.distribution.startswith("llpbench ")] == []
    assert registry.conflicts == []


def test_doctor_passes_without_broken_plugins(tmp_path: Path) -> None:
    done = llpbench(
        "doctor", "--no-imports", cwd=tmp_path, **with_plugins("good-method"), LLPBENCH_PLUGINS="good-method,synthetic"
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "no problems")


def test_strict_makes_a_broken_plugin_fatal(tmp_path: Path) -> None:
    few = {"LLPBENCH_PLUGINS": "broken,dllp,mean-ridge,supervised"}
    strict = {**with_plugins("broken"), **few, "LLPBENCH_STRICT": "1"}
    refused(llpbench("list", cwd=tmp_path, **strict), "'broken'", "llpbench-broken 0.0.1", "a_module_that_nobody_has")
    assert names(listing(tmp_path, **{**strict, "LLPBENCH_STRICT": "0"})) >= BUILT_IN
    assert names(listing(tmp_path, **{**strict, "LLPBENCH_BLOCK": "broken"})) >= BUILT_IN


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import sys\nsys.exit(3)\n", "SystemExit"),
        ("raise RuntimeError('two\\nlines')\n", "RuntimeError: two lines"),
        ("from llpbench import hookimpl\n", "implements no hook"),
        ("def llpbench_methods():\n    return []\n", "lacks its marker"),
        ("from llpbench import hookimpl\n@hookimpl\ndef llpbench_methods():\n    return 1 / 0\n", "ZeroDivisionError"),
        ("from llpbench import hookimpl\n@hookimpl\ndef llpbench_methods():\n    return ['dllp']\n", "not str"),
        ("from llpbench import hookimpl\n@hookimpl\ndef llpbench_methods():\n    return None\n", "TypeError"),
        (
            # pluggy refuses the second hook after it has registered the first
            "from llpbench import hookimpl\n@hookimpl\ndef llpbench_datasets():\n    return []\n"
            "@hookimpl\ndef llpbench_methods(surprise):\n    return []\n",
            "surprise",
        ),
    ],
)
def test_faulty_plugin_does_not_affect_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, error: str
) -> None:
    with_module(tmp_path, f"odd-{abs(hash(source))}", source)
    monkeypatch.syspath_prepend(tmp_path)
    registry = load_registry()
    (broken,) = [b for b in registry.broken if b.name.startswith("odd-")]
    assert error in broken.error
    assert {e.spec.name for e in registry.methods} >= BUILT_IN
    group = click.Group()
    registry.add_commands(group)
    monkeypatch.setenv("LLPBENCH_STRICT", "1")
    with pytest.raises(PluginError, match=broken.name):
        load_registry()


# -- names claimed twice ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_duplicate_name_is_an_error_that_names_both(tmp_path: Path) -> None:
    environment = with_plugins("duplicate")
    content = listing(tmp_path, **environment)
    assert "zeros" in names(content)  # what else the plugin brings is there
    (conflict,) = content["conflicts"]
    both = ("llpbench 0.1.0 (plugin 'dllp')", "llpbench-duplicate 2.0.0 (plugin 'duplicate')", "--plugin-override dllp")
    for words in both:
        assert words in conflict
    refused(llpbench(*DRY, "--methods", "dllp", cwd=tmp_path, **environment), "'dllp' is registered twice", *both)
    refused(llpbench("show", "dllp", cwd=tmp_path, **environment), *both)
    other = llpbench(*DRY, "--methods", "zeros,mean-ridge", cwd=tmp_path, **environment)
    assert other.returncode == 0, other.stderr
    doctor = llpbench("doctor", "--no-imports", cwd=tmp_path, **environment)
    assert doctor.returncode == 1
    assert "conflict: method 'dllp'" in doctor.stdout


def test_advice_of_a_conflict_resolves_it(tmp_path: Path) -> None:
    environment = with_plugins("duplicate")
    blocked = listing(tmp_path, **environment, LLPBENCH_BLOCK="duplicate")
    assert blocked["conflicts"] == []
    assert {m["name"]: m["plugin"] for m in blocked["methods"]}["dllp"] == "dllp"
    content = listing(tmp_path, "--plugin-override", "dllp", **environment)
    assert content["conflicts"] == []
    (entry,) = [m for m in content["methods"] if m["name"] == "dllp"]
    assert (entry["plugin"], entry["summary"]) == ("duplicate", "an impostor")
    planned = llpbench(*DRY, "--methods", "dllp", "--plugin-override", "dllp", cwd=tmp_path, **environment)
    assert planned.returncode == 0, planned.stderr


@pytest.mark.slow
def test_plugin_override_applies_to_cells(tmp_path: Path) -> None:
    arguments = ["run", "--methods", "dllp", "--plugin-override", "dllp", "--datasets", "synthetic[rows=600]"]
    arguments += ["--bags", "8", "--seeds", "1", "--executor", "inline", "--json"]
    done = llpbench(*arguments, cwd=tmp_path, **with_plugins("duplicate", "extras"))
    assert done.returncode == 0, done.stderr
    assert {row["mean"] for row in json.loads(done.stdout)} == {50.0}  # the impostor scores every row alike


def test_conflict_with_a_file_does_not_advise_blocking() -> None:
    def entry(distribution: str, *, from_file: bool) -> Entry[MethodSpec]:
        plugin = Plugin("p", distribution, "", click, from_file=from_file)
        return Entry(MethodSpec(name="dllp", factory="a:b"), plugin)

    shelf = Catalog[MethodSpec]("method")
    shelf.add(entry("llpbench", from_file=False), override=False)
    shelf.add(entry("./mine.py", from_file=True), override=False)
    assert "LLPBENCH_BLOCK" not in shelf.conflict("dllp")
    assert "./mine.py" in shelf.conflict("dllp")
    shelf.add(entry("llpbench-other", from_file=False), override=False)
    assert "LLPBENCH_BLOCK=p" in shelf.conflict("dllp")
    assert shelf.conflict("dllp").count("(plugin 'p')") == 3


# -- misspelt hooks ---------------------------------------------------------------------------------------------------


def test_misspelt_hook_is_reported_with_a_close_match(tmp_path: Path) -> None:
    environment = with_plugins("misspelt")
    content = listing(tmp_path, **environment)
    assert names(content) >= BUILT_IN
    assert "unheard" not in names(content)
    (broken,) = troubles(content)
    assert broken["plugin"] == "misspelt"
    assert "unknown hook 'llpbench_method'" in broken["error"]
    assert "Did you mean 'llpbench_methods'" in broken["error"]
    refused(llpbench("list", cwd=tmp_path, **environment, LLPBENCH_STRICT="1"), "llpbench_methods")


# -- switches ---------------------------------------------------------------------------------------------------------


def test_only_the_named_plugins_are_loaded(tmp_path: Path) -> None:
    environment = {**with_plugins("broken", "good-method"), "LLPBENCH_PLUGINS": "good-method, synthetic"}
    content = listing(tmp_path, **environment)
    assert names(content) == {"bag-means"}
    assert [d["name"] for d in content["datasets"]] == ["synthetic"]
    assert troubles(content) == []
    assert {m["name"] for m in content["metrics"]} >= {"auroc"}  # the harness's own plugin is always there


def test_blocked_plugins_are_left_out(tmp_path: Path) -> None:
    content = listing(tmp_path, **with_plugins("broken", "good-method"), LLPBENCH_BLOCK="broken,dllp")
    assert names(content) & {"dllp", "bag-means", "mean-ridge"} == {"bag-means", "mean-ridge"}
    assert troubles(content) == []


@pytest.mark.parametrize("variable", ["LLPBENCH_PLUGINS", "LLPBENCH_BLOCK"])
def test_unknown_names_of_plugins_to_load_are_rejected(tmp_path: Path, variable: str) -> None:
    refused(llpbench("list", cwd=tmp_path, **{variable: "mean-rigde"}), "'mean-rigde'", "Did you mean 'mean-ridge'")


# -- single files -----------------------------------------------------------------------------------------------------


def test_single_file_is_a_plugin(tmp_path: Path) -> None:
    (tmp_path / "mymethod.py").write_text(GOOD_FILE)
    (entry,) = [m for m in listing(tmp_path, "--plugin", "mymethod.py")["methods"] if m["name"] == "first-column"]
    assert entry["distribution"] == "mymethod.py"
    arguments = ["--methods", "first-column", "--datasets", "synthetic[rows=600;separation=8]", "--bags", "8"]
    done = llpbench("run", *arguments, "--seeds", "1", "--json", "--plugin", "mymethod.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {(row["method"], row["status"]) for row in json.loads(done.stdout)} == {("first-column", "ok")}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "no such file"),
        ("def broken(:\n", "SyntaxError"),
        ("x = 1\n", "implements no hook; expected one of llpbench_bag_schemes"),
        ("def llpbench_methods():\n    return []\n", "decorate it with @hookimpl"),
        (
            "from llpbench import hookimpl\n@hookimpl\ndef llpbench_metric():\n    return []\n",
            "Did you mean 'llpbench_metrics'",
        ),
        ("from llpbench import hookimpl\n@hookimpl\ndef llpbench_methods():\n    return [1]\n", "not int"),
        ("import nowhere_to_be_found\n", "ModuleNotFoundError"),
        ("raise SystemExit\n", "SystemExit"),
    ],
)
def test_invalid_plugin_file_is_rejected(tmp_path: Path, source: str | None, words: str) -> None:
    file = tmp_path / f"{tmp_path.name}.py"  # a module name of its own for each case
    if source is not None:
        file.write_text(source)
    with pytest.raises(UsageError, match=file.name) as caught:
        load_registry([file])
    assert words in str(caught.value)


def test_command_line_reports_invalid_plugin_files(tmp_path: Path) -> None:
    (tmp_path / "torn.py").write_text("def broken(:\n")
    refused(llpbench("list", "--plugin", "torn.py", cwd=tmp_path), "--plugin torn.py: SyntaxError")
    refused(llpbench(*DRY, "--methods", "dllp", "--plugin", "absent.py", cwd=tmp_path), "absent.py: no such file")


def test_plugin_file_must_have_a_free_module_name_and_end_in_py(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text(GOOD_FILE)
    with pytest.raises(UsageError, match="already loaded; rename the file"):
        load_registry([tmp_path / "click.py"])
    (tmp_path / "mymethod.txt").write_text(GOOD_FILE)
    with pytest.raises(UsageError, match=r"must end in \.py"):
        load_registry([tmp_path / "mymethod.txt"])


# -- the registry itself ----------------------------------------------------------------------------------------------


def test_registries_are_independent(tmp_path: Path) -> None:
    (tmp_path / "only_here.py").write_text(GOOD_FILE)
    with_file, without = load_registry([tmp_path / "only_here.py"]), load_registry()
    assert with_file.methods["first-column"].name == "first-column"
    with pytest.raises(UnknownNameError, match="unknown method 'first-column'"):
        without.methods["first-column"]


def test_unknown_name_gets_close_matches_and_the_list() -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'mean-ridge'.*\? Available: .*dllp.*mean-ridge"):
        load_registry().methods["mean-rigde"]


def test_close_matches_come_before_a_long_list() -> None:
    many = [f"name-{i}" for i in range(60)]
    assert str(UnknownNameError("value", "name-7x", many)).endswith("? 60 are available.")
    assert " name-59," in str(UnknownNameError("value", "?", many))  # without a guess there is the list


def test_unknown_executor_is_rejected() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown executor 'lokal'\. Did you mean 'local'"):
        load_registry().executor("lokal", ExecutorSettings())


def test_duplicate_of_the_local_executor_is_a_conflict(tmp_path: Path) -> None:
    source = "from llpbench import ExecutorSpec, hookimpl\n@hookimpl\ndef llpbench_executors():\n"
    (tmp_path / "greedy.py").write_text(source + "    return [ExecutorSpec(name='local', factory='greedy:Greedy')]\n")
    registry = load_registry([tmp_path / "greedy.py"])
    with pytest.raises(PluginError, match="executor 'local' is registered twice"):
        registry.executor("local", ExecutorSettings())


def test_hook_may_take_fewer_arguments_and_an_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[object] = []

    class Tracker:
        @hookimpl
        def llpbench_cell_finished(self, result: object) -> None:
            heard.append(result)

    class Broken:
        @hookimpl
        def llpbench_cell_finished(self) -> None:
            raise ValueError("no")

    registry = load_registry()
    registry.manager.register(Tracker(), "tracker")
    registry.manager.register(Broken(), "broken-tracker")
    registry.cell_finished("cell", "result")  # type: ignore[arg-type]
    assert heard == ["result"]
    assert "broken-tracker failed on a finished cell: ValueError: no" in caplog.text


def test_missing_modules_does_not_import() -> None:
    spec = MethodSpec(name="m", factory="a:b", requires=("json", "no_such_thing", "no_such_thing.inside"))
    assert missing_modules(spec) == ["no_such_thing", "no_such_thing.inside"]
    assert missing_modules(spec, "no_such_engine")[-1] == "no_such_engine"


def test_install_line_uses_the_distributions_own_extra() -> None:
    own = Plugin("p", "llpbench", "", click)
    assert install_hint(own, ["torch", "json"]) == 'pip install "llpbench[torch]" json'
    assert install_hint(Plugin("p", "not-installed", "", click), ["torch"]) == "pip install torch"
