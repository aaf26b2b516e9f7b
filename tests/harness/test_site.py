"""The site builds from the repository, offline, without a broken link, and its pages ask other hosts for nothing."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)")


def build(config: Path, out: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("mkdocs")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(out),
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"})


def test_a_tutorial_is_a_notebook_too() -> None:
    """Its cells are the blocks of the page, which other tests run, in their order; what is no Python is marked."""
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("build_site", ROOT / "docs" / "build_site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in module.TUTORIALS:
        page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        cells = [c for c in json.loads(module.notebook(page))["cells"] if c["cell_type"] == "code"]
        blocks = re.findall(r"```(?:python|sh)\n(.*?)```", page, flags=re.DOTALL)
        blocks = [block for block in blocks if "pip install" not in block]
        for cell, block in zip(cells, blocks, strict=True):
            source = "".join(cell["source"])
            python = re.sub(r"^(!|%%).*$", "", source, flags=re.MULTILINE)
            ast.parse(python)
            assert python.strip() in block
            assert [line[1:] for line in source.splitlines() if line.startswith("!")] in ([], block.splitlines())


@pytest.mark.slow
def test_the_site_builds_and_needs_no_other_host(tmp_path: Path) -> None:
    done = build(ROOT / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {str(p.relative_to(tmp_path / "site")): p.read_text() for p in (tmp_path / "site").rglob("*.html")}
    outside = {path: found for path, text in pages.items() if (found := LOADED.findall(text))}
    assert not outside
    assert 'id="bp-count"' in pages["methods.html"]
    assert 'id="adult"' in pages["datasets.html"]
    assert "--exitfirst" in pages["cli.html"]
    for name in ("llpbench.estimator.fit.fit", "llpbench.report.results.Results"):
        assert f'id="{name}"' in pages["api/use.html"]
    assert 'id="llpbench.contracts.data.Bags"' in pages["api/contracts.html"]
    assert 'id="llpbench_methods.inference.propagation.marginals"' in pages["api/inference.html"]
    assert "leaderboard-page/index.html" in pages
    assert (tmp_path / "site" / "notebooks" / "new-method.ipynb").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("links", "complaints"),
    [
        ("[x](no-such-page.md) [y](protocol.md#no-such-part)", ("no-such-page.md", "no-such-part")),
        ("[x](../leaderboards/no-such-file)", ("leads nowhere",)),
    ],
)
def test_a_broken_link_is_an_error(tmp_path: Path, links: str, complaints: tuple[str, ...]) -> None:
    for part in (".github", "README.md", "leaderboards", "llpbench", "methods", "datasets"):
        (tmp_path / part).symlink_to(ROOT / part)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "docs" / "quickstart.md").write_text(f"# Quickstart\n\n{links}\n")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert all(complaint in done.stderr for complaint in complaints), done.stderr
