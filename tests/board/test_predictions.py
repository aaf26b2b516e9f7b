"""Predictions that are handed in: scored on a split that is made here, marked, never ranked; attacks are refused."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from archives import bomb, npz
from board_samples import shared
from cli_runner import llpbench
from forge import VICTIM, WITNESS, Bench, check_board, publish, write_board

from llpbench.board.accept.brought import brought
from llpbench.board.accept.handed_in import add_submission, check_submission, checked_submission
from llpbench.board.accept.inputs import settings, write_inputs
from llpbench.board.accept.predictions import prepared, score_submission
from llpbench.board.again.rerun import choose
from llpbench.board.again.verify import candidates
from llpbench.board.built.board import make_board
from llpbench.board.checks.audit import above_bounds, audit
from llpbench.board.content.folder import Content, raw_files, read_folder
from llpbench.board.content.lines import decode_line, encode_line, seal
from llpbench.board.content.submission import (
    Submission,
    ToldMethod,
    is_submission,
    predictions_path,
    read_submission,
)
from llpbench.board.schema.board import Told
from llpbench.board.validate import Unsound
from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.result import PREDICTIONS_ONLY, CellResult, Selected
from llpbench.execution.jobs import Context
from llpbench.experiment.grid import RunSpec
from llpbench.experiment.metrics import auroc

DATA = "synthetic[rows=600]"
ABOUT = ToldMethod(name="big-net", title="A very large net", who="Ada <ada@example.org>", params={"layers": 96})
HERE = Context()
Tree = dict[str, Any]


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An honest submission of four cells: two seeds, with and without noise."""
    folder = tmp_path_factory.mktemp("submission")
    spec = RunSpec(methods=["none"], datasets=[DATA], bags=[8], seeds=2, noise=["none", "high"])
    written = list(write_inputs(folder, settings(spec, shared()), shared(), HERE))
    assert len(written) == 4
    fill_in(folder)
    return folder


def fill_in(folder: Path, about: ToldMethod = ABOUT) -> None:
    """What a submitter does: a regression on the proportions of bags, and the form."""
    template = msgspec.json.decode((folder / "submission.json").read_bytes(), type=Submission)
    for cell in template.cells:
        with np.load(folder / "inputs" / f"{cell.setting}.npz") as given:
            share = given["counts"][:, 0] / np.bincount(given["bag_of"])
            w = np.linalg.lstsq(_rows(given["X"]), share[given["bag_of"]], rcond=None)[0]
            save(folder, cell.setting, test=_rows(given["test_X"]) @ w, valid=_rows(given["valid_X"]) @ w)
    cells = [msgspec.structs.replace(cell, seconds=12.5) for cell in template.cells]
    filled = Submission(format=1, method=about, cells=cells)
    (folder / "submission.json").write_bytes(msgspec.json.encode(filled))


def _rows(X: np.ndarray) -> np.ndarray:
    return np.c_[X, np.ones(len(X))].astype(np.float64)


def save(folder: Path, setting: str, **arrays: Any) -> None:
    (folder / "predictions").mkdir(exist_ok=True)
    np.savez(folder / "predictions" / f"{setting}.npz", **arrays)


@pytest.fixture
def copy(handed_in: Path, tmp_path: Path) -> Path:
    shutil.copytree(handed_in, tmp_path / "sub")
    return tmp_path / "sub"


def edit(folder: Path, change: Callable[[Tree], object]) -> None:
    path = folder / "submission.json"
    tree = json.loads(path.read_text())
    change(tree)
    path.write_text(json.dumps(tree))


def score(folder: Path) -> list[CellResult | str]:
    """What comes of every cell: its result, or the sentence it is refused with."""
    submission = checked_submission(folder, shared())
    found = [scored for _, scored in score_submission(folder, submission, shared(), HERE)]
    return [str(scored) if isinstance(scored, Unsound) else scored.result for scored in found]


def refusals(folder: Path) -> list[str]:
    return [found for found in score(folder) if isinstance(found, str)]


def first_setting(folder: Path) -> str:
    return str(json.loads((folder / "submission.json").read_text())["cells"][0]["setting"])


# -- what a submitter is given -----------------------------------------------------------------------------------------


