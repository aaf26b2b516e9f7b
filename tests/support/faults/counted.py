"""Methods that record every fit, and a dataset that is a file, for runs on a cluster.

``LLPBENCH_TEST_COUNTED`` names the file: a line for each fit with the method, its seed, its process and
``LLPBENCH_TEST_WORKER``.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path

import numpy as np

from llpbench import DataFile, DatasetSpec, MethodSpec, Param, Part, Split, hookimpl

TABLE = np.random.default_rng(0).normal(size=(600, 4)).astype(np.float32).tobytes()


@hookimpl
def llpbench_methods():
    seconds = (Param("seconds", 0.0, low=0.0),)
    return [
        MethodSpec(name="counted", factory="counted:Counted", params=seconds),
        MethodSpec(name="counted-gpu", factory="counted:Counted", params=seconds, resources=(("gpu", 1),)),
        MethodSpec(name="counted-killed", factory="counted:Killed", params=seconds),
    ]


@hookimpl
def llpbench_datasets():
    file = DataFile(
        path="counted/table.bin",
        sha256=hashlib.sha256(TABLE).hexdigest(),
        size=len(TABLE),
        urls=tuple(filter(None, [os.environ.get("LLPBENCH_TEST_COUNTED_URL", "")])),
    )
    return [DatasetSpec(name="counted-file", factory="counted:load", files=(file,))]


class Counted:
    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def fit(self, bags, *, monitor, seed):
        line = f"{type(self).__name__} {seed} {os.getpid()} {os.environ.get('LLPBENCH_TEST_WORKER', '-')}\n"
        with Path(os.environ["LLPBENCH_TEST_COUNTED"]).open("a") as file:
            file.write(line)
        weights = (bags.proportions - bags.proportions.mean()).repeat(bags.sizes, axis=0)
        self.w = (bags.X * weights).mean(axis=0)
        time.sleep(self.seconds)
        self.end()
        return self

    def end(self):
        pass

    def predict_scores(self, X):
        return X @ self.w


class Killed(Counted):
    def end(self):
        os.kill(os.getpid(), signal.SIGKILL)


def load(files, *, seed):
    X = np.frombuffer(files.path("counted/table.bin").read_bytes(), dtype=np.float32).reshape(-1, 4)
    y = (X[:, 0] > 0).astype(np.int64)
    return Split(train=Part(X[:400], y[:400]), valid=Part(X[400:500], y[400:500]), test=Part(X[500:], y[500:]))
