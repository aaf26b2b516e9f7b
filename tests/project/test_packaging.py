"""The wheel, the source archive, the shipped leaderboard, the citation and the README."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from cli_runner import llpbench

ROOT = Path(__file__).resolve().parents[2]
BOARD = ROOT / "leaderboards"
PACKAGES = {"llpbench": ROOT, "llpbench_methods": ROOT / "methods", "llpbench_datasets": ROOT / "datasets"}


def _published() -> list[Path]:
    """The files of the leaderboard that an installed llpbench contains."""
    parts = ("cells", "datasets", "machines", "methods", "verified")
    return [BOARD / "facts.json", *(path for part in parts for path in (BOARD / part).glob("*.json*"))]


def test_local_board_takes_precedence_over_the_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from llpbench.board.content import shipped
    from llpbench.contracts.errors import StoreError

    monkeypatch.chdir(tmp_path)
    named = (None, Path("leaderboards"), Path("./leaderboards/"))  # the default name is the same as none
    for name in named:
        assert shipped.find_board(name) == BOARD  # a checkout uses its own leaderboards folder
    (tmp_path / "leaderboards").mkdir()
    for name in named:
        assert shipped.find_board(name) == Path("leaderboards")
    for other in ("nowhere", "empty"):
        (tmp_path / "empty").mkdir(exist_ok=True)
        with pytest.raises(StoreError, match=f"{other} is not a leaderboards folder"):
            shipped.find_board(Path(other))
    (tmp_path / "other" / "cells").mkdir(parents=True)
    assert shipped.find_board(Path("other")) == Path("other")
    assert shipped.shipped_instead_of(Path("leaderboards")) == BOARD
    assert shipped.shipped_instead_of(BOARD) is None
    (tmp_path / "leaderboards").rmdir()
    package = tmp_path / "site" / "llpbench" / "leaderboard"
    package.mkdir(parents=True)
    monkeypatch.setattr(shipped, "__file__", str(package / "content" / "shipped.py"))
    with pytest.raises(StoreError, match="Name one with --board"):
        shipped.find_board()
    assert shipped.shipped_instead_of(BOARD) is None
    (package / "published").mkdir()
    (package / "published" / "facts.json").write_text("{}")
    assert shipped.find_board() == package / "published"


def test_commands_never_write_into_the_shipped_board(tmp_path: Path) -> None:
    done = llpbench("rerun", "zzzz", cwd=tmp_path)
    assert done.returncode == 2
    assert "the leaderboard that came with llpbench" in done.stderr
    assert "cell 'zzzz': unknown id" in done.stderr
    done = llpbench("leaderboard", "verify", "--record", cwd=tmp_path)
    assert done.returncode == 2
    assert "--record cannot change the leaderboard that came with llpbench" in done.stderr


@pytest.mark.parametrize("verb", ["status", "table"])
def test_shipped_board_replaces_a_missing_leaderboards_folder(verb: str, tmp_path: Path) -> None:
    from llpbench import __version__

    arguments = (verb, "--suite", "llpbench-2026.1/privacy", "--board")
    done = llpbench(*arguments, "leaderboards", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"the leaderboard that came with llpbench {__version__}: {BOARD}\n" in done.stderr
    assert "privacy: " in done.stdout if verb == "status" else "mean-ridge" in done.stdout
    assert not (tmp_path / "leaderboards").exists()
    other = llpbench(*arguments, "nowhere", cwd=tmp_path)
    assert other.returncode != 0
    assert "nowhere is not a leaderboards folder" in other.stderr


def test_citation_matches_the_version() -> None:
    import yaml

    from llpbench import __version__
    from llpbench.board.built import citation

    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cff["version"] == project["version"] == __version__
    assert cff["title"] == citation.TITLE
    assert cff["authors"] == [{"name": citation.DEVELOPERS}]
    assert cff["license"] == project["license"]
    (paper,) = cff["references"]
    assert (paper["title"], paper["year"], paper["url"]) == (
        citation.PAPER.title,
        citation.PAPER.year,
        citation.PAPER.url,
    )
    assert paper["collection-title"] == citation.PAPER.venue
    assert tuple((a["family-names"], a["given-names"]) for a in paper["authors"]) == citation.PAPER.authors
    assert project["urls"]["Paper"] == citation.PAPER.url


def test_cite_prints_balanced_bibtex(tmp_path: Path) -> None:
    from llpbench.board.built.citation import bibtex, tex

    done = llpbench("cite", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("@software{llpbench,")
    assert "@inproceedings{havaldar2024llp," in done.stdout
    hostile = bibtex("1.0", note="50 % of {A_1 & B} \\ $x$")
    bare = re.sub(r"\\.", "", hostile)
    assert bare.count("{") == bare.count("}")
    assert tex("a_b & 5 %") == r"a\_b \& 5 \%"


def test_plugin_folders_are_not_packages() -> None:
    assert not (ROOT / "methods" / "__init__.py").exists()
    assert not (ROOT / "datasets" / "__init__.py").exists()


def test_entry_points_name_existing_modules() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for name, module in project["entry-points"]["llpbench"].items():
        base = PACKAGES[module.partition(".")[0]]
        path = base / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), name


def test_torch_is_limited_to_releases_with_a_cpu_build() -> None:
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (line,) = project["optional-dependencies"]["torch"]
    allowed = Requirement(line).specifier
    assert "2.13.0+cpu" in allowed  # the release that the tests run on
    assert not {"2.13.1", "2.14.0", "3.0.0"} & set(allowed.filter(["2.13.1", "2.14.0", "3.0.0"]))


def test_templates_use_addresses_of_the_project_only() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    papers = (ROOT / "methods" / "llpbench_methods" / "bp" / "__init__.py").read_text()
    assert project["urls"]["Paper"] in papers
    named = set(project["urls"].values())
    for template in (ROOT / "llpbench" / "kit" / "templates").rglob("*.txt"):
        found = set(re.findall(r"https?://[^\s)\"'>`]+", template.read_text())) - {"https://..."}
        assert found <= named, template


def test_ci_runs_every_supported_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {found[1] for c in project["classifiers"] if (found := re.fullmatch(r".*:: (3\.\d+)", c))}
    matrix = re.search(r"python: (\[.*\])", (ROOT / ".github" / "workflows" / "tests.yml").read_text())
    assert matrix is not None
    assert set(json.loads(matrix[1])) == named
    others = re.search(r"for version in (.*); do", (ROOT / ".ci" / "other-pythons").read_text())
    assert others is not None
    assert set(others[1].split()) == named - {"3.11"}


def test_readme_images_exist() -> None:
    images = re.findall(r"!\[[^]]*\]\(([^)\s]+)\)", (ROOT / "README.md").read_text())
    assert images
    assert all((ROOT / image).is_file() for image in images if "://" not in image)


def test_addresses_makes_readme_links_absolute(tmp_path: Path) -> None:
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    command = [sys.executable, str(ROOT / "docs" / "addresses.py"), "https://host.example/llpbench/"]
    subprocess.run([*command, "--root", str(tmp_path)], check=True)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text())["project"]
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog", "Paper"} == set(project["urls"])
    tag, text = f"v{project['version']}", (tmp_path / "README.md").read_text()
    assert f"](https://host.example/llpbench/blob/{tag}/docs/protocol.md)" in text
    assert f"](https://host.example/llpbench/raw/{tag}/docs/images/leaderboard.png)" in text
    links = re.findall(r"\]\(([^)]*)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    assert links
    assert all(link.startswith("https://") for link in links)
    again = subprocess.run([*command, "--root", str(tmp_path)], capture_output=True, text=True)
    assert again.returncode != 0
    assert "already has addresses" in again.stderr


def test_readme_is_short_and_shows_the_commands_of_ci() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    tests = next(line for line in lines if line.endswith("&& pytest"))
    assert tests in (ROOT / ".ci" / "run").read_text()
    assert next(i for i, line in enumerate(lines) if "![" in line) < 15


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A source archive of the files that git tracks, and the output of the build."""
    folder = tmp_path_factory.mktemp("sdist")
    for name in _tracked():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "source" / name)
    return _build("--sdist", folder / "source", folder)


