"""Downloading one address to one file, and going on where an earlier transfer broke off.

What has arrived is kept, beside a note of the version it belongs to (the server's ``ETag`` or ``Last-Modified``). The
next request asks for the rest of that very version (``Range`` with ``If-Range``); a server that ignores ranges, or
has another version by now, sends the whole file and the transfer starts over. A server that names no version is asked
for the rest too: the caller compares the checksum in the end.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ATTEMPTS = 4
"""Requests that may break off before a transfer is given up (for now: what arrived is kept)."""
PAUSE = 0.5
"""Seconds before the second request; doubled for each further one."""
CHUNK = 2**16
"""Bytes read at once; a chunk that did not come whole is asked for again."""


class TransferError(Exception):
    """The server's answer is of no use; the text is the reason, in one line."""


def download(
    url: str,
    target: Path,
    *,
    limit: int | None,
    on_progress: Callable[[int, int | None], None],
    timeout: tuple[float, float],
) -> None:
    """Bring what ``url`` gives to ``target``; bytes that are already there are not asked for again.

    Args:
        url: an http or https address.
        target: the file, with the first part of its contents if an earlier transfer broke off.
        limit: refuse more bytes than this.
        on_progress: is told of bytes so far and in all (None when not known).
        timeout: seconds to wait for a connection, and for the next bytes.

    Raises:
        TransferError: too many bytes, or an answer that does not fit the request; nothing is kept.
        OSError: of the disk or the network (all errors of ``requests`` are); what arrived is kept.
    """
    import requests

    broken = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    with requests.Session() as session:
        for attempt in range(1, ATTEMPTS + 1):
            have = _size(target)
            if limit is not None and have == limit:
                on_progress(have, limit)
                return
            if limit is not None and have > limit:
                discard(target)
            try:
                if _request(session, url, target, limit, on_progress, timeout):
                    return
            except broken:
                if attempt == ATTEMPTS or _size(target) == 0:
                    raise
                time.sleep(PAUSE * 2 ** (attempt - 1))
    raise TransferError("the server does not give the part that is asked for")


def _request(
    session: Any,
    url: str,
    target: Path,
    limit: int | None,
    on_progress: Callable[[int, int | None], None],
    timeout: tuple[float, float],
) -> bool:
    """One request; False when the part that is here cannot be continued and was removed."""
    have, version = _size(target), _noted_version(target, url)
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        headers |= {"If-Range": version} if version else {}
    with session.get(url, headers=headers, stream=True, timeout=timeout) as answer:
        if have and answer.status_code == 416:
            discard(target)
            return False
        answer.raise_for_status()
        begins, total = _extent(answer)
        if answer.status_code == 206 and (begins != have or not have):
            discard(target)
            return False
        if answer.status_code != 206:
            have = 0
        _write_note(target, url, answer.headers, pieced=have > 0)
        with target.open("ab" if have else "wb") as stream:
            on_progress(have, total or limit)
            for chunk in answer.iter_content(CHUNK):
                have += len(chunk)
                if limit is not None and have > limit:
                    stream.close()
                    discard(target)
                    raise TransferError(f"sends more than the expected {limit:,} bytes")
                stream.write(chunk)
                on_progress(have, total or limit)
    return True


def move_complete(target: Path, place: Path) -> Path:
    """Move a complete download to ``place``, and remove its note."""
    target.replace(place)
    discard(target)
    return place


def discard(target: Path) -> None:
    """Throw away what arrived."""
    target.unlink(missing_ok=True)
    _note_path(target).unlink(missing_ok=True)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _note_path(target: Path) -> Path:
    return target.with_name(f"{target.name}.json")


def _write_note(target: Path, url: str, headers: Any, *, pieced: bool) -> None:
    """Keep the version that the server names; a weak ``ETag`` promises no equal bytes and does not count."""
    tag = headers.get("ETag", "")
    version = tag if re.fullmatch(r'"[\x21-\x7e]*"', tag) else headers.get("Last-Modified", "")
    with contextlib.suppress(OSError):
        _note_path(target).write_text(json.dumps({"url": url, "version": version, "pieced": pieced}), encoding="utf-8")


def _noted_version(target: Path, url: str) -> str:
    """The version that the part here belongs to; empty when none is known."""
    noted = _read_note(target)
    version = noted.get("version") if noted.get("url") == url else ""
    return version if isinstance(version, str) and re.fullmatch(r"[\x20-\x7e]{1,200}", version) else ""


def came_in_pieces(target: Path) -> bool:
    """Whether what is here came with more than one answer."""
    return _read_note(target).get("pieced") is True


def _read_note(target: Path) -> dict[str, Any]:
    try:
        noted = json.loads(_note_path(target).read_bytes())
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _extent(answer: Any) -> tuple[int, int | None]:
    """Where the answer's bytes begin in the file, and how many the file has."""
    part = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
    if answer.status_code == 206:
        if part is None:
            return -1, None
        return int(part[1]), None if part[2] == "*" else int(part[2])
    length = answer.headers.get("Content-Length", "")
    return 0, int(length) if length.isdecimal() else None
