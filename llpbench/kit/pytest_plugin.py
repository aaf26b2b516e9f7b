"""The conformance kit in pytest: one test for each check of a plugin.

Pytest loads this wherever llpbench is installed, so it imports nothing until a test requests it::

    @pytest.mark.llpbench("mymethod", "mydataset")
    def test_contract(llpbench_check):
        llpbench_check()
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from llpbench.kit.kit import Check

_MARK = "llpbench(*names): the methods, datasets and plugin files that llpbench_check checks"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--llpbench-backend``."""
    parser.getgroup("llpbench").addoption(
        "--llpbench-backend",
        default=os.environ.get("KERAS_BACKEND", "jax"),
        help="backend of the methods that need one: jax, tensorflow or torch (default: KERAS_BACKEND, or jax)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", _MARK)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test that requests ``llpbench_check`` with the checks of the marked names."""
    if "llpbench_check" not in metafunc.fixturenames:
        return
    names = [name for mark in metafunc.definition.iter_markers("llpbench") for name in mark.args]
    if not names:
        raise pytest.UsageError(
            f'{metafunc.definition.nodeid} requests llpbench_check: mark it with @pytest.mark.llpbench("name")'
        )
    from llpbench.kit.kit import checks_of

    backend = metafunc.config.getoption("--llpbench-backend")
    os.environ["KERAS_BACKEND"] = backend
    checks = checks_of(names, backend=backend)
    metafunc.parametrize("llpbench_check", [_runner(check) for check in checks], ids=[str(c) for c in checks])


def _runner(check: Check) -> Callable[[], None]:
    """The check, with ``Skip`` turned into a skip of pytest."""

    def run() -> None:
        from llpbench.contracts.errors import Skip

        try:
            check()
        except Skip as skip:
            pytest.skip(str(skip))

    return run
