"""Results are never stale: which code, versions, flags and rules made them, and what a change of these does."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest
from cli_runner import llpbench, status, table
from helpers import make_cell, make_plan, make_result
from plugin_install import with_module

from llpbench.contracts.job import Job
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.execution.jobs import make_jobs, wanted_cells
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.fingerprint import (
    code_name,
    distribution_of,
    fingerprint,
    is_own,
    is_released,
    line_of_part,
    part_of,
)
from llpbench.plugins.registry import load_registry
from llpbench.results.provenance import Provenance, recorded_code, recorded_versions
from llpbench.results.request import Request
from llpbench.results.store import Store
from llpbench.system.environment import numeric_flags
from llpbench.system.opened import opened_files, watch_files

METHOD = """
from llpbench import MethodSpec, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="mine", factory="{module}:Mine")]

class Mine:
    def fit(self, bags, *, monitor, seed):
        weights = (bags.proportions - bags.proportions.mean()).repeat(bags.sizes, axis=0)
        self.w = (bags.X * weights).mean(axis=0)
        return self

    def predict_scores(self, X):
        return {sign}X @ self.w
"""
METRIC = """
from llpbench import MetricSpec, hookimpl

@hookimpl
def llpbench_metrics():
    return [MetricSpec(name="level", factory="yard:level")]

def level(labels, scores):
    return {value}
"""
GRID = ("--methods", "mine", "--datasets", "synthetic[rows=600]", "--bags", "8", "--seeds", "2", "--out", "out")


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    """Plugins in single files are modules by their name: every test has its own."""
    yield
    for name in ("my", "yard"):
        sys.modules.pop(name, None)


def write_method(folder: Path, sign: str = "", name: str = "my") -> Path:
    path = folder / f"{name}.py"
    path.write_text(METHOD.format(sign=sign, module=name))
    return path


def stored(folder: Path) -> list[CellResult]:
    return Store(folder).results()


def rewrite(folder: Path, **facts: object) -> None:
    """Change every result of a folder, sealed as if it had been made so."""
    store = Store(folder)
    for result in store.results():
        store.write(msgspec.structs.replace(result, **facts))


# -- fingerprints ------------------------------------------------------------------------------------------------------


def test_fingerprint_of_a_file_is_its_content(tmp_path: Path) -> None:
    path = write_method(tmp_path)
    first = fingerprint("file:my.py", [str(path)])
    assert first.startswith("file my.py sha256:")
    write_method(tmp_path, "-")
    assert fingerprint("file:my.py", [str(path)]) != first
    write_method(tmp_path)
    assert fingerprint("file:my.py", [str(path)]) == first
    assert (code_name(first), is_own(first), is_released(first)) == ("my.py", False, False)
    path.unlink()
    assert fingerprint("file:my.py", [str(path)]) == "file my.py unreadable"
    assert fingerprint("file:other.py", [str(path)]) == ""


@pytest.mark.parametrize(
    ("note", "kind"),
    [
        (None, "release pkg-plugin 1.0 sha256:"),
        ({"url": "file:///x", "dir_info": {"editable": True}}, "editable pkg-plugin sha256:"),
        ({"url": "file:///x", "dir_info": {}}, "editable pkg-plugin sha256:"),
        ({"url": "https://x/y.git", "vcs_info": {"vcs": "git", "commit_id": "0"}}, "editable pkg-plugin sha256:"),
        ({"url": "https://x/y.whl", "archive_info": {}}, "release pkg-plugin 1.0 sha256:"),
    ],
)
def test_fingerprint_distinguishes_releases_from_checkouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, note: dict[str, object] | None, kind: str
) -> None:
    package = tmp_path / "pkg_plugin"
    with_module(tmp_path, "pkg-plugin", "")
    (tmp_path / "pkg_plugin.py").unlink()
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('a fingerprint imports nothing')")
    (package / "deep.py").write_text("x = 1\n")
    if note is not None:
        (tmp_path / "pkg_plugin-1.0.dist-info" / "direct_url.json").write_text(json.dumps(note))
    monkeypatch.syspath_prepend(tmp_path)
    first = fingerprint("pkg-plugin:pkg-plugin")
    assert first.startswith(kind)
    (package / "deep.py").write_text("x = 2\n")
    second = fingerprint("pkg-plugin:pkg-plugin")
    assert second.startswith(kind)
    assert second != first
    (package / "deep.py").rename(package / "other.py")
    third = fingerprint("pkg-plugin:pkg-plugin")
    assert third != second
    for name in ("weights.json", "data/table.csv"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text("1")
    fourth = fingerprint("pkg-plugin:pkg-plugin")
    (package / "data" / "table.csv").write_text("2")
    assert len({third, fourth, fingerprint("pkg-plugin:pkg-plugin")}) == 3
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "deep.pyc").write_text("3")
    (package / ".cache").write_text("4")
    assert fingerprint("pkg-plugin:pkg-plugin") == fingerprint("pkg-plugin:pkg-plugin") != fourth


def test_metadata_of_a_checkout_does_not_count_as_a_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_module(tmp_path, "pkg-plugin", "")
    (tmp_path / "pkg_plugin-1.0.dist-info" / "RECORD").unlink()
    (tmp_path / "pkg_plugin-1.0.dist-info").rename(tmp_path / "pkg_plugin.egg-info")
    (tmp_path / "pkg_plugin.egg-info" / "METADATA").rename(tmp_path / "pkg_plugin.egg-info" / "PKG-INFO")
    monkeypatch.syspath_prepend(tmp_path)
    assert fingerprint("pkg-plugin:pkg-plugin").startswith("editable pkg-plugin sha256:")


def test_missing_distribution_has_no_fingerprint() -> None:
    assert fingerprint("no-such-distribution:plugin") == ""


def test_built_in_fingerprints_cover_shared_code() -> None:
    lines = {name: fingerprint(f"llpbench:{name}") for name in ("core", "dllp", "bp", "adult", "synthetic")}
    assert len(set(lines.values())) == 5
    assert all(is_own(line) for line in lines.values())


READER = """
import json, os
from pathlib import Path

