"""What a submission may not change of a leaderboard: what is published, and how it is described."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from board_samples import MACHINE, as_line, content_of, grid, published, real_cell, shared, traced
from cli_runner import llpbench
from forge import VICTIM, WITNESS, Bench, publish, write_board
from helpers import make_cell, make_result
from test_verified import marks_of

from llpbench.board.accept.against import check_against
from llpbench.board.accept.brought import brought
from llpbench.board.accept.publish import refresh_facts, refresh_suites
from llpbench.board.built.redrawn import redrawn
from llpbench.board.checks.audit import audit
from llpbench.board.checks.trace import check_named
from llpbench.board.content.facts import DatasetFacts, Facts, MethodFacts, MetricFacts, RuleFacts
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import seal
from llpbench.board.schema.overall import SuiteAbout
from llpbench.board.validate import Unsound, check_date
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import Reference


def board() -> Content:
    return content_of(grid({"a": [0.80, 0.82, 0.81], "b": [0.70, 0.71, 0.72]}))


def test_a_submission_takes_nothing_away() -> None:
    before, after = board(), board()
    before.marks = marks_of(before, "differs")
    (marked,) = before.marks
    after.marks = dict(before.marks)
    assert brought(after, before, shared()) == []
    first, second = sorted(set(before.lines) - {marked})[:2]
    changed = msgspec.convert(msgspec.to_builtins(after.lines[second].result), CellResult)
    next(iter(changed.selected.values())).metrics["auroc"] = 0.123
    after.lines[second] = seal(changed, after.lines[second].source)
    del after.lines[first], after.marks[marked]
    problems = brought(after, before, shared())
    for words in (f"cell {first}: it is gone", f"cell {second}: it is another", f"mark of cell {marked}: it is gone"):
        assert any(problem.startswith(words) for problem in problems), problems
    assert len(problems) == 3


@pytest.mark.parametrize("kind", ["replicates", "searches", "machines", "submissions"])
def test_what_stands_beside_cells_stays_too(kind: str) -> None:
    before, after = board(), board()
    getattr(before, kind)["x"] = 1
    assert [problem.partition(": ")[2] for problem in brought(after, before, shared())] == [
        "it is gone; what is published is replaced by reviewers"
    ]
    getattr(after, kind)["x"] = 2
    (problem,) = brought(after, before, shared())
    assert "it is another" in problem
    getattr(after, kind)["x"] = 1
    assert brought(after, before, shared()) == []


def test_a_cell_without_a_number_may_get_one() -> None:
    """As ``leaderboard add`` does by itself; the other way round is a loss."""
    before, after = board(), board()
    (cell_id, *_) = after.lines
    failed = make_result(after.lines[cell_id].result.cell, status="failed", reason="OSError")
    before.lines[cell_id] = as_line(failed)
    assert brought(after, before, shared()) == []
    before.machines["0" * 10] = before.machines[MACHINE]
    elsewhere = msgspec.structs.replace(failed, machine="0" * 10)
    assert brought(after, replace(before, lines={**before.lines, cell_id: as_line(elsewhere)}), shared()) == []
    del before.machines["0" * 10]
    (problem,) = brought(before, after, shared())
    assert problem.startswith(f"cell {cell_id}: it is another")


def test_a_failure_is_not_made_another_failure() -> None:
    """``this method needs a terabyte`` about somebody else's method is for reviewers to publish."""
    before, after = board(), board()
    (cell_id, *_) = before.lines
    cell = before.lines[cell_id].result.cell
    before.lines[cell_id] = as_line(make_result(cell, status="failed", reason="OSError: no such file"))
    for status, reason in (("memory", "it needs a terabyte"), ("failed", "OSError: it is no good")):
        after.lines[cell_id] = as_line(make_result(cell, status=status, reason=reason))
        (problem,) = brought(after, before, shared())
        assert problem.startswith(f"cell {cell_id}: it is another")
    after.lines[cell_id] = before.lines[cell_id]
    assert brought(after, before, shared()) == []


