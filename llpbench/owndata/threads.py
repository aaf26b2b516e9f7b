"""One thread for the fits of own data, which are small: threads of several libraries slow each other down."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_XLA = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS, OpenMP, numba and torch to one thread, and XLA if jax has not been imported yet."""
    from threadpoolctl import threadpool_limits

    flags = os.environ.get("XLA_FLAGS")
    if "jax" not in sys.modules:
        os.environ["XLA_FLAGS"] = f"{flags or ''} {_XLA}".strip()
    numba = sys.modules.get("numba")
    threads = numba.get_num_threads() if numba is not None else 0
    try:
        if numba is not None:
            numba.set_num_threads(1)
        with threadpool_limits(1):
            yield
    finally:
        if numba is not None:
            numba.set_num_threads(threads)
        if flags is None:
            os.environ.pop("XLA_FLAGS", None)
        else:
            os.environ["XLA_FLAGS"] = flags
