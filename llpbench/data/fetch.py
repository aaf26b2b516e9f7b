"""Fetch one file of a dataset into the cache from the first source that has it.

A file is fetched once, even if several processes ask for it at the same time, and appears in the cache complete and
verified or not at all. An interrupted transfer is kept beside it and resumed by the next fetch.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from llpbench.contracts.errors import DataUnavailableError
from llpbench.contracts.specs import DataFile, DatasetSpec
from llpbench.data import sources
from llpbench.data.cache import CACHE_VARIABLE, file_sha256, inspect_file
from llpbench.data.sources import Origin, Progress, SourceError
from llpbench.system.environment import DATA
from llpbench.system.files import write_atomically
from llpbench.system.locks import lock_if_possible

DATA_VARIABLE = DATA.name
NO_FILE_NEEDED = "What works now without any file: --datasets synthetic"
_SCRATCH, _RESUME = ".fetch-", ".resume-"
_RESUME_DAYS = 7


@dataclass(frozen=True)
class Fetcher:
    """Fetches the files of the dataset ``spec`` into the cache folder ``root``."""

    spec: DatasetSpec
    root: Path
    progress: Progress | None = None

    def cached(self, file: DataFile) -> Path:
        """The path of a file in the cache."""
        return self.root / "data" / file.path

    def fetch(self, file: DataFile, origins: Sequence[Origin], tried: list[str]) -> bool:
        """Fetch ``file`` from the first of ``origins`` that has it; returns whether it is in the cache now.

        For each origin that fails, a line with the reason is appended to ``tried``.
        """
        cached = self.cached(file)
        with self._locked_folder(file, cached.parent):
            finding = inspect_file(cached, file.sha256, file.size)  # another process may have been faster
            if finding.state == "ok":
                return True
            tried.append(f"cache {cached}: {finding.detail}")
            for origin in origins:
                try:
                    if not self._fetch_from(origin, file):
                        self._fetch_from(origin, file)  # the file changed between two pieces: start over
                except (SourceError, OSError) as error:
                    tried.append(f"{origin.title}: {sources.one_line(str(error))}")
                else:
                    return True
        return False

    def _fetch_from(self, origin: Origin, file: DataFile) -> bool:
        """Fetch from one origin; False if a transfer of several pieces did not give the file."""
        folder = self.cached(file).parent
        partial = folder / f"{_RESUME}{hashlib.sha256(origin.locator.encode()).hexdigest()[:16]}"
        with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH, ignore_cleanup_errors=True) as scratch:
            limit = None if origin.members else file.size
            fetched, pieced = sources.retrieve(origin, Path(scratch), limit=limit, progress=self.progress, at=partial)
            if fetched == partial:
                fetched = partial.replace(Path(scratch) / "download")
            try:
                self._keep(origin, fetched, file)
            except SourceError:
                if pieced:
                    return False
                raise
        return True

    def _keep(self, origin: Origin, fetched: Path, file: DataFile) -> None:
        """Verify what was fetched and keep it; an archive also gives other missing files of the dataset."""
        if not origin.members:
            _check_contents(file_sha256(fetched), fetched.stat().st_size, file)
            fetched.replace(self.cached(file))
            return
        self._keep_bytes(sources.produce(origin, fetched, file.size), file)
        for other in (form for declared in self.spec.files for form in (declared, *declared.forms)):
            if other != file and inspect_file(self.cached(other), other.sha256, other.size).state != "ok":
                self._keep_other(origin, fetched, other)

    def _keep_other(self, origin: Origin, fetched: Path, other: DataFile) -> None:
        for same in filter(origin.same_fetch, sources.origins(other)):
            try:
                self._keep_bytes(sources.produce(same, fetched, other.size), other)
            except SourceError:  # nobody asked for it yet: the error is reported when somebody does
                continue
            return

    def _keep_bytes(self, contents: bytes, file: DataFile) -> None:
        _check_contents(hashlib.sha256(contents).hexdigest(), len(contents), file)
        write_atomically(self.cached(file), contents)

    @contextmanager
    def _locked_folder(self, file: DataFile, folder: Path) -> Iterator[None]:
        """Hold the lock of the file's folder in the cache; an error if the folder is not writable.

        On a file system without locks the worst case is a file downloaded twice, since files are renamed into place.
        """
        with ExitStack() as held:
            try:
                locked = held.enter_context(lock_if_possible(folder / ".lock"))
                with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH):
                    pass  # the lock file may exist already in a read-only folder
            except OSError as error:
                raise DataUnavailableError(
                    f"{self.spec.name} needs {file.path}, which has to be fetched, "
                    f"but the cache folder cannot be written: {folder}: {error.strerror or error}.\n"
                    f"Set {CACHE_VARIABLE} to a folder that can be written, "
                    f"or {DATA_VARIABLE} (or --data) to a folder that holds {file.path}.\n" + NO_FILE_NEEDED
                ) from error
            if locked:  # the processes that left these are gone
                for left in folder.glob(f"{_SCRATCH}*"):
                    shutil.rmtree(left, ignore_errors=True)
                for left in folder.glob(f"{_RESUME}*"):
                    if left.stat().st_mtime < time.time() - _RESUME_DAYS * 86_400:
                        left.unlink(missing_ok=True)
            yield


def _check_contents(found: str, size: int, file: DataFile) -> None:
    if found != file.sha256 or size != file.size:
        cut = f", cut short at {size:,} of {file.size:,} bytes" if size < file.size else f" ({size:,} bytes)"
        raise SourceError(f"checksum mismatch: got sha256 {found}{cut}")
