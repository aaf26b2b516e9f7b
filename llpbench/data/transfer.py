"""Download one address to one file, resuming an interrupted transfer.

The bytes received so far are kept, and the next request asks for the rest (``Range``). A server that ignores ranges
sends the whole file, and the transfer starts over. If the file changed between two requests, its pieces do not have the
declared checksum: the caller compares it and fetches the file again from its beginning.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ATTEMPTS = 4
"""Requests that may break off before a transfer fails; the bytes received are kept."""
PAUSE = 0.5
"""Seconds before the second request, doubled for each further one."""
CHUNK = 2**16
"""Bytes read at once; an incomplete chunk is requested again."""
MOST_BYTES = 16 << 30
"""Limit of a transfer whose size is not declared."""


class TransferError(Exception):
    """The server's answer is unusable; the text is the reason, in one line."""


def download(
    url: str,
    target: Path,
    *,
    limit: int | None,
    on_progress: Callable[[int, int | None], None],
    timeout: tuple[float, float],
) -> bool:
    """Download ``url`` to ``target``, continuing after the bytes that are already there.

    Args:
        url: an http or https address.
        target: the file, with the first part of its contents if an earlier transfer broke off.
        limit: the size of the file; more bytes are an error. ``MOST_BYTES`` if it is unknown.
        on_progress: called with the bytes so far and in total (None if unknown).
        timeout: seconds to wait for a connection, and for the next bytes.

    Returns:
        Whether the file came in several pieces.

    Raises:
        TransferError: too many bytes, or an answer that does not fit the request; nothing is kept.
        OSError: of the disk or the network (all errors of ``requests`` are); the bytes received are kept.
    """
    import requests

    broken = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    with requests.Session() as session:
        for attempt in range(1, ATTEMPTS + 1):
            have = _size(target)
            if limit is not None and have > limit:
                target.unlink()
            if limit is not None and have == limit:
                on_progress(have, limit)
                return True
            try:
                pieces = _request(session, url, target, limit, on_progress, timeout)
            except broken:
                if attempt == ATTEMPTS or _size(target) == 0:
                    raise
                time.sleep(PAUSE * 2 ** (attempt - 1))
            else:
                if pieces:
                    return pieces > 1
    raise TransferError("the server does not send the requested part")


def _request(
    session: Any,
    url: str,
    target: Path,
    limit: int | None,
    on_progress: Callable[[int, int | None], None],
    timeout: tuple[float, float],
) -> int:
    """Make one request; returns 1 for a whole file, 2 for a continued one, 0 if what was here had to be discarded."""
    have = _size(target)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with session.get(url, headers=headers, stream=True, timeout=timeout) as answer:
        begins, total = _extent(answer)
        if have and (answer.status_code == 416 or (answer.status_code == 206 and begins != have)):
            target.unlink()
            return 0
        answer.raise_for_status()
        continued = answer.status_code == 206
        if continued and not have:
            return 0
        have = have if continued else 0
        with target.open("ab" if have else "wb") as stream:
            on_progress(have, total or limit)
            for chunk in answer.iter_content(CHUNK):
                have += len(chunk)
                if have > (MOST_BYTES if limit is None else limit):
                    stream.close()
                    target.unlink()
                    expected = f"the expected {limit:,}" if limit is not None else f"{MOST_BYTES:,}"
                    raise TransferError(f"sends more than {expected} bytes")
                stream.write(chunk)
                on_progress(have, total or limit)
    return 2 if continued else 1


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _extent(answer: Any) -> tuple[int, int | None]:
    """Where the answer's bytes begin in the file, and how many the file has."""
    if answer.status_code == 206:
        part = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        return (-1, None) if part is None else (int(part[1]), None if part[2] == "*" else int(part[2]))
    length = answer.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None
