"""Methods that misbehave, one for each way a cell can end, and datasets that break their contract."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

import numpy as np

from llpbench import DatasetSpec, MethodSpec, Param, Part, Split, hookimpl
from llpbench import Skip as Declined

KINDS = (
    "good",
    "raise",
    "hang",
    "leak",
    "segfault",
    "killed",
    "exit",
    "sysexit",
    "skip",
    "nan",
    "shape",
    "mutate",
    "nothing",
    "slow",
)


@hookimpl
def llpbench_methods():
    params = (Param("seconds", 0.0, low=0.0),)
    return [MethodSpec(name=f"faulty-{kind}", factory=f"faulty:{kind.title()}", params=params) for kind in KINDS]


@hookimpl
def llpbench_datasets():
    return [
        DatasetSpec(name=f"faulty-{kind}", factory=f"faulty:load_{kind}")
        for kind in ("nan", "labels", "ragged", "tiny")
    ]


class Good:
    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def fit(self, bags, *, monitor, seed):
        weights = (bags.proportions - bags.proportions.mean()).repeat(bags.sizes, axis=0)
        self.w = (bags.X * weights).mean(axis=0)
        self.misbehave(bags)
        return self

    def misbehave(self, bags):
        pass

    def predict_scores(self, X):
        return X @ self.w


class Slow(Good):
    def misbehave(self, bags):
        time.sleep(self.seconds)


class Raise(Good):
    def misbehave(self, bags):
        raise ValueError("the method is unhappy")


class Hang(Good):
    def misbehave(self, bags):
        time.sleep(3600)


class Leak(Good):
    def misbehave(self, bags):
        self.hoard = []
        while True:
            self.hoard.append(np.ones(16_000_000, dtype=np.float32))


class Segfault(Good):
    def misbehave(self, bags):
        ctypes.string_at(0)


class Killed(Good):
    def misbehave(self, bags):
        os.kill(os.getpid(), signal.SIGKILL)


class Exit(Good):
    def misbehave(self, bags):
        os._exit(7)


class Sysexit(Good):
    def misbehave(self, bags):
        sys.exit(3)


class Skip(Good):
    def misbehave(self, bags):
        raise Declined("not today")


class Nan(Good):
    def predict_scores(self, X):
        return np.full(len(X), np.nan)


class Shape(Good):
    def predict_scores(self, X):
        return np.zeros((len(X), 3))


class Mutate(Good):
    def misbehave(self, bags):
        bags.X[0, 0] = 1.0


class Nothing(Good):
    def fit(self, bags, *, monitor, seed):
        return None


def _split(**changes):
    rng = np.random.default_rng(0)

    def part(n):
        X = rng.normal(size=(n, 3)).astype(np.float32)
        return Part(X, (X[:, 0] > 0).astype(np.int64))

    parts = {"train": part(200), "valid": part(40), "test": part(40)}
    return Split(**{**parts, **changes})


def load_nan(files, *, seed):
    split = _split()
    split.train.X[3, 1] = np.nan
    return split


def load_labels(files, *, seed):
    split = _split()
    split.test.y[0] = 2
    return split


def load_ragged(files, *, seed):
    return _split(test=Part(np.zeros((10, 3), np.float32), np.zeros(9, np.int64)))


def load_tiny(files, *, seed):
    return _split()
