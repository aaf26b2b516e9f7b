"""``leaderboard verify`` makes cells again and runs fresh seeds; ``check --results`` recomputes everything."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from board_samples import MACHINE, content_of, grid, published, shared
from cli_runner import llpbench
from forge import VICTIM, WITNESS, Bench, publish, write_board
from helpers import make_cell, make_result

from llpbench.board.reproduce import verify as room
from llpbench.board.reproduce.rerun import TOLERANCE, Verdict
from llpbench.board.built.build import differences
from llpbench.board.content.folder import Content, read_folder
from llpbench.board.content.lines import seal
from llpbench.board.content.marks import make_marks
from llpbench.board.verbs.verification import tell_verification
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult
from llpbench.execution.driver import View
from llpbench.execution.jobs import Context, Limits
from llpbench.experiment.plan import Planned
from llpbench.experiment.tuned import History
from llpbench.plugins.registry import Registry
from llpbench.report.progress import QuietView

# -- what is drawn -----------------------------------------------------------------------------------------------------


def cells(*methods: str, seeds: int = 3) -> list[CellResult]:
    return room.candidates(content_of(grid({m: [0.8] * seeds for m in methods})))


def test_a_draw_can_be_repeated_and_others_differ() -> None:
    found = cells("a", "b", "c", seeds=9)
    assert [c.id for c in room.draw(found, 4, 7)] == [c.id for c in room.draw(found, 4, 7)]
    assert len({tuple(c.id for c in room.draw(found, 4, seed)) for seed in range(20)}) > 10


def test_a_draw_takes_every_method_before_any_twice() -> None:
    for seed in range(10):
        found = room.draw(cells("a", "b", "c", seeds=9), 5, seed)
        assert {c.cell.method for c in found[:3]} == {"a", "b", "c"}
        assert len({c.id for c in found}) == 5


def test_a_draw_of_more_than_there_are_takes_all() -> None:
    assert len(room.draw(cells("a"), 99, 0)) == 3
    with pytest.raises(StoreError, match="no cell to verify"):
        room.draw([], 1, 0)


def test_only_what_is_new_or_changed_is_drawn_from_a_submission() -> None:
    before, after = (content_of(grid({m: [0.8] * 2 for m in names})) for names in ("a", "ab"))
    assert {c.cell.method for c in room.candidates(after, before)} == {"b"}
    changed = next(c for c in room.candidates(after) if c.cell.method == "a")
    changed.selected["bags"].metrics["auroc"] = 0.9
    after.lines[changed.id] = seal(changed, "0" * 32)
    assert {c.cell.method for c in room.candidates(after, before)} == {"a", "b"}


def test_fresh_seeds_are_nobodys_and_can_be_repeated() -> None:
    first = room.fresh_seeds(5, 1, [])
    assert first == room.fresh_seeds(5, 1, [])
    assert len(set(first)) == 5
    assert min(first) >= 10_000
    assert not set(room.fresh_seeds(5, 1, first)) & set(first)
    assert room.fresh_seeds(5, 2, []) != first


# -- the test of fresh seeds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(3, 2), (10, 3), (2, 2)])
def test_honest_seeds_are_doubted_as_often_as_the_level_says(n: int, k: int) -> None:
    rng = np.random.default_rng(0)
    p = np.array([room.fresh_p(rng.normal(size=n).tolist(), rng.normal(size=k).tolist()) for _ in range(3000)])
    for level in (0.01, 0.1):
        assert abs(np.mean(p <= level) - level) < 4 * np.sqrt(level * (1 - level) / 3000)


def test_the_spread_of_test_rows_is_a_floor() -> None:
    lucky = room.fresh_p([80.0, 80.01, 80.0], [79.0, 79.01])
    assert lucky is not None
    assert lucky < room.LEVEL
    floored = room.fresh_p([80.0, 80.01, 80.0], [79.0, 79.01], floor=1.0)
    assert floored is not None
    assert floored > 0.2


def test_one_value_each_is_judged_by_rows_or_not_at_all() -> None:
    assert room.fresh_p([80.0], [79.0]) is None
    assert room.fresh_p([80.0], [80.0]) == 1.0
    assert room.fresh_p([80.0], [79.0], floor=1.0) is not None


# -- verdicts, without running anything --------------------------------------------------------------------------------

Make = Callable[[CellResult], CellResult]


def verified(monkeypatch: pytest.MonkeyPatch, content: Content, make: Make, seeds: list[int]) -> room.Verification:
    """Verify every cell, with a driver that answers with what ``make`` gives for a cell."""

    def run_cells(plans: Iterable[tuple[Planned, Limits]], *_: object, jobs: int) -> dict[str, CellResult]:
        del jobs
        published = {i: line.result for i, line in content.lines.items()}
        found = {}
        for plan, _limits in plans:
            same = published.get(plan.cell.id) or msgspec.structs.replace(
                next(r for r in published.values() if r.cell.method == plan.cell.method),
                id=plan.cell.id,
                cell=plan.cell,
            )
            copy = msgspec.json.decode(msgspec.json.encode(same), type=CellResult)
            found[plan.cell.id] = make(copy)
        return found

    monkeypatch.setattr(room, "run_cells", run_cells)
    monkeypatch.setattr(room, "_needs", lambda *_: [])
    drawn = room.candidates(content)
    return room.verify(drawn, content, shared(), Context(), QuietView(), seeds=seeds)


def with_auroc(result: CellResult, value: float) -> CellResult:
    for chosen in result.selected.values():
        chosen.metrics = {**chosen.metrics, "auroc": value}
    return result


HONEST = {"a": [0.80, 0.82, 0.81], "b": [0.70, 0.71, 0.72]}
FRESH = [10_001, 10_002, 10_003]


def test_what_comes_out_as_published_raises_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    report = verified(monkeypatch, content_of(grid(HONEST)), lambda r: r, FRESH)
    assert [verdict.word for _, verdict in report.remade] == ["equal"] * 6
    assert len(report.fresh) == 4
    assert report.doubts == []


def test_data_that_is_not_here_is_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """An honest submission on a file that a reviewer lacks is not called forged; a method cannot pretend to that."""

    def lacking(r: CellResult) -> CellResult:
        if r.cell.method != "a":
            return r
        rows = r.rows if r.cell.seed == 0 else {}  # the method was running: it raised that error itself
        return msgspec.structs.replace(
            r, status="failed", reason="DataUnavailableError: no file", rows=rows, selected={}
        )

    report = verified(monkeypatch, content_of(grid(HONEST)), lacking, FRESH)
    assert sorted((r.cell.method, r.cell.seed) for r in report.no_data) == [("a", 1), ("a", 2)]
    assert all(r.cell.method == "b" or r.cell.seed == 0 for r, _ in report.remade)
    assert any("no file" in doubt for doubt in report.doubts)
    assert set(make_marks(report, "cpu")) == {r.id for r, _ in report.remade}


def test_a_number_that_differs_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    def off(r: CellResult) -> CellResult:
        return with_auroc(r, 0.805) if (r.cell.method, r.cell.seed) == ("a", 0) else r

    report = verified(monkeypatch, content_of(grid(HONEST)), off, [])
    assert [v.word for r, v in report.remade if (r.cell.method, r.cell.seed) == ("a", 0)] == ["DIFFERS"]
    assert len(report.doubts) == 1


def test_another_machine_is_allowed_a_tolerance_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    for change, word in ((TOLERANCE / 2, "close"), (2 * TOLERANCE, "DIFFERS")):

        def elsewhere(r: CellResult, change: float = change) -> CellResult:
            assert r.machine == MACHINE
            r.machine = "f" * 10
            for chosen in r.selected.values():
                chosen.metrics = {"auroc": (chosen.metrics["auroc"] or 0.0) + change}
            return r

        report = verified(monkeypatch, content_of(grid(HONEST)), elsewhere, [])
        assert {verdict.word for _, verdict in report.remade} == {word}


def test_a_method_fitted_to_the_published_seeds_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes out as published wherever one looks, but not on seeds that nobody could prepare for."""

    def fitted(r: CellResult) -> CellResult:
        return with_auroc(r, 0.6 + r.cell.seed % 10 / 500) if r.cell.method == "a" and r.cell.seed in FRESH else r

    report = verified(monkeypatch, content_of(grid(HONEST)), fitted, FRESH)
    assert {verdict.word for _, verdict in report.remade} == {"equal"}
    assert {test.method for test in report.fresh if test.doubt} == {"a"}
    assert any("on fresh seeds 60.40" in doubt for doubt in report.doubts)


