"""``leaderboard add``: which results are published, which are refused, and what is published beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from archives import bomb, npz
from board_samples import CODE, MACHINE, MACHINE_FACTS, real_cell, set_metrics, shared, traced, write_run
from helpers import make_plan

from llpbench.board.audit import audit
from llpbench.board.built.board import make_board
from llpbench.board.built.build import built_files, differences
from llpbench.board.checks import check_derived, derived_count_sd
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.content.lines import seal
from llpbench.board.content.searches import find_search
from llpbench.board.content.splits import Splits
from llpbench.board.publish import Added, add_results
from llpbench.board.validate import Unsound
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult, Selected
from llpbench.experiment.tuned import History, Setting, Trial, bare, write_history
from llpbench.results.store import Store

METHODS = ("mean-ridge", "best-feature")
Edit = Callable[[CellResult], object]


@pytest.fixture(autouse=True)
def no_suites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning the cells of suites takes long; tests of suites do it."""
    monkeypatch.setattr("llpbench.board.publish.suite_files", lambda registry: {})


def runs(seeds: int = 3) -> list[CellResult]:
    return [traced(real_cell(method, seed)) for method in METHODS for seed in range(seeds)]


def add(folder: Path, content: Content | None = None, **how: Any) -> tuple[Content, Added]:
    content = Content() if content is None else content
    return content, add_results(folder, content, shared(), **how)


def refusal(folder: Path, content: Content | None = None, **how: Any) -> str:
    """The reason why the only result of a run is refused."""
    _, report = add(folder, content, **how)
    assert report.added == []
    ((_, reason),) = report.refused
    return reason


# -- results that are published ----------------------------------------------------------------------------------------


def test_add_publishes_results_with_their_descriptions(tmp_path: Path) -> None:
    write_run(tmp_path / "run", runs())
    content, report = add(tmp_path / "run")
    assert (len(report.added), report.refused, report.unreleased) == (6, [], 0)
    assert set(content.replicates) == set(content.lines)
    assert content.facts.methods["best-feature"].control
    assert content.facts.methods["mean-ridge"].origin.startswith("llpbench ")
    assert content.facts.datasets["synthetic"].task == "binary"
    assert audit(content).problems == []
    write_files(tmp_path / "board", {**raw_files(content), **built_files(content)})
    again = read_folder(tmp_path / "board")
    assert again == content
    assert differences(tmp_path / "board", again) == []


def test_adding_the_same_results_twice_changes_nothing(tmp_path: Path) -> None:
    write_run(tmp_path / "run", runs(1))
    content, _ = add(tmp_path / "run")
    before = raw_files(content)
    _, report = add(tmp_path / "run", content)
    assert (report.added, report.replaced, {reason for _, reason in report.kept}) == ([], [], {"already published"})
    assert raw_files(content) == before


def test_add_keeps_published_cells_unless_replace_is_given(tmp_path: Path) -> None:
    cell = real_cell()
    for name, day in (("first", "2025-01-01"), ("second", "2025-02-02")):
        write_run(tmp_path / name, [traced(cell, started=f"{day}T00:00:00Z")])
    content, _ = add(tmp_path / "first")
    _, report = add(tmp_path / "second", content)
    assert report.kept == [(cell.id, "already published; --replace overwrites it")]
    _, report = add(tmp_path / "second", content, replace=True)
    assert report.replaced == [(cell.id, "--replace")]
    assert content.lines[cell.id].result.started.startswith("2025-02-02")


def test_a_number_replaces_a_published_failure_but_not_the_other_way_round(tmp_path: Path) -> None:
    cell = real_cell()
    failed = traced(cell, status="timeout", reason="1 h was too short", selected={}, versions={}, seeds={})
    write_run(tmp_path / "failed", [failed])
    write_run(tmp_path / "fine", [traced(cell)])
    content, report = add(tmp_path / "failed")
    assert report.added == [cell.id]
    _, report = add(tmp_path / "fine", content)
    assert report.replaced == [(cell.id, "the published cell had no number")]
    _, report = add(tmp_path / "failed", content, replace=True)
    assert report.kept == [(cell.id, "the published cell has a number")]


