"""Costly arrays: made once over all processes, kept whole, made again when damaged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers import PATIENCE
from hypothesis import given
from hypothesis import strategies as st

from llpbench_datasets.feature_cache import cached_array
from llpbench_datasets.keys import content_key

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "made" / "features"


class Counted:
    """A computation that knows how often it ran."""

    def __init__(self, array: np.ndarray = ROWS) -> None:
        self.array, self.calls = array, 0

    def __call__(self) -> np.ndarray:
        self.calls += 1
        return self.array


def test_features_are_computed_once_then_memory_mapped(own_cache: Path) -> None:
    compute = Counted()
    first, second = (cached_array(["a", 1], compute) for _ in range(2))
    assert compute.calls == 1
    for array in (first, second):
        np.testing.assert_array_equal(array, ROWS)
        assert array.dtype == np.float32
        assert type(array) is np.ndarray
        assert isinstance(array.base, np.memmap)
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    assert [path.suffix for path in own_cache.iterdir()] == [".npy"]


@pytest.mark.slow
@given(st.lists(st.one_of(st.text(), st.binary(), st.integers(), st.booleans(), st.none(), st.floats()), max_size=4))
def test_every_change_gives_another_key(parts: list[str | bytes | int | float | None]) -> None:
    key = content_key(parts)
    assert key == content_key(list(parts))
    others = [[*parts, ""], [*parts, None], ["", *parts]]
    others += [[*parts[:-1], repr(parts[-1]) + "x"], [*parts[:-1], (parts[-1],).__repr__()]] if parts else []
    assert key not in {content_key(other) for other in others}


def test_arrays_in_a_key() -> None:
    base = content_key([ROWS])
    assert base == content_key([ROWS.copy(order="F")])
    changed = ROWS.copy()
    changed[3, 2] += 1
    others = [changed, ROWS.reshape(3, 4), ROWS.astype(np.int32), ROWS.astype(">f4"), ROWS[:0]]
    assert len({base, *(content_key([other]) for other in others)}) == 6
    assert content_key([ROWS, ROWS[:0]]) != content_key([ROWS[:0], ROWS])
    assert content_key(["ab", "c"]) != content_key(["a", "bc"])
    assert content_key([1]) != content_key([True]) != content_key(["1"])
    with pytest.raises(TypeError, match="dtype object"):
        content_key([np.array([{}])])


@pytest.mark.parametrize("damage", ["cut", "empty", "other", "bit", "without digest"])
def test_damaged_file_is_recomputed(own_cache: Path, damage: str) -> None:
    compute = Counted()
    cached_array(["a"], compute)
    (path,) = own_cache.iterdir()
    whole = path.read_bytes()
    bare = whole[: whole.index(b"\nsha256 of the above")]
    flipped = bytearray(whole)
    flipped[len(bare) - 1] ^= 1  # still an array, with another number in it
    damaged = {"cut": whole[:-4], "empty": b"", "other": b"no array at all", "bit": bytes(flipped)}
    path.write_bytes({**damaged, "without digest": bare}[damage])
    np.testing.assert_array_equal(cached_array(["a"], compute), ROWS)
    assert compute.calls == 2
    assert path.read_bytes() == whole


def test_failed_computation_keeps_nothing(own_cache: Path) -> None:
    def fails() -> np.ndarray:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached_array(["a"], fails)
    assert list(own_cache.iterdir()) == []
    np.testing.assert_array_equal(cached_array(["a"], Counted()), ROWS)


def test_object_arrays_are_rejected() -> None:
    with pytest.raises(TypeError, match="plain arrays"):
        cached_array(["a"], lambda: np.array([{}]))


def test_features_are_returned_if_the_cache_is_read_only(tmp_path: Path) -> None:
    (tmp_path / "blocked").write_text("not a folder")
    compute = Counted(ROWS.copy())
    for _ in range(2):
        array = cached_array(["a"], compute, folder=tmp_path / "blocked" / "deep")
        np.testing.assert_array_equal(array, ROWS)
        assert not array.flags.writeable
    assert compute.calls == 2


def test_full_disk_does_not_lose_features(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(np, "save", full)
    np.testing.assert_array_equal(cached_array(["a"], Counted(ROWS.copy())), ROWS)
    assert list(own_cache.iterdir()) == []


def test_platform_without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("filelock.BaseFileLock.acquire", no_locks)
    compute = Counted()
    for _ in range(2):
        np.testing.assert_array_equal(cached_array(["a"], compute), ROWS)
    assert compute.calls == 1


def test_threads_compute_features_once() -> None:
    gate = threading.Barrier(6)
    compute = Counted()
    found: list[np.ndarray] = []

    def ask() -> None:
        gate.wait()
        found.append(cached_array(["a"], compute))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert compute.calls == 1
    assert len(found) == 6


CHILD = """
import os, sys, time
from pathlib import Path
import numpy as np
from llpbench_datasets.feature_cache import cached_array
log = Path(sys.argv[1])
def compute():
    with log.open("a") as stream:
        stream.write("made\\n")
    print("working", flush=True)
    time.sleep(float(sys.argv[2]))
    return np.arange(5.0)
print(cached_array(["shared"], compute).sum())
"""


def child(log: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(log), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_concurrent_processes_compute_features_once(tmp_path: Path) -> None:
    children = [child(tmp_path / "log", 0.3) for _ in range(4)]
    outputs = [process.communicate(timeout=PATIENCE)[0] for process in children]
    assert [output.split()[-1] for output in outputs] == ["10.0"] * 4
    assert (tmp_path / "log").read_text() == "made\n"


def test_killed_process_leaves_no_lock(own_cache: Path, tmp_path: Path) -> None:
    with child(tmp_path / "log", 600) as stuck:
        assert stuck.stdout is not None
        assert stuck.stdout.readline() == "working\n"
        assert [path.suffix for path in own_cache.iterdir()] == [".lock"]
        (lock,) = own_cache.iterdir()
        half = own_cache / f".{lock.stem}.npy.dead.tmp"
        half.write_bytes(b"half")
        stuck.send_signal(signal.SIGKILL)
    with child(tmp_path / "log", 0) as next_one:
        output, _ = next_one.communicate(timeout=PATIENCE)
    assert output.split() == ["working", "10.0"]
    assert [path.suffix for path in own_cache.iterdir()] == [".npy"]
    assert not half.exists()