def test_backends_are_judged_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two backends was fitted to the published seeds: that is said of it, and of it alone."""
    results = grid({"a": HONEST["a"]}, backend="jax") + grid({"a": HONEST["a"]}, backend="torch")

    def fitted(r: CellResult) -> CellResult:
        return with_auroc(r, 0.6 + r.cell.seed % 10 / 500) if r.cell.backend == "jax" and r.cell.seed in FRESH else r

    report = verified(monkeypatch, content_of(results), fitted, FRESH)
    assert {(t.place, t.doubt, len(t.cells)) for t in report.fresh} == {
        ("toy, bag 8", True, 3),
        ("toy, bag 8, backend torch", False, 3),
    }


def test_a_fresh_seed_that_fails_is_a_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(r: CellResult) -> CellResult:
        return r if r.cell.seed < 10_000 else make_result(r.cell, None, status="failed", reason="it broke")

    report = verified(monkeypatch, content_of(grid({"a": [0.8, 0.8]})), failing, FRESH[:1])
    assert any("fresh seed 10001: failed: it broke" in doubt for doubt in report.doubts)


def test_what_is_not_installed_is_a_doubt() -> None:
    registry: Registry = shared()
    content = content_of(grid({"a": [0.8]}))
    report = room.verify(room.candidates(content), content, registry, Context(), QuietView())
    assert "a, toy is not installed" in report.doubts[0]
    assert make_cell().method not in registry.methods.entries


# -- failures, threads and seconds -------------------------------------------------------------------------------------


def failing(status: str, **facts: object) -> CellResult:
    limits = {"timeout": 3600.0, "memory_mb": 8192.0, "threads": 1.0}
    return make_result(
        make_cell(method="rival", seed=77), None, status=status, reason="it gives up", machine=MACHINE,
        started="2025-03-04T05:06:07Z", limits=limits, dataset_name="toy", **facts,
    )  # fmt: skip


def now_with(status: str, seconds: float = 1.0) -> Make:
    """A driver that makes every failure come out with this status, and all else as published."""

    def make(r: CellResult) -> CellResult:
        if r.status == "ok":
            return r
        return msgspec.structs.replace(r, status=status, fit_seconds=seconds, rows={"train": 1})

    return make


def test_failures_are_drawn_too_beside_numbers_of_the_same_method() -> None:
    content = content_of([*grid({"rival": [0.8] * 9}), failing("crashed")])
    found = room.candidates(content)
    assert len(found) == 10
    for seed in range(10):
        assert {c.status for c in room.draw(found, 2, seed)} == {"ok", "crashed"}


@pytest.mark.parametrize(
    ("published", "now", "seconds", "doubts", "notes"),
    [
        ("crashed", "crashed", 1.0, 0, 0),
        ("crashed", "ok", 1.0, 1, 0),
        ("failed", "ok", 1.0, 1, 0),
        ("skipped", "ok", 1.0, 1, 0),
        ("skipped", "failed", 1.0, 1, 0),
        ("memory", "crashed", 1.0, 0, 1),
        ("timeout", "timeout", 3600.0, 0, 0),
        ("timeout", "ok", 3000.0, 0, 1),
        ("timeout", "ok", 2.0, 1, 0),
    ],
)
def test_an_invented_failure_of_a_rival_is_a_doubt(
    monkeypatch: pytest.MonkeyPatch, published: str, now: str, seconds: float, doubts: int, notes: int
) -> None:
    content = content_of([*grid({"a": [0.8]}), failing(published)])
    report = verified(monkeypatch, content, now_with(now, seconds), FRESH)
    assert (len(report.doubts), len(report.notes)) == (doubts, notes), report
    assert [(r.status, made.status) for r, made in report.failures] == [(published, now)]
    assert {seed for test in report.fresh for seed in test.seeds} == set(FRESH)
    assert not any(r.cell.seed in FRESH and r.cell.method == "rival" for r in report.made.values())
    assert set(make_marks(report, "cpu")) == {r.id for r, _ in report.remade}  # a failure has no number to confirm
    assert report.looked_at == 2


def test_a_board_of_failures_alone_can_be_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    report = verified(monkeypatch, content_of([failing("crashed")]), now_with("crashed"), FRESH)
    assert (report.looked_at, report.doubts, report.remade) == (1, [], [])


def test_a_cell_of_more_threads_than_there_are_is_its_own_outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One cell that an author made on a large machine ended the review of all others."""
    content = content_of(grid(HONEST))
    first = room.candidates(content)[0]
    first.limits = {**first.limits, "threads": 4096.0}
    report = verified(monkeypatch, content, lambda r: r, FRESH)
    assert [r.id for r in report.too_large] == [first.id]
    assert (len(report.remade), report.doubts) == (5, [])
    tell_verification(report)
    assert f"not made again: cell {first.id} ({first.method_name}) needs 4096 threads" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("was", "now", "here", "told"),
    [(0.01, 5.0, True, 1), (0.01, 5.0, False, 0), (1.0, 9.0, True, 0), (0.001, 0.05, True, 0)],
)
def test_seconds_that_are_too_good_are_noted(
    monkeypatch: pytest.MonkeyPatch, was: float, now: float, here: bool, told: int
) -> None:
    monkeypatch.setattr(room, "this_type", lambda: "Test CPU (x86_64)" if here else "another")
    content = content_of([published(0.8, make_cell(method="a"), fit_seconds=was, phases={"fit": was})])
    report = verified(monkeypatch, content, lambda r: msgspec.structs.replace(r, fit_seconds=now), [])
    assert (len(report.notes), report.doubts) == (told, [])


