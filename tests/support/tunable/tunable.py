"""A plugin for tuning tests: numpy methods with a known best, and a dataset whose test part can be spoilt."""

from __future__ import annotations

import os
import time

import numpy as np

from llpbench import DatasetSpec, MethodSpec, Param, Part, Split, hookimpl
from llpbench import Skip as Declined


@hookimpl
def llpbench_methods():
    slope = Param("slope", 0.0, low=-3.0, high=3.0, doc="the best is 1")
    words = Param("offset", None, low=-1.0, high=1.0, choices=("auto",), kind="float")
    return [
        MethodSpec(
            name="tilt",
            factory="tunable:Tilt",
            params=(
                slope,
                words,
                Param("flip", False),
                Param("epochs", 1, low=1, high=40, tune=False),
                Param("patience", 1000, low=1, high=1000),
                Param("seconds", 0.0, low=0.0, high=10.0, tune=False),
                Param("note", "", tune=False),
                Param("later", False, omit_default=True),
            ),
            scores="probability",
        ),
        MethodSpec(name="plain", factory="tunable:Plain", scores="probability"),
        MethodSpec(name="fragile", factory="tunable:Fragile", params=(slope,), scores="probability"),
        MethodSpec(name="declines", factory="tunable:Declines", params=(slope,), scores="probability"),
    ]


@hookimpl
def llpbench_datasets():
    return [DatasetSpec(name="halves", factory="tunable:load_halves", rows=400)]


class Tilt:
    """Scores by the first feature, as steep as ``slope`` says, approached over epochs."""

    def __init__(self, slope=0.0, offset=None, flip=False, epochs=1, patience=1000, seconds=0.0, note=""):
        self.slope = -slope if flip else slope
        self.offset = offset if isinstance(offset, float) else 0.0
        self.epochs, self.seconds = epochs, seconds

    def fit(self, bags, *, monitor, seed):
        for epoch in range(self.epochs):
            self.reached_ = self.slope * (epoch + 1) / self.epochs
            time.sleep(self.seconds / self.epochs)
            monitor.report(self.predict_scores)
            if monitor.should_stop:
                break
        return self

    def predict_scores(self, X):
        return 1.0 / (1.0 + np.exp(-self.reached_ * X[:, 0] - self.offset))


class Plain(Tilt):
    def __init__(self):
        super().__init__(slope=1.0)


class Fragile(Tilt):
    """Fails at half of all slopes, the default among the others."""

    def __init__(self, slope=0.0):
        super().__init__(slope=slope)

    def fit(self, bags, *, monitor, seed):
        if self.slope < 0:
            raise ValueError("no slope below zero")
        return super().fit(bags, monitor=monitor, seed=seed)


class Declines(Fragile):
    def fit(self, bags, *, monitor, seed):
        raise Declined("never on these bags")


def load_halves(files, *, seed):
    """Labels that a logistic model of slope 1 draws; the test part is nonsense when ``SPOIL_TEST`` says so."""
    rng = np.random.default_rng(seed)

    def part(n):
        X = rng.normal(scale=2.0, size=(n, 2)).astype(np.float32)
        return Part(X, (rng.random(n) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(np.int64))

    parts = {"train": part(200), "valid": part(120), "test": part(80)}
    spoil = os.environ.get("SPOIL_TEST", "")
    if spoil == "labels":
        parts["test"] = Part(parts["test"].X, 1 - parts["test"].y)
    elif spoil == "everything":
        parts["test"] = Part(np.full((7, 2), np.nan, np.float32), np.full(3, 99))
    return Split(**parts)
