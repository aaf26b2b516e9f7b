"""Every built-in method on its default backend: it learns, repeats itself bit for bit, and can be saved."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from llpbench.contracts.state import is_restorable, plain_state
from llpbench.experiment.metrics import auroc
from llpbench.kit.methods import HEAVY
from llpbench.kit.problem import Problem
from llpbench.plugins.registry import load_registry

REGISTRY = load_registry()
BUILT_IN = [entry for entry in REGISTRY.methods if entry.plugin.builtin]
SHORT = {
    "epochs": 6, "batch_rows": 64, "lr": 0.01, "iterations": 1, "rounds": 20, "draws": 4, "trees": 10,
    "similarity": 0.0,
}  # fmt: skip
"""Little work at rates that suit it."""


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry.spec.name)
def test_learns_repeats_itself_and_restores_its_state(entry: Any) -> None:
    spec, problem = entry.spec, Problem(rows=480, sizes=4, separation=2.5)
    declared = {p.name for p in spec.params}
    params = spec.resolve({name: value for name, value in SHORT.items() if name in declared})
    labels = {"labels": problem.train_labels} if spec.oracle else {}

    def fit() -> Any:
        return spec.load()(**params).fit(problem.train, monitor=problem.monitor(spec, patience=20), seed=1, **labels)

    fitted = fit()
    scores = fitted.predict_scores(problem.test_rows)
    assert np.ptp(scores) > 0
    if spec.name != "shuffled-counts":  # a control, without signal to learn from
        assert auroc(problem.test_labels, scores) > 0.85
    assert np.array_equal(fit().predict_scores(problem.test_rows), scores)

    assert is_restorable(fitted)
    arrays, scalars = plain_state(spec.name, fitted.state())
    state = {**arrays, **scalars}
    restored = spec.load()(**params).restore(state)
    assert np.array_equal(restored.predict_scores(problem.test_rows), scores)
    names = sorted(state)
    for name in {names[0], names[-1], names[len(names) // 2]}:
        with pytest.raises((KeyError, ValueError)):
            spec.load()(**params).restore({k: v for k, v in state.items() if k != name})


def test_built_in_methods_are_registered() -> None:
    assert {"bp", "bp-count", "dllp", "mean-ridge", "best-feature", "supervised"} <= {e.spec.name for e in BUILT_IN}


def test_listing_methods_imports_nothing_heavy() -> None:
    modules = ", ".join(sorted({entry.plugin.module.__name__ for entry in BUILT_IN}))
    code = f"import sys, {modules}; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.split()
