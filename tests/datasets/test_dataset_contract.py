"""Every built-in dataset passes the conformance kit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

# Features that take long to make are left out: test_criteo.py and test_cifar.py cover them on small data.
DATASETS = (
    "adult",
    "marketing",
    "flights",
    "landscape",
    "synthetic",
    "criteo[features=hashed]",
)


@pytest.mark.slow
@pytest.mark.llpbench(*DATASETS)
def test_dataset_passes_the_conformance_kit(llpbench_check: Callable[[], None]) -> None:
    llpbench_check()
