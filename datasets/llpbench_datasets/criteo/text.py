"""The text format of Criteo's ``train.txt``, read in blocks: label, 13 integers, 26 hashes, separated by tabs.

A row becomes 41 numbers of 32 bits: the label, the integers, the hashes (eight hexadecimal digits are 32 bits) and
the missing hashes as a bit mask. That is a third of the text and needs no dictionary, so a million rows take
164 MB. Every line of a file must have 40 fields; the fields of a line are read, and checked against the format, when
its row is wanted.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from llpbench import DatasetError, IntArray

INTEGERS, CATEGORIES = 13, 26
FIELDS = 1 + INTEGERS + CATEGORIES
NAMES = ("label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27)))
WIDTH = FIELDS + 1
"""Numbers of a row: the fields, and the mask of missing categories."""
MISSING = -(2**31)
"""An integer that is missing."""
BLOCK = 2**22
"""Bytes read at once."""
LONGEST = 2**16
"""Bytes a line may have; the longest of upstream has some 330."""

Rows = NDArray[np.int32]
Bytes = NDArray[np.uint8]

_TAB, _NEWLINE, _RETURN, _MINUS = 9, 10, 13, 45
_DIGITS = 10  # of an integer that fits 32 bits
_HEX = np.full(256, 255, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_HEX[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)


@dataclass(frozen=True)
class TextBlock:
    """Whole lines of a file: bounds of their fields in ``text``, and the number of the first.

    Attributes:
        text: bytes.
        starts: (lines, 40) where each field begins.
        ends: (lines, 40) where it ends, exclusive.
        first: number of the first line, from 1.
        source: the file's name, for messages.
    """

    text: Bytes
    starts: IntArray
    ends: IntArray
    first: int
    source: str

    def __len__(self) -> int:
        return len(self.starts)

    def rows(self, wanted: IntArray) -> Rows:
        """Read the lines at the given places of the block, or name the first field that breaks the format."""
        starts, ends = self.starts[wanted], self.ends[wanted]
        rows = np.empty((len(wanted), WIDTH), np.int32)
        integers, good = _read_integers(self.text, starts[:, : 1 + INTEGERS], ends[:, : 1 + INTEGERS])
        good[:, 0] &= (integers[:, 0] == 0) | (integers[:, 0] == 1)
        rows[:, : 1 + INTEGERS] = integers
        hashes, missing, fine = _read_hashes(self.text, starts[:, 1 + INTEGERS :], ends[:, 1 + INTEGERS :])
        rows[:, 1 + INTEGERS : FIELDS] = hashes.view(np.int32)
        rows[:, FIELDS] = missing
        sound = np.concatenate([good, fine], axis=1)
        if not sound.all():
            line, field = np.argwhere(~sound)[0]
            raise self._broken(int(wanted[line]), int(field))
        return rows

    def _broken(self, line: int, field: int) -> DatasetError:
        wanted = "0 or 1" if field == 0 else "a whole number of 32 bits" if field <= INTEGERS else "8 hex digits"
        empty = "" if field == 0 else " or nothing"
        found = self.text[self.starts[line, field] : self.ends[line, field]].tobytes()
        return DatasetError(
            f"{self.source}, line {self.first + line}: {NAMES[field]} must be {wanted}{empty}, not {printable(found)}."
        )


def blocks(path: Path, size: int = BLOCK) -> Iterator[TextBlock]:
    """The lines of a file, gzipped or plain, in blocks of about ``size`` bytes; memory does not grow with the file.

    Raises:
        DatasetError: the file cannot be read, or a line does not have 40 fields; the text names the line.
    """
    first, rest = 1, b""
    for piece in _pieces(path, size):
        whole = rest + piece
        cut = whole.rfind(b"\n") + 1
        if cut:
            block = _split(np.frombuffer(whole, np.uint8, cut), first, str(path))
            yield block
            first += len(block)
        rest = whole[cut:]
        if len(rest) > LONGEST:
            raise DatasetError(f"{path}, line {first}: longer than {LONGEST:,} bytes; {_EXPECTED}")
    if rest:
        yield _split(np.frombuffer(rest + b"\n", np.uint8), first, str(path))


_EXPECTED = "a line holds 40 fields separated by tabs: label, 13 integers, 26 categories."


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as head:
            zipped = head.read(2) == b"\x1f\x8b"
        stream: IO[bytes] | gzip.GzipFile
        with gzip.open(path, "rb") if zipped else path.open("rb") as stream:
            while piece := stream.read(size):
                yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DatasetError(f"{path} is damaged or cut short ({error}); fetch it again.") from None
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}.") from None


def _split(text: Bytes, first: int, source: str) -> TextBlock:
    """Find the fields of whole lines; the text ends with a line end."""
    marks = np.flatnonzero((text == _TAB) | (text == _NEWLINE))
    is_end = text[marks] == _NEWLINE
    line_ends = np.flatnonzero(is_end)
    fields = np.diff(line_ends, prepend=-1)
    wrong = np.flatnonzero(fields != FIELDS)
    if len(wrong):
        at = int(wrong[0])
        begin = int(marks[line_ends[at - 1]]) + 1 if at else 0
        line = text[begin : marks[line_ends[at]]].tobytes()
        hint = " (Criteo's test.txt has no labels: train.txt is wanted)" if fields[at] == FIELDS - 1 else ""
        raise DatasetError(
            f"{source}, line {first + at}: {fields[at]} field{'s' if fields[at] > 1 else ''}, but {_EXPECTED}"
            f"{hint} The line begins {printable(line)}."
        )
    ends = marks.reshape(-1, FIELDS)
    starts = np.empty_like(ends)
    starts[:, 1:] = ends[:, :-1] + 1
    starts[0, 0], starts[1:, 0] = 0, ends[:-1, -1] + 1
    returned = text[ends[:, -1] - 1] == _RETURN
    if returned.any():
        ends = ends.copy()
        ends[:, -1] -= returned
    return TextBlock(text, starts, ends, first, source)


def _read_integers(text: Bytes, starts: IntArray, ends: IntArray) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """The integers of fields (``MISSING`` for empty ones), and the mask of valid or empty fields."""
    lengths = ends - starts
    negative = (lengths > 1) & (text[starts] == _MINUS)
    begin = starts + negative
    digits = ends - begin
    good = digits <= _DIGITS
    value = np.zeros(starts.shape, np.int64)
    for place in range(int(min(digits.max(initial=0), _DIGITS))):
        inside = digits > place
        digit = text[np.where(inside, begin + place, 0)].astype(np.int64) - 48
        good &= ~inside | ((digit >= 0) & (digit <= 9))
        value = np.where(inside, value * 10 + digit, value)
    good &= value < 2**31
    value = np.where(negative, -value, value)
    return np.where(lengths == 0, MISSING, np.where(good, value, 0)).astype(np.int32), good


def _read_hashes(
    text: Bytes, starts: IntArray, ends: IntArray
) -> tuple[NDArray[np.uint32], NDArray[np.int32], NDArray[np.bool_]]:
    """The hashes of fields (0 for empty ones), the mask of empty fields, and the mask of valid or empty fields."""
    lengths = ends - starts
    full, empty = lengths == 8, lengths == 0
    good = full | empty
    begin = np.where(full, starts, 0)
    last = len(text) - 1
    value = np.zeros(starts.shape, np.uint32)
    for place in range(8):
        digit = _HEX[text[np.minimum(begin + place, last)]]
        good &= ~full | (digit < 16)
        value = (value << np.uint32(4)) | digit
    value[~full] = 0
    mask: NDArray[np.int32] = (empty << np.arange(CATEGORIES)).sum(axis=1).astype(np.int32)
    return value, mask, good


def printable(raw: bytes, width: int = 40) -> str:
    """Bytes of a file in a message: printable, quoted, cut."""
    return ascii(raw[:width].decode("latin-1")) + ("..." if len(raw) > width else "")
