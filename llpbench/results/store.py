"""The results folder: one file for each cell, written whole or not at all, and a manifest written before the first.

::

    <run>/manifest.json         what was asked for: the cells, the commands, when
    <run>/cells/<id>.json       a result, sealed with a digest
    <run>/predictions/<id>.npz  test scores by selection rule, for paired statistics
    <run>/logs/<id>.log         what a cell printed, kept when there is something to read
    <run>/logs/<id>.traceback   where a cell failed
    <run>/machines/<id>.json    the machines that ran cells
    <run>/run.log               what ran when, for people (``report/run_log.py``)
    <run>/report.html           the folder as a page, for people (``board/built/own_page.py``)

Several runs may work on one folder at once: a cell is claimed before it is started, and the manifest is extended under
a lock. Folders that ran apart are put together by ``results merge`` (``merge.py``), which also joins the manifests and
reports results that differ; files that are only copied here are in no plan, and nothing reads them.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from llpbench.contracts.errors import StoreError, describe, printable
from llpbench.contracts.result import CellResult
from llpbench.experiment.plan import Planned
from llpbench.results.request import Command
from llpbench.results.sealing import Damaged, decode_result, encode_result
from llpbench.system.files import write_atomically, write_json
from llpbench.system.locks import Claim, file_lock


def is_results_folder(folder: Path) -> bool:
    """Whether a folder looks like one of results, without reading anything in it."""
    return (folder / "manifest.json").is_file() and (folder / "cells").is_dir()


class Manifest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The planned cells of a folder and its requests.

    Attributes:
        version: the llpbench that created it.
        commands: the requests that filled it, the latest one last.
    """

    created: str
    version: str
    commands: list[Command] = []
    planned: dict[str, Planned] = {}


Stamp = str
"""Digest of a result file: whatever was done to its times, the file of an earlier run has the same."""


