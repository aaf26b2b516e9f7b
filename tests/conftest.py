"""Test set-up: where the data lies, a cache of the session's own, and what several files of tests share."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium import Chromium

# A commit passes or fails the same way everywhere; `pytest --hypothesis-profile explore` looks for new examples.
settings.register_profile("same-everywhere", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("same-everywhere")

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
if "LLPBENCH_DATA" not in os.environ and _SHARED.is_dir():
    os.environ["LLPBENCH_DATA"] = str(_SHARED)
if "LLPBENCH_CACHE" not in os.environ:
    _CACHE = tempfile.TemporaryDirectory(prefix="llpbench-test-cache-")
    os.environ["LLPBENCH_CACHE"] = _CACHE.name
os.environ.setdefault("KERAS_BACKEND", "jax")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background: children would not know Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run slow tests, too")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--all"):
        config.option.markexpr = ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    """A browser without a window, one for each file of tests."""
    from chromium import Chromium

    with Chromium() as started:
        yield started


@pytest.fixture
def counted() -> Iterator[Path]:
    """An empty file in shared memory: of the places that outlive a cell, one that its method may write to."""
    shared = Path("/dev/shm")
    with tempfile.NamedTemporaryFile(prefix="llpbench-counted-", dir=shared if shared.is_dir() else None) as file:
        yield Path(file.name)
