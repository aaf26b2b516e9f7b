"""What is published and what is refused: every sealed result is suspected until it is sound and can be traced."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from archives import bomb, npz
from board_samples import (
    CODE,
    MACHINE,
    VERSIONS,
    as_line,
    content_of,
    grid,
    published,
    real_cell,
    shared,
    traced,
    write_run,
)
from helpers import make_cell, make_plan

from llpbench.board.publish import Added, add_results
from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files, differences
from llpbench.board.checks.audit import audit
from llpbench.board.checks.derived import check_derived, derived_count_sd
from llpbench.board.checks.recompute import LATER, check_metrics, tied_share
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.content.lines import seal
from llpbench.board.content.origin import Origin, read_origin
from llpbench.board.schema.overall import SuiteAbout
from llpbench.board.validate import Unsound
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult, Selected
from llpbench.contracts.specs import Reference
from llpbench.experiment.metrics import auroc
from llpbench.experiment.scoring import digest_of_labels
from llpbench.plugins.options import format_scalar
from llpbench.results.sealing import encode_result
from llpbench.results.store import Store
from llpbench_methods.mean_map import authors

METHODS = ("mean-ridge", "best-feature")


def runs(seeds: int = 3) -> list[CellResult]:
    return [traced(real_cell(method, seed)) for method in METHODS for seed in range(seeds)]


def add(folder: Path, content: Content | None = None, **how: Any) -> tuple[Content, Added]:
    content = Content() if content is None else content
    return content, add_results(folder, content, shared(), **how)


def old_board() -> Content:
    """A leaderboard of protocol 1."""
    return content_of([published(0.5, make_cell())])


def the_reason(report: Added) -> str:
    assert report.added == []
    ((_, reason),) = report.refused
    return reason


# -- what goes in ------------------------------------------------------------------------------------------------------


def test_sound_results_go_in_and_come_back(tmp_path: Path) -> None:
    write_run(tmp_path / "run", runs())
    content, report = add(tmp_path / "run")
    assert (len(report.added), report.refused, report.unreleased) == (6, [], 0)
    write_files(tmp_path / "board", {**raw_files(content), **built_files(content)})
    again = read_folder(tmp_path / "board")
    assert again == content
    assert raw_files(again) == raw_files(content)
    assert differences(tmp_path / "board", again) == []
    again.facts.suites["suite-1"] = SuiteAbout(state="a draft", parts=("random: 6 of 8 cells",))
    rivals = {name: msgspec.structs.replace(facts, control=False) for name, facts in again.facts.methods.items()}
    again.facts.methods = rivals  # controls get no mark and no claim
    board = make_board(again)
    assert {c.basis for c in board.datasets[0].claims} == {"seeds and test rows"}
    assert board.suites == again.facts.suites


def test_the_facts_of_methods_and_datasets_are_kept(tmp_path: Path) -> None:
    write_run(tmp_path / "run", runs(1))
    content, _ = add(tmp_path / "run")
    assert content.facts.methods["best-feature"].control
    assert not content.facts.methods["mean-ridge"].control
    assert content.facts.methods["mean-ridge"].origin.startswith("llpbench ")
    assert content.facts.datasets["synthetic"].task == "binary"
    assert not content.facts.metrics.get("log_loss") or not content.facts.metrics["log_loss"].higher


def test_the_same_result_twice_changes_nothing(tmp_path: Path) -> None:
    write_run(tmp_path / "run", runs(1))
    content, _ = add(tmp_path / "run")
    before = raw_files(content)
    _, report = add(tmp_path / "run", content)
    assert (report.added, report.replaced, len(report.kept)) == ([], [], 2)
    assert raw_files(content) == before


def test_the_better_documented_of_two_stays(tmp_path: Path) -> None:
    """A cell of protocol 1 may have come without predictions."""
    cell = real_cell()
    poor, rich = traced(cell, started="2025-01-01T00:00:00Z", protocol=1), traced(cell, protocol=1)
    write_run(tmp_path / "rich", [rich])
    content = old_board()
    content.lines[cell.id] = as_line(poor)
    _, report = add(tmp_path / "rich", content)
    assert report.replaced == [(cell.id, "only one has replicates")]
    assert content.lines[cell.id].result.started == rich.started
    assert list(content.replicates) == [cell.id]


def test_of_equals_the_published_one_stays_unless_asked(tmp_path: Path) -> None:
    cell = real_cell()
    for name, day in (("first", "2025-01-01"), ("second", "2025-02-02")):
        write_run(tmp_path / name, [traced(cell, started=f"{day}T00:00:00Z")])
    content, _ = add(tmp_path / "first")
    _, report = add(tmp_path / "second", content)
    assert report.kept == [(cell.id, "it was published first and is as well documented")]
    _, report = add(tmp_path / "second", content, replace=True)
    assert [i for i, _ in report.replaced] == [cell.id]
    assert content.lines[cell.id].result.started.startswith("2025-02-02")


def test_a_number_wins_over_a_failure_and_a_failure_is_published(tmp_path: Path) -> None:
    cell = real_cell()
    failed = traced(cell, status="timeout", reason="1 h was too short", selected={}, versions={}, seeds={})
    write_run(tmp_path / "failed", [failed])
    content, report = add(tmp_path / "failed")
    assert report.added == [cell.id]
    write_run(tmp_path / "fine", [traced(cell)])
    _, report = add(tmp_path / "fine", content)
    assert report.replaced == [(cell.id, "only one has a number")]


def test_planned_cells_without_a_result_are_counted(tmp_path: Path) -> None:
    store = write_run(tmp_path / "run", runs(1))
    store.plan([make_plan(real_cell(seed=7))], "llpbench run", "0.1.0")
    _, report = add(tmp_path / "run")
    assert (len(report.added), report.missing) == (2, 1)


# -- what cannot be traced ---------------------------------------------------------------------------------------------

UNTRACED: dict[str, tuple[dict[str, Any], str]] = {
    "no version": ({"versions": {"python": "3.12.0", "numpy": "2.0.0"}}, "which version of llpbench"),
    "a dirty version": (
        {"versions": {"llpbench": "0.1.0+dirty", "python": "3.12.0", "numpy": "2.0.0"}},
        "is not a release",
    ),
    "a development version": (
        {"versions": {"llpbench": "0.2.dev3", "python": "3.12.0", "numpy": "2.0.0"}},
        "is not a release",
    ),
    "no seeds": ({"seeds": {}}, "its split seed is None"),
    "other seeds": ({"seeds": {"split": 1, "bags": 2, "method": 3}}, "its split seed is 1"),
    "no rows": ({"rows": {}}, "how many rows"),
    "no limits": ({"limits": {}}, "which limits"),
    "no machine": ({"machine": ""}, "machine id ''"),
    "an unknown machine": ({"machine": "aaaaaaaaaa"}, "aaaaaaaaaa.json"),
    "a machine elsewhere": ({"machine": "../../../x"}, "machine id"),
    "no date": ({"started": "yesterday"}, "does not read like"),
    "one rule": ({"selected": {"bags": Selected(report=0, metrics={"auroc": 0.5})}}, "under the rule 'instances'"),
    "labels it did not ask for": ({"oracle": True}, "is not given labels"),
    "a failure without a reason": ({"status": "failed", "selected": {}}, "does not say why"),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "reason"), UNTRACED.values(), ids=UNTRACED.keys())
def test_what_cannot_be_traced_is_refused(tmp_path: Path, facts: dict[str, Any], reason: str) -> None:
    write_run(tmp_path / "run", [traced(real_cell(), **facts)], predictions=False)
    assert reason in the_reason(add(tmp_path / "run")[1])


CELLS: dict[str, tuple[dict[str, Any], str]] = {
    "a method nobody installed": ({"method": "mymethod", "params": {}}, "no installed plugin brings the method"),
    "a dataset nobody installed": ({"dataset": "mine", "dataset_options": {}}, "no installed plugin brings the data"),
    "settings left open": ({"params": {}}, "does not state every setting"),
    "settings that do not exist": ({"params": {"nonsense": 1}}, "does not take these settings"),
    "a trial of a search": ({"tuning": True}, "a trial of a search"),
    "an engine of unknown version": ({"backend": "torch"}, "which version of keras"),
    "a name that is a path": ({"dataset": "../../etc", "dataset_options": {}}, "is not a name"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "reason"), CELLS.values(), ids=CELLS.keys())
def test_a_cell_that_nobody_could_run_is_refused(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    cell = msgspec.structs.replace(real_cell(), **changes)
    write_run(tmp_path / "run", [traced(cell)], predictions=False)
    assert reason in the_reason(add(tmp_path / "run")[1])


def test_a_run_with_overridden_names_is_refused(tmp_path: Path) -> None:
    command = "llpbench run --plugin ./mine.py --plugin-override mean-ridge --methods mean-ridge"
    write_run(tmp_path / "run", [traced(real_cell())], command=command)
    assert "--plugin-override" in the_reason(add(tmp_path / "run")[1])


def test_nothing_runs_under_another_name(tmp_path: Path) -> None:
    cell = real_cell(params={**real_cell().params, "penalty": 3.0})
    store = write_run(tmp_path / "run", [traced(cell)])  # its plan says "mean-ridge"
    store.plan([make_plan(cell, dataset="synthetic, hard")], "llpbench run", "0.1.0")
    content, report = add(tmp_path / "run")
    assert report.refused == []
    result = content.lines[cell.id].result
    assert (result.method_name, result.dataset_name) == ("mean-ridge[penalty=3]", "synthetic")


def test_a_preset_is_named_and_nothing_else_is_claimed(tmp_path: Path) -> None:
    params = shared().methods["mean-map"].resolve(authors("synthetic", 8))
    cell = real_cell("mean-map", preset="authors", params=params)
    store = write_run(tmp_path / "run", [traced(cell)])
    assert "is not that of its settings" in the_reason(add(tmp_path / "run")[1])
    hidden = ("mean-map[preset=other]", "mean-map[sigma=7;preset=authors]", "mean-map[params=authors]", "mean-map")
    for label in hidden:
        store.plan([make_plan(cell, method_name=label)], "llpbench run", "0.1.0")
        assert "is not that of its settings" in the_reason(add(tmp_path / "run")[1])
    variant = format_scalar(params["variant"])
    store.plan([make_plan(cell, method_name=f"mean-map[preset=authors;variant={variant}]")], "llpbench run", "0.1.0")
    content, report = add(tmp_path / "run")
    assert report.added == [cell.id]
    assert audit(content, shared()).problems == []
    for label in hidden:
        content.lines[cell.id] = as_line(msgspec.structs.replace(content.lines[cell.id].result, method_name=label))
        assert "is not that of its settings" in "".join(audit(content, shared()).problems)


@pytest.mark.parametrize("preset", ["authors", "no-such-preset"])
def test_a_preset_has_the_settings_that_its_method_says(tmp_path: Path, preset: str) -> None:
    params = {**shared().methods["mean-map"].resolve(authors("synthetic", 8)), "sigma": 0.123}
    cell = real_cell("mean-map", preset=preset, params=params)
    store = write_run(tmp_path / "run", [traced(cell)])
    store.plan([make_plan(cell, method_name=f"mean-map[preset={preset}]")], "llpbench run", "0.1.0")
    assert "are not those of" in (reason := the_reason(add(tmp_path / "run")[1])) or "has no preset" in reason


def test_parameters_of_a_search_are_named_so(tmp_path: Path) -> None:
    """``preset=tuned-instances`` would be compared under a rule that the search did not use."""
    cell = real_cell(preset="tuned-instances")
    store = write_run(tmp_path / "run", [traced(cell)])
    store.plan([make_plan(cell, method_name="mean-ridge[preset=tuned-instances]")], "llpbench run", "0.1.0")
    assert "is not that of its settings" in the_reason(add(tmp_path / "run")[1])


@pytest.mark.parametrize("limits", [{}, {"timeout": 1.0, "memory_mb": 8192.0}, {"timeout": 3600.0, "memory_mb": 10.0}])
@pytest.mark.parametrize("status", ["timeout", "memory"])
def test_a_method_that_was_stopped_early_is_not_published_as_failing(
    tmp_path: Path, status: Any, limits: dict[str, float]
) -> None:
    stopped = traced(real_cell(), status=status, reason="stopped", selected={}, limits=limits)
    write_run(tmp_path / "run", [stopped])
    assert "others have" in the_reason(add(tmp_path / "run")[1])


def test_published_cells_are_named_anew_when_defaults_change(tmp_path: Path) -> None:
    cell = real_cell(params={**real_cell().params, "penalty": 3.0})
    write_run(tmp_path / "run", [traced(cell)])
    content, _ = add(tmp_path / "run")
    old = content.lines[cell.id]
    old.result.method_name = "mean-ridge"  # as if a penalty of 3 had been the default
    content.lines[cell.id] = seal(old.result, old.source)
    _, report = add(tmp_path / "run", content)
    assert report.renamed == [(cell.id, "mean-ridge is now mean-ridge[penalty=3]")]
    write_files(tmp_path / "board", raw_files(content))
    assert read_folder(tmp_path / "board").lines[cell.id].result.method_name == "mean-ridge[penalty=3]"


def test_a_bound_is_named_for_its_data_whichever_run_it_was_part_of(tmp_path: Path) -> None:
    oracle = next(e.spec.name for e in shared().methods if e.spec.oracle)
    cell = real_cell(oracle, bag_size=1, backend="jax")
    versions = {**VERSIONS, "keras": "3.6.0", "jax": "0.5.0"}
    result = traced(cell, oracle=True, versions=versions)
    store = write_run(tmp_path / "run", [result])
    store.plan([make_plan(cell, dataset="synthetic, by-feature", oracle=True)], "llpbench run", "0.1.0")
    content, report = add(tmp_path / "run")
    assert report.refused == []
    assert content.lines[cell.id].result.dataset_name == "synthetic"


# -- hostile files -----------------------------------------------------------------------------------------------------


def run_of_one(tmp_path: Path, predictions: bool = True) -> tuple[Path, CellResult]:
    result = traced(real_cell())
    write_run(tmp_path / "run", [result], predictions=predictions)
    return tmp_path / "run" / "cells" / f"{result.id}.json", result


NUMBERS: dict[str, tuple[dict[str, Any], str]] = {
    "endless seconds": ({"fit_seconds": 1e300}, "out of range"),
    "negative seconds": ({"fit_seconds": -1.0}, "negative"),
    "an AUROC of two": (
        {"selected": {rule: Selected(report=0, metrics={"auroc": 2.0}) for rule in ("bags", "instances")}},
        "not between 0 and 1",
    ),
    "a long text": ({"flags": {"a": "x" * 5000}}, "5,000 characters"),
    "control characters": ({"notes": {"a\x1b[2J": 1.0}}, "cannot be printed"),
    "a strange rule": (
        {"selected": {rule: Selected(report=0, metrics={"auroc": 0.5}) for rule in ("bags", "instances", "<b>")}},
        "unknown selection rule",
    ),
}


@pytest.mark.parametrize(("facts", "reason"), NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_and_texts_out_of_range_are_refused(tmp_path: Path, facts: dict[str, Any], reason: str) -> None:
    write_run(tmp_path / "run", [traced(real_cell(), **facts)], predictions=False)
    assert reason in the_reason(add(tmp_path / "run")[1])


BYTES: dict[str, bytes] = {
    "empty": b"",
    "a list": b"[1, 2]",
    "a number": b"7",
    "not a number": b'{"digest": "x", "result": NaN}',
    "a wrong type": b'{"digest": "x", "result": {"id": 3, "cell": [], "status": "ok"}}',
    "an infinite number": b'{"digest": "x", "result": {"id": "a", "fit_seconds": 1e999}}',
    "not text": b"\xff\xfe\x00",
    "a deep nest": b"[" * 200_000,
    "a deep result": b'{"digest": "x", "result": ' + b'{"a":' * 100_000,
}


@pytest.mark.parametrize("data", BYTES.values(), ids=BYTES.keys())
def test_files_that_are_no_results_are_refused(tmp_path: Path, data: bytes) -> None:
    path, _ = run_of_one(tmp_path)
    path.write_bytes(data)
    assert the_reason(add(tmp_path / "run")[1])


def test_an_edited_result_is_refused(tmp_path: Path) -> None:
    path, _ = run_of_one(tmp_path)
    text = path.read_text().replace('"fit_seconds": 1.5', '"fit_seconds": 0.1')
    path.write_text(text)
    assert "does not match its digest" in the_reason(add(tmp_path / "run")[1])


def test_a_result_under_another_id_is_refused(tmp_path: Path) -> None:
    path, _ = run_of_one(tmp_path)
    path.write_bytes(encode_result(traced(real_cell(seed=5))))
    assert "it holds the result of cell" in the_reason(add(tmp_path / "run")[1])


def test_a_huge_file_is_not_even_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = run_of_one(tmp_path)
    os.truncate(path, 100 << 20)
    monkeypatch.setattr(Path, "read_bytes", _only_small(Path.read_bytes))
    assert "100 MB" in the_reason(add(tmp_path / "run")[1])


def _only_small(read: Callable[[Path], bytes]) -> Callable[[Path], bytes]:
    def guarded(path: Path) -> bytes:
        assert path.stat().st_size < 1 << 20
        return read(path)

    return guarded


@pytest.mark.parametrize("what", ["cells", "predictions", "machines"])
def test_links_are_not_followed(tmp_path: Path, what: str) -> None:
    path, result = run_of_one(tmp_path)
    names = {"predictions": f"{result.id}.npz", "machines": f"{MACHINE}.json", "cells": path.name}
    victim = tmp_path / "run" / what / names[what]
    elsewhere = tmp_path / "elsewhere"
    victim.rename(elsewhere)
    victim.symlink_to(elsewhere)
    assert "not a plain file" in the_reason(add(tmp_path / "run")[1])


def test_a_folder_that_is_a_link_is_not_entered(tmp_path: Path) -> None:
    run_of_one(tmp_path)
    (tmp_path / "run" / "cells").rename(tmp_path / "cells")
    (tmp_path / "run" / "cells").symlink_to(tmp_path / "cells")
    with pytest.raises(StoreError, match="symbolic link"):
        add(tmp_path / "run")


def test_an_id_that_is_a_path_goes_nowhere(tmp_path: Path) -> None:
    run_of_one(tmp_path)
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text())
    (planned,) = manifest["planned"].values()
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    manifest["planned"] = {"../../secret": planned, "\x1b[31mred": planned}
    path.write_text(json.dumps(manifest))
    _, report = add(tmp_path / "run")
    assert [i for i, _ in report.refused] == ["../../secret", "?[31mred"]
    assert all("sixteen hexadecimal digits" in reason for _, reason in report.refused)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"created": 1}', b"[" * 200_000])
def test_a_broken_manifest_is_one_sentence(tmp_path: Path, data: bytes) -> None:
    run_of_one(tmp_path)
    (tmp_path / "run" / "manifest.json").write_bytes(data)
    with pytest.raises(StoreError, match="not a results folder that can be read"):
        add(tmp_path / "run")


# -- predictions -------------------------------------------------------------------------------------------------------


def labels_and(rows: int = 30, **scores: np.ndarray) -> dict[str, np.ndarray]:
    labels = np.arange(rows, dtype=np.int16) % 2
    right = {rule: np.linspace(0, 1, rows, dtype=np.float32) for rule in ("bags", "instances")}
    return {"labels": labels, **right, **scores}


PREDICTIONS: dict[str, tuple[Callable[[], bytes], str]] = {
    "no archive": (lambda: b"PK nonsense", "not a predictions file"),
    "no scores": (lambda: npz(labels=np.zeros(30, np.int16)), "not a predictions file"),
    "objects": (lambda: npz(**labels_and(bags=np.array([{}] * 30, dtype=object))), "not a predictions file"),
    "a bomb": (lambda: bomb("labels", 5), "would unpack to 5 MB"),
    "other rows": (lambda: npz(**labels_and(31)), "31 rows, the result says 30"),
    "NaN": (lambda: npz(**labels_and(bags=np.full(30, np.nan, np.float32))), "not all finite"),
    "three dimensions": (lambda: npz(**labels_and(bags=np.zeros((30, 2, 2), np.float32))), "do not fit"),
    "words for labels": (lambda: npz(**{**labels_and(), "labels": np.array(["a"] * 30)}), "not whole numbers"),
    "other labels": (lambda: npz(**labels_and()), "the digest of its test labels"),
}


def test_probabilities_of_several_classes_that_do_not_add_up_are_refused() -> None:
    result = traced(real_cell("mean-ridge", 0))
    rule = next(iter(result.selected))
    rows = result.rows["test"]
    labels = np.arange(rows) % 3
    arrays = {"labels": labels, **{name: np.full((rows, 3), 1 - 1e-6) for name in result.selected}}
    result.digests["test_labels"] = digest_of_labels(labels)
    result.digests.pop("test_bags", None)
    result.rate = []
    method = shared().methods["mean-ridge"]
    assert method.scores == "probability"
    with pytest.raises(Unsound, match=f"under '{rule}' are said to be probabilities"):
        check_metrics(result, arrays, method, shared().metrics.specs)


@pytest.mark.parametrize(("make", "reason"), PREDICTIONS.values(), ids=PREDICTIONS.keys())
def test_predictions_that_are_not_those_of_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], bytes], reason: str
) -> None:
    monkeypatch.setattr("llpbench.board.content.bootstrap.PREDICTION_BYTES", 4 << 20)
    _, result = run_of_one(tmp_path)
    Store(tmp_path / "run").predictions_path(result.id).write_bytes(make())
    assert reason in the_reason(add(tmp_path / "run")[1])


def test_ties_of_single_precision_are_no_forgery_but_say_nothing(tmp_path: Path) -> None:
    """Scores that differ by less than single precision holds: the AUROC moves, within what the ties allow."""
    labels = np.arange(30) % 2
    fine = 0.5 + 1e-12 * np.arange(30)  # all ties once stored
    coarse = fine.astype(np.float32)
    stated = Selected(report=0, metrics={"auroc": auroc(labels, fine)})
    result = traced(real_cell(), selected={"bags": stated, "instances": stated}, protocol=1)
    result.history = [{"bags": None, "instances": None}]
    store = write_run(tmp_path / "run", [result], predictions=False)
    np.savez(store.predictions_path(result.id), labels=labels.astype(np.int16), bags=coarse, instances=coarse)
    assert abs(auroc(labels, coarse) - auroc(labels, fine)) > 1e-3
    content, report = add(tmp_path / "run", old_board())
    assert (report.added, report.refused) == ([result.id], [])
    assert content.replicates == {}
    # What is judged today is kept as it was judged.
    newer = traced(real_cell(seed=1), selected={"bags": stated, "instances": stated})
    newer.history, newer.digests = result.history, {**newer.digests, "test_labels": digest_of_labels(labels)}
    store = write_run(tmp_path / "newer", [newer], predictions=False)
    np.savez(store.predictions_path(newer.id), labels=labels.astype(np.int16), bags=coarse, instances=coarse)
    assert "its predictions give auroc" in the_reason(add(tmp_path / "newer")[1])


def test_results_of_before_the_known_rate_are_refused(tmp_path: Path) -> None:
    """Nothing says of them how far their replicates may spread, so they are made again."""

    def without(result: CellResult, *kept: str) -> CellResult:
        write_run(tmp_path / "made", [result])
        for chosen in result.selected.values():
            chosen.metrics = {name: v for name, v in chosen.metrics.items() if name not in LATER or name in kept}
        result.rate = []
        return result

    older, boasting = without(traced(real_cell(seed=1))), without(traced(real_cell(seed=2)), "f1")
    for result in (older, boasting):
        store = Store(tmp_path / "made")
        store.plan([make_plan(result.cell)], "llpbench run", "0.1.0")
        store.write(result)
    for chosen in older.selected.values():
        assert {"auroc", "average_precision", "accuracy", "log_loss"} <= set(chosen.metrics)
    _, report = add(tmp_path / "made")
    assert report.added == []
    reasons = dict(report.refused)
    assert "does not state the known rate" in reasons[older.id]
    assert "give f1 nan" in reasons[boasting.id]


def test_noise_is_sized_for_the_classes_that_predictions_show() -> None:
    """An option of a dataset may change its number of classes, and with it the noise on counts."""
    cell = real_cell(noise="high")
    for classes, other in ((2, 3), (3, 2)):
        result = traced(cell, count_sd=derived_count_sd(cell, classes))
        check_derived(result, {classes})
        check_derived(result, (2, 3))
        with pytest.raises(Unsound, match="count_sd"):
            check_derived(result, {other})


def test_protocols_are_never_mixed(tmp_path: Path) -> None:
    write_run(tmp_path / "old", [traced(real_cell(), protocol=1)])
    write_run(tmp_path / "new", [traced(real_cell())])
    assert "protocol 1, this leaderboard is of protocol 2" in the_reason(add(tmp_path / "old")[1])
    assert "protocol 2, this leaderboard is of protocol 1" in the_reason(add(tmp_path / "new", old_board())[1])
    assert add(tmp_path / "old", old_board())[1].refused == []
    mixed = old_board()
    mixed.lines[real_cell().id] = as_line(traced(real_cell()))
    assert any("protocol 1 and 2" in problem for problem in audit(mixed).problems)
    with pytest.raises(Unsound, match="protocol 1 and 2"):
        add(tmp_path / "new", mixed)


@pytest.mark.parametrize(
    ("line", "origin"),
    [
        ("release llpbench 0.3.0 sha256:0f", Origin("release", "llpbench", "0.3.0", "0f")),
        ("package my-plugins 1.2 sha256:0f", Origin("release", "my-plugins", "1.2", "0f")),
        ("editable llpbench sha256:0f", Origin("editable", "llpbench", "", "0f")),
        ("editable llpbench 0.3.0 sha256:0f", Origin("editable", "llpbench", "0.3.0", "0f")),
        ("file my.py sha256:0f", Origin("file", "my.py", "", "0f")),
        ("file my.py unreadable", None),
        ("", None),
        ("believe me sha256:0f", None),
    ],
)
def test_what_a_fingerprint_says(line: str, origin: Origin | None) -> None:
    assert read_origin(line) == origin


def test_unreleased_code_is_published_and_marked(tmp_path: Path) -> None:
    code = {**CODE, "method": "editable llpbench sha256:" + "1" * 32}
    write_run(tmp_path / "run", [traced(real_cell(), code=code), traced(real_cell("best-feature"))])
    content, report = add(tmp_path / "run")
    assert (report.refused, report.unreleased) == ([], 1)
    rows = make_board(content).datasets[0].rows
    assert {row.method: row.unreleased for row in rows} == {"mean-ridge": True, "best-feature": False}
    for name in ("index.html", "tables/synthetic.md"):
        assert b"unreleased" in built_files(content)[name]


def test_tied_pairs_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 40), rng.integers(0, 5, 40).astype(float)
    pairs = [(a, b) for a in scores[labels == 1] for b in scores[labels == 0]]
    assert tied_share(labels, scores) == pytest.approx(np.mean([a == b for a, b in pairs]))


# -- a published folder that somebody changed --------------------------------------------------------------------------


@pytest.fixture
def board(tmp_path: Path) -> Path:
    content = content_of([published(0.5 + s / 10, make_cell(method=m, seed=s)) for m in "ab" for s in range(3)])
    folder = tmp_path / "board"
    write_files(folder, {**raw_files(content), **built_files(content)})
    assert differences(folder, read_folder(folder)) == []
    return folder


def test_a_published_number_changed_by_hand_is_noticed(board: Path) -> None:
    path = board / "cells" / "toy.jsonl"
    path.write_text(path.read_text().replace('"fit_seconds":1.5', '"fit_seconds":0.5', 1))
    with pytest.raises(StoreError, match="does not match its digest"):
        read_folder(board)


@pytest.mark.parametrize("name", ["index.html", "tables/toy.md", "results.csv", "board.json"])
def test_a_built_file_changed_by_hand_is_noticed(board: Path, name: str) -> None:
    path = board / name
    path.write_text(path.read_text() + " ")
    assert differences(board, read_folder(board)) == [f"{name}: differs from what the published cells give"]
    path.unlink()
    assert differences(board, read_folder(board)) == [f"{name}: is not there"]


def test_files_that_nothing_gives_are_noticed(board: Path) -> None:
    (board / "README.md").write_text("by hand")
    (board / "tables" / "other.md").write_text("who knows")
    assert differences(board, read_folder(board)) == ["tables/other.md: nothing published gives this file; remove it"]


def test_lines_out_of_order_are_noticed(board: Path) -> None:
    path = board / "cells" / "toy.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert differences(board, read_folder(board)) == ["cells/toy.jsonl: differs from what the published cells give"]


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "twice": (lambda b: _append(b / "cells/toy.jsonl", _first(b)), "is there twice"),
    "no JSON": (lambda b: _append(b / "cells/toy.jsonl", "nonsense"), "not a published cell"),
    "a deep nest": (lambda b: _append(b / "cells/toy.jsonl", "[" * 100_000), "not a published cell"),
    "another dataset's": (lambda b: (b / "cells/toy.jsonl").rename(b / "cells/other.jsonl"), "is of dataset 'toy'"),
    "a strange file": (lambda b: (b / "cells/x.exe").write_text(""), "only \\*.jsonl files"),
    "a file name that is no name": (lambda b: (b / "cells/<b>.jsonl").write_text(""), "is not a name"),
    "a link": (lambda b: (b / "cells/link.jsonl").symlink_to("/etc/passwd"), "not a plain file"),
    "no machine": (lambda b: (b / f"machines/{MACHINE}.json").unlink(), f"there is no {MACHINE}.json"),
    "broken facts": (lambda b: (b / "facts.json").write_text('{"methods": 3}'), "not a Facts file"),
    "broken replicates": (lambda b: _append(b / "bootstrap/toy.jsonl", '{"id": "x"}'), "not published replicates"),
}


def _first(board: Path) -> str:
    return (board / "cells" / "toy.jsonl").read_text().splitlines()[0]


def _append(path: Path, line: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(line + "\n")


@pytest.mark.parametrize(("spoil", "reason"), SPOILED.values(), ids=SPOILED.keys())
def test_a_spoiled_folder_is_one_sentence(board: Path, spoil: Callable[[Path], object], reason: str) -> None:
    spoil(board)
    with pytest.raises(StoreError, match=reason):
        read_folder(board)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "board").mkdir()
    (tmp_path / "board" / "tables").symlink_to(outside)
    with pytest.raises(StoreError, match="symbolic link"):
        write_files(tmp_path / "board", {"tables/toy.md": b"text"})
    assert list(outside.iterdir()) == []


# -- names that are markup ---------------------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script>"


def test_names_that_are_markup_are_rendered_harmless() -> None:
    results = [
        published(
            0.8,
            make_cell(method="m", seed=s, params={"a": EVIL}),
            method_name=f"m[a={EVIL}]",
            dataset_name=f"toy[b={EVIL}]",
        )
        for s in range(2)
    ]
    reason = f"{EVIL} | `x` [l](javascript:alert(1))"
    results.append(published(None, make_cell(method="bad"), status="failed", reason=reason, selected={}))
    results.extend(grid({"other": [0.5, 0.6]}))
    files = {name: data.decode() for name, data in built_files(content_of(results)).items()}
    for name in ("index.html", "tables/toy.md"):
        assert EVIL not in files[name]
        assert "<script>alert" not in files[name]
    assert "](javascript:" not in files["tables/toy.md"]
    assert json.loads(files["board.json"])  # JSON needs no escapes


@pytest.mark.parametrize("label", ["m[a]", "m[a=1;a=2]", "m[[[", "m[=]", "m[preset=x"])
@pytest.mark.parametrize("preset", ["", "x"])
def test_labels_that_nobody_could_type_are_only_text(label: str, preset: str) -> None:
    results = [published(0.8, make_cell(method="m", seed=s, preset=preset), method_name=label) for s in range(2)]
    reference = Reference(source="S", dataset="toy", title="T", method="m", metric="auroc", mean=0.5, rule="bags")
    content = content_of(results, [reference])
    assert label.encode() in built_files(content)["board.json"]


def test_latex_commands_in_names_are_text() -> None:
    evil = r"m[a=\input{/etc/passwd}]"
    results = [published(0.8, make_cell(method="m", seed=s), method_name=evil) for s in range(2)]
    text = built_files(content_of(results))["tables/toy.tex"].decode()
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert r"\input" not in body
    assert r"\textbackslash{}input\{" in body
