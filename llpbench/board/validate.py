"""Checks of files that come from elsewhere: nothing in them is used before it has passed these."""

from __future__ import annotations

import math
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from llpbench.contracts.errors import LLPBenchError, printable

RESULT_BYTES = 4 << 20
FILE_BYTES = 64 << 20
PREDICTION_BYTES = 512 << 20
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")
_ID = re.compile(r"[0-9a-f]{16}")
_MACHINE = re.compile(r"[0-9a-f]{10}")
_SOURCE = re.compile(r"[0-9a-f]{32}")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,79}")
RELEASE = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?")
"""The version of a release: one that others can install by it."""
_OWN_VERSION = re.compile(RELEASE.pattern + r"(\.dev[0-9]+)?(\+[a-z0-9.]+)?")
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # letters and signs without ink
_LONGEST = 400
_LARGEST = 1e15


class Unsound(LLPBenchError):  # noqa: N818 - a state of a file, not a failure of the program
    """Content that is refused; the sentence says what and why."""


def read_plain(path: Path, limit: int = FILE_BYTES) -> bytes:
    """The bytes of a plain file of at most ``limit`` bytes; never through a symbolic link."""
    try:
        info = path.lstat()
    except OSError as error:
        raise Unsound(f"{path.name}: cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(info.st_mode):
        raise Unsound(f"{path.name}: not a plain file (a symbolic link, a folder or a device)")
    if info.st_size > limit:
        raise Unsound(f"{path.name}: {info.st_size / 2**20:.0f} MB; at most {limit / 2**20:.0f} MB are read")
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unsound(f"{path.name}: cannot be read ({error.strerror})") from None


def plain_folder(path: Path) -> Path:
    """A folder that is really there and not a symbolic link."""
    if path.is_symlink() or not path.is_dir():
        raise Unsound(f"{path}: not a folder (or a symbolic link)")
    return path


def check_name(text: str, what: str) -> str:
    """A registered name: lower-case letters, digits, '-', '_', '.'; it may be part of a file name."""
    if not _NAME.fullmatch(text) or ".." in text:
        raise Unsound(f"{what} {clip(text)} is not a name")
    return text


def check_rules(names: Iterable[str]) -> None:
    """Names of selection rules: any that could be registered, so that a rule of tomorrow can be read today."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise Unsound(f"unknown selection rule {clip(name)}")


def check_versions(versions: Mapping[str, str], own: str) -> None:
    """Names of packages with versions, nothing else; that of the package ``own`` must read like one of its releases."""
    for name, version in versions.items():
        if not _PACKAGE.fullmatch(name) or not _VERSION.fullmatch(version):
            raise Unsound(f"{clip(name)} {clip(version)} is no package with its version")
    if own in versions and not _OWN_VERSION.fullmatch(versions[own]):
        raise Unsound(f"{clip(versions[own])} is no version of {own}, which read like 1.2.0")


def check_source(text: str) -> str:
    """The digest of the result file that a cell was published from."""
    return _formed(_SOURCE, text, "source {} is not thirty-two hexadecimal digits")


def check_id(text: str, what: str = "cell id") -> str:
    """The id of a cell, or another digest of that length."""
    return _formed(_ID, text, what + " {} is not sixteen hexadecimal digits")


def check_machine(text: str) -> str:
    """The id of a machine."""
    return _formed(_MACHINE, text, "machine id {} is not ten hexadecimal digits")


def check_date(text: str) -> str:
    """A moment in UTC, as results write it, that a calendar has."""
    _formed(_DATE, text, "time {} does not read like 2025-01-31T12:00:00Z")
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise Unsound(f"time {clip(text)} is in no calendar") from None
    return text


def _formed(pattern: re.Pattern[str], text: str, complaint: str) -> str:
    if not pattern.fullmatch(text):
        raise Unsound(complaint.format(clip(text)))
    return text


def check_values(content: Any) -> None:
    """Refuse text that is long or not printable and numbers that no measurement has, anywhere inside."""
    for value in _leaves(content):
        if isinstance(value, str):
            if len(value) > _LONGEST:
                raise Unsound(f"text of {len(value):,} characters: {clip(value)}")
            if not value.isprintable():
                raise Unsound(f"text with characters that cannot be printed: {clip(value)}")
        elif isinstance(value, int) and abs(value) > _LARGEST:  # a whole number may be too large for a float
            raise Unsound(f"a whole number of {value.bit_length()} bits is out of range")
        elif isinstance(value, float) and not (math.isfinite(value) and abs(value) <= _LARGEST):
            raise Unsound(f"the number {value:.3g} is out of range")


def has_visible(text: str) -> bool:
    """Whether a text has a character that leaves ink: no space, no mark on another character, no filler."""
    return any(c not in _BLANK and unicodedata.category(c)[0] not in "ZCM" for c in text)


def clip(text: str, length: int = 60) -> str:
    """Foreign text for an error message: quoted, escaped, short."""
    return repr(text if len(text) <= length else text[:length] + "…")


def short_line(text: str, length: int = 300) -> str:
    """Foreign text as a terminal may show it: one short line without control characters."""
    return printable(" ".join(text.split())[:length])


def _leaves(content: Any, depth: int = 0) -> Iterator[Any]:
    if depth > 12:
        raise Unsound("nested too deeply")
    if isinstance(content, dict):
        for key, value in content.items():
            yield key
            yield from _leaves(value, depth + 1)
    elif isinstance(content, list | tuple):
        for value in content:
            yield from _leaves(value, depth + 1)
    else:
        yield content
