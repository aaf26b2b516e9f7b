"""A failure says where; and the small ways to get there: one cell in this process, the first failure, chosen seeds."""

from __future__ import annotations

import json
import pdb
import re
import sys
import traceback
from pathlib import Path

import pytest
from cli_runner import llpbench, llpbench_process, status

import llpbench as package
from llpbench.contracts.errors import UsageError, describe, printable, shortened, where_it_failed
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import parse_seeds
from llpbench.report.progress import describe_result
from llpbench.results.metric_style import OWN_METRICS

BROKEN = """
import json
import numpy as np
from llpbench import MethodSpec, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name=name, factory=f"bad:{name.title()}") for name in ("deep", "fine", "loud", "talk")]

class Fine:
    def fit(self, bags, *, monitor, seed):
        self.w = bags.X.mean(axis=0)
        return self

    def predict_scores(self, X):
        return X @ self.w

class Deep(Fine):
    def predict_scores(self, X):
        return json.loads("{") @ self.w   # fails inside the standard library

class Loud(Fine):
    def fit(self, bags, *, monitor, seed):
        raise ValueError("\\x1b[2J\\x1b]0;owned\\x07 bad\\u202e news")

class Talk(Fine):
    def fit(self, bags, *, monitor, seed):
        print("seen by a debugger")
        return super().fit(bags, monitor=monitor, seed=seed)
"""
SMALL = ("--datasets", "synthetic[rows=600]", "--bags", "8", "--plugin", "bad.py", "--out", "out")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bad.py").write_text(BROKEN)
    return tmp_path


# -- where -------------------------------------------------------------------------------------------------------------


def raised(source: str, name: str) -> BaseException:
    """The error that running a file raises."""
    code = compile(source, name, "exec")
    try:
        exec(code, {})
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_where_it_failed_returns_the_last_line_of_user_code(tmp_path: Path) -> None:
    path = tmp_path / "my.py"
    source = "import json\n\ndef f(x):\n    return json.loads(x)\n\nf('{')\n"
    path.write_text(source)
    assert where_it_failed(raised(source, str(path))) == "my.py:4: return json.loads(x)"


def test_where_it_failed_follows_causes(tmp_path: Path) -> None:
    path = tmp_path / "my.py"
    path.write_text("def f():\n    return 1 / 0\n\nf()\n")
    wrapped = UsageError("wrapped")
    wrapped.__cause__ = raised(path.read_text(), str(path))
    assert where_it_failed(wrapped) == "my.py:2: return 1 / 0"


def test_where_it_failed_is_empty_for_harness_errors() -> None:
    with pytest.raises(UsageError) as caught:
        parse_seeds("x")
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert Path(frames[-1].filename).is_relative_to(Path(str(package.__file__)).parent)
    assert where_it_failed(caught.value).startswith("test_where.py:")  # this file is nobody's package
    error = caught.value.with_traceback(caught.value.__traceback__.tb_next)  # type: ignore[union-attr]
    assert where_it_failed(error) == ""


@pytest.mark.slow
def test_run_and_status_print_where_cells_failed(folder: Path) -> None:
    done = llpbench("run", "--methods", "deep,fine,loud", "--seeds", "1", *SMALL, cwd=folder)
    assert done.returncode == 1
    line = next(i for i, text in enumerate(BROKEN.splitlines(), 1) if "json.loads" in text)
    assert done.stderr.count(f"bad.py:{line}: return json.loads") == 2  # as it ends, and in the summary
    (path,) = set(re.findall(r"full traceback: (\S*deep\S*|\S*\.traceback)", done.stderr.split("loud on")[0]))
    assert "JSONDecodeError" in (folder / path).read_text()
    assert "Traceback" in (folder / path).read_text()
    for bad in ("\x1b", "\x07", "\u202e"):
        assert bad not in done.stderr + done.stdout
    said = llpbench("status", "out", cwd=folder)
    assert f"at bad.py:{line}: return json.loads" in said.stdout
    assert "full traceback: out/logs/" in said.stdout
    assert "Traceback (most recent" not in said.stdout
    whole = llpbench("status", "out", "--traceback", cwd=folder).stdout
    assert "Traceback (most recent call last)" in whole
    for bad in ("\x1b", "\x07", "\u202e"):
        assert bad not in said.stdout + whole
    troubles = {t["cell"].split(" ")[0]: t for t in status(folder / "out")["troubles"]}
    assert troubles["deep"]["failed_at"].startswith(f"bad.py:{line}:")
    assert Path(troubles["deep"]["traceback"]).name == f"{troubles['deep']['id']}.traceback"
    (folder / "bad.py").write_text(BROKEN.replace('json.loads("{") @ self.w', "X @ self.w"))
    again = llpbench("run", "--methods", "deep,fine", "--seeds", "1", *SMALL, cwd=folder)
    assert again.returncode == 0
    assert not (folder / path).exists()  # it was of a result that is gone


