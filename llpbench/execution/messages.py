"""What the two processes of a cell say to each other, and the channel between them.

The method's process is not trusted: the judge takes no message longer than it can be, no type it does not know and no
array that is not plain numbers.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Any

import msgspec
import numpy as np

from llpbench.contracts.data import Bags, Column
from llpbench.contracts.errors import MethodError
from llpbench.contracts.specs import Scalar
from llpbench.system.shared_arrays import Place

_LENGTH = struct.Struct("<Q")
_SHORT = 1 << 20  # bytes of a message beside its arrays
_PIECE = 1 << 20


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What a method's process is told to do: nothing in it depends on a label.

    Attributes:
        locked, writable: what it keeps itself from, and where alone it may write (see ``confines``).
        scratch: its private folder.
        network: whether it may open TCP connections.
    """

    method: str
    params: dict[str, Scalar]
    backend: str
    seed: int
    plugins: tuple[str, ...]
    override: tuple[str, ...]
    locked: tuple[str, ...]
    writable: tuple[str, ...]
    scratch: str
    network: bool


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


class Misspoken(Exception):  # noqa: N818 - not an error of ours
    """The other process sent something that is no message."""


class Channel:
    """One end of the connection between the two processes."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def fileno(self) -> int:
        """For ``select``."""
        return self.connection.fileno()

    def send(self, message: Any, handle: int | None = None) -> None:
        """Send a message, and a file number with it."""
        data = msgspec.msgpack.encode(message)
        head = _LENGTH.pack(len(data))
        if handle is None:
            self.connection.sendall(head + data)
        else:
            socket.send_fds(self.connection, [head], [handle])
            self.connection.sendall(data)

    def receive(self, kind: Any, longest: int = _SHORT) -> tuple[Any, list[int]]:
        """The next message and the file numbers that came with it; ``EOFError`` when the other end is gone."""
        head, handles = b"", []
        while len(head) < _LENGTH.size:
            with contextlib.suppress(InterruptedError):
                data, new, _, _ = socket.recv_fds(self.connection, _LENGTH.size - len(head), 1)
                handles += new
                if not data:
                    raise EOFError
                head += data
        (length,) = _LENGTH.unpack(head)
        if length > longest:
            raise Misspoken(f"a message of {length:,} bytes, where {longest:,} are the most")
        pieces: list[bytes] = []
        while length:
            data = self.connection.recv(min(length, _PIECE))
            if not data:
                raise EOFError
            pieces.append(data)
            length -= len(data)
        try:
            return msgspec.msgpack.decode(b"".join(pieces), type=kind), handles
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Misspoken(f"something that is no message: {error}") from None


def longest_message(rows: int, classes: int) -> int:
    """The most bytes that a message with scores of so many rows may have."""
    return _SHORT + rows * max(classes, 1) * 16


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
