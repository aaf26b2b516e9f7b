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
assert lock_away(paths["locked"], writable=paths["writable"], network=network)

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
FILES = ("results/cell", "results/cache/file", "scratch/file", "scratch/results/cell", "other/file", "mine")


def tried(root: Path, network: str = "yes", **paths: tuple[str, ...]) -> dict[str, str]:
    """What was possible with each file: to read it, to write it, to make a new one beside it."""
    for file in FILES:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("y")
    asked = {"locked": (), "writable": (), **paths}
    command = [sys.executable, "-c", SCRIPT, str(root), network, json.dumps(asked), json.dumps(FILES)]
    found: dict[str, str] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def test_each_path_has_what_it_was_given(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("results",), writable=("scratch", "results/cache"))
    assert found["results/cell"] == ""
    assert found["results/cache/file"] == found["scratch/file"] == found["scratch/results/cell"] == "rwn"
    assert found["other/file"] == found["mine"] == "r"
    assert found["connect"]


def test_nothing_is_written_where_nothing_was_given(tmp_path: Path) -> None:
    assert {letters for file, letters in tried(tmp_path).items() if file in FILES} == {"r"}


def test_what_is_locked_stays_so_in_a_folder_that_may_be_written(tmp_path: Path) -> None:
    found = tried(tmp_path, locked=("scratch/results",), writable=("scratch",))
    assert found["scratch/results/cell"] == ""
    assert found["scratch/file"] == "rw"  # and nothing new on the way to it


@pytest.mark.skipif(sandbox.version() < 4, reason="TCP is restricted from Linux 6.7 on")
def test_connections_are_forbidden_where_asked(tmp_path: Path) -> None:
    assert not tried(tmp_path, network="no", locked=("results",))["connect"]


WITHIN = """
import multiprocessing, os, subprocess, sys, threading
from pathlib import Path
from llpbench.system.sandbox import lock_away

assert lock_away([])
multiprocessing.Lock()
subprocess.run([sys.executable, "-c", ""], stdout=subprocess.DEVNULL, check=True)
thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start()
Path(f"/proc/self/task/{thread.native_id}/comm").write_text("named")
Path("/dev/null").write_bytes(b"x")
"""


def test_what_libraries_need_remains(tmp_path: Path) -> None:
    """Semaphores, other programs, and the names of threads, without which graphics cards do not start."""
    subprocess.run([sys.executable, "-c", WITHIN], check=True, cwd=tmp_path)
