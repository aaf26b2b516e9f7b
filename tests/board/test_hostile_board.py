"""A board that somebody wrote to harm its readers: texts without end, markup, hidden files, numbers that crash."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from board_samples import (
    MACHINE,
    MACHINE_FACTS,
    content_of,
    grid,
    published,
    real_cell,
    shared,
    traced,
    write_run,
)
from helpers import make_cell

from llpbench.board.accept.brought import brought
from llpbench.board.accept.inputs import settings
from llpbench.board.publish import add_results
from llpbench.board.built.build import built_files, changed_by_hand, differences
from llpbench.board.built.citation import suite_bibtex
from llpbench.board.built.commands import typed_seeds
from llpbench.board.checks.audit import audit
from llpbench.board.checks.local_files import check_declared_files
from llpbench.board.content.bootstrap import Replicates, decode_replicates, pack
from llpbench.board.content.facts import Facts, MachineFacts, MetricFacts, RuleFacts, check_facts
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.content.lines import compact, decode_line, encode_line
from llpbench.board.content.submission import ToldMethod, check_told_method
from llpbench.board.validate import Unsound, check_values
from llpbench.contracts.cell import Cell
from llpbench.contracts.errors import StoreError, UsageError
from llpbench.contracts.result import CellResult, Selected
from llpbench.contracts.specs import DatasetSpec, Param
from llpbench.experiment.grid import RunSpec
from llpbench.report.tables import markdown_text
from llpbench.results.shared import name_seeds

SOURCE = "0" * 32
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def board(tmp_path: Path) -> Path:
    content = content_of(grid({"a": [0.5, 0.6], "b": [0.7, 0.8]}))
    folder = tmp_path / "board"
    write_files(folder, {**raw_files(content), **built_files(content)})
    assert differences(folder, read_folder(folder)) == []
    return folder


# -- texts and sizes ---------------------------------------------------------------------------------------------------


def failed(**facts: Any) -> CellResult:
    return published(None, make_cell(), **{"status": "failed", "selected": {}, "reason": "no luck", **facts})


def fine(**facts: Any) -> CellResult:
    return compact(published(0.8, make_cell(), **facts))


def of_cell(**facts: Any) -> CellResult:
    return compact(published(0.8, make_cell(**facts)))


def with_metrics(*names: str) -> CellResult:
    chosen = {rule: Selected(report=0, metrics={"auroc": 0.5, **dict.fromkeys(names, 0.9)}) for rule in RULES}
    return fine(selected=chosen)


RULES = ("bags", "instances")
VERSIONS = {"python": "3.12.0", "numpy": "2.0.0"}
HOSTILE: dict[str, tuple[Callable[[], CellResult], str]] = {
    "a long reason": (lambda: failed(reason="A" * 3_000_000), "its reason"),
    "a reason that moves the cursor": (lambda: failed(reason="no\x1b[2J luck"), "its reason"),
    "a reason that is read backwards": (lambda: failed(reason="no\u202e luck"), "its reason"),
    "a reason that nobody sees": (lambda: failed(reason="\u3164\u2800"), "does not say why"),
    "a reason beside numbers": (lambda: fine(reason="VERIFIED BY REVIEWERS"), "a reason for having none"),
    "a traceback": (lambda: msgspec.structs.replace(fine(), traceback="T" * 5_000_000), "its traceback"),
    "a curve": (lambda: msgspec.structs.replace(fine(), history=[{"bags": 0.5}]), "its history"),
    "many notes": (lambda: fine(notes={f"n{i}": "v" * 300 for i in range(20_000)}), "20,000 entries"),
    "a note of many lines": (lambda: msgspec.structs.replace(fine(), notes={"n": "a\nb"}), "cannot be printed|notes"),
    "many versions": (lambda: fine(versions={f"p{i}": "1.0" for i in range(300)}), "300 entries"),
    "a version that is a sentence": (lambda: fine(versions={"p": "see https://evil.example"}), "no package with its"),
    "a package that is markup": (lambda: fine(versions={"<b>": "1.0"}), "no package with its version"),
    "TeX as a version": (lambda: fine(versions={**VERSIONS, "llpbench": r"0.1}, note = {\input{x}"}), "no package"),
    "a word as the version": (lambda: fine(versions={**VERSIONS, "llpbench": "mine"}), "no version of llpbench"),
    "a long name of a stage": (lambda: fine(stages={"<script>" * 40: {}}), "more than 100 characters"),
    "many stages": (lambda: fine(pseudo_labels={f"s{i}": 0.5 for i in range(51)}), "51 entries"),
    "many settings": (lambda: of_cell(params={f"p{i}": 1 for i in range(300)}), "300 entries"),
    "a backend that nobody has": (lambda: of_cell(backend="none<script>"), "its backend"),
    "a noise that is markup": (lambda: of_cell(noise=EVIL), "no level of noise"),
    "a mechanism that nobody has": (lambda: of_cell(mechanism="magic"), "its mechanism"),
    "a seed without end": (lambda: of_cell(seed=10**14), "is not between 0 and 9,999"),
    "a date in other digits": (lambda: fine(started="٢٠٢٥-03-04T05:06:07Z"), "does not read like"),
    "a metric in capitals": (lambda: with_metrics("AUROC"), "is not a name"),
    "a metric of two words": (lambda: with_metrics("auroc bags"), "is not a name"),
    "a metric that scripts know": (lambda: with_metrics("__proto__"), "is not a name"),
    "many metrics": (lambda: with_metrics(*(f"m{i}" for i in range(200))), "201 metrics"),
}


@pytest.mark.parametrize(("make", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_cell_is_not_read(make: Callable[[], CellResult], reason: str) -> None:
    with pytest.raises(Unsound, match=reason):
        decode_line(encode_line(make(), SOURCE))


@pytest.mark.parametrize("source", ["", "any text <script>", "0" * 16, "0" * 33, "A" * 32])
def test_a_source_is_a_digest(source: str) -> None:
    assert decode_line(encode_line(fine(), SOURCE)).source == SOURCE
    with pytest.raises(Unsound, match="source"):
        decode_line(encode_line(fine(), source))


@pytest.mark.parametrize(
    "reason",
    ["x" * 299 + " y", "  much \n space\t", "no\x1b[2J luck", "\u202e" * 400, "a\u00a0b", "ends in space " * 30],
)
def test_what_is_compact_stays_as_it_is(reason: str) -> None:
    once = compact(failed(reason=reason, notes={"n": reason, "x": 1 / 3}, failed_at=reason))
    assert compact(once) == once
    assert len(once.reason) <= 300
    assert once.reason.isprintable()
    assert decode_line(encode_line(once, SOURCE)).result == once


def test_texts_of_honest_results_are_brought_into_form(tmp_path: Path) -> None:
    long = traced(real_cell(), notes={"said": "two\nlines " * 60, "share": 1 / 3})
    stopped = traced(
        real_cell(seed=1), status="failed", reason="ValueError:\n" + "x" * 5000, selected={}, traceback="T"
    )
    write_run(tmp_path / "run", [long, stopped])
    content = Content()
    assert add_results(tmp_path / "run", content, shared()).refused == []
    write_files(tmp_path / "board", raw_files(content))
    read = read_folder(tmp_path / "board")
    assert raw_files(read) == raw_files(content)
    assert read.lines[stopped.id].result.reason.startswith("ValueError: xxx")
    assert str(read.lines[long.id].result.notes["said"]).startswith("two lines two lines")


# -- replicates --------------------------------------------------------------------------------------------------------


def replicates(**facts: Any) -> bytes:
    packed = pack(np.linspace(0.4, 0.6, 128))
    known: dict[str, Any] = {"id": "0" * 16, "test": "0" * 16, "rules": {"bags": packed}}
    return msgspec.json.encode(Replicates(**{**known, **facts}))


def test_replicates_hold_nothing_but_replicates() -> None:
    packed = decode_replicates(replicates()).rules["bags"]
    junk = msgspec.structs.replace(packed, steps=packed.steps[:8] + " !! " * 1000 + packed.steps[8:])
    with pytest.raises(Unsound, match="not published replicates"):
        decode_replicates(replicates(rules={"bags": junk}))
    with pytest.raises(Unsound, match="digest of test labels"):
        decode_replicates(replicates(test="any text"))


def test_replicates_under_a_rule_without_a_number_are_found(tmp_path: Path) -> None:
    content = added(tmp_path)
    (cell_id,) = content.lines
    kept = content.replicates[cell_id]
    content.replicates[cell_id] = msgspec.structs.replace(kept, rules={**kept.rules, "more": kept.rules["bags"]})
    assert any("under 'more'" in problem for problem in audit(content, shared()).problems)


# -- what belongs to no cell -------------------------------------------------------------------------------------------


def added(tmp_path: Path, **facts: Any) -> Content:
    """A board of one honest cell."""
    write_run(tmp_path / "run", [traced(real_cell(), **facts)])
    content = Content()
    assert add_results(tmp_path / "run", content, shared()).refused == []
    assert audit(content, shared()).problems == []
    return content


def test_machines_and_searches_without_a_cell_are_found(tmp_path: Path) -> None:
    from llpbench.experiment.tuned import History, Setting

    content = added(tmp_path)
    content.machines["abcdefabcd"] = msgspec.convert({**MACHINE_FACTS, "cpu": "buy here"}, MachineFacts)
    setting = Setting(cell=real_cell(), fixed={}, rule="bags", seeds=[0])
    facts: dict[str, Any] = {"space": {}, "sampler": "tpe", "sampler_seed": 0, "wanted": 1, "trials": []}
    content.searches["mine"] = History(study="mine", setting=setting, higher_is_better=False, **facts)
    assert audit(content, shared()).problems == [
        "machine abcdefabcd: no cell was made on it",
        "search mine: it chose the parameters of no cell",
    ]


def test_a_cell_that_is_replaced_takes_its_machine_along(tmp_path: Path) -> None:
    content = added(tmp_path)
    again = traced(real_cell(), machine="abcdefabcd", fit_seconds=2.5, phases={"fit": 2.25, "other": 0.25})
    store = write_run(tmp_path / "again", [again])
    store.write_machine("abcdefabcd", {**MACHINE_FACTS, "cores": 64})
    report = add_results(tmp_path / "again", content, shared(), replace=True)
    assert [cell_id for cell_id, _ in report.replaced] == [again.id]
    assert set(content.machines) == {"abcdefabcd"}
    assert audit(content, shared()).problems == []


# -- metrics -----------------------------------------------------------------------------------------------------------


def test_a_metric_that_nothing_installed_brings_is_told(tmp_path: Path) -> None:
    content = added(tmp_path)
    (line,) = content.lines.values()
    for chosen in line.result.selected.values():
        chosen.metrics["quality"] = 0.99
    content.facts.metrics["quality"] = MetricFacts(title="Quality (verified)")
    assert audit(content, shared()).untraced == {"metric quality": 1}


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (Facts(metrics={"mine": MetricFacts(title="AUROC")}), "the title 'AUROC', which is that of 'auroc'"),
        (Facts(metrics={"mine": MetricFacts(title=" ａuroc ")}), "which is that of 'auroc'"),
        (Facts(metrics={"mine": MetricFacts(title="bag error")}), "'bag_error'"),
        (Facts(metrics={"a": MetricFacts(title="Q (verified)"), "b": MetricFacts(title="q verified")}), "that of '"),
        (Facts(metrics={"auroc bags": MetricFacts()}), "metric 'auroc bags' is not a name"),
        (Facts(rules={"__proto__": RuleFacts()}), "selection rule '__proto__' is not a name"),
    ],
)
def test_no_metric_passes_for_another(facts: Facts, sentence: str, board: Path) -> None:
    with pytest.raises(Unsound, match=re.escape(sentence)):
        check_facts(facts)
    (board / "facts.json").write_bytes(msgspec.json.encode(facts))
    with pytest.raises(StoreError, match=r"facts\.json"):
        read_folder(board)


def test_two_rules_may_look_at_the_same_thing() -> None:
    check_facts(Facts(rules={"a": RuleFacts(title="AUROC"), "b": RuleFacts(title="AUROC")}))


# -- files that nothing gives ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [".htaccess", ".evil/.x.html", "cells/.hidden", "tables/.x.html", ".gitignore", ".git2/x"]
)
def test_hidden_files_are_named(board: Path, name: str) -> None:
    (board / name).parent.mkdir(exist_ok=True)
    (board / name).write_text(EVIL)
    assert differences(board, read_folder(board)) == [f"{name}: nothing published gives this file; remove it"]


def test_empty_folders_and_links_are_named(board: Path) -> None:
    (board / "evil" / "deep").mkdir(parents=True)
    (board / "link").symlink_to("/etc")
    assert differences(board, read_folder(board)) == [
        "evil/deep: an empty folder that nothing published gives; remove it",
        "link: nothing published gives this file; remove it",
    ]


def test_a_static_host_and_git_may_have_what_they_need(board: Path) -> None:
    (board / ".nojekyll").touch()
    (board / ".git").mkdir()
    (board / ".git" / "HEAD").write_text("ref: refs/heads/main")
    assert differences(board, read_folder(board)) == []
    (board / ".nojekyll").write_text(EVIL)
    assert differences(board, read_folder(board)) == [".nojekyll: nothing published gives this file; remove it"]


def test_what_is_written_by_hand_is_a_plain_file_and_stays(board: Path, tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    assert changed_by_hand(board, before) == []
    (board / "README.md").write_text("# Mine is best")
    assert differences(board, read_folder(board)) == []
    assert changed_by_hand(board, before) == ["README.md: it is another than before; reviewers change it"]
    (before / "README.md").write_text("# Mine is best")
    assert changed_by_hand(board, before) == []
    (board / "README.md").unlink()
    assert changed_by_hand(board, before) == ["README.md: it is another than before; reviewers change it"]
    (board / "README.md").symlink_to(before / "README.md")
    assert differences(board, read_folder(board)) == ["README.md: must be a plain file"]
    assert changed_by_hand(board, before) == ["README.md: it is another than before; reviewers change it"]


@pytest.mark.parametrize("name", [f"{MACHINE}.json", "evil.json"])
def test_a_broken_machine_is_named(board: Path, name: str) -> None:
    (board / "machines" / name).write_text("{")
    with pytest.raises(StoreError, match=re.escape(f"machines/{name}")):
        read_folder(board)


# -- markup ------------------------------------------------------------------------------------------------------------


def test_the_name_of_a_dataset_is_only_text_in_every_table() -> None:
    name = f"toy, <img src=https://evil.example onerror=x>** [verified](https://evil.example) {EVIL}"
    results = [msgspec.structs.replace(r, dataset_name=name) for r in grid({"a": [0.5, 0.6], "b": [0.7, 0.8]})]
    page = built_files(content_of(results))["tables/toy.md"].decode()
    assert "## Ranks" in page
    assert not any(text in page for text in ("<img", "<script", "](https", "x>**", "onerror=x&gt;** "))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"a \| b", r"a \\\| b"),
        ("[x]: https://evil.example", r"\[x]: https://evil.example"),
        ("[a][b]", r"[a]\[b]"),
        ("**bold**", r"\*\*bold\*\*"),
        ("bp[iterations=1]: failed", "bp[iterations=1]: failed"),
    ],
)
def test_markdown_is_only_text(text: str, shown: str) -> None:
    assert markdown_text(text) == shown


def test_a_version_is_only_text_in_a_citation() -> None:
    entry = suite_bibtex(r"0.1}, note = {\input{/etc/passwd}")
    assert r"\input" not in entry
    assert r"0.1\}, note = \{\textbackslash{}input\{" in entry


# -- numbers that crash ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [10**400, -(10**5000), 10**16, 1e300, float("inf")], ids=range(5))
def test_numbers_without_end_are_one_sentence(value: float) -> None:
    check_values({"a": 10**15})
    with pytest.raises(Unsound, match="out of range"):
        check_values({"a": value})


def test_seeds_far_apart_are_not_counted_one_by_one() -> None:
    assert typed_seeds([0, 10**14]) == f"0,{10**14}"
    assert typed_seeds([10**14, 10**14 + 1]) == f"{10**14}-{10**14 + 1}"
    assert (typed_seeds([]), typed_seeds([0]), typed_seeds([2, 1]), typed_seeds([0, 2])) == ("0", "1", "1-2", "0,2")
    assert name_seeds([0, 1, 10**14]) == f"seeds 0, 1, {10**14} of {10**14 + 1}"


# -- files of somebody's own -------------------------------------------------------------------------------------------

OWN = DatasetSpec(name="own", factory="a:b", params=(Param("path", "", names_file=True), Param("label", "")), files=())


def test_a_setting_that_names_a_file_is_not_published() -> None:
    check_declared_files(OWN, {"label": "/etc/passwd"})
    check_declared_files(OWN, {"path": ""})
    with pytest.raises(Unsound, match="names a file of your own"):
        check_declared_files(OWN, {"path": "/etc/passwd"})


def reading(path: str) -> tuple[str, dict[str, Any]]:
    """The installed dataset that reads any file, with its options."""
    spec = next(s for s in shared().datasets.specs if not s.files and any(p.names_file for p in s.params))
    param = next(p.name for p in spec.params if p.names_file)
    return spec.name, {**spec.resolve({}), param: path}


def test_a_submission_of_a_file_of_ones_own_is_refused() -> None:
    """On a board of one's own it may be; a reviewer would open whatever path a stranger names."""
    dataset, options = reading("/etc/passwd")
    cell: Cell = real_cell(dataset=dataset, dataset_options=options)
    result = traced(cell, dataset_name=dataset)
    before, after = content_of([traced(real_cell())]), content_of([traced(real_cell()), result])
    assert any("names a file of your own" in problem for problem in brought(after, before, shared()))
    assert brought(after, after, shared()) == []


def test_inputs_are_not_written_of_a_file_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,y\n1,0\n2,1\n")
    dataset, _ = reading("")
    spec = RunSpec(methods=["none"], datasets=[f"{dataset}[path={tmp_path / 'data.csv'};label=y]"], seeds=1)
    with pytest.raises((Unsound, UsageError), match="names a file of your own"):
        settings(spec, shared())


# -- names that look empty ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  ", "\u3164\u3164", "\u2800", "\u115f\u1160", "\u0301"])
def test_a_text_that_nobody_sees_is_empty(text: str) -> None:
    check_told_method(ToldMethod(name="m", title="一", who="Ada"))
    with pytest.raises(Unsound, match="title is empty"):
        check_told_method(ToldMethod(name="m", title=text, who="Ada"))
    with pytest.raises(Unsound, match="who is empty"):
        check_told_method(ToldMethod(name="m", title="A", who=text))
