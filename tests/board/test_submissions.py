"""Submissions: entry files, the workflow that runs them, and its steps on a real package."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_runner import llpbench
from plugin_install import SOURCES

from llpbench.board.built.build import built_files
from llpbench.board.content.folder import raw_files, read_folder, write_files
from llpbench.board.submissions import read_submission
from llpbench.contracts.errors import StoreError

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
WORKFLOW = (WORKFLOWS / "submission.yml").read_text()
ENTRY = {
    "package": "llpbench-good-method==1.2.0",
    "methods": ["bag-means"],
    "paper": "https://example.org/paper",
    "code": "https://example.org/code",
    "contact": "Ada <ada@example.org>",
}


def write_entry(folder: Path, name: str = "good-method.toml", **changes: Any) -> Path:
    """Write an entry file; a change to None leaves the key out."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}
    (folder / name).write_text("".join(f"{key} = {value!r}\n" for key, value in found.items()))
    return folder / name


# -- entry files -------------------------------------------------------------------------------------------------------


def test_an_entry_names_a_package_and_its_methods(tmp_path: Path) -> None:
    found = read_submission(write_entry(tmp_path, title="Least squares on bag means"))
    assert (found.package, found.methods) == ("llpbench-good-method==1.2.0", ["bag-means"])
    for package in ("a==1", "my_llp.x[torch,extra]==2026.1rc1", "a==1.2.post3"):
        assert read_submission(write_entry(tmp_path, package=package)).package == package


INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"shiny": "x"}, "unknown key 'shiny'; the keys are package, methods, paper, code, contact, title"),
    "missing key": ({"paper": None}, "missing required field `paper`"),
    "wrong type": ({"methods": "bag-means"}, "Expected `array`, got `str`"),
    "no version": ({"package": "my-llp"}, "package must be a name with an exact version, such as 'my-llp==1.2.0'"),
    "version range": ({"package": "my-llp>=1.2"}, "exact version"),
    "wildcard": ({"package": "my-llp==1.*"}, "exact version"),
    "local version": ({"package": "my-llp==1.0+mine"}, "exact version"),
    "two packages": ({"package": "my-llp==1.0 other==2.0"}, "exact version"),
    "pip option": ({"package": "--index-url=https://evil.example my-llp==1.0"}, "exact version"),
    "short option": ({"package": "-rmy==1.0"}, "exact version"),
    "address": ({"package": "https://evil.example/my-llp-1.0.whl"}, "exact version"),
    "direct reference": ({"package": "my-llp @ https://evil.example/x==1.0"}, "exact version"),
    "path": ({"package": "./my-llp==1.0"}, "exact version"),
    "marker": ({"package": "my-llp==1.0; python_version > '3'"}, "exact version"),
    "llpbench itself": ({"package": "LLPbench==0.1.0"}, "package must not be llpbench itself"),
    "no method": ({"methods": []}, "methods must name at least one method"),
    "invalid method": ({"methods": ["bag-means; rm -rf"]}, "invalid method name"),
    "option as a method": ({"methods": ["--plugin"]}, "invalid method name"),
    "repeated method": ({"methods": ["a", "a"]}, "methods must not name a method twice"),
    "invalid address": ({"code": "javascript:alert(1)"}, "code must be an https:// address"),
    "no contact": ({"contact": " "}, "contact must not be empty"),
}


@pytest.mark.parametrize(("changes", "reason"), INVALID.values(), ids=INVALID.keys())
def test_invalid_entries_are_rejected(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(StoreError, match=re.escape(reason)):
        read_submission(write_entry(tmp_path, **changes))


@pytest.mark.parametrize("name", ["good.json", "Good Method.toml", "-r.toml"])
def test_the_file_name_of_an_entry_must_be_a_valid_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match=r"expected a file NAME\.toml|invalid file name"):
        read_submission(write_entry(tmp_path, name))


def test_entries_that_are_not_toml_files_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("package = ")
    with pytest.raises(StoreError, match=r"broken\.toml: invalid TOML: Invalid value"):
        read_submission(tmp_path / "broken.toml")
    (tmp_path / "link.toml").symlink_to(write_entry(tmp_path))
    with pytest.raises(StoreError, match="expected a regular file"):
        read_submission(tmp_path / "link.toml")