@pytest.mark.parametrize("status", ["failed", "skipped", "timeout"])
def test_failures_of_others_come_with_numbers_of_theirs(status: str) -> None:
    """A new seed at which a rival ``fails`` cannot be made again from any number."""
    before, after = board(), board()
    at_fault = make_result(make_cell(method="b", seed=7), status=status, reason="it gives up on hard data")
    after.lines[at_fault.id] = as_line(at_fault)
    (problem,) = brought(after, before, shared())
    assert problem == f"cell {at_fault.id}: a failure, and no number, of b; reviewers add such"
    elsewhere = published(0.7, make_cell(method="b", seed=8, bag_size=32))
    after.lines[elsewhere.id] = as_line(elsewhere)
    assert brought(after, before, shared()) == [problem]  # one number does not pay for failures everywhere
    number = published(0.7, make_cell(method="b", seed=8))
    after.lines[number.id] = as_line(number)
    assert brought(after, before, shared()) == []


LEAKING = shared().datasets["synthetic"].resolve({"rows": 600})


@pytest.mark.parametrize(
    "changes",
    [{"dataset_options": LEAKING}, {"feature_noise": 3.0}, {"folds": 5}],
    ids=["options", "noise on features", "folds"],
)
def test_data_are_not_shown_under_another_name(changes: dict[str, Any]) -> None:
    """Easier rows under the name of the usual ones gave the best number of a column; harder ones spoilt a rival's."""
    result = traced(real_cell(seed=3, **changes), method_name="mean-ridge", dataset_name="synthetic")
    with pytest.raises(Unsound, match=r"it is shown as 'synthetic', its settings are those of 'synthetic[^']"):
        check_named(result, shared())
    before = content_of([traced(real_cell())])
    after = content_of([traced(real_cell()), result])
    assert any("it is shown as 'synthetic'" in problem for problem in brought(after, before, shared()))
    assert any("it is shown as 'synthetic'" in problem for problem in audit(after, shared()).problems)


def test_settings_of_a_noise_that_is_not_there_are_refused() -> None:
    """A cell with another delta and no noise stood in the place of the one that is published."""
    result = traced(real_cell(delta=1e-3))
    assert any("it has no noise on counts, and states delta" in p for p in audit(content_of([result])).problems)


def test_a_version_that_a_new_cell_states_excuses_nothing() -> None:
    """What is not the installed version was not looked at: hidden parameters passed as ``0.0.9``."""
    params = shared().methods["mean-ridge"].resolve({"penalty": 1e8})
    hidden = traced(real_cell(seed=3, params=params), method_name="mean-ridge")
    hidden.versions["llpbench"], hidden.code = "0.0.9", {k: v.replace("0.1.0", "0.0.9") for k, v in hidden.code.items()}
    before, after = content_of([traced(real_cell())]), content_of([traced(real_cell()), hidden])
    assert any("it is shown as 'mean-ridge', its settings" in p for p in brought(after, before, shared()))
    hidden.versions["llpbench"] = "mine"
    after = content_of([traced(real_cell()), hidden])
    assert any("is not a release" in problem for problem in brought(after, before, shared()))
    named = traced(real_cell(seed=3))
    named.versions["llpbench"], named.code = "0.0.9", hidden.code
    assert brought(content_of([traced(real_cell()), named]), before, shared()) == []


# -- the field ---------------------------------------------------------------------------------------------------------

FIELD = {m: [0.8, 0.81, 0.82] for m in "abcd"}


def with_guest(content: Content) -> Content:
    content.facts.methods["guest"] = MethodFacts(summary="somebody's", origin="guest-package 1.0")
    return content


def test_a_guest_redraws_nothing() -> None:
    before = content_of(grid(FIELD))
    after = with_guest(content_of([*grid(FIELD), *grid({"guest": [0.9] * 9})]))
    assert redrawn(after, before) == []
    assert redrawn(before, before) == []


def test_a_further_dataset_of_some_methods_is_for_reviewers() -> None:
    """Eight cells of small data took the first of the board out of its ranks."""
    before = content_of(grid(FIELD))
    after = content_of([*grid(FIELD), *grid({m: [0.8] for m in "bcd"}, dataset="easy")])
    problems = redrawn(after, before)
    assert any("a left out); such cells are added by reviewers" in problem for problem in problems), problems


