"""Methods that attack the promise: labels stay out of reach, results are the judge's, the harness survives.

Each attack worked, or could work, while a method shared its process with the labels.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from cli_runner import llpbench
from helpers import bags_and_labels

from llpbench.contracts.cell import Cell
from llpbench.contracts.job import Job
from llpbench.execution.method_process import FREE_SCORING, account
from llpbench.experiment.split import load_split
from llpbench.plugins.registry import load_registry
from llpbench.system import sandbox
from llpbench.system.machine import usable_cores

pytestmark = pytest.mark.slow
ATTACKS = Path(__file__).parents[1] / "support" / "attacks"
DATA, METHODS = ATTACKS / "secret_data.py", ATTACKS / "attacks.py"
HONEST = ["run", "--plugin", str(DATA), "--plugin", str(METHODS), "--datasets", "secret", "--bags", "5", "--seeds", "1"]
locked = pytest.mark.skipif(not sandbox.version(), reason="needs Landlock")


class Field:
    """A results folder with the result of an honest method, under attack."""

    def __init__(self, folder: Path, start: str) -> None:
        self.folder, self.out, self.start = folder, folder / "out", start
        self.orphan = folder / "cache" / "compiled" / "orphan"
        self.environment = {
            "LLPBENCH_DATA": str(folder / "data"),
            "LLPBENCH_CACHE": str(folder / "cache"),
            "HOME": str(folder / "home"),
            "ATTACK_ORPHAN": str(self.orphan),
        }
        files = ("data/rows.csv", "cache/made/features.npy", "home/.profile", "leaderboards/board.json", "desk/notes")
        for file in (*files, self.orphan):
            (folder / file).parent.mkdir(parents=True)
            (folder / file).write_text("")
        assert self.run("mean-ridge").returncode == 0
        shutil.copytree(self.out, folder / "earlier")

    def run(self, *methods: str, further: tuple[str, ...] = ()) -> Any:
        where = ["--executor", "dask"] if self.start == "dask" else ["--start", self.start]
        command = [*HONEST, "--methods", ",".join(methods), *where, *further, "--out", "out"]
        return llpbench(*command, cwd=self.folder, **self.environment)

    def attack(self, kind: str, *further: str) -> dict[str, Any]:
        """Run an attack; the result it has afterwards."""
        self.run(f"attack-{kind}[out={self.out}]", further=further)
        return self.results()[f"attack-{kind}"]

    def results(self) -> dict[str, dict[str, Any]]:
        found = [json.loads(path.read_bytes())["result"] for path in (self.out / "cells").glob("*.json")]
        return {result["cell"]["method"]: result for result in found}

    def files(self) -> dict[str, bytes]:
        kept = [*self.out.glob("cells/*.json"), *self.out.glob("predictions/*.npz")]
        return {path.name: path.read_bytes() for path in kept}


@pytest.fixture(scope="module", params=["fork", "spawn"])
def field(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Field:
    return Field(tmp_path_factory.mktemp("field"), request.param)


@pytest.mark.parametrize("kind", ["closure", "frames", "objects", "memory"])
def test_no_label_is_in_the_methods_process(field: Field, kind: str) -> None:
    result = field.attack(kind)
    assert result["status"] == "ok", result
    assert not result["notes"]["found"]


@locked
@pytest.mark.parametrize("kind", ["other-memory", "predictions", "other-results", "handles"])
def test_no_label_is_reached_elsewhere(field: Field, kind: str) -> None:
    result = field.attack(kind)
    assert result["status"] == "ok", result
    assert not result["notes"]["found"]


@locked
@pytest.mark.skipif(len(usable_cores()) < 2, reason="needs two cores")
def test_no_thread_of_a_library_is_left_unlocked(field: Field) -> None:
    """A lock binds the thread that asks for it: one that a library started before it would be free."""
    result = field.attack("threads", "--threads", "2")
    assert result["status"] == "ok", result
    assert result["notes"]["threads"] >= 1
    assert not result["notes"]["found"]


@locked
def test_code_on_the_disk_stays_as_it_is(field: Field) -> None:
    """What is patched there would judge the cells that come after."""
    assert field.attack("code")["notes"]["found"] == ""


@locked
def test_data_on_the_disk_stays_as_it_is(field: Field) -> None:
    notes = field.attack("data")["notes"]
    assert notes["found"] == ""
    assert notes["compiled"] == "compiled"  # the one part of the cache that is for methods


@locked
def test_nothing_is_written_but_what_is_its_own(field: Field) -> None:
    with tempfile.TemporaryDirectory(prefix="llpbench-cell-1-") as neighbour:
        Path(neighbour, "secret").write_text("a model")
        notes = field.attack("write")["notes"]
    assert notes["found"] == ""
    assert notes["neighbours"] >= 1
    assert notes["secrets"] == 0
    assert notes["own"] == 3  # its temporary folder, its home and the folder for machine code


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_modules_in_the_working_directory_judge_nobody(tmp_path: Path, start: str) -> None:
    """A module there would be found before the library of the same name."""
    (tmp_path / "psutil.py").write_text("raise SystemExit(3)")
    done = llpbench(*HONEST, "--methods", "mean-ridge", "--start", start, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_methods_own_module_is_not_imported_before_judges_are_forked(tmp_path: Path) -> None:
    command = ["run", "--plugin", str(DATA), "--plugin", str(ATTACKS / "sleeper.py"), *HONEST[5:]]
    done = llpbench(*command, "--methods", "sleeper", "--out", "out", cwd=tmp_path, PYTHONPATH=str(ATTACKS))
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "out" / "cells").glob("*.json")
    assert json.loads(path.read_bytes())["result"]["selected"]["bags"]["metrics"]["auroc"] == 0.5


@locked
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_method_that_could_not_be_locked_away_does_not_run(tmp_path: Path, start: str) -> None:
    command = [sys.executable, str(ATTACKS / "nested.py"), sys.executable, "-m", "llpbench", *HONEST]
    command += ["--methods", "mean-ridge", "--start", start, "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    (path,) = (tmp_path / "out" / "cells").glob("*.json")
    result = json.loads(path.read_bytes())["result"]
    assert result["status"] == "failed"
    assert "could not be locked away" in result["reason"]
    assert "llpbench doctor" in result["reason"]


def held_back_labels() -> np.ndarray:
    registry = load_registry([DATA])
    job = Job(
        cell=Cell(dataset="secret", method="any", bag_size=5, seed=0), method_name="", dataset_name="", out="unused"
    )
    _, _, labels = bags_and_labels(job, load_split(job, registry.datasets["secret"]), registry)
    return np.asarray(labels)


@pytest.mark.parametrize("kind", ["callback", "stop"])
def test_the_callback_tells_nothing_about_single_rows(field: Field, kind: str) -> None:
    """Whatever an attack hears about two rows of one bag is the same: it knew the bag's count before."""
    result = field.attack(kind)
    guess = np.array([int(c) for c in result["notes"]["guess"]])
    labels = held_back_labels()
    assert len(guess) == len(labels)
    assert (guess != labels).any()
    assert (guess.reshape(-1, 5) == guess.reshape(-1, 5)[:, :1]).all()


