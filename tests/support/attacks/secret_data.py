"""A dataset whose test labels begin with a known run, so that an attack can recognize them in memory."""

from __future__ import annotations

import hashlib

import numpy as np

from llpbench import DatasetSpec, Param, Part, Split, hookimpl

TRAIN, VALID, TEST = 400, 40, 600


@hookimpl
def llpbench_datasets():
    file = Param("file", "", names_file=True, doc="a table, which is not read")
    return [DatasetSpec(name="secret", factory="secret_data:load", params=(file,))]


def secret_labels():
    stream = b"".join(hashlib.sha256(b"llpbench %d" % i).digest() for i in range(TEST // 32 + 1))
    return np.frombuffer(stream, np.uint8)[:TEST].astype(np.int64) & 1


def load(files, *, seed, file=""):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(TRAIN + VALID + TEST, 5)).astype(np.float32)
    y = np.concatenate([rng.integers(2, size=TRAIN + VALID), secret_labels()])
    X[:, 0] += 2 * y
    parts = [Part(X[a:b], y[a:b]) for a, b in ((0, TRAIN), (TRAIN, TRAIN + VALID), (TRAIN + VALID, len(X)))]
    return Split(*parts)