def test_a_further_seed_of_most_methods_is_for_reviewers() -> None:
    before = content_of(grid(FIELD))
    after = content_of([*grid(FIELD), *(published(0.9, make_cell(method=m, seed=9)) for m in "bcd")])
    problems = redrawn(after, before)
    assert any(p.startswith("columns would be compared on other seeds: 2 (toy, bag 8, noise none") for p in problems)
    assert any("1 more, 0 fewer, a left out" in problem for problem in problems)


def test_another_backend_does_not_take_the_plain_name() -> None:
    before = content_of(grid({"a": [0.8] * 3, "b": [0.7] * 3}, backend="jax"))
    more = [published(0.9, make_cell(method="a", seed=seed, backend="torch")) for seed in range(9)]
    after = content_of([*grid({"a": [0.8] * 3, "b": [0.7] * 3}, backend="jax"), *more])
    (problem, *_) = redrawn(after, before)
    assert problem.startswith("cells would be shown under other names: 3 (cell ")
    assert "a on toy, now a (jax) on toy" in problem


def test_nothing_was_made_in_the_future() -> None:
    before, after = board(), board()
    new = published(0.7, make_cell(method="b", seed=8), started="2999-01-01T00:00:00Z")
    after.lines[new.id] = as_line(new)
    (problem,) = brought(after, before, shared())
    assert problem == f"cell {new.id}: it says that it was made at 2999-01-01T00:00:00Z, which is to come"
    with pytest.raises(Unsound, match="in no calendar"):
        check_date("9999-99-99T00:00:00Z")


def test_a_cell_stays_of_the_run_that_it_came_from() -> None:
    before, after = board(), board()
    (cell_id, *_) = after.lines
    after.lines[cell_id] = seal(after.lines[cell_id].result, "1" * 32)
    (problem,) = brought(after, before, shared())
    assert problem.startswith(f"cell {cell_id}: it is another")


def test_a_cell_may_get_the_name_of_today_and_no_other() -> None:
    cell = real_cell()
    before = content_of([traced(cell, method_name="mean-ridge[old=1]")])
    after, renamed = deepcopy(before), traced(cell, method_name="mean-ridge")
    after.lines[cell.id] = as_line(renamed)
    assert brought(after, before, shared()) == []
    renamed.method_name = "the-best"
    after.lines[cell.id] = as_line(renamed)
    (problem,) = brought(after, before, shared())
    assert problem.startswith(f"cell {cell.id}: it is another")


PUBLISHED = Reference(source="Doe 2020", dataset="toy", title="A", metric="auroc", mean=0.7, rule="instances")


def described() -> Content:
    """A leaderboard of an installed and of a foreign method, described as ``add`` does."""
    content = content_of([traced(real_cell()), *grid({"a": [0.8]})], [PUBLISHED])
    refresh_facts(content, shared())
    refresh_suites(content, shared())
    return content


def control(facts: Facts) -> None:
    facts.methods["mean-ridge"] = msgspec.structs.replace(facts.methods["mean-ridge"], control=True)


def foreign(facts: Facts) -> None:
    facts.methods["a"] = msgspec.structs.replace(facts.methods["a"], summary="the worst of all")


def upside_down(facts: Facts) -> None:
    facts.metrics["auroc"] = msgspec.structs.replace(facts.metrics["auroc"], higher=False)


def rule(facts: Facts) -> None:
    assert isinstance(facts.rules, dict)
    facts.rules["bags"] = RuleFacts(title="whatever", higher=False)


def dataset(facts: Facts) -> None:
    facts.datasets["synthetic"] = DatasetFacts(summary="another")


def reference(facts: Facts) -> None:
    facts.references = [replace(facts.references[0], mean=0.5), *facts.references[1:]]


def one_more_reference(facts: Facts) -> None:
    facts.references = [*facts.references, replace(PUBLISHED, source="Me 2026")]