def test_replacing_a_cell_removes_its_machine(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [traced(real_cell())])
    content, _ = add(tmp_path / "run")
    store = write_run(tmp_path / "again", [traced(real_cell(), machine="abcdefabcd")])
    store.write_machine("abcdefabcd", {**MACHINE_FACTS, "cores": 64})
    add(tmp_path / "again", content, replace=True)
    assert set(content.machines) == {"abcdefabcd"}
    assert audit(content).problems == []


def test_planned_cells_without_a_result_are_counted(tmp_path: Path) -> None:
    store = write_run(tmp_path / "run", runs(1))
    store.plan([make_plan(real_cell(seed=7))], "llpbench run", "0.1.0")
    _, report = add(tmp_path / "run")
    assert (len(report.added), report.missing) == (2, 1)


def test_long_texts_are_shortened(tmp_path: Path) -> None:
    long = traced(real_cell(), notes={"said": "two\nlines " * 60, "share": 1 / 3})
    stopped = traced(real_cell(seed=1), status="failed", reason="ValueError:\n" + "x" * 5000, selected={})
    write_run(tmp_path / "run", [long, stopped])
    content, report = add(tmp_path / "run")
    assert report.refused == []
    assert content.lines[stopped.id].result.reason.startswith("ValueError: xxx")
    assert len(content.lines[stopped.id].result.reason) == 300
    assert str(content.lines[long.id].result.notes["said"]).startswith("two lines two lines")


def test_unreleased_code_is_published_and_marked(tmp_path: Path) -> None:
    code = {**CODE, "method": "editable llpbench sha256:" + "1" * 32}
    write_run(tmp_path / "run", [traced(real_cell(), code=code), traced(real_cell("best-feature"))])
    content, report = add(tmp_path / "run")
    assert (report.refused, report.unreleased) == ([], 1)
    rows = make_board(content).datasets[0].rows
    assert {row.method: row.unreleased for row in rows} == {"mean-ridge": True, "best-feature": False}


# -- names -------------------------------------------------------------------------------------------------------------


def test_results_are_named_after_their_settings(tmp_path: Path) -> None:
    cell = real_cell(params={**real_cell().params, "penalty": 3.0})
    store = write_run(tmp_path / "run", [traced(cell)])  # its plan says "mean-ridge"
    store.plan([make_plan(cell, dataset="synthetic, hard")], "llpbench run", "0.1.0")
    content, _ = add(tmp_path / "run")
    result = content.lines[cell.id].result
    assert (result.method_name, result.dataset_name) == ("mean-ridge[penalty=3]", "synthetic")


def test_published_cells_are_renamed_when_defaults_change(tmp_path: Path) -> None:
    cell = real_cell(params={**real_cell().params, "penalty": 3.0})
    write_run(tmp_path / "run", [traced(cell)])
    content, _ = add(tmp_path / "run")
    old = content.lines[cell.id]
    old.result.method_name = "mean-ridge"  # as if a penalty of 3 had been the default
    content.lines[cell.id] = seal(old.result, old.source)
    _, report = add(tmp_path / "run", content)
    assert report.renamed == [(cell.id, "mean-ridge is now mean-ridge[penalty=3]")]
    assert content.lines[cell.id].result.method_name == "mean-ridge[penalty=3]"


def test_the_dataset_name_of_a_bound_has_no_bag_scheme(tmp_path: Path) -> None:
    oracle = next(e.spec.name for e in shared().methods if e.spec.oracle)
    cell = real_cell(oracle, bag_size=1, backend="jax")
    store = write_run(tmp_path / "run", [traced(cell, oracle=True)])
    store.plan([make_plan(cell, dataset="synthetic, by-feature", oracle=True)], "llpbench run", "0.1.0")
    content, report = add(tmp_path / "run")
    assert report.refused == []
    assert content.lines[cell.id].result.dataset_name == "synthetic"


# -- results that are refused ------------------------------------------------------------------------------------------

