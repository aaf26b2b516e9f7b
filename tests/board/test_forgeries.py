"""Forgeries: every part of a result, its predictions, its run or a published board edited by hand and sealed again.

A forger has the project's own tools, so every digest is right. What a file can prove must be found out by ``add`` or
``check``; what is consistent in itself (``VERIFY``) is found out by running it again (``rerun``, ``verify``).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from board_samples import shared
from cli_runner import llpbench
from forge import VICTIM, WITNESS, Bench, check_board, publish, write_board

from llpbench.board.checks.derived import derived_seeds
from llpbench.board.content.bootstrap import pack, unpack
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import seal
from llpbench.board.content.searches import check_search
from llpbench.board.content.splits import Splits
from llpbench.board.validate import Unsound
from llpbench.contracts.cell import OWN_SIZES
from llpbench.contracts.result import CellResult, Selected
from llpbench.experiment.tuned import History
from llpbench.results.sealing import decode_result, encode_result

Edit = Callable[[Bench, CellResult], object]


# -- edits of a result -------------------------------------------------------------------------------------------------


def metric(name: str, change: float, rule: str = "bags") -> Edit:
    def edit(_: Bench, r: CellResult) -> None:
        r.selected[rule].metrics[name] = (r.selected[rule].metrics[name] or 0.0) + change

    return edit


def drop_metric(_: Bench, r: CellResult) -> None:
    for chosen in r.selected.values():
        del chosen.metrics["log_loss"]


def state_metric(name: str, value: float | None) -> Edit:
    def edit(_: Bench, r: CellResult) -> None:
        for chosen in r.selected.values():
            chosen.metrics = {k: v for k, v in {**chosen.metrics, name: value}.items() if v is not None}

    return edit


def field(**facts: Any) -> Edit:
    def edit(_: Bench, r: CellResult) -> None:
        for name, value in facts.items():
            setattr(r, name, value)

    return edit


def part(name: str, **facts: Any) -> Edit:
    """Change keys of a dictionary; None takes one away."""

    def edit(_: Bench, r: CellResult) -> None:
        merged = {**getattr(r, name), **facts}
        setattr(r, name, {key: value for key, value in merged.items() if value is not None})

    return edit


def flattering_labels(bench: Bench, r: CellResult) -> None:
    """Labels that are what the scores say, with every number made to fit."""
    arrays = bench.arrays(r)
    arrays["labels"] = (arrays["bags"] > np.median(arrays["bags"])).astype(np.int16)
    bench.rescore(r, arrays)


def without_hard_rows(bench: Bench, r: CellResult) -> None:
    arrays = bench.arrays(r)
    right = (arrays["bags"] > np.median(arrays["bags"])) == (arrays["labels"] == 1)
    right[:2] = True
    bench.rescore(r, {name: values[right] for name, values in arrays.items()})


def no_predictions(bench: Bench, r: CellResult) -> None:
    (bench.run / "predictions" / f"{r.id}.npz").unlink()


def predictions_of_another(bench: Bench, r: CellResult) -> None:
    other = bench.result(seed=1)
    bench.save_arrays(r, bench.arrays(other))


def other_labels_digest(_: Bench, r: CellResult) -> None:
    r.digests = {**r.digests, "test_labels": "1" * 64}


def another_seed(bench: Bench, r: CellResult) -> None:
    """The luckier seed under the name of the other, all seeds and digests made to fit."""
    lucky = bench.result(seed=1)
    bench.save_arrays(r, bench.arrays(lucky))
    for name in ("selected", "history", "rows", "bags", "digests", "rate", "card"):
        setattr(r, name, getattr(lucky, name))


def other_rate(bench: Bench, r: CellResult) -> None:
    """A rate that flatters the decisions, with every number made to fit."""
    r.rate = [0.31]
    bench.rescore(r, bench.arrays(r))


def friendly_bags(bench: Bench, r: CellResult) -> None:
    """Test bags whose predictions are right in the mean, with every number made to fit."""
    arrays = bench.arrays(r)
    order = np.argsort(arrays["bags"] - arrays["labels"])
    arrays["bag_of"] = np.empty(len(order), np.int32)
    arrays["bag_of"][order] = np.arange(len(order)) % len(np.unique(bench.arrays(r)["bag_of"]))
    bench.save_arrays(r, arrays)
    bench.rescore(r, arrays)


def without_bags(bench: Bench, r: CellResult) -> None:
    arrays = bench.arrays(r)
    del arrays["bag_of"]
    bench.save_arrays(r, arrays)


def other_card(**facts: Any) -> Edit:
    def edit(_: Bench, r: CellResult) -> None:
        assert r.card is not None
        r.card = replace(r.card, **facts)

    return edit


def picked_report(_: Bench, r: CellResult) -> None:
    """The report that was best on test rows, not the one that the rule chose."""
    r.selected["bags"].report, r.selected["bags"].value = 2, r.history[2]["bags"]


def better_curve(_: Bench, r: CellResult) -> None:
    r.selected["bags"].value = 0.0


def later_report(_: Bench, r: CellResult) -> None:
    r.selected["bags"].report = 99


def no_curve(_: Bench, r: CellResult) -> None:
    r.history = []


def other_stage(_: Bench, r: CellResult) -> None:
    """A stage that is said to have won, with other numbers than the winner's."""
    for rule, chosen in r.selected.items():
        chosen.stage = "two"
        shown = Selected(report=chosen.report, stage="two", value=chosen.value, metrics={"auroc": 0.5})
        poor = Selected(report=0, stage="one", value=r.history[0][rule], metrics={"auroc": 0.5})
        r.stages.setdefault("one", {})[rule] = poor
        r.stages.setdefault("two", {})[rule] = shown