def test_inputs_are_what_a_method_gets_and_hold_no_label(handed_in: Path) -> None:
    told = read_submission(handed_in).cells[0]
    cell = told.cell()
    data = prepared(cell, CellResult(id=cell.id, cell=cell, status="ok"), shared(), HERE)
    with np.load(handed_in / "inputs" / f"{told.setting}.npz") as given:
        parts = ("X", "bag_of", "counts", "count_sd", "classes")
        assert set(given.files) == {*parts, *(f"valid_{part}" for part in parts), "test_X"}
        np.testing.assert_array_equal(given["X"], data.bags.X)
        np.testing.assert_array_equal(given["counts"], data.bags.counts)
        np.testing.assert_array_equal(given["test_X"], data.test_rows)
        true = np.bincount(data.bags.bag_of, data.train_labels)
        np.testing.assert_array_equal(given["counts"][:, 0], true)  # counts of bags, and nothing finer
        for labels in (data.train_labels, data.valid_labels, data.test_labels):
            same = [n for n in given.files if given[n].shape == labels.shape and (given[n] == labels).all()]
            assert same == []


def test_noise_is_in_the_counts_that_are_handed_out(handed_in: Path) -> None:
    quiet, noisy = read_submission(handed_in).cells[:2]
    assert (quiet.noise, noisy.noise) == ("none", "high")
    with (
        np.load(handed_in / "inputs" / f"{quiet.setting}.npz") as a,
        np.load(handed_in / "inputs" / f"{noisy.setting}.npz") as b,
    ):
        assert float(a["count_sd"]) == 0.0
        assert float(b["count_sd"]) > 0.0
        assert not np.array_equal(a["counts"], b["counts"])


def test_a_form_that_is_there_is_not_overwritten(handed_in: Path) -> None:
    spec = RunSpec(methods=["none"], datasets=[DATA], bags=[8], seeds=1)
    with pytest.raises(StoreError, match="is there already"):
        list(write_inputs(handed_in, settings(spec, shared()), shared(), HERE))
    with pytest.raises(UsageError, match="up to 9,999"):
        settings(RunSpec(methods=["none"], datasets=[DATA], bags=[8], seeds=[10_000]), shared())


# -- what is scored ----------------------------------------------------------------------------------------------------


def test_predictions_are_scored_on_the_labels_of_the_split(handed_in: Path) -> None:
    for told, result in zip(read_submission(handed_in).cells, score(handed_in), strict=True):
        assert isinstance(result, CellResult)
        data = prepared(told.cell(), CellResult(id="", cell=told.cell(), status="ok"), shared(), HERE)
        with np.load(predictions_path(handed_in, told)) as sent:
            assert result.selected["bags"].metrics["auroc"] == pytest.approx(auroc(data.test_labels, sent["test"]))
        assert list(result.selected) == ["bags"]  # the rule that was declared, and no other
        assert result.selected["bags"].metrics["bag_error"] is not None
        assert (result.predictions_only, result.fit_seconds) == (True, 12.5)
        assert result.method_name == "big-net[predictions=only]"
        assert result.cell.params == {"layers": 96}


def test_without_held_back_rows_there_is_no_bag_error(copy: Path) -> None:
    with np.load(copy / "predictions" / f"{first_setting(copy)}.npz") as sent:
        scores = sent["test"]
    save(copy, first_setting(copy), test=scores)
    result = score(copy)[0]
    assert isinstance(result, CellResult)
    assert "bag_error" not in result.selected["bags"].metrics
    assert result.selected["bags"].value is None


def test_several_reports_are_chosen_from_here_by_every_rule(copy: Path) -> None:
    setting = first_setting(copy)
    with np.load(copy / "predictions" / f"{setting}.npz") as sent:
        test, valid = sent["test"], sent["valid"]
    save(copy, setting, test=np.stack([-test, test, np.zeros_like(test)]), valid=np.stack([-valid, valid, 0 * valid]))
    result = score(copy)[0]
    assert isinstance(result, CellResult)
    assert {rule: chosen.report for rule, chosen in result.selected.items()} == {"bags": 1, "instances": 1}
    save(copy, setting, test=np.stack([test, test]))
    assert "need scores of the held-back rows" in refusals(copy)[0]
    save(copy, setting, test=np.stack([test, test]), valid=valid)
    assert "2 reports of test rows and 1 of held-back rows" in refusals(copy)[0]


