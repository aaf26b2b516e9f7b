r"""Generate rows from a mixture of Gaussians.

The model: class ``c`` is drawn with probability ``shares[c]``; given the class, ``x = centre[c] + e`` with
``e`` standard normal. The centres are the corners of a regular simplex of edge ``separation`` around the
origin, turned at random, so the signal lies in ``classes - 1`` directions that no single feature shows
alone. The best possible score of two classes is linear, and its AUROC is :math:`\Phi(\text{separation} /
\sqrt 2)`: 0.92 at 2.0. Rows are independent of each other, so no way of forming bags is favoured.
"""

from __future__ import annotations

import numpy as np

from llpbench import Column, Files, FloatArray, Part, Split, UsageError

_BLOCK = 2**15


def load(
    files: Files,  # noqa: ARG001 - nothing is read
    *,
    seed: int,
    rows: int = 10_000,
    dim: int = 20,
    classes: int = 2,
    separation: float = 2.0,
    positive_rate: float | None = None,
) -> Split:
    """Generate a dataset that depends on its arguments alone: 80 % training, 10 % validation, 10 % test rows.

    Args:
        files: not used.
        seed: seed of the centres and the rows.
        rows: rows in all.
        dim: features.
        classes: classes.
        separation: distance of any two centres, in standard deviations of a cloud.
        positive_rate: share of class 1; ``1 / classes`` when not given.
    """
    if dim < classes - 1:
        raise UsageError(f"synthetic: {classes} classes need at least dim={classes - 1}, not dim={dim}.")
    rng = np.random.default_rng(seed)
    centres = class_centres(rng, classes, dim, separation)
    y = rng.choice(classes, size=rows, p=class_shares(classes, positive_rate))
    X = rng.standard_normal((rows, dim), dtype=np.float32)
    for start in range(0, rows, _BLOCK):  # in blocks: no second array of the size of X
        X[start : start + _BLOCK] += centres[y[start : start + _BLOCK]]
    held = round(rows / 10)
    first, second = rows - 2 * held, rows - held
    columns = tuple(Column(f"x{i}", "numeric") for i in range(dim))
    return Split(
        Part(X[:first], y[:first]),
        Part(X[first:second], y[first:second]),
        Part(X[second:], y[second:]),
        classes=classes,
        columns=columns,
    )


def class_shares(classes: int, positive_rate: float | None) -> FloatArray:
    """Probability of each class: ``positive_rate`` for class 1, the rest in equal parts."""
    rate = 1.0 / classes if positive_rate is None else positive_rate
    shares = np.full(classes, (1.0 - rate) / (classes - 1))
    shares[1] = rate
    return shares


def class_centres(rng: np.random.Generator, classes: int, dim: int, separation: float) -> FloatArray:
    """Corners of a regular simplex around the origin, turned at random: (classes, dim), float32."""
    corners = np.eye(classes) - 1.0 / classes  # pairwise distance sqrt(2), in a space of classes - 1 dimensions
    basis = np.linalg.svd(corners)[2][: classes - 1]
    turn = np.linalg.qr(rng.standard_normal((dim, classes - 1)))[0]
    centres: FloatArray = (corners @ basis.T @ turn.T * (separation / np.sqrt(2.0))).astype(np.float32)
    return centres