def worse_stage(_: Bench, r: CellResult) -> None:
    """The winner is said to be of the stage whose value is worse."""
    for rule, chosen in r.selected.items():
        best = Selected(report=1, stage="one", value=r.history[1][rule], metrics=dict(chosen.metrics))
        chosen.stage, chosen.report, chosen.value = "two", 2, r.history[2][rule]
        poor = Selected(report=2, stage="two", value=r.history[2][rule], metrics=dict(chosen.metrics))
        r.stages.setdefault("one", {})[rule] = best
        r.stages.setdefault("two", {})[rule] = poor


def code(**facts: str | None) -> Edit:
    return part("code", **facts)


def stand_in(_: Bench, r: CellResult) -> None:
    r.code = {**r.code, "method": "release my-package 1.0 sha256:" + "1" * 32}


def other_release(_: Bench, r: CellResult) -> None:
    r.code = {**r.code, "method": "release llpbench 99.0 sha256:" + "1" * 32}


def other_machine(bench: Bench, r: CellResult) -> None:
    path = bench.run / "machines" / f"{r.machine}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "cpu": "A Slower Processor"}))


def other_python(_: Bench, r: CellResult) -> None:
    r.versions = {**r.versions, "python": "3.99.0"}


def fewer_seconds(_: Bench, r: CellResult) -> None:
    r.fit_seconds = r.fit_seconds / 100


def no_seconds(_: Bench, r: CellResult) -> None:
    r.fit_seconds, r.phases = 0.0, {}


def negative_phase(_: Bench, r: CellResult) -> None:
    r.phases = {"a": r.fit_seconds + 5.0, "b": -5.0}


def beyond_its_limit(_: Bench, r: CellResult) -> None:
    r.fit_seconds, r.wall_seconds, r.phases = 9999.0, 9999.0, {"other": 9999.0}


def plan_of_another(bench: Bench, r: CellResult) -> None:
    """The plan says that the cell has other parameters than its result."""

    def edit(manifest: dict[str, Any]) -> None:
        manifest["planned"][r.id]["cell"]["params"]["penalty"] = 3.0

    bench.edit_manifest(edit)


