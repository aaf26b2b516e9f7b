"""Publishing, building, checking and re-making through the real command line, on results of a real run."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import msgspec
import pytest
from board_samples import as_line, published
from cli_runner import llpbench
from forge import bring_up_to_date
from plugin_install import with_plugins

from llpbench.board.reproduce.rerun import compare, limits_again, this_type
from llpbench.board.built.build import built_files
from llpbench.board.content.folder import raw_files, read_folder, write_files
from llpbench.board.content.lines import encode_line
from llpbench.contracts.result import CellResult, Selected
from llpbench.execution.jobs import Limits

ROOT = Path(__file__).resolve().parents[2]
GRID = (
    "--methods", "bag-means,mean-ridge,best-feature", "--datasets", "synthetic[rows=600]", "--bags", "8",
    "--seeds", "2", "--noise", "none,high", "--quiet", "--out", "run",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    done = llpbench("run", *GRID, cwd=folder, **with_plugins("good-method"))
    assert done.returncode == 0, done.stderr
    bring_up_to_date(folder / "run")
    return folder


@pytest.fixture(scope="module")
def board(run: Path) -> Path:
    done = llpbench("leaderboard", "add", "run", cwd=run, **with_plugins("good-method"))
    assert done.returncode == 0, done.stderr
    assert "leaderboards: 12 added, 0 replaced, 0 refused" in done.stdout
    return run


@pytest.fixture
def copy(board: Path, tmp_path: Path) -> Path:
    shutil.copytree(board / "leaderboards", tmp_path / "leaderboards")
    return tmp_path


def cell_of(folder: Path, method: str) -> CellResult:
    lines = read_folder(folder / "leaderboards").lines.values()
    return next(line.result for line in lines if line.result.cell.method == method)


def replace(folder: Path, result: CellResult) -> None:
    """Publish another content for a cell, properly sealed: what a forger would do."""
    content = read_folder(folder / "leaderboards")
    content.lines[result.id] = as_line(result)
    write_files(folder / "leaderboards", {**raw_files(content), **built_files(content)})


# -- add, check, build -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_added_is_all_there(board: Path) -> None:
    content = read_folder(board / "leaderboards")
    assert (len(content.lines), len(content.replicates), len(content.machines)) == (12, 12, 1)
    assert content.facts.methods["bag-means"].origin == "llpbench-good-method 1.2.0"
    # Ten metrics under two rules, the known rate and the bag card are in it.
    assert max(len(encode_line(line.result, line.source)) for line in content.lines.values()) < 3200
    tables = (board / "leaderboards" / "tables" / "synthetic.md").read_text()
    assert tables.count("selection rule: bags") >= 3  # two noise levels, and one table across them
    rows = list(csv.DictReader(io.StringIO((board / "leaderboards" / "results.csv").read_text())))
    assert {row["status"] for row in rows} == {"ok"}
    assert {row["metric"] for row in rows} >= {"auroc", "log_loss", "bag_error", "fit_seconds"}


def test_adding_again_changes_no_byte(copy: Path, board: Path) -> None:
    before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    done = llpbench("leaderboard", "add", str(board / "run"), cwd=copy, **with_plugins("good-method"))
    assert done.returncode == 0, done.stderr
    assert "12 cells kept as published: it is there already" in done.stdout
    assert {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()} == before
    assert "new leaderboard" not in done.stderr


def test_a_leaderboard_that_was_not_there_is_said_to_be_new(run: Path, tmp_path: Path) -> None:
    """In a wrong folder, or with a typing error in --board, results did not go where others' are."""
    done = llpbench("leaderboard", "add", str(run / "run"), "--board", "leaderbords", cwd=tmp_path)
    assert "note: leaderbords is a new leaderboard, with these cells alone" in done.stderr