@pytest.mark.slow
def test_a_search_with_an_invented_value_is_doubted(bench: Bench) -> None:
    """Parameters chosen by test labels, with the value of their trial invented: no file shows it, a run does."""
    bench.run_name = "tuned-run"
    content = bench.board_of(WITNESS)
    assert publish(bench, content, tuned=[bench.root / "tuned"]) == {}
    tuned = [line.result for line in content.lines.values() if line.result.cell.preset]
    for forged in (False, True):
        if forged:
            content.searches = {name: _better(history) for name, history in content.searches.items()}
        report = room.verify(tuned, content, shared(), Context(), QuietView())
        assert len(report.trials) >= len(tuned) == 2
        assert all(trial.agrees != forged for trial in report.trials if trial.number == 0)
        assert len(report.doubts) == (2 if forged else 0), report.doubts
    assert "trial 0 of its search is published with" in report.doubts[0]


def _better(history: History) -> History:
    first, *rest = history.trials
    assert first.value is not None
    better = msgspec.structs.replace(first, value=first.value - 0.2)
    return msgspec.structs.replace(history, trials=[better, *rest])


# -- an interrupt ------------------------------------------------------------------------------------------------------


def interrupted_after(
    monkeypatch: pytest.MonkeyPatch, content: Content, cells: int, interrupt: Callable[[], None]
) -> None:
    """Have cells come out as published, until so many are made; then somebody interrupts."""

    def run_cells(
        plans: Iterable[tuple[Planned, Limits]], registry: Registry, context: Context, view: View, *, jobs: int
    ) -> dict[str, CellResult]:
        del registry, context, jobs
        plans = list(plans)
        view.begin(len(plans), 0)
        published = {line.result.cell.method: line.result for line in content.lines.values()}
        for n, (plan, _) in enumerate(plans):
            if n == cells:
                interrupt()
            same = content.lines[plan.cell.id].result if plan.cell.id in content.lines else published[plan.cell.method]
            view.finished(msgspec.structs.replace(same, id=plan.cell.id, cell=plan.cell))
        return {}

    monkeypatch.setattr(room, "run_cells", run_cells)
    monkeypatch.setattr(room, "_needs", lambda *_: [])


