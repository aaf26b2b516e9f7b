"""Methods that attack the promise: labels stay out of reach, results are the judge's, the harness survives.

All attacks run as the cells of one grid for each way to start cells. The tests look at what became of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from attack_field import ATTACKS, DATA, RUN, Field
from cli_runner import llpbench
from helpers import bags_and_labels

from llpbench.contracts.cell import Cell
from llpbench.contracts.job import Job
from llpbench.execution import sandbox
from llpbench.execution.fork_server import preloadable
from llpbench.execution.method_process import FREE_SCORING, account
from llpbench.execution.privileges import can_filter
from llpbench.experiment.split import load_split
from llpbench.plugins.registry import load_registry
from llpbench.system.machine import usable_cores

STARTS = ["fork", pytest.param("spawn", marks=pytest.mark.slow)]
LABELS = ("behind", "frames", "objects", "memory")
LABELS_ELSEWHERE = ("other-memory", "predictions", "other-results", "handles")
OTHERS = ("callback", "stop", "rival", "plant", "scorer", "escape", "orphan", "flood", "garbage", "huge", "hold-line")
OTHERS += ("lie-about-time", "code", "data", "log-pipe", "odd-phases", "last-words", "write", "connect", "reconfigure")
SIGNALS = ("kill",) if sandbox.version() >= 6 else ()  # scoped from Linux 6.12 on
TWO_CORES = len(usable_cores()) >= 2
filtered = pytest.mark.skipif(not can_filter(), reason="needs seccomp")
locked = pytest.mark.skipif(not sandbox.version(), reason="needs Landlock")


class Attacked(Field):
    """A field on which every attack has been run."""

    def __init__(self, folder: Path, start: str) -> None:
        super().__init__(folder, "--start", start)
        kinds = (f"attack-{kind}[out={self.out}]" for kind in (*LABELS, *LABELS_ELSEWHERE, *OTHERS, *SIGNALS))
        self.done = self.run("sleeper", *kinds)
        threads = ("--threads", "2") if TWO_CORES else ()
        self.attack("hoard", "threads", options=("--memory", "800MB", *threads))


@pytest.fixture(scope="module", params=STARTS)
def field(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    return Attacked(tmp_path_factory.mktemp("field"), request.param)


# -- labels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*LABELS, *(pytest.param(kind, marks=locked) for kind in LABELS_ELSEWHERE)])
def test_attack_finds_no_labels(field: Attacked, kind: str) -> None:
    result = field.results[kind]
    assert result["status"] == "ok", result
    assert not result["notes"]["found"]


@locked
@pytest.mark.skipif(not TWO_CORES, reason="needs two cores")
def test_threads_of_libraries_are_in_the_sandbox(field: Attacked) -> None:
    """Landlock binds the thread that asks for it: a thread started before would be free."""
    result = field.results["threads"]
    assert result["status"] == "ok", result
    assert result["notes"]["threads"] >= 1
    assert not result["notes"]["found"]


@pytest.mark.parametrize("kind", ["callback", "stop"])
def test_replies_to_reports_reveal_nothing_about_single_rows(field: Attacked, kind: str) -> None:
    """The guess is the same for all rows of a bag, whose count was known before."""
    registry = load_registry([DATA])
    options = {"file": str(field.folder / "desk" / "table.csv")}
    cell = Cell(dataset="secret", dataset_options=options, method="any", bag_size=5, seed=0)
    job = Job(cell=cell, method_name="", dataset_name="", out="unused")
    _, _, labels = bags_and_labels(job, load_split(job, registry.datasets["secret"]), registry)
    guess = np.array([int(c) for c in field.results[kind]["notes"]["guess"]])
    assert len(guess) == len(labels)
    assert (guess != labels).any()
    assert (guess.reshape(-1, 5) == guess.reshape(-1, 5)[:, :1]).all()


# -- results and what they are made with -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["scorer", "sleeper"])
def test_patching_the_scorer_changes_no_metric(field: Attacked, method: str) -> None:
    """Patched in the method's process, when a plugin with methods is imported, or by a module named as ``preload``."""
    chosen = field.results[method]["selected"]["bags"]["metrics"]
    assert chosen["auroc"] == 0.5
    assert chosen["average_precision"] < 0.9


def test_fork_server_imports_only_libraries_and_what_ships_with_llpbench() -> None:
    modules = ["sleeper", "attacks.deep", "numpy", "sklearn.metrics", "llpbench.data.store"]
    shipped = [name for entry in load_registry().methods for name in entry.spec.preload if entry.plugin.builtin]
    assert preloadable([*modules, *shipped]) == [*modules[2:], *shipped]


@locked
def test_results_of_other_methods_stay_unchanged(field: Attacked) -> None:
    assert field.honest.items() <= field.files().items()


@locked
def test_forged_result_is_not_used(field: Attacked) -> None:
    result = field.results["plant"]
    assert result["status"] != "ok"
    assert not result.get("selected")