def test_results_of_what_is_not_installed_are_refused_and_the_rest_goes_in(run: Path, tmp_path: Path) -> None:
    done = llpbench("leaderboard", "add", str(run / "run"), "--board", "here", cwd=tmp_path)
    assert done.returncode == 1
    assert "here: 8 added, 0 replaced, 4 refused" in done.stdout
    assert done.stderr.count("no installed plugin brings the method 'bag-means'") == 4


def test_building_and_checking_need_no_plugin(copy: Path) -> None:
    done = llpbench("leaderboard", "check", cwd=copy)
    assert done.returncode == 0, done.stderr
    assert "12 cells are sound, everything built is what they give" in done.stdout
    assert "method bag-means: not installed here, so 4 of its cells were not traced" in done.stdout
    strict = llpbench("leaderboard", "check", "--strict", cwd=copy)
    assert strict.returncode == 1
    assert "method bag-means: not installed, so 4 of its cells cannot be traced" in strict.stderr
    done = llpbench("leaderboard", "build", "--out", "site", cwd=copy)
    assert done.returncode == 0, done.stderr
    page = (copy / "site" / "index.html").read_text()
    assert "bag-means" in page
    assert " src=" not in page
    assert (copy / "site" / "cells" / "synthetic.jsonl").read_bytes() == (
        copy / "leaderboards" / "cells" / "synthetic.jsonl"
    ).read_bytes()


def test_check_fails_on_any_difference_and_build_mends_it(copy: Path) -> None:
    (copy / "leaderboards" / "results.csv").write_text("nonsense")
    (copy / "leaderboards" / "tables" / "gone.md").write_text("stale")
    done = llpbench("leaderboard", "check", cwd=copy)
    assert done.returncode == 1
    assert "leaderboards/results.csv: differs" in done.stderr
    assert "leaderboards/tables/gone.md: nothing published gives this file" in done.stderr
    assert llpbench("leaderboard", "build", cwd=copy).returncode == 0
    assert llpbench("leaderboard", "check", cwd=copy).returncode == 0