def suite(facts: Facts) -> None:
    facts.suites["mine-1"] = SuiteAbout(title="mine", state="published 2026-01-01", parts=("all of it",))


def gone(facts: Facts) -> None:
    del facts.methods["a"]


def invented(facts: Facts) -> None:
    facts.methods["ghost"] = MethodFacts(summary="no cell is of it")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (control, "method mean-ridge is described otherwise"),
        (foreign, "method a is described otherwise"),
        (upside_down, "metric auroc is described otherwise"),
        (rule, "rule bags is described otherwise"),
        (dataset, "dataset synthetic is described otherwise"),
        (reference, "numbers of publications"),
        (one_more_reference, "numbers of publications"),
        (suite, "suite mine-1 is new"),
        (gone, "method a is gone"),
        (invented, "method ghost is new, and no cell is of it"),
    ],
)
def test_nobody_describes_the_field_anew(edit: Callable[[Facts], None], words: str) -> None:
    """Somebody else's method as a control is out of the ranks; a metric upside down makes the last the first."""
    before, after = described(), described()
    assert brought(after, before, shared()) == []
    edit(after.facts)
    (problem,) = brought(after, before, shared())
    assert problem.startswith("facts.json: ")
    assert words in problem


def test_what_is_new_comes_with_its_description() -> None:
    before, after = described(), described()
    result = traced(make_cell(method="mine"))
    after.lines[result.id] = as_line(result)
    after.facts.methods["mine"] = MethodFacts(summary="a new method")
    assert brought(after, before, shared()) == []
    before.facts.metrics["auroc"] = MetricFacts(title="an old title")  # of an older release: what is installed counts
    assert brought(after, before, shared()) == []


def test_who_adds_cells_describes_nothing_else(bench: Bench) -> None:
    """An author has another release of llpbench: what it says of other methods is not theirs to publish."""
    before = bench.board_of(WITNESS)
    facts = before.facts
    facts.methods[WITNESS] = msgspec.structs.replace(facts.methods[WITNESS], origin="llpbench 0.0.9")
    facts.metrics["unused"] = MetricFacts(title="of another release")
    facts.references = [PUBLISHED, *facts.references]
    after = deepcopy(before)
    assert publish(bench, after) == {}
    assert set(of(VICTIM, after)) > set(of(VICTIM, before))
    assert after.facts.methods[WITNESS] == before.facts.methods[WITNESS]
    assert after.facts.methods[VICTIM].origin == shared().methods.entries[VICTIM].plugin.origin
    assert after.facts.references == before.facts.references
    assert brought(after, before, shared()) == []


def test_names_of_methods_that_a_run_does_not_have_stay(bench: Bench) -> None:
    content = bench.board_of(WITNESS)
    for cell_id in of(WITNESS, content):
        content.lines[cell_id].result.method_name = f"{WITNESS}[old=1]"
    bench.edit_manifest(
        lambda plan: [
            plan["planned"].pop(i) for i, p in list(plan["planned"].items()) if p["cell"]["method"] == WITNESS
        ]
    )
    assert publish(bench, content) == {}
    assert {content.lines[cell_id].result.method_name for cell_id in of(WITNESS, content)} == {f"{WITNESS}[old=1]"}


def test_another_description_comes_with_one_line_of_advice(bench: Bench) -> None:
    content = bench.board_of(WITNESS)
    write_board(bench.root / "before", content)
    for name, method in content.facts.methods.items():
        content.facts.methods[name] = msgspec.structs.replace(method, origin="llpbench 9.9.9")
    write_board(bench.root / "leaderboards", content)
    found = llpbench("leaderboard", "check", "--against", "before", cwd=bench.root)
    assert found.returncode == 1
    assert "described otherwise" in found.stderr
    assert found.stderr.count("hint: facts.json") == 1
    assert "leaderboard add again" in found.stderr
    fine = llpbench("leaderboard", "check", "--against", "leaderboards", cwd=bench.root)
    assert "hint" not in fine.stderr


