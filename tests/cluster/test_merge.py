"""Results folders that ran apart, put together: nothing lost, what differs is said."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from cli_runner import FAULTY, llpbench, status, table
from helpers import make_cell, make_plan, make_result, quick
from hypothesis import given, settings
from hypothesis import strategies as st

from llpbench.cluster.merge import merge
from llpbench.contracts.errors import LLPBenchError, StoreError
from llpbench.contracts.result import PROTOCOL, STATUSES
from llpbench.experiment.plan import Planned
from llpbench.results.sealing import encode_result
from llpbench.results.store import Store


def folder(root: Path, values: dict[int, float | str | None], predictions: bool = True) -> Store:
    """A folder with a cell for each seed: a number is an AUROC, a word a status, None a cell without a result."""
    store = Store(root)
    store.plan([make_plan(make_cell(seed=seed)) for seed in values], f"llpbench run in {root.name}", "0.1.0")
    for seed, value in values.items():
        cell = make_cell(seed=seed)
        if isinstance(value, str):
            store.write(make_result(cell, status=value, reason=f"{value} in {root.name}"))
        elif value is not None:
            store.write(make_result(cell, value))
            if predictions:
                store.predictions_path(cell.id).write_bytes(f"scores {value} of {root.name}".encode())
    return store


def contents(store: Store) -> dict[str, bytes]:
    return {str(p.relative_to(store.root)): p.read_bytes() for p in sorted(store.root.rglob("*")) if p.is_file()}


def auroc(store: Store) -> dict[int, float | str | None]:
    found: dict[int, float | str | None] = {}
    for result in store.results():
        chosen = result.selected.get("bags")
        found[result.cell.seed] = chosen.metrics["auroc"] if chosen else result.status
    return found


def test_merge_combines_folders_without_changing_them(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: 0.5, 1: None}), folder(tmp_path / "b", {1: 0.6, 2: 0.7})
    b.write_machine("m1", {"cpu": "fast"})
    before = contents(a), contents(b)
    report = merge([a.root, b.root], tmp_path / "c")
    whole = Store(tmp_path / "c")
    assert auroc(whole) == {0: 0.5, 1: 0.6, 2: 0.7}
    assert report.conflicts == []
    assert (report.planned, report.results, report.copied) == (3, 3, 3)
    assert report.notes == [f"different plans: {a.root} has 2 cells, {b.root} 2, 1 of them in both"]
    assert whole.manifest().commands == ["llpbench run in a", "llpbench run in b"]
    assert whole.predictions_path(make_cell(seed=2).id).read_bytes() == b"scores 0.7 of b"
    assert (whole.root / "machines" / "m1.json").is_file()
    assert (contents(a), contents(b)) == before
    once = contents(whole)
    again = merge([a.root, b.root], tmp_path / "c")
    assert again.copied == 0
    assert contents(whole) == once


def test_merge_into_the_first_folder(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: 0.5, 1: "failed"}), folder(tmp_path / "b", {1: 0.6})
    untouched = contents(b)
    report = merge([a.root, b.root], a.root)
    assert auroc(a) == {0: 0.5, 1: 0.6}
    assert report.conflicts == []
    assert any("status ok and failed" in note for note in report.notes)
    (kept,) = (a.root / "conflicts").iterdir()  # the failure gave way, and is not lost
    assert b"failed in a" in kept.read_bytes()
    assert contents(b) == untouched


def test_different_metrics_of_a_cell_are_a_conflict(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: 0.5, 1: 0.6}), folder(tmp_path / "b", {0: 0.5, 1: 0.61})
    report = merge([a.root, b.root], tmp_path / "c")
    cell_id = make_cell(seed=1).id
    (conflict,) = report.conflicts
    assert conflict.startswith(f"{cell_id}: rule bags: auroc 0.6 and 0.61")
    assert auroc(Store(tmp_path / "c")) == {0: 0.5, 1: 0.6}
    beside = {p.name: p.read_bytes() for p in (tmp_path / "c" / "conflicts").iterdir()}
    assert beside == {
        f"{cell_id}-1.json": b.result_path(cell_id).read_bytes(),
        f"{cell_id}-1.npz": b"scores 0.61 of b",
    }


def test_log_of_a_replaced_result_is_kept_beside_it(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: "failed"}), folder(tmp_path / "b", {0: 0.5})
    cell_id = make_cell(seed=0).id
    a.log_path(cell_id).write_bytes(b"the only evidence")
    failed = a.result_path(cell_id).read_bytes()
    merge([a.root, b.root], a.root)
    assert auroc(a) == {0: 0.5}
    assert not a.log_path(cell_id).exists()
    beside = {p.name: p.read_bytes() for p in (a.root / "conflicts").iterdir()}
    assert beside == {f"{cell_id}-0.json": failed, f"{cell_id}-0.log": b"the only evidence"}


def test_differences_of_stages_and_measurements_are_conflicts(tmp_path: Path) -> None:
    a, b, c = (folder(tmp_path / name, {0: None}) for name in "abc")
    result = make_result(make_cell(), 0.5)
    a.write(result)
    b.write(make_result(make_cell(), 0.5, stages={"iteration-1": {"bags": result.selected["bags"]}}))
    result.selected["bags"].metrics["accuracy"] = None
    c.write(result)
    assert "iteration-1, rule bags: auroc null and 0.5" in merge([a.root, b.root], tmp_path / "ab").conflicts[0]
    assert "rule bags: accuracy" in merge([a.root, c.root], tmp_path / "ac").conflicts[0]


def test_times_and_rounding_are_not_conflicts(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: 0.1 + 0.2}, predictions=False), folder(tmp_path / "b", {0: 0.3})
    assert merge([a.root, b.root], tmp_path / "c").conflicts == []
    assert Store(tmp_path / "c").predictions_path(make_cell().id).read_bytes() == b"scores 0.3 of b"


@pytest.mark.parametrize("into", ["c", "a"])
def test_damaged_files_are_reported_and_replaced_by_valid_ones(tmp_path: Path, into: str) -> None:
    a, b = folder(tmp_path / "a", {0: 0.5, 1: 0.6}), folder(tmp_path / "b", {0: 0.5, 1: 0.6})
    first, second = (make_cell(seed=seed).id for seed in (0, 1))
    a.result_path(first).write_bytes(b"{half a")
    b.result_path(second).write_text(b.result_path(second).read_text().replace("0.6", "0.9"))
    report = merge([a.root, b.root], tmp_path / into)
    whole = Store(tmp_path / into)
    assert auroc(whole) == {0: 0.5, 1: 0.6}
    assert sorted(c.split("damaged: ")[1][:20] for c in report.conflicts) == [
        "its content does not",
        "not a readable resul",
    ]
    kept = {p.read_bytes() for p in (whole.root / "conflicts").glob("*.json")}
    assert kept == {b"{half a", b.result_path(second).read_bytes()}


def test_damaged_file_without_replacement_leaves_the_cell_missing(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: 0.5}), folder(tmp_path / "b", {1: 0.6})
    a.result_path(make_cell().id).write_bytes(b"")
    report = merge([a.root, b.root], tmp_path / "c")
    assert len(report.conflicts) == 1
    assert auroc(Store(tmp_path / "c")) == {1: 0.6}
    assert (report.planned, report.results) == (2, 1)


def test_unplanned_results_are_merged(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: 0.5}), folder(tmp_path / "b", {1: 0.6})
    stray = make_result(make_cell(seed=7), 0.9)
    b.result_path(stray.id).write_bytes(encode_result(stray))
    (b.root / "cells" / "notes.json").write_text("{}")
    report = merge([a.root, b.root], tmp_path / "c")
    assert auroc(Store(tmp_path / "c")) == {0: 0.5, 1: 0.6, 7: 0.9}
    assert any("added a result of" in note for note in report.notes)
    assert [c for c in report.conflicts if "notes.json" in c]


def test_result_keeps_its_own_plan() -> None:
    plan = Planned(
        cell=make_cell(), method_name="guess[lr=1]", dataset_name="toy, own-bags", oracle=True, tuning_seconds=3
    )
    result = make_result(
        plan.cell, method_name=plan.method_name, dataset_name=plan.dataset_name, oracle=True, tuning_seconds=3.0
    )
    assert Planned.of(result) == plan
    unnamed = Planned.of(make_result(plan.cell, method_name="", dataset_name=""))
    assert (unnamed.method_name, unnamed.dataset_name, unnamed.oracle) == ("guess", "toy", False)


def test_conflicting_and_invalid_plans_are_reported(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: 0.5}), Store(tmp_path / "b")
    b.plan([make_plan(make_cell(), method_name="guess[luck=1]")], "run", "0.1.0")
    text = b.manifest_path.read_text()
    report = merge([a.root, b.root], tmp_path / "c")
    assert "planned as 'guess' on 'toy' and 'guess[luck=1]' on 'toy'" in report.conflicts[0]
    b.manifest_path.write_text(text.replace(f'"{make_cell().id}": {{', '"0123456789abcdef": {'))
    report = merge([a.root, b.root], tmp_path / "d")
    assert "'0123456789abcdef' is not of the cell it holds" in report.conflicts[0]
    assert list(Store(tmp_path / "d").manifest().planned) == [make_cell().id]


def test_missing_test_scores_are_taken_from_an_equal_result(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: 0.5, 1: 0.6, 2: 0.7}, predictions=False), folder(tmp_path / "b", {0: 0.5, 1: 0.9})
    kept = a.result_path(make_cell().id).read_bytes()
    report = merge([a.root, b.root], a.root)
    assert a.predictions_path(make_cell().id).read_bytes() == b"scores 0.5 of b"
    assert a.result_path(make_cell().id).read_bytes() == kept
    assert not a.predictions_path(make_cell(seed=1).id).exists()  # these are of another number
    assert (report.copied, report.scores) == (0, 1)
    assert f"added test scores for 1 results of {a.root}" in report.notes
    b.predictions_path(make_cell().id).write_bytes(b"others")
    assert merge([a.root, b.root], a.root).scores == 0  # what is there stays
    assert a.predictions_path(make_cell().id).read_bytes() == b"scores 0.5 of b"


def search(root: Path, *, studies: bool = True) -> Store:
    """A folder as ``tune`` leaves it: a trial, and the history of its study."""
    store, cell = Store(root), make_cell(tuning=True)
    store.plan([make_plan(cell)], f"llpbench tune --out {root.name}", "0.1.0")
    store.write(make_result(cell, 0.5))
    if studies:
        (root / "studies").mkdir()
        (root / "studies" / "guess.json").write_text("{}")
    return store


@pytest.mark.parametrize("into", ["run", "tuned", "new"])
@pytest.mark.parametrize("studies", [True, False])
def test_search_is_not_merged_into_a_run(tmp_path: Path, into: str, studies: bool) -> None:
    """The folder of the run was refused for every later run: it held trials."""
    run, tuned = folder(tmp_path / "run", {0: 0.5}), search(tmp_path / "tuned", studies=studies)
    before = contents(run), contents(tuned)
    with pytest.raises(StoreError, match=rf"^{tuned.root} has a search .* llpbench run --params {tuned.root}\. "):
        merge([run.root, tuned.root], tmp_path / into)
    assert (contents(run), contents(tuned)) == before
    assert not (tmp_path / "new").exists()
    run.refuse_others(tuning=False)


def test_trial_outside_of_any_plan_is_not_merged_into_a_run(tmp_path: Path) -> None:
    run, other = folder(tmp_path / "run", {0: 0.5}), folder(tmp_path / "other", {1: 0.6})
    stray = make_result(make_cell(tuning=True), 0.9)
    other.result_path(stray.id).write_bytes(encode_result(stray))
    with pytest.raises(StoreError, match=f"^{other.root} has a search"):
        merge([run.root, other.root], run.root)
    assert list(run.manifest().planned) == [make_cell().id]


def test_two_searches_are_not_merged(tmp_path: Path) -> None:
    """Their trials were put together, and their studies were not."""
    first, second = search(tmp_path / "first"), search(tmp_path / "second")
    with pytest.raises(StoreError, match=r"searches cannot be merged.*in one folder"):
        merge([first.root, second.root], tmp_path / "both")
    assert not (tmp_path / "both").exists()


@pytest.mark.parametrize("sources", [["a"], ["a", "a"]])
def test_merge_requires_two_folders(tmp_path: Path, sources: list[str]) -> None:
    a = folder(tmp_path / "a", {0: 0.5})
    with pytest.raises(LLPBenchError, match="two different"):
        merge([tmp_path / name for name in sources], a.root)


def test_merge_rejects_folders_without_a_manifest(tmp_path: Path) -> None:
    a = folder(tmp_path / "a", {0: 0.5})
    (tmp_path / "b").mkdir()
    with pytest.raises(StoreError, match="not a results folder"):
        merge([a.root, tmp_path / "b"], tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_merge_rejects_cells_of_a_running_run(tmp_path: Path) -> None:
    a, b = folder(tmp_path / "a", {0: None}), folder(tmp_path / "b", {0: 0.5})
    claim = a.claim(make_cell().id)
    assert claim is not None
    with pytest.raises(StoreError, match="a run is working on cell"):
        merge([a.root, b.root], a.root)
    claim.release()
    merge([a.root, b.root], a.root)
    assert auroc(a) == {0: 0.5}


ENDS = st.one_of(st.none(), st.sampled_from([0.5, 0.6]), st.sampled_from([s for s in STATUSES if s != "ok"]))


@settings(quick, max_examples=15)
@given(st.lists(st.dictionaries(st.integers(0, 3), ENDS, max_size=4), min_size=2, max_size=3))
def test_merge_keeps_the_best_result_of_each_cell(folders: list[dict[int, Any]]) -> None:
    with tempfile.TemporaryDirectory() as base:
        stores = [folder(Path(base, str(i)), values) for i, values in enumerate(folders)]
        report = merge([store.root for store in stores], Path(base, "out"))
        got = auroc(Store(Path(base, "out")))
        for seed in range(4):
            there = [values[seed] for values in folders if values.get(seed) is not None]
            numbers = [v for v in there if isinstance(v, float)]
            if numbers:
                assert got[seed] == numbers[0]
            elif there:
                order = ["skipped", "pruned"]
                best = min(there, key=lambda s: order.index(s) if s in order else len(order))
                assert got[seed] == best
            else:
                assert seed not in got
        disagree = sum(
            len({v for values in folders if isinstance(v := values.get(seed), float)}) > 1 for seed in range(4)
        )
        assert len({conflict.split(":")[0] for conflict in report.conflicts}) == disagree


def test_newer_protocol_wins_without_conflict(tmp_path: Path) -> None:
    old, new = folder(tmp_path / "old", {0: 0.5, 1: 0.5}), folder(tmp_path / "new", {0: 0.7, 1: "failed"})
    (cell, other) = (make_cell(seed=seed) for seed in range(2))
    new.write(make_result(cell, 0.7, protocol=PROTOCOL))
    new.write(make_result(other, status="failed", protocol=PROTOCOL))
    report = merge([old.root, new.root], tmp_path / "out")
    assert report.conflicts == []
    assert len(report.notes) == 2
    assert auroc(Store(tmp_path / "out")) == {0: 0.7, 1: 0.5}  # a run makes the older one again
    assert len(list((tmp_path / "out" / "conflicts").glob("*.json"))) == 2


@pytest.mark.slow
def test_merge_command(tmp_path: Path) -> None:
    run = ["run", "--plugin", str(FAULTY), "--methods", "faulty-good", "--datasets", "synthetic[rows=400;dim=4]"]
    for out, bags in (("a", "4"), ("b", "8"), ("whole", "4,8")):
        done = llpbench(*run, "--seeds", "1", "--bags", bags, "--out", out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    done = llpbench("results", "merge", "a", "b", "--out", "c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "c: 2 cells planned, 2 with a result, 2 copied, 0 conflicts\n"
    assert status(tmp_path / "c")["counts"] == {"ok": 2}
    assert table(tmp_path / "c") == table(tmp_path / "whole")
    planned: dict[str, Planned] = Store(tmp_path / "b").manifest().planned
    other = make_result(next(iter(planned.values())).cell, 0.123, method_name="\x1b[31mred", protocol=PROTOCOL)
    Store(tmp_path / "b").write(other)
    done = llpbench("results", "merge", "c", "b", cwd=tmp_path)
    assert done.returncode == 1
    assert "conflict: " in done.stderr
    assert "0.123" in done.stderr
    assert "\x1b" not in done.stderr
    assert table(tmp_path / "c") == table(tmp_path / "whole")
