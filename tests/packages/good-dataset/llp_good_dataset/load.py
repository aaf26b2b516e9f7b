"""The loader of ``two-clouds``."""

import numpy as np

from llpbench import Column, Part, Split, random_split


def load(files, *, seed, rows=600):
    """Generate rows: two numbers, and a category of three values as a one-hot block."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    numbers = rng.normal(size=(rows, 2)) + 1.5 * y[:, None]
    category = np.eye(3)[np.minimum(rng.integers(0, 3, rows) + y, 2)]
    X = np.hstack([numbers, category]).astype(np.float32)
    parts = [Part(X[i], y[i]) for i in random_split(rows, (0.8, 0.1, 0.1), seed)]
    columns = (Column("a", "numeric"), Column("b", "numeric"), Column("kind", "category", 3))
    return Split(*parts, classes=2, columns=columns)