def test_a_new_cell_is_not_excused_by_the_run_that_it_names(bench: Bench) -> None:
    """Where a cell says that it is of another run, its numbers are held to the bounds of ``rerun`` alone."""
    write_board(bench.root / "before", bench.board_of(WITNESS))
    forged = bench.board_of(VICTIM, WITNESS)
    (line,) = [x for x in forged.lines.values() if x.result.id == bench.result().id]
    line.source = "0" * 32
    line.result.fit_seconds, line.result.phases = 0.001, {"other": 0.001}
    write_board(bench.root / "leaderboards", forged)
    excused = llpbench("leaderboard", "check", "--results", "run", cwd=bench.root)
    assert "1 cell published from another run: the numbers of this one are equal" in excused.stdout
    found = llpbench("leaderboard", "check", "--results", "run", "--against", "before", cwd=bench.root)
    assert found.returncode == 1
    assert f"cell {line.result.id}: it is published otherwise than its result in run says" in found.stderr


def of(method: str, content: Content) -> list[str]:
    """The cells of a method, by id."""
    return sorted(cell_id for cell_id, line in content.lines.items() if line.result.cell.method == method)


def test_a_new_number_is_in_some_results(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that hold none of what is new prove nothing of it."""
    before, after = bench.board_of(WITNESS), bench.board_of(VICTIM, WITNESS)
    assert check_against(after, [bench.run], shared(), before=before).problems == []
    bench.edit_manifest(lambda plan: [plan["planned"].pop(cell_id) for cell_id in of(VICTIM, after)])
    assert check_against(after, [bench.run], shared()).problems == []
    lacking = of(VICTIM, after)
    expected = [f"cell {cell_id}: new, and in none of the results" for cell_id in lacking]
    assert check_against(after, [bench.run], shared(), before=before).problems == expected
    write_board(bench.root / "before", before)
    write_board(bench.root / "leaderboards", after)
    found = llpbench("leaderboard", "check", "--results", "run", "--against", "before", cwd=bench.root)
    assert found.returncode == 1
    assert found.stderr.splitlines() == expected
    monkeypatch.setattr("llpbench.board.accept.against.SHOWN", 2)
    (grouped,) = check_against(after, [bench.run], shared(), before=before).problems
    more = f"{lacking[0]}, {lacking[1]} and {len(lacking) - 2} more"
    assert grouped == f"{len(lacking)} cells are new, and in none of the results: {more}"


def test_a_repaired_number_is_in_some_results_and_a_failure_need_not_be(bench: Bench) -> None:
    before, after = bench.board_of(VICTIM, WITNESS), bench.board_of(VICTIM, WITNESS)
    repaired, failed = of(VICTIM, after)[:2]
    for content, cell_id in ((before, repaired), (after, failed)):
        result = content.lines[cell_id].result
        content.lines[cell_id] = seal(msgspec.structs.replace(result, status="failed", reason="OSError"), "0" * 32)
    bench.edit_manifest(lambda plan: [plan["planned"].pop(cell_id) for cell_id in (repaired, failed)])
    (problem,) = check_against(after, [bench.run], shared(), before=before).problems
    assert problem == f"cell {repaired}: new, and in none of the results"


def test_a_new_name_asks_for_no_results(bench: Bench) -> None:
    """Names follow today's defaults; whoever adds a cell renames those of others. Its run may be elsewhere."""
    before, after = bench.board_of(VICTIM, WITNESS), bench.board_of(VICTIM, WITNESS)
    for cell_id in of(VICTIM, after):
        result = after.lines[cell_id].result
        before.lines[cell_id] = seal(msgspec.structs.replace(result, method_name=f"{VICTIM}[old=1]"), "0" * 32)
        after.lines[cell_id] = seal(result, "0" * 32)
    found = check_against(after, [bench.run], shared(), before=before)  # made again here: compared by numbers
    assert (found.problems, sorted(found.again)) == ([], of(VICTIM, after))
    bench.edit_manifest(lambda plan: [plan["planned"].pop(cell_id) for cell_id in of(VICTIM, after)])
    assert check_against(after, [bench.run], shared(), before=before).problems == []
