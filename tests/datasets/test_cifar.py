"""CIFAR-10: both layouts, hostile files, the three tasks, the three kinds of features, and the real files."""

from __future__ import annotations

import inspect
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import PATIENCE, quick
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tiny_cifar import EACH, Tiny, binary_batch, draw, make_tiny, python_batch

from llpbench import DatasetError, Split, UnknownNameError, UsageError
from llpbench.contracts.errors import ChecksumError, DataUnavailableError
from llpbench.data.store import DataStore, locate
from llpbench.experiment.split import check_split
from llpbench_datasets import cifar
from llpbench_datasets.cifar import batches
from llpbench_datasets.cifar.batches import read_batch
from llpbench_datasets.cifar.load import MACHINES, SHIP

SPECS = ("cifar-b", "cifar-s", "cifar10")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LLPBENCH_OFFLINE", "1")
    monkeypatch.delenv("LLPBENCH_DATA", raising=False)
    return make_tiny(tmp_path / "data", monkeypatch)


def load(tiny: Tiny, name: str = "cifar10", seed: int = 0, root: Path | None = None, **options: object) -> Split:
    split = tiny.spec(name).load()(tiny.store(name, root), seed=seed, **options)
    check_split(split, tiny.spec(name))
    assert isinstance(split, Split)
    return split


# -- the two layouts ---------------------------------------------------------------------------------------------------


@quick
@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_both_layouts_hold_the_same(tmp_path_factory: pytest.TempPathFactory, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 3, 32, 32)).astype(np.uint8)
    labels = rng.integers(0, 10, n).astype(np.uint8)
    folder = tmp_path_factory.mktemp("layouts")
    for path, body in (
        (folder / "data_batch_1", python_batch(images, labels)),
        (folder / "data_batch_1.bin", binary_batch(images, labels)),
    ):
        path.write_bytes(body)
        found_images, found_labels = read_batch(path)
        assert found_images.dtype == found_labels.dtype == np.uint8
        assert_array_equal(found_images, images)
        assert_array_equal(found_labels, labels)


def test_pixels_have_the_documented_order(tmp_path: Path) -> None:
    """1,024 red, 1,024 green, 1,024 blue values, row by row."""
    raw = np.arange(3072) % 251
    (tmp_path / "a.bin").write_bytes(bytes([7, *raw.tolist()]))
    images, labels = read_batch(tmp_path / "a.bin")
    assert labels.tolist() == [7]
    assert images[0, 1, 2, 3] == raw[1024 + 2 * 32 + 3]


# -- hostile and damaged files -----------------------------------------------------------------------------------------


def hostile(name: str, target: Path) -> bytes:
    images, labels = draw(n=2)
    command = f"touch {target}".encode()
    good = python_batch(images, labels)
    call = b"U" + bytes([len(command)]) + command + b"\x85R"
    return {
        "os.system": b"\x80\x02cos\nsystem\n" + call + b".",
        "posix.system beside good data": python_batch(images, labels, extra=b"U\x01xcposix\nsystem\n" + call),
        "eval": b"\x80\x02c__builtin__\neval\nU\x0b__import__('\x85R.",
        "getattr": b"\x80\x02cbuiltins\ngetattr\ncnumpy\nndarray\nU\x07__new__\x86R.",
        "numpy.load": b"\x80\x02cnumpy\nload\n" + call + b".",
        "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93" + call + b".",
        "instance": b"\x80\x02(" + b"U" + bytes([len(command)]) + command + b"ios\nsystem\n.",
        "objects": python_batch(images, labels, kind=b"O8"),
        "extension code": b"\x80\x02\x82\x01.",
        "cut": good[:-100],
        "empty": b"",
        "a list": b"\x80\x02].",
        "text for data": b"\x80\x02}(U\x04dataU\x01xU\x06labels]u.",
        "labels out of range": python_batch(images, labels + 10),
        "too many labels": python_batch(images, labels).replace(b"](K", b"](K\x01K", 1),
        "a huge shape": good.replace(b"J" + struct.pack("<i", 3072), b"J" + struct.pack("<i", 2**30), 1),
        "a negative shape": good.replace(b"J" + struct.pack("<i", 3072), b"J" + struct.pack("<i", -5), 1),
    }[name]


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "posix.system beside good data",
        "eval",
        "getattr",
        "numpy.load",
        "stack global",
        "instance",
        "objects",
        "extension code",
        "cut",
        "empty",
        "a list",
        "text for data",
        "labels out of range",
        "too many labels",
        "a huge shape",
        "a negative shape",
    ],
)
def test_hostile_pickles_are_not_executed(tmp_path: Path, name: str) -> None:
    target = tmp_path / "touched"
    path = tmp_path / "data_batch_1"
    path.write_bytes(hostile(name, target))
    with pytest.raises(DatasetError, match=r"data_batch_1 is not a batch of CIFAR-10: .+"):
        read_batch(path)
    assert not target.exists()