def test_the_entry_command_prints_what_pip_and_run_take(tmp_path: Path) -> None:
    write_entry(tmp_path, "mine.toml", methods=["one", "two"])
    for key, text in (("package", "llpbench-good-method==1.2.0\n"), ("methods", "one,two\n")):
        assert llpbench("leaderboard", "entry", "mine.toml", "--print", key, cwd=tmp_path).stdout == text
    done = llpbench("leaderboard", "entry", "mine.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "mine.toml: one,two of llpbench-good-method==1.2.0\n")
    write_entry(tmp_path, "taken.toml", methods=["mean-ridge"])
    taken = llpbench("leaderboard", "entry", "taken.toml", cwd=tmp_path)
    assert (taken.returncode, "method 'mean-ridge' is part of llpbench" in taken.stderr) == (2, True)


# -- the workflow ------------------------------------------------------------------------------------------------------


def steps_of(job: str) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = yaml.safe_load(WORKFLOW)["jobs"][job]["steps"]
    return steps


def script_of(job: str, name: str) -> str:
    (step,) = [step for step in steps_of(job) if step.get("name") == name]
    script: str = step["run"]
    return script


def bash(script: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script of a step as the runner does."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)


@pytest.mark.parametrize("path", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.stem)
def test_workflows_have_no_secrets_and_no_write_access(path: Path) -> None:
    text = path.read_text()
    tree = yaml.safe_load(text)
    assert tree["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    assert "pull_request_target" not in text  # it has secrets
    for job in tree["jobs"].values():
        assert "permissions" not in job
        for step in job["steps"]:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step.get("uses", "actions/x@" + "0" * 40))
            assert "${{" not in step.get("run", "")  # text of contributors reaches a shell as a variable
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


def test_the_package_is_installed_only_after_the_entry_was_checked() -> None:
    jobs = yaml.safe_load(WORKFLOW)["jobs"]
    assert jobs["run"]["needs"] == "validate"
    installs = [step["run"] for step in jobs["validate"]["steps"] if "pip " in step.get("run", "")]
    assert installs == ["pip install ./base"]
    checkouts = [step for step in jobs["run"]["steps"] if "checkout" in step.get("uses", "")]
    assert [step["with"]["ref"] for step in checkouts] == ["${{ needs.validate.outputs.base }}"]


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "one entry": (lambda p: write_entry(p / "leaderboards" / "entries"), True),
    "changed entry": (lambda p: write_entry(p / "leaderboards" / "entries", "old.toml", title="new"), True),
    "two entries": (lambda p: [write_entry(p / "leaderboards" / "entries", f"{n}.toml") for n in "ab"], False),
    "a published cell": (lambda p: (p / "leaderboards" / "cells.jsonl").write_text("x"), False),
    "entry and code": (lambda p: [write_entry(p / "leaderboards" / "entries"), (p / "code.py").write_text("x")], False),
    "moved code": (lambda p: (p / "code.py").rename(p / "leaderboards" / "entries" / "code.py"), False),
    "removed entry": (lambda p: (p / "leaderboards" / "entries" / "old.toml").unlink(), False),
}


@pytest.mark.parametrize(("change", "valid"), CHANGES.values(), ids=CHANGES.keys())
def test_a_submission_changes_one_entry_only(tmp_path: Path, change: Callable[[Path], object], valid: bool) -> None:
    """The scripts of the workflow, on a merge like GitHub's whose base has moved on since the pull request began."""
    work = tmp_path / "submission"
    write_entry(work / "leaderboards" / "entries", "old.toml")
    git(work, "init", "--quiet", "--initial-branch", "main")
    (work / "code.py").write_text("code = 1\n" * 9)
    (work / "leaderboards" / "cells.jsonl").write_text("old")

    def commit(text: str) -> None:
        git(work, "add", "--all")
        git(work, "commit", "--quiet", "--message", text)

    commit("one")
    git(work, "checkout", "--quiet", "-b", "theirs")
    change(work)
    commit("theirs")
    git(work, "checkout", "--quiet", "main")
    (work / "ours.py").write_text("ours")
    commit("ours")
    tip = git(work, "rev-parse", "HEAD")
    git(work, "merge", "--quiet", "--no-ff", "--message", "merge", "theirs")
    environment = {"EVENT": "pull_request", "DEFAULT": "main", "GITHUB_OUTPUT": str(tmp_path / "output")}
    assert bash(script_of("validate", "check out the base"), tmp_path, **environment).returncode == 0
    assert (tmp_path / "output").read_text() == f"base={tip}\n"
    done = bash(script_of("validate", "refuse other changes"), tmp_path, **environment)
    assert (done.returncode == 0) == valid, done.stdout + done.stderr
    assert "ours.py" not in done.stdout


# -- a real package ----------------------------------------------------------------------------------------------------


def clean_environment(folder: Path) -> Path:
    """A virtual environment that has the packages of this one and nothing else; returns its folder of commands."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    for name, module in (("pip", "pip"), ("llpbench", "llpbench")):
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {module} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    return folder / "bin"


def part_of_the_board(folder: Path) -> set[str]:
    """A copy of the published cells of two methods on one dataset; returns their ids."""
    content = read_folder(ROOT / "leaderboards")
    content.lines = {
        cell_id: line
        for cell_id, line in content.lines.items()
        if line.result.cell.dataset == "marketing"
        and line.result.cell.method in ("mean-ridge", "mean-map")
        and not line.result.cell.preset
    }
    machines = {line.result.machine for line in content.lines.values()}
    content.machines = {name: facts for name, facts in content.machines.items() if name in machines}
    content.replicates = {i: kept for i, kept in content.replicates.items() if i in content.lines}
    content.marks = {i: mark for i, mark in content.marks.items() if i in content.lines}
    content.searches = {}
    write_files(folder, {**raw_files(content), **built_files(content)})
    return set(content.lines)


def outputs_of(path: Path) -> dict[str, str]:
    """What steps wrote into a file of the runner, by name in upper case."""
    return {key.upper(): value for key, _, value in (line.partition("=") for line in path.read_text().splitlines())}


@pytest.mark.slow
def test_the_steps_of_the_workflow_run_and_publish_a_real_package(tmp_path: Path) -> None:
    commands = clean_environment(tmp_path / "venv")
    environment = {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": str(tmp_path / "index"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "NO_COLOR": "1",
    }

    def step(job: str, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        done = bash(script_of(job, name), tmp_path, **environment, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    for package in ("good-method", "tiny-suite"):  # what an index has
        build = f"pip wheel --no-build-isolation --quiet --wheel-dir index {SOURCES / package}"
        assert bash(build, tmp_path, **environment).returncode == 0
    assert bash("pip install --quiet llpbench-tiny-suite==0.1.0", tmp_path, **environment).returncode == 0
    entry = write_entry(tmp_path / "submission" / "leaderboards" / "entries")
    (tmp_path / "entry.txt").write_text(f"{entry.relative_to(tmp_path / 'submission')}\n")
    unknown = bash("llpbench check bag-means", tmp_path, **environment)
    assert (unknown.returncode, "unknown" in unknown.stderr) == (2, True)

    step("validate", "check the entry")
    submission = outputs_of(tmp_path / "output")
    assert submission == {"PACKAGE": ENTRY["package"], "METHODS": "bag-means"}
    step("run", "install the package", **submission)
    assert "failed" not in step("run", "check the methods", **submission).stdout.lower().replace("0 failed", "")
    step("run", "run the cells", **submission, SUITE="tiny-1", OPTIONS="--quiet")

    published = part_of_the_board(tmp_path / "board")
    publish = "llpbench leaderboard add results --board board && llpbench leaderboard check --board board"
    done = bash(publish, tmp_path, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "board: 2 added, 0 replaced, 0 refused" in done.stdout
    content = read_folder(tmp_path / "board")
    new = [line.result for cell_id, line in content.lines.items() if cell_id not in published]
    assert {(r.cell.method, r.cell.dataset, r.status) for r in new} == {("bag-means", "synthetic", "ok")}
    assert len(content.lines) == len(published) + 2
    assert all(r.code["method"].startswith("release llpbench-good-method 1.2.0 ") for r in new)
    assert content.facts.methods["bag-means"].origin == "llpbench-good-method 1.2.0"
    assert "bag-means" in (tmp_path / "board" / "index.html").read_text()