@pytest.fixture(scope="module")
def wheel(archive: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A wheel built from the source archive, and the output of the build."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(archive[0]) as tar:
        tar.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    built = _build("--wheel", source, folder)
    shutil.rmtree(source)
    return built


@pytest.mark.slow
def test_source_archive_contains_the_tree(archive: tuple[Path, str]) -> None:
    path, output = archive
    with tarfile.open(path) as tar:
        inside = {member.name.partition("/")[2] for member in tar if member.isfile()}
    generated = {name for name in inside if ".egg-info/" in name} | {"PKG-INFO", "setup.cfg"}
    assert inside - generated == set(_tracked())
    assert not _warnings(output)


@pytest.mark.slow
def test_wheel_contains_the_packages_and_the_board(wheel: tuple[Path, str]) -> None:
    path, output = wheel
    inside = {name for name in zipfile.ZipFile(path).namelist() if ".dist-info/" not in name}
    tracked = {ROOT / name for name in _tracked()}
    tree = {
        path.relative_to(base).as_posix()
        for package, base in PACKAGES.items()
        for path in (base / package).rglob("*")
        if path in tracked
    }
    board = {f"llpbench/board/published/{path.relative_to(BOARD).as_posix()}" for path in _published()}
    assert len(board) > 3
    assert inside == tree | board
    assert not _warnings(output)


@pytest.mark.slow
def test_wheel_runs_outside_the_repository(wheel: tuple[Path, str], tmp_path: Path) -> None:
    python = _environment(tmp_path / "venv", wheel[0])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [python, "-m", "llpbench", *words], cwd=elsewhere, env=env, capture_output=True, text=True
        )

    def command(*words: str) -> str:
        done = run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = json.loads(command("plugins", "--json"))["plugins"]
    assert all(Path(plugin["file"]).is_relative_to(tmp_path / "venv") for plugin in where)
    assert {"bp", "synthetic"} <= {plugin["name"] for plugin in where}
    table = command("run", "-m", "mean-ridge", "-d", "synthetic[rows=400]", "-b", "8", "-s", "1", "-o", "out")
    assert "mean-ridge" in table
    assert (elsewhere / "out" / "report.html").is_file()
    cells = sum(len(path.read_text().splitlines()) for path in (BOARD / "cells").glob("*.jsonl"))
    asked = run("rerun", "0")  # an ambiguous id: the error names the board that was read
    assert asked.returncode == 2
    assert str(tmp_path / "venv") in asked.stderr
    assert f"({cells} cells)" in asked.stderr


def _tracked() -> list[str]:
    """The files that git tracks."""
    try:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def _build(kind: str, source: Path, out: Path) -> tuple[Path, str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", str(out), str(source)],
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.glob("*.tar.gz" if kind == "--sdist" else "*.whl")
    return made, done.stdout + done.stderr


def _warnings(said: str) -> list[str]:
    return [line for line in said.splitlines() if re.search(r"warning|deprecat", line, flags=re.IGNORECASE)]


def _environment(folder: Path, wheel: Path) -> Path:
    """An environment with the wheel; its dependencies come from the current environment."""
    venv.create(folder, with_pip=False)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    needed = [p for p in sys.path if p.endswith("site-packages")]
    (site / "needed.py").write_text(
        f"import sys\nsys.path.extend({needed!r})\n"
    )  # plain paths: no .pth in them is read
    (site / "needed.pth").write_text("import needed\n")
    return folder / "bin" / "python"
