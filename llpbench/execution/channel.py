"""The connection between the two processes of a cell, and the first message on it.

This module must not import numpy: a method's process reads its assignment and enters its sandbox before it has threads
(``method_start``).
"""

from __future__ import annotations

import socket
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from llpbench.contracts.specs import Scalar

SHORT = 1 << 20
"""Largest message without arrays, in bytes."""
FROM_THE_JUDGE = 1 << 32
"""Largest message of the judge, in bytes: a method's process trusts it."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What a method's process is to do. Nothing in it depends on a label.

    Attributes:
        locked: what it cannot read (see ``confines``).
        scratch, cache: its private folder and its part of the cache, the only folders it can write to.
    """

    method: str
    params: dict[str, Scalar]
    backend: str
    seed: int
    plugins: tuple[str, ...]
    override: tuple[str, ...]
    locked: tuple[str, ...]
    scratch: str
    cache: str


class InvalidMessage(Exception):  # noqa: N818 - the other process's error
    """The other process sent something that is not a message of the protocol."""


def connection_pair() -> tuple[Connection, Connection]:
    """Two connected ends, each to be used by one process."""
    ours, theirs = socket.socketpair()
    return Connection(ours.detach()), Connection(theirs.detach())


def send(connection: Connection, message: Any) -> None:
    """Send a message; ``OSError`` if the other end is closed."""
    connection.send_bytes(msgspec.msgpack.encode(message))


def receive(connection: Connection, kind: Any, longest: int = SHORT) -> Any:
    """Wait for the next message; ``EOFError`` if the other end is closed."""
    try:
        data = connection.recv_bytes(longest)
    except OSError as error:
        if connection.readable:  # the other end was closed in the middle of a message
            raise EOFError from error
        raise InvalidMessage(f"a message of more than {longest:,} bytes") from None
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InvalidMessage(f"an invalid message: {error}") from None
