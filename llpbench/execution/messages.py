"""What the two processes of a cell say to each other on the line between them (``channel``).

The method's process is not trusted: the judge takes no message longer than it can be, no type it does not know and no
array that is not plain numbers.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, Column
from llpbench.contracts.errors import MethodError
from llpbench.execution.channel import SHORT, Misspoken
from llpbench.system.shared_arrays import Place


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a fit; the arrays lie in shared memory, whose file number comes with the message.

    ``last`` is false when another fit of the same method, on other bags, follows.
    """

    places: dict[str, Place]
    classes: int
    count_sd: float
    columns: tuple[Column, ...]
    last: bool = True


class Ready(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """The method is imported and waits for its data."""


class Scoring(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """A report begins: the seconds from here on are those of scoring."""


class Numbers(msgspec.Struct, forbid_unknown_fields=True):
    """An array of plain numbers."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class Report(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """Scores of the held-back and of the test rows."""

    stage: str
    valid: Numbers
    test: Numbers | None


class PseudoLabels(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """Pseudo-labels of the training rows."""

    stage: str
    probabilities: Numbers


class Note(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """A fact about the fit."""

    name: str
    value: bool | float | str


class Ended(msgspec.Struct, tag=True, kw_only=True, forbid_unknown_fields=True):
    """The fit is over, well or not."""

    phases: dict[str, float]
    status: str = "ok"
    reason: str = ""
    traceback: str = ""
    failed_at: str = ""


class Reply(msgspec.Struct):
    """What the judge answers: to a report, a function of bags alone; or why it refuses what it was sent."""

    improved: bool = False
    stop: bool = False
    refused: str = ""


FromMethod = Ready | Scoring | Report | PseudoLabels | Note | Ended


def longest_message(rows: int, classes: int) -> int:
    """The most bytes that a message with scores of so many rows may have."""
    return SHORT + rows * max(classes, 1) * 16


def pack(array: Any, what: str) -> Numbers:
    """An array on its way; what is no array of plain numbers is refused where it comes from."""
    numbers = np.asarray(array)
    if numbers.dtype.kind not in "biuf" or numbers.dtype.itemsize > 8:
        raise MethodError(f"{what} returned {numbers.dtype}, not numbers")
    return Numbers(numbers.dtype.str, numbers.shape, np.ascontiguousarray(numbers).tobytes())


def unpack(numbers: Numbers) -> np.ndarray:
    """The array that was sent."""
    try:
        dtype = np.dtype(numbers.dtype)
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise Misspoken(f"an array of {dtype}")
        return np.frombuffer(numbers.data, dtype).reshape(numbers.shape)
    except (TypeError, ValueError) as error:
        raise Misspoken(f"an array that is none: {error}") from None


def arrays_of(bags: Bags) -> dict[str, np.ndarray]:
    """The arrays of training and held-back bags, by name."""
    assert bags.validation is not None
    parts = {"train": bags, "valid": bags.validation}
    return {f"{name}.{key}": getattr(part, key) for name, part in parts.items() for key in ("X", "offsets", "counts")}


def bags_from(arrays: dict[str, np.ndarray], material: Material) -> Bags:
    """The bags that ``arrays_of`` took apart."""

    def bags(name: str, validation: Bags | None = None) -> Bags:
        X, offsets, counts = (arrays[f"{name}.{key}"] for key in ("X", "offsets", "counts"))
        return Bags(X, offsets, counts, material.classes, material.count_sd, material.columns, validation)

    return bags("train", bags("valid"))