RESULTS: dict[str, tuple[dict[str, Any], str]] = {
    "protocol 1": ({"protocol": 1}, "protocol 1, expected 2"),
    "a file that it read": ({"code": {**CODE, "read my.py:w.json": "file w.json sha256:0f"}}, "it read w.json, which"),
    "code in a single file": ({"code": {**CODE, "method": "file my.py sha256:0f"}}, "its method is a single file"),
    "version of a rule": ({"rules": {"bags": 99}}, "version 99 of rule 'bags'"),
    "invalid machine": ({"machine": "../../../x"}, "invalid machine id"),
    "unknown machine": ({"machine": "aaaaaaaaaa"}, "aaaaaaaaaa.json"),
    "one rule": ({"selected": {"bags": Selected(report=0, metrics={"auroc": 0.5})}}, "under the rule 'instances'"),
    "infinite seconds": ({"fit_seconds": 1e300}, "out of range"),
    "AUROC above 1": (
        {"selected": {rule: Selected(report=0, metrics={"auroc": 2.0}) for rule in ("bags", "instances")}},
        "auroc 2 is not between 0 and 1",
    ),
    "no predictions": ({}, "its predictions are missing"),
    "stopped early": ({"status": "timeout", "selected": {}, "limits": {"timeout": 1.0}}, "at least 3600 s"),
}
CELLS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown method": ({"method": "mymethod", "params": {}}, "no installed package provides the method 'mymethod'"),
    "unknown dataset": ({"dataset": "mine", "dataset_options": {}}, "no installed package provides the dataset"),
    "missing settings": ({"params": {}}, "its settings are not all settings of the installed mean-ridge"),
    "unknown setting": ({"params": {"nonsense": 1}}, "mean-ridge does not accept its settings"),
    "trial of a search": ({"tuning": True}, "it is a trial of a search"),
    "path as a name": ({"dataset": "../../etc", "dataset_options": {}}, "invalid dataset name"),
}


@pytest.mark.parametrize(("facts", "reason"), RESULTS.values(), ids=RESULTS.keys())
def test_add_refuses_invalid_results(tmp_path: Path, facts: dict[str, Any], reason: str) -> None:
    write_run(tmp_path / "run", [traced(real_cell(), **facts)], predictions=False)
    assert reason in refusal(tmp_path / "run")


