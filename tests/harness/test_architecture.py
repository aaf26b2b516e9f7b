"""The rules of direction, read from the source itself, and what the command line may load."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import llpbench
from llpbench import hookspecs
from llpbench.registry import load_registry

ROOT = Path(__file__).resolve().parents[2]
HARNESS = ROOT / "llpbench"
PLUGINS = {"llpbench_methods": ROOT / "methods", "llpbench_datasets": ROOT / "datasets"}
ENGINES = {"torch", "jax", "tensorflow", "keras"}
HEAVY = ENGINES | {"pandas", "sklearn", "numba", "scipy", "numpy", "optuna", "distributed", "pooch", "rich", "psutil"}
HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("llpbench_"))


@dataclass(frozen=True)
class Imported:
    """A name a module imports, and whether it does so for type checkers alone."""

    module: str
    name: str
    typing_only: bool
    line: int


def sources(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
    assert found, folder
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[Imported]:
    """Every import of a file, wherever it stands, also by ``importlib.import_module("...")``."""
    module = tree(path)
    guarded = {
        id(inner)
        for node in ast.walk(module)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    for node in ast.walk(module):
        typing_only = id(node) in guarded
        if isinstance(node, ast.Import):
            yield from (Imported(alias.name, "", typing_only, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            yield from (Imported(node.module or "", alias.name, typing_only, node.lineno) for alias in node.names)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            names = [str(argument.value) for argument in node.args[:1] if isinstance(argument, ast.Constant)]
            yield from (Imported(name, "", typing_only, node.lineno) for name in names)


def harness_module(imported: Imported) -> str:
    """The module of the harness an import leads to, without the package's name; empty for others."""
    if imported.module == "llpbench":
        return imported.name
    return imported.module.removeprefix("llpbench.") if imported.module.startswith("llpbench.") else ""


def top(imported: Imported) -> str:
    return imported.module.partition(".")[0]


def where(path: Path, imported: Imported) -> str:
    return f"{path.relative_to(ROOT)}:{imported.line}: {imported.module} {imported.name}".rstrip()


# -- who may import whom -----------------------------------------------------------------------------------------------


def test_the_harness_imports_no_plugin_and_no_engine() -> None:
    forbidden = ENGINES | set(PLUGINS)
    assert [where(p, i) for p in sources(HARNESS) for i in imports(p) if top(i) in forbidden] == []


@pytest.mark.parametrize("package", PLUGINS)
def test_built_in_plugins_use_the_public_contracts_only(package: str) -> None:
    wrong = [
        where(path, i)
        for path in sources(PLUGINS[package])
        for i in imports(path)
        if top(i) == "llpbench" and (i.module != "llpbench" or i.name not in llpbench.__all__)
    ]
    assert wrong == []


def test_methods_know_no_dataset_and_datasets_no_method() -> None:
    assert [
        where(p, i) for p in sources(PLUGINS["llpbench_methods"]) for i in imports(p) if top(i) == "llpbench_datasets"
    ] == []
    assert [
        where(p, i) for p in sources(PLUGINS["llpbench_datasets"]) for i in imports(p) if top(i) == "llpbench_methods"
    ] == []


def test_reports_read_result_tables_only() -> None:
    allowed = {"cells", "store", "specs", "data", "errors", "files", "labels"}
    wrong = [
        where(path, i)
        for path in sources(HARNESS / "report")
        for i in imports(path)
        if (module := harness_module(i)) and module not in allowed and module.partition(".")[0] != "report"
    ]
    assert wrong == []


LAYERS = [
    {"errors", "seeds", "files", "specs", "data", "protocols", "hookspecs", "transfer"},
    {"metrics", "cells", "privacy", "plugins", "sysinfo", "labels", "sources", "cache", "state"},
    {"aggregates", "encoder", "bags", "selection", "store", "registry", "builtin", "download"},
    {"calibration", "monitor", "provenance", "grid", "report", "merge"},
    {"modelfile", "worker"},
    {"fitting", "executors"},
    {"estimator", "runner"},
    {"tune"},
    {"board", "testing"},
    {"cli", "pytest_plugin"},
    {"__main__"},
]
# The built-in plugin names the local executor inside a function, and the plugin loader names the built-in plugin.
EXCEPTIONS = {("builtin", "executors"), ("plugins", "builtin")}


