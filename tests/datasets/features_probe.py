"""Learned features on one backend, chosen by ``KERAS_BACKEND``: run as a script it prints them as JSON."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from llpbench_datasets.criteo import met
from llpbench_datasets.criteo.encode import encode
from llpbench_datasets.criteo.sample import draw
from llpbench_datasets.criteo.synthetic import write_synthetic
from llpbench_datasets.keras_backend import keras, ops
from llpbench_datasets.simclr.encoder import draw_weights, encoder, with_head
from llpbench_datasets.simclr.loss import nt_xent


def met_features():
    with tempfile.TemporaryDirectory() as folder:
        write_synthetic(Path(folder) / "s.txt", 100)
        encoded = encode(draw(Path(folder) / "s.txt", 100, 0), 60, 8)
    model, _ = met.train(encoded.head(60), met.MetSettings(width=8, heads=2, layers=1, steps=3, batch=16), 0)
    return np.asarray(met.represent(model, encoded, 60, 4)).tolist()


def simclr_outputs():
    """The encoder's first outputs, and the loss of all."""
    model = with_head(encoder("small"))
    draw_weights(model, 3)
    x = np.random.default_rng(0).random((6, 24, 24, 3)).astype(np.float32)
    z = np.asarray(keras.ops.convert_to_numpy(model.predict_on_batch(x)))
    loss = np.asarray(keras.ops.convert_to_numpy(nt_xent(ops.convert_to_tensor(z), 0.2)))
    return [*z[0, :5].tolist(), *loss.tolist()]


def figures():
    return {"backend": keras.backend.backend(), "met": met_features(), "simclr": simclr_outputs()}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(figures()))
