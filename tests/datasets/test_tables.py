"""Tables: read from text, kept in a compact form, and read again when that is damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from llpbench import Categories, Numbers
from llpbench_datasets.tables import LabelledTable, cached_table, pack, table_from_rows, unpack

ROWS = [["39", "blue", "yes"], ["50", "?", "no"], ["-1.5", "blue", "yes"]]


def table() -> LabelledTable:
    return table_from_rows(ROWS, ["age", "colour"], ["age"], "yes")


def assert_same(left: LabelledTable, right: LabelledTable) -> None:
    assert len(left.columns) == len(right.columns)
    assert_array_equal(left.labels, right.labels)
    for a, b in zip(left.columns, right.columns, strict=True):
        assert a.name == b.name
        if isinstance(a, Numbers):
            assert isinstance(b, Numbers)
            assert_array_equal(a.values, b.values)
        else:
            assert isinstance(b, Categories)
            assert a.levels == b.levels
            assert_array_equal(a.codes, b.codes)


def test_rows_of_text() -> None:
    made = table()
    age, colour = made.columns
    assert isinstance(age, Numbers)
    assert isinstance(colour, Categories)
    assert_array_equal(age.values, [39, 50, -1.5])
    assert colour.levels == ("?", "blue")
    assert_array_equal(colour.codes, [1, 0, 1])
    assert_array_equal(made.labels, [1, 0, 1])
    assert [c.name for c in made.without("age").columns] == ["colour"]


def test_uneven_rows_are_rejected() -> None:
    with pytest.raises(ValueError, match="zip"):
        table_from_rows([*ROWS, ["1", "no"]], ["age", "colour"], ["age"], "yes")


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False).map(repr), st.text(), st.text(), st.text("yn")),
        min_size=1,
        max_size=20,
    )
)
def test_compact_form_is_lossless(rows: list[tuple[str, ...]]) -> None:
    made = table_from_rows(rows, ["a", "b", "c"], ["a"], "y")
    assert_same(unpack(pack(made)), made)


def test_many_levels() -> None:
    made = table_from_rows([[str(i), "y"] for i in range(1000)], ["c"], [], "y")
    assert_same(unpack(pack(made)), made)


def test_kept_and_used(tmp_path: Path) -> None:
    calls: list[int] = []

    def read() -> LabelledTable:
        calls.append(1)
        return table()

    for _ in range(3):
        assert_same(cached_table(tmp_path / "new", ["abc"], read), table())
    assert len(calls) == 1
    cached_table(tmp_path / "new", ["another file"], read)
    assert len(calls) == 2


@pytest.mark.parametrize("damage", ["cut", "empty", "byte", "text", "edited"])
def test_damaged_compact_form_is_rebuilt(tmp_path: Path, damage: str) -> None:
    cached_table(tmp_path, ["abc"], table)
    (kept,) = tmp_path.iterdir()
    good = kept.read_bytes()
    flipped = bytearray(good)
    flipped[good.index(np.float64(50).tobytes())] ^= 1
    other = pack(LabelledTable(table().columns, 1 - table().labels))  # a sound archive, of other labels
    damaged = {"cut": good[:200], "empty": b"", "byte": bytes(flipped), "text": b"hello", "edited": other}
    kept.write_bytes(damaged[damage])
    assert_same(cached_table(tmp_path, ["abc"], table), table())
    assert kept.read_bytes() == good


def test_pickles_are_not_read(tmp_path: Path) -> None:
    cached_table(tmp_path, ["abc"], table)
    (kept,) = tmp_path.iterdir()
    with kept.open("wb") as stream:
        np.savez(stream, head=np.array([json.dumps([])], dtype=object), numbers=[], codes=[], labels=[])
    assert_same(cached_table(tmp_path, ["abc"], table), table())


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("a file where a folder should be")
    assert_same(cached_table(tmp_path / "blocked" / "toy", ["abc"], table), table())
