"""``leaderboard verify``: which cells are drawn, how they are judged, and what is recorded after Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from board_samples import MACHINE, content_of, grid, shared
from cli_runner import llpbench
from helpers import make_cell, make_result

from llpbench.board import verify as verification
from llpbench.board.built.build import built_files, differences
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.content.lines import seal
from llpbench.board.rerun import TOLERANCE, Limits, Verdict
from llpbench.board.verbs.leaderboard import tell_verification
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.experiment.run_settings import RunSettings
from llpbench.report.progress import QuietView

Make = Callable[[CellResult], CellResult]
VALUES = {"a": [0.80, 0.82, 0.81], "b": [0.70, 0.71, 0.72]}
FRESH = [10_001, 10_002, 10_003]

# -- drawing -----------------------------------------------------------------------------------------------------------


def cells(*methods: str, seeds: int = 3) -> list[CellResult]:
    return verification.candidates(content_of(grid({m: [0.8] * seeds for m in methods})))


def test_a_draw_can_be_repeated() -> None:
    found = cells("a", "b", "c", seeds=9)
    assert [c.id for c in verification.draw(found, 4, 7)] == [c.id for c in verification.draw(found, 4, 7)]
    assert len({tuple(c.id for c in verification.draw(found, 4, seed)) for seed in range(20)}) > 10
    assert len(verification.draw(cells("a"), 99, 0)) == 3
    with pytest.raises(StoreError, match="no cell to verify"):
        verification.draw([], 1, 0)


def test_a_draw_takes_every_method_before_any_twice() -> None:
    for seed in range(10):
        found = verification.draw(cells("a", "b", "c", seeds=9), 5, seed)
        assert {c.cell.method for c in found[:3]} == {"a", "b", "c"}
        assert len({c.id for c in found}) == 5


def test_with_another_board_only_new_and_changed_cells_are_drawn() -> None:
    before, after = (content_of(grid({m: [0.8] * 2 for m in names})) for names in ("a", "ab"))
    assert {c.cell.method for c in verification.candidates(after, before)} == {"b"}
    changed = next(c for c in verification.candidates(after) if c.cell.method == "a")
    changed.selected["bags"].metrics["auroc"] = 0.9
    after.lines[changed.id] = seal(changed, "0" * 32)
    assert {c.cell.method for c in verification.candidates(after, before)} == {"a", "b"}


def test_fresh_seeds_are_unpublished_and_can_be_repeated() -> None:
    first = verification.fresh_seeds(5, 1, [])
    assert first == verification.fresh_seeds(5, 1, [])
    assert (len(set(first)), min(first) >= 10_000) == (5, True)
    assert not set(verification.fresh_seeds(5, 1, first)) & set(first)


# -- the test of fresh seeds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(3, 2), (10, 3), (2, 2)])
def test_p_values_of_equal_means_are_uniform(n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    p = np.array([verification.fresh_p(rng.normal(size=n).tolist(), rng.normal(size=k).tolist()) for _ in range(3000)])
    for level in (0.01, 0.1):
        assert abs(np.mean(p <= level) - level) < 4 * np.sqrt(level * (1 - level) / 3000)


def test_the_variance_over_test_rows_is_a_lower_bound() -> None:
    lucky = verification.fresh_p([80.0, 80.01, 80.0], [79.0, 79.01])
    floored = verification.fresh_p([80.0, 80.01, 80.0], [79.0, 79.01], floor=1.0)
    assert lucky is not None
    assert floored is not None
    assert lucky < verification.LEVEL < 0.2 < floored
    assert verification.fresh_p([80.0], [79.0]) is None  # no variance to judge by
    assert verification.fresh_p([80.0], [80.0]) == 1.0
    assert verification.fresh_p([80.0], [79.0], floor=1.0) is not None


# -- judging, with a driver that runs nothing --------------------------------------------------------------------------


def fake_runs(
    monkeypatch: pytest.MonkeyPatch, content: Content, make: Make, stop_after: int = -1, stop: Callable[[], None] = list
) -> None:
    """Replace the driver: every cell gives what ``make`` makes of the published one; ``stop`` is called after some."""

    def run_cells(
        plans: Iterable[tuple[Planned, Limits]], *_: object, jobs: int, made: dict[str, CellResult]
    ) -> dict[str, CellResult]:
        del jobs
        published = {i: line.result for i, line in content.lines.items()}
        for number, (plan, _limits) in enumerate(plans):
            if number == stop_after:
                stop()
            same = published.get(plan.cell.id) or msgspec.structs.replace(
                next(r for r in published.values() if r.cell.method == plan.cell.method),
                id=plan.cell.id,
                cell=plan.cell,
            )
            made[plan.cell.id] = make(msgspec.json.decode(msgspec.json.encode(same), type=CellResult))
        return made

    monkeypatch.setattr(verification, "run_cells", run_cells)
    monkeypatch.setattr(verification, "_needs", lambda *_: [])


def verified(
    monkeypatch: pytest.MonkeyPatch, content: Content, make: Make, seeds: list[int]
) -> verification.Verification:
    fake_runs(monkeypatch, content, make)
    return verification.verify(
        verification.candidates(content), content, shared(), RunSettings(), QuietView(), seeds=seeds
    )


def with_auroc(result: CellResult, value: float) -> CellResult:
    for chosen in result.selected.values():
        chosen.metrics = {**chosen.metrics, "auroc": value}
    return result


def test_cells_with_the_published_numbers_raise_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    report = verified(monkeypatch, content_of(grid(VALUES)), lambda r: r, FRESH)
    assert [verdict.word for _, verdict in report.remade] == ["equal"] * 6
    assert (len(report.fresh), report.doubts) == (4, [])


def test_a_number_that_differs_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    def off(r: CellResult) -> CellResult:
        return with_auroc(r, 0.805) if (r.cell.method, r.cell.seed) == ("a", 0) else r

    report = verified(monkeypatch, content_of(grid(VALUES)), off, [])
    assert [v.word for r, v in report.remade if (r.cell.method, r.cell.seed) == ("a", 0)] == ["DIFFERS"]
    assert len(report.doubts) == 1


@pytest.mark.parametrize(("change", "word"), [(TOLERANCE / 2, "close"), (2 * TOLERANCE, "DIFFERS")])
def test_another_machine_allows_a_tolerance(monkeypatch: pytest.MonkeyPatch, change: float, word: str) -> None:
    def elsewhere(r: CellResult) -> CellResult:
        assert r.machine == MACHINE
        r.machine = "f" * 10
        for chosen in r.selected.values():
            chosen.metrics = {"auroc": (chosen.metrics["auroc"] or 0.0) + change}
        return r

    report = verified(monkeypatch, content_of(grid(VALUES)), elsewhere, [])
    assert {verdict.word for _, verdict in report.remade} == {word}


def test_a_method_fitted_to_the_published_seeds_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two backends reproduces its numbers and does worse on fresh seeds; the other is judged by itself."""
    results = grid({"a": VALUES["a"]}, backend="jax") + grid({"a": VALUES["a"]}, backend="torch")

    def fitted(r: CellResult) -> CellResult:
        return with_auroc(r, 0.6 + r.cell.seed % 10 / 500) if r.cell.backend == "jax" and r.cell.seed in FRESH else r

    report = verified(monkeypatch, content_of(results), fitted, FRESH)
    assert {verdict.word for _, verdict in report.remade} == {"equal"}
    assert {(t.place, t.doubt, len(t.cells)) for t in report.fresh} == {
        ("toy, bag 8", True, 3),
        ("toy, bag 8, backend torch", False, 3),
    }
    assert any("on fresh seeds 60.40" in doubt for doubt in report.doubts)


