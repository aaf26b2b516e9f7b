"""The dataset csv: files of the user's own, their labels, gaps and bags, and what identifies them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli_runner import llpbench

from llpbench import DatasetError, DataUnavailableError, LLPBenchError, Split, UsageError
from llpbench.data.store import DataStore
from llpbench.experiment.split import check_split
from llpbench_datasets.csv_table import CSV
from llpbench_datasets.csv_table.load import load


def write(folder: Path, text: str, name: str = "data.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def rows(n: int = 60, separator: str = ",") -> str:
    """A number with gaps, a text with gaps, a shop, and a label that the number decides."""
    rng = np.random.default_rng(0)
    lines = [separator.join(["x", "job", "shop", "y"])]
    for i in range(n):
        x = rng.normal()
        fields = ["" if i % 7 == 3 else f"{x:.4f}", ["a", "b", "NA"][i % 3], f"s{i % 12}", "yes" if x > 0 else "no"]
        lines.append(separator.join(fields))
    return "\n".join(lines) + "\n"


def loaded(path: str, seed: int = 0, **options: object) -> Split:
    split = load(DataStore(CSV), seed=seed, path=path, **{"label": "y", **options})  # type: ignore[arg-type]
    check_split(split, CSV)
    return split


def test_table_becomes_a_split(tmp_path: Path) -> None:
    split = loaded(write(tmp_path, rows()), test=0.2, validation=0.1)
    assert [len(part) for part in (split.train, split.valid, split.test)] == [42, 6, 12]
    described = [(c.name, c.kind, c.width) for c in split.columns]
    assert described == [
        ("x", "numeric", 1), ("x is missing", "numeric", 1), ("job", "category", 3), ("shop", "category", 12),
    ]  # fmt: skip
    every = np.vstack([part.X for part in (split.train, split.valid, split.test)])
    assert (every[:, 1] > 0).sum() == len([i for i in range(60) if i % 7 == 3])
    assert np.array_equal(every[:, 2:5].sum(axis=1), np.ones(60))
    known = split.train.X[:, 1] <= 0
    assert abs(split.train.X[known, 0].mean()) < 1e-5
    assert np.ptp(split.train.X[~known, 0]) == 0  # a missing number is the mean of the training rows
    for part in (split.train, split.test):
        there = part.X[:, 1] <= 0
        assert part.X[there & (part.y == 1), 0].min() > part.X[there & (part.y == 0), 0].max()


def test_features_are_those_of_fit(tmp_path: Path) -> None:
    split = loaded(write(tmp_path, rows()))
    missing = split.train.X[:, 1] == 1
    assert set(np.unique(split.train.X[:, 1])) == {0.0, 1.0}  # a mark, not standardised
    assert missing.any()
    assert split.train.X[~missing, 0].std() == pytest.approx(1.0, abs=1e-5)  # scaled by what is known


def test_same_seed_the_same_split(tmp_path: Path) -> None:
    path = write(tmp_path, rows())
    first, again, other = loaded(path), loaded(path), loaded(path, seed=1)
    assert np.array_equal(first.train.X, again.train.X)
    assert not np.array_equal(first.train.X, other.train.X)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_found(tmp_path: Path, separator: str) -> None:
    wanted = loaded(write(tmp_path, rows()))
    found = loaded(write(tmp_path, "\ufeff" + rows(separator=separator).replace("\n", "\r\n"), "other.csv"))
    assert np.array_equal(found.train.X, wanted.train.X)
    name = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}[separator]
    named = loaded(write(tmp_path, rows(separator=separator), "third.csv"), separator=name)
    assert np.array_equal(named.train.X, wanted.train.X)


def test_labels_are_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.choice(["2", "10", "1"], 90)
    path = write(tmp_path, "x,y\n" + "".join(f"{v}.5,{v}\n" for v in values))
    split = loaded(path)
    assert split.classes == 3
    x = split.train.X[:, 0]
    assert [len(np.unique(x[split.train.y == c])) for c in range(3)] == [1, 1, 1]
    assert x[split.train.y == 0].max() < x[split.train.y == 1].max() < x[split.train.y == 2].max()  # 1 < 2 < 10
    binary = loaded(path, positive="2")
    assert binary.classes == 2
    total = sum(part.y.sum() for part in (binary.train, binary.valid, binary.test))
    assert total == (values == "2").sum()


def test_category_of_very_many_values_keeps_the_frequent_ones(tmp_path: Path) -> None:
    lines = [f"t{i % 150},{i % 2}" for i in range(1500)] + [f"u{i},1" for i in range(400)]
    (column,) = loaded(write(tmp_path, "text,y\n" + "\n".join(lines))).columns
    assert column.width == 201


def test_own_bags_stay_whole_and_are_no_feature(tmp_path: Path) -> None:
    path = write(tmp_path, rows(600))
    split = loaded(path, bag="shop", test=0.25, validation=0.25)
    assert "shop" not in [column.name for column in split.columns]
    assert [len(part) for part in (split.train, split.valid, split.test)] == [300, 150, 150]
    for part, bags in ((split.train, 6), (split.valid, 3)):
        assert np.unique(part.bag_of, return_counts=True)[1].tolist() == [50] * bags


@pytest.mark.parametrize("bag", ["", "shop"])
def test_rows_of_a_file_sorted_by_label_are_shuffled(tmp_path: Path, bag: str) -> None:
    """Test rows are scored in the order of the split: one that a file brought along would be the answer."""
    lines = [f"{i % 7},shop {i % 10},{'no' if i < 500 else 'yes'}" for i in range(1000)]
    split = loaded(write(tmp_path, "x,shop,y\n" + "\n".join(lines)), bag=bag)
    for part in (split.train, split.valid, split.test):
        half = len(part) // 2
        assert abs(part.y[:half].mean() - part.y[half:].mean()) < 0.5


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (rows(), {"label": "z"}, "unknown column of {path}: 'z'. Available: job, shop, x, y."),
        (rows(), {"label": ""}, "the label column is missing: set label=NAME. Columns: x, job, shop, y."),
        (rows(), {"bag": "store"}, "unknown column of {path}: 'store'. Available: job, shop, x, y."),
        (rows(), {"bag": "y"}, "cannot be both label and bag"),
        (rows(), {"bag": "job"}, "the bag 'job' is missing in 20 rows"),
        (
            rows(),
            {"positive": "maybe"},
            "'maybe'. Did you mean 'yes'? Available: no, yes.",
        ),
        ("x,y\n" + "1,a\n" * 20, {}, "only one value ('a')"),
        ("x,y\n" + "1,a\n2,b\n3,\n" * 9, {}, "is missing in 9 rows (the first is row 3)"),
        ("x,y\n" + "".join(f"1,{i}\n" for i in range(200)), {}, "200 different values, at most 100 are allowed"),
        ("y\n" + "a\nb\n" * 20, {}, "no feature columns besides 'y'"),
        ("x,y\n1,a\n2,b\n", {}, "2 rows; at least 10"),
        ("x,b,y\n" + "1,p,a\n2,q,b\n" * 10, {"bag": "b"}, "makes 2 bags"),
        ("x,y\n1,a\n1,2,b\n", {}, "line 3: 3 fields, but the first line names 2"),
        ("x,x,y\n1,2,a\n", {}, "several columns of the name 'x'"),
        ("x,,y\n1,2,a\n", {}, "a column without a name"),
        ("x,y\n", {}, "no rows below its first line"),
        ("", {}, "no rows below its first line"),
        ('x,y\n"1,a\n', {}, "line 2"),
    ],
)
def test_invalid_files_are_explained(tmp_path: Path, text: str, options: dict[str, str], message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(LLPBenchError, match=re.escape(message.format(path=path))):
        loaded(path, **options)


def test_missing_and_binary_files_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataUnavailableError, match=r"path of the file is missing: csv\[path=data.csv;label=y\]"):
        load(DataStore(CSV), seed=0)
    with pytest.raises(DatasetError, match=r"cannot read .*: No such file"):
        loaded(str(tmp_path / "none.csv"))
    (tmp_path / "bytes.csv").write_bytes(b"x,y\n\xff\xfe,1\n")
    with pytest.raises(DatasetError, match="is not UTF-8 text"):
        loaded(str(tmp_path / "bytes.csv"))


def test_content_is_part_of_the_path(tmp_path: Path) -> None:
    path = write(tmp_path, rows())
    parameter = CSV.param("path")
    first = parameter.parse(path)
    assert re.fullmatch(re.escape(path) + r"#[0-9a-f]{16}", str(first))
    assert parameter.parse(path) == first == parameter.parse(str(first))
    loaded(str(first))
    write(tmp_path, rows(70))
    assert parameter.parse(path) != first
    with pytest.raises(DatasetError, match="has changed since the cell was planned"):
        loaded(str(first))
    with pytest.raises(UsageError, match=r"cannot read .*none\.csv: No such file"):
        parameter.parse(str(tmp_path / "none.csv"))


def cells(folder: Path) -> list[dict[str, object]]:
    (results,) = (folder / "out").glob("manifest.json")
    planned = json.loads(results.read_text())["planned"]
    return [json.loads((folder / "out" / "cells" / f"{cell}.json").read_text())["result"] for cell in planned]


@pytest.mark.slow
def test_changed_content_under_the_same_path_is_rejected(tmp_path: Path) -> None:
    write(tmp_path, rows(300))
    command = [
        "run", "--methods", "mean-ridge", "--datasets", "csv[path=data.csv;label=y;bag=shop]",
        "--schemes", "own-bags[most=30]", "--seeds", "1", "--out", "out", "--quiet",
    ]  # fmt: skip
    for n in (300, 300, 420):
        write(tmp_path, rows(n))
        done = llpbench(*command, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    results = cells(tmp_path)
    assert [sum(result["rows"].values()) for result in results] == [300, 420]  # type: ignore[attr-defined]
    assert len({result["dataset_label"] for result in results}) == 2
    assert [result["bags"]["train"] for result in results] == [10, 20]  # type: ignore[index]
    assert [result["bags"]["valid"] for result in results] == [1, 2]  # type: ignore[index]
