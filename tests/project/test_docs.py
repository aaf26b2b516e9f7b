"""The code blocks of the documentation run, and their commands exist."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path
from typing import cast

import click
import pytest
from page_runner import (
    AS_NOTEBOOK,
    OPERATORS,
    ROOT,
    Block,
    PageError,
    PageRun,
    blocks,
    cheap_arguments,
    in_file,
    shell_commands,
)

from llpbench.cli import cli

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
FAST = ("README.md", "quickstart.md")

PRINTED = {"bp-engines.md": ("[0.31 0.71 0.95]", "True 2", "0.805")}
"""Output that a page quotes and that does not depend on cheap settings."""


def blocks_of(page: Path) -> list[Block]:  # type: ignore[valid-type]
    try:
        return list(blocks(page.read_text(encoding="utf-8")))
    except PageError as error:
        raise AssertionError(f"{page.name}: {error}") from error


def with_speed(page: Path) -> object:
    return pytest.param(page, id=page.name, marks=[] if page.name in FAST else [pytest.mark.slow])


@pytest.mark.parametrize(
    "page",
    [
        with_speed(page)
        for page in PAGES
        if page.name not in AS_NOTEBOOK and any(block.runs for block in blocks_of(page))
    ],
)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        PageRun(page, tmp_path).run()
    for promised in PRINTED.get(page.name, ()):
        assert promised in printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_valid(page: Path) -> None:
    """Every block has a known language, comments match their blocks, and code compiles."""
    text = page.read_text(encoding="utf-8")
    shown = [block for block in blocks_of(page) if block.shown]
    assert len(shown) == len(re.findall(r"^ *(?:```|~~~).+$", text, flags=re.MULTILINE))
    for block in shown:
        if block.quoted:
            assert in_file(block.code, ROOT / block.quoted), f"{page.name}: line {block.line} is not in {block.quoted}"
        elif block.runs and block.language == "sh":
            assert shell_commands(block.cheap) or "pip install" in block.code, (
                f"{page.name}: line {block.line}: nothing runs"
            )
        elif block.runs:
            compile(block.cheap, page.name, "exec")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```\nllpbench list\n```\n", "unknown language ''"),
        ("```ruby\nputs 1\n```\n", "unknown language 'ruby'"),
        ("<!-- not run: tired -->\n```sh\nllpbench list\n```\n", "unknown reason 'tired'"),
        ("<!-- not run: takes too long: embed -->\n```sh\nllpbench list\n```\n", "no line contains 'embed'"),
        ("<!-- cheap: 100 => 1 -->\n```python\nrun(10)\n```\n", "'100' is not in the block"),
        ("<!-- cheap: 100 -->\n```python\nrun(100)\n```\n", "lacks"),
        ("<!-- not run: takes too long -->\n", "no block follows"),
    ],
)
def test_invalid_comments_are_errors(text: str, complaint: str) -> None:
    with pytest.raises(PageError, match=complaint):
        blocks(text)


def test_comments_change_what_is_run() -> None:
    page = (
        "<!-- run sh\nllpbench list\n-->\n\n<!-- cheap: 100 => 1 -->\n<!-- not run: takes too long: slow -->\n"
        "```python\nquick(100)\nslow(100)\n```\n\n```text\n7\n```\n"
    )
    hidden, python, printed = blocks(page)
    assert (hidden.shown, hidden.runs, hidden.cheap) == (False, True, "llpbench list\n")
    assert (python.line, python.runs, python.cheap) == (7, True, "quick(1)\n")
    assert not printed.runs


def test_failing_block_is_reported_with_page_and_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for block in ("```sh\nllpbench no-such-verb\n```", "```sh\nfalse\n```", "```python\n1 / 0\n```"):
        page.write_text(f"# Page\n\n```python\nx = 1\n```\n\n{block}\n")
        with pytest.raises(AssertionError, match=r"page\.md, the block of line 7"):
            PageRun(page, tmp_path).run()


def test_commands_are_made_cheap() -> None:
    given = "run --methods dllp[lr=1e-3;1e-2],mean-ridge,bp --bags 8,512 -d adult,marketing,csv[path=a.csv]"
    assert shlex.join(cheap_arguments(shlex.split(given))).replace("'", "") == (
        "run --methods dllp[lr=1e-3;1e-2;epochs=2],mean-ridge,bp[epochs=2] --bags 8 "
        "-d synthetic[rows=600],csv[path=a.csv] --seeds 1"
    )
    assert cheap_arguments(["table", "results/a"]) == ["table", "results/a"]
    code = "M=dllp\npip install x && llpbench run \\\n  --methods $M  # all\n"
    assert shell_commands(code) == ["llpbench run    --methods dllp"]


def test_method_in_readme_is_short() -> None:
    code = next(block.code for block in blocks_of(ROOT / "README.md") if block.file)
    assert len([line for line in code.splitlines() if line.strip()]) < 30


# -- commands ----------------------------------------------------------------------------------------------------------


def commands(page: Path) -> list[list[str]]:
    """The arguments of every `llpbench` command in the shell blocks of a page, also of those that are not run."""
    lines = [line for block in blocks_of(page) if block.language == "sh" for line in shell_commands(block.code)]
    found = [shlex.split(line[line.index("llpbench") :]) for line in lines if re.match(r"(\w+=\S+ )?llpbench ", line)]
    return [words[1 : min((words.index(end) for end in OPERATORS if end in words), default=None)] for words in found]


def parse(arguments: list[str]) -> None:
    """Parse a command line as `llpbench` does, without running it."""
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


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.name)
def test_commands_are_valid(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("leaderboards/entries").mkdir(parents=True)
    Path("leaderboards/entries/NAME.toml").touch()
    for block in blocks_of(page):
        if block.file:
            Path(block.file).write_text(block.code)
    for arguments in commands(page):
        try:
            parse(arguments)
        except click.exceptions.Exit:  # --help and the like
            pass
        except click.UsageError as error:
            pytest.fail(f"{page.name}: llpbench {shlex.join(arguments)}: {error.format_message()}")


def test_parse_rejects_unknown_options() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 60
    with pytest.raises(click.UsageError, match="no-such-option"):
        parse(["run", "--no-such-option"])
    with pytest.raises(click.UsageError):
        parse(["leaderboard", "verify", "--cells", "many"])


# -- words -------------------------------------------------------------------------------------------------------------


def test_documentation_has_at_most_35000_words_outside_tables() -> None:
    lines = [line for page in (*PAGES, ROOT / "CHANGELOG.md") for line in page.read_text(encoding="utf-8").splitlines()]
    assert sum(len(line.split()) for line in lines if not line.startswith("|")) <= 35_000