def unknown_rule(_: Bench, r: CellResult) -> None:
    r.selected["test-rows"] = r.selected["bags"]
    r.rules = {**r.rules, "test-rows": 1}


def negative_feature_noise(_: Bench, r: CellResult) -> None:
    r.cell = msgspec.structs.replace(r.cell, feature_noise=-1.0)


NOISY = {"a noisy cell without noise", "noise of another size", "count noise where there is none"}

ADD: dict[str, tuple[Edit, str]] = {
    "AUROC raised": (metric("auroc", 0.03), "auroc"),
    "AUROC raised a little": (metric("auroc", 5e-5), "auroc"),
    "AUROC raised under the other rule": (metric("auroc", 0.03, "instances"), "auroc"),
    "accuracy raised": (metric("accuracy", 0.05), "accuracy"),
    "average precision raised": (metric("average_precision", 0.05), "average_precision"),
    "log loss lowered": (metric("log_loss", -0.1), "log_loss"),
    "a bad metric left out": (drop_metric, "log_loss"),
    "F1 raised": (metric("f1", 0.05), "f1"),
    "Brier score lowered": (metric("brier", -0.01), "brier"),
    "calibration error lowered": (metric("ece", -0.01), "ece"),
    "error of test bags lowered": (metric("test_bag_error", -0.01), "test_bag_error"),
    "a known rate that no count gives": (field(rate=[0.1234567]), "known rate|f1"),
    "a known rate beyond one": (field(rate=[1.5]), "known rate"),
    "a rate that flatters": (other_rate, "known rate"),
    "test bags that fit the predictions": (friendly_bags, "bags of the test rows"),
    "no test bags in the predictions": (without_bags, "bags of its test rows"),
    "a bag card of harder bags": (other_card(spread=9.9), "bag card"),
    "a bag card of other bags": (other_card(bags=3), "bag card"),
    "a bag error that cannot be": (metric("bag_error", -5.0), "bag_error"),
    "labels made to fit the scores": (flattering_labels, "labels"),
    "hard test rows left out": (without_hard_rows, "rows|labels"),
    "another digest of the labels": (other_labels_digest, "digest"),
    "no predictions": (no_predictions, "predictions"),
    "predictions of another cell": (predictions_of_another, "labels|auroc"),
    "the luckier seed under another's name": (another_seed, "labels"),
    "another split seed": (part("seeds", split=1), "split seed"),
    "another bags seed": (part("seeds", bags=1), "bags seed"),
    "another method seed": (part("seeds", method=1), "method seed"),
    "a noisy cell without noise": (field(count_sd=0.0), "count_sd"),
    "noise of another size": (field(count_sd=0.1), "count_sd"),
    "count noise where there is none": (field(count_sd=3.0), "count_sd"),
    "more training rows": (part("rows", train=4800), "rows"),
    "more bags": (part("bags", train=600), "bags"),
    "fewer held-back bags": (part("bags", valid=1), "bags"),
    "fewer seconds": (fewer_seconds, "fit_seconds"),
    "no seconds at all": (no_seconds, "no fit takes no time"),
    "less memory than an interpreter": (field(peak_memory_mb=5.0), "memory"),
    "half a thread": (part("limits", threads=0.5), "threads"),
    "a negative phase": (negative_phase, "negative"),
    "more seconds than its limit": (beyond_its_limit, "limit"),
    "no memory": (field(peak_memory_mb=0.0), "memory"),
    "more memory than its limit": (field(peak_memory_mb=1e6), "memory"),
    "a report that the rule did not choose": (picked_report, "best"),
    "a value that the curve does not have": (better_curve, "value"),
    "a report that never was": (later_report, "report"),
    "no curve": (no_curve, "report"),
    "a stage with other numbers than the winner": (other_stage, "stage"),
    "the worse stage as the winner": (worse_stage, "stage"),
    "a method in a single file": (code(method="file mine.py sha256:11"), "single file"),
    "a harness in a single file": (code(harness="file mine.py sha256:11"), "single file"),
    "a stand-in for a built-in method": (stand_in, "my-package"),
    "code of another release than its version": (other_release, "99.0"),
    "no word about the code": (field(code={}), "code"),
    "no word about the harness": (code(harness=None), "harness"),
    "code that cannot be read": (code(dataset="trust me"), "trust me"),
    "no version of numpy": (part("versions", numpy=None), "numpy"),
    "no version of what the method requires": (part("versions", scipy=None), "scipy"),
    "another Python than its machine": (other_python, "python"),
    "another description of a known machine": (other_machine, "machine"),
    "an older protocol": (field(protocol=1), "protocol"),
    "a protocol of tomorrow": (field(protocol=99), "protocol"),
    "another version of a rule": (part("rules", bags=99), "version"),
    "no version of a rule": (field(rules={}), "version"),
    "a rule that nobody registered": (unknown_rule, "test-rows"),
    "a plan of other parameters": (plan_of_another, "plan"),
    "no digest of the labels": (field(digests={}), "digest"),
    "labels the method did not ask for": (field(oracle=True), "labels"),
    "pseudo-labels better than perfect": (field(pseudo_labels={"all": 1.5}), "pseudo"),
    "a metric that nobody registered": (state_metric("usefulness", 0.99), "usefulness"),
    "no bag error": (state_metric("bag_error", None), "bag_error"),
    "no digest of the features": (part("digests", features=""), "features"),
    "an empty version": (part("versions", numpy=""), "numpy"),
    "a limit that is none": (part("limits", timeout=-1.0), "timeout"),
    "no word about threads": (part("limits", threads=None), "threads"),
    "no seconds of its process": (field(wall_seconds=0.0), "wall_seconds"),
    "negative seconds of scoring": (field(report_seconds=-5.0), "report_seconds"),
    "negative noise of features": (negative_feature_noise, "feature noise"),
}