@pytest.mark.slow
def test_check_prints_where_it_failed(folder: Path) -> None:
    done = llpbench_process("check", "bad.py", cwd=folder)
    assert done.returncode == 1
    assert re.search(r"at bad\.py:\d+: raise ValueError", done.stdout)
    path = done.stdout.split("full tracebacks: ")[1].strip()
    assert "Traceback (most recent call last)" in Path(path).read_text()
    assert "\x1b[2J" not in done.stdout


# -- one cell, the first failure, what would run -----------------------------------------------------------------------


@pytest.mark.slow
def test_pdb_examines_the_error_of_a_cell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(pdb, "post_mortem", lambda: seen.append(describe(sys.exception())))
    done = llpbench("run", "--methods", "deep", "--seeds", "1", *SMALL, "--pdb", cwd=folder)
    assert done.returncode == 1
    assert len(seen) == 1
    assert seen[0] in done.stderr


@pytest.mark.slow
def test_debug_runs_one_cell_in_this_process(folder: Path) -> None:
    done = llpbench("run", "--methods", "talk,deep", "--seeds", "2", *SMALL, "--debug", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "seen by a debugger" in done.stdout
    assert "--debug runs one cell, the first of 4" in done.stderr
    assert not (folder / "out").exists()
    failing = llpbench_process("run", "--methods", "deep", "--seeds", "1", *SMALL, "--debug", cwd=folder)
    assert failing.returncode == 1
    assert "Traceback (most recent call last)" in failing.stderr


@pytest.mark.slow
def test_run_names_each_cause_of_failures_once(folder: Path) -> None:
    done = llpbench("run", "--methods", "deep,fine", "--seeds", "3", *SMALL, cwd=folder)
    said = done.stdout + done.stderr.partition("cells failed:")[2]
    reason = status(folder / "out")["troubles"][0]["reason"]
    assert said.count(reason) == 1
    assert "the same in 2 more cells" in done.stderr


@pytest.mark.slow
def test_exitfirst_stops_at_the_first_failure(folder: Path) -> None:
    arguments = ["--methods", "loud,fine", "--seeds", "3", *SMALL, "--jobs", "1", "--quiet"]
    done = llpbench("run", *arguments, "-x", cwd=folder)
    assert done.returncode == 1
    said = status(folder / "out")
    assert said["counts"] == {"failed": 1, "missing": 5}
    listed = llpbench("run", *arguments, "--dry-run", cwd=folder)
    assert "5 of 6 cells would run, 1 kept" in listed.stderr
    assert len(listed.stdout.splitlines()) == 5
    assert "6 of 6 cells would run" in llpbench("run", *arguments, "--dry-run", "--rerun", "failed", cwd=folder).stderr
    assert status(folder / "out") == said  # nothing was started
    assert llpbench("run", *arguments, cwd=folder).returncode == 1
    assert status(folder / "out")["counts"] == {"failed": 3, "ok": 3}


def test_dry_run_of_a_new_folder_writes_nothing(folder: Path) -> None:
    done = llpbench("run", "--methods", "fine", "--seeds", "1", *SMALL, "--dry-run", cwd=folder)
    assert "1 of 1 cell would run, 0 kept" in done.stderr
    assert not (folder / "out").exists()


# -- seeds -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "seeds"),
    [
        ("3", 3),
        ("0,1,2", 3),
        ("0-2", 3),
        ("3-5", [3, 4, 5]),
        ("7,", [7]),
        ("5-5", [5]),
        ("9, 1-2 ,9", [9, 1, 2]),
        ("0", 0),
        ([100, 101], [100, 101]),
        ([0, 1], 2),
        (4, 4),
        ("", []),
    ],
)
def test_parse_seeds_accepts_numbers_lists_and_ranges(given: str | int | list[int], seeds: int | list[int]) -> None:
    assert parse_seeds(given) == seeds


@pytest.mark.parametrize("given", ["a", "1-", "-3", "5-3", "1.5", "0-999999999", "1;2", [True], ["x"], [1.5]])
def test_parse_seeds_rejects_invalid_seeds(given: object) -> None:
    with pytest.raises(UsageError, match=r"seeds .*(expected a number|a range must be)"):
        parse_seeds(given)  # type: ignore[arg-type]


