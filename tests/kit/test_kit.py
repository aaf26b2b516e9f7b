"""The conformance kit: built-in plugins pass it, and each kind of bad plugin fails the matching check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import llpbench

from llpbench.contracts.errors import UsageError
from llpbench.kit.kit import checks_for, run_checks
from llpbench.plugins.registry import Registry, load_registry

REAL_CELL = {"labels_cannot_leak", "answers_tell_no_label"}
BAD = """
import numpy as np
from llpbench import DatasetSpec, MethodSpec, Param, Part, Split, hookimpl

NAMES = (
    *("Fine", "Leaky", "Moody", "Writing", "Deaf", "Dull", "Fragile", "Narrow", "Shy", "Excused", "Needless"),
    *("Shapeless", "Endless"),
)

@hookimpl
def llpbench_methods():
    return [
        MethodSpec(
            name=f"bad-{name.lower()}", factory=f"bad:{name}",
            tasks=("binary", "multiclass") if name == "Narrow" else ("binary",),
            params=(Param("power", 1.0),) if name == "Shy" else (),
            exempt={"Excused": (("learns", "it is a control"),), "Needless": (("learns", "no need"),)}.get(name, ()),
        )
        for name in NAMES
    ]

class Fine:
    def fit(self, bags, *, monitor, seed):
        self.w = ((bags.proportions - bags.proportions.mean()).repeat(bags.sizes, axis=0) * bags.X).mean(axis=0)
        return self
    def predict_scores(self, X):
        return X @ self.w

class Leaky(Fine):
    def fit(self, bags, *, monitor, seed):
        labels = monitor._monitor.train_labels
        self.w = ((labels - labels.mean())[:, None] * bags.X).mean(axis=0)
        return self

class Moody(Fine):
    def predict_scores(self, X):
        return X @ self.w + np.random.default_rng().normal(size=len(X))

class Writing(Fine):
    def fit(self, bags, *, monitor, seed):
        super().fit(bags, monitor=monitor, seed=seed)
        if bags.X.flags.writeable:
            bags.X[0] = 0
        return self

class Deaf(Fine):
    def fit(self, bags, *, monitor, seed):
        super().fit(bags, monitor=monitor, seed=seed)
        for _ in range(30):
            monitor.report(self.predict_scores)
        return self

class Dull(Fine):
    def predict_scores(self, X):
        return np.zeros(len(X))

class Excused(Dull):
    pass

class Needless(Fine):
    pass

class Shapeless(Fine):
    def predict_scores(self, X):
        return np.zeros((len(X), 1, 2))

class Endless(Fine):
    def fit(self, bags, *, monitor, seed):
        import time
        while True:
            try:
                time.sleep(60)
            except Exception:
                time.sleep(60)

class Fragile(Fine):
    def fit(self, bags, *, monitor, seed):
        if len(set(bags.sizes)) > 1 or len(bags) < 3:
            raise ValueError("I want many equal bags")
        return super().fit(bags, monitor=monitor, seed=seed)

class Narrow(Fine):
    pass

class Shy(Fine):
    pass

@hookimpl
def llpbench_datasets():
    kinds = ("restless", "stuck", "overlapping", "ordered", "clumped")
    return [DatasetSpec(name=f"bad-{kind}", factory=f"bad:{kind}") for kind in kinds]

def _split(rng, overlap=False):
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    cut = [slice(0, 200), slice(200, 250), slice(0, 50) if overlap else slice(250, 300)]
    return Split(*(Part(X[c], y[c]) for c in cut))

def restless(files, *, seed):
    return _split(np.random.default_rng())

def stuck(files, *, seed):
    return _split(np.random.default_rng(0))

def overlapping(files, *, seed):
    return _split(np.random.default_rng(seed), overlap=True)

def _sorted(split, key):
    order = np.argsort(key(split.test.y), kind="stable")
    return Split(split.train, split.valid, Part(split.test.X[order], split.test.y[order]))

def ordered(files, *, seed):
    return _sorted(_split(np.random.default_rng(seed)), lambda y: y)

def clumped(files, *, seed):
    return _sorted(_split(np.random.default_rng(seed)), lambda y: np.where(y == 0, 1, np.cumsum(y) % 2 * 2))
