"""Publishing, building, checking and reproducing through the command line, on results of a real run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest
from board_samples import as_line, published
from cli_runner import llpbench
from plugin_install import with_module, with_plugins

from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files
from llpbench.board.content.folder import raw_files, read_folder, write_files
from llpbench.board.content.lines import encode_line
from llpbench.board.rerun import Limits, compare, limits_again, this_type
from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.result import CellResult, Selected

SOURCE = Path(__file__).resolve().parents[1] / "packages" / "good-method" / "llp_good_method" / "__init__.py"
GRID = (
    "--methods", "bag-means,mean-ridge,best-feature", "--datasets", "synthetic[rows=600]", "--bags", "8",
    "--seeds", "2", "--noise", "none,high", "--quiet", "--out", "run",
)  # fmt: skip


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with a method of another package, ``bag-means``."""
    return with_module(tmp_path_factory.mktemp("site"), "llp-good-method", SOURCE.read_text())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, guest: dict[str, str]) -> Path:
    folder = tmp_path_factory.mktemp("published")
    done = llpbench("run", *GRID, cwd=folder, **guest)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def board(run: Path, guest: dict[str, str]) -> Path:
    done = llpbench("leaderboard", "add", "run", cwd=run, **guest)
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
    """Publish another result for a cell."""
    content = read_folder(folder / "leaderboards")
    content.lines[result.id] = as_line(result)
    write_files(folder / "leaderboards", {**raw_files(content), **built_files(content)})


# -- add, check, build -------------------------------------------------------------------------------------------------


def test_add_publishes_all_cells_of_a_run(board: Path) -> None:
    content = read_folder(board / "leaderboards")
    assert (len(content.lines), len(content.replicates), len(content.machines)) == (12, 12, 1)
    assert content.facts.methods["bag-means"].origin == "llp-good-method 1.0"
    # Ten metrics under two rules, the known rate and the bag card are in it.
    assert max(len(encode_line(line.result, line.source)) for line in content.lines.values()) < 3200


def test_add_refuses_methods_that_are_not_installed_and_publishes_the_others(run: Path, tmp_path: Path) -> None:
    done = llpbench("leaderboard", "add", str(run / "run"), "--board", "here", cwd=tmp_path)
    assert done.returncode == 1
    assert "here: 8 added, 0 replaced, 4 refused" in done.stdout
    assert done.stderr.count("no installed package provides the method 'bag-means'") == 4
    assert "note: here is a new leaderboard; to add to another one, give --board DIR" in done.stderr


def test_check_and_build_need_no_plugin(copy: Path) -> None:
    done = llpbench("leaderboard", "check", cwd=copy)
    assert done.returncode == 0, done.stderr
    assert "12 cells are valid, all built files are up to date" in done.stdout
    done = llpbench("leaderboard", "build", "--out", "site", cwd=copy)
    assert done.returncode == 0, done.stderr
    page = (copy / "site" / "index.html").read_text()
    assert "bag-means" in page
    assert " src=" not in page
    for path in (copy / "leaderboards" / "cells").iterdir():
        assert (copy / "site" / "cells" / path.name).read_bytes() == path.read_bytes()


def test_check_fails_on_differences_and_build_repairs_them(copy: Path) -> None:
    (copy / "leaderboards" / "index.html").write_text("nonsense")
    (copy / "leaderboards" / "tables" / "gone.md").write_text("stale")
    (copy / "leaderboards" / "entries").mkdir()
    (copy / "leaderboards" / "entries" / "mine.toml").write_text("shiny = 1")
    done = llpbench("leaderboard", "check", cwd=copy)
    assert done.returncode == 1
    assert "leaderboards/index.html: differs" in done.stderr
    assert "leaderboards/tables/gone.md: " in done.stderr
    assert "leaderboards/entries/mine.toml: " in done.stderr
    (copy / "leaderboards" / "entries" / "mine.toml").unlink()
    assert llpbench("leaderboard", "build", cwd=copy).returncode == 0
    assert llpbench("leaderboard", "check", cwd=copy).returncode == 0