def ctrl_c() -> None:
    raise KeyboardInterrupt


def end_it() -> None:
    signal.raise_signal(signal.SIGTERM)


def test_an_interrupt_leaves_the_cells_that_were_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell is done when its fresh seeds have run, too: two of four cells, when the third lacks one of two."""
    content = content_of(grid({m: [0.8] for m in "abcd"}))
    interrupted_after(monkeypatch, content, 8, ctrl_c)
    drawn = room.candidates(content)
    report = room.verify(drawn, content, shared(), Context(), QuietView(), seeds=FRESH[:2])
    assert report.stopped
    assert [result.id for result, _ in report.remade] == [result.id for result in drawn[:2]]
    assert {cell for test in report.fresh for cell in test.cells} == {result.id for result in drawn[:2]}
    assert report.doubts == []


def test_a_process_that_ended_with_an_interrupt_is_no_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    content = content_of(grid({"a": [0.8], "b": [0.8]}))
    first, second = room.candidates(content)

    def run_cells(
        plans: object, registry: Registry, context: Context, view: View, *, jobs: int
    ) -> dict[str, CellResult]:
        del plans, registry, context, jobs
        view.finished(first)
        view.finished(make_result(second.cell, None, status="crashed", reason="it was ended"))
        raise KeyboardInterrupt

    monkeypatch.setattr(room, "run_cells", run_cells)
    monkeypatch.setattr(room, "_needs", lambda *_: [])
    report = room.verify([first, second], content, shared(), Context(), QuietView())
    assert ([result.id for result, _ in report.remade], report.doubts) == ([first.id], [])


@pytest.mark.parametrize("interrupt", [ctrl_c, end_it], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("record", [True, False])
def test_an_interrupt_at_the_last_cell_does_not_lose_the_marks_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupt: Callable[[], None], record: bool
) -> None:
    folder, content = tmp_path / "board", content_of(grid({m: [0.8] for m in "abcd"}))
    write_board(folder, content)
    interrupted_after(monkeypatch, content, 7, interrupt)
    arguments = ("leaderboard", "verify", "--board", "board", "--cells", "4", "--fresh-seeds", "1", "--draw", "5")
    done = llpbench(*arguments, *["--record"] * record, cwd=tmp_path)
    assert done.returncode == 130, done.stdout + done.stderr
    assert "made again: 3 equal to the bit, 0 within tolerance, 0 differ" in done.stdout
    assert "stopped: 3 of 4 cells are done" in done.stderr
    assert ("marked in board/verified: 3 cells verified, 0 in doubt" in done.stdout) == record
    marks = read_folder(folder).marks
    assert len(marks) == (3 if record else 0)
    assert all(mark.verified and mark.fresh for mark in marks.values())
    assert differences(folder, read_folder(folder)) == []


# -- the command -------------------------------------------------------------------------------------------------------


def test_more_jobs_than_cores_are_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = content_of(grid({"a": [0.8]}))
    write_board(tmp_path / "board", content)
    interrupted_after(monkeypatch, content, 0, ctrl_c)
    done = llpbench("leaderboard", "verify", "--board", "board", "-j", "9999", "--record", cwd=tmp_path)
    assert (done.returncode, "--jobs 9999" in done.stderr) == (2, True)


def test_what_was_made_again_is_told_with_its_noise_and_what_changed_is_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Twenty lines of digests hid what came out, and a noisy cell read as one without noise."""
    result = make_result(make_cell(noise="high"), 0.8, dataset_name="adult")
    same = Verdict(exact=True, reproduced=True, text="", changed=["harness a -> b", "the machine (x -> y)"], equal=True)
    close = Verdict(exact=False, reproduced=True, text="", changed=["harness a -> b"])
    tell_verification(room.Verification(remade=[(result, same), (result, close)]))
    told = capsys.readouterr().out
    assert told.count("guess on adult, bag 8, noise high, seed 0") == 2
    assert told.count("other than when it was made: harness a -> b") == 1
    assert "other than when they were made: harness (2 cells), machine (1 cell)" in told