def layer(module: str) -> int:
    """Which layer a module of the harness is on."""
    head = module.partition(".")[0]
    return next(i for i, members in enumerate(LAYERS) if head in members)


def test_imports_point_downwards() -> None:
    wrong = []
    for path in sources(HARNESS):
        own = path.relative_to(HARNESS).with_suffix("").parts[0]
        if own == "__init__":
            continue
        for i in imports(path):
            module = harness_module(i).partition(".")[0]
            if not module or i.typing_only or (own, module) in EXCEPTIONS or module == "__version__":
                continue
            if layer(module) > layer(own):
                wrong.append(where(path, i))
    assert wrong == []


def test_every_module_has_a_layer() -> None:
    there = {path.stem for path in HARNESS.glob("*.py")} | {p.parent.name for p in HARNESS.glob("*/__init__.py")}
    assert set().union(*LAYERS) == there - {"__init__"}


# -- the harness knows nobody by name ----------------------------------------------------------------------------------


def built_in_names() -> set[str]:
    registry = load_registry()
    entries = [*registry.methods, *registry.datasets]
    return {e.spec.name for e in entries if e.plugin.builtin}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """String constants that are code: not docstrings, and not prose (which has spaces and may give examples)."""
    module = tree(path)
    prose = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        literal = isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
        if literal and not re.search(r"\s", node.value):
            yield node.lineno, node.value


def test_the_harness_names_no_method_and_no_dataset() -> None:
    names = built_in_names()
    assert {"dllp", "mean-ridge", "adult", "synthetic"} <= names
    allowed = {
        ("grid.py", "adult"),  # the default of --datasets
        ("estimator.py", "bp-count"),  # the default of llpbench.fit
        ("results.py", "csv"),  # also a format of tables
    }
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in sources(HARNESS)
        for line, text in texts(path)
        if names & set(re.split(r"[^a-z0-9_.-]+", text)) and (path.name, text) not in allowed
    ]
    assert wrong == []


# -- size --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", [HARNESS, *PLUGINS.values()], ids=lambda folder: folder.name)
def test_modules_are_at_most_400_lines(folder: Path) -> None:
    long = {str(p.relative_to(ROOT)): n for p in sources(folder) if (n := len(p.read_text().splitlines())) > 400}
    assert long == {}


# -- a light command line ----------------------------------------------------------------------------------------------

LOADED = """
import contextlib, io, sys
from llpbench.cli import cli
with contextlib.redirect_stdout(io.StringIO()):
    try:
        cli.main(args=sys.argv[1:], prog_name="llpbench", standalone_mode=False)
    except SystemExit:
        pass
print("\\n".join(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["list"], ["list", "--json"], ["show", "dllp"], ["run", "--help"], ["tune", "--help"]],
    ids=" ".join,
)
def test_looking_around_loads_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert {"llpbench", "click"} <= loaded
    assert loaded & HEAVY == set()
    if arguments not in (["run", "--help"], ["tune", "--help"]):
        assert "llpbench_methods" in loaded  # the plugins were really asked


def test_importing_the_package_loads_next_to_nothing() -> None:
    code = "import sys, llpbench; print(*sorted(m for m in sys.modules if m.startswith('llpbench')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["llpbench"]


# -- hooks are tested and documented -----------------------------------------------------------------------------------


def test_there_are_the_hooks_of_the_design() -> None:
    wanted = ["bag_schemes", "cell_finished", "commands", "datasets", "executor", "methods", "metrics", "references"]
    assert [f"llpbench_{name}" for name in wanted] == HOOKS


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_test_of_its_name(hook: str) -> None:
    tests = {
        node.name
        for path in sources(ROOT / "tests")
        if path.name.startswith("test_")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef)
    }
    assert f"test_hook_{hook}" in tests


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_a_heading_in_the_docs(hook: str) -> None:
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert re.search(rf"^#+ .*\b{hook}\b", text, re.MULTILINE), f"docs/plugins.md has no heading for {hook}"


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_says_in_words_what_it_is_for(hook: str) -> None:
    assert len((getattr(hookspecs, hook).__doc__ or "").split()) > 5
