"""The one place that decides how numba compiles: cached on disk, without the GIL, without Python's errors.

`cache=True` writes the machine code next to the source (or to numba's user cache), so that only the first process
on a machine pays for compilation. No `parallel=True`: threads come from a plain pool that runs these GIL-free
functions, so nothing is started at import and a forked worker is safe. Numba does not notice when a function of
*another* file that was compiled into a cached one changes: after editing, remove the `__pycache__` folders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import extending

F = TypeVar("F", bound=Callable[..., object])
Scalar = Any
"""A float32 or float64 of compiled code, which keeps the width that `float` in a plain signature would hide."""

# No `nnan`, `ninf`, `arcp`: infinities are values here, and approximate reciprocals slow the loops down.
_FAST = {"reassoc", "contract", "nsz", "afn"}


def njit(function: F) -> F:
    """Compile with strict floating point."""
    return _compile(function, False)


def njit_fast(function: F) -> F:
    """Compile with reassociation, so that sums and products vectorise."""
    return _compile(function, _FAST)


def inlined(function: F) -> F:
    """Paste the function into its callers before they are compiled, so that their loops vectorise."""
    return cast(F, numba.njit(inline="always", error_model="numpy", fastmath=_FAST)(function))


def intrinsic(function: Callable[..., Any]) -> Any:
    """A function that emits its own instructions; called with the arguments after its first."""
    return extending.intrinsic(function)


def _compile(function: F, fastmath: set[str] | bool) -> F:
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no folder to cache in: compile in every process rather than fail
        return cast(F, numba.njit(**options)(function))
