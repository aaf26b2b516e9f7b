"""Covariates of the neighbour search after the first iteration: features and embeddings together."""

from __future__ import annotations

import numpy as np

from llpbench import FloatArray


def side_by_side(features: FloatArray, embeddings: FloatArray) -> FloatArray:
    """Both in one array, each centred and with a mean squared length of 1, so that neither drowns the other.

    An embedding of a network that ends in one score is close to one number: its neighbours are rows of the same score,
    and labels that are smooth along them only repeat what the network said. The features keep what it has not used.
    """
    return np.concatenate([_of_unit_length(features), _of_unit_length(embeddings)], axis=1)


def _of_unit_length(rows: FloatArray) -> FloatArray:
    centred = np.asarray(rows, dtype=np.float32) - rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    length = np.sqrt(np.mean(np.sum(centred.astype(np.float64) ** 2, axis=1)))
    return np.asarray(centred / np.float32(max(length, 1e-12)))