@pytest.mark.slow
def test_an_honest_board_is_verified(bench: Bench) -> None:
    write_board(bench.root / "leaderboards", bench.board_of(VICTIM, WITNESS))
    arguments = ("leaderboard", "verify", "--cells", "2", "--fresh-seeds", "2", "--draw", "5")
    done = llpbench(*arguments, cwd=bench.root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("draw 5: 2 of 8 cells, fresh seeds ")
    assert "made again: 2 equal to the bit, 0 within tolerance, 0 differ" in done.stdout
    assert re.search(r"fresh seeds: (\d) of \1 comparisons agree", done.stdout)
    assert re.search(r"^\[(\d)/\1\] synthetic", done.stderr, flags=re.MULTILINE)  # it takes long: each cell is told
    alone = llpbench(*arguments, "--jobs", "1", "--quiet", cwd=bench.root)
    assert alone.stdout == done.stdout  # whatever runs beside a cell
    assert "synthetic" not in alone.stderr
    same = llpbench(*arguments, "--against", "leaderboards", cwd=bench.root)
    assert (same.returncode, "nothing to verify" in same.stdout) == (0, True)


@pytest.mark.slow
def test_a_consistent_forgery_is_doubted(bench: Bench) -> None:
    """Perfect predictions with every number made to fit: no file shows it, a run does."""
    base = bench.board_of(WITNESS)
    write_board(bench.root / "base", base)
    for seed in (0, 1):
        result = bench.result(seed=seed)
        arrays = bench.arrays(result)
        for rule in result.selected:
            arrays[rule] = arrays["labels"].astype(np.float64)
        bench.rescore(result, arrays)
        bench.save(result)
    shutil.copytree(bench.root / "base", bench.root / "leaderboards")
    added = llpbench("leaderboard", "add", "run", cwd=bench.root)
    assert added.returncode == 0, added.stderr
    assert llpbench("leaderboard", "check", "--results", "run", cwd=bench.root).returncode == 0
    arguments = ("--against", "base", "--cells", "9", "--fresh-seeds", "1", "--draw", "1")
    done = llpbench("leaderboard", "verify", *arguments, cwd=bench.root)
    assert done.returncode == 1, done.stdout
    assert "draw 1: 4 of 4 cells" in done.stdout
    assert "2 equal to the bit, 0 within tolerance, 2 differ" in done.stdout
    assert done.stderr.count("doubt: cell") == 2


# -- check with results ------------------------------------------------------------------------------------------------


def test_a_board_is_compared_with_its_results(bench: Bench) -> None:
    content = bench.board_of(VICTIM, WITNESS)
    board = bench.root / "leaderboards"
    write_board(board, content)
    done = llpbench("leaderboard", "check", "--results", "run", cwd=bench.root)
    assert done.returncode == 0, done.stderr
    assert "8 of 8 cells compared with their results" in done.stdout
    # A log loss that the files of the board have nothing to compare with.
    result = content.lines[bench.result().id].result
    result.selected["bags"].metrics["log_loss"] = 0.1
    write_board(board, content)
    assert llpbench("leaderboard", "check", cwd=bench.root).returncode == 0
    found = llpbench("leaderboard", "check", "--results", "run", cwd=bench.root)
    assert found.returncode == 1
    assert f"cell {result.id}: it is published otherwise than its result in run says" in found.stderr


def test_a_published_method_that_was_run_beside_is_compared_by_its_numbers(bench: Bench) -> None:
    """As the way to a submission asks for: a cheap published method is run beside one's own, so it was made twice."""
    write_board(bench.root / "leaderboards", bench.board_of(VICTIM, WITNESS))
    result = bench.result()
    result.fit_seconds, result.wall_seconds, result.started = 0.5, 2.0, "2031-02-03T04:05:06Z"
    result.phases = {"other": 0.5}
    bench.save(result)
    done = llpbench("leaderboard", "check", "--results", "run", cwd=bench.root)
    assert done.returncode == 0, done.stderr
    assert "1 cell published from another run: the numbers of this one are equal" in done.stdout
    # With other numbers than the published ones it is a contradiction, of one of the two.
    arrays = bench.arrays(result)
    for rule in result.selected:
        arrays[rule] = arrays[rule][::-1].copy()
    bench.rescore(result, arrays)
    bench.save(result)
    found = llpbench("leaderboard", "check", "--results", "run", cwd=bench.root)
    assert found.returncode == 1
    assert f"cell {result.id}: published from another run than run, and not reproduced" in found.stderr


# -- the workflow ------------------------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = (ROOT / ".github" / "workflows" / "verify-submission.yml").read_text()


def steps_of(job: str) -> list[dict[str, Any]]:
    import yaml

    steps: list[dict[str, Any]] = yaml.safe_load(WORKFLOW)["jobs"][job]["steps"]
    return steps


def runs(job: str) -> list[str]:
    """The scripts of a job, in order."""
    return [" ".join(step["run"].split()) for step in steps_of(job) if "run" in step]


def place(lines: list[str], words: str) -> int:
    (found,) = [i for i, line in enumerate(lines) if words in line]
    return found


def test_the_workflow_has_no_rights_and_no_secrets() -> None:
    import yaml

    tree = yaml.safe_load(WORKFLOW)
    triggers = tree[True]  # YAML 1.1 reads the key ``on`` so
    assert set(triggers) == {"pull_request", "workflow_dispatch"}  # never pull_request_target, which has secrets
    assert triggers["pull_request"]["paths"] == ["leaderboards/**"]
    assert tree["permissions"] == {"contents": "read"}
    assert "secrets" not in re.sub(r"#.*", "", WORKFLOW)
    assert set(tree["jobs"]) == {"check", "verify"}
    for name, job in tree["jobs"].items():
        assert "permissions" not in job
        for step in steps_of(name):
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step.get("uses", "actions/x@" + "0" * 40))
            if "checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False
                assert "ref" not in step["with"]  # the merge that the event is of
            assert "${{" not in step.get("run", "")  # what a submitter names reaches a shell as a variable


