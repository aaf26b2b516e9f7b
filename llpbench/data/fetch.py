"""Fetching: bring one file of a dataset into the cache from the first source that has it.

A file is fetched once, however many processes ask for it at the same time, and appears in the cache whole and checked
or not at all. A transfer that breaks off is kept beside it and goes on with the next fetch.
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
from llpbench.data import sources, transfer
from llpbench.data.cache import CACHE_VARIABLE, file_sha256, inspect_file
from llpbench.data.sources import Origin, Progress, SourceError
from llpbench.system.environment import DATA
from llpbench.system.files import write_atomically
from llpbench.system.locks import lock_if_possible

DATA_VARIABLE = DATA.name
NO_FILE_NEEDED = "What works now without any file: --datasets synthetic"
_SCRATCH, _RESUME = ".fetch-", ".resume-"
_RESUME_DAYS = 7
"""Days after which an interrupted transfer is given up."""


class _PiecedError(SourceError):
    """Several answers of a server, put together, are not the file."""


@dataclass(frozen=True)
class Fetcher:
    """Fetches the files of one dataset.

    Attributes:
        spec: the dataset.
        root: the cache folder.
        progress: is told of transfers.
    """

    spec: DatasetSpec
    root: Path
    progress: Progress | None = None

    def cached(self, file: DataFile) -> Path:
        """Where the cache keeps a file."""
        return self.root / "data" / file.path

    def fetch(self, file: DataFile, origins: Sequence[Origin], tried: list[str]) -> bool:
        """Bring ``file`` into the cache from the first place that has it.

        Args:
            file: the file.
            origins: the places to ask, in this order.
            tried: gets one line for each place that did not give the file, with the reason.

        Returns:
            Whether the file is in the cache now.
        """
        cached = self.cached(file)
        with self._hold_folder(file, cached.parent):
            finding = inspect_file(cached, file.sha256, file.size)  # another process may have been faster
            if finding.state == "ok":
                return True
            tried.append(f"cache {cached}: {finding.detail}")
            for origin in origins:
                try:
                    self._fetch_from(origin, file)
                except (SourceError, OSError) as error:
                    tried.append(f"{origin.title}: {sources.one_line(str(error))}")
                else:
                    return True
        return False

    def _fetch_from(self, origin: Origin, file: DataFile) -> None:
        """Fetch from one place.

        A transfer that was continued after an interruption and did not give the file is made once more from its
        beginning: the file may have changed upstream in between.
        """
        try:
            self._fetch_once(origin, file)
        except _PiecedError:
            self._fetch_once(origin, file)

    def _fetch_once(self, origin: Origin, file: DataFile) -> None:
        folder = self.cached(file).parent
        partial = folder / f"{_RESUME}{hashlib.sha256(origin.locator.encode()).hexdigest()[:16]}"
        with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH, ignore_cleanup_errors=True) as scratch:
            limit = None if origin.members else file.size
            fetched = sources.retrieve(origin, Path(scratch), limit=limit, progress=self.progress, partial=partial)
            pieced = False
            if fetched == partial:  # complete: there is nothing to resume, whatever it turns out to be
                pieced = transfer.came_in_pieces(partial)
                fetched = transfer.move_complete(partial, Path(scratch) / "download")
            try:
                self._keep_result(origin, fetched, file)
            except SourceError as error:
                raise _PiecedError(str(error)) if pieced else error from None

    def _keep_result(self, origin: Origin, fetched: Path, file: DataFile) -> None:
        """Check what was fetched and put it in the cache; an archive also gives other missing files of the dataset."""
        if not origin.members:
            self._keep_whole(fetched, file)
            return
        self._keep_bytes(sources.produce(origin, fetched, file.size), file)
        for other in (form for declared in self.spec.files for form in (declared, *declared.forms)):
            if other != file and inspect_file(self.cached(other), other.sha256, other.size).state != "ok":
                self._keep_other_file(origin, fetched, other)

    def _keep_other_file(self, origin: Origin, fetched: Path, other: DataFile) -> None:
        for same in filter(origin.same_fetch, sources.origins(other)):
            try:
                self._keep_bytes(sources.produce(same, fetched, other.size), other)
            except SourceError:  # it was not asked for: the reason is given when it is
                continue
            return

    def _keep_whole(self, fetched: Path, file: DataFile) -> None:
        _refuse_other(file_sha256(fetched), fetched.stat().st_size, file)
        fetched.replace(self.cached(file))

    def _keep_bytes(self, contents: bytes, file: DataFile) -> None:
        _refuse_other(hashlib.sha256(contents).hexdigest(), len(contents), file)
        write_atomically(self.cached(file), contents)

    @contextmanager
    def _hold_folder(self, file: DataFile, folder: Path) -> Iterator[None]:
        """Lock the file's folder in the cache, which an archive fills at once; an error if it cannot be written.

        Where the file system has no locks, work goes on without: files are renamed into place, so the worst case is a
        download made twice.
        """
        with ExitStack() as held:
            try:
                locked = held.enter_context(lock_if_possible(folder / ".lock"))
                with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH):
                    pass  # the lock file may be there already in a folder that cannot be written
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


def _refuse_other(found: str, size: int, file: DataFile) -> None:
    """Refuse contents that are not the declared file."""
    if found != file.sha256 or size != file.size:
        cut = f", cut short at {size:,} of {file.size:,} bytes" if size < file.size else f" ({size:,} bytes)"
        raise SourceError(f"gave another file: sha256 {found}{cut}")