@pytest.mark.parametrize("name", ADD)
def test_a_forged_result_is_not_published(bench: Bench, name: str) -> None:
    edit, reason = ADD[name]
    content = bench.board_of(WITNESS)
    noise = "high" if name in NOISY and name != "count noise where there is none" else "none"
    result = bench.result(noise=noise)
    edit(bench, result)
    bench.save(result)
    refused = publish(bench, content)
    assert result.id in refused, "it got through"
    assert any(word in refused[result.id] for word in reason.split("|")), refused
    assert result.id not in content.lines


def test_honest_results_are_published(bench: Bench) -> None:
    content = bench.board_of(WITNESS)
    assert publish(bench, content) == {}
    write_board(bench.root / "board", content)
    assert check_board(bench.root / "board") == []


def test_more_versions_are_no_merit(bench: Bench) -> None:
    """Of two results of a cell the published one stays, whatever the other lists."""
    content = bench.board_of(VICTIM)
    result = bench.result()
    result.versions = {**result.versions, **{f"package-{i}": "1.0" for i in range(9)}}
    result.fit_seconds, result.phases = 0.001, {"other": 0.001}
    bench.save(result)
    publish(bench, content)
    assert "package-1" not in content.lines[result.id].result.versions
    publish(bench, content, replace=True)  # when asked for, among equals
    assert "package-1" in content.lines[result.id].result.versions


# -- tuned parameters --------------------------------------------------------------------------------------------------


def study(bench: Bench, seed: int = 0) -> Path:
    return next(p for p in (bench.root / "tuned" / "studies").iterdir() if f"seed-{seed}-" in p.name)


def edit_study(bench: Bench, edit: Callable[[dict[str, Any]], object]) -> None:
    path = study(bench)
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def trial_results(bench: Bench) -> list[Path]:
    return sorted((bench.root / "tuned" / "cells").glob("*.json"))


