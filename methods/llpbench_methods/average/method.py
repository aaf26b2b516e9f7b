"""average: a few stable learners on the same bags, and the weighted mean of their log-odds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from llpbench import Bags, FloatArray, Monitor, QuietMonitor, State, method_spec
from llpbench_methods.average.pool import known_rate, log_odds, pooled, probabilities
from llpbench_methods.shared.shares import shift_to_shares
from llpbench_methods.shared.temperature import bag_loss

Array = NDArray[np.float64]

MEMBERS: dict[str, dict[str, dict[str, Any]]] = {
    "all": {"bag-logistic": {}, "mean-ridge": {}, "bp-count": {}},
    "quick": {"bag-logistic": {}, "mean-ridge": {}, "bp-count": {"rounds": 0}},
}
"""For each value of ``members``, the methods that are averaged, with the parameters that are not their defaults."""


class Average:
    """Fits a few learners without random initial weights, and averages their log-odds.

    Members are weighted by the likelihood of the held-out counts: the criterion of the rule ``bags`` times the number
    of held-out rows is a log-likelihood, and weights are proportional to its exponential. A few held-out bags hardly
    separate the members, and their weights are then almost equal. Without held-out bags they are equal.

    A constant added to the mean log-odds (one for each class) makes the mean prediction of the training rows the known
    rate.

    Args:
        members: ``"all"`` or ``"quick"``.
        weights: ``"likelihood"`` or ``"equal"``.
    """

    shift_: Array
    weights_: Array

    def __init__(self, members: str = "all", weights: str = "likelihood") -> None:
        self.members, self.weights = members, weights
        self._models = {name: _made(name, params) for name, params in MEMBERS[members].items()}

    def fit(self, bags: Bags, *, monitor: Monitor, seed: int) -> Average:
        """Fit the members one after the other, then weigh and calibrate their average; report once."""
        for name, model in self._models.items():
            with monitor.phase(name):
                self._models[name] = model.fit(bags, monitor=QuietMonitor(), seed=seed)
        with monitor.phase("average"):
            self.weights_ = self._weigh(bags.validation)
            self.shift_ = shift_to_shares(self._pool(bags.X), known_rate(bags))
        for name, weight in zip(self._models, self.weights_, strict=True):
            monitor.note(f"weight_{name}", weight)
        monitor.report(self.predict_scores)
        return self

    def predict_scores(self, X: FloatArray) -> FloatArray:
        """Probability of class 1, (n,), or of every class, (n, C)."""
        return probabilities(self._pool(X) + self.shift_)

    def state(self) -> State:
        """Weights, shift and the state of every member, whose names begin with that of the member."""
        inner = {f"{name}/{key}": v for name, model in self._models.items() for key, v in model.state().items()}
        return {"weights": self.weights_, "shift": self.shift_, **inner}

    def restore(self, state: State) -> Average:
        """Take up saved members."""
        self.weights_ = np.asarray(state["weights"], np.float64)
        self.shift_ = np.asarray(state["shift"], np.float64)
        if self.weights_.shape != (len(self._models),):
            raise ValueError(f"expected {len(self._models)} weights, got shape {self.weights_.shape}")
        for name, model in self._models.items():
            start = f"{name}/"
            inner = {key.removeprefix(start): v for key, v in state.items() if key.startswith(start)}
            self._models[name] = model.restore(inner)
        return self

    def _pool(self, X: FloatArray) -> Array:
        fields = [log_odds(model.predict_scores(X)) for model in self._models.values()]
        return pooled(fields, self.weights_)

    def _weigh(self, held: Bags | None) -> Array:
        """The members' weights, which add up to 1."""
        if held is None or self.weights == "equal":
            return np.full(len(self._models), 1.0 / len(self._models))
        fields = [log_odds(model.predict_scores(held.X)) for model in self._models.values()]
        losses = [bag_loss(field[:, 0] if field.shape[1] == 1 else field, held, 1.0) for field in fields]
        return np.asarray(softmax(-len(held.X) * np.array(losses)))


def _made(name: str, params: dict[str, Any]) -> Any:
    """A fresh method by its registered name."""
    spec = method_spec(name)
    return spec.load()(**spec.resolve(params))