@pytest.mark.parametrize("classes", [2, 3])
def test_tasks_of_several_classes_are_scored(tmp_path: Path, classes: int) -> None:
    spec = RunSpec(methods=["none"], datasets=[f"synthetic[rows=600;classes={classes}]"], bags=[8], seeds=1)
    list(write_inputs(tmp_path, settings(spec, shared()), shared(), HERE))
    told = msgspec.json.decode((tmp_path / "submission.json").read_bytes(), type=Submission).cells[0]
    with np.load(tmp_path / "inputs" / f"{told.setting}.npz") as given:
        rows = len(given["test_X"])
    rng = np.random.default_rng(0)
    save(tmp_path, told.setting, test=rng.random(rows) if classes == 2 else rng.dirichlet(np.ones(classes), rows))
    filled = Submission(format=1, method=ABOUT, cells=[msgspec.structs.replace(told, seconds=1.0)])
    (tmp_path / "submission.json").write_bytes(msgspec.json.encode(filled))
    (result,) = score(tmp_path)
    assert isinstance(result, CellResult)
    assert 0.3 < (result.selected["bags"].metrics["auroc"] or 0) < 0.7


# -- what is refused: the form -----------------------------------------------------------------------------------------


def method(**facts: object) -> Callable[[Tree], object]:
    return lambda tree: tree["method"].update(facts)


def cell(**facts: object) -> Callable[[Tree], object]:
    return lambda tree: tree["cells"][0].update(facts)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (method(name="../../etc/cron"), "is not a name"),
        (method(name="a/b"), "is not a name"),
        (method(name=".."), "is not a name"),
        (method(name="Big Net"), "is not a name"),
        (method(title="\x1b[2J\x1b[31mbest of all"), "cannot be printed"),
        (method(title="x" * 401), "text of 401 characters"),
        (method(title=" "), "method.title is empty"),
        (method(who=""), "method.who is empty"),
        (method(citation="two\nlines"), "cannot be printed"),
        (method(paper="javascript:alert(1)"), "no https:// address"),
        (method(code='https://x" onload="y'), "no https:// address"),
        (method(rule="luck"), "method.rule is 'luck'; it is one of bags, instances"),
        (method(scores="exact"), "exact"),
        (method(params={"a": [1]}), "params"),
        (method(params={f"p{i}": i for i in range(201)}), "201 parameters"),
        (method(verified=True), "unknown field"),
        (lambda tree: tree.update(format=2), "of format 2"),
        (lambda tree: tree.update(cells=[]), "0 cells"),
        (lambda tree: tree["cells"].append(tree["cells"][1]), "cells[4] is the setting of cells[1] once more"),
        (cell(seed=1), "what it states has the id"),
        (cell(seed=-1), "what it states has the id"),
        (cell(seed=True), "Expected `int`"),
        (cell(setting="../../../etc/passwd"), "what it states has the id"),
        (cell(seconds=0), "seconds of the fit are not stated"),
        (cell(seconds=-3), "seconds of the fit are not stated"),
        (cell(seconds=1e300), "out of range"),
        (cell(rows="none"), "not the digest"),
        (cell(dataset="../adult"), "is not a name"),
    ],
)  # fmt: skip
def test_a_form_that_is_not_sound_is_refused(copy: Path, change: Callable[[Tree], object], sentence: str) -> None:
    edit(copy, change)
    with pytest.raises(StoreError) as refused:
        read_submission(copy)
    assert sentence in str(refused.value)
    assert str(refused.value).isprintable()


