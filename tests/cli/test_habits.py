"""The verbs of every day: short flags, plugins, config, cache, results list, report, the log and -v."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from cli_runner import FAULTY, llpbench
from hypothesis import given
from hypothesis import strategies as st

from llpbench.cluster.overview import list_results
from llpbench.contracts.errors import StoreError, UnknownNameError
from llpbench.plugins.registry import load_registry
from llpbench.report.run_log import NAME, RunLog
from llpbench.system.environment import VARIABLES
from llpbench.system.quantities import format_bytes
from llpbench.tools.cache import cache_folders, clean_cache
from llpbench.tools.plugins import plugin_facts

ROOT = Path(__file__).resolve().parents[2]
SMALL = "synthetic[rows=400;dim=4]"
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which one small run was made with short flags; what it said on standard error is in ``said``."""
    folder = tmp_path_factory.mktemp("habits")
    done = llpbench(
        "run", "-m", "mean-ridge,best-feature", "-d", SMALL, "-b", "8", "-s", "3,4", "-j", "1", "-o", "results/mine",
        "-v", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (folder / "said").write_text(done.stderr)
    return folder


def test_short_flags_equal_long_ones(work: Path) -> None:
    long = llpbench(
        "run", "--methods", "mean-ridge,best-feature", "--datasets", SMALL, "--bags", "8", "--seeds", "3,4", "--jobs",
        "1", "--out", "results/mine", "--dry-run", cwd=work,
    )  # fmt: skip
    assert "0 of 4 cells would run, 4 kept" in long.stderr


def test_tune_has_the_same_short_flags(tmp_path: Path) -> None:
    done = llpbench("tune", "-m", "dlpl", "-d", SMALL, "-b", "8", "-s", "1", "-j", "1", "-o", "t", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown method 'dlpl'" in done.stderr


def test_no_verb_has_one_short_flag_for_two_options() -> None:
    import click

    from llpbench.cli import cli

    def walk(command: click.Command, context: click.Context) -> None:
        flags = [flag for parameter in command.params for flag in parameter.opts if isinstance(parameter, click.Option)]
        assert len(flags) == len(set(flags)), command.name
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                walk(found, click.Context(found, parent=context))

    walk(cli, click.Context(cli))


def test_verbose_has_times_and_every_cell(work: Path) -> None:
    lines = (work / "said").read_text().splitlines()
    for word in ("start", "end"):
        assert sum(bool(re.match(rf"{STAMP}  {word} +[0-9a-f]{{16}}  synthetic", line)) for line in lines) == 4


def test_log_contains_command_versions_cells_and_end(work: Path) -> None:
    text = (work / "results" / "mine" / NAME).read_text()
    assert all(re.match(rf"{STAMP} \[\d+\] ", line) for line in text.splitlines())
    assert "start: llpbench run --methods mean-ridge,best-feature" in text
    assert re.search(r"llpbench \S+, Python 3", text)
    assert len(re.findall(r"AUROC \d", text)) == 4
    ends = [line.partition("] ")[2] for line in text.splitlines() if "] end: " in line]
    assert ends[0].startswith("end: 4 ok")  # further tests may repeat the run in the same folder


def test_second_run_appends_and_failures_are_in_the_log(tmp_path: Path) -> None:
    for _ in range(2):
        llpbench(
            "run", "--plugin", str(FAULTY), "-m", "faulty-nan", "-d", SMALL, "-b", "8", "-s", "1", "-o", "out",
            "--rerun", "failed", "--quiet", cwd=tmp_path,
        )  # fmt: skip
    text = (tmp_path / "out" / NAME).read_text()
    assert text.count("start: ") == text.count("end: 1 failed") == 2
    assert "faulty-nan" in (tmp_path / "out" / "report.html").read_text()  # a page also where no cell has a number


def test_unwritable_log_does_not_fail_the_run(tmp_path: Path) -> None:
    RunLog(tmp_path / "nowhere").write("lost")
    (tmp_path / NAME).mkdir()
    RunLog(tmp_path).write("lost")


@given(st.lists(st.text(max_size=60), min_size=1, max_size=40))
def test_log_is_capped_and_keeps_the_newest_lines(texts: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        log = RunLog(Path(folder), most_bytes=600)
        for text in [*texts, "the last line"]:
            log.write(text)
            assert not log.path.exists() or log.path.stat().st_size <= 600
        assert log.path.read_text().splitlines()[-1].endswith("] the last line")


def test_run_writes_the_page_and_prints_its_path(work: Path) -> None:
    page = work / "results" / "mine" / "report.html"
    assert "page: results/mine/report.html" in (work / "said").read_text()
    text = page.read_text()
    assert "<title>llpbench: mine</title>" in text
    assert "mean-ridge" in text
    page.unlink()
    again = llpbench("report", cwd=work)
    assert again.returncode == 0, again.stderr
    assert page.read_text() == text  # the same results give the same bytes


def test_failing_page_does_not_fail_the_run(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> str:
        raise RuntimeError("no ink")

    monkeypatch.setattr("llpbench.board.built.own_page.own_page", broken)
    done = llpbench("run", "-m", "mean-ridge", "-d", SMALL, "-b", "8", "-s", "3,4", "-o", "results/mine", cwd=work)
    assert done.returncode == 0, done.stderr
    assert "no page: " in done.stderr
    assert "no ink" in done.stderr


def test_report_without_results_is_an_error(tmp_path: Path) -> None:
    assert "not a results folder" in llpbench("report", ".", cwd=tmp_path).stderr


def test_results_list(work: Path) -> None:
    (facts,) = list_results(work / "results")
    assert (facts.name, facts.done, facts.planned, facts.trouble) == ("mine", 4, 4, "")
    shown = llpbench("results", "list", cwd=work).stdout
    assert "4/4 cells" in shown
    assert "llpbench run --methods mean-ridge" in shown
    (as_json,) = json.loads(llpbench("results", "list", "results/mine", "--json", cwd=work).stdout)
    assert (as_json["name"], as_json["done"]) == ("mine", 4)


def test_results_list_reports_damage_and_follows_no_link(tmp_path: Path, work: Path) -> None:
    broken = tmp_path / "results" / "deep" / "er"
    broken.mkdir(parents=True)
    (broken / "manifest.json").write_text("{")
    (tmp_path / "results" / "link").symlink_to(work / "results")
    (facts,) = list_results(tmp_path / "results")
    assert facts.name == "deep/er"
    assert "cannot be read" in facts.trouble
    assert "damaged" in llpbench("results", "list", cwd=tmp_path).stdout
    nowhere = llpbench("results", "list", "nowhere", cwd=tmp_path)
    assert (nowhere.returncode, "llpbench run" in nowhere.stderr) == (2, True)


def test_plugins_lists_everything_registered(tmp_path: Path) -> None:
    registry = load_registry([FAULTY])
    facts = plugin_facts(registry)
    for kind in ("methods", "datasets", "metrics", "schemes", "rules", "executors"):
        named = sorted(name for plugin in facts for name in plugin.brings.get(kind, []))
        assert named == sorted(getattr(registry, kind).entries)
    content = json.loads(llpbench("plugins", "--plugin", str(FAULTY), "--json", cwd=tmp_path).stdout)
    file = next(plugin for plugin in content["plugins"] if plugin["name"] == "faulty")
    assert (file["distribution"], file["file"]) == ("", str(FAULTY))
    assert "faulty-exit" in file["brings"]["methods"]
    shown = llpbench("plugins", cwd=tmp_path).stdout
    assert re.search(r"^llpbench \d", shown, flags=re.MULTILINE)
    assert re.search(r"^  dllp +methods: dllp$", shown, flags=re.MULTILINE)


def test_config_shows_folders_and_variables(tmp_path: Path) -> None:
    folder = str(tmp_path / "elsewhere")
    content = json.loads(llpbench("config", "--json", cwd=tmp_path, LLPBENCH_CACHE=folder).stdout)
    assert {place["name"]: place["path"] for place in content["folders"]}["cache"] == folder
    assert {v["name"]: v["value"] for v in content["variables"]}["LLPBENCH_CACHE"] == folder
    shown = llpbench("config", cwd=tmp_path, LLPBENCH_CACHE=folder).stdout
    assert f"= {folder}" in shown
    assert "does not exist yet" in shown


def test_every_environment_variable_is_documented() -> None:
    packages = (ROOT / "llpbench", ROOT / "methods", ROOT / "datasets")
    texts = [path.read_text(encoding="utf-8") for folder in packages for path in folder.rglob("*.py")]
    named = {name for text in texts for name in re.findall(r"\bLLPBENCH_[A-Z]+\b", text)}
    assert named == {variable.name for variable in VARIABLES}


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    root = tmp_path / "cache"
    for name, size in (("data/adult/a", 2000), ("data/b", 5), ("compiled/c", 30), ("strange/d", 7)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(bytes(size))
    return root


def test_cache_lists_sizes_by_kind(cache: Path) -> None:
    sizes = {part.kind: (part.files, part.bytes) for part in cache_folders(cache)}
    known = {"data": (2, 2005), "made": (0, 0), "methods": (0, 0), "compiled": (1, 30), "checked": (0, 0)}
    assert sizes == {**known, "strange": (1, 7)}
    shown = llpbench("cache", cwd=cache.parent, LLPBENCH_CACHE=str(cache)).stdout
    assert re.search(r"data +2\.0 kB +2 files", shown)
    content = json.loads(llpbench("cache", "--json", cwd=cache.parent, LLPBENCH_CACHE=str(cache)).stdout)
    assert content["folder"] == str(cache)


def test_cache_clean_asks_and_removes_one_kind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = {"cwd": cache.parent, "LLPBENCH_CACHE": str(cache)}
    monkeypatch.setattr("sys.stdin", io.StringIO())
    refused = llpbench("cache", "clean", "data", **where)  # type: ignore[arg-type]
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert (cache / "data" / "b").exists()
    done = llpbench("cache", "clean", "data", "--yes", **where)  # type: ignore[arg-type]
    assert "2 files, 2.0 kB" in done.stdout
    assert sorted(path.name for path in cache.iterdir()) == ["compiled", "strange"]
    assert "nothing there" in llpbench("cache", "clean", "data", "-y", **where).stdout  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["strange", "..", "../precious", "/", "", "data/adult"])
def test_cache_clean_rejects_unknown_kinds(cache: Path, kind: str) -> None:
    (cache.parent / "precious").write_text("mine")
    with pytest.raises(UnknownNameError):
        clean_cache(kind, cache)
    done = llpbench("cache", "clean", "--yes", "--", kind, cwd=cache.parent, LLPBENCH_CACHE=str(cache))
    assert done.returncode == 2
    assert (cache / "strange" / "d").exists()
    assert (cache.parent / "precious").exists()


def test_cache_clean_follows_no_link(cache: Path) -> None:
    outside = cache.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_text("mine")
    (cache / "made").symlink_to(outside)
    (cache / "data" / "link").symlink_to(outside)
    with pytest.raises(StoreError, match="symbolic link"):
        clean_cache("made", cache)
    assert clean_cache("data", cache).files == 2
    assert (outside / "precious").read_text() == "mine"


@given(st.integers(0, 10**15))
def test_format_bytes_is_short_and_close(number: int) -> None:
    text = format_bytes(number)
    amount, unit = text.split()
    scale = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]
    assert abs(float(amount) * scale - number) <= 0.05 * scale + 1e-3
    assert len(text) <= 9


def test_everyday_page_names_existing_commands(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "everyday.md").read_text(encoding="utf-8")
    assert set(re.findall(r"LLPBENCH_[A-Z]+", page)) == {variable.name for variable in VARIABLES}
    help_text = llpbench("--help", cwd=tmp_path).stdout
    for verb in re.findall(r"llpbench ([a-z]+)", page):
        assert re.search(rf"^  {verb} ", help_text, flags=re.MULTILINE), verb
    run_help = llpbench("run", "--help-all", cwd=tmp_path).stdout
    for short, long in re.findall(r"^\| `(-[a-z])` \| `(--[a-z]+)`", page, flags=re.MULTILINE):
        assert f"{short}, {long}" in run_help
