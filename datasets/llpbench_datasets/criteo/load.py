"""Load Criteo: draw the rows, cut them into parts, embed them; each step is kept for the cells that follow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from llpbench import DatasetError, Files, FloatArray, Part, Split, UnknownNameError, UsageError
from llpbench_datasets.criteo import FULL, SAMPLE
from llpbench_datasets.criteo.encode import column_features
from llpbench_datasets.criteo.sample import draw, part_sizes
from llpbench_datasets.criteo.text import Rows
from llpbench_datasets.feature_cache import cached_array

VERSION = 1
"""Of rows and features: raise it when either would come out differently for the same options."""
BATCH = 128
MOST_STEPS = 4000
HOW_TO_GET = (
    "It cannot be fetched for you: Criteo's own terms apply to it. Get train.txt of the Display Advertising Challenge\n"
    "from Criteo (https://www.kaggle.com/c/criteo-display-ad-challenge/data says where; https://ailab.criteo.com)\n"
    "and put it there as criteo/train.txt, or gzipped as criteo/train.txt.gz.\n"
    "To try the same format now: python -m llpbench_datasets.criteo.synthetic DIR/criteo/train.txt.gz --rows 100000"
)


def load(
    files: Files,
    *,
    seed: int,
    features: str = "met",
    file: str = "",
    rows: int = 1_450_000,
    dim: int = 64,
    buckets: int = 128,
    mask: float = 0.7,
    steps: int | str = "auto",
) -> Split:
    """Draw rows from the file and embed them.

    Args:
        files: the dataset's files.
        seed: seed of the draw and of the embedding.
        features: ``"met"``, ``"hashed"`` or ``"columns"``.
        file: name in the folder ``criteo`` or an absolute path; the first file found when empty.
        rows: rows drawn in all.
        dim: width of the embedding.
        buckets: buckets of each category.
        mask: share of columns that training masks.
        steps: training steps, or ``"auto"``.
    """
    if features not in ("met", "hashed", "columns"):
        raise UnknownNameError("features of criteo:", features, ("met", "hashed", "columns"))
    table = drawn_rows(files, find(files, file), rows, seed)
    sizes = part_sizes(len(table))
    y = table[:, 0].astype(np.int64)
    cuts = (sizes[0], sizes[0] + sizes[1])
    if features == "columns":
        X, columns = column_features(table, sizes[0], buckets)
        train, valid, test = map(Part, np.split(X, cuts), np.split(y, cuts))
        return Split(train, valid, test, columns=columns)
    options = ("hashed", dim, buckets) if features == "hashed" else ("met", dim, buckets, mask, steps)
    X = cached_array(
        ["criteo features", VERSION, seed, *options, np.asarray(table)],
        lambda: embed(table, sizes[0], seed, features, dim=dim, buckets=buckets, mask=mask, steps=steps),
        folder=files.cache,
    )
    train, valid, test = map(Part, np.split(X, cuts), np.split(y, cuts))
    return Split(train, valid, test)


def find(files: Files, file: str) -> Path:
    """The file to read: the one asked for, else the full file, else the sample."""
    if not file:
        return files.first_of((*FULL, SAMPLE.path), hint=HOW_TO_GET)
    given = Path(file).expanduser()
    if not given.is_absolute():
        return files.first_of((f"criteo/{file}",), hint=HOW_TO_GET)
    if not given.is_file():
        raise UsageError(f"criteo: file={file} names no file.")
    return given


def drawn_rows(files: Files, path: Path, rows: int, seed: int) -> Rows:
    """The rows of a seed, drawn once for as long as the file stays as it is."""
    status = path.stat()
    identity = (str(path.absolute()), status.st_size, status.st_mtime_ns)
    table = cached_array(
        ["criteo rows", VERSION, *identity, rows, seed], lambda: draw(path, rows, seed), folder=files.cache
    )
    if len(table) < 20:
        raise DatasetError(f"{path} has {len(table)} rows; criteo needs at least 20.")
    return table


def embed(
    table: Rows, train: int, seed: int, features: str, *, dim: int, buckets: int, mask: float, steps: int | str
) -> FloatArray:
    """Features of all rows, fitted on the first ``train`` rows without their labels."""
    from llpbench_datasets.criteo.encode import encode, hashed_features

    if features == "hashed":
        return hashed_features(table, train, seed, dim=dim, size=buckets)
    from llpbench_datasets.criteo import met

    encoded = encode(table, train, buckets)
    taken = met_steps(train) if steps == "auto" else int(steps)
    settings = met.MetSettings(mask=mask, steps=taken, batch=BATCH)
    model, _ = met.train(encoded.head(train), settings, seed)
    return met.represent(model, encoded, train, dim)


def met_steps(train: int) -> int:
    """Steps of training when none are asked for: six times through the rows, within bounds."""
    return max(50, min(MOST_STEPS, round(6 * train / BATCH)))
