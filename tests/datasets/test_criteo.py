"""Criteo: the format, the draw in one pass, the features, the files."""

from __future__ import annotations

import gzip
import inspect
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from criteo_text import line, numbered, write
from hypothesis import given, settings
from hypothesis import strategies as st

from llpbench import DatasetError, Split, UnknownNameError, UsageError
from llpbench.contracts.errors import ChecksumError, DataUnavailableError
from llpbench.data.store import DataStore
from llpbench_datasets.criteo import CRITEO, SAMPLE, text
from llpbench_datasets.criteo.encode import column_features, encode, frequent, hashed_features
from llpbench_datasets.criteo.load import load, met_steps
from llpbench_datasets.criteo.sample import SHARES, draw, part_sizes
from llpbench_datasets.criteo.synthetic import write_synthetic
from llpbench_datasets.criteo.text import FIELDS, MISSING, blocks


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("LLPBENCH_DATA", raising=False)
    return tmp_path / "cache"


def read_all(path: Path, size: int = 2**16) -> np.ndarray:
    return np.concatenate([block.rows(np.arange(len(block))) for block in blocks(path, size)])


def numbers(rows: np.ndarray) -> np.ndarray:
    """The line numbers that ``numbered`` left in I2."""
    return rows[:, 2]


# --- the format -----------------------------------------------------------------------------------------

FIELD = st.one_of(st.none(), st.integers(-(2**31) + 1, 2**31 - 1))
HASH = st.one_of(st.none(), st.integers(0, 2**32 - 1))
ROW = st.tuples(st.integers(0, 1), st.lists(FIELD, min_size=13, max_size=13), st.lists(HASH, min_size=26, max_size=26))


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=6), size=st.integers(1, 400), crlf=st.booleans(), ended=st.booleans())
def test_every_value_reads_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], size: int, crlf: bool, ended: bool
) -> None:
    lines = [
        "\t".join(
            [str(label), *("" if i is None else str(i) for i in ints), *("" if h is None else f"{h:08x}" for h in hs)]
        )
        for label, ints, hs in rows
    ]
    end = "\r\n" if crlf else "\n"
    path = tmp_path_factory.getbasetemp() / "values.txt"
    path.write_bytes((end.join(lines) + (end if ended else "")).encode())
    found = read_all(path, size)
    assert len(found) == len(rows)
    for row, (label, ints, hashes) in zip(found, rows, strict=True):
        assert row[0] == label
        assert row[1:14].tolist() == [MISSING if i is None else i for i in ints]
        assert row[14:FIELDS].view(np.uint32).tolist() == [h or 0 for h in hashes]
        assert [bool(row[FIELDS] >> c & 1) for c in range(26)] == [h is None for h in hashes]


GOOD = line(0).split(b"\t")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, b"2", "label must be 0 or 1, not '2'"),
        (0, b"", "label must be 0 or 1, not ''"),
        (0, b"-1", "label must be 0 or 1, not '-1'"),
        (3, b"1.5", "I3 must be a whole number of 32 bits or nothing, not '1.5'"),
        (3, b"-", "I3 must be a whole number"),
        (3, b"1-2", "I3 must be a whole number"),
        (13, b"2147483648", "I13 must be a whole number of 32 bits"),
        (13, b"99999999999999999999", "I13 must be a whole number of 32 bits"),
        (14, b"12345", "C1 must be 8 hex digits or nothing, not '12345'"),
        (39, b"0000000g", "C26 must be 8 hex digits or nothing, not '0000000g'"),
        (39, b"\x1b[31m\xff\xff", r"C26 must be 8 hex digits or nothing, not '\x1b[31m\xff\xff'"),
        (20, b"0" * 900, "not '" + "0" * 40 + "'..."),
    ],
)
@pytest.mark.parametrize("size", [300, 2**20])
def test_wrong_field_is_named_with_its_line(tmp_path: Path, place: int, value: bytes, words: str, size: int) -> None:
    wrong = b"\t".join([*GOOD[:place], value, *GOOD[place + 1 :]])
    path = write(tmp_path / "train.txt", [*[line(i) for i in range(8)], wrong, line(9)])
    with pytest.raises(DatasetError) as caught:
        draw(path, 100, seed=0, block=size)
    message = str(caught.value)
    assert f"{path}, line 9: " in message
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"\t".join(GOOD[1:]), "39 fields, but a line holds 40"),
        (b"\t".join(GOOD[1:]), "test.txt has no labels"),
        (b"\t".join([*GOOD, b"x"]), "41 fields"),
        (b"", "1 field, but"),
        (b"I am a web page", "The line begins 'I am a web page'"),
    ],
)
def test_line_with_wrong_fields_is_rejected_even_if_not_drawn(tmp_path: Path, bad: bytes, words: str) -> None:
    path = write(tmp_path / "train.txt", [*[line(i) for i in range(200)], bad, *[line(i) for i in range(5)]])
    with pytest.raises(DatasetError) as caught:
        draw(path, 1, seed=0, block=500)
    assert f"{path}, line 201: " in str(caught.value)
    assert words in str(caught.value)