def test_number_of_seeds_equals_its_list() -> None:
    spec = RunSettings(methods=["bp"], seeds=3)
    assert RunSettings(methods=["bp"], seeds=parse_seeds("0-2")).name == spec.name
    assert RunSettings(methods=["bp"], seeds=[3, 4]).name != spec.name
    assert spec.seed_list == [0, 1, 2]


def planned_seeds(*arguments: str, cwd: Path) -> set[str]:
    done = llpbench("run", "--methods", "mean-ridge", "--bags", "8", *arguments, "--dry-run", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r"seed (\d+)", done.stdout))


def test_seeds_on_the_command_line_and_in_a_run_file(tmp_path: Path) -> None:
    assert planned_seeds("--seeds", "3-5", cwd=tmp_path) == {"3", "4", "5"}
    assert planned_seeds("--seeds", "0,7", cwd=tmp_path) == {"0", "7"}
    for text in ("[4, 6]", '"4,6"'):
        (tmp_path / "run.toml").write_text(f"seeds = {text}\n")
        assert planned_seeds("--config", "run.toml", cwd=tmp_path) == {"4", "6"}
    for wrong in ("0", "x", "4-2", ","):
        done = llpbench("run", "--methods", "mean-ridge", "--seeds", wrong, "--dry-run", cwd=tmp_path)
        assert done.returncode == 2
        assert "seed" in done.stderr
    (tmp_path / "run.toml").write_text("seeds = [-1]\n")
    done = llpbench("run", "--methods", "mean-ridge", "--config", "run.toml", "--dry-run", cwd=tmp_path)
    assert "seeds must be integers from 0" in done.stderr


# -- texts -------------------------------------------------------------------------------------------------------------


def test_printable_removes_control_characters() -> None:
    assert printable("a\x1b[2Jb\x07\u202ec\ud800\n") == "a?[2Jb??c??"
    assert printable("one\n\ttwo\x1b", lines=True) == "one\n    two?"
    assert printable("1\u00a0234 ü 中 …") == "1 234 ü 中 …"
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd", 3) == "abc… (1 more characters)"


def test_describe_is_one_printable_line_of_bounded_length() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert describe(MuteError()) == "MuteError (its message cannot be read)"
    assert describe(ValueError("a\n\x1bb")) == "ValueError: a ?b"
    assert len(describe(ValueError("x" * 10**7))) < 3000
    assert describe(KeyError()) == "KeyError"


def test_control_characters_of_results_are_removed(tmp_path: Path) -> None:
    from helpers import make_cell, make_plan, make_result

    from llpbench.results.store import Store

    evil = "\x1b]0;owned\x07\u202e"
    store = Store(tmp_path / "out")
    cell = make_cell()
    store.plan([make_plan(cell, method_name=f"m{evil}", dataset=f"d{evil}")], f"llpbench {evil}", "0.1.0")
    result = make_result(cell, status="failed", reason=evil, failed_at=evil, traceback=f"a\n{evil}")
    store.write(result)
    assert not set(evil) & set(describe_result(result, OWN_METRICS[0])) - set("]0;owned")
    for arguments in (["status"], ["status", "--traceback"], ["table"], ["table", "--format", "markdown"]):
        done = llpbench(arguments[0], "out", *arguments[1:], cwd=tmp_path)
        assert done.returncode == 0
        for bad in ("\x1b", "\x07", "\u202e"):
            assert bad not in done.stdout + done.stderr, arguments


def test_control_characters_of_specs_are_removed(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "from llpbench import MethodSpec, Param, hookimpl\n\n@hookimpl\ndef llpbench_methods():\n"
        "    evil = '\\x1b[2J\\u202e'\n"
        "    params = (Param('p', 1.0, doc=evil),)\n"
        "    return [MethodSpec(name='loud', factory='loud:X', summary=evil, citation=evil, params=params)]\n"
    )
    for verb in (["list"], ["show", "loud"], ["doctor", "--no-imports"]):
        done = llpbench(*verb, "--plugin", "loud.py", cwd=tmp_path)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\u202e" not in done.stdout + done.stderr
    assert "?[2J?" in llpbench("show", "loud", "--plugin", "loud.py", cwd=tmp_path).stdout
    shown = llpbench("show", "loud", "--json", "--plugin", "loud.py", cwd=tmp_path).stdout
    assert json.loads(shown)["summary"] == "\x1b[2J\u202e"
    sys.modules.pop("loud", None)