"""


@pytest.fixture(scope="module")
def bad_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bad") / "bad.py"
    file.write_text(BAD)
    return file


@pytest.fixture
def bad(bad_file: Path) -> Registry:
    return load_registry([bad_file])  # anew for each test: command-line tests in between unload plugin files


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("bad-leaky", REAL_CELL),
        ("bad-moody", {"same_seed_same_scores", "labels_cannot_leak", "learns"}),
        ("bad-writing", {"input_is_left_alone"}),
        ("bad-deaf", {"honours_should_stop"}),
        ("bad-dull", {"learns"}),
        ("bad-fragile", {"uneven_bags", "two_bags"}),
        ("bad-narrow", {"every_declared_task_runs"}),
        ("bad-restless", {"same_seed_same_split"}),
        ("bad-stuck", {"other_seed_other_split"}),
        ("bad-overlapping", {"parts_are_disjoint"}),
        ("bad-ordered", {"row_order_predicts_no_label"}),
        ("bad-clumped", {"row_order_predicts_no_label"}),
        ("bad-excused", set()),
        ("bad-needless", {"learns"}),
        ("bad-fine", set()),
    ],
)
def test_bad_plugin_fails_the_matching_check(bad: Registry, name: str, failing: set[str]) -> None:
    results = run_checks(checks_for(name, bad))
    assert {r.check.name for r in results if r.outcome == "failed"} == failing, [
        (r.check.name, r.reason) for r in results if r.outcome == "failed"
    ]
    assert all(r.reason for r in results if r.outcome != "passed")


def test_failure_of_the_basic_check_is_the_only_one(bad: Registry) -> None:
    results = run_checks(checks_for("bad-shapeless", bad))
    assert [(r.check.name, r.reason) for r in results if r.outcome == "failed"] == [
        ("fits", "MethodError: predict_scores returned shape (120, 1, 2) for 120 rows; expected (120,)")
    ]
    assert {r.reason for r in results if r.outcome == "skipped"} == {"fits failed"}


def test_check_that_does_not_end_fails_at_the_time_limit(bad: Registry) -> None:
    (check,) = [check for check in checks_for("bad-endless", bad) if check.name == "two_bags"]
    (result,) = run_checks([check], timeout=0.1)
    assert (result.outcome, result.reason) == ("failed", "TimeoutError: not finished after 0.1 s (--timeout)")
    assert "time.sleep(60)" in result.failed_at


def test_check_selects_by_name_and_stops_at_the_first_failure(bad_file: Path, tmp_path: Path) -> None:
    done = llpbench("check", str(bad_file), "-k", "bad-fragile:", "-x", cwd=tmp_path)
    assert done.returncode == 1
    assert "uneven_bags" in done.stdout
    assert "two_bags" not in done.stdout
    assert "bad-dull" not in done.stdout
    assert "not run" in done.stdout
    done = llpbench("check", str(bad_file), "-k", "uneven-bags", cwd=tmp_path)
    assert done.returncode == 2
    assert "'uneven_bags'" in done.stderr


def test_constructor_that_rejects_its_parameters_fails(bad: Registry) -> None:
    failed = {r.check.name for r in run_checks(checks_for("bad-shy", bad)) if r.outcome == "failed"}
    assert "parameters_round_trip" in failed


@pytest.mark.slow
def test_exemption_is_printed_and_counted(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    done = llpbench("check", "bad-excused", "--plugin", "bad.py", cwd=tmp_path)
    assert done.returncode == 0
    assert "exempt   bad-excused:learns" in done.stdout
    assert "it is a control" in done.stdout
    assert "1 exempt" in done.stdout
    stuck = llpbench("check", "bad-stuck", "--plugin", "bad.py", cwd=tmp_path)
    assert stuck.returncode == 1
    assert "bad-stuck:other_seed_other_split" in stuck.stdout


def test_check_suggests_similar_names(tmp_path: Path) -> None:
    done = llpbench("check", "dlpl", cwd=tmp_path)
    assert done.returncode == 2
    assert "'dllp'" in done.stderr


def test_options_in_brackets_replace_defaults(tmp_path: Path) -> None:
    rows = "\n".join(f"{i % 7},{'ab'[i % 3 % 2]},{i % 2}" for i in range(400))
    (tmp_path / "own.csv").write_text("x,job,y\n" + rows)
    results = run_checks(checks_for(f"csv[path={tmp_path / 'own.csv'};label=y]"))
    assert {r.check.name: r.outcome for r in results if r.outcome != "passed"} == {"files_are_pinned": "skipped"}
    with pytest.raises(UsageError, match="one value"):
        checks_for("dllp[lr=1e-3;1e-2]")


@pytest.mark.slow
def test_pytest_plugin(tmp_path: Path) -> None:
    """A suite of its own gets one test for each check, failures and skips with their reasons."""
    plugin = tmp_path / "bad.py"
    plugin.write_text(BAD)
    (tmp_path / "test_bad.py").write_text(SUITE.format(plugin=str(plugin)))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rfs", "-k", "bad-dull"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "bad-dull:learns]" in done.stdout, done.stdout + done.stderr
    assert "SKIPPED" in done.stdout
    assert "it makes only 1 report" in done.stdout


def test_pytest_plugin_requires_a_name(tmp_path: Path) -> None:
    (tmp_path / "test_bare.py").write_text("def test_bare(llpbench_check):\n    llpbench_check()\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "mark it with @pytest.mark.llpbench" in done.stdout + done.stderr


SUITE = """
import pytest

@pytest.mark.llpbench({plugin!r})
def test_contract(llpbench_check):
    llpbench_check()
"""
