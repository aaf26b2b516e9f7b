"""How a method's process begins: it locks itself away, and only then imports anything with threads.

A lock binds the thread that asks for it and what that thread starts later. Libraries of linear algebra start threads as
they are imported, so nothing that is imported here may import numpy. ``python -m llpbench.execution.method_start
FILE-NUMBER`` where the process is not forked.
"""

from __future__ import annotations

import faulthandler
import os
import socket
import sys
import tempfile
from pathlib import Path

from llpbench.execution.channel import FROM_THE_JUDGE, Assignment, Channel
from llpbench.execution.confines import move_home
from llpbench.system.processes import die_with_parent
from llpbench.system.sandbox import lock_away


def start(channel: Channel, assignment: Assignment) -> None:
    """Lock this process away, then load the method and fit it; where the lock fails the judge is told why."""
    trouble: Exception | None = None
    try:
        prepare(assignment)
    except Exception as error:
        trouble = error
    from llpbench.execution.method_main import serve

    serve(channel, assignment, trouble)


def prepare(assignment: Assignment) -> None:
    """Name the backend to Keras, move into the private folder, lock away what is not the method's."""
    if assignment.backend:
        os.environ["KERAS_BACKEND"] = assignment.backend
    move_home(assignment.scratch)
    tempfile.tempdir = None
    lock_away(map(Path, assignment.locked), writable=map(Path, assignment.writable), network=assignment.network)


def main() -> int:
    """Serve the judge at the other end of the socket whose file number is the first argument."""
    die_with_parent()
    faulthandler.enable()
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    try:
        assignment, _ = channel.receive(Assignment, FROM_THE_JUDGE)
    except EOFError:
        return 1
    start(channel, assignment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
