"""``-k``: the expression that selects cells, and the checks of ``check``."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_runner import llpbench
from hypothesis import given
from hypothesis import strategies as st

from llpbench.cli.keywords import Keywords
from llpbench.contracts.errors import UsageError

CELL = "0a1b  bp[iterations=1] on adult,  bag 8, seed 0"
Tree = tuple[str, bool]
leaves: st.SearchStrategy[Tree] = st.sampled_from(
    [("bp", True), ("bag 8,", True), ("ADULT", True), ("iterations=1", True), ("dllp", False), ("bag 80", False)]
)


def _longer(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        inner.map(lambda a: (f"not ({a[0]})", not a[1])),
        st.tuples(inner, inner).map(lambda ab: (f"({ab[0][0]}) and ({ab[1][0]})", ab[0][1] and ab[1][1])),
        st.tuples(inner, inner).map(lambda ab: (f"({ab[0][0]})or({ab[1][0]})", ab[0][1] or ab[1][1])),
    )


@given(st.recursive(leaves, _longer, max_leaves=6))
def test_expression_has_the_value_of_its_parts(tree: Tree) -> None:
    assert Keywords(tree[0]).match(CELL) == tree[1]


def test_and_binds_more_tightly_than_or_and_an_empty_expression_matches_all() -> None:
    assert Keywords("bp or dllp and mixbag").match(CELL)
    assert not Keywords("not bp or dllp").match(CELL)
    assert Keywords("").match(CELL)


@pytest.mark.parametrize("bad", ["bp and", "(bp", "not", "or bp", "bp ) dllp", "bp (dllp)"])
def test_expression_that_cannot_be_read_is_rejected(bad: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        Keywords(bad).match(CELL)


def test_run_selects_cells(tmp_path: Path) -> None:
    grid = ("run", "-m", "mean-ridge,mean-map", "-d", "synthetic[rows=400;dim=4]", "-b", "8,16", "-s", "1", "-o", "out")
    listed = llpbench(*grid, "-n", "-k", "mean-ridge or bag 16", cwd=tmp_path)
    assert [line.partition("  ")[2].partition(" on")[0] for line in listed.stdout.splitlines()] == [
        "mean-ridge", "mean-ridge", "mean-map",
    ]  # fmt: skip
    done = llpbench(*grid, "-q", "-k", "mean-ridge and bag 16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "out" / "cells").glob("*.json"))) == 1
    assert "3 of 4 cells would run" in llpbench(*grid, "-n", cwd=tmp_path).stderr
    nothing = llpbench(*grid, "-n", "-k", "dllp", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "-k 'dllp' matches none of 4 cells. Try " in nothing.stderr