@pytest.mark.parametrize("arguments", [("add", "nowhere"), ("check",), ("build",)], ids=" ".join)
def test_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = llpbench("leaderboard", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_method_in_a_single_file_is_refused(tmp_path: Path) -> None:
    source = ROOT / "tests" / "plugins" / "good-method" / "llp_good_method" / "__init__.py"
    (tmp_path / "single.py").write_text(source.read_text().replace("llp_good_method:", "single:"))
    grid = ["--plugin", "single.py", "--methods", "bag-means", "--datasets", "synthetic[rows=600]", "--bags", "8"]
    done = llpbench("run", *grid, "--seeds", "1", "--quiet", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    bring_up_to_date(tmp_path / "run")
    done = llpbench("leaderboard", "add", "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "make it a package" in done.stderr
    assert not (tmp_path / "leaderboards").exists()
    # Installed afterwards, it is still not the code that made the result.
    done = llpbench("leaderboard", "add", "run", cwd=tmp_path, **with_plugins("good-method"))
    assert done.returncode == 1
    assert "version of llpbench-good-method" in done.stderr or "single file" in done.stderr


# -- rerun -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_random_cell_is_made_again_bit_for_bit(copy: Path) -> None:
    done = llpbench("rerun", "--random", cwd=copy, **with_plugins("good-method"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reproduced, bit for bit" in done.stdout


def test_a_forged_cell_is_found_out(copy: Path) -> None:
    result = cell_of(copy, "mean-ridge")
    for chosen in result.selected.values():
        chosen.metrics["auroc"] = min(1.0, (chosen.metrics["auroc"] or 0) + 0.1)
    replace(copy, result)
    checked = llpbench("leaderboard", "check", cwd=copy)  # a forger seals what he forges
    assert checked.returncode == 1
    assert f"cell {result.id}: its replicates lie around auroc" in checked.stderr
    done = llpbench("rerun", result.id[:10], cwd=copy)
    assert done.returncode == 1, done.stdout
    assert "not reproduced: 3 of 33 numbers differ" in done.stdout
    assert "DIFFERS" in done.stdout
    assert llpbench("rerun", result.id, "--tolerance", "0.2", cwd=copy).returncode == 0


def test_a_cell_of_a_results_folder(board: Path) -> None:
    result = cell_of(board, "best-feature")
    done = llpbench("rerun", result.id, "--results", "run", cwd=board)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"cell {result.id}: best-feature on synthetic[rows=600]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the id of a cell, or --random"),
        (("abc", "--random"), "give the id of a cell, or --random"),
        (("zzzz",), "no cell has it"),
        (("../../etc",), "no cell has it"),
        (("--random", "--results", "a", "--board", "b"), "not both"),
        (("--random", "--results", "nowhere"), "nowhere is not a results folder"),
        (("--random", "--results", "leaderboards"), "leaderboards is not a results folder"),
        (("--random", "--leaderboard", "nowhere"), "not a leaderboards folder"),  # an older spelling
        (("--random", "--leaderboard", "a", "--board", "b"), "give --board once"),
    ],
)
def test_a_request_that_cannot_be_served(copy: Path, arguments: tuple[str, ...], message: str) -> None:
    done = llpbench("rerun", *arguments, cwd=copy)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_cell_that_only_the_shipped_board_has_is_found_there(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A board of one's own, as ``leaderboard add`` makes it, stands before the shipped one."""
    known = cell_of(copy, "best-feature").id
    (tmp_path / "own" / "leaderboards").mkdir(parents=True)
    monkeypatch.setattr("llpbench.board.content.shipped.shipped_board", lambda: copy / "leaderboards")
    done = llpbench("rerun", known[:12], cwd=tmp_path / "own")
    assert done.returncode == 2
    assert f"cell '{known[:12]}': no cell has it in leaderboards (0 cells). But the leaderboard that" in done.stderr
    assert done.stderr.endswith(f" has it: --board {copy / 'leaderboards'}\n")
    assert "came with llpbench" not in llpbench("rerun", "zzzz", cwd=tmp_path / "own").stderr


def test_a_method_that_is_not_installed_is_named(copy: Path) -> None:
    done = llpbench("rerun", cell_of(copy, "bag-means").id, cwd=copy)
    assert done.returncode == 2
    assert "unknown method 'bag-means'" in done.stderr


def changed(result: CellResult, auroc: float = 0.0, **facts: object) -> CellResult:
    copy = msgspec.json.decode(msgspec.json.encode(result), type=CellResult)
    for name, value in facts.items():
        setattr(copy, name, value)
    for rule, chosen in copy.selected.items():
        metrics = {**chosen.metrics, "auroc": (chosen.metrics["auroc"] or 0.0) + auroc}
        copy.selected[rule] = Selected(report=chosen.report, metrics=metrics)
    return copy


def test_verdicts(board: Path) -> None:
    before = cell_of(board, "mean-ridge")
    assert compare(before, changed(before)).text == "reproduced, bit for bit"
    nearly = compare(before, changed(before, 1e-12))
    assert (nearly.exact, nearly.reproduced, nearly.word) == (True, False, "DIFFERS")
    elsewhere = compare(before, changed(before, 0.005, machine="ffffffffff"))
    assert (elsewhere.exact, elsewhere.reproduced, elsewhere.word) == (False, True, "close")
    assert elsewhere.changed == ["the machine"]
    assert not compare(before, changed(before, 0.02, machine="ffffffffff")).reproduced
    newer = compare(before, changed(before, 0.005, versions={**before.versions, "numpy": "9.9"}))
    assert newer.reproduced
    assert newer.changed == [f"numpy {before.versions['numpy']} -> 9.9"]
    assert not compare(before, changed(before, 0.005), tolerance=0.001).reproduced
    failed = compare(before, changed(before, status="failed", reason="it broke"))
    assert (failed.reproduced, "it broke" in failed.text) == (False, True)


@pytest.mark.parametrize("facts", [{"seeds": {"split": 1}}, {"rows": {"test": 7}}, {"bags": {"train": 7}}])
def test_other_data_is_not_reproduced(board: Path, facts: dict[str, object]) -> None:
    before = cell_of(board, "mean-ridge")
    assert not compare(before, changed(before, **facts)).reproduced


def test_only_what_changes_bits_excuses_a_difference(board: Path) -> None:
    """Another release of the harness, of a plugin or of anything else must give the same bits."""
    before = cell_of(board, "mean-ridge")
    for name in ("llpbench", "some-plugin", "rich"):
        verdict = compare(before, changed(before, 1e-9, versions={**before.versions, name: "9.9"}))
        assert (verdict.exact, verdict.reproduced) == (True, False)
        assert any(name in word for word in verdict.changed)
    assert compare(before, changed(before, 1e-9, machine="f" * 10), made_on="Another CPU (z80)").reproduced
    assert not compare(before, changed(before, 1e-9, machine="f" * 10), made_on=this_type()).reproduced
    threads = compare(before, changed(before, 1e-9, limits={**before.limits, "threads": 2.0}))
    assert (threads.reproduced, threads.changed) == (True, ["threads 1.0 -> 2.0"])


def test_limits_can_be_others() -> None:
    result = published(limits={"timeout": 60.0, "memory_mb": 100.0, "threads": 4.0})
    assert limits_again(result) == Limits(threads=4, timeout=60.0, memory_mb=100.0)
    assert limits_again(result, 5.0, 700.0, 1) == Limits(threads=1, timeout=5.0, memory_mb=700.0)


def test_a_cell_made_again_under_other_limits(board: Path) -> None:
    result = cell_of(board, "mean-ridge")
    done = llpbench("rerun", result.id, "--threads", "2", "--memory", "2GB", "--timeout", "5m", cwd=board)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "threads 1.0 -> 2" in done.stdout


# -- tables of a run ---------------------------------------------------------------------------------------------------


def table(folder: Path, *arguments: str) -> str:
    done = llpbench("table", "run", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_table_by_noise_level(run: Path) -> None:
    text = table(run, "--kind", "noise", "--rule", "bags")
    assert text.count("selection rule: bags") == 1
    assert "no noise" in text
    assert "ε = 1" in text
    assert "$\\varepsilon$ = 1" in table(run, "--kind", "noise", "--format", "latex")


def test_a_table_of_seconds_by_phase(run: Path) -> None:
    text = table(run, "--kind", "time")
    assert "mean-ridge: regression" in text
    assert "mean-ridge: total" in text
    rows = json.loads(table(run, "--kind", "time", "--format", "json"))
    total = {r["line"]: r["entry"] for r in rows if r["column"] == "bag 8" and "noise" not in r["table"]}
    assert float(total["mean-ridge: total"].split()[0]) >= float(total["mean-ridge: regression"].split()[0])
    lines = table(run, "--kind", "time", "--format", "csv").splitlines()
    assert lines[0] == "table,line,column,entry"
    assert len(lines) == len(rows) + 1


def test_a_table_of_pseudo_labels_needs_some(run: Path) -> None:
    done = llpbench("table", "run", "--kind", "pseudo", cwd=run)
    assert (done.returncode, done.stdout.strip()) == (0, "")
    assert "no method of it makes pseudo-labels" in done.stderr


REFERENCES = """
from llpbench import Reference, hookimpl

@hookimpl
def llpbench_references():
    facts = dict(source="Somebody 1999", dataset="synthetic[rows=600]", metric="auroc", rule="instances", title="MR")
    return [Reference(method="mean-ridge", bag_size=8, mean=0.5, sd=0.01, **facts)]
"""


def test_hook_llpbench_references(run: Path, tmp_path: Path) -> None:
    (tmp_path / "refs.py").write_text(REFERENCES)
    plugin = ("--plugin", str(tmp_path / "refs.py"))
    rows = json.loads(table(run, "--paper", "--format", "json", *plugin))
    told = [r for r in rows if r["paper"] is not None]
    assert {(r["method"], r["bag_size"], r["noise"], r["rule"]) for r in told} == {
        ("mean-ridge", 8, "none", "bags"),
        ("mean-ridge", 8, "none", "instances"),
    }
    assert {(r["paper"], r["paper_rule"], r["paper_source"]) for r in told} == {(50.0, "instances", "Somebody 1999")}
    text = table(run, "--paper", "--format", "markdown", *plugin)
    ours = next(r["mean"] for r in told if r["rule"] == "instances")
    assert f"[50.00, {ours - 50:+.2f}]" in text.split("selection rule: instances")[1]
    assert "[50.00" not in text.split("selection rule: instances")[0]  # never mixed with the other rule
    assert "Somebody 1999 selected by 'instances'" in text
    assert "50.00," not in table(run, "--format", "markdown", *plugin)  # only on demand
    assert table(run, "--paper", "--format", "csv", *plugin).splitlines()[0].endswith("paper_rule,paper_source")


def test_a_plugin_that_fails_to_give_references_harms_nothing(run: Path, tmp_path: Path) -> None:
    (tmp_path / "refs.py").write_text(REFERENCES.replace("mean=0.5", "mean=float('nan')"))
    done = llpbench("table", "run", "--paper", "--plugin", str(tmp_path / "refs.py"), cwd=run)
    assert done.returncode == 0
    assert "mean-ridge" in done.stdout
    assert "refs failed to give its references: PluginError" in done.stderr
    (tmp_path / "words.py").write_text(REFERENCES.replace("return [", "return ['a', "))
    done = llpbench("table", "run", "--paper", "--plugin", str(tmp_path / "words.py"), cwd=run)
    assert "must return Reference objects, not str" in done.stderr


# -- what plugins bring ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plugins", [(), ("extras",)], ids=["alone", "with a third rule"])
def test_the_published_board_is_sound_whatever_is_installed(plugins: tuple[str, ...]) -> None:
    done = llpbench("leaderboard", "check", cwd=ROOT, **(with_plugins(*plugins) if plugins else {}))
    assert done.returncode == 0, done.stderr
    assert "everything built is what they give" in done.stdout


def test_a_rule_and_a_metric_of_a_plugin_reach_the_board(tmp_path: Path) -> None:
    installed = with_plugins("extras", "good-method")
    grid = ("--methods", "bag-means,mean-ridge", "--datasets", "synthetic[rows=600]", "--bags", "8", "--seeds", "2")
    done = llpbench("run", *grid, "--quiet", "--out", "run", cwd=tmp_path, **installed)
    assert done.returncode == 0, done.stderr
    bring_up_to_date(tmp_path / "run")
    refused = llpbench("leaderboard", "add", "run", "--to", "other", cwd=tmp_path, **with_plugins("good-method"))
    assert refused.returncode == 1
    assert "no installed plugin brings the selection rule 'bag-error'" in refused.stderr
    added = llpbench("leaderboard", "add", "run", cwd=tmp_path, **installed)
    assert added.returncode == 0, added.stderr
    checked = llpbench("leaderboard", "check", cwd=tmp_path)  # where nobody knows the rule
    assert checked.returncode == 0, checked.stderr
    facts = json.loads((tmp_path / "leaderboards" / "facts.json").read_text())
    assert facts["rules"]["bag-error"] == {
        "higher": False, "summary": "largest error of a held-back bag's proportion", "title": "largest error",
    }  # fmt: skip
    assert facts["metrics"]["positive_share"]["title"] == "positive share"
    board = json.loads((tmp_path / "leaderboards" / "board.json").read_text())
    assert [rule["name"] for rule in board["rules"]] == ["bags", "instances", "bag-error"]
    assert "positive_share" in board["datasets"][0]["metrics"]