@pytest.mark.parametrize(("changes", "reason"), CELLS.values(), ids=CELLS.keys())
def test_add_refuses_cells_that_others_cannot_run(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    cell = msgspec.structs.replace(real_cell(), **changes)
    write_run(tmp_path / "run", [traced(cell)], predictions=False)
    assert reason in refusal(tmp_path / "run")


def test_add_refuses_runs_with_plugin_override(tmp_path: Path) -> None:
    command = "llpbench run --plugin ./mine.py --plugin-override mean-ridge --methods mean-ridge"
    write_run(tmp_path / "run", [traced(real_cell())], command=command)
    assert "--plugin-override" in refusal(tmp_path / "run")


def _lower(name: str) -> Edit:
    def edit(r: CellResult) -> None:
        metrics = r.selected["bags"].metrics
        metrics[name] = (metrics[name] or 0.0) - 0.01

    return edit


EDITS: dict[str, tuple[Edit, str]] = {
    **{name: (_lower(name), f"its predictions give {name}") for name in ("auroc", "accuracy", "log_loss", "ece")},
    "missing metric": (lambda r: r.selected["bags"].metrics.pop("accuracy"), "installed packages: accuracy"),
    "unknown metric": (lambda r: r.selected["bags"].metrics.update(own=1.0), "installed packages: own"),
    "labels": (lambda r: r.digests.update(test_labels="0" * 64), "do not match the digest of its test labels"),
    "rows": (lambda r: r.rows.update(test=29), "its predictions have 30 rows, the result has 29 test rows"),
    "split seed": (lambda r: r.seeds.update(split=1), "its split seed is 1, expected"),
    "method seed": (lambda r: r.seeds.pop("method"), "its method seed is None, expected"),
    "noise": (lambda r: setattr(r, "count_sd", 1.0), "its count_sd is 1, expected 0"),
    "bags": (lambda r: r.bags.update(train=50), "it has 50 bags of 100 train rows, expected 13"),
    "test bags": (lambda r: r.digests.update(test_bags="0" * 64), "lack the bags of its test rows"),
}


@pytest.mark.parametrize(("edit", "reason"), EDITS.values(), ids=EDITS.keys())
def test_add_recomputes_metrics_seeds_and_sizes(tmp_path: Path, edit: Edit, reason: str) -> None:
    result = traced(real_cell())
    store = write_run(tmp_path / "run", [result])
    edit(result)
    store.write(result)
    assert reason in refusal(tmp_path / "run")


def test_noise_is_that_of_the_number_of_classes_in_the_predictions() -> None:
    cell = real_cell(noise="high")
    for classes, other in ((2, 3), (3, 2)):
        result = traced(cell, count_sd=derived_count_sd(cell, classes))
        check_derived(result, {classes})
        with pytest.raises(Unsound, match="count_sd"):
            check_derived(result, {other})


def test_add_refuses_results_on_other_data_than_published_cells(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [traced(real_cell())])
    content, _ = add(tmp_path / "run")
    other = traced(real_cell("best-feature"))
    store = write_run(tmp_path / "other", [other])
    with np.load(store.predictions_path(other.id)) as arrays:
        labels, scores = 1 - arrays["labels"], {rule: arrays[rule] for rule in other.selected}
    set_metrics(other, labels, scores)
    np.savez(store.predictions_path(other.id), labels=labels, **scores)
    store.write(other)
    assert "its labels of the test rows differ from those of cell" in refusal(tmp_path / "other", content)
    longer = traced(real_cell("best-feature"), rows={"train": 104, "valid": 20, "test": 30})
    write_run(tmp_path / "longer", [longer])
    assert "its numbers of rows differ" in refusal(tmp_path / "longer", content)


# -- files that are damaged --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"[]", b"not JSON", b"\xff\xfe", b"[" * 200_000], ids=range(5))
def test_add_refuses_files_that_are_not_results(tmp_path: Path, data: bytes) -> None:
    result = traced(real_cell())
    store = write_run(tmp_path / "run", [result])
    store.result_path(result.id).write_bytes(data)
    assert refusal(tmp_path / "run")


def test_add_refuses_edited_and_exchanged_results(tmp_path: Path) -> None:
    result, other = traced(real_cell()), traced(real_cell(seed=1))
    store = write_run(tmp_path / "run", [result])
    path = store.result_path(result.id)
    sealed = path.read_text()
    edited = sealed.replace(MACHINE, "abcdefabcd")
    assert edited != sealed
    path.write_text(edited)
    assert "digest" in refusal(tmp_path / "run")
    write_run(tmp_path / "other", [other])
    path.write_bytes(Store(tmp_path / "other").result_path(other.id).read_bytes())
    assert f"holds the result of cell {other.id}" in refusal(tmp_path / "run")


@pytest.mark.parametrize("what", ["cells", "predictions", "machines"])
def test_add_does_not_follow_symbolic_links(tmp_path: Path, what: str) -> None:
    write_run(tmp_path / "run", [traced(real_cell())])
    (path,) = (tmp_path / "run" / what).iterdir()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert "expected a regular file" in refusal(tmp_path / "run")


@pytest.mark.parametrize("data", [b"", b'{"created": 1}'])
def test_add_reports_an_invalid_manifest(tmp_path: Path, data: bytes) -> None:
    write_run(tmp_path / "run", [traced(real_cell())])
    (tmp_path / "run" / "manifest.json").write_bytes(data)
    with pytest.raises(StoreError, match="cannot be read"):
        add(tmp_path / "run")


def labels_and(rows: int = 30, **scores: np.ndarray) -> dict[str, np.ndarray]:
    right = {rule: np.linspace(0, 1, rows, dtype=np.float32) for rule in ("bags", "instances")}
    return {"labels": np.arange(rows, dtype=np.int16) % 2, **right, **scores}


PREDICTIONS: dict[str, tuple[Callable[[], bytes], str]] = {
    "not an archive": (lambda: b"PK nonsense", "not a predictions file"),
    "no scores": (lambda: npz(labels=np.zeros(30, np.int16)), "not a predictions file"),
    "objects": (lambda: npz(**labels_and(bags=np.array([{}] * 30, dtype=object))), "not a predictions file"),
    "too large": (lambda: bomb("labels", 5), "would unpack to 5 MB"),
    "NaN": (lambda: npz(**labels_and(bags=np.full(30, np.nan, np.float32))), "must be finite"),
    "three dimensions": (lambda: npz(**labels_and(bags=np.zeros((30, 2, 2), np.float32))), "must be floats"),
    "words as labels": (lambda: npz(**{**labels_and(), "labels": np.array(["a"] * 30)}), "must be integers"),
}


@pytest.mark.parametrize(("make", "reason"), PREDICTIONS.values(), ids=PREDICTIONS.keys())
def test_add_refuses_invalid_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[], bytes], reason: str
) -> None:
    monkeypatch.setattr("llpbench.board.content.bootstrap.PREDICTION_BYTES", 4 << 20)
    result = traced(real_cell())
    write_run(tmp_path / "run", [result]).predictions_path(result.id).write_bytes(make())
    assert reason in refusal(tmp_path / "run")


