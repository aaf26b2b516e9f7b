"""The site builds from the repository, offline, without a broken link, and its pages ask other hosts for nothing."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from fake_board import fake_board, with_overall
from page_runner import ROOT, blocks, cheap_page, module_of_docs

from llpbench.board.built.about import FILES, GUIDES
from llpbench.board.page import render_page

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


def build_site() -> ModuleType:
    pytest.importorskip("mkdocs")
    return module_of_docs("build_site")


def test_a_tutorial_is_a_notebook_too() -> None:
    """Its cells are the blocks of the page that run, in their order; what is no Python is marked."""
    module = build_site()
    for name in module.TUTORIALS:
        page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        cells = [c for c in json.loads(module.notebook(page))["cells"] if c["cell_type"] == "code"]
        shown = [b for b in blocks(page) if b.shown and b.runs and "pip install" not in b.code]
        for cell, block in zip(cells, shown, strict=True):
            source = "".join(cell["source"])
            python = re.sub(r"^(!|%%).*$", "", source, flags=re.MULTILINE)
            ast.parse(python)
            assert python.strip() in block.code
            assert [line[1:] for line in source.splitlines() if line.startswith("!")] in ([], block.code.splitlines())
        assert "<!--" not in module.notebook(page)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries that run notebooks
@pytest.mark.parametrize("name", ["quickstart", "own-data", "new-method"])
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    """From top to bottom in a kernel, at cheap settings; a command that fails ends it."""
    pytest.importorskip("ipykernel")
    client, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    assert name in build_site().TUTORIALS
    page = cheap_page((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))
    notebook = nbformat.reads(build_site().notebook(page), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source = re.sub(r"^!.*$", r"\g<0>\nassert not _exit_code", cell.source, flags=re.MULTILINE)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    running = client.NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(tmp_path)}})
    running.execute(env={**os.environ, "PATH": path, "NO_COLOR": "1", "MPLBACKEND": "Agg"})
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


def test_the_leaderboard_leads_to_pages_of_the_site() -> None:
    """The guides beside the page have other addresses there; its scripts and their hashes stay as they are."""
    board = with_overall(fake_board(1, bags=(8,), noises=("none",)))
    board["about"]["files"] = {**FILES, **GUIDES}
    page = render_page(board)
    moved = build_site().with_guides(page)
    assert "../docs/" not in moved
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for address in GUIDES:
        name = Path(address).stem
        assert f'"../{name}.html"' in moved
        assert f": {name}.md" in nav
        moved = moved.replace(f'"../{name}.html"', f'"{address}"')
    assert moved == page


def test_a_guide_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    module = build_site()
    monkeypatch.setattr(module, "GUIDES", {"../docs/no-such-page.md": "nothing"})
    with pytest.raises(module.PluginError, match="leads nowhere"):
        module.with_guides("")


def test_site_offers_the_downloads_of_the_leaderboard(monkeypatch: pytest.MonkeyPatch) -> None:
    module = build_site()
    from mkdocs.config import load_config
    from mkdocs.structure.files import Files

    built = {name: name.encode() for name in ("index.html", *FILES)}
    monkeypatch.setattr("llpbench.board.built.build.built_files", lambda content, downloads: built)
    monkeypatch.setattr("llpbench.board.content.folder.read_folder", lambda folder: None)
    config = load_config(str(ROOT / "mkdocs.yml"))  # loads build_site
    files = config.plugins.on_files(Files([]), config=config)
    for name in FILES:
        found = files.get_file_from_path(str(Path(module.BOARD_PAGE).parent / name))
        assert found is not None
        assert found.content_bytes == built[name]


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
    for name in ("llpbench.owndata.fit.fit", "llpbench.report.results.Results"):
        assert f'id="{name}"' in pages["api/use.html"]
    assert 'id="llpbench.contracts.data.Bags"' in pages["api/contracts.html"]
    assert 'id="llpbench_methods.inference.propagation.marginals"' in pages["api/inference.html"]
    board = tmp_path / "site" / "leaderboard-page"
    assert {path.name for path in board.iterdir()} == {"index.html", *FILES}
    assert "../docs/" not in pages["leaderboard-page/index.html"]
    for guide in re.findall(r'"\.\./([\w-]+\.html)"', pages["leaderboard-page/index.html"]):
        assert guide in pages
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
    for part in (
        ".github",
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "leaderboards",
        "llpbench",
        "methods",
        "datasets",
    ):
        (tmp_path / part).symlink_to(ROOT / part)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    (tmp_path / "docs" / "quickstart.md").write_text(f"# Quickstart\n\n{links}\n")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert all(complaint in done.stderr for complaint in complaints), done.stderr
