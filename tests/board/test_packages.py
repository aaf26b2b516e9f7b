"""Which packages a reviewer installs for a submission: those that new cells are of, and no others."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from board_samples import CODE, VERSIONS, as_line, content_of, grid, real_cell, shared, traced
from cli_runner import llpbench
from forge import write_board
from helpers import make_cell, make_result

from llpbench.board.accept.packages import new_results, packages, untraced_news
from llpbench.board.content.facts import MethodFacts
from llpbench.board.content.folder import Content
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult


def made_by(package: str, version: str = "1.2.0", kind: str = "release", seed: int = 0, **changes: str) -> CellResult:
    """A cell of the method ``mine``, of a package."""
    stated = f" {version}" if kind == "release" else ""
    code = {**CODE, "method": f"{kind} {package}{stated} sha256:{'0' * 32}", **changes}
    cell = real_cell(seed=seed)
    cell = msgspec.structs.replace(cell, method="mine", params={})
    return traced(cell, method_name="mine", code=code, versions={**VERSIONS, package: version})


def board(*results: CellResult) -> Content:
    return content_of([traced(real_cell()), *results])


def needed(*results: CellResult) -> list[str]:
    return packages(board(*results), board(), shared())


def test_new_cells_need_their_package_and_those_of_llpbench_nothing() -> None:
    assert needed() == []
    assert needed(traced(real_cell(seed=3))) == []
    assert needed(made_by("my-plugins"), made_by("my-plugins", seed=1)) == ["my-plugins==1.2.0"]
    assert needed(made_by("my-plugins", kind="editable")) == ["my-plugins==1.2.0"]


def test_what_is_published_already_is_not_installed() -> None:
    """A release that was deleted, or another version of a package, must not stop everybody."""
    old, new = made_by("gone", "0.1"), made_by("gone", "0.2", seed=1)
    assert packages(board(old), board(old), shared()) == []
    assert packages(board(old, new), board(old), shared()) == ["gone==0.2"]


def test_facts_name_no_package_without_a_cell() -> None:
    content = board()
    content.facts.methods["evil"] = MethodFacts(origin="evil-pkg 1.0")
    content.facts.methods["mean-ridge"] = MethodFacts(origin="numpy 1.26.4")
    assert packages(content, board(), shared()) == []


def test_a_package_of_a_rule_is_named_and_parts_that_no_cell_has_are_not() -> None:
    line = "release my-rules 3.0 sha256:" + "1" * 32
    of_rule = made_by("my-plugins", **{"rule bold": line, "rule other": line.replace("my-rules", "evil")})
    of_rule.selected = {**of_rule.selected, "bold": of_rule.selected["bags"]}
    assert needed(of_rule) == ["my-plugins==1.2.0", "my-rules==3.0"]
    assert needed(made_by("my-plugins", nonsense=line)) == ["my-plugins==1.2.0"]


def test_a_failure_that_names_no_code_has_the_package_of_its_method() -> None:
    cell = msgspec.structs.replace(real_cell(), method="mine", params={})
    content = board(make_result(cell, None, status="crashed", reason="x", machine="0123456789"))
    content.facts.methods["mine"] = MethodFacts(origin="my-plugins 1.2.0")
    assert packages(content, board(), shared()) == ["my-plugins==1.2.0"]


def test_two_versions_of_one_package_are_refused_with_advice() -> None:
    with pytest.raises(StoreError, match="one after the other"):
        needed(made_by("my-plugins", "1.0"), made_by("My_Plugins", "1.1", seed=1))


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("-e", "1.0"),
        ("--index-url=x", "1.0"),
        ("a/b", "1"),
        ("https://evil.example/x", "1"),
        ("x", "1.0;evil"),
        ("x", ""),
    ],
)
def test_what_is_no_release_is_refused(name: str, version: str) -> None:
    with pytest.raises(StoreError, match="no release of a package"):
        needed(made_by(name, version, kind="editable"))


@pytest.mark.parametrize("name", ["numpy", "NumPy", "scikit_learn"])
def test_a_library_that_llpbench_stands_on_is_no_plugin(name: str) -> None:
    with pytest.raises(StoreError, match="no plugin of llpbench"):
        needed(made_by(name, "1.26.4"))


def test_a_name_that_belongs_to_llpbench_comes_from_nowhere_else() -> None:
    stolen = traced(real_cell(seed=3), code={**CODE, "method": "release evil-pkg 1.0 sha256:" + "0" * 32})
    with pytest.raises(StoreError, match="the name belongs to llpbench"):
        needed(stolen)


def test_only_what_new_cells_are_of_must_be_installed() -> None:
    old, new = (content_of(grid({m: [0.8] for m in names})) for names in ("a", "ab"))
    absent = {"method a": 1, "method b": 1, "dataset toy": 2, "selection rule bold": 1}
    assert untraced_news(absent, new_results(new, old)) == {"method b": 1, "dataset toy": 2}
    failed = make_result(make_cell(method="a"), None, status="failed", reason="x")
    old.lines[failed.id] = as_line(failed)
    assert {r.cell.method for r in new_results(new, old)} == {"a", "b"}  # a number in place of a failure is new


def test_the_command_prints_what_pip_reads(tmp_path: Path) -> None:
    write_board(tmp_path / "before", board())
    write_board(tmp_path / "after", board(made_by("my-plugins")))
    done = llpbench("leaderboard", "packages", "--board", "after", "--against", "before", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "my-plugins==1.2.0\n"), done.stderr
    same = llpbench("leaderboard", "packages", "--board", "before", "--against", "before", cwd=tmp_path)
    assert (same.returncode, same.stdout) == (0, "")
