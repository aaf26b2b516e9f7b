"""Built-in methods pass the conformance kit on their default backend."""

from __future__ import annotations

import pytest

from llpbench.kit.kit import checks_for, run_checks
from llpbench.plugins.registry import load_registry

REGISTRY = load_registry()
METHODS = (
    "average",
    "bag-logistic",
    "best-feature",
    "bp",
    "bp-count",
    "bp-field",
    "dllp",
    "max-entropy",
    "mean-map",
    "mean-ridge",
)
"""Methods with a way to train of their own; losses_probe.py checks others on the other backends."""
TESTED_ELSEWHERE = {"listing_is_light", "same_seed_same_scores", "state_round_trips", "learns"}
"""Checks that test_every_method.py makes for every method."""


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_method_passes_the_conformance_kit(name: str) -> None:
    checks = [check for check in checks_for(name, REGISTRY) if check.name not in TESTED_ELSEWHERE]
    results = run_checks(checks)
    assert [(str(r.check), r.reason) for r in results if r.outcome == "failed"] == []
    assert sum(r.outcome == "passed" for r in results) >= 9