@locked
def test_a_rivals_result_is_out_of_reach(field: Field) -> None:
    before = field.files()
    field.attack("rival")
    assert before.items() <= field.files().items()


@locked
def test_a_planted_result_is_not_taken(field: Field) -> None:
    result = field.attack("plant")
    assert result["status"] != "ok"
    assert not result.get("selected")


def test_patching_the_scorer_changes_nothing(field: Field) -> None:
    chosen = field.attack("scorer")["selected"]["bags"]["metrics"]
    assert chosen["auroc"] == 0.5
    assert chosen["average_precision"] < 0.9


def test_patching_the_scorer_on_import_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge loads no file that brings methods only."""
    monkeypatch.setenv("ATTACK_ON_IMPORT", "1")
    import llpbench.experiment.metrics as metrics

    for name in ("auroc", "average_precision", "accuracy"):
        monkeypatch.setattr(metrics, name, getattr(metrics, name))  # the test's own process loads the file too
    import sklearn.metrics

    monkeypatch.setattr(sklearn.metrics, "roc_auc_score", sklearn.metrics.roc_auc_score)
    field = Field(tmp_path, "fork")
    assert field.attack("scorer")["selected"]["bags"]["metrics"]["auroc"] == 0.5


def test_escape_sequences_reach_no_terminal(field: Field) -> None:
    done = field.run(f"attack-escape[out={field.out}]")
    shown = llpbench("status", "out", cwd=field.folder)
    for text in (done.stdout, done.stderr, shown.stdout, shown.stderr):
        assert "owned" in text or text in (done.stdout, shown.stderr)
        assert not set(text) & set("\x1b\x07\r")


@locked
def test_the_harness_cannot_be_killed(field: Field) -> None:
    if sandbox.version() < 6:
        pytest.skip("signals are scoped from Linux 6.12 on")
    assert field.attack("kill")["status"] == "ok"


def test_children_that_outlive_a_cell_are_ended(field: Field) -> None:
    field.orphan.write_text("")
    assert field.attack("orphan")["status"] == "ok"
    assert not psutil.pid_exists(int(field.orphan.read_text()))


def test_memory_of_such_children_counts(field: Field) -> None:
    result = field.attack("hoard", "--memory", "800MB")
    assert result["status"] == "memory", result
    assert "--memory 800MB" in result["reason"]


def test_a_flood_of_output_is_capped(field: Field) -> None:
    result = field.attack("flood")
    assert result["status"] == "ok"
    log = (field.out / "logs" / f"{result['id']}.log").read_text()
    assert len(log) < 600_000
    assert "bytes left out" in log
    assert "the last words" in log


@pytest.mark.parametrize(("kind", "words"), [("garbage", "no message"), ("huge", "are the most")])
def test_nonsense_on_the_line_is_the_methods_failure(field: Field, kind: str, words: str) -> None:
    result = field.attack(kind)
    assert result["status"] == "failed"
    assert words in result["reason"]


def test_a_line_held_open_does_not_hold_the_judge(field: Field) -> None:
    result = field.attack("hold-line")
    assert result["status"] == "crashed"
    assert "code 3" in result["reason"]


def test_a_log_that_became_a_pipe_does_not_hold_the_judge(field: Field) -> None:
    result = field.attack("log-pipe")
    assert result["status"] == "crashed"
    assert "code 3" in result["reason"]


def test_names_of_phases_are_printable_and_short(field: Field) -> None:
    result = field.attack("odd-phases")
    assert result["status"] == "ok"
    assert result["phases"].keys() == {"other", "?[2J?owned", "x" * 100}


def test_last_words_are_printable_wherever_they_are_kept(field: Field) -> None:
    result = field.attack("last-words")
    assert result["reason"] == result["failed_at"] == "?[2J?owned?"
    kept = field.out / "logs" / f"{result['id']}.traceback"
    assert kept.read_text().count("?[2J?owned?") == 2
    assert "\x1b" not in kept.read_text()


def test_a_stopped_clock_hides_no_seconds(field: Field) -> None:
    assert field.attack("lie-about-time")["fit_seconds"] >= 1.0


@locked
def test_the_same_holds_on_a_cluster(tmp_path: Path) -> None:
    field = Field(tmp_path, "dask")
    before = field.files()
    kinds = ("objects", "predictions", "other-results", "rival", "scorer", "connect")
    field.run(*(f"attack-{kind}[out={field.out}]" for kind in kinds))
    results = field.results()
    assert {results[f"attack-{kind}"]["status"] for kind in kinds} == {"ok"}
    assert not results["attack-objects"]["notes"]["found"]
    assert not results["attack-predictions"]["notes"]["found"]
    assert not results["attack-other-results"]["notes"]["found"]
    assert results["attack-connect"]["notes"]["listening"]
    assert sandbox.version() < 4 or not results["attack-connect"]["notes"]["found"]
    assert results["attack-scorer"]["selected"]["bags"]["metrics"]["auroc"] == 0.5
    assert before.items() <= field.files().items()


def test_seconds_are_accounted_by_the_judges_clock() -> None:
    assert account(10.0, 4.0, {"network": 5.0, "other": 99.0}) == ({"other": 1.0, "network": 5.0}, 4.0)
    phases, scoring = account(10.0, 4.0, {"network": 12.0, "graph": 12.0})  # more than there was
    assert phases == {"other": 0.0, "network": 3.0, "graph": 3.0}
    assert scoring == 4.0
    odd = {"network": -5.0, "graph": float("nan"), "bp": float("inf")}
    phases, scoring = account(100.0, 90.0, odd)  # all the work is done while scoring
    assert phases == {"other": 10.0, "predict": 90.0 - FREE_SCORING}
    assert scoring == FREE_SCORING
    assert account(100.0, 45.0, {}) == ({"other": 55.0}, 45.0)