def edit_trials(edit: Callable[[CellResult], object]) -> Callable[[Bench, CellResult], None]:
    def run(bench: Bench, _: CellResult) -> None:
        for path in trial_results(bench):
            result = decode_result(path.read_bytes())
            edit(result)
            path.write_bytes(encode_result(result))

    return run


def _saw_test_rows(r: CellResult) -> None:
    r.rows = {**r.rows, "test": 60}
    for chosen in r.selected.values():
        chosen.metrics = {**chosen.metrics, "auroc": 0.9}


def _chosen_by_hand(_: Bench, r: CellResult) -> None:
    r.cell = msgspec.structs.replace(r.cell, params={**r.cell.params, "penalty": 3.0})


def _shared(b: Bench, sampler: str = "random", rules: tuple[str, ...] = ("bags", "instances")) -> None:
    edit_study(b, lambda s: s.update(shared=list(rules), sampler=sampler))


def _given_up_under_one_rule(b: Bench, r: CellResult) -> None:
    def give_up(trial: CellResult) -> None:
        trial.status, trial.notes = "pruned", {"pruned_by": "instances"}

    _shared(b)
    edit_trials(give_up)(b, r)


def _unreadable_name(b: Bench, r: CellResult) -> None:
    b.edit_manifest(lambda plan: plan["planned"][r.id].update(label=f"{VICTIM}[params"))


TUNED: dict[str, tuple[Edit, str]] = {
    "trials of several rules that one of them steered": (lambda b, _: _shared(b, sampler="tpe"), "drawn by"),
    "trials that serve other rules": (lambda b, _: _shared(b, rules=("counts", "instances")), "do not serve"),
    "trials of several rules given up under one": (_given_up_under_one_rule, "not given up under all"),
    "no history of the search": (lambda b, _: shutil.rmtree(b.root / "tuned" / "studies"), "search"),
    "parameters that the search did not choose": (_chosen_by_hand, "chose"),
    "a search on other seeds": (
        lambda b, _: edit_study(b, lambda s: s["setting"].update(seeds=[0, 1], own=False)),
        "test rows",
    ),
    "a search by another rule": (lambda b, _: edit_study(b, lambda s: s["setting"].update(rule="instances")), "search"),
    "a better value than the trial had": (
        lambda b, _: edit_study(b, lambda s: s["trials"][1].update(value=0.0)),
        "trial",
    ),
    "trials that saw test rows": (edit_trials(_saw_test_rows), "test rows"),
    "trials that the rule of the search did not choose from": (
        edit_trials(lambda r: r.selected.pop("bags")),
        "its result differs",
    ),
    "a name that nobody can read": (_unreadable_name, "its name cannot be read"),
    "trials without results": (lambda b, _: [p.unlink() for p in trial_results(b)], "trial"),
    "other seconds of the search": (field(tuning_seconds=0.0), "tuning_seconds"),
}


@pytest.mark.parametrize("name", TUNED)
def test_a_search_that_is_not_shown_is_not_published(bench: Bench, name: str) -> None:
    edit, reason = TUNED[name]
    bench.run_name = "tuned-run"
    content = bench.board_of(WITNESS)
    result = bench.result()
    edit(bench, result)
    bench.save(result)
    refused = publish(bench, content, tuned=[bench.root / "tuned"])
    assert reason in refused.get(result.id, "it got through")


@pytest.mark.parametrize("shared", [False, True])
def test_a_tuned_row_carries_its_search(bench: Bench, shared: bool) -> None:
    bench.run_name = "tuned-run"
    content = bench.board_of(WITNESS)
    if shared:
        _shared(bench)
    assert publish(bench, content, tuned=[bench.root / "tuned"]) == {}
    write_board(bench.root / "board", content)
    assert check_board(bench.root / "board") == []
    (line, *_) = (bench.root / "board" / "searches" / "synthetic.jsonl").read_text().splitlines()
    assert len(json.loads(line)["trials"]) == 2
    (bench.root / "board" / "searches" / "synthetic.jsonl").unlink()
    assert any("search" in problem for problem in check_board(bench.root / "board"))


