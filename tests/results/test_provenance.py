"""Results are never stale: which code, versions, flags and rules made them, and what a change of these does."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
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
from llpbench.plugins.fingerprint import code_name, distribution_of, fingerprint, is_own, is_released
from llpbench.plugins.registry import load_registry
from llpbench.results.provenance import Provenance, numeric_flags, recorded_code, recorded_versions
from llpbench.results.request import Request
from llpbench.results.store import Store

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


def test_fingerprint_covers_imported_neighbour_files(tmp_path: Path) -> None:
    plugin = tmp_path / "my.py"
    plugin.write_text("import os\nfrom helper import sign\n")
    alone = fingerprint("file:my.py", [plugin])
    (tmp_path / "stranger.py").write_text("x = 1\n")
    assert fingerprint("file:my.py", [plugin]) == alone  # nobody imports it
    (tmp_path / "helper.py").write_text("import my\nimport deep.er\nsign = 1\n")
    lines = {alone, fingerprint("file:my.py", [plugin])}
    (tmp_path / "deep").mkdir()
    for file, text in (("deep/er.py", "y = 1\n"), ("deep/er.py", "y = 2\n"), ("helper.py", "sign = -1\n")):
        (tmp_path / file).write_text(text)
        lines.add(fingerprint("file:my.py", [plugin]))
    assert len(lines) == 5
    assert len({len(line) for line in lines}) == 1
    plugin.write_text("this is no Python (")
    assert fingerprint("file:my.py", [plugin]).startswith("file my.py sha256:")


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
    assert fingerprint("pkg-plugin:pkg-plugin") != second


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


def test_replacement_of_a_built_in_method_is_rerun(tmp_path: Path) -> None:
    now = Provenance(load_registry()).code(make_cell(method="mean-ridge", dataset="synthetic"))
    by_file = {"code": {**now, "method": "file fake.py sha256:0"}}
    by_release = {"code": {**now, "method": "release somebody 1.0 sha256:0"}}
    store = planned_store(tmp_path / "out", {}, by_file, by_release)
    seeds, told = wanted(store)
    assert seeds == [1]
    assert told == ["1 cell was computed by other code of fake.py: it is run again"]
    assert wanted(store, "stale")[0] == [1, 2]


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
