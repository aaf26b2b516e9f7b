"""A sandbox for this process and its children, by Landlock (Linux 5.13 and later) and seccomp (``privileges``).

Inside, a process can write to a few folders only, cannot read files under the locked ones, has no network, cannot read
the memory of processes outside or change their limits and priorities, and (Linux 6.12) cannot send them signals. No
privileges are needed; the sandbox cannot be left.
Landlock has permissions only, no prohibitions: every entry beside the paths to locked folders is made readable.
Both bind the calling thread and what that thread starts: a process must enter before it has other threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from llpbench.contracts.errors import LLPBenchError
from llpbench.execution.kernel import prctl, syscall
from llpbench.execution.privileges import can_filter, give_up_privileges

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_VERSION_ONLY = 1
_PATH_BENEATH = 1
_SCOPE_SOCKETS_AND_SIGNALS = 0b11
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE, _IOCTL = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_EVERY_TCP = 0b11  # to bind and to connect
_KNOWN_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # number of rights by version; 16 from version 5 on
_PLAIN_DEVICES = ("null", "zero", "full", "random", "urandom", "shm")
_COMPUTING_DEVICES = ("nvidia*", "kfd", "dri", "dxg", "accel*", "vfio")
_THREADS = Path("/proc/self/task")  # drivers of devices name their threads there, and fail where they cannot


def version() -> int:
    """Version of the kernel's Landlock; 0 if it has none."""
    return max(0, syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_ONLY)))


def available() -> str:
    """How methods are sandboxed on this system, as a sentence; ``doctor`` also tries it."""
    found = version()
    calls = "" if can_filter() else "; system calls are not filtered (needs Linux with seccomp on x86_64 or aarch64)"
    if not found:
        return f"not available: a method's process can access whatever its user can (Landlock needs Linux 5.13){calls}"
    signals = "" if found >= 6 else ", except by signals (Linux 6.12)"
    tcp = "the network" if can_filter() else "TCP" if found >= 4 else ""
    denied = ", ".join(filter(None, ("results", "data files", tcp)))
    return f"Landlock version {found}: a method's process cannot access {denied} or other processes{signals}{calls}"


def lock_away(folders: Iterable[Path], *, readable: Iterable[Path] = (), writable: Iterable[Path] = ()) -> bool:
    """Forbid this process and its children to write, to read under ``folders`` and to use the network.

    Still allowed: reading everything elsewhere, writing under ``writable`` and to devices that hold no files
    (``/dev/null``, shared memory, graphics cards). Names under locked folders can still be listed; new entries of a
    folder on the path to one can be neither created nor read.

    Args:
        folders: what can be neither read nor written. A name that ends in ``*`` matches all present and future entries
            of its folder with that prefix, except those that are writable or contain a locked folder.
        readable: what can be read although it lies in a locked folder.
        writable: folders that can be written; of one that contains a locked folder, everything beside that.

    Returns:
        Whether Landlock is available. Without it, only system calls are filtered, if the system can do that.

    Raises:
        LLPBenchError: a part that is available failed, or this process has threads that it would not bind. No code of a
            method may run.
    """
    found = version()
    if found or can_filter():
        _refuse_threads()
        if not prctl(_PR_SET_NO_NEW_PRIVS, 1):
            raise _not_locked(found)
    if found:
        _enter_landlock(found, folders, readable, writable)
    if not give_up_privileges() and can_filter():
        raise _not_locked(found)
    return found > 0


def _enter_landlock(found: int, folders: Iterable[Path], readable: Iterable[Path], writable: Iterable[Path]) -> None:
    every = (1 << _KNOWN_RIGHTS.get(found, 16)) - 1
    attributes = struct.pack("=QQQ", every, _EVERY_TCP if found >= 4 else 0, _SCOPE_SOCKETS_AND_SIGNALS)
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    rules = syscall(_CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint32(0))
    if rules < 0:
        raise _not_locked(found)
    try:
        locked = {path.resolve() for path in folders}
        inside = {path for path in (path.resolve() for path in readable) if locked & {*path.parents}}
        open_to_all = {path.resolve() for path in (*writable, *_devices())}
        for path, rights in _permissions(locked, inside, open_to_all, every):
            _permit(rules, path, rights & every)
        if syscall(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0)) != 0:
            raise _not_locked(found)
    finally:
        os.close(rules)


def _refuse_threads() -> None:
    """Raise if this process has several threads: the others would stay free and could be made to run any code."""
    threads = len(list(_THREADS.iterdir()))
    if threads > 1:
        raise LLPBenchError(
            f"the method's process could not enter its sandbox: it has {threads} threads, and a sandbox binds only the "
            "calling one. Does a sitecustomize or .pth file of this Python import a library that starts threads?"
        )


def _not_locked(found: int) -> LLPBenchError:
    return LLPBenchError(
        f"the method's process could not enter its sandbox although the system has one (Landlock version {found}): "
        f"{os.strerror(ctypes.get_errno())}. Start llpbench outside of the sandbox it is in (the kernel allows 16 "
        "nested ones); 'llpbench doctor' tests this"
    )


def _devices() -> Iterator[Path]:
    names = (*_PLAIN_DEVICES, *_COMPUTING_DEVICES)
    yield from (path for name in names for path in Path("/dev").glob(name))


def _permissions(locked: set[Path], readable: set[Path], writable: set[Path], every: int) -> Iterator[tuple[Path, int]]:
    """Paths and the rights at and under each; rights add up along a path."""
    parents = {parent for path in locked for parent in path.parents}
    yield from ((path, _READ_DIR) for path in parents if not {path, *path.parents} & locked)
    yield from ((path, _READ) for folder in (Path("/"), *readable) for path in _beside(folder, locked, parents))
    yield from ((path, every) for folder in writable for path in _beside(folder, locked, parents))
    yield _THREADS.resolve(), _WRITE_FILE | _TRUNCATE


def _beside(path: Path, locked: set[Path], parents: set[Path]) -> Iterator[Path]:
    """The path itself or, if it contains something locked, everything beside that."""
    if path not in locked | parents:
        yield path
    elif path not in locked:
        begun = tuple(other.name[:-1] for other in locked if other.parent == path and other.name.endswith("*"))
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                inside = Path(entry.path)
                if not entry.is_symlink() and (inside in parents or not entry.name.startswith(begun)):
                    yield from _beside(inside, locked, parents)


def hide_memory() -> None:
    """Keep other processes of the same user from reading this one's memory (Linux; root is not kept)."""
    prctl(_PR_SET_DUMPABLE, 0)


def _permit(rules: int, path: Path, rights: int) -> None:
    """Grant ``rights`` at and under a path; a path that cannot be opened stays forbidden."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _FOR_FILES
        rule = struct.pack("=Qi", rights, handle)
        syscall(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)