def test_a_fresh_seed_that_fails_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(r: CellResult) -> CellResult:
        return r if r.cell.seed < 10_000 else make_result(r.cell, None, status="failed", reason="it broke")

    report = verified(monkeypatch, content_of(grid({"a": [0.8, 0.8]})), failing, FRESH[:1])
    assert any("fresh seed 10001: failed: it broke" in doubt for doubt in report.doubts)


def test_methods_that_are_not_installed_are_doubts() -> None:
    content = content_of(grid({"a": [0.8]}))
    report = verification.verify(verification.candidates(content), content, shared(), RunSettings(), QuietView())
    assert report.doubts[0].endswith("a, toy is not installed")


def test_missing_data_is_not_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(r: CellResult) -> CellResult:
        if r.cell.method != "a":
            return r
        rows = r.rows if r.cell.seed == 0 else {}  # with rows, the method itself raised the error
        return msgspec.structs.replace(
            r, status="failed", reason="DataUnavailableError: no file", rows=rows, selected={}
        )

    report = verified(monkeypatch, content_of(grid(VALUES)), lacking, FRESH)
    assert sorted((r.cell.method, r.cell.seed) for r in report.no_data) == [("a", 1), ("a", 2)]
    assert all(r.cell.method == "b" or r.cell.seed == 0 for r, _ in report.remade)
    assert any("no file" in doubt for doubt in report.doubts)


def failing(status: str) -> CellResult:
    return make_result(
        make_cell(method="other", seed=77), None, status=status, reason="it gives up", machine=MACHINE,
        limits={"timeout": 3600.0, "memory_mb": 8192.0, "threads": 1.0}, dataset_name="toy",
    )  # fmt: skip


def test_failures_are_drawn_beside_numbers_of_the_same_method() -> None:
    found = verification.candidates(content_of([*grid({"other": [0.8] * 9}), failing("crashed")]))
    for seed in range(10):
        assert {c.status for c in verification.draw(found, 2, seed)} == {"ok", "crashed"}


