"""A sandbox for this process and its children, by Landlock (Linux 5.13 and later).

Inside, a process can write to a few folders only, cannot read files under the locked ones, cannot read the memory of
processes outside, and (Linux 6.12) cannot send them signals. No privileges are needed; the sandbox cannot be left.
Landlock has permissions only, no prohibitions: every entry beside the paths to locked folders is made readable.
It binds the calling thread and what that thread starts: a process must enter the sandbox before it has other threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from llpbench.contracts.errors import LLPBenchError

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
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_ONLY)))


def available() -> str:
    """How methods are sandboxed on this system, as a sentence; ``doctor`` also tries it."""
    found = version()
    if not found:
        return "not available: a method's process can access whatever its user can (Landlock needs Linux 5.13)"
    signals = "" if found >= 6 else ", except by signals (Linux 6.12)"
    return f"Landlock version {found}: a method's process cannot access results or other processes{signals}"


def lock_away(folders: Iterable[Path], *, writable: Iterable[Path] = (), network: bool = True) -> bool:
    """Forbid this process and its children to write, and to read under ``folders``; False without Landlock.

    Still allowed: reading everything elsewhere, writing under ``writable`` and to devices that hold no files
    (``/dev/null``, shared memory, graphics cards). Names under locked folders can still be listed; new entries of a
    folder on the path to one can be neither created nor read.

    Args:
        folders: what can be neither read nor written. A name that ends in ``*`` matches all present and future entries
            of its folder with that prefix, except those that are writable or contain a locked folder.
        writable: folders that can be written; of one that contains a locked folder, everything beside that.
        network: whether TCP connections are allowed (enforced from Linux 6.7 on).

    Raises:
        LLPBenchError: Landlock failed, or this process has threads that it would not bind. No code of a method may run.
    """
    found = version()
    if not found:
        return False
    _refuse_threads()
    every = (1 << _KNOWN_RIGHTS.get(found, 16)) - 1
    tcp = 0 if network or found < 4 else _EVERY_TCP
    attributes = struct.pack("=QQQ", every, tcp, _SCOPE_SOCKETS_AND_SIGNALS if found >= 6 else 0)
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    rules = _syscall(_CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint32(0))
    if rules < 0:
        raise _not_locked(found)
    try:
        locked = {path.resolve() for path in folders}
        open_to_all = {path.resolve() for path in (*writable, *_devices())}
        for path, rights in _permissions(locked, open_to_all, every):
            _permit(rules, path, rights & every)
        no_new_rights = _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        if not no_new_rights or _syscall(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0)) != 0:
            raise _not_locked(found)
    finally:
        os.close(rules)
    return True


def _refuse_threads() -> None:
    """Raise if this process has several threads: the others would stay free and could be made to run any code."""
    threads = len(list(_THREADS.iterdir()))
    if threads > 1:
        raise LLPBenchError(
            f"the method's process could not enter its sandbox: it has {threads} threads, and Landlock binds only the "
            "calling one. Does a sitecustomize or .pth file of this Python import a library that starts threads?"
        )


def _not_locked(found: int) -> LLPBenchError:
    return LLPBenchError(
        f"the method's process could not enter its sandbox although the system has Landlock (version {found}): "
        f"{os.strerror(ctypes.get_errno())}. Start llpbench outside of the sandbox it is in (the kernel allows 16 "
        "nested ones); 'llpbench doctor' tests this"
    )


def _devices() -> Iterator[Path]:
    names = (*_PLAIN_DEVICES, *_COMPUTING_DEVICES)
    yield from (path for name in names for path in Path("/dev").glob(name))


def _permissions(locked: set[Path], writable: set[Path], every: int) -> Iterator[tuple[Path, int]]:
    """Paths and the rights at and under each; rights add up along a path."""
    parents = {parent for path in locked for parent in path.parents}
    yield from ((path, _READ_DIR) for path in parents if not {path, *path.parents} & locked)
    yield from ((path, _READ) for path in _beside(Path("/"), locked, parents))
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
    if sys.platform == "linux":
        _prctl(_PR_SET_DUMPABLE, 0)


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
        _syscall(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)


def _syscall(number: int, *arguments: object) -> int:
    try:
        return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments))
    except (OSError, AttributeError):
        return -1


def _prctl(option: int, value: int) -> bool:
    with contextlib.suppress(OSError, AttributeError):
        zero = ctypes.c_ulong(0)
        return int(ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), zero, zero, zero)) == 0
    return False