@pytest.mark.parametrize("arguments", [("add", "nowhere"), ("check",), ("build",)], ids=" ".join)
def test_a_missing_folder_is_an_error_message(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = llpbench("leaderboard", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_add_refuses_methods_in_single_files(tmp_path: Path, guest: dict[str, str]) -> None:
    (tmp_path / "single.py").write_text(SOURCE.read_text().replace("llp_good_method:", "single:"))
    grid = ["--plugin", "single.py", "--methods", "bag-means", "--datasets", "synthetic[rows=600]", "--bags", "8"]
    done = llpbench("run", *grid, "--seeds", "1", "--quiet", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = llpbench("leaderboard", "add", "run", cwd=tmp_path)
    assert done.returncode == 1
    assert "no installed package provides the method 'bag-means' (make one: llpbench new)" in done.stderr
    assert not (tmp_path / "leaderboards").exists()
    # Installed afterwards, it is still not the code that made the result.
    done = llpbench("leaderboard", "add", "run", cwd=tmp_path, **guest)
    assert done.returncode == 1
    assert "its method is a single file" in done.stderr


# -- rerun -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rerun_reproduces_a_random_cell_bit_for_bit(copy: Path, guest: dict[str, str]) -> None:
    done = llpbench("rerun", "--random", cwd=copy, **guest)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reproduced, bit for bit" in done.stdout


def test_rerun_finds_numbers_that_are_not_reproduced(copy: Path) -> None:
    result = cell_of(copy, "mean-ridge")
    for chosen in result.selected.values():
        chosen.metrics["auroc"] = min(1.0, (chosen.metrics["auroc"] or 0) + 0.1)
    replace(copy, result)
    done = llpbench("rerun", result.id[:10], cwd=copy)
    assert done.returncode == 1, done.stdout
    assert "not reproduced: 3 of 46 numbers differ" in done.stdout
    assert "DIFFERS" in done.stdout


@pytest.mark.slow
def test_rerun_takes_cells_of_a_results_folder(board: Path) -> None:
    result = cell_of(board, "best-feature")
    done = llpbench("rerun", result.id, "--results", "run", cwd=board)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"cell {result.id}: best-feature on synthetic[rows=600]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the id of a cell or --random"),
        (("abc", "--random"), "give the id of a cell or --random"),
        (("zzzz",), "unknown id"),
        (("--random", "--results", "a", "--board", "b"), "not both"),
        (("--random", "--results", "nowhere"), "nowhere is not a results folder"),
        (("--random", "--results", "leaderboards"), "leaderboards is not a results folder"),
        (("--random", "--leaderboard", "nowhere"), "not a leaderboards folder"),  # an older spelling
        (("--random", "--leaderboard", "a", "--board", "b"), "give --board once"),
    ],
)
def test_rerun_rejects_invalid_requests(copy: Path, arguments: tuple[str, ...], message: str) -> None:
    done = llpbench("rerun", *arguments, cwd=copy)
    assert done.returncode == 2
    assert message in done.stderr


