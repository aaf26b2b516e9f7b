"""``leaderboard check``: problems of published files are found, names from plugins are shown as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from board_samples import MACHINE_FACTS, content_of, grid, published, real_cell, shared, traced, write_run
from helpers import make_cell

from llpbench.board.audit import audit
from llpbench.board.built.build import built_files, differences
from llpbench.board.content.facts import Facts, MachineFacts, MetricFacts, RuleFacts, check_facts
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.publish import add_results
from llpbench.board.validate import Unsound
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult
from llpbench.experiment.tuned import History, Setting
from llpbench.report.tables import markdown_text

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def published_cells(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """A leaderboard of two valid cells."""
    folder = tmp_path_factory.mktemp("run")
    write_run(folder, [traced(real_cell()), traced(real_cell("best-feature"))])
    content = Content()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("llpbench.board.publish.suite_files", lambda registry: {})
        assert add_results(folder, content, shared()).refused == []
    assert audit(content).problems == []
    return content


def copy_of(content: Content) -> tuple[Content, CellResult]:
    """A copy that may be edited, and the result of its first cell."""
    copy = msgspec.json.decode(msgspec.json.encode(content.lines), type=type(content.lines))
    lines = {cell_id: msgspec.convert(line, type(content.lines[cell_id])) for cell_id, line in copy.items()}
    facts = msgspec.json.decode(msgspec.json.encode(content.facts), type=Facts)
    found = Content(lines, dict(content.replicates), dict(content.machines), facts)
    return found, min(lines.values(), key=lambda line: line.result.id).result


def no_replicates(content: Content, result: CellResult) -> None:
    del content.replicates[result.id]


def replicates_without_a_cell(content: Content, result: CellResult) -> None:
    content.replicates["0" * 16] = content.replicates[result.id]


def unused_machine(content: Content, result: CellResult) -> None:
    content.machines["abcdefabcd"] = msgspec.convert(MACHINE_FACTS, MachineFacts)


def unused_search(content: Content, result: CellResult) -> None:
    setting = Setting(cell=result.cell, fixed={}, rule="bags", seeds=[0])
    facts: dict[str, Any] = {"space": {}, "sampler": "tpe", "sampler_seed": 0, "wanted": 1, "trials": []}
    content.searches["mine"] = History(study="mine", setting=setting, higher_is_better=False, **facts)


def other_rows(content: Content, result: CellResult) -> None:
    result.rows["test"] = 29


PROBLEMS: dict[str, tuple[Callable[[Content, CellResult], object], str]] = {
    "protocol": (lambda c, r: setattr(r, "protocol", 1), "it was made under protocol 1, expected 2"),
    "method": (lambda c, r: c.facts.methods.clear(), "facts.json does not describe"),
    "metric": (lambda c, r: c.facts.metrics.pop("auroc"), "facts.json does not describe the metric auroc"),
    "seeds": (lambda c, r: r.seeds.update(split=7), "its split seed is 7"),
    "bags": (lambda c, r: r.bags.update(train=1), "it has 1 bags of 100 train rows"),
    "rule versions": (lambda c, r: r.rules.update(bags=99), "rule 'bags': cells were selected by several versions"),
    "other rows": (other_rows, "its numbers of rows differ from those of cell"),
    "no replicates": (no_replicates, "its bootstrap replicates are missing"),
    "replicates without a cell": (replicates_without_a_cell, f"replicates of cell {'0' * 16}: no such cell"),
    "unused machine": (unused_machine, "machine abcdefabcd: no published cell was made on it"),
    "unused search": (unused_search, "search mine: it chose no published cell"),
}


@pytest.mark.parametrize(("edit", "problem"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_audit_finds_invalid_content(
    published_cells: Content, edit: Callable[[Content, CellResult], object], problem: str
) -> None:
    content, result = copy_of(published_cells)
    edit(content, result)
    assert any(problem in found for found in audit(content).problems), audit(content).problems


def test_audit_notes_unreleased_code(published_cells: Content) -> None:
    content, result = copy_of(published_cells)
    result.code["method"] = "editable llpbench sha256:0f"
    assert audit(content).notes == ["1 of 2 cells were made by unreleased code"]


# -- the files of a folder ---------------------------------------------------------------------------------------------


@pytest.fixture
def board(tmp_path: Path) -> Path:
    content = content_of(grid({"a": [0.5, 0.6], "b": [0.7, 0.8]}))
    folder = tmp_path / "board"
    write_files(folder, {**raw_files(content), **built_files(content)})
    assert differences(folder, read_folder(folder)) == []
    return folder


def cells_file(board: Path) -> Path:
    return min((board / "cells").iterdir())


def test_read_folder_rejects_edited_cells(board: Path) -> None:
    path = cells_file(board)
    path.write_text(path.read_text().replace('"fit_seconds":1.5', '"fit_seconds":0.5', 1))
    with pytest.raises(StoreError, match="does not match its digest"):
        read_folder(board)


@pytest.mark.parametrize("name", ["index.html", "tables/toy.md"])
def test_edited_and_missing_built_files_are_found(board: Path, name: str) -> None:
    path = board / name
    path.write_text(path.read_text() + " ")
    assert differences(board, read_folder(board)) == [f"{name}: differs from what the published cells give"]
    path.unlink()
    assert [problem.startswith(f"{name}: ") for problem in differences(board, read_folder(board))] == [True]


def test_lines_out_of_order_are_found(board: Path) -> None:
    path = cells_file(board)
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert len(differences(board, read_folder(board))) == 1


def test_only_published_built_and_entry_files_belong_to_a_board(board: Path) -> None:
    (board / "README.md").write_text("by hand")
    (board / ".nojekyll").touch()
    for name in ("entries", ".git"):
        (board / name).mkdir()
        (board / name / "x.toml").touch()
    assert differences(board, read_folder(board)) == []
    (board / "tables" / "other.md").write_text("stale")
    (board / ".htaccess").touch()
    (board / "empty").mkdir()
    assert [text.partition(":")[0] for text in sorted(differences(board, read_folder(board)))] == [
        ".htaccess", "empty", "tables/other.md",
    ]  # fmt: skip


SPOILED: dict[str, Callable[[Path], object]] = {
    "duplicate": lambda b: _append(cells_file(b), cells_file(b).read_text().splitlines()[0]),
    "not JSON": lambda b: _append(cells_file(b), "nonsense"),
    "nested": lambda b: _append(cells_file(b), "[" * 100_000),
    "wrong file": lambda b: cells_file(b).rename(b / "cells" / "other.jsonl"),
    "wrong ending": lambda b: (b / "cells/x.exe").write_text(""),
    "invalid file name": lambda b: (b / "cells/<b>.jsonl").write_text(""),
    "symbolic link": lambda b: (b / "cells/link.jsonl").symlink_to("/etc/passwd"),
    "no machine": lambda b: next((b / "machines").iterdir()).unlink(),
    "invalid machine": lambda b: next((b / "machines").iterdir()).write_text("{"),
    "invalid facts": lambda b: (b / "facts.json").write_text('{"metrics": 3}'),
    "invalid replicates": lambda b: _append(b / "bootstrap" / cells_file(b).name, '{"id": "x"}'),
}


def _append(path: Path, line: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(line + "\n")


@pytest.mark.parametrize("spoil", SPOILED.values(), ids=SPOILED.keys())
def test_read_folder_names_the_invalid_file(board: Path, spoil: Callable[[Path], object]) -> None:
    spoil(board)
    with pytest.raises(StoreError, match=re.escape(str(board))):
        read_folder(board)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (Facts(metrics={"mine": MetricFacts(title="AUROC")}), "'auroc' and 'mine' have the same title, 'AUROC'"),
        (Facts(metrics={"mine": MetricFacts(title=" ａuroc ")}), "'auroc'"),
        (Facts(metrics={"auroc bags": MetricFacts()}), "metric name 'auroc bags'"),
        (Facts(rules={"__proto__": RuleFacts()}), "selection rule name '__proto__'"),
    ],
)
def test_facts_must_have_valid_and_distinct_names(facts: Facts, sentence: str) -> None:
    with pytest.raises(Unsound, match=re.escape(sentence)):
        check_facts(facts)


# -- names are text ----------------------------------------------------------------------------------------------------


def test_names_and_reasons_are_escaped_on_the_page_and_in_tables() -> None:
    name = f"toy, <img src=https://evil.example onerror=x>** [verified](https://evil.example) {EVIL}"
    results = [msgspec.structs.replace(r, dataset_name=name) for r in grid({"a": [0.5, 0.6], "b": [0.7, 0.8]})]
    results += [
        published(0.8, make_cell(method="m", seed=s, params={"a": EVIL}), method_name=f"m[a={EVIL}]") for s in range(2)
    ]
    reason = f"{EVIL} | `x` [l](javascript:alert(1))"
    results.append(published(None, make_cell(method="bad"), status="failed", reason=reason, selected={}))
    files = {name: data.decode() for name, data in built_files(content_of(results)).items()}
    assert "<script>alert" not in files["index.html"]
    for text in ("<script>alert", "<img", "](https", "](javascript:", "x>**"):
        assert text not in files["tables/toy.md"]


@pytest.mark.parametrize("label", ["m[a]", "m[a=1;a=2]", "m[[[", "m[=]", "m[preset=x"])
@pytest.mark.parametrize("preset", ["", "x"])
def test_method_names_that_cannot_be_parsed_are_shown(label: str, preset: str) -> None:
    results = [published(0.8, make_cell(method="m", seed=s, preset=preset), method_name=label) for s in range(2)]
    assert label.encode() in built_files(content_of(results))["index.html"]


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
def test_markdown_text_is_escaped(text: str, shown: str) -> None:
    assert markdown_text(text) == shown
