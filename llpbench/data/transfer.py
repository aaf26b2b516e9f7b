"""Downloading one address to one file, and going on where an earlier transfer broke off.

What has arrived is kept, beside a note of the version it belongs to (the server's ``ETag`` or ``Last-Modified``). The
next request asks for the rest of that very version (``Range`` with ``If-Range``); a server that ignores ranges, or
has another version by now, sends the whole file and the transfer starts over. A server that names no version is asked
for the rest too: the caller compares the checksum in the end.

A transfer ends, whatever the server does: it may not send more than was declared, nor be slower on average than a modem
was (a server that sends a byte now and then never runs into the time limit of a single read).
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

ATTEMPTS = 4
"""Requests that may break off before a transfer is given up (for now: what arrived is kept)."""
PAUSE = 0.5
"""Seconds before the second request; doubled for each further one."""
CHUNK = 2**16
"""Bytes read at once; a chunk that did not come whole is asked for again."""


GRACE = 120.0
"""Seconds that a transfer may be as slow as it likes."""
PACE = 10_000
"""Bytes a second that it must reach on average after that."""
MOST_BYTES = 16 << 30
"""Bytes of a transfer whose size nobody declared."""


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
        limit: the size of the file; more bytes are refused. ``MOST_BYTES`` when it is not known.
        on_progress: is told of bytes so far and in all (None when not known).
        timeout: seconds to wait for a connection, and for the next bytes.

    Raises:
        TransferError: too many bytes, or an answer that does not fit the request; nothing is kept. Or too slow; what
            arrived is kept.
        OSError: of the disk or the network (all errors of ``requests`` are); what arrived is kept.
    """
    import requests

    broken = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    pace = _Pace()
    with requests.Session() as session:
        for attempt in range(1, ATTEMPTS + 1):
            have = _size(target)
            if limit is not None and have == limit:
                on_progress(have, limit)
                return
            if limit is not None and have > limit:
                discard(target)
            try:
                if pace.hold(partial(_request, session, url, target, limit, on_progress, timeout, pace)):
                    return
            except broken:
                if attempt == ATTEMPTS or _size(target) == 0:
                    raise
                time.sleep(PAUSE * 2 ** (attempt - 1))
    raise TransferError("the server does not give the part that is asked for")


@dataclass
class _Pace:
    """Whether a transfer is fast enough. Its requests run in threads, which are left alone when it is not."""

    began: float = field(default_factory=time.monotonic)
    arrived: int = 0
    given_up: bool = False

    def hold(self, request: Callable[[], bool]) -> bool:
        """What the request returns or raises, or an error when the transfer is too slow."""
        ended: queue.SimpleQueue[bool | BaseException] = queue.SimpleQueue()

        def run() -> None:
            try:
                ended.put(request())
            except BaseException as error:
                ended.put(error)

        threading.Thread(target=run, name="llpbench-transfer", daemon=True).start()
        try:
            while True:
                with contextlib.suppress(queue.Empty):
                    found = ended.get(timeout=min(1.0, GRACE))
                    break
                seconds = time.monotonic() - self.began
                if seconds > GRACE + self.arrived / PACE:
                    raise TransferError(f"too slow: {self.arrived:,} bytes in {seconds:.0f} seconds; they are kept")
        except BaseException:  # also an interrupt: the thread must not write on
            self.given_up = True
            raise
        if isinstance(found, BaseException):
            raise found
        return found


def _request(
    session: Any,
    url: str,
    target: Path,
    limit: int | None,
    on_progress: Callable[[int, int | None], None],
    timeout: tuple[float, float],
    pace: _Pace,
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
                if pace.given_up:
                    return False
                have, pace.arrived = have + len(chunk), pace.arrived + len(chunk)
                if have > (MOST_BYTES if limit is None else limit):
                    stream.close()
                    discard(target)
                    expected = f"the expected {limit:,}" if limit is not None else f"{MOST_BYTES:,}"
                    raise TransferError(f"sends more than {expected} bytes")
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