def test_binary_files_are_rejected(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(line(i) + b"\n" for i in range(50)))
    (tmp_path / "cut.txt.gz").write_bytes(whole[:-30])
    with pytest.raises(DatasetError, match="damaged or cut short"):
        draw(tmp_path / "cut.txt.gz", 10, 0)
    (tmp_path / "flipped.txt.gz").write_bytes(whole[:40] + bytes([whole[40] ^ 255]) + whole[41:])
    with pytest.raises(DatasetError, match="damaged or cut short"):
        draw(tmp_path / "flipped.txt.gz", 10, 0)
    (tmp_path / "one-line.bin").write_bytes(b"x" * 3 * text.LONGEST)
    with pytest.raises(DatasetError, match=r"line 1: longer than 65,536 bytes"):
        draw(tmp_path / "one-line.bin", 10, 0)
    with pytest.raises(DatasetError, match="cannot be read: No such file"):
        draw(tmp_path / "absent.txt", 10, 0)


# --- the draw -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 7, 100, 399, 400, 1000])
def test_draw_is_exact_without_replacement_and_as_stated(tmp_path: Path, rows: int) -> None:
    path = numbered(tmp_path / "train.txt", 400)
    found = numbers(draw(path, rows, seed=3))
    assert len(found) == min(rows, 400)
    assert len(set(found.tolist())) == len(found)
    stated = np.argsort(np.random.default_rng(3).random(400), kind="stable")[:rows]
    np.testing.assert_array_equal(found, stated)


@pytest.mark.slow
def test_draw_is_independent_of_blocks_and_compression(tmp_path: Path) -> None:
    plain, zipped = (numbered(tmp_path / name, 3000) for name in ("train.txt", "train.txt.gz"))
    wanted = draw(plain, 120, seed=1)
    for path in (plain, zipped):
        for block in (1, 700, 50_000):
            np.testing.assert_array_equal(draw(path, 120, seed=1, block=block if path == plain else 5000), wanted)
    assert not np.array_equal(draw(plain, 120, seed=2), wanted)


