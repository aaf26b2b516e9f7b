"""Downloads that break off: what arrived is kept, the rest is asked for, and the result is the file or nothing."""

from __future__ import annotations

import hashlib
import io
import os
import re
import time
import zipfile
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from helpers import QuietHandler, serving

from llpbench import DataFile, DatasetSpec
from llpbench.contracts.errors import DataUnavailableError
from llpbench.data import transfer
from llpbench.data.sources import Progress
from llpbench.data.store import DataStore

BODY = bytes(range(256)) * 1200
CUT = 150_000
HALF = CUT // transfer.CHUNK * transfer.CHUNK  # what arrived is kept in whole chunks


class Server(ThreadingHTTPServer):
    """Serves one file, cuts connections as told, and remembers what it was asked and how it answered."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = BODY
        self.cuts: list[int] = []  # bytes after which the next answers break off
        self.ranges = True
        self.asked: list[str] = []
        self.answers: list[int] = []
        self.lies = ""  # a Content-Range to send in place of the true one

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file"


class Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802
        server = self.server
        assert isinstance(server, Server)
        wanted = self.headers.get("Range", "")
        server.asked.append(wanted)
        begin = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted else 0  # type: ignore[index]
        partial = bool(wanted) and server.ranges
        status = 416 if partial and begin >= len(server.body) else 206 if partial else 200
        server.answers.append(status)
        self.send_response(status)
        payload = b"" if status == 416 else server.body[begin:] if partial else server.body
        self.send_header("Content-Length", str(len(payload)))
        if status == 206:
            extent = f"bytes {begin}-{len(server.body) - 1}/{len(server.body)}"
            self.send_header("Content-Range", server.lies or extent)
        self.end_headers()
        cut = server.cuts.pop(0) if server.cuts else len(payload)
        self.wfile.write(payload[:cut])


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as running:
        yield running


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLPBENCH_DATA", "LLPBENCH_OFFLINE", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(transfer, "PAUSE", 0.0)


def store(url: str, body: bytes = BODY, member: str = "", progress: Progress | None = None) -> DataStore:
    address = f"{url}#{member}" if member else url
    file = DataFile("toy/file", hashlib.sha256(body).hexdigest(), len(body), urls=(address,))
    return DataStore(DatasetSpec(name="toy", factory="toy:load", files=(file,)), progress=progress)


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "data" / "toy").glob(".resume-*"))


def half_fetched(server: Server, tmp_path: Path) -> None:
    """Every connection breaks off without a byte more than the first half: the fetch fails, the half is kept."""
    server.cuts = [CUT, *[0] * (transfer.ATTEMPTS - 1)]
    with pytest.raises(DataUnavailableError, match="broke off before its end"):
        store(server.url).fetch()
    (part,) = kept(tmp_path)
    assert part.read_bytes() == server.body[:HALF]
    assert not (tmp_path / "data" / "toy" / "file").exists()
    server.asked.clear()
    server.answers.clear()


def test_cut_connection_is_resumed_at_once(server: Server, tmp_path: Path) -> None:
    server.cuts = [CUT, transfer.CHUNK + 100]
    (path,) = store(server.url).fetch()
    assert path.read_bytes() == BODY
    assert server.asked == ["", f"bytes={HALF}-", f"bytes={HALF + transfer.CHUNK}-"]
    assert server.answers == [200, 206, 206]
    assert kept(tmp_path) == []


def test_next_fetch_resumes_an_interrupted_one(server: Server, tmp_path: Path) -> None:
    half_fetched(server, tmp_path)
    heard: list[int] = []
    (path,) = store(server.url, progress=lambda _, done, __: heard.append(done)).fetch()
    assert path.read_bytes() == BODY
    assert server.asked == [f"bytes={HALF}-"]
    assert heard[1] == HALF
    assert heard[-1] == len(BODY)
    assert kept(tmp_path) == []


def test_server_that_ignores_ranges_is_downloaded_from_the_start(server: Server, tmp_path: Path) -> None:
    half_fetched(server, tmp_path)
    server.ranges = False
    (path,) = store(server.url).fetch()
    assert path.read_bytes() == BODY
    assert server.answers == [200]


def test_changed_file_restarts_the_download(server: Server, tmp_path: Path) -> None:
    """Two halves of different files fail their checksum; the file is fetched again from its beginning."""
    half_fetched(server, tmp_path)
    server.body = BODY[::-1]
    (path,) = store(server.url, BODY[::-1]).fetch()
    assert path.read_bytes() == BODY[::-1]
    assert server.asked == [f"bytes={HALF}-", ""]
    assert server.answers == [206, 200]
    assert kept(tmp_path) == []


def test_shortened_file_restarts_the_download(server: Server, tmp_path: Path) -> None:
    half_fetched(server, tmp_path)
    server.body = BODY[:1000]
    (path,) = store(server.url, BODY[:1000]).fetch()
    assert path.read_bytes() == BODY[:1000]


def test_truncated_file_is_rejected(server: Server, tmp_path: Path) -> None:
    """Nothing lies beyond the half that is here (416): it is thrown away, and what the server has is refused whole."""
    half_fetched(server, tmp_path)
    server.body = BODY[:1000]
    with pytest.raises(DataUnavailableError, match="cut short at 1,000 of"):
        store(server.url).fetch()
    assert server.answers == [416, 200]
    assert kept(tmp_path) == []


def test_wrong_range_restarts_the_download(server: Server, tmp_path: Path) -> None:
    half_fetched(server, tmp_path)
    server.lies = "bytes 7-8/9"
    (path,) = store(server.url).fetch()
    assert path.read_bytes() == BODY
    assert server.answers == [206, 200]


def test_file_with_a_wrong_checksum_is_requested_once(server: Server, tmp_path: Path) -> None:
    server.body = b"x" * len(BODY)
    with pytest.raises(DataUnavailableError, match="checksum mismatch"):
        store(server.url).fetch()
    assert server.answers == [200]
    assert kept(tmp_path) == []


def test_complete_download_is_kept_after_a_kill(server: Server, tmp_path: Path) -> None:
    half_fetched(server, tmp_path)
    (part,) = kept(tmp_path)
    part.write_bytes(BODY)
    (path,) = store(server.url).fetch()
    assert path.read_bytes() == BODY
    assert server.asked == []


def test_archive_download_is_resumed(server: Server, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("inside.bin", BODY)
    server.body, server.cuts = buffer.getvalue(), [CUT]
    (path,) = store(server.url, member="inside.bin").fetch()
    assert path.read_bytes() == BODY
    assert server.answers == [200, 206]
    assert kept(tmp_path) == []


def test_old_partial_downloads_are_removed(server: Server, tmp_path: Path) -> None:
    half_fetched(server, tmp_path)
    old = time.time() - 8 * 86_400
    for path in kept(tmp_path):
        os.utime(path, (old, old))
    store(server.url).fetch()
    assert server.asked == [""]
