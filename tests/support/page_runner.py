"""Runs the code of a documentation page from top to bottom, at cheap settings."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from cli_runner import llpbench

from llpbench.plugins.options import split_list
from llpbench.plugins.registry import load_registry

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = ("|", ">", "&")
SMALL = "synthetic[rows=600]"
REAL = ("adult", "marketing", "cifar-b", "cifar-s", "cifar10")
AS_NOTEBOOK = ("own-data.md", "new-method.md", "notebooks.md")
"""Pages that are run as notebooks (test_site.py) instead of pages (test_docs.py)."""
INSTALLS = re.compile(r"(python3? -m venv|\. \.venv|(python -m )?pip install|pre-commit install|helm install)\b")


def module_of_docs(name: str) -> ModuleType:
    """Import a module of docs/, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    if name not in sys.modules:
        sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


_docs = module_of_docs("blocks")
blocks, rewritten, Block, PageError = _docs.blocks, _docs.rewritten, _docs.Block, _docs.PageError


# -- cheap commands ----------------------------------------------------------------------------------------------------


def cheap_arguments(arguments: list[str]) -> list[str]:
    """Make a command take seconds: one seed, one bag size, few rows and epochs, two trials, one core.

    Real data is replaced by generated data, unless bags are formed from its columns.
    """
    if not arguments or arguments[0] not in ("run", "tune"):
        return arguments
    words = list(arguments)
    _change(words, ("--methods", "-m"), lambda given: _each(given, _few_epochs))
    _change(
        words, ("--seeds", "-s"), lambda given: re.sub(r"^(\d+)-\d+$", r"\1-\1", given) if "-" in given else "1", "1"
    )
    _change(words, ("--trials",), lambda _: "2")
    _change(words, ("--jobs", "-j"), lambda _: "1")
    if {"--config", "--schemes", "--suite"} & set(words):
        return words
    _change(words, ("--datasets", "-d"), lambda given: _each(given, _few_rows), SMALL)
    if "flights" not in " ".join(words) and ";bag=" not in " ".join(words):
        _change(words, ("--bags", "-b"), lambda _: "8", "8")
    return words


def _change(words: list[str], names: tuple[str, ...], new: Callable[[str], str], absent: str | None = None) -> None:
    """Change the value of an option in place; add it with the value ``absent`` if it is not given."""
    at = next((i for i, word in enumerate(words) if word in names), None)
    if at is not None:
        words[at + 1] = new(words[at + 1])
    elif absent is not None:
        words += [names[0], absent]


def _each(given: str, change: Callable[[str], str]) -> str:
    return ",".join(dict.fromkeys(change(one) for one in split_list(given)))


def _few_rows(dataset: str) -> str:
    return SMALL if dataset in ("synthetic", *REAL) else dataset


def _few_epochs(method: str) -> str:
    name, _, settings = method.partition("[")
    known = {entry.spec.name: {p.name for p in entry.spec.params} for entry in load_registry().methods}
    if "epochs" not in known.get(name, ()) or "epochs" in settings:
        return method
    return f"{name}[{settings.removesuffix(']')}{';' if settings else ''}epochs=2]"


# -- shell -------------------------------------------------------------------------------------------------------------


def shell_commands(code: str) -> list[str]:
    """The commands of a shell block with variables filled in, without those that install something."""
    found, variables = list[str](), dict[str, str]()
    for line in code.replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if assigned := re.fullmatch(r"(\w+)=(\S+)", line):
            variables[assigned[1]] = assigned[2].strip("'\"")
            continue
        for name, value in variables.items():
            line = line.replace(f"${name}", value)
        found += [part.strip() for part in line.split("&&") if part.strip() and not INSTALLS.match(part.strip())]
    return found


def cheap_shell(code: str) -> str:
    """A shell block with cheap `llpbench` commands."""
    lines = []
    for command in shell_commands(code):
        words = shlex.split(command) if command.startswith("llpbench ") else []
        cheap = " ".join(word if word in OPERATORS else shlex.quote(word) for word in cheap_arguments(words[1:]))
        lines.append(f"llpbench {cheap}" if words else command)
    return "".join(f"{line}\n" for line in lines)


def run_shell(code: str, folder: Path) -> None:
    """Run a shell block, with `llpbench` in this process unless it needs the shell."""
    for command in cheap_shell(code).splitlines():
        words = shlex.split(command)
        if words[0] == "llpbench" and not {*OPERATORS, "--executor"} & set(words):
            done = llpbench(*words[1:], cwd=folder)
        else:
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            env = {**os.environ, "PATH": path, "NO_COLOR": "1"}
            done = subprocess.run(["bash", "-ec", command], cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"


# -- a page ------------------------------------------------------------------------------------------------------------


class PageRun:
    """A page with its folder and the names that its Python blocks define."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page, self.folder, self.names = page, folder, dict[str, object]()

    def run(self) -> int:
        """Run every block and return how many were run."""
        there = blocks(self.page.read_text(encoding="utf-8"))
        for block in there:
            try:
                self._run(block)
            except Exception as error:
                raise AssertionError(f"{self.page.name}, the block of line {block.line}: {error}") from error
        return sum(block.runs for block in there)

    def _run(self, block: Block) -> None:  # type: ignore[valid-type]
        if block.language == "toml":
            tomllib.loads(block.code)
            if block.file:
                (self.folder / block.file).write_text(block.code)
        elif block.language == "json":
            json.loads(block.code)
        elif block.quoted:
            assert in_file(block.code, ROOT / block.quoted), f"{block.quoted} does not contain it"
        elif block.runs and block.language == "sh":
            run_shell(block.cheap, self.folder)
        elif block.runs and block.file:
            (self.folder / block.file).write_text(block.cheap)
        elif block.runs:
            # line numbers of a traceback are those of the page
            code = "\n" * block.line + block.cheap
            exec(compile(code, str(self.page), "exec"), self.names)


def in_file(code: str, file: Path) -> bool:
    """Whether a file contains the lines of a block in sequence, at any indentation."""
    lines = [line.strip() for line in code.splitlines()]
    there = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    return any(there[i : i + len(lines)] == lines for i in range(len(there)))


def cheap_page(text: str) -> str:
    """A page with cheap blocks, for its notebook."""

    def change(block: Block) -> str | None:  # type: ignore[valid-type]
        if not block.runs:
            return None
        return cheap_shell(block.cheap) if block.language == "sh" else block.cheap

    return rewritten(text, change)
