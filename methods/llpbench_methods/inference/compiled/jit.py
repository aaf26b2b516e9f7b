"""The one place that decides how numba compiles: cached on disk, without the GIL, without Python's errors.

Machine code is kept in llpbench's cache, so that only the first process on a machine pays for compilation. Numba
alone does not notice when a function of *another* file that was compiled into a cached one changes, so the folder is
named by the content of all compiled files. No `parallel=True`: threads come from a plain pool that runs these GIL-free
functions, so nothing is started at import and a forked worker is safe.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, NullCache

from llpbench import cache_root

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


def _compile(function: F, fastmath: set[str] | bool) -> F:
    dispatcher = numba.njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    dispatcher._cache = _Cache(function)
    return cast(F, dispatcher)


class _Cache(NullCache):  # type: ignore[misc]
    """Numba's cache of a function, in the folder that holds when it is first used.

    A cell's process has a cache of its own, and is forked from one that has imported this module.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    @cached_property
    def _opened(self) -> Any:
        elsewhere = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = machine_code_folder()  # read when a cache is made, so others keep their own
        try:
            return FunctionCache(self._function)
        except RuntimeError:  # no folder to cache in: compile in every process rather than fail
            return NullCache()
        finally:
            numba.config.CACHE_DIR = elsewhere

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        return self._opened.load_overload(sig, target_context)

    def save_overload(self, sig: Any, cres: Any) -> None:
        self._opened.save_overload(sig, cres)


def machine_code_folder() -> str:
    """Folder of the cached machine code, one for each content of the files with compiled functions."""
    return str(cache_root() / "compiled" / "numba" / _content_digest())


@lru_cache(maxsize=1)
def _content_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        source = path.read_bytes()
        if b"compiled.jit import" in source:
            digest.update(source)
    return digest.hexdigest()[:16]
