"""Encoders: fitted on training rows alone, whatever the other rows hold."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from helpers import make_cell, make_plan, make_result
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from llpbench import Categories, Column, Numbers, UsageError
from llpbench.contracts.result import PROTOCOL
from llpbench.data.encoding.encoder import CLIP, ENCODINGS
from llpbench.execution.jobs import wanted_cells
from llpbench.plugins import fingerprint
from llpbench.plugins.registry import load_registry
from llpbench.results.provenance import Provenance
from llpbench.results.store import Store
from llpbench_datasets.encoding import encode, encoded_split
from llpbench_datasets.tables import LabelledTable

LEVELS = ("?", "a", "b", "c", "d")


@st.composite
def tables(draw: st.DrawFn) -> tuple[LabelledTable, np.ndarray]:
    """A small table and its training rows (at least one, at least one row left over)."""
    n = draw(st.integers(2, 30))
    number = st.floats(-1e6, 1e6, allow_nan=False, width=32)
    columns: list[Numbers | Categories] = []
    for i in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            values = draw(st.lists(number, min_size=n, max_size=n))
            columns.append(Numbers(f"n{i}", np.array(values, np.float64)))
        else:
            codes = draw(st.lists(st.integers(0, len(LEVELS) - 1), min_size=n, max_size=n))
            columns.append(Categories(f"c{i}", np.array(codes, np.int32), LEVELS))
    order = draw(st.permutations(range(n)))
    fit = np.array(order[: draw(st.integers(1, n - 1))])
    return LabelledTable(tuple(columns), np.zeros(n, np.int64)), fit


def with_other_rows_changed(table: LabelledTable, fit: np.ndarray, seed: int) -> LabelledTable:
    rng = np.random.default_rng(seed)
    others = np.setdiff1d(np.arange(len(table)), fit)
    columns: list[Numbers | Categories] = []
    for column in table.columns:
        if isinstance(column, Numbers):
            values = column.values.copy()
            values[others] = rng.normal(scale=1e7, size=len(others))
            columns.append(Numbers(column.name, values))
        else:
            codes = column.codes.copy()
            codes[others] = rng.integers(len(column.levels), size=len(others))
            columns.append(Categories(column.name, codes, column.levels))
    return LabelledTable(tuple(columns), table.labels)


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(ENCODINGS), st.integers(0, 2**31))
def test_only_training_rows_are_fitted(drawn: tuple[LabelledTable, np.ndarray], encoding: str, seed: int) -> None:
    table, fit = drawn
    X, columns = encode(table, fit, encoding)
    changed, changed_columns = encode(with_other_rows_changed(table, fit, seed), fit, encoding)
    assert columns == changed_columns
    assert_array_equal(X[fit], changed[fit])


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(ENCODINGS))
def test_shape_of_features(drawn: tuple[LabelledTable, np.ndarray], encoding: str) -> None:
    table, fit = drawn
    X, columns = encode(table, fit, encoding)
    assert X.dtype == np.float32
    assert X.shape == (len(table), sum(column.width for column in columns))
    assert [column.name for column in columns] == [column.name for column in table.columns]
    assert np.isfinite(X).all()
    assert np.abs(X).max() <= CLIP
    start = 0
    for column in columns:
        block = X[:, start : start + column.width]
        start += column.width
        if column.kind == "category":
            assert set(np.unique(block)) <= {0.0, 1.0}
            assert_array_equal(block[fit].sum(axis=1), 1.0)
            assert block.sum(axis=1).max() <= 1.0
            assert (block[fit].sum(axis=0) > 0).all(), "a level that no training row has"
    if encoding == "ordinal":
        assert X.shape[1] == len(table.columns)


def standardise(values: np.ndarray, fit_rows: np.ndarray) -> np.ndarray:
    """The feature that a numeric column becomes."""
    return encode(LabelledTable((Numbers("x", values),), np.zeros(len(values), np.int64)), fit_rows, "onehot")[0][:, 0]


def small_table() -> LabelledTable:
    colour = Categories("colour", np.array([0, 1, 3, 1, 2, 0], np.int32), ("?", "blue", "green", "red"))
    size = Numbers("size", np.array([1.0, 2.0, 3.0, 4.0, 1000.0, -1000.0]))
    return LabelledTable((size, colour), np.array([0, 1, 0, 1, 0, 1]))


def test_one_hot_by_hand() -> None:
    """Green is not among the training rows; '?' is a level of its own; 0/1 stays 0/1."""
    X, columns = encode(small_table(), np.arange(4), "onehot")
    assert columns == (Column("size", "numeric"), Column("colour", "category", width=3))
    expected = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert_array_equal(X[:, 1:], expected)


def test_ordinal_by_hand() -> None:
    """Codes of '?', blue, red are 0, 1, 2; an unseen level has the next one, 3."""
    X, columns = encode(small_table(), np.arange(4), "ordinal")
    assert columns == (Column("size", "numeric"), Column("colour", "numeric"))
    fitted = np.array([0, 1, 2, 1])
    codes = np.array([0, 1, 2, 1, 3, 0])
    assert_allclose(X[:, 1], (codes - fitted.mean()) / fitted.std(), rtol=1e-6)


def test_numbers_are_standardised_and_clipped() -> None:
    X, _ = encode(small_table(), np.arange(4), "onehot")
    assert_allclose(X[:4, 0].mean(), 0.0, atol=1e-6)
    assert_allclose(X[:4, 0].std(), 1.0, rtol=1e-6)
    assert_array_equal(X[4:, 0], [4.0, -4.0])


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 + 0.1])
def test_constant_column(value: float) -> None:
    values = np.full(1000, value)
    values[-1] += 100.0
    assert_array_equal(standardise(values, np.arange(999))[:-1], np.zeros(999, np.float32))
    assert np.isfinite(standardise(values, np.arange(999))).all()


def test_unknown_encoding() -> None:
    with pytest.raises(UsageError, match=r"unknown encoding 'onehott'. Did you mean 'onehot'"):
        encode(small_table(), np.arange(4), "onehott")


@settings(max_examples=25, deadline=None)
@given(st.integers(10, 300), st.integers(0, 2**31))
def test_split_is_a_partition(n: int, seed: int) -> None:
    numbers = Numbers("row", np.arange(n, dtype=np.float64))
    table = LabelledTable((numbers,), np.arange(n))  # the label is the row's number
    split = encoded_split(table, (0.81, 0.09, 0.10), seed=seed, encoding="onehot")
    rows = np.concatenate([split.train.y, split.valid.y, split.test.y])
    assert_array_equal(np.sort(rows), np.arange(n))
    assert len(split.test) == round(n * 0.10)
    assert len(split.valid) == round(n * 0.09)
    fitted = standardise(numbers.values, split.train.y)
    for part in (split.train, split.valid, split.test):
        assert_array_equal(part.X[:, 0], fitted[part.y])


def test_editing_the_encoder_makes_results_of_tables_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(inspect.getfile(Numbers))
    edited = tmp_path / source.name
    edited.write_bytes(source.read_bytes() + b"CLIP = 5.0\n")
    registry, store = load_registry(), Store(tmp_path / "out")
    cell = make_cell(method="mean-ridge", dataset="adult")
    store.plan([make_plan(cell)], "llpbench run", "0.1.0")
    before = Provenance(registry)
    store.write(make_result(cell, protocol=PROTOCOL, code=before.code(cell), rules=before.rules()))

    def stale_cells() -> list[str]:
        plans, _ = wanted_cells(store.manifest().planned.values(), store, registry, "stale", print, print)
        return [plan.cell.id for plan in plans]

    assert stale_cells() == []
    files_of = fingerprint._files_of
    monkeypatch.setattr(
        fingerprint,
        "_files_of",
        lambda top: ((name, edited if path == source else path) for name, path in files_of(top)),
    )
    assert stale_cells() == [cell.id]
    assert Provenance(registry).other_code(store.results()[0])