def _one_invented_trial(history: History) -> History:
    """What somebody writes who chose the parameters by test labels: a search of one trial, of a cell that never was."""
    assert history.best is not None
    return msgspec.structs.replace(history, trials=[msgspec.structs.replace(history.best, cells=["0" * 16], number=0)])


def _without_the_first(history: History) -> History:
    return msgspec.structs.replace(history, trials=history.trials[1:])


def _cell_of_another(history: History) -> History:
    """A trial that lost, with the cell of the one that won."""
    first, second = history.trials
    worse = msgspec.structs.replace(second, params={**second.params, "penalty": 3.0}, value=9.0)
    return msgspec.structs.replace(history, trials=[first, worse])


def _fewer_cells(history: History) -> History:
    return msgspec.structs.replace(history, trials=[msgspec.structs.replace(t, cells=[]) for t in history.trials])


INVENTED: dict[str, tuple[Callable[[History], History], str]] = {
    "one trial of no cell": (_one_invented_trial, "not those of its parameters"),
    "the first trial left out": (_without_the_first, "left out"),
    "a trial with the cell of another": (_cell_of_another, "trial 1 .* not those of its parameters"),
    "trials without cells": (_fewer_cells, "no cell for every seed"),
}


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_search_is_found_out(bench: Bench, name: str, installed: bool) -> None:
    """The ids of trials follow from their parameters; of a method that is not here, those of the best trial do."""
    edit, reason = INVENTED[name]
    bench.run_name = "tuned-run"
    content = bench.board_of(WITNESS)
    assert publish(bench, content, tuned=[bench.root / "tuned"]) == {}
    result = next(line.result for line in content.lines.values() if line.result.cell.preset)
    method = shared().methods[result.cell.method] if installed else None
    splits = Splits()
    kept = [h for h in content.searches.values() if h.setting.seeds == [result.cell.seed]]
    assert check_search(result, kept, method, splits) in kept
    forged = [edit(history) for history in kept]
    result.tuning_seconds = forged[0].seconds
    if edit is _cell_of_another and not installed:
        assert check_search(result, forged, method, splits) in forged  # nothing published could tell
        return
    with pytest.raises(Unsound, match=reason):
        check_search(result, forged, method, splits)


# -- a published board that was edited ---------------------------------------------------------------------------------


def line_edit(edit: Callable[[CellResult], object]) -> Callable[[Content, CellResult], None]:
    def run(content: Content, result: CellResult) -> None:
        old = content.lines[result.id]
        edit(old.result)
        content.lines[result.id] = seal(old.result, old.source)

    return run


def set_parts(name: str, **facts: Any) -> Callable[[Content, CellResult], None]:
    return line_edit(lambda r: part(name, **facts)(None, r))  # type: ignore[arg-type]


def set_fields(**facts: Any) -> Callable[[Content, CellResult], None]:
    return line_edit(lambda r: field(**facts)(None, r))  # type: ignore[arg-type]


def raise_metric(name: str, change: float) -> Callable[[Content, CellResult], None]:
    return line_edit(lambda r: [metric(name, change, rule)(None, r) for rule in r.selected])  # type: ignore[arg-type]


def replicates_of(content: Content, result: CellResult, **facts: Any) -> None:
    content.replicates[result.id] = msgspec.structs.replace(content.replicates[result.id], **facts)


def moved_replicates(content: Content, result: CellResult) -> None:
    """Replicates raised, the published AUROC left as it is."""
    rules = {rule: pack(unpack(p) + 0.05) for rule, p in content.replicates[result.id].rules.items()}
    replicates_of(content, result, rules=rules)