class Store:
    """One results folder. A result is decoded once, and again only when its file has changed."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._cells: tuple[int, int] | None = None
        self._decoded: dict[str, tuple[tuple[int, int, int], CellResult]] = {}

    @property
    def manifest_path(self) -> Path:
        """The path of the manifest."""
        return self.root / "manifest.json"

    def result_path(self, cell_id: str) -> Path:
        """The path of a cell's result."""
        return self.root / "cells" / f"{cell_id}.json"

    def log_path(self, cell_id: str) -> Path:
        """The path of a cell's log."""
        return self.root / "logs" / f"{cell_id}.log"

    def traceback_path(self, cell_id: str) -> Path:
        """The path of a failed cell's traceback."""
        return self.root / "logs" / f"{cell_id}.traceback"

    def predictions_path(self, cell_id: str) -> Path:
        """The path of a cell's test scores."""
        return self.root / "predictions" / f"{cell_id}.npz"

    def plan(self, planned: Iterable[Planned], command: Command, version: str) -> Manifest:
        """Write the manifest before anything runs; a folder that has one gains the new cells.

        The request that was made last is the last one, also when it was made before.
        """
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        try:
            for folder in ("cells", "logs", "predictions", "machines", "claims"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            with self._locked("manifest"):
                manifest = self.manifest() if self.manifest_path.exists() else Manifest(created=now, version=version)
                manifest.planned |= {p.cell.id: p for p in planned}
                manifest.commands = [*(known for known in manifest.commands if known != command), command]
                write_json(self.manifest_path, manifest)
            self._cells = self._cells_folder()
        except OSError as error:
            raise StoreError(
                f"cannot write results to {self.root}: {error}. Choose another folder with --out."
            ) from None
        return manifest

    def refuse_others(self, *, tuning: bool) -> None:
        """Raise an error if trials of a search (``tuning``) and cells of a run would share the folder.

        Raises:
            StoreError: it holds cells of the other kind, whose rows and counts they would join.
        """
        if not self.manifest_path.exists():
            return
        if any(plan.cell.tuning != tuning for plan in self.manifest().planned.values()):
            there, new = ("cells of a run", "a search") if tuning else ("trials of a search", "a run")
            raise StoreError(f"{self.root} holds {there}; {new} needs a folder of its own. Choose another with --out.")

    def manifest(self) -> Manifest:
        """Read the manifest, or say what is wrong with the folder."""
        try:
            return msgspec.json.decode(self.manifest_path.read_bytes(), type=Manifest)
        except (FileNotFoundError, NotADirectoryError):
            why = "it has no manifest.json" if self.root.exists() else "it does not exist"
            raise StoreError(
                f"{self.root} is not a results folder ({why}); llpbench results list shows the existing ones."
            ) from None
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{self.manifest_path} cannot be read: {describe(error)}. Restore it, or use another --out."
            ) from None

    def stamp(self, cell_id: str) -> Stamp:
        """The stamp of a result file; empty when there is none."""
        try:
            return hashlib.sha256(self.result_path(cell_id).read_bytes()).hexdigest()
        except OSError:
            return ""

    def read(self, cell_id: str) -> CellResult | None:
        """The result of a cell; None when there is none. Raises ``Damaged`` if the file is invalid."""
        state = self._state(cell_id)  # before the file is read: a newer one is then read again
        known = self._decoded.get(cell_id)
        if known is None or known[0] != state:
            result = self._read(cell_id)
            if result is None:
                return None
            known = self._decoded[cell_id] = state, result
        return msgspec.structs.replace(known[1])

    def sound(self, cell_id: str) -> CellResult | None:
        """The result of a cell; None when there is none, or its file is damaged."""
        try:
            return self.read(cell_id)
        except Damaged:
            return None

    def _state(self, cell_id: str) -> tuple[int, int, int]:
        """What changes when a result file is written: inode, size and time of change; zeros when there is none."""
        try:
            status = self.result_path(cell_id).stat()
        except OSError:
            return 0, 0, 0
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _read(self, cell_id: str) -> CellResult | None:
        try:
            data = self.result_path(cell_id).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Damaged(error.strerror or str(error)) from None
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
                result.method_name, result.dataset_name = planned.method_name, planned.dataset_name
                found.append(result)
        return found

    def write(self, result: CellResult) -> None:
        """Write a result whole or not at all, and the traceback of a failure beside its log."""
        self.check_there()
        try:
            write_atomically(self.result_path(result.id), encode_result(result))
        except OSError as error:
            raise StoreError(f"cannot write the result of cell {result.id} to {self.root}: {error}") from None
        self.keep_traceback(result)

    def keep_predictions(self, cell_id: str, scores: bytes) -> None:
        """Keep the test scores of a result that is about to be written; without any, those of an earlier one go."""
        path = self.predictions_path(cell_id)
        if scores:
            write_atomically(path, scores)
        else:
            path.unlink(missing_ok=True)

    def keep_traceback(self, result: CellResult) -> None:
        """Keep the traceback of a failure as a file to read; one of an earlier result is removed."""
        path = self.traceback_path(result.id)
        with contextlib.suppress(OSError):  # the result has it too
            if result.traceback:
                write_atomically(path, printable(result.traceback, lines=True).encode(errors="replace") + b"\n")
            else:
                path.unlink(missing_ok=True)

    def write_machine(self, machine_id: str, record: dict[str, Any]) -> None:
        """Keep the description of a machine once; errors are ignored, since the result matters more."""
        path = self.root / "machines" / f"{machine_id}.json"
        with contextlib.suppress(OSError):
            if not path.exists():
                write_json(path, record)

    def check_there(self) -> None:
        """Make sure that the folder of results is there, and is the one in which the run began.

        Raises:
            StoreError: it was removed, or moved, since; writing on would leave a folder that looks whole and is not.
        """
        now, planned = self._cells_folder(), self.manifest_path.exists()
        if (now == self._cells and planned) if self._cells is not None else (now is not None or not planned):
            return
        what = "is gone" if now is None else "is not the folder in which the run began"
        raise StoreError(
            f"{self.root / 'cells'} {what}: was the folder removed or moved during the run? Restore it, "
            "or repeat the command to run its cells again."
        )

    def _cells_folder(self) -> tuple[int, int] | None:
        """What tells the folder of results from another one of its name; None when there is none."""
        try:
            status = (self.root / "cells").stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def check_room(self) -> None:
        """Make sure that another result could be written, or say why not (a full disk, a folder that is gone)."""
        self.check_there()
        probe = self.root / ".room"
        try:
            write_atomically(probe, bytes(1 << 20))
            probe.unlink()
        except OSError as error:
            raise StoreError(
                f"cannot write results to {self.root}: {error.strerror or error}. Finished cells are kept; "
                "free some disk space and repeat the command to run the missing cells."
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
        lock = self.root / "claims" / f"{name}.lock"
        return file_lock(lock, seconds=30, trouble=f"{self.root} is locked by another run")


def newest_store(base: Path) -> Store:
    """The results folder under ``base`` that was changed last."""
    found = sorted((path for path in base.glob("*/manifest.json") if path.is_file()), key=lambda p: p.stat().st_mtime)
    if not found:
        raise StoreError(f"no results under {base}/. Start with: llpbench run --methods mean-ridge --bags 8")
    return Store(found[-1].parent)
