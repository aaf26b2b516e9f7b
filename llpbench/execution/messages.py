"""The messages between the two processes of a cell (sent over a ``channel``).

The method's process is not trusted: the judge accepts only messages of known types and bounded length, and only arrays
of plain numbers.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, Column, Overlap
from llpbench.contracts.errors import MethodError
from llpbench.execution.channel import SHORT, InvalidMessage
from llpbench.execution.shared_arrays import SharedArray

_OVERLAP = ("members", "grouping_of", "count_sd")


class FitData(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a fit. Its arrays lie in shared memory, whose file descriptor follows the message.

    ``groupings`` are the names of several groupings. ``last`` is false if another fit of the same method, on other
    bags, follows.
    """

    arrays: dict[str, SharedArray]
    classes: int
    count_sd: float
    columns: tuple[Column, ...]
    groupings: tuple[str, ...] = ()
    overlapping: bool = False
    last: bool = True


class Ready(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """The method is imported and waits for its data."""


class ScoringStarted(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """A report begins: the seconds from here on count as scoring."""


class PackedArray(msgspec.Struct, forbid_unknown_fields=True):
    """An array of plain numbers."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class ReportedScores(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """Scores of the held-out and of the test rows."""

    stage: str
    valid: PackedArray
    test: PackedArray | None


class ReportedPseudoLabels(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """Pseudo-labels of the training rows."""

    stage: str
    probabilities: PackedArray


class Note(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """A fact about the fit."""

    name: str
    value: bool | float | str


class Ended(msgspec.Struct, tag=True, kw_only=True, forbid_unknown_fields=True):
    """The fit has ended, successfully or not; ``opened`` are the files that the process has read."""

    phases: dict[str, float]
    status: str = "ok"
    reason: str = ""
    traceback: str = ""
    failed_at: str = ""
    opened: list[str] = []


class JudgeReply(msgspec.Struct):
    """The judge's reply: to a report, a function of bags alone; or why a message was rejected."""

    improved: bool = False
    stop: bool = False
    rejected: str = ""


FromMethod = Ready | ScoringStarted | ReportedScores | ReportedPseudoLabels | Note | Ended


def longest_message(rows: int, classes: int) -> int:
    """Upper bound of the bytes of a message with scores of so many rows."""
    return SHORT + rows * max(classes, 1) * 16


def pack(array: Any, what: str) -> PackedArray:
    """Pack an array for a message; ``MethodError`` if it does not hold plain numbers."""
    numbers = np.asarray(array)
    if numbers.dtype.kind not in "biuf" or numbers.dtype.itemsize > 8:
        raise MethodError(f"{what} must return an array of numbers, got dtype {numbers.dtype}")
    return PackedArray(numbers.dtype.str, numbers.shape, np.ascontiguousarray(numbers).tobytes())


def unpack(packed: PackedArray) -> np.ndarray:
    """The array that was packed."""
    try:
        dtype = np.dtype(packed.dtype)
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise InvalidMessage(f"an array of dtype {dtype}, expected plain numbers")
        return np.frombuffer(packed.data, dtype).reshape(packed.shape)
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"an invalid array: {error}") from None


def arrays_of(bags: Bags) -> dict[str, np.ndarray]:
    """The arrays of training and held-out bags, by name."""
    assert bags.validation is not None
    parts = {"train": bags, "valid": bags.validation}
    found = {f"{name}.{key}": getattr(part, key) for name, part in parts.items() for key in ("X", "offsets", "counts")}
    overlaps = {name: part.overlap for name, part in parts.items() if part.overlap is not None}
    return found | {f"{name}.{key}": getattr(of, key) for name, of in overlaps.items() for key in _OVERLAP}


def bags_from(arrays: dict[str, np.ndarray], data: FitData) -> Bags:
    """The bags whose arrays ``arrays_of`` returned."""

    def bags(name: str, validation: Bags | None = None) -> Bags:
        X, offsets, counts = (arrays[f"{name}.{key}"] for key in ("X", "offsets", "counts"))
        overlap = None
        if data.groupings:
            members, grouping_of, count_sd = (arrays[f"{name}.{key}"] for key in _OVERLAP)
            overlap = Overlap(members, grouping_of, data.groupings, count_sd)
        return Bags(X, offsets, counts, data.classes, data.count_sd, data.columns, validation, overlap)

    return bags("train", bags("valid"))