def test_long_file_is_thinned_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than the buffer holds: the draw is still the one stated, and few lines are read in full."""
    rows, wanted = 12_000, 50
    path = numbered(tmp_path / "train.txt", rows)
    read: list[int] = []
    real = text.TextBlock.rows
    monkeypatch.setattr(text.TextBlock, "rows", lambda self, which: read.append(len(which)) or real(self, which))
    found = numbers(draw(path, wanted, seed=5, block=2**14))
    np.testing.assert_array_equal(found, np.argsort(np.random.default_rng(5).random(rows), kind="stable")[:wanted])
    assert sum(read) < 4096 + 10 * wanted  # the buffer, and a few of the rest


def test_one_pass_and_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    real = text._pieces
    monkeypatch.setattr(text, "_pieces", lambda path, size: opened.append(path) or real(path, size))
    peaks = []
    for rows in (4_000, 16_000):
        path = numbered(tmp_path / f"{rows}.txt", rows)
        tracemalloc.start()
        draw(path, 100, seed=0, block=2**14)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert len(opened) == 2
    assert peaks[1] < 1.5 * peaks[0]


def test_every_row_is_equally_likely_for_every_part(tmp_path: Path) -> None:
    """Chi-square over 300 draws of 29 from 60 rows; seeds are fixed, so this holds or not, once and for all."""
    from scipy.stats import chi2

    path = numbered(tmp_path / "train.txt", 60)
    sizes = part_sizes(29)
    assert sizes == (20, 4, 5)
    tally = np.zeros((3, 60))
    for seed in range(300):
        found = numbers(draw(path, 29, seed))
        for part, drawn in enumerate(np.split(found, np.cumsum(sizes)[:-1])):
            tally[part, drawn] += 1
    for part, size in enumerate(sizes):
        share = size / 60
        statistic = float(((tally[part] - 300 * share) ** 2).sum() / (300 * share * (1 - share))) * 59 / 60
        assert chi2.cdf(statistic, 59) == pytest.approx(0.5, abs=0.499), (part, statistic)


@given(st.integers(20, 3_000_000))
def test_shares_of_any_size(n: int) -> None:
    sizes = part_sizes(n)
    assert sum(sizes) == n
    assert min(sizes) > 0
    for size, share in zip(sizes, SHARES, strict=True):
        assert abs(size - n * share / sum(SHARES)) <= 1
    assert part_sizes(sum(SHARES)) == SHARES


# --- features -------------------------------------------------------------------------------------------


def synthetic_rows(tmp_path: Path, rows: int = 400, seed: int = 0) -> np.ndarray:
    write_synthetic(tmp_path / "s.txt", rows, seed)
    return draw(tmp_path / "s.txt", rows, 0)


def test_encoding_is_fitted_on_training_rows_and_blind_to_labels(tmp_path: Path) -> None:
    rows = synthetic_rows(tmp_path)
    first = encode(rows, 300, 16)
    other = rows.copy()
    other[:, 0] = 1 - other[:, 0]
    other[300:] = rows[300:][::-1]
    second = encode(other, 300, 16)
    for name in ("numbers", "absent", "buckets"):
        np.testing.assert_array_equal(getattr(first, name)[:300], getattr(second, name)[:300])
        np.testing.assert_array_equal(getattr(first, name)[300:], getattr(second, name)[300:][::-1])
    present = first.absent == 0
    assert np.abs(first.numbers).max() <= 4.0
    assert (first.numbers[~present] == 0).all()
    for column in range(13):
        inside = first.numbers[:300, column][present[:300, column]]
        assert abs(inside.mean()) < 0.1
        assert 0.8 < inside.std() < 1.05


def test_buckets_frequent_hashed_and_missing() -> None:
    values = np.repeat(np.arange(100, 110, dtype=np.uint32), np.arange(10, 0, -1))
    own = frequent(values, 16)
    assert own.tolist() == [100, 101, 102, 103, 104, 105, 106]
    assert frequent(np.array([1, 2, 3, 3], np.uint32), 16).tolist() == [3]
    rows = np.zeros((len(values) + 2, 42 - 1), np.int32)
    rows[:-2, 14] = values.view(np.int32)
    rows[-2, FIELDS] = 1
    rows[-1, 14] = 999_999
    found = encode(rows, len(values), 16).buckets[:, 0]
    assert found[-2] == 0
    assert found[-1] >= 8
    assert len(set(found[:-2][values < 107])) == 7
    assert set(found[:-2][values < 107]) <= set(range(1, 8))
    assert (found[:-2][values >= 107] >= 8).all()
    assert found.max() < 16


def test_hashed_features_by_hand(tmp_path: Path) -> None:
    """Against a loop over rows and columns that draws the same vectors."""
    rows = synthetic_rows(tmp_path, 60)
    X = hashed_features(rows, 40, 7, dim=5, size=16)
    encoded = encode(rows, 40, 16)
    rng = np.random.default_rng(7)
    numeric = [rng.standard_normal((18, 5), dtype=np.float32) for _ in range(13)]
    category = [rng.standard_normal((16, 5), dtype=np.float32) for _ in range(26)]
    for i in range(60):
        total = np.zeros(5)
        for c in range(13):
            missing = encoded.absent[i, c] > 0
            total += numeric[c][17 if missing else int(np.rint(2 * (encoded.numbers[i, c] + 4)))]
        for c in range(26):
            total += category[c][encoded.buckets[i, c]]
        np.testing.assert_allclose(X[i, 26:], total / np.sqrt(39), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(X[:, :13], encoded.numbers)
    np.testing.assert_array_equal(X[:, 13:26], encoded.absent)


def test_column_features_hold_the_numbers_and_one_bucket_of_each_category(tmp_path: Path) -> None:
    rows = synthetic_rows(tmp_path, 60)
    X, columns = column_features(rows, 40, 16)
    encoded = encode(rows, 40, 16)
    assert [column.name for column in columns] == list(text.NAMES[1:])
    assert sum(column.width for column in columns) == X.shape[1] == 13 + 26 * 16
    np.testing.assert_array_equal(X[:, :13], encoded.numbers)
    blocks_of_categories = X[:, 13:].reshape(60, 26, 16)
    assert set(np.unique(blocks_of_categories)) == {0.0, 1.0}
    np.testing.assert_array_equal(blocks_of_categories.sum(axis=2), 1)
    np.testing.assert_array_equal(blocks_of_categories.argmax(axis=2), encoded.buckets)


# --- the synthetic file ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_synthetic_file_is_like_the_real_one(tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    rows = synthetic_rows(tmp_path, 8000)
    assert abs(rows[:, 0].mean() - 0.25) < 0.02
    assert 0.40 < (rows[:, 1] == MISSING).mean() < 0.50
    assert 0.70 < (rows[:, FIELDS] >> 21 & 1).mean() < 0.80
    _, counts = np.unique(rows[:, 16], return_counts=True)
    assert len(counts) > 1000
    assert counts.max() > 300
    X, y = hashed_features(rows, 6000, 0, dim=64, size=128), rows[:, 0]
    model = LogisticRegression(C=0.1, max_iter=200).fit(X[:6000], y[:6000])
    assert roc_auc_score(y[6000:], model.decision_function(X[6000:])) > 0.65


@pytest.mark.slow
def test_synthetic_file_depends_on_its_arguments_alone(tmp_path: Path) -> None:
    for name, rows, seed in (("a.txt", 50, 1), ("b.txt.gz", 50, 1), ("c.txt", 20, 1), ("d.txt", 50, 2)):
        write_synthetic(tmp_path / name, rows, seed)
    a, b, c, d = (read_all(tmp_path / name) for name in ("a.txt", "b.txt.gz", "c.txt", "d.txt"))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(a[:20], c)
    assert not np.array_equal(a, d)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "b.txt.gz", "c.txt", "d.txt"]


# --- loading --------------------------------------------------------------------------------------------


def test_load_from_a_data_folder(tmp_path: Path, own_cache: Path) -> None:
    write_synthetic(tmp_path / "data" / "criteo" / "train.txt", 290)
    store = DataStore(CRITEO, tmp_path / "data")
    split = load(store, seed=1, features="hashed", dim=8)
    assert isinstance(split, Split)
    assert [len(part) for part in (split.train, split.valid, split.test)] == [200, 40, 50]
    assert split.train.X.shape == (200, 34)
    assert split.train.X.dtype == np.float32
    again = load(store, seed=1, features="hashed", dim=8)
    np.testing.assert_array_equal(split.test.X, again.test.X)
    assert not np.array_equal(split.train.y, load(store, seed=2, features="hashed", dim=8).train.y)
    fewer = load(store, seed=1, features="hashed", dim=8, rows=145)
    assert [len(part) for part in (fewer.train, fewer.valid, fewer.test)] == [100, 20, 25]


@pytest.mark.slow
def test_file_is_read_once_for_all_options(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from llpbench_datasets.criteo import load as module

    path = tmp_path / "data" / "criteo" / "train.txt"
    write_synthetic(path, 290)
    calls: list[Path] = []
    monkeypatch.setattr(module, "draw", lambda path, rows, seed: calls.append(path) or draw(path, rows, seed))
    store = DataStore(CRITEO, tmp_path / "data")
    for dim in (8, 16):
        load(store, seed=1, features="hashed", dim=dim)
    assert calls == [path]
    write_synthetic(path, 300)
    assert len(load(store, seed=1, features="hashed").train) == 207
    assert calls == [path, path]


@pytest.mark.slow
def test_which_file_is_taken(tmp_path: Path, own_cache: Path) -> None:
    folder = tmp_path / "data" / "criteo"
    write_synthetic(folder / "train.txt.gz", 40)
    write_synthetic(folder / "mine.txt", 60)
    write_synthetic(tmp_path / "elsewhere.txt", 80)
    store = DataStore(CRITEO, tmp_path / "data")

    def total(file: str) -> int:
        split = load(store, seed=0, features="hashed", file=file)
        return sum(map(len, (split.train, split.valid, split.test)))

    assert total("") == 40
    assert total("mine.txt") == 60
    assert total(str(tmp_path / "elsewhere.txt")) == 80
    write_synthetic(folder / "train.txt", 50)
    assert total("") == 50
    with pytest.raises(UsageError, match="names no file"):
        total(str(tmp_path / "nowhere.txt"))
    with pytest.raises(DatasetError, match="leads out of its data folder"):
        total("../adult/adult.data")
    with pytest.raises(DataUnavailableError, match=r"criteo/typo\.txt"):
        total("typo.txt")


def test_missing_file_explains_where_to_get_it(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(DataUnavailableError) as caught:
        load(DataStore(CRITEO, tmp_path / "data"), seed=0)
    message = str(caught.value)
    for words in (
        "kaggle.com",
        str(tmp_path / "data" / "criteo" / "train.txt"),
        "train.txt.gz",
        "synthetic",
        SAMPLE.path,
    ):
        assert words in message
    assert DataStore(CRITEO, tmp_path / "data").fetch() == []


def test_damaged_sample_is_rejected(tmp_path: Path, own_cache: Path) -> None:
    path = tmp_path / "data" / SAMPLE.path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not the sample")
    with pytest.raises(ChecksumError, match="another file under that name"):
        load(DataStore(CRITEO, tmp_path / "data"), seed=0)


def test_wrong_options(tmp_path: Path, own_cache: Path) -> None:
    write_synthetic(tmp_path / "criteo" / "train.txt", 12)
    store = DataStore(CRITEO, tmp_path)
    with pytest.raises(DatasetError, match="12 rows; criteo needs at least 20"):
        load(store, seed=0, features="hashed")
    with pytest.raises(UnknownNameError, match="hashed, met"):
        load(store, seed=0, features="mte")


def test_declared_options_are_the_loaders() -> None:
    taken = inspect.signature(load).parameters
    assert {p.name: p.default for p in CRITEO.params} == {
        name: p.default for name, p in taken.items() if name not in ("files", "seed")
    }
    assert CRITEO.param("steps").parse("auto") == "auto"
    assert CRITEO.param("steps").parse("300") == 300
    assert [met_steps(n) for n in (10, 8806, 10**6)] == [50, 413, 4000]


def test_real_sample() -> None:
    store = DataStore(CRITEO)
    try:
        path = store.path(SAMPLE.path)
    except DataUnavailableError as error:
        pytest.skip(str(error))
    rows = draw(path, 1_450_000, seed=0)
    assert len(rows) == 12_768
    assert rows[:, 0].sum() == 3_003
    assert part_sizes(len(rows)) == (8_806, 1_761, 2_201)
    assert len(np.unique(rows, axis=0)) == 12_768
