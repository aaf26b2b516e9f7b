"""What a process that has locked itself away can still do, tried by one that has."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from llpbench.system import sandbox

pytestmark = pytest.mark.skipif(not sandbox.version(), reason="needs Landlock")
SCRIPT = """
import json, socket, sys
from pathlib import Path
from llpbench.system.sandbox import lock_away

root, network = Path(sys.argv[1]), sys.argv[2] == "yes"
server = socket.create_server(("127.0.0.1", 0))
paths = {name: [root / p for p in places] for name, places in json.loads(sys.argv[3]).items()}
assert lock_away(paths["locked"], read_only=paths["read_only"], writable=paths["writable"], network=network)

def can(what, *arguments):
    try:
        return what(*arguments) or True
    except OSError:
        return False

found = {}
for file in sorted(json.loads(sys.argv[4])):
    path = root / file
    read, write, new = can(path.read_bytes), can(path.write_bytes, b"x"), can((path.parent / "new").write_bytes, b"x")
    found[file] = "".join(letter for letter, done in zip("rwn", (read, write, new)) if done)
found["connect"] = bool(can(lambda: socket.create_connection(server.getsockname()).close()))
print(json.dumps(found))
"""
FILES = ("results/cell", "results/plugin", "code/file", "code/scratch/file", "code/results/cell", "other/file", "mine")


def tried(root: Path, network: str = "yes", **paths: tuple[str, ...]) -> dict[str, str]:
    """What was possible with each file: to read it, to write it, to make a new one beside it."""
    for file in FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("y")
    asked = {"locked": (), "read_only": (), "writable": (), **paths}
    command = [sys.executable, "-c", SCRIPT, str(root), network, json.dumps(asked), json.dumps(FILES)]
    found: dict[str, str] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def test_each_path_has_what_it_was_given(tmp_path: Path) -> None:
    found = tried(
        tmp_path,
        locked=("results", "code/results"),
        read_only=("code", "results/plugin", "mine"),
        writable=("code/scratch",),
    )
    assert found["results/cell"] == ""
    assert found["results/plugin"] == ""  # what is locked stays so, whatever is to be read in it
    assert found["code/file"] == "r"
    assert found["code/results/cell"] == ""
    assert found["code/scratch/file"] == "rwn"
    assert found["mine"] == "r"  # and nothing new on the way to it
    assert found["other/file"] == "rwn"
    assert found["connect"]


def test_nothing_but_the_given_is_restricted(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("results",))
    assert {found[file] for file in FILES if file.startswith(("code", "other"))} == {"rwn"}
    assert found["mine"] == "rw"


@pytest.mark.skipif(sandbox.version() < 4, reason="TCP is restricted from Linux 6.7 on")
def test_connections_are_forbidden_where_asked(tmp_path: Path) -> None:
    assert not tried(tmp_path, network="no", locked=("results",))["connect"]


def test_all_that_there_is_may_be_read_only(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("results",), read_only=("/",), writable=("code/scratch",))
    assert found["results/cell"] == ""
    assert found["other/file"] == found["mine"] == "r"
    assert found["code/scratch/file"] == "rwn"