def test_rerun_names_the_shipped_board_if_it_has_the_cell(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cell_of(copy, "best-feature").id
    (tmp_path / "own" / "leaderboards").mkdir(parents=True)
    monkeypatch.setattr("llpbench.board.content.shipped.shipped_board", lambda: copy / "leaderboards")
    done = llpbench("rerun", known[:12], cwd=tmp_path / "own")
    assert done.returncode == 2
    assert f"cell '{known[:12]}': unknown id in leaderboards (0 cells). But the leaderboard that" in done.stderr
    assert done.stderr.endswith(f" has it: --board {copy / 'leaderboards'}\n")
    assert "came with llpbench" not in llpbench("rerun", "zzzz", cwd=tmp_path / "own").stderr


def test_rerun_names_methods_that_are_not_installed(copy: Path) -> None:
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


def test_compare_requires_equal_bits_unless_the_environment_changed(board: Path) -> None:
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
def test_compare_finds_other_data(board: Path, facts: dict[str, object]) -> None:
    before = cell_of(board, "mean-ridge")
    assert not compare(before, changed(before, **facts)).reproduced


def of_stages(result: CellResult, auroc: float, pseudo: float, rows: int = 10) -> CellResult:
    """A result with stages, pseudo-labels and a bag card of these numbers."""
    chosen = Selected(report=0, metrics={"auroc": auroc})
    card = BagCard(2, rows, 0.0, (5.0, 5.0, 5.0, 5.0, 5.0), 0.1, 1.0, None)
    return changed(result, stages={"iteration-1": {"bags": chosen}}, pseudo_labels={"iteration-1": pseudo}, card=card)


@pytest.mark.parametrize("edited", [(0.8, 0.7), (0.9, 0.6), (0.9, 0.7, 11)], ids=["stages", "pseudo-labels", "card"])
def test_compare_finds_other_numbers_beside_the_metrics(board: Path, edited: tuple[float, ...]) -> None:
    now = of_stages(cell_of(board, "mean-ridge"), 0.9, 0.7)
    assert compare(now, now).text == "reproduced, bit for bit"
    verdict = compare(of_stages(now, *edited), now)  # type: ignore[arg-type]
    assert (verdict.reproduced, verdict.equal) == (False, False)
    assert "1 of" in verdict.text
    assert sum("DIFFERS" in line for line in verdict.lines) == 1


def test_other_versions_of_llpbench_and_plugins_must_give_the_same_bits(board: Path) -> None:
    before = cell_of(board, "mean-ridge")
    for name in ("llpbench", "some-plugin", "rich"):
        verdict = compare(before, changed(before, 1e-9, versions={**before.versions, name: "9.9"}))
        assert (verdict.exact, verdict.reproduced) == (True, False)
        assert any(name in word for word in verdict.changed)
    assert compare(before, changed(before, 1e-9, machine="f" * 10), made_on="Another CPU (z80)").reproduced
    assert not compare(before, changed(before, 1e-9, machine="f" * 10), made_on=this_type()).reproduced
    threads = compare(before, changed(before, 1e-9, limits={**before.limits, "threads": 2.0}))
    assert (threads.reproduced, threads.changed) == (True, ["threads 1.0 -> 2.0"])


def test_limits_are_those_of_the_cell_unless_given() -> None:
    result = published(limits={"timeout": 60.0, "memory_mb": 100.0, "threads": 4.0})
    assert limits_again(result) == Limits(threads=4, timeout=60.0, memory=100.0)
    assert limits_again(result, 5.0, 700.0, 1) == Limits(threads=1, timeout=5.0, memory=700.0)


@pytest.mark.slow
def test_rerun_under_other_limits(board: Path) -> None:
    result = cell_of(board, "mean-ridge")
    done = llpbench("rerun", result.id, "--threads", "2", "--memory", "2GB", "--timeout", "5m", cwd=board)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "threads 1.0 -> 2" in done.stdout


# -- verify ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_verify_reproduces_cells_and_records_marks(copy: Path, guest: dict[str, str]) -> None:
    arguments = ("leaderboard", "verify", "--cells", "2", "--fresh-seeds", "2", "--draw", "5", "--record")
    done = llpbench(*arguments, cwd=copy, **guest)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("draw 5: 2 of 12 cells, fresh seeds ")
    assert "reproduced: 2 equal to the bit, 0 within tolerance, 0 differ" in done.stdout
    assert re.search(r"fresh seeds: (\d) of \1 comparisons agree", done.stdout)
    assert re.search(r"^\[(\d)/\1\] synthetic", done.stderr, flags=re.MULTILINE)  # it shows its progress
    assert "marked in leaderboards/verified: 2 cells verified, 0 in doubt" in done.stdout
    marks = read_folder(copy / "leaderboards").marks
    assert {mark.outcome for mark in marks.values()} == {"equal"}
    assert all(mark.code and mark.machine and mark.fresh for mark in marks.values())
    assert llpbench("leaderboard", "check", cwd=copy).returncode == 0
    same = llpbench(*arguments, "--against", "leaderboards", cwd=copy)
    assert (same.returncode, "nothing to verify" in same.stdout) == (0, True)


@pytest.mark.slow
def test_verify_doubts_numbers_that_are_not_reproduced(copy: Path) -> None:
    result = cell_of(copy, "mean-ridge")
    for chosen in result.selected.values():
        chosen.metrics["log_loss"] = 0.001
    shutil.copytree(copy / "leaderboards", copy / "base")
    replace(copy, result)
    done = llpbench("leaderboard", "verify", "--against", "base", "--cells", "9", "--fresh-seeds", "1", cwd=copy)
    assert done.returncode == 1, done.stdout
    assert "1 of 1 cells, fresh seeds" in done.stdout
    assert done.stderr.count(f"doubt: cell {result.id}") == 1


# -- tables of a run ---------------------------------------------------------------------------------------------------


def table(folder: Path, *arguments: str) -> str:
    done = llpbench("table", "run", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_table_by_noise_level(run: Path) -> None:
    text = table(run, "--kind", "noise", "--rule", "bags")
    assert text.count("selection rule: bags") == 1
    assert "no noise" in text
    assert "ε = 1" in text
    assert "$\\varepsilon$ = 1" in table(run, "--kind", "noise", "--format", "latex")


def test_table_of_seconds_by_phase(run: Path) -> None:
    text = table(run, "--kind", "time")
    assert "mean-ridge: regression" in text
    assert "mean-ridge: total" in text
    rows = json.loads(table(run, "--kind", "time", "--format", "json"))
    total = {r["line"]: r["entry"] for r in rows if r["column"] == "bag 8" and "noise" not in r["table"]}
    assert float(total["mean-ridge: total"].split()[0]) >= float(total["mean-ridge: regression"].split()[0])
    assert float(total["mean-ridge: reports"].split()[0]) >= 0
    lines = table(run, "--kind", "time", "--format", "csv").splitlines()
    assert lines[0] == "table,line,column,entry"
    assert len(lines) == len(rows) + 1


def test_table_of_pseudo_labels_without_any(run: Path) -> None:
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


def test_a_plugin_whose_references_fail_costs_a_warning(run: Path, tmp_path: Path) -> None:
    (tmp_path / "refs.py").write_text(REFERENCES.replace("mean=0.5", "mean=float('nan')"))
    done = llpbench("table", "run", "--paper", "--plugin", str(tmp_path / "refs.py"), cwd=run)
    assert done.returncode == 0
    assert "mean-ridge" in done.stdout
    assert "refs failed to give its references: PluginError" in done.stderr
    (tmp_path / "words.py").write_text(REFERENCES.replace("return [", "return ['a', "))
    done = llpbench("table", "run", "--paper", "--plugin", str(tmp_path / "words.py"), cwd=run)
    assert "must return Reference objects, not str" in done.stderr


# -- what plugins bring ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rules_and_metrics_of_plugins_are_published(tmp_path: Path) -> None:
    installed = with_plugins("extras", "good-method")
    grid = ("--methods", "bag-means,mean-ridge", "--datasets", "synthetic[rows=600]", "--bags", "8", "--seeds", "2")
    done = llpbench("run", *grid, "--quiet", "--out", "run", cwd=tmp_path, **installed)
    assert done.returncode == 0, done.stderr
    refused = llpbench("leaderboard", "add", "run", "--to", "other", cwd=tmp_path, **with_plugins("good-method"))
    assert refused.returncode == 1
    assert "no installed package provides the selection rule 'bag-error'" in refused.stderr
    added = llpbench("leaderboard", "add", "run", cwd=tmp_path, **installed)
    assert added.returncode == 0, added.stderr
    checked = llpbench("leaderboard", "check", cwd=tmp_path)  # where nobody knows the rule
    assert checked.returncode == 0, checked.stderr
    facts = json.loads((tmp_path / "leaderboards" / "facts.json").read_text())
    assert facts["rules"]["bag-error"] == {
        "higher": False, "summary": "largest error of a held-out bag's proportion", "title": "largest error",
    }  # fmt: skip
    assert facts["metrics"]["positive_share"]["title"] == "positive share"
    board = make_board(read_folder(tmp_path / "leaderboards"))
    assert [rule.name for rule in board.rules] == ["bags", "instances", "bag-error"]
    assert "positive_share" in board.datasets[0].metrics
