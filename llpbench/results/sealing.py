"""A result as a file: JSON sealed with the digest of its content."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from llpbench.contracts.errors import describe
from llpbench.contracts.result import CellResult

_BLOCK = 4096


class Damaged(Exception):  # noqa: N818 - a state of a file, not a failure of the program
    """A result file that is truncated, was edited by hand, or is not a result at all."""


def canonical(result: CellResult) -> bytes:
    """The bytes that are sealed: sorted keys, numbers in the type the field declares."""
    return msgspec.json.encode(result, order="deterministic")


def digest(body: bytes, digits: int = 32) -> str:
    """The seal of canonical bytes: the first hexadecimal digits of their sha256."""
    return hashlib.sha256(body).hexdigest()[:digits]


def encode_result(result: CellResult) -> bytes:
    """A result as indented JSON, sealed with the digest of its content.

    Spaces at its end bring it to whole blocks of ``_BLOCK`` bytes: methods of later cells can see the sizes of files,
    and should not learn from them how many digits a metric has.
    """
    body = canonical(msgspec.json.decode(msgspec.json.encode(result), type=CellResult))
    sealed = b'{"digest":"' + digest(body).encode() + b'","result":' + body + b"}"
    text = msgspec.json.format(sealed, indent=1)
    return text + b" " * (-(len(text) + 1) % _BLOCK) + b"\n"


def decode_result(data: bytes) -> CellResult:
    """Read a sealed result, or raise ``Damaged`` with what is wrong with it."""
    try:
        outer: dict[str, Any] = msgspec.json.decode(data)
        body = outer["result"]
        result = msgspec.convert(body, CellResult)
    except RecursionError:
        raise Damaged("not a readable result (nested too deeply)") from None
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise Damaged(f"not a readable result ({describe(error)})") from None
    if outer.get("digest") != digest(canonical(result)):
        raise Damaged("its content does not match its digest (edited by hand?)")
    if result.id != result.cell.id:
        raise Damaged("its id is not the id of its cell")
    return result