def test_hostile_pickle_works_with_plain_pickle(tmp_path: Path) -> None:
    """Or the test above could not fail."""
    import pickle

    target = tmp_path / "touched"
    assert pickle.loads(hostile("os.system", target)) == 0
    assert target.exists()


@pytest.mark.parametrize(
    "body", [b"", b"\x00" * 3072, b"\x00" * 3074, b"\x0a" + b"\x00" * 3072], ids=["empty", "short", "long", "label"]
)
def test_damaged_binary_files(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "data_batch_1.bin").write_bytes(body)
    with pytest.raises(DatasetError, match="is not a batch of CIFAR-10"):
        read_batch(tmp_path / "data_batch_1.bin")


def test_files_are_verified_before_unpickling(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny.python / cifar.FILES[3].path
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    opened: list[bytes] = []

    def watched(contents: bytes) -> tuple[np.ndarray, np.ndarray]:
        opened.append(contents)
        return real(contents)

    real = batches._from_pickle
    monkeypatch.setattr(batches, "_from_pickle", watched)
    with pytest.raises(ChecksumError, match="data_batch_4"):
        load(tiny)
    assert len(opened) == 3


# -- where files come from ---------------------------------------------------------------------------------------------


def test_either_layout_is_accepted(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number, root in enumerate((tiny.python, tiny.binary)):
        monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / f"cache-{number}"))
        found.append(load(tiny, root=root, features="raw"))
        assert {item.state for item in locate(tiny.spec(), root)} == {"ok"}
    for part in ("train", "valid", "test"):
        assert_array_equal(getattr(found[0], part).X, getattr(found[1], part).X)
        assert_array_equal(getattr(found[0], part).y, getattr(found[1], part).y)


def test_cached_layout_is_accepted(tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(exist_ok=True)
    (tiny.binary).rename(tmp_path / "cache" / "data")
    (tmp_path / "empty").mkdir()
    split = load(tiny, root=tmp_path / "empty", features="raw")
    assert len(split.train) + len(split.valid) == 5 * EACH


def test_missing_file_names_both_layouts(tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataUnavailableError) as caught:
        load(tiny, root=tmp_path / "empty")
    assert "cifar-10-batches-py/data_batch_1" in str(caught.value)
    assert "cifar-10-batches-bin/data_batch_1.bin" in str(caught.value)


def test_damaged_file_of_the_other_layout_is_rejected(tiny: Tiny) -> None:
    (tiny.binary / cifar.FILES[0].forms[0].path).write_bytes(b"something else")
    with pytest.raises(ChecksumError, match=r"data_batch_1\.bin"):
        load(tiny, root=tiny.binary)


# -- tasks -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "positive"), [("cifar-b", MACHINES), ("cifar-s", SHIP), ("cifar10", None)])
def test_tasks(tiny: Tiny, name: str, positive: tuple[int, ...] | None) -> None:
    split = load(tiny, name, seed=3, features="raw")
    assert [len(part) for part in (split.train, split.valid, split.test)] == [45, 5, 10]
    assert split.classes == tiny.spec(name).classes == (2 if positive else 10)
    truth = tiny.labels[5 * EACH :]
    assert_array_equal(split.test.y, [y in positive for y in truth] if positive else truth)
    both = np.concatenate([split.train.y, split.valid.y])
    expected = [y in positive for y in tiny.labels[: 5 * EACH]] if positive else tiny.labels[: 5 * EACH]
    assert sorted(both.tolist()) == sorted(np.asarray(expected, int).tolist())
    assert both.dtype == np.int64


def test_ships_are_machines_and_names_are_in_order() -> None:
    assert [cifar.CLASS_NAMES[c] for c in MACHINES] == ["airplane", "automobile", "ship", "truck"]
    assert [cifar.CLASS_NAMES[c] for c in SHIP] == ["ship"]


def test_raw_images_are_standardised_by_training_rows(tiny: Tiny) -> None:
    split = load(tiny, features="raw")
    X = split.train.X
    assert X.shape == (45, 32, 32, 3)
    assert X.dtype == np.float32
    assert_allclose(X.mean(axis=(0, 1, 2)), 0.0, atol=1e-4)
    assert_allclose(X.std(axis=(0, 1, 2)), 1.0, rtol=1e-4)
    pixels = tiny.images[5 * EACH :].transpose(0, 2, 3, 1).astype(float)
    for colour in range(3):  # the test images went through one and the same line
        slope, offset = np.polyfit(pixels[..., colour].ravel(), split.test.X[..., colour].ravel(), 1)
        assert_allclose(split.test.X[..., colour], slope * pixels[..., colour] + offset, atol=1e-4)
        assert slope > 0


@pytest.mark.slow
def test_seeds_choose_validation_rows_only(tiny: Tiny) -> None:
    one, same, other = (load(tiny, seed=seed, centroids=4) for seed in (1, 1, 2))
    assert_array_equal(one.train.X, same.train.X)
    assert_array_equal(one.test.X, other.test.X)
    assert not np.array_equal(one.valid.X, other.valid.X)
    everything = [np.concatenate([split.train.X, split.valid.X]) for split in (one, other)]
    assert_array_equal(*(np.unique(rows, axis=0) for rows in everything))


@pytest.mark.slow
def test_tasks_share_their_features(tiny: Tiny, tmp_path: Path) -> None:
    for name in SPECS:
        load(tiny, name, centroids=4)
    kept = sorted(path.name for path in (tmp_path / "cache" / "made" / "features").iterdir())
    assert len(kept) == 3, kept  # labels, images, features


@pytest.mark.slow
def test_features_never_see_a_test_image(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load(tiny, centroids=4)
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "other"))
    real = batches.read_batch

    def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
        images, labels = real(path)
        return (255 - images if path.name == "test_batch" else images), labels

    monkeypatch.setattr("llpbench_datasets.cifar.load.read_batch", read)
    after = load(tiny, centroids=4)
    assert_array_equal(before.train.X, after.train.X)
    assert not np.array_equal(before.test.X, after.test.X)