import numpy as np

from llpbench import DatasetSpec, MethodSpec, Part, Split, hookimpl

HERE = Path(__file__).parent

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="reader", factory="my:Reader")]

@hookimpl
def llpbench_datasets():
    return [DatasetSpec(name="table", factory="my:load")]

def load(files, *, seed):
    X = np.loadtxt(HERE / "table.csv", delimiter=",").reshape(-1, 1) + np.arange(200.0).reshape(-1, 1)
    y = (np.arange(200) // 3) % 2
    cut = (slice(0, 120), slice(120, 160), slice(160, 200))
    return Split(*(Part(X[rows].astype(np.float32), y[rows]) for rows in cut))

class Reader:
    def fit(self, bags, *, monitor, seed):
        from helper import SIGN
        self.scale = SIGN * json.loads((HERE / "weights.json").read_text()) + len(os.environ.get("SETTING_OF_MINE", ""))
        with open(os.environ["TMPDIR"] + "/own", "w") as file:
            file.write("a file of its own")
        with open(os.environ["TMPDIR"] + "/own") as file:
            file.read()
        monitor.note("scale", float(self.scale))
        return self

    def predict_scores(self, X):
        return self.scale * X[:, 0]
"""
READ = {"helper.py": "SIGN = 1\n", "weights.json": "2", "table.csv": "5"}


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_files_that_a_cell_read_are_part_of_its_code(tmp_path: Path, start: str) -> None:
    for name, content in {"my.py": READER, "unread.json": "1", **READ}.items():
        (tmp_path / name).write_text(content)
    run = ["run", "--methods", "reader", "--datasets", "table", "--bags", "4", "--seeds", "1", "--plugin", "my.py"]
    run += ["--out", "out", "--start", start, "--quiet"]
    environment = {"PYTHONPATH": str(tmp_path)}
    assert llpbench(*run, cwd=tmp_path, **environment).returncode == 0
    (result,) = stored(tmp_path / "out")
    assert {part for part in result.code if part.startswith("read ")} == {f"read my.py:{name}" for name in READ}
    for name in READ:
        (tmp_path / name).write_text(READ[name].replace("1", "3").replace("2", "4").replace("5", "6"))
        listed = llpbench(*run, "--dry-run", cwd=tmp_path, **environment)
        assert f"1 cell was computed with another {name}: it is run again" in listed.stderr, name
        (tmp_path / name).write_text(READ[name])
    (tmp_path / "unread.json").write_text("2")
    assert "0 of 1 cell would run" in llpbench(*run, "--dry-run", cwd=tmp_path, **environment).stderr


@pytest.mark.slow
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_variables_that_are_not_recorded_do_not_reach_a_method(tmp_path: Path, start: str) -> None:
    for name, content in {"my.py": READER, **READ}.items():
        (tmp_path / name).write_text(content)
    run = ["run", "--methods", "reader", "--datasets", "table", "--bags", "4", "--seeds", "1", "--plugin", "my.py"]
    run += ["--start", start, "--quiet"]
    environment = {"PYTHONPATH": str(tmp_path), "SETTING_OF_MINE": "long"}
    assert llpbench(*run, "--out", "out", cwd=tmp_path, **environment).returncode == 0
    (result,) = stored(tmp_path / "out")
    assert result.notes["scale"] == 2.0


def test_files_that_this_process_opens_for_reading_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("before", "read", "relative", "by_descriptor", "package/inside", "module.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "before").read_text()
    watch_files()
    for _ in range(2):
        (tmp_path / "package" / ".." / "read").read_bytes()
    Path("relative").read_text()
    os.close(os.open(tmp_path / "by_descriptor", os.O_RDONLY))
    (tmp_path / "package" / "inside").read_text()
    (tmp_path / "written").write_text("1")
    (tmp_path / "bell\a").write_text("1")
    (tmp_path / "bell\a").read_text()
    json.loads(Path(pytest.__file__).with_name("py.typed").read_text() or "1")
    import_module("module")
    seen = opened_files([tmp_path / "package"])
    assert seen == [str(tmp_path / name) for name in ("read", "relative", "by_descriptor", "module.py")]
    sys.modules.pop("module")


def test_files_outside_of_the_folder_of_a_plugin_have_their_path_in_the_part(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").mkdir()
    plugin, beside, elsewhere = tmp_path / "a" / "my.py", tmp_path / "a" / "b" / "w.json", tmp_path / "w.json"
    for path in (plugin, beside, elsewhere):
        path.write_text("1")
    assert [part_of(path, [plugin]) for path in (beside, elsewhere)] == ["read my.py:b/w.json", f"read {elsewhere}"]
    for path in (beside, elsewhere):
        part = part_of(path, [plugin])
        first = line_of_part(part, [plugin])
        assert first.startswith("file w.json sha256:")
        path.write_text("2")
        assert line_of_part(part, [plugin]) != first
        path.unlink()
        assert line_of_part(part, [plugin]) == "file w.json unreadable"


# -- jobs --------------------------------------------------------------------------------------------------------------


def job_for(tmp_path: Path, *files: Path, **changes: str) -> Job:
    registry = load_registry(files)
    method, dataset = changes.pop("method", "mean-ridge"), changes.pop("dataset", "synthetic")
    cell = make_cell(method=method, dataset=dataset, **changes)
    store = Store(tmp_path / "out")
    (job,) = make_jobs([make_plan(cell)], store, registry, RunSettings(plugins=files))
    return job


def test_job_contains_code_and_judge_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    method, metric = write_method(tmp_path), tmp_path / "yard.py"
    metric.write_text(METRIC.format(value=1))
    job = job_for(tmp_path, method, metric, method="mine")
    assert set(job.code) == {"method", "dataset", "harness", "metric level"}
    assert job.code["method"].startswith("file my.py")
    assert job.code["metric level"].startswith("file yard.py")
    assert job.judge_plugins == (str(metric),)
    assert job.plugins == (str(method), str(metric))
    again = msgspec.json.decode(msgspec.json.encode(job), type=Job)
    assert recorded_code(again) == job.code
    write_method(tmp_path, "-")
    edited = recorded_code(again)["method"]
    assert job.code["method"] in edited
    assert fingerprint("file:my.py", [str(method)]) in edited
    shutil.rmtree(tmp_path, ignore_errors=True)
    assert "unreadable" in recorded_code(again)["method"]


def test_facts_of_the_method_travel_with_the_job(tmp_path: Path) -> None:
    job = job_for(tmp_path, method="supervised", backend="jax")
    assert job.method.oracle
    assert job.method.tasks == load_registry().methods["supervised"].tasks
    assert job_for(tmp_path).method.oracle is False


def test_versions_include_requirements(tmp_path: Path) -> None:
    source = METHOD.replace('factory="{module}:Mine"', 'factory="{module}:Mine", requires=("msgspec", "yaml.cyaml")')
    (tmp_path / "my.py").write_text(source.format(module="my", sign=""))
    job = job_for(tmp_path, tmp_path / "my.py", method="mine", backend="jax")
    found = recorded_versions(job)
    assert (found["msgspec"], found["PyYAML"]) == (version("msgspec"), version("PyYAML"))
    assert {"llpbench", "numpy", "keras", "jax", "python"} <= set(found)
    assert distribution_of("sklearn.metrics") == "scikit-learn"
    assert distribution_of("no_such_module") == "no_such_module"


def test_numeric_flags_are_recorded() -> None:
    given = {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "Haswell",
        "MKL_CBWR": "COMPATIBLE",
        "XLA_FLAGS": "--xla_cpu_enable_fast_math=true --xla_dump_to=/home/somebody",
        "JAX_ENABLE_X64": "1\x1b[2J",
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "JAX_COMPILATION_CACHE_DIR": "/home/somebody",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_VAR_password": "secret",
        "TF_CLI_CONFIG_FILE": "/home/somebody/.terraformrc",
        "HOME": "/home/somebody",
        "NUMBA_NUM_THREADS": "",
    }
    assert numeric_flags(given) == {
        "JAX_ENABLE_X64": "1?[2J",
        "MKL_CBWR": "COMPATIBLE",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "Haswell",
        "TF_ENABLE_ONEDNN_OPTS": "0",
        "XLA_FLAGS": "--xla_cpu_enable_fast_math=true",
    }


# -- what a run does ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_edited_plugin_file_is_rerun_and_reported(tmp_path: Path) -> None:
    write_method(tmp_path)
    run = ["run", *GRID, "--plugin", "my.py", "--quiet"]
    assert llpbench(*run, cwd=tmp_path).returncode == 0
    (before,) = table(tmp_path / "out", "--rule", "bags")
    result = stored(tmp_path / "out")[0]
    assert result.code["method"].startswith("file my.py sha256:")
    assert is_own(result.code["dataset"])
    assert is_own(result.code["harness"])
    assert result.flags["OMP_NUM_THREADS"] == "1"
    assert result.protocol == PROTOCOL
    assert "bags" in result.rules
    kept = llpbench(*run, cwd=tmp_path)
    assert "run again" not in kept.stderr
    write_method(tmp_path, "-")
    listed = llpbench(*run, "--dry-run", cwd=tmp_path)
    assert "2 cells were computed by other code of my.py: they are run again" in listed.stderr
    done = llpbench(*run, cwd=tmp_path)
    assert done.returncode == 0
    assert "2 cells were computed by other code of my.py: they are run again" in done.stderr
    (after,) = table(tmp_path / "out", "--rule", "bags")
    assert after["mean"] == pytest.approx(100 - before["mean"])  # the other sign: the other half of the ROC
    assert "run again" not in llpbench(*run, cwd=tmp_path).stderr


def planned_store(folder: Path, *facts: dict[str, object], method: str = "mean-ridge") -> Store:
    """A folder with a result for each seed, made as of today but for the given facts."""
    store, registry = Store(folder), load_registry()
    cells = [make_cell(method=method, dataset="synthetic", seed=seed) for seed in range(len(facts))]
    store.plan([make_plan(cell) for cell in cells], Request(verb="run"), "0.1.0")
    provenance = Provenance(registry)
    for cell, changes in zip(cells, facts, strict=True):
        known = {"protocol": PROTOCOL, "code": provenance.code(cell), "rules": provenance.rules()}
        store.write(make_result(cell, **{**known, **changes}))
    return store


def wanted(store: Store, rerun: str = "missing") -> tuple[list[int], list[str]]:
    """Seeds that are to run, and what the user is told."""
    told: list[str] = []
    planned = store.manifest().planned.values()
    run, _ = wanted_cells(planned, store, load_registry(), rerun, told.append, told.append)  # type: ignore[arg-type]
    return [plan.cell.seed for plan in run], told


def test_other_protocols_and_rule_versions_are_rerun(tmp_path: Path) -> None:
    old = {"protocol": 1, "code": {}, "rules": {}}
    store = planned_store(tmp_path / "out", {}, old, {"rules": {"bags": 0}}, old, {"rules": {"unknown": 7}})
    seeds, told = wanted(store)
    assert seeds == [1, 2, 3]
    assert told[0] == f"2 cells were computed under protocol 1 (this is protocol {PROTOCOL}): they are run again"
    assert told[1].startswith("1 cell were computed with version 0 of rule bags".replace("were", "was"))
    assert told[1].endswith("it is run again")
    said = status(store.root)
    assert said["other_protocol"] == 2
    words = llpbench("status", str(store.root), cwd=tmp_path)
    assert "2 cells of another protocol" in words.stdout
    shown = llpbench("table", str(store.root), cwd=tmp_path)
    assert f"2 cells of protocol 1 and 3 cells of protocol {PROTOCOL} (not comparable" in shown.stderr


def test_other_code_of_a_checkout_is_rerun_only_with_rerun_stale(tmp_path: Path) -> None:
    other = dict.fromkeys(("method", "dataset", "harness"), "editable llpbench sha256:0")
    now = Provenance(load_registry()).code(make_cell(method="mean-ridge", dataset="synthetic"))
    store = planned_store(tmp_path / "out", {}, {"code": {**now, "method": other["method"]}}, {"code": other})
    assert wanted(store)[0] == []
    assert wanted(store, "stale")[0] == [1, 2]
    assert status(store.root)["other_code"] == 2
    words = llpbench("status", str(store.root), cwd=tmp_path).stdout
    assert "2 cells computed by other code than is installed now; recompute with: llpbench run --out" in words
    assert "--rerun stale" in words


def test_rows_whose_seeds_were_computed_by_different_code_are_named(tmp_path: Path) -> None:
    now = Provenance(load_registry()).code(make_cell(method="mean-ridge", dataset="synthetic"))
    other = {"code": {**now, "method": "release llpbench 0.0.1 sha256:0"}}
    more = {"code": {**now, "metric level": "file yard.py sha256:0"}}  # a metric that was added is no other code
    same, mixed = planned_store(tmp_path / "same", {}, more), planned_store(tmp_path / "mixed", {}, other, more)
    sentence = "the seeds of 1 row were computed by different code: mean-ridge on synthetic, bag 8 (method)"
    for verb, stream in (("status", "stdout"), ("table", "stderr"), ("report", "stderr")):
        for store in (same, mixed):
            said = getattr(llpbench(verb, str(store.root), cwd=tmp_path), stream)
            assert (sentence in said) == (store is mixed), (verb, said)
    assert [len(status(store.root)["mixed_rows"]) for store in (same, mixed)] == [0, 1]
    assert "computed by different code" in (mixed.root / "report.html").read_text()
    assert "computed by different code" not in (same.root / "report.html").read_text()


def test_replacement_of_a_built_in_method_is_rerun(tmp_path: Path) -> None:
    now = Provenance(load_registry()).code(make_cell(method="mean-ridge", dataset="synthetic"))
    by_file = {"code": {**now, "method": "file fake.py sha256:0"}}
    by_release = {"code": {**now, "method": "release somebody 1.0 sha256:0"}}
    store = planned_store(tmp_path / "out", {}, by_file, by_release)
    seeds, told = wanted(store)
    assert seeds == [1]
    assert told == ["1 cell was computed by other code of fake.py: it is run again"]
    assert wanted(store, "stale")[0] == [1, 2]


@pytest.mark.parametrize("place", ["beside", "elsewhere"])
def test_result_is_rerun_if_a_file_that_it_read_changes(tmp_path: Path, place: str) -> None:
    plugin = write_method(tmp_path)
    read = (tmp_path if place == "beside" else tmp_path.parent / f"{tmp_path.name}-other") / "w.json"
    read.parent.mkdir(exist_ok=True)
    read.write_text("1")
    registry = load_registry([plugin])
    cell = make_cell(method="mine", dataset="synthetic")
    part = part_of(read, [plugin])
    code = Provenance(registry).code(cell) | {part: line_of_part(part, [plugin])}
    result = make_result(cell, protocol=PROTOCOL, code=code)
    assert Provenance(registry).outdated(result) == ""
    read.write_text("2")
    assert Provenance(registry).outdated(result) == "were computed with another w.json"
    assert not Provenance(registry).current(result)
    read.unlink()  # elsewhere, it may be a file of another machine
    assert bool(Provenance(registry).outdated(result)) == (place == "beside")


def test_edited_metric_makes_results_stale_but_added_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    yard = tmp_path / "yard.py"
    yard.write_text(METRIC.format(value=1))
    store = planned_store(tmp_path / "out", {})
    plain, judged = load_registry(), Provenance(load_registry([yard]))
    (result,) = store.results()
    assert judged.outdated(result) == ""  # the metric is new: what is there stays
    store.write(msgspec.structs.replace(result, code=judged.code(result.cell)))
    (result,) = store.results()
    assert Provenance(plain).outdated(result) == ""  # and so without it
    yard.write_text(METRIC.format(value=2))
    assert "other code of yard.py" in Provenance(load_registry([yard])).outdated(result)


@pytest.mark.slow
def test_trials_of_other_code_are_not_mixed_into_a_study(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    source = METHOD.replace('factory="{module}:Mine")', 'factory="{module}:Mine", params=(Param("p", 1.0, low=0.5),))')
    source = source.replace("import MethodSpec", "import MethodSpec, Param")
    source = source.replace("class Mine:", "class Mine:\n    def __init__(self, p=1.0): pass\n")
    (tmp_path / "my.py").write_text(source.format(module="my", sign=""))
    arguments = ["tune", "--methods", "mine", "--datasets", "synthetic[rows=600]", "--bags", "8", "--trials", "2"]
    arguments += ["--plugin", "my.py", "--quiet"]
    assert llpbench(*arguments, cwd=tmp_path).returncode == 0
    assert llpbench(*arguments, cwd=tmp_path).returncode == 0
    (tmp_path / "my.py").write_text(source.format(module="my", sign="-"))
    done = llpbench(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "whose trials were computed by other code of my.py. Tune into another folder" in done.stderr
    run = ["run", "--methods", "mine", "--datasets", "synthetic[rows=600]", "--bags", "8", "--plugin", "my.py"]
    run += ["--params", "tuned", "--dry-run"]
    done = llpbench(*run, cwd=tmp_path)
    assert done.returncode == 2
    assert "whose trials were computed by other code of my.py. Tune again, into another folder" in done.stderr
    (tmp_path / "my.py").write_text(source.format(module="my", sign=""))
    assert llpbench(*run, cwd=tmp_path).returncode == 0
