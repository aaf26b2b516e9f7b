"""Equal terms: at every bag size every network method takes the same steps, on batches its loss can learn from."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from llpbench import Bags, QuietMonitor
from llpbench.plugins.registry import load_registry
from llpbench_methods.bp.pseudo import PseudoLabels

METHODS = load_registry().methods
BY_BAGS = ("dllp", "dsq", "genbags", "llp-dc", "llp-mm", "llp-vat", "mixbag", "count-nll", "bp", "bp-field")
BY_ROWS = ("easyllp", "llp-fc", "random-labels", "supervised")
LEAST_BAGS = {"easyllp": 8, "genbags": 4}


class KnownError(Exception):
    """Raised when all that the test asks is known: nothing is trained."""


def bags_of_size(size: int, rows: int = 20_093) -> tuple[Bags, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3)).astype(np.float32)
    y = (X[:, 0] + rng.normal(size=rows) > 1).astype(int)
    offsets = np.append(np.arange(0, rows, size), rows)
    return Bags(X, offsets, np.add.reduceat(y, offsets[:-1])[:, None].astype(float)), y


def batches_of(name: str, bags: Bags, labels: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> list:
    """The plans of the first epoch that a method at its defaults trains on."""
    from llpbench_methods.nets import training

    found: list = []

    def fit(self, data, batches, settings, **others):
        found.append(batches)
        raise KnownError

    monkeypatch.setattr(training.Trainer, "fit", fit)
    spec = METHODS[name]
    method = spec.load()(**spec.resolve({}))
    fit_method = partial(method.fit, bags, monitor=QuietMonitor(), seed=0)
    if spec.oracle:
        fit_method = partial(fit_method, labels=labels)
    if name in ("bp", "bp-field"):  # its network alone: pseudo-labels are not asked for here
        method.trainer_ = training.Trainer.__new__(training.Trainer)
        given = PseudoLabels(labels, np.ones(len(labels)))
        fit_method = partial(method._train, given, bags, QuietMonitor(), "iteration-1", 0)
    with pytest.raises(KnownError):
        fit_method()
    return found[0].plans(np.random.default_rng(0))


@pytest.mark.parametrize("size", [8, 512, 1024, 2048])
@pytest.mark.parametrize("name", [*BY_BAGS, *BY_ROWS])
def test_steps_and_bags_per_batch(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bags, labels = bags_of_size(size)
    plans = batches_of(name, bags, labels, monkeypatch)
    wanted = -(-len(bags.X) // 1024)
    steps = sum(plan.n_batches for plan in plans)
    dropped = 0.1 if name == "llp-fc" else 0.0  # an odd bag is in no group
    assert (1 - dropped - 0.11) * wanted <= steps <= 1.11 * wanted
    in_batch = []
    for plan in plans:
        for b in range(plan.n_batches):
            rows = plan.rows[b][plan.bag_of[b] < plan.bags.shape[1]]
            in_batch.append(len(np.unique(bags.bag_of[rows])))
    assert min(in_batch) >= LEAST_BAGS.get(name, 1)
    if name in BY_BAGS:
        assert all((plan.bags[: plan.n_batches] >= 0).any(axis=1).all() for plan in plans)