def no_spread(content: Content, result: CellResult) -> None:
    rules = {rule: pack(np.full(128, p.centre)) for rule, p in content.replicates[result.id].rules.items()}
    replicates_of(content, result, rules=rules)


def wide_spread(content: Content, result: CellResult) -> None:
    """Replicates around the published AUROC that would excuse any number on fresh seeds."""
    kept = content.replicates[result.id].rules
    far = {rule: unpack(p) + 10 * (unpack(p) - unpack(p).mean()) for rule, p in kept.items()}
    replicates_of(content, result, rules={rule: pack(values) for rule, values in far.items()})


def no_numbers(content: Content, result: CellResult) -> None:
    rules = {rule: pack(np.full(128, np.nan)) for rule in content.replicates[result.id].rules}
    replicates_of(content, result, rules=rules)


def unknown_method(content: Content, result: CellResult) -> None:
    cell = msgspec.structs.replace(result.cell, method="miracle", params={})
    copy = msgspec.structs.replace(content.lines[result.id].result, id=cell.id, cell=cell, method_name="miracle")
    content.lines[cell.id] = seal(copy, "0" * 32)
    replicates = msgspec.structs.replace(content.replicates[result.id], id=cell.id)
    content.replicates[cell.id] = replicates


def hidden_settings(content: Content, result: CellResult) -> None:
    """Another method's settings under the plain name."""
    cell = msgspec.structs.replace(result.cell, params={**result.cell.params, "penalty": 3.0})
    copy = msgspec.structs.replace(content.lines[result.id].result, id=cell.id, cell=cell)
    old = content.replicates.pop(result.id)
    del content.lines[result.id]
    content.lines[cell.id] = seal(copy, "0" * 32)
    content.replicates[cell.id] = msgspec.structs.replace(old, id=cell.id)


def no_bag_size(content: Content, result: CellResult) -> None:
    """Bags that size themselves, by a scheme that deals them evenly."""
    cell = msgspec.structs.replace(result.cell, bag_size=OWN_SIZES)
    old = content.lines.pop(result.id)
    copy = msgspec.structs.replace(old.result, id=cell.id, cell=cell, seeds=derived_seeds(cell))
    content.lines[cell.id] = seal(copy, old.source)
    content.replicates[cell.id] = msgspec.structs.replace(content.replicates.pop(result.id), id=cell.id)


CHECK: dict[str, tuple[Callable[[Content, CellResult], object], str]] = {
    "AUROC raised": (raise_metric("auroc", 0.05), "auroc"),
    "accuracy that no number of rows gives": (raise_metric("accuracy", 0.0123), "accuracy"),
    "replicates raised": (moved_replicates, "auroc"),
    "replicates without spread": (no_spread, "spread"),
    "replicates too wide for the rows": (wide_spread, "give at most"),
    "replicates without numbers": (no_numbers, "too few to tell a spread"),
    "no known rate": (set_fields(rate=[]), "known rate"),
    "replicates taken away": (lambda c, r: c.replicates.pop(r.id), "replicates"),
    "other labels": (lambda c, r: replicates_of(c, r, test="1" * 16), "labels"),
    "another digest of the labels": (set_parts("digests", test_labels="1" * 64), "labels"),
    "another split seed": (set_parts("seeds", split=1), "split seed"),
    "another bags seed": (set_parts("seeds", bags=1), "bags seed"),
    "another method seed": (set_parts("seeds", method=1), "method seed"),
    "count noise where there is none": (set_fields(count_sd=3.0), "count_sd"),
    "more training rows": (set_parts("rows", train=4800), "rows"),
    "more test rows": (set_parts("rows", test=61), "rows"),
    "more bags": (set_parts("bags", train=600), "bags"),
    "fewer seconds": (set_fields(fit_seconds=0.0001), "fit_seconds"),
    "no seconds at all": (set_fields(fit_seconds=0.0, phases={}), "no fit takes no time"),
    "no phases": (set_fields(phases={}), "phases"),
    "no memory": (set_fields(peak_memory_mb=0.0), "memory"),
    "less memory than an interpreter": (set_fields(peak_memory_mb=5.0), "memory"),
    "a method in a single file": (set_parts("code", method="file mine.py sha256:1"), "single file"),
    "no word about the code": (set_fields(code={}), "code"),
    "no version of numpy": (set_parts("versions", numpy=None), "numpy"),
    "no versions": (set_fields(versions={}), "version"),
    "an older protocol": (set_fields(protocol=1), "protocol"),
    "another version of a rule": (set_parts("rules", bags=99), "version"),
    "a method that nobody knows": (unknown_method, "miracle"),
    "labels the method did not ask for": (set_fields(oracle=True), "labels"),
    "other settings under the plain name": (hidden_settings, "penalty"),
    "another Python than its machine": (set_parts("versions", python="3.99.0"), "python"),
    "no limits": (set_fields(limits={}), "limits"),
    "a metric that nobody registered": (
        line_edit(lambda r: state_metric("usefulness", 0.99)(None, r)),  # type: ignore[arg-type]
        "usefulness",
    ),
    "no digest of the features": (set_parts("digests", features=""), "features"),
    "an empty version": (set_parts("versions", scipy=""), "scipy"),
    "no bag size": (no_bag_size, "its scheme needs a bag size"),
    "a trial as a result": (
        line_edit(lambda r: setattr(r, "cell", msgspec.structs.replace(r.cell, tuning=True))),
        "id|trial",
    ),
}


