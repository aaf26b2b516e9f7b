"""The line between the two processes of a cell, and the first message on it.

Nothing here imports numpy: a method's process reads its assignment and locks itself away before it has threads
(``method_start``).
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Any

import msgspec

from llpbench.contracts.specs import Scalar

_LENGTH = struct.Struct("<Q")
SHORT = 1 << 20
"""Bytes that a message may have beside its arrays."""
FROM_THE_JUDGE = 1 << 32
"""Bytes that a message of the judge may have: a method's process trusts it."""
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

    def receive(self, kind: Any, longest: int = SHORT) -> tuple[Any, list[int]]:
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
