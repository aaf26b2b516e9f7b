"""A process gives up capabilities, and system calls that act on other processes, on the kernel or on the network.

Landlock does not cover these: a method could limit, slow down or pin the processes above it, and as root read their
memory. The filter (seccomp) holds for all later children. It compares system calls and their integer arguments only.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import platform
import socket
import struct
from typing import NamedTuple

from llpbench.execution.kernel import prctl, syscall

_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL = 24, 47, 4
_CAPABILITY_VERSION = 0x20080522
_SET_FILTER, _IS_AVAILABLE, _SPEED_AS_BEFORE = 1, 2, 4
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of the filter
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # positions of what it looks at; an argument has eight bytes
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
_OTHER_NUMBERS = 0x40000000  # system calls of another ABI (x32), with the same effects


class _Machine(NamedTuple):
    """An architecture: its number, and its column in the tables below."""

    audit: int
    column: int
    seccomp: int
    capset: int


_MACHINES = {"x86_64": _Machine(0xC000003E, 0, 317, 126), "aarch64": _Machine(0xC00000B7, 1, 277, 91)}
_DENIED = {
    "ioprio_set": (251, 30),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "io_uring_setup": (425, 425),  # would open sockets beside the filter
}
_ALLOWED_WITH = {
    "prlimit64": ((302, 261), (0,)),  # of the process itself
    "sched_setparam": ((142, 118), (0,)),
    "sched_setscheduler": ((144, 119), (0,)),
    "sched_setattr": ((314, 274), (0,)),
    "sched_setaffinity": ((203, 122), (0,)),
    "setpriority": ((141, 140), (0, 0)),
    "socket": ((41, 198), (int(getattr(socket, "AF_UNIX", 1)),)),
}
"""System calls that are allowed with these first arguments only."""


def can_filter() -> bool:
    """Whether this system can filter system calls, on an architecture whose numbers are known."""
    here = _MACHINES.get(platform.machine())
    action = ctypes.byref(ctypes.c_uint32(_REFUSE & 0xFFFF0000))
    return here is not None and syscall(here.seccomp, ctypes.c_uint(_IS_AVAILABLE), ctypes.c_uint(0), action) == 0


def give_up_privileges() -> bool:
    """Drop all capabilities and enter the filter; whether both succeeded. Needs ``PR_SET_NO_NEW_PRIVS``.

    The filter binds the calling thread. Where the system has none, capabilities are dropped all the same.
    """
    here = _MACHINES.get(platform.machine())
    if here is None:
        return False
    for capability in itertools.count():
        if not prctl(_PR_CAPBSET_DROP, capability):  # the last one, or an ordinary user, whose processes have none
            break
    prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    dropped = syscall(here.capset, struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)) == 0
    program = _program(here)
    code = ctypes.create_string_buffer(program)
    described = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    operation, flags = ctypes.c_uint(_SET_FILTER), ctypes.c_uint(_SPEED_AS_BEFORE)
    return syscall(here.seccomp, operation, flags, described) == 0 and dropped


def _program(here: _Machine) -> bytes:
    """The filter: allow everything but other architectures, the denied calls, and calls with other arguments."""
    deny = _instruction(_RETURN, _REFUSE)
    program = [_instruction(_LOAD, _ARCHITECTURE), _instruction(_EQUAL, here.audit, 1, 0), deny]
    program += [_instruction(_LOAD, _NUMBER), _instruction(_AT_LEAST, _OTHER_NUMBERS, 0, 1), deny]
    for numbers in _DENIED.values():
        program += [_instruction(_EQUAL, numbers[here.column], 0, 1), deny]
    for numbers, allowed in _ALLOWED_WITH.values():
        left = 2 * len(allowed)
        program.append(_instruction(_EQUAL, numbers[here.column], 0, left + 2))
        for place, value in enumerate(allowed):
            left -= 2
            program += [_instruction(_LOAD, _ARGUMENTS + 8 * place), _instruction(_EQUAL, value, 0, left + 1)]
        program += [_instruction(_RETURN, _ALLOW), deny]
    return b"".join([*program, _instruction(_RETURN, _ALLOW)])


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
