"""Adult and Bank Marketing as they are: rows, positives, splits, columns."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from llpbench import DatasetSpec, Split, UsageError
from llpbench.contracts.errors import DataUnavailableError
from llpbench.data.store import DataStore
from llpbench_datasets.adult import ADULT
from llpbench_datasets.adult.load import COLUMNS, read
from llpbench_datasets.marketing import MARKETING


def load(spec: DatasetSpec, seed: int = 0, **options: object) -> Split:
    """Load a real dataset, or skip with the reason why it cannot be had."""
    try:
        split = spec.load()(DataStore(spec), seed=seed, **options)
    except DataUnavailableError as error:
        pytest.skip(str(error))
    assert isinstance(split, Split)
    return split


def parts(split: Split) -> tuple[np.ndarray, np.ndarray]:
    each = (split.train, split.valid, split.test)
    return np.concatenate([p.X for p in each]), np.concatenate([p.y for p in each])


@pytest.mark.parametrize(
    ("spec", "sizes", "positives", "widths"),
    [
        (ADULT, (39_562, 4_396, 4_884), 11_687, {"onehot": 108, "ordinal": 14}),
        (MARKETING, (20_094, 10_047, 15_070), 5_289, {"onehot": 51, "ordinal": 16}),
    ],
    ids=["adult", "marketing"],
)
@pytest.mark.parametrize("encoding", ["onehot", "ordinal"])
def test_rows_positives_and_columns(
    spec: DatasetSpec, sizes: tuple[int, ...], positives: int, widths: dict[str, int], encoding: str
) -> None:
    split = load(spec, encoding=encoding)
    assert tuple(map(len, (split.train, split.valid, split.test))) == sizes
    X, y = parts(split)
    assert len(y) == spec.rows
    assert y.sum() == positives
    assert X.dtype == np.float32
    assert np.isfinite(X).all()
    assert np.abs(X).max() <= 4.0
    assert X.shape[1] == sum(column.width for column in split.columns) == widths[encoding]
    assert split.classes == 2
    rate = positives / len(y)
    for part in (split.train, split.valid, split.test):
        assert abs(part.y.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / len(part))


def test_adult_columns() -> None:
    split = load(ADULT)
    assert tuple(column.name for column in split.columns) == COLUMNS
    widths = {column.name: column.width for column in split.columns if column.kind == "category"}
    assert widths == {
        "workclass": 9,
        "education": 16,
        "marital-status": 7,
        "occupation": 15,
        "relationship": 6,
        "race": 5,
        "sex": 2,
        "native-country": 42,
    }
    start = sum(column.width for column in split.columns[:1])
    assert_array_equal(split.train.X[:, start : start + 9].sum(axis=1), 1.0)
    assert_allclose(split.train.X[:, 0].mean(), 0.0, atol=1e-3)


def test_adult_loads_single_files(tmp_path: Path) -> None:
    store = DataStore(ADULT)
    try:
        data, test = (store.path(file.path) for file in ADULT.files)
    except DataUnavailableError as error:
        pytest.skip(str(error))
    first, second, both = read([data]), read([test]), read([data, test])
    assert (len(first), first.labels.sum()) == (32_561, 7_841)
    assert (len(second), second.labels.sum()) == (16_281, 3_846)
    assert_array_equal(both.labels, np.concatenate([first.labels, second.labels]))


def test_country_with_one_row_is_encoded() -> None:
    """One row of Adult comes from a country of its own: in training it has a column, elsewhere all zeros."""
    seen = set()
    for seed in range(12):
        split = load(ADULT, seed=seed)
        country = split.columns[-1]
        inside = country.width == 42
        seen.add(inside)
        held = np.concatenate([split.valid.X, split.test.X])[:, -country.width :]
        assert int((held.sum(axis=1) == 0).sum()) == (0 if inside else 1)
    assert True in seen


def test_marketing_can_omit_duration() -> None:
    full, advised = load(MARKETING), load(MARKETING, duration=False)
    names = [column.name for column in full.columns]
    assert len(names) == 16
    assert [column.name for column in advised.columns] == [name for name in names if name != "duration"]
    at = sum(column.width for column in full.columns[: names.index("duration")])
    assert_array_equal(advised.test.X, np.delete(full.test.X, at, axis=1))
    assert_array_equal(advised.test.y, full.test.y)


@pytest.mark.parametrize(("part", "name"), [("train", "train"), ("valid", "val"), ("test", "test")])
def test_released_marketing_equals_the_released_files(part: str, name: str) -> None:
    """Every value and label, in the order of the files, for every seed."""
    folder = Path(os.environ.get("LLPBENCH_DATA", "")) / "marketing" / "released"
    if not (folder / f"x_{name}.csv.gz").is_file():
        pytest.skip("the released files are not in LLPBENCH_DATA")
    X, y = (np.loadtxt(folder / f"{letter}_{name}.csv.gz", delimiter=",", skiprows=1) for letter in "xy")
    loaded = getattr(load(MARKETING, seed=3, encoding="released"), part)
    assert_array_equal(loaded.X, X.astype(np.float32))
    assert_array_equal(loaded.y, y)


def test_released_marketing_has_seven_constant_columns() -> None:
    split = load(MARKETING, encoding="released")
    assert tuple(map(len, (split.train, split.valid, split.test))) == (27_126, 9_042, 9_043)
    constant = [
        c.name
        for c, low, high in zip(split.columns, *(f(parts(split)[0], axis=0) for f in (np.min, np.max)), strict=True)
        if low == high
    ]
    assert constant == ["marital", "education", "default", "housing", "loan", "contact", "poutcome"]


def test_released_marketing_cannot_omit_duration() -> None:
    with pytest.raises(UsageError, match="use duration=false with encoding=onehot or encoding=ordinal"):
        load(MARKETING, encoding="released", duration=False)


@pytest.mark.parametrize("spec", [ADULT, MARKETING], ids=lambda spec: spec.name)
def test_same_seed_same_data(spec: DatasetSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the compact form of the table is made afresh."""
    try:
        paths = DataStore(spec).fetch()
    except DataUnavailableError as error:
        pytest.skip(str(error))
    first = load(spec, seed=5)
    root = paths[0].parents[len(Path(spec.files[0].path).parts) - 1]
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path))
    second = spec.load()(DataStore(spec, root), seed=5)
    other = load(spec, seed=6) if len(paths) == 1 else spec.load()(DataStore(spec, root), seed=6)
    for name in ("train", "valid", "test"):
        assert_array_equal(getattr(first, name).X, getattr(second, name).X)
        assert_array_equal(getattr(first, name).y, getattr(second, name).y)
    assert not np.array_equal(first.train.y, other.train.y)


@pytest.mark.parametrize("spec", [ADULT, MARKETING], ids=lambda spec: spec.name)
def test_declared_options_are_the_loaders(spec: DatasetSpec) -> None:
    import inspect

    taken = inspect.signature(spec.load()).parameters
    for param in spec.params:
        assert taken[param.name].default == param.default