@pytest.mark.parametrize("name", CHECK)
def test_an_edited_board_is_found_out(bench: Bench, name: str) -> None:
    edit, reason = CHECK[name]
    content = bench.board_of(VICTIM, WITNESS)
    edit(content, bench.result())
    write_board(bench.root / "board", content)
    problems = check_board(bench.root / "board")
    assert problems, "it got through"
    assert any(word in problem for word in reason.split("|") for problem in problems), problems


# -- what only a run can tell ------------------------------------------------------------------------------------------


def perfect_predictions(bench: Bench, r: CellResult) -> None:
    """Scores that are the labels, every number made to fit."""
    arrays = bench.arrays(r)
    for rule in r.selected:
        arrays[rule] = arrays["labels"].astype(np.float64)
    bench.rescore(r, arrays)


def easier_setting(bench: Bench, r: CellResult) -> None:
    """The result without noise under the name of the noisy cell, all that can be derived made to fit."""
    noisy = bench.result(noise="high")
    arrays = bench.arrays(r)
    (bench.run / "cells" / f"{r.id}.json").unlink()
    r.cell, r.count_sd, r.rate = noisy.cell, noisy.count_sd, noisy.rate
    r.id = r.cell.id
    bench.save_arrays(r, arrays)
    bench.rescore(r, arrays)


def better_bag_error(_: Bench, r: CellResult) -> None:
    """An error of held-back bags, which no prediction of a test row shows."""
    r.selected["bags"].metrics["bag_error"] = 0.0


VERIFY: dict[str, Edit] = {
    "perfect predictions": perfect_predictions,
    "an easier setting": easier_setting,
    "a better bag error": better_bag_error,
}


@pytest.mark.parametrize("name", VERIFY)
def test_a_consistent_forgery_is_found_out_by_running_it_again(bench: Bench, name: str) -> None:
    """These pass every check of files, and nothing pretends otherwise."""
    content = bench.board_of(WITNESS)
    result = bench.result()
    VERIFY[name](bench, result)
    bench.save(result)
    assert result.id not in publish(bench, content)
    write_board(bench.root / "leaderboards", content)
    assert check_board(bench.root / "leaderboards") == []
    done = llpbench("rerun", result.id, cwd=bench.root)
    assert done.returncode == 1, done.stdout
    assert "not reproduced" in done.stdout