def restate(folder: Path, **facts: object) -> None:
    """Change a cell as a careful forger does: with the id that fits, and its predictions under it."""
    tree = json.loads((folder / "submission.json").read_text())
    old = tree["cells"][0]["setting"]
    tree["cells"][0].update(facts)
    told = msgspec.convert(tree["cells"][0], type=type(read_submission(folder).cells[0]))
    tree["cells"][0]["setting"] = told.cell().id
    (folder / "submission.json").write_text(json.dumps(tree))
    (folder / "predictions" / f"{old}.npz").rename(folder / "predictions" / f"{told.cell().id}.npz")


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"seed": 7}, "its rows are not the test rows of this setting: of another seed, or of other data"),
        ({"dataset_options": {"rows": 700, "dim": 20, "classes": 2, "separation": 2.0, "positive_rate": None}},
         "its rows are not the test rows of this setting"),
        ({"dataset_options": {"rows": 600}}, "dataset_options must be stated in full"),
        ({"dataset_options": {"wheels": 4}}, "wheels"),
        ({"dataset": "unheard-of"}, "no installed plugin brings the dataset 'unheard-of'"),
        ({"scheme": "unheard-of"}, "no installed plugin brings the bag scheme 'unheard-of'"),
        ({"noise": "loud"}, "noise 'loud' is not one of"),
        ({"noise": "epsilon=1.0"}, "noise must be stated in full"),
        ({"delta": 0.5}, "delta must be stated in full"),
        ({"bag_size": 0}, "bag size 0 with the scheme random, which needs a size"),
        ({"bag_size": 10**9}, "its data cannot be made here"),
        ({"dataset": "csv", "dataset_options": {"path": "/dev/zero", "label": "y"}}, "names a file of your own"),
        ({"dataset": "criteo", "dataset_options": {"file": "/etc/passwd"}}, "names a file of your own"),
    ],
)  # fmt: skip
def test_a_setting_that_is_not_its_own_is_refused(copy: Path, facts: Tree, sentence: str) -> None:
    restate(copy, **facts)
    (refused,) = refusals(copy)
    assert sentence in refused


def test_data_that_does_not_fit_into_memory_is_refused(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*given: object) -> None:
        raise MemoryError("Unable to allocate 7.11 PiB")

    monkeypatch.setattr("llpbench.board.accept.predictions.prepared", too_large)
    assert set(refusals(copy)) == {"its data and scores do not fit into the memory of this machine"}


def test_seeds_that_verify_draws_are_nobodys(copy: Path) -> None:
    for seed in (-1, 10_000, 2**40):
        again = copy.parent / f"seed{seed}"
        shutil.copytree(copy, again)
        restate(again, seed=seed)
        with pytest.raises(StoreError, match="is not between 0 and 9,999"):
            read_submission(again)


# -- what is refused: the scores ---------------------------------------------------------------------------------------


def huge_header() -> bytes:
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("test.npy", member.getvalue() + bytes(64))
    return out.getvalue()


def pickled() -> bytes:
    out = io.BytesIO()
    np.savez(out, test=np.array([print, print], dtype=object))
    return out.getvalue()


