"""Reading files and checking the names, texts and numbers in them."""

from __future__ import annotations

import math
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llpbench.contracts.errors import LLPBenchError, printable

RESULT_BYTES = 4 << 20
FILE_BYTES = 64 << 20
PREDICTION_BYTES = 512 << 20
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")
_ID = re.compile(r"[0-9a-f]{16}")
_MACHINE = re.compile(r"[0-9a-f]{10}")
_LONGEST = 400
_LARGEST = 1e15


class Unsound(LLPBenchError):  # noqa: N818 - a state of a file, not a failure of the program
    """Invalid content; the message says what is invalid."""


def read_plain(path: Path, limit: int = FILE_BYTES) -> bytes:
    """Read a regular file of at most ``limit`` bytes; symbolic links are rejected."""
    try:
        info = path.lstat()
    except OSError as error:
        raise Unsound(f"{path.name}: cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(info.st_mode):
        raise Unsound(f"{path.name}: expected a regular file, got a symbolic link, a folder or a device")
    if info.st_size > limit:
        raise Unsound(f"{path.name}: {info.st_size / 2**20:.0f} MB; the limit is {limit / 2**20:.0f} MB")
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unsound(f"{path.name}: cannot be read ({error.strerror})") from None


def plain_folder(path: Path) -> Path:
    """Return ``path`` if it is a folder and not a symbolic link."""
    if path.is_symlink() or not path.is_dir():
        raise Unsound(f"{path}: expected a folder")
    return path


def check_name(text: str, what: str) -> str:
    """Return a name that a plugin can register: lower-case letters, digits, '-', '_', '.'; safe as a file name."""
    if not _NAME.fullmatch(text) or ".." in text:
        raise Unsound(f"invalid {what} name {clip(text)}: use lower-case letters, digits, '-', '_' and '.'")
    return text


def check_id(text: str, what: str = "cell id") -> str:
    """Return the id of a cell, or another digest of that length."""
    return _formed(_ID, text, "invalid " + what + " {}: expected sixteen hexadecimal digits")


def check_machine(text: str) -> str:
    """Return the id of a machine."""
    return _formed(_MACHINE, text, "invalid machine id {}: expected ten hexadecimal digits")


def _formed(pattern: re.Pattern[str], text: str, complaint: str) -> str:
    if not pattern.fullmatch(text):
        raise Unsound(complaint.format(clip(text)))
    return text


def check_values(content: Any) -> None:
    """Raise ``Unsound`` if nested content has long or unprintable text, or a number that is not finite."""
    for value in _leaves(content):
        if isinstance(value, str):
            if len(value) > _LONGEST:
                raise Unsound(f"text of {len(value):,} characters: {clip(value)}")
            if not value.isprintable():
                raise Unsound(f"text with unprintable characters: {clip(value)}")
        elif isinstance(value, float) and not (math.isfinite(value) and abs(value) <= _LARGEST):
            raise Unsound(f"the number {value:.3g} is out of range")


def clip(text: str, length: int = 60) -> str:
    """Shorten and quote text for an error message."""
    return repr(text if len(text) <= length else text[:length] + "…")


def short_line(text: str, length: int = 300) -> str:
    """Shorten text to one line without control characters."""
    return printable(" ".join(text.split())[:length])


def _leaves(content: Any) -> Iterator[Any]:
    level = [content]
    while level:
        nested: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                yield from value
                nested.extend(value.values())
            elif isinstance(value, list | tuple):
                nested.extend(value)
            else:
                yield value
        level = nested