def test_nothing_of_others_runs_in_the_job_that_checks_first() -> None:
    """A package that prints the last line of check and exits with 0 made the whole workflow green."""
    import yaml

    first, second = runs("check"), runs("verify")
    assert yaml.safe_load(WORKFLOW)["jobs"]["verify"]["needs"] == "check"
    assert [line for line in first if "pip" in line] == ["pip install ./base"]
    assert place(first, "outside.txt") < place(first, "pip install") < place(first, "llpbench leaderboard check")
    order = ["./base[", "leaderboard packages", "-r packages.txt", "check --strict", "leaderboard verify"]
    assert [place(second, words) for words in order] == sorted(place(second, words) for words in order)
    assert sum("pip install" in line for line in second) == 2
    assert not any(" python " in f" {line}" for line in first + second)  # what names packages is tested code


def test_marks_are_kept_only_where_verify_ran() -> None:
    steps = steps_of("verify")
    (upload,) = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    (ran,) = [step for step in steps if step.get("id") == "verify"]
    assert "leaderboard verify" in ran["run"]
    assert upload["with"]["path"] == "submission/leaderboards/verified"
    assert "steps.verify.outcome" in upload["if"]
    assert "always()" not in upload["if"]
    assert not any("upload-artifact" in step.get("uses", "") for step in steps_of("check"))