# -- tuned parameters --------------------------------------------------------------------------------------------------


def search(seeds: list[int], best: float = 3.0, rule: str = "bags") -> History:
    """A search over the penalty of mean-ridge, in which ``best`` won."""
    trials = [
        Trial(number=i, params={"penalty": p}, status="ok", value=v)
        for i, (p, v) in enumerate(((best, 0.1), (9.0, 0.2)))
    ]
    facts: dict[str, Any] = {"space": {}, "sampler": "tpe", "sampler_seed": 0, "wanted": 2, "trials": trials}
    setting = Setting(cell=bare(real_cell()), fixed={}, rule=rule, seeds=seeds)
    return History(study=f"study-{rule}-{best:g}-{len(seeds)}", setting=setting, higher_is_better=False, **facts)


def tuned_result(seed: int = 0) -> CellResult:
    return traced(real_cell(seed=seed, params={**real_cell().params, "penalty": 3.0}, preset="tuned-bags"))


def test_a_tuned_cell_is_published_with_its_search(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [tuned_result()])
    write_history(tmp_path / "tuned", search([0]))
    write_history(tmp_path / "tuned", search([0], best=5.0))
    content, report = add(tmp_path / "run", tuned=[tmp_path / "tuned"])
    assert (len(report.added), list(content.searches)) == (1, ["study-bags-3-1"])
    assert audit(content).problems == []
    (cell_id,) = content.lines
    content.searches = {}
    assert audit(content).problems[0].startswith(f"cell {cell_id}: the search by rule 'bags'")


@pytest.mark.parametrize(
    ("history", "reason"),
    [
        (None, "the search by rule 'bags' that chose its parameters is missing"),
        (search([0], rule="instances"), "the search by rule 'bags' that chose its parameters is missing"),
        (search([0], best=5.0), "its parameters are not those of the best trial of its search"),
        (search([1]), "its parameters were searched for on seed 1, whose training and held-out rows may be test rows"),
    ],
)
def test_add_refuses_tuned_cells_without_a_fair_search(tmp_path: Path, history: History | None, reason: str) -> None:
    write_run(tmp_path / "run", [tuned_result()])
    if history is not None:
        write_history(tmp_path / "tuned", history)
    assert reason in refusal(tmp_path / "run", tuned=[] if history is None else [tmp_path / "tuned"])


def test_add_rejects_folders_without_a_search(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [tuned_result()])
    with pytest.raises(StoreError, match=r"is not a folder of llpbench tune: studies/\*\.json is missing"):
        add(tmp_path / "run", tuned=[tmp_path / "tuned"])


def test_a_search_on_other_seeds_is_fair_if_their_test_rows_are_the_same() -> None:
    results = [tuned_result(seed) for seed in (0, 1)]
    splits = Splits()
    for result in results:
        result.digests["test_labels"] = "1" * 64
        splits.add(result, None)
    assert find_search(results[0], [search([1])], splits, shared().methods["mean-ridge"]).setting.seeds == [1]