def test_unknown_features(tiny: Tiny) -> None:
    with pytest.raises(UnknownNameError, match="Available: patches, raw, simclr"):
        load(tiny, features="patchs")


def test_missing_weights_name_the_training_command(tiny: Tiny) -> None:
    with pytest.raises(UsageError, match="llpbench data embed cifar10 --encoder simclr --set network=resnet18"):
        load(tiny, features="simclr", encoder="resnet18")


@pytest.mark.parametrize("name", SPECS)
def test_declared_options_are_the_loaders(name: str) -> None:
    spec = Tiny.spec(name)
    taken = inspect.signature(spec.load()).parameters
    assert {p.name: p.default for p in spec.params} == {
        n: p.default for n, p in taken.items() if n not in ("files", "seed")
    }


CHILD = """
import sys, time
from pathlib import Path
import pytest
from llpbench_datasets import patches
from tiny_cifar import make_tiny
real = patches.patch_features
def slow(*args, **kwargs):
    with open(sys.argv[2], "a") as log:
        log.write("made\\n")
    time.sleep(1.0)
    return real(*args, **kwargs)
patches.patch_features = slow
tiny = make_tiny(Path(sys.argv[1]), pytest.MonkeyPatch())
print(tiny.spec().load()(tiny.store(), seed=0, centroids=4).test.X.sum())
"""


@pytest.mark.slow
def test_concurrent_cells_compute_features_once(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent
    environment = {**os.environ, "LLPBENCH_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(root)}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / f"data-{i}"), str(tmp_path / "log")],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    sums = [child.communicate(timeout=PATIENCE)[0].strip() for child in children]
    assert sums[0] == sums[1] != ""
    assert (tmp_path / "log").read_text() == "made\n"


# -- the real files ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_real_files_in_both_layouts(tmp_path: Path) -> None:
    """The python version, rewritten record by record, is the binary version byte for byte."""
    import hashlib

    store = DataStore(cifar.CIFAR10)
    try:
        paths = store.fetch()
    except DataUnavailableError as error:
        pytest.skip(str(error))
    counts = np.zeros((2, 10), int)
    for number, (path, file) in enumerate(zip(paths, cifar.FILES, strict=True)):
        images, labels = read_batch(path)
        assert images.shape == (10_000, 3, 32, 32)
        body = binary_batch(images, labels)
        assert hashlib.sha256(body).hexdigest() == file.forms[0].sha256
        assert len(body) == file.forms[0].size
        counts[int(number == 5)] += np.bincount(labels, minlength=10)
        if number == 5:
            (tmp_path / "test_batch.bin").write_bytes(body)
            again = read_batch(tmp_path / "test_batch.bin")
            assert_array_equal(again[0], images)
            assert_array_equal(again[1], labels)
    assert_array_equal(counts, [[5000] * 10, [1000] * 10])
