"""The documentation site builds offline, without broken links or external resources."""

from __future__ import annotations

import ast
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import click
import pytest
from fake_board import fake_board, with_overall
from page_runner import AS_NOTEBOOK, ROOT, blocks, cheap_page, module_of_docs

from llpbench.board.built.about import FILES, GUIDES
from llpbench.board.page import render_page
from llpbench.cli import cli

LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\"' >]+)")


def build_site() -> ModuleType:
    pytest.importorskip("mkdocs")
    return module_of_docs("build_site")


def test_notebook_has_the_blocks_of_its_tutorial() -> None:
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
@pytest.mark.parametrize("name", [Path(page).stem for page in AS_NOTEBOOK])
def test_notebook_runs(name: str, tmp_path: Path) -> None:
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


def test_summary_for_programs_names_pages_and_commands_that_exist() -> None:
    text = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")
    assert all((ROOT / "docs" / page).is_file() for page in re.findall(r"\]\((\S+?)\)", text))
    with click.Context(cli) as context:
        for command in re.findall(r"`llpbench ([^`]+)`", text):
            verb, *arguments = shlex.split(command)
            found = cli.get_command(context, verb)
            assert found is not None, command
            options = {option for parameter in found.params for option in parameter.opts}
            if not isinstance(found, click.Group):
                assert {word for word in arguments if word.startswith("-")} <= options, command


def test_leaderboard_links_to_guides_of_the_site() -> None:
    """Only the links change; scripts and their hashes do not."""
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


def test_broken_links_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    module = build_site()
    from mkdocs.config import load_config

    page = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))
    with pytest.raises(module.PluginError, match="leaderboards/no-such-file does not exist"):
        module.on_page_markdown("[x](../leaderboards/no-such-file)", page=page)
    monkeypatch.setattr(module, "GUIDES", {"../docs/no-such-page.md": "nothing"})
    with pytest.raises(module.PluginError, match=r"no-such-page\.md does not exist"):
        module.with_guides("")
    config = load_config(str(ROOT / "mkdocs.yml"))  # links inside docs/ are checked by MkDocs
    assert config.strict
    assert set(config.validation["links"].values()) == {logging.WARNING}
    assert set(config.validation["nav"].values()) == {logging.WARNING}


@pytest.mark.slow
def test_site_builds_without_external_resources(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"})
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
