"""The code in the documentation runs as printed."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import cast

import click
import pytest
from cli_runner import llpbench, table

from llpbench.cli import cli

ROOT = Path(__file__).resolve().parents[2]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
def test_the_plugins_of_the_page_run(tmp_path: Path) -> None:
    method, dataset = python_blocks(ROOT / "docs" / "plugins.md")[:2]
    (tmp_path / "mymethod.py").write_text(method)
    (tmp_path / "two_moons.py").write_text(dataset)
    done = llpbench(
        "run", "--plugin", "mymethod.py", "--plugin", "two_moons.py", "--methods", "mymethod,mymethod[penalty=0.01]",
        "--datasets", "two-moons", "--bags", "4", "--seeds", "2", "--out", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(row["mean"] > 80 for row in table(tmp_path / "out"))


def test_the_readme_method_is_small_and_runs(tmp_path: Path) -> None:
    code = next(block for block in python_blocks(ROOT / "README.md") if block.startswith("# mymethod.py"))
    assert len([line for line in code.splitlines() if line.strip()]) < 30
    (tmp_path / "mymethod.py").write_text(code)
    done = llpbench(
        "run", "--plugin", "mymethod.py", "--methods", "mymethod", "--datasets", "synthetic", "--bags", "8",
        "--seeds", "1", "--out", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert all(row["mean"] > 70 for row in table(tmp_path / "out"))


def test_the_readme_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    code = next(block for block in python_blocks(ROOT / "README.md") if "llpbench.run" in block)
    cheap = '"mean-ridge", bags=[8, 32], datasets="synthetic[rows=600]", seeds=1'
    small = code.replace('"bp,dllp", bags=[8, 512]', cheap)
    assert small != code
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(small, "README.md", "exec"), names)
    assert len(names["results"].cells) == 4  # type: ignore[attr-defined]


def test_the_readme_fit_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = next(block for block in python_blocks(ROOT / "README.md") if "llpbench.fit" in block)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert (tmp_path / "penguins.llp").exists()


# -- commands ----------------------------------------------------------------------------------------------------------

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def commands(page: Path) -> list[list[str]]:
    """The arguments of every `llpbench` command in the shell blocks of a page, with its variables filled in."""
    found, variables = [], dict[str, str]()
    for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if assigned := re.fullmatch(r"(\w+)=(\S+)", line):
                variables[assigned[1]] = assigned[2].strip("'\"")
            for name, value in variables.items():
                line = line.replace(f"${name}", value)
            words = shlex.split(line, comments=True)
            starts = [i for i, word in enumerate(words) if word == "llpbench" and (i == 0 or words[i - 1] == "&&")]
            for start in starts:
                rest = words[start + 1 :]
                ends = [i for i, word in enumerate(rest) if word in ("&&", "|", ">", "&")]
                found.append(rest[: min(ends, default=len(rest))])
    return found


def parse(arguments: list[str]) -> None:
    """Read a command line as `llpbench` does: verbs, options and their types; nothing is run."""
    command, ctx, rest = cast(click.Command, cli), None, arguments
    while isinstance(command, click.Group):
        ctx = command.make_context("llpbench", rest, parent=ctx)
        rest = [*ctx._protected_args, *ctx.args]
        if command.invoke_without_command and not rest:
            return
        _, found, rest = command.resolve_command(ctx, rest)
        assert found is not None
        command = found
    command.make_context("llpbench", rest, parent=ctx)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_is_one(page: Path) -> None:
    for arguments in commands(page):
        try:
            parse(arguments)
        except click.exceptions.Exit:  # --help and the like have been served
            pass
        except click.UsageError as error:
            pytest.fail(f"{page.name}: llpbench {shlex.join(arguments)}: {error.format_message()}")


def test_commands_are_found_and_wrong_ones_seen() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 60
    with pytest.raises(click.UsageError, match="no-such-option"):
        parse(["run", "--no-such-option"])
    with pytest.raises(click.UsageError):
        parse(["leaderboard", "verify", "--cells", "many"])


# -- pages that run from top to bottom ---------------------------------------------------------------------------------


# Slow and tested elsewhere; in need of an installed package; in need of results that are only planned here.
NOT_RUN = re.compile(r"doctor|leaderboard|.*results/published|table results/soft-label")


def in_order(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"```(python|sh)\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["quickstart.md", "new-method.md"])
def test_a_tutorial_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Python as it is; commands with one seed, one bag size and no network, on real data only as far as the plan."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for kind, block in in_order(ROOT / "docs" / name):
        if kind == "python":
            if plugin := re.match(r"# (\w+\.py)\n", block):
                (tmp_path / plugin[1]).write_text(block)
            else:
                exec(compile(block, name, "exec"), names)
            continue
        for line in re.findall(r"^llpbench (.*)$", block, flags=re.MULTILINE):
            if NOT_RUN.match(line):
                continue
            arguments = shlex.split(line, comments=True)
            if arguments[0] == "run":
                arguments = [re.sub(",(dllp|supervised)", "", word) for word in arguments]
                arguments = ["8" if word == "8,64" else word for word in arguments]
                arguments += ["--dry-run"] if "adult" in line else [] if "--seeds" in arguments else ["--seeds", "1"]
            done = llpbench(*arguments, cwd=tmp_path)
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


@pytest.mark.slow
def test_the_worked_example_of_belief_propagation_runs() -> None:
    page = ROOT / "docs" / "bp-engines.md"
    text = page.read_text(encoding="utf-8").split("## A worked example")[1].split("\n## ")[0]
    names: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
            exec(compile(block, page.name, "exec"), names)
    assert printed.getvalue().split("\n")[:3] == ["[0.31 0.71 0.95]", "True 2", "0.805"]
