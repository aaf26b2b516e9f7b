"""Locking folders away from this process and its children, by Landlock (Linux 5.13 and later).

A process that has locked itself can neither read nor write files under the given folders, cannot write under those it
may only read, cannot look into the memory of processes outside, and (Linux 6.12) cannot send them signals. It needs no
rights and cannot be undone. Landlock knows permissions only, no prohibitions; so everything else is permitted: each
entry beside the paths to the folders.
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


def version() -> int:
    """Version of the kernel's Landlock; 0 when there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_ONLY)))


def available() -> str:
    """What this system can do to lock a method's process away, as a sentence."""
    found = version()
    if not found:
        return "not available: a method's process can reach what its user can (Landlock needs Linux 5.13)"
    signals = "" if found >= 6 else ", but for signals (Linux 6.12)"
    return f"Landlock version {found}: a method's process is kept from results and other processes{signals}"


def lock_away(
    folders: Iterable[Path],
    *,
    read_only: Iterable[Path] = (),
    writable: Iterable[Path] = (),
    network: bool = True,
) -> bool:
    """Keep this process and all it will start from reading or writing under ``folders``; False when impossible.

    What can be done afterwards: everything elsewhere, except making new entries directly in a folder on the path to one
    of them. Names under them can still be listed.

    Args:
        folders: what may neither be read nor written.
        read_only: files and folders that may be read; where one is also under ``folders`` it may not.
        writable: folders that may be written wherever they are.
        network: whether TCP connections may be made (forbidden from Linux 6.7 on).
    """
    found = version()
    if not found:
        return False
    every = (1 << _KNOWN_RIGHTS.get(found, 16)) - 1
    tcp = 0 if network or found < 4 else _EVERY_TCP
    attributes = struct.pack("=QQQ", every, tcp, _SCOPE_SOCKETS_AND_SIGNALS if found >= 6 else 0)
    size = 24 if found >= 6 else 16 if found >= 4 else 8
    rules = _syscall(_CREATE_RULESET, attributes[:size], ctypes.c_size_t(size), ctypes.c_uint32(0))
    if rules < 0:
        return False
    try:
        locked, fixed = ({path.resolve() for path in paths} for paths in (folders, read_only))
        for path, rights in _permissions(locked, fixed, every):
            _permit(rules, path, rights)
        for path in writable:
            _permit(rules, path.resolve(), every)
        no_new_rights = _prctl(_PR_SET_NO_NEW_PRIVS, 1)
        return no_new_rights and _syscall(_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0)) == 0
    finally:
        os.close(rules)


def _permissions(locked: set[Path], fixed: set[Path], every: int) -> Iterator[tuple[Path, int]]:
    """Paths and what is permitted at and under each: nothing under ``locked``, no writing under ``fixed``.

    Permissions add up along a path. So a folder on the way to a locked or fixed one is given no more than the right to
    be listed, and each other entry of it what it shall have.
    """
    parents = {parent for path in locked | fixed for parent in path.parents}
    yield from ((path, _READ) for path in fixed - parents if not path.parents)
    for parent in parents:
        above = {parent, *parent.parents}
        if above & locked:
            continue
        yield parent, _READ_DIR
        with contextlib.suppress(OSError), os.scandir(parent) as entries:
            for entry in entries:
                path = Path(entry.path)
                if path not in locked | parents and not entry.is_symlink():
                    yield path, _READ if path in fixed or above & fixed else every


def hide_memory() -> None:
    """Keep other processes of the same user from reading this one's memory (Linux; root is not kept)."""
    if sys.platform == "linux":
        _prctl(_PR_SET_DUMPABLE, 0)


def _permit(rules: int, path: Path, rights: int) -> None:
    """Permit ``rights`` at and under a path; one that is gone or cannot be opened stays forbidden."""
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