def test_the_workflow_runs_commands_that_exist() -> None:
    import click

    from llpbench.board.verbs.leaderboard import leaderboard

    filled = {"$CELLS": "4", "$FRESH": "2", "$DRAW": "123"}
    found = {}
    for job in ("check", "verify"):
        for line in runs(job):
            command = re.match(r"llpbench leaderboard (\w+) ([^>]*)", line)
            if command is None:
                continue
            words = [filled.get(word, word) for word in shlex.split(command[2].partition(" cat ")[0])]
            context = leaderboard.commands[command[1]].make_context(command[1], words)
            assert isinstance(context, click.Context)
            named = {str(context.params["board"]), str(context.params["against"])}
            assert named == {"submission/leaderboards", "base/leaderboards"}
            found[job, command[1]] = context.params
    assert set(found) == {("check", "check"), ("verify", "packages"), ("verify", "check"), ("verify", "verify")}
    assert found["verify", "verify"]["record"]
    assert found["verify", "check"]["strict"]
    assert not found["check", "check"]["strict"]  # packages of others are not there


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "a new cell": (lambda p: (p / "leaderboards" / "new.txt").write_text("x"), True),
    "a line of code": (lambda p: (p / "code.py").write_text("evil"), False),
    "a file moved in": (lambda p: (p / "code.py").rename(p / "leaderboards" / "code.py"), False),
    "a hidden file": (lambda p: (p / ".gitattributes").write_text("* filter=evil"), False),
    "a link in place of the folder": (
        lambda p: (shutil.rmtree(p / "leaderboards"), (p / "leaderboards").symlink_to("/etc")),
        False,
    ),
    "a folder of a like name": (
        lambda p: ((p / "leaderboards2").mkdir(), (p / "leaderboards2" / "x").write_text("x")),
        False,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_submission_changes_the_leaderboard_only(tmp_path: Path, name: str) -> None:
    """The workflow's own scripts, on a merge like GitHub's whose base has moved on since the pull request began."""
    change, fine = CHANGES[name]
    work = tmp_path / "submission"
    (work / "leaderboards").mkdir(parents=True)
    git(work, "init", "--quiet", "--initial-branch", "main")
    (work / "code.py").write_text("code = 1\n" * 9)
    (work / "leaderboards" / "old.txt").write_text("old")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "--message", "one")
    git(work, "checkout", "--quiet", "-b", "theirs")
    change(work)
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "theirs")
    git(work, "checkout", "--quiet", "main")
    (work / "ours.py").write_text("ours")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "--message", "ours")
    tip = git(work, "rev-parse", "HEAD")
    git(work, "merge", "--quiet", "--no-ff", "--message", "merge", "theirs")
    scripts = [step["run"] for step in steps_of("check") if "git" in step.get("run", "")]
    assert len(scripts) == 2
    environment = {**os.environ, "EVENT": "pull_request", "DEFAULT": "main"}
    for script in scripts:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=tmp_path, env=environment, capture_output=True, text=True,
        )  # fmt: skip
    assert git(tmp_path / "base", "rev-parse", "HEAD") == tip
    assert (done.returncode == 0) == fine, done.stdout + done.stderr
    assert "ours.py" not in done.stdout


def test_both_jobs_are_of_the_same_base() -> None:
    first, second = ([s["run"] for s in steps_of(job) if "worktree" in s.get("run", "")] for job in ("check", "verify"))
    assert first == second


@pytest.mark.parametrize("text", [WORKFLOW, (ROOT / "docs" / "submitting.md").read_text()], ids=["workflow", "docs"])
def test_every_option_that_is_written_down_exists(text: str) -> None:
    from llpbench.board.verbs.leaderboard import leaderboard

    found = re.findall(r"llpbench leaderboard (\w+)((?:\s+(?!llpbench)\S+)*)", text.replace("`", "\n#\n"))
    assert {verb for verb, _ in found} >= {"check", "verify"}
    for verb, rest in found:
        known = {name for param in leaderboard.commands[verb].params for name in param.opts}
        line = re.split(r"#|\n\n", rest)[0]
        assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", line)) <= known, verb