ROWS = 60  # test rows of the data


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (npz(test=np.linspace(0, 1, ROWS - 1)), "this setting has 60 scores"),
        (npz(test=np.linspace(0, 1, ROWS + 1)), "this setting has 60 scores"),
        (npz(test=np.ones((ROWS, 2))), "this setting has 60 scores"),
        (npz(test=np.float64(0.5)), "this setting has 60 scores"),
        (npz(test=np.empty((0, ROWS))), "this setting has 60 scores"),
        (npz(test=np.r_[np.nan, np.zeros(ROWS - 1)]), "not finite"),
        (npz(test=np.r_[np.inf, np.zeros(ROWS - 1)]), "not finite"),
        (npz(test=np.arange(ROWS)), "not floating-point scores"),
        (npz(test=np.array(["0.5"] * ROWS)), "not floating-point scores"),
        (npz(test=np.ones(ROWS) + 1j), "not floating-point scores"),
        (npz(test=np.zeros(ROWS), valid=np.zeros(3)), "valid has shape (3,)"),
        (npz(scores=np.zeros(ROWS)), "not a predictions file"),
        (pickled(), "not a predictions file"),
        (b"PK\x03\x04 not really", "not a predictions file"),
        (huge_header(), "not a predictions file"),
        (bomb("test", 600), "would unpack to 600 MB"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_arrays_that_are_no_scores_are_refused(copy: Path, content: bytes, sentence: str) -> None:
    (copy / "predictions" / f"{first_setting(copy)}.npz").write_bytes(content)
    (refused,) = refusals(copy)
    assert sentence in refused


def test_scores_that_are_the_labels_are_refused(copy: Path) -> None:
    told = read_submission(copy).cells[0]
    data = prepared(told.cell(), CellResult(id="", cell=told.cell(), status="ok"), shared(), HERE)
    for scores in (data.test_labels.astype(float), 5.0 * data.test_labels - 2.0):
        save(copy, told.setting, test=scores)
        (refused,) = refusals(copy)
        assert refused == "its scores are the labels of the test rows"


def test_scores_of_one_seed_do_not_serve_another(copy: Path) -> None:
    cells = read_submission(copy).cells
    other = next(c for c in cells if c.seed == 1)
    (copy / "predictions" / f"{other.setting}.npz").write_bytes(
        (copy / "predictions" / f"{cells[0].setting}.npz").read_bytes()
    )
    assert refusals(copy) == ["its scores are those of cells[0], whose test rows are others"]


def test_a_parameter_without_end_is_one_sentence(copy: Path) -> None:
    edit(copy, method(params={"x": 10**400}))
    with pytest.raises(StoreError, match="out of range"):
        read_submission(copy)


def test_probabilities_must_be_some(copy: Path) -> None:
    edit(copy, method(scores="probability"))
    save(copy, first_setting(copy), test=np.linspace(-1, 1, ROWS))
    assert "test is said to hold probabilities and does not" in refusals(copy)[0]


def test_a_file_that_is_missing_or_a_link_is_refused(copy: Path) -> None:
    path = copy / "predictions" / f"{first_setting(copy)}.npz"
    away = copy / "elsewhere.npz"
    path.rename(away)
    assert refusals(copy) == [f"predictions/{path.name} is not there"]
    path.symlink_to(away)
    assert "not a plain file" in refusals(copy)[0]


def test_names_of_methods_that_run_are_taken(copy: Path, bench: Bench) -> None:
    for name in (VICTIM, VICTIM.replace("-", "_"), VICTIM.replace("-", ".")):
        edit(copy, method(name=name))
        with pytest.raises(StoreError, match=f"{VICTIM} is a registered method"):
            checked_submission(copy, shared())
    content = bench.board_of(WITNESS)
    content.facts.methods["gone"] = content.facts.methods[WITNESS]  # published once, not installed here
    edit(copy, method(name="gone"))
    with pytest.raises(StoreError, match="gone is a method of this leaderboard"):
        add_submission(copy, content, shared(), HERE)


# -- the board ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def board(bench: Bench, handed_in: Path) -> Content:
    content = bench.board_of(VICTIM, WITNESS)
    report = add_submission(handed_in, content, shared(), HERE)
    assert (len(report.added), report.refused) == (4, [])
    return content


def told_results(content: Content) -> list[CellResult]:
    return [line.result for line in content.lines.values() if line.result.predictions_only]


def test_a_board_with_predictions_is_sound_and_comes_back(board: Content, tmp_path: Path) -> None:
    write_board(tmp_path / "board", board)
    assert check_board(tmp_path / "board") == []
    again = read_folder(tmp_path / "board")
    assert again.submissions == {"big-net": ABOUT}
    notes = audit(again, shared()).notes
    assert any("4 of 12 cells are predictions only" in note for note in notes)
    assert audit(again, shared()).untraced == {}


def test_predictions_are_marked_and_never_ranked(board: Content) -> None:
    for result in told_results(board):
        for chosen in result.selected.values():
            chosen.metrics["auroc"] = 0.9999  # as high as nothing else
    rivals = {name: msgspec.structs.replace(facts, control=False) for name, facts in board.facts.methods.items()}
    board.facts.methods = rivals  # controls get no mark and no claim
    (dataset,) = make_board(board).datasets
    rows = {row.name: row for row in dataset.rows}
    told = rows["big-net"].predictions_only
    assert isinstance(told, Told)
    assert (told.mark, told.who, told.rule) == (PREDICTIONS_ONLY, ABOUT.who, "bags")
    entry = rows["big-net"].cells["none"]["8"]
    assert entry.scores["auroc"]["bags"].mean == pytest.approx(99.99)
    assert (entry.command, entry.memory_mb, entry.machine) == ("", None, "")
    scores = [score for row in dataset.rows for score in row.cells["none"]["8"].scores["auroc"].values()]
    assert not entry.scores["auroc"]["bags"].best
    assert sum(score.best for score in scores) == 2  # one for each rule, of methods that were run
    assert all(claim.best != rows["big-net"].method for claim in dataset.claims)
    assert rows["big-net"].method not in {rank.method for rank in dataset.ranks["auroc"]["bags"]}
    assert all(rows["big-net"].method not in front for front in dataset.pareto["auroc"]["bags"].values())
    assert "instances" not in entry.scores["auroc"]


def test_tables_mark_predictions(board: Content) -> None:
    from llpbench.board.built.build import built_files

    page = built_files(board)["tables/synthetic.md"].decode()
    assert f"big-net[predictions=only]: {PREDICTIONS_ONLY}; compared with nothing" in page
    lines = [line for line in page.splitlines() if line.startswith("| big-net")]
    assert lines
    assert not any("**" in line or "<u>" in line for line in lines)
    assert page.partition("## Time")[2].count("big-net") == 0  # seconds that were told are no times of this machine


def test_predictions_cannot_be_made_again(board: Content) -> None:
    result = told_results(board)[0]
    with pytest.raises(UsageError, match="was handed in as predictions, and its code is not here"):
        choose({i: line.result for i, line in board.lines.items()}, result.id, Path("board"))
    assert all(not found.predictions_only for found in candidates(board))


def test_published_predictions_are_recomputed(board: Content, handed_in: Path, copy: Path) -> None:
    assert check_submission(board, handed_in, shared(), HERE) == ([], {r.id for r in told_results(board)})
    victim = told_results(board)[0]
    victim.selected["bags"].metrics["log_loss"] = 0.01
    (problem,), _ = check_submission(board, handed_in, shared(), HERE)
    assert problem.startswith(f"cell {victim.id}: it is published otherwise")
    save(copy, read_submission(copy).cells[1].setting, test=np.linspace(0, 1, ROWS))
    problems, _ = check_submission(board, copy, shared(), HERE)
    assert any("are others than those that were published" in problem for problem in problems)


@pytest.mark.parametrize(
    ("forge", "sentence"),
    [
        (lambda r: {"method_name": "big-net"}, "does not say whether it is predictions only"),
        (lambda r: {"predictions_only": False}, "does not say whether it is predictions only"),
        (lambda r: {"oracle": True}, "predictions alone are of no bound"),
    ],
)
def test_the_mark_cannot_be_taken_off(board: Content, forge: Callable[[CellResult], Tree], sentence: str) -> None:
    result = told_results(board)[0]
    forged = msgspec.structs.replace(result, **forge(result))
    with pytest.raises(Unsound, match=sentence):
        decode_line(encode_line(forged, "0" * 32))


def test_a_mark_that_is_taken_off_in_full_is_found(board: Content) -> None:
    """Without the flag and the mark in its name a cell must be all that a run writes, and it is not."""
    for line in board.lines.values():
        if line.result.predictions_only:
            line.result.predictions_only, line.result.method_name = False, "big-net"
    problems = audit(board, shared()).problems
    assert sum("limits" in problem or "which code its method was" in problem for problem in problems) >= 4


def test_predictions_without_their_description_are_found(board: Content) -> None:
    board.submissions = {}
    assert "submissions/big-net.json: there is none, and cells of it are" in audit(board, shared()).problems
    board.submissions = {"big-net": msgspec.structs.replace(ABOUT, params={}), "other": ABOUT}
    problems = audit(board, shared()).problems
    assert "submissions/other.json: no cell of it is published" in problems
    assert sum("parameters are not those of its submission" in problem for problem in problems) == 4


def test_a_run_brings_no_predictions_and_no_method_of_that_name(board: Content, bench: Bench) -> None:
    result = bench.result()
    result.predictions_only = True
    bench.save(result)
    bench.edit_manifest(lambda plan: plan["planned"][result.id].update(label=f"{VICTIM}[predictions=only]"))
    refused = publish(bench, bench.board_of(WITNESS))
    assert "published from the folder that was handed in" in refused[result.id]
    board.submissions[WITNESS] = msgspec.structs.replace(ABOUT, name=WITNESS)
    refused = publish(bench, board)
    assert f"{WITNESS} is published as predictions only" in refused[bench.result(WITNESS).id]


def test_predictions_come_from_reviewers(board: Content, bench: Bench) -> None:
    before = bench.board_of(VICTIM, WITNESS)
    problems = brought(board, before, shared())
    assert len(problems) == 4
    assert all("reviewers score predictions" in problem for problem in problems)
    assert brought(board, board, shared()) == []


def test_a_description_changes_only_when_asked_to(board: Content, copy: Path) -> None:
    edit(copy, method(title="Another title"))
    with pytest.raises(StoreError, match="with another description"):
        add_submission(copy, board, shared(), HERE)
    report = add_submission(copy, board, shared(), HERE, replace=True)
    assert len(report.added) == 4
    assert board.submissions["big-net"].title == "Another title"


def test_a_new_description_replaces_all_or_nothing(board: Content, copy: Path) -> None:
    before = raw_files(board)
    edit(copy, method(title="Another title"))
    predictions_path(copy, read_submission(copy).cells[0]).unlink()
    with pytest.raises(StoreError, match=r"nothing was replaced: 1 of 4 cells are refused: .*predictions"):
        add_submission(copy, board, shared(), HERE, replace=True)
    assert raw_files(board) == before


def test_a_dataset_without_cells_leaves_no_files(board: Content, copy: Path, tmp_path: Path) -> None:
    told = told_results(board)[0]
    cell = msgspec.structs.replace(told.cell, dataset="gone")
    other = msgspec.structs.replace(told, id=cell.id, cell=cell, dataset_name="gone")
    board.lines[other.id] = seal(other, "0" * 32)
    board.replicates[other.id] = msgspec.structs.replace(board.replicates[told.id], id=other.id)
    folder = tmp_path / "board"
    write_board(folder, board)
    (folder / "cells" / ".keep").touch()
    stale = ["bootstrap/gone.jsonl", "cells/gone.jsonl", "tables/gone.md", "tables/gone.tex"]
    assert all((folder / name).is_file() for name in stale)
    edit(copy, method(title="Another title"))
    done = llpbench("leaderboard", "add", str(copy), "--to", str(folder), "--replace", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [name for name in stale if (folder / name).exists()] == []
    assert (folder / "cells" / ".keep").exists()
    assert other.id not in read_folder(folder).lines
    assert check_board(folder) == ["cells/.keep: nothing published gives this file; remove it"]


def test_what_beats_a_bound_is_pointed_out(board: Content) -> None:
    results = [line.result for line in board.lines.values()]
    told = told_results(board)[0]
    bound = msgspec.structs.replace(
        told,
        id="f" * 16,
        oracle=True,
        predictions_only=False,
        selected={"bags": Selected(report=0, metrics={"auroc": 0.1})},
    )
    assert above_bounds(results) == []
    (first, *_) = above_bounds([*results, bound])
    assert "above the bound's 10.00" in first


# -- the commands ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_way_of_a_submission_through_the_commands(tmp_path: Path) -> None:
    grid = ("-d", DATA, "-b", "8", "-s", "2")
    done = llpbench("leaderboard", "inputs", *grid, "-o", "sub", cwd=tmp_path)
    assert (tmp_path / "sub" / "predictions").is_dir()  # "put scores into sub/predictions"
    assert done.returncode == 0, done.stderr
    blank = llpbench("leaderboard", "score", "sub", cwd=tmp_path)
    assert blank.returncode == 2
    assert "method.title is empty" in blank.stderr
    fill_in(tmp_path / "sub")
    assert is_submission(tmp_path / "sub")
    scored = llpbench("leaderboard", "score", "sub", cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    assert PREDICTIONS_ONLY in scored.stdout
    assert "2 of 2 cells scored" in scored.stdout
    ran = llpbench("run", "-m", VICTIM, *grid, "--quiet", "-o", "run", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for folder in ("run", "sub"):
        added = llpbench("leaderboard", "add", folder, cwd=tmp_path)
        assert added.returncode == 0, added.stderr
    checked = llpbench("leaderboard", "check", "--strict", "--results", "run", "--results", "sub", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert "4 of 4 cells compared with their results" in checked.stdout
    told = next(
        line.result for line in read_folder(tmp_path / "leaderboards").lines.values() if line.result.predictions_only
    )
    again = llpbench("rerun", told.id, cwd=tmp_path)
    assert (again.returncode, "cannot be made again" in again.stderr) == (2, True)
    save(tmp_path / "sub", first_setting(tmp_path / "sub"), test=np.full(ROWS, np.nan))
    refused = llpbench("leaderboard", "score", "sub", cwd=tmp_path)
    assert refused.returncode == 1
    assert "1 of 2 cells scored" in refused.stdout
