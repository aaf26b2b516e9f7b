"""The results folder: one file per cell, written whole or not at all, and a manifest written before the first.

::

    <run>/manifest.json         what was asked for: the cells, the commands, when
    <run>/cells/<id>.json       a result, sealed with a digest
    <run>/predictions/<id>.npz  test scores by selection rule, for paired statistics
    <run>/logs/<id>.log         what a cell printed, kept when there is something to read
    <run>/machines/<id>.json    the machines that ran cells

Merging two runs is copying files. Several runs may work on one folder at once: a cell is claimed before it is
started, and the manifest is extended under a lock.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from llpbench.cells import Cell, CellResult, Damaged, decode_result, encode_result
from llpbench.errors import StoreError
from llpbench.files import write_atomically

try:
    import fcntl
except ImportError:  # a platform without POSIX locks: runs are then not shared between processes
    fcntl = None  # type: ignore[assignment]


class Planned(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cell of the manifest and the labels it is shown under.

    Attributes:
        label: the method with the options that differ from its defaults.
        dataset_label: the dataset with all that makes its cells a table of their own, the bag scheme included.
        oracle: whether the method is given labels.
        tuning_seconds: what the search for its parameters took, when they were searched for.
    """

    cell: Cell
    label: str
    dataset_label: str
    oracle: bool = False
    tuning_seconds: float = 0.0


class Manifest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a folder is meant to hold."""

    created: str
    version: str
    commands: list[str] = []
    planned: dict[str, Planned] = {}


class Store:
    """One results folder."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    @property
    def manifest_path(self) -> Path:
        """Where the manifest lies."""
        return self.root / "manifest.json"

    def result_path(self, cell_id: str) -> Path:
        """Where the result of a cell lies."""
        return self.root / "cells" / f"{cell_id}.json"

    def log_path(self, cell_id: str) -> Path:
        """Where a cell's own output goes."""
        return self.root / "logs" / f"{cell_id}.log"

    def predictions_path(self, cell_id: str) -> Path:
        """Where a cell's test scores lie."""
        return self.root / "predictions" / f"{cell_id}.npz"

    def plan(self, planned: Iterable[Planned], command: str, version: str) -> Manifest:
        """Write the manifest before anything runs; a folder that has one gains the new cells."""
        try:
            for folder in ("cells", "logs", "predictions", "machines", "claims"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            with self._locked("manifest"):
                manifest = self.manifest() if self.manifest_path.exists() else _new_manifest(version)
                manifest.planned |= {p.cell.id: p for p in planned}
                if command not in manifest.commands:
                    manifest.commands.append(command)
                write_atomically(self.manifest_path, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        except OSError as error:
            raise StoreError(
                f"cannot write results to {self.root}: {error}. Choose another folder with --out."
            ) from None
        return manifest

    def manifest(self) -> Manifest:
        """Read the manifest, or say what is wrong with the folder."""
        try:
            return msgspec.json.decode(self.manifest_path.read_bytes(), type=Manifest)
        except FileNotFoundError:
            raise StoreError(f"{self.root} is not a results folder (it has no manifest.json).") from None
        except (OSError, msgspec.MsgspecError) as error:
            raise StoreError(
                f"{self.manifest_path} cannot be read: {error}. Restore it, or use another --out."
            ) from None

    def read(self, cell_id: str) -> CellResult | None:
        """The result of a cell; None when there is none. Raises ``Damaged`` when the file is not sound."""
        try:
            data = self.result_path(cell_id).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Damaged(str(error)) from None
        result = decode_result(data)
        if result.id != cell_id:
            raise Damaged(f"it holds the result of cell {result.id}")
        return result

    def results(self, on_damage: Callable[[Path, str], None] | None = None) -> list[CellResult]:
        """All sound results of planned cells, in the order of the plan; damaged files are handed to ``on_damage``."""
        found = []
        for cell_id, planned in self.manifest().planned.items():
            try:
                result = self.read(cell_id)
            except Damaged as damage:
                if on_damage is not None:
                    on_damage(self.result_path(cell_id), str(damage))
                continue
            if result is not None:
                result.label, result.dataset_label = planned.label, planned.dataset_label
                found.append(result)
        return found

    def write(self, result: CellResult) -> None:
        """Write a result whole or not at all."""
        try:
            write_atomically(self.result_path(result.id), encode_result(result))
        except OSError as error:
            raise StoreError(f"cannot write the result of cell {result.id} to {self.root}: {error}") from None

    def write_machine(self, machine_id: str, record: dict[str, Any]) -> None:
        """Keep the description of a machine once; it is not worth a result, so a disk that refuses it is let be."""
        path = self.root / "machines" / f"{machine_id}.json"
        with contextlib.suppress(OSError):
            if not path.exists():
                write_atomically(path, msgspec.json.format(msgspec.json.encode(record), indent=1))

    def check_room(self) -> None:
        """Make sure that another result could be written, or say why not (a full disk, a folder that is gone)."""
        probe = self.root / ".room"
        try:
            write_atomically(probe, bytes(1 << 20))
            probe.unlink()
        except OSError as error:
            raise StoreError(
                f"cannot write results to {self.root}: {error.strerror or error}. Finished cells are kept; "
                "make room, then the same command goes on with what is missing."
            ) from None

    def claim(self, cell_id: str) -> Claim | None:
        """Take a cell for this run; None when another run holds it."""
        try:
            return Claim.take(self.root / "claims" / f"{cell_id}.lock")
        except OSError as error:
            raise StoreError(
                f"cannot claim cell {cell_id} in {self.root}: {error.strerror or error}. Finished cells are kept."
            ) from None

    def _locked(self, name: str) -> contextlib.AbstractContextManager[None]:
        return held(self.root / "claims" / f"{name}.lock", f"{self.root} is locked by another run", seconds=30)


@contextlib.contextmanager
def held(path: Path, trouble: str, seconds: float) -> Iterator[None]:
    """Hold the lock file ``path``, waiting for whoever holds it now; ``trouble`` is said when that takes too long."""
    deadline = time.monotonic() + seconds
    while (claim := Claim.take(path)) is None:
        if time.monotonic() > deadline:
            raise StoreError(f"{trouble} for more than {seconds:.0f} s.")
        time.sleep(0.01)
    try:
        yield
    finally:
        claim.release()


class Claim:
    """An exclusive lock on a file; the system releases it when the process dies, so none is ever left behind."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path, self._handle = path, handle

    @classmethod
    def take(cls, path: Path) -> Claim | None:
        """The claim, or None when somebody else has it."""
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(handle)
                return None
            # The previous owner removes its file while it holds the lock: make sure this one is still the file.
            try:
                current = path.stat().st_ino
            except FileNotFoundError:
                current = -1
            if current != os.fstat(handle).st_ino:
                os.close(handle)
                return None
        return cls(path, handle)

    def release(self) -> None:
        """Give the claim back."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        os.close(self._handle)


def newest_store(base: Path) -> Store:
    """The results folder under ``base`` that was changed last."""
    found = sorted(base.glob("*/manifest.json"), key=lambda p: p.stat().st_mtime)
    if not found:
        raise StoreError(f"no results under {base}/. Start with: llpbench run --methods mean-ridge --bags 8")
    return Store(found[-1].parent)


def _new_manifest(version: str) -> Manifest:
    return Manifest(created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), version=version)
