"""How a method's process begins: it enters its sandbox, and only then imports anything with threads.

Landlock binds the thread that asks for it and what that thread starts later. Libraries of linear algebra start threads
when they are imported, so nothing that is imported here may import numpy. Run as ``python -m
llpbench.execution.method_start DESCRIPTOR`` where the process is not forked.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from llpbench.execution.channel import FROM_THE_JUDGE, Assignment, receive
from llpbench.execution.confines import move_home
from llpbench.execution.processes import SHOW_STACKS, die_with_parent
from llpbench.execution.sandbox import lock_away
from llpbench.system.environment import keep_variables
from llpbench.system.opened import watch_files


def start(connection: Connection, assignment: Assignment) -> None:
    """Enter the sandbox, then load the method and fit it; if the sandbox fails, report why to the judge."""
    trouble: Exception | None = None
    try:
        prepare(assignment)
        faulthandler.register(SHOW_STACKS)
    except Exception as error:
        trouble = error
    from llpbench.execution.method_main import serve

    serve(connection, assignment, trouble)


def prepare(assignment: Assignment) -> None:
    """Set the environment, move into the private folder, enter the sandbox, and watch which files are read."""
    keep_variables()
    if assignment.backend:
        os.environ["KERAS_BACKEND"] = assignment.backend
    move_home(assignment.scratch, assignment.cache)
    tempfile.tempdir = None
    code: tuple[str | Path, ...] = (
        *sys.path,
        sys.prefix,
        sys.base_prefix,
        Path(__file__).parents[2],
        *assignment.plugins,
    )
    lock_away(
        map(Path, assignment.locked),
        readable=(Path(folder) for folder in code if folder),
        writable=map(Path, (assignment.scratch, assignment.cache)),
    )
    watch_files()


def main() -> int:
    """Serve the judge at the other end of the connection whose file descriptor is the first argument."""
    die_with_parent()
    faulthandler.enable()
    connection = Connection(int(sys.argv[1]))
    try:
        assignment = receive(connection, Assignment, FROM_THE_JUDGE)
    except EOFError:
        return 1
    start(connection, assignment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