@locked
@pytest.mark.parametrize("kind", ["code", "data", "write"])
def test_nothing_outside_the_private_folder_can_be_written(field: Attacked, kind: str) -> None:
    notes = field.results[kind]["notes"]
    assert notes["found"] == ""
    if kind == "data":
        assert notes["read"] == notes["compiled"] == ""
        assert notes["control"]
        assert notes["origins"] >= 2  # its own, which it can write, and that of the built-in methods
    if kind == "write":
        assert notes["neighbours"] >= 1
        assert notes["secrets"] == 0
        assert notes["own"] == 3  # its temporary folder, its home and its cache


@locked
@pytest.mark.parametrize("start", STARTS)
def test_method_does_not_run_if_the_sandbox_fails(tmp_path: Path, start: str) -> None:
    command = [sys.executable, str(ATTACKS / "nested.py"), sys.executable, "-m", "llpbench", *RUN]
    command += ["--methods", "mean-ridge", "--start", start, "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    (path,) = (tmp_path / "out" / "cells").glob("*.json")
    result = json.loads(path.read_bytes())["result"]
    assert result["status"] == "failed"
    assert "could not enter its sandbox" in result["reason"]
    assert "llpbench doctor" in result["reason"]


# -- the harness -------------------------------------------------------------------------------------------------------


def test_escape_sequences_do_not_reach_the_terminal(field: Attacked) -> None:
    shown = llpbench("status", "out", cwd=field.folder)
    assert "owned" in field.done.stderr
    assert "owned" in shown.stdout
    for text in (field.done.stdout, field.done.stderr, shown.stdout, shown.stderr):
        assert not set(text) & set("\x1b\x07\r")


@filtered
def test_method_has_no_network(field: Attacked) -> None:
    notes = field.results["connect"]["notes"]
    assert notes["listening"]
    assert notes["found"] == 0


@filtered
def test_method_cannot_reconfigure_its_judge_or_the_kernel(field: Attacked) -> None:
    notes = field.results["reconfigure"]["notes"]
    assert notes["done"] == ""
    assert not notes["capabilities"]


@pytest.mark.skipif(not SIGNALS, reason="signals are scoped from Linux 6.12 on")
def test_method_cannot_kill_the_harness(field: Attacked) -> None:
    assert field.results["kill"]["status"] == "ok"


def test_processes_that_outlive_a_cell_are_killed(field: Attacked) -> None:
    assert field.results["orphan"]["status"] == "ok"
    (orphan,) = field.folder.glob("cache/methods/attacks-*/orphan")
    pid = int(orphan.read_text())
    assert not psutil.pid_exists(pid) or "llpbench" not in " ".join(psutil.Process(pid).cmdline())


def test_memory_of_orphaned_processes_counts(field: Attacked) -> None:
    result = field.results["hoard"]
    assert result["status"] == "memory", result
    assert "--memory 800MB" in result["reason"]


def test_long_output_is_truncated(field: Attacked) -> None:
    result = field.results["flood"]
    assert result["status"] == "ok"
    log = (field.out / "logs" / f"{result['id']}.log").read_text()
    assert len(log) < 600_000
    assert "bytes omitted" in log
    assert "the last words" in log


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("garbage", "failed", "sent an invalid message"),
        ("huge", "failed", "sent a message of more than"),
        ("hold-line", "crashed", "exited with code 3"),
        ("log-pipe", "crashed", "exited with code 3"),
    ],
)
def test_invalid_message_or_exit_is_a_failure_of_the_cell(field: Attacked, kind: str, status: str, words: str) -> None:
    result = field.results[kind]
    assert result["status"] == status
    assert words in result["reason"]


def test_names_of_phases_are_printable_and_short(field: Attacked) -> None:
    result = field.results["odd-phases"]
    assert result["status"] == "ok"
    assert result["phases"].keys() == {"other", "?[2J?owned", "x" * 100}


def test_reason_and_traceback_are_printable(field: Attacked) -> None:
    result = field.results["last-words"]
    assert result["reason"] == result["failed_at"] == "?[2J?owned?"
    kept = (field.out / "logs" / f"{result['id']}.traceback").read_text()
    assert kept.count("?[2J?owned?") == 2
    assert "\x1b" not in kept


def test_seconds_are_measured_by_the_judge(field: Attacked) -> None:
    assert field.results["lie-about-time"]["fit_seconds"] >= 1.0


@pytest.mark.parametrize(
    ("total", "scoring", "named", "expected"),
    [
        (10.0, 4.0, {"network": 5.0, "other": 99.0}, ({"other": 1.0, "network": 5.0}, 4.0)),
        (10.0, 4.0, {"network": 12.0, "graph": 12.0}, ({"other": 0.0, "network": 3.0, "graph": 3.0}, 4.0)),
        (100.0, 90.0, {"a": -5.0, "b": float("nan")}, ({"other": 10.0, "predict": 90.0 - FREE_SCORING}, FREE_SCORING)),
        (100.0, 45.0, {}, ({"other": 55.0}, 45.0)),
    ],
    ids=["phases", "more than the total", "invalid and all work while scoring", "scoring"],
)
def test_account_splits_seconds(total: float, scoring: float, named: dict[str, float], expected: Any) -> None:
    assert account(total, scoring, named) == expected
