"""Import rules, size of modules, hooks, and what the command line loads."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from helpers import PATIENCE

import llpbench
from llpbench.contracts import hookspecs
from llpbench.plugins.registry import load_registry

ROOT = Path(__file__).resolve().parents[2]
HARNESS = ROOT / "llpbench"
PLUGINS = {"llpbench_methods": ROOT / "methods", "llpbench_datasets": ROOT / "datasets"}
ENGINES = {"torch", "jax", "tensorflow", "keras"}
HEAVY = ENGINES | {"pandas", "sklearn", "numba", "scipy", "numpy", "optuna", "distributed", "pooch", "rich", "psutil"}
HOOKS = sorted(name for name in vars(hookspecs) if name.startswith("llpbench_"))


def sources(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.rglob("*.py") if "__pycache__" not in path.parts)
    assert found, folder
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


# -- imports -----------------------------------------------------------------------------------------------------------


def test_import_contracts_hold() -> None:
    """The contracts of ``[tool.importlinter]``: core and satellites, public names, no backend in the harness."""
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("package", PLUGINS)
def test_built_in_plugins_import_public_names_only(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {alias.name}"
        for path in sources(PLUGINS[package])
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and node.module == "llpbench"
        for alias in node.names
        if alias.name not in llpbench.__all__
    ]
    assert wrong == []


BUILDS_ON = {
    ("llpbench_datasets.landscape", "llpbench_datasets.adult"),
    ("llpbench_methods.bp_field", "llpbench_methods.bp"),
}
"""Built-in plugins that may import another one."""


@pytest.mark.parametrize("package", PLUGINS)
def test_built_in_plugins_do_not_import_one_another(package: str) -> None:
    """Methods and datasets are known by their entry points: adding one needs no edit here."""
    plugins = {entry.module for entry in entry_points(group="llpbench") if entry.module.startswith(f"{package}.")}
    assert len(plugins) > 5
    wrong = []
    for path in sources(PLUGINS[package]):
        importer = ".".join(path.relative_to(PLUGINS[package]).parts[:2]).removesuffix(".py")
        for node in ast.walk(tree(path)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported = {".".join(name.split(".")[:2]) for name in names} & (plugins - {importer})
            wrong += [(importer, name) for name in imported if (importer, name) not in BUILDS_ON]
    assert wrong == []


# -- the harness knows nobody by name ----------------------------------------------------------------------------------


def built_in_names() -> set[str]:
    registry = load_registry()
    entries = [*registry.methods, *registry.datasets]
    return {e.spec.name for e in entries if e.plugin.builtin}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """String constants without spaces, except docstrings."""
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


def test_harness_names_no_method_or_dataset() -> None:
    names = built_in_names()
    assert {"dllp", "mean-ridge", "adult", "synthetic"} <= names
    allowed = {
        ("run_settings.py", "adult"),  # the default of --datasets
        ("fit.py", "average"),  # the default of llpbench.fit
        ("fit.py", "bag-logistic"),  # the default for several tables of counts
        ("disclosure.py", "bag-logistic"),  # the attack of llpbench.disclosure
        ("render.py", "csv"),  # also a format of tables
        ("results.py", "csv"),
        ("build.py", "csv"),
    }
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in sources(HARNESS)
        for line, text in texts(path)
        if names & set(re.split(r"[^a-z0-9_.-]+", text)) and (path.name, text) not in allowed
    ]
    assert wrong == []


def test_execution_names_no_package_of_methods_or_datasets() -> None:
    """What is imported before cells are forked is the methods' to say (``MethodSpec.preload``)."""
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}"
        for path in sources(HARNESS / "execution")
        for line, text in texts(path)
        if text.partition(".")[0] in PLUGINS
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

VERBS = ("run", "tune", "compare", "disclosure")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["list"], ["list", "--json"], ["show", "dllp"], *([verb, "--help"] for verb in VERBS)],
    ids=" ".join,
)
def test_listing_loads_no_heavy_module(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert {"llpbench", "click"} <= loaded
    assert loaded & HEAVY == set()
    if arguments[0] not in VERBS:
        assert "llpbench_methods" in loaded  # plugins were loaded


def test_import_loads_no_submodule() -> None:
    code = "import sys, llpbench; print(*sorted(m for m in sys.modules if m.startswith('llpbench')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.split() == ["llpbench"]


# -- hooks -------------------------------------------------------------------------------------------------------------


def test_every_hook_has_a_test() -> None:
    tests = {
        name
        for path in sources(ROOT / "tests")
        if path.name.startswith("test_")
        for name in re.findall(r"^def (test_hook_\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert {f"test_hook_{hook}" for hook in HOOKS} <= tests


def test_every_hook_is_documented() -> None:
    text = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^### (llpbench_\w+)$", text, flags=re.MULTILINE)) == HOOKS
    assert all(getattr(hookspecs, hook).__doc__ for hook in HOOKS)