@pytest.mark.parametrize(
    ("published", "now", "doubts", "notes"),
    [
        ("crashed", "crashed", 0, 0),
        ("crashed", "ok", 1, 0),
        ("skipped", "failed", 1, 0),
        ("memory", "crashed", 0, 1),
        ("timeout", "ok", 0, 1),
    ],
)
def test_a_published_failure_must_fail_again(
    monkeypatch: pytest.MonkeyPatch, published: str, now: str, doubts: int, notes: int
) -> None:
    def make(r: CellResult) -> CellResult:
        return r if r.status == "ok" else msgspec.structs.replace(r, status=now, rows={"train": 1})

    report = verified(monkeypatch, content_of([*grid({"a": [0.8]}), failing(published)]), make, FRESH)
    assert (len(report.doubts), len(report.notes)) == (doubts, notes), report
    assert [(r.status, made.status) for r, made in report.failures] == [(published, now)]
    assert not any(r.cell.seed in FRESH and r.cell.method == "other" for r in report.made.values())
    assert set(verification.make_marks(report, "cpu")) == {r.id for r, _ in report.remade}  # a failure has no number
    assert report.looked_at == 2


def test_cells_that_need_more_threads_than_cores_are_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content = content_of(grid(VALUES))
    first = verification.candidates(content)[0]
    first.limits = {**first.limits, "threads": 4096.0}
    report = verified(monkeypatch, content, lambda r: r, FRESH)
    assert ([r.id for r in report.too_large], len(report.remade), report.doubts) == ([first.id], 5, [])
    tell_verification(report)
    assert f"skipped: cell {first.id} ({first.method_name}) needs 4096 threads" in capsys.readouterr().err


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------


def ctrl_c() -> None:
    raise KeyboardInterrupt


def terminate() -> None:
    signal.raise_signal(signal.SIGTERM)


def test_after_ctrl_c_the_report_covers_the_cells_that_were_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell is done when its fresh seeds were run, too: the third of four lacks one of two."""
    content = content_of(grid({m: [0.8] for m in "abcd"}))
    fake_runs(monkeypatch, content, lambda r: r, 8, ctrl_c)
    drawn = verification.candidates(content)
    report = verification.verify(drawn, content, shared(), RunSettings(), QuietView(), seeds=FRESH[:2])
    assert report.stopped
    assert [result.id for result, _ in report.remade] == [result.id for result in drawn[:2]]
    assert {cell for test in report.fresh for cell in test.cells} == {result.id for result in drawn[:2]}
    assert report.doubts == []


def test_processes_that_ctrl_c_ended_are_not_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    content = content_of(grid({"a": [0.8], "b": [0.8], "c": [0.8]}))
    first, second, _ = drawn = verification.candidates(content)

    def ended(r: CellResult) -> CellResult:
        return make_result(r.cell, None, status="crashed", reason="ended") if r.id == second.id else r

    fake_runs(monkeypatch, content, ended, 2, ctrl_c)
    report = verification.verify(drawn, content, shared(), RunSettings(), QuietView())
    assert ([result.id for result, _ in report.remade], report.doubts) == ([first.id], [])


@pytest.mark.parametrize("interrupt", [ctrl_c, terminate], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("record", [True, False])
def test_an_interrupt_at_the_last_cell_keeps_the_marks_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupt: Callable[[], None], record: bool
) -> None:
    folder, content = tmp_path / "board", content_of(grid({m: [0.8] for m in "abcd"}))
    write_files(folder, {**raw_files(content), **built_files(content)})
    fake_runs(monkeypatch, content, lambda r: r, 7, interrupt)
    arguments = ("leaderboard", "verify", "--board", "board", "--cells", "4", "--fresh-seeds", "1", "--draw", "5")
    done = llpbench(*arguments, *["--record"] * record, cwd=tmp_path)
    assert done.returncode == 130, done.stdout + done.stderr
    assert "reproduced: 3 equal to the bit, 0 within tolerance, 0 differ" in done.stdout
    assert "stopped: 3 of 4 cells are done" in done.stderr
    assert ("marked in board/verified: 3 cells verified, 0 in doubt" in done.stdout) == record
    marks = read_folder(folder).marks
    assert len(marks) == (3 if record else 0)
    assert all(mark.verified and mark.fresh for mark in marks.values())
    assert differences(folder, read_folder(folder)) == []


# -- the command -------------------------------------------------------------------------------------------------------


def test_more_jobs_than_cores_are_rejected_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = content_of(grid({"a": [0.8]}))
    write_files(tmp_path / "board", raw_files(content))
    fake_runs(monkeypatch, content, lambda r: r, 0, ctrl_c)
    done = llpbench("leaderboard", "verify", "--board", "board", "-j", "9999", cwd=tmp_path)
    assert (done.returncode, "--jobs 9999" in done.stderr) == (2, True)


def test_the_outcome_names_settings_and_counts_changes(capsys: pytest.CaptureFixture[str]) -> None:
    result = make_result(make_cell(noise="high"), 0.8, dataset_name="adult")
    same = Verdict(exact=True, reproduced=True, text="", changed=["harness a -> b", "the machine (x -> y)"], equal=True)
    close = Verdict(exact=False, reproduced=True, text="", changed=["harness a -> b"])
    tell_verification(verification.Verification(remade=[(result, same), (result, close)]))
    told = capsys.readouterr().out
    assert told.count("guess on adult, bag 8, noise high, seed 0") == 2
    assert told.count("changed since it was made: harness a -> b") == 1
    assert "changed since they were made: harness (2 cells), machine (1 cell)" in told
