"""Checks of a dataset. ``llpbench check`` prints the first line of each docstring."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench.contracts.data import Split
from llpbench.contracts.errors import DataUnavailableError, Skip
from llpbench.contracts.specs import DatasetSpec
from llpbench.data.store import DataStore, locate
from llpbench.experiment.split import check_split, loader_seeds
from llpbench.kit.methods import listing_is_light
from llpbench.kit.row_order import predictive_order
from llpbench.plugins.options import format_scalar
from llpbench.plugins.registry import Entry


def _load(spec: DatasetSpec, seed: int) -> Split:
    try:
        split: Split = spec.load()(DataStore(spec), **loader_seeds(spec, seed, seed), **spec.resolve({}))
    except DataUnavailableError as error:
        raise Skip(f"its files are not available: {str(error).splitlines()[0]}") from None
    return split


def _same(first: Split, second: Split) -> bool:
    pairs = [(getattr(first, n), getattr(second, n)) for n in ("train", "valid", "test")]
    return all(np.array_equal(a.X, b.X) and np.array_equal(a.y, b.y) for a, b in pairs)


def parameters_round_trip(entry: Entry[DatasetSpec]) -> None:
    """Each option's default can be typed and parsed back."""
    for p in entry.spec.params:
        assert p.parse(format_scalar(p.default)) == p.default, f"{p.name} is not parsed back to its default"


def loads(entry: Entry[DatasetSpec]) -> None:
    """Its loader returns a split; the checks below need this."""
    split = _load(entry.spec, 0)
    assert isinstance(split, Split), f"the loader returned {type(split).__name__}, expected Split"


def keeps_the_contract(entry: Entry[DatasetSpec]) -> None:
    """Three parts of equal width, finite values, labels from 0 to C - 1, and columns that match the features."""
    split = _load(entry.spec, 0)
    check_split(split, entry.spec)
    for part in (split.train, split.valid, split.test):
        assert part.X.dtype == np.float32 or part.X.dtype == np.uint8, f"features are {part.X.dtype}, not float32"
        assert len(np.unique(part.y)) == split.classes, "a part lacks a class"


def same_seed_same_split(entry: Entry[DatasetSpec]) -> None:
    """The same seed loads the same split, byte for byte."""
    assert _same(_load(entry.spec, 1), _load(entry.spec, 1)), "two loads with one seed differ"


def other_seed_other_split(entry: Entry[DatasetSpec]) -> None:
    """Another seed gives another split."""
    assert not _same(_load(entry.spec, 1), _load(entry.spec, 2)), "seeds 1 and 2 load the same split"


def parts_are_disjoint(entry: Entry[DatasetSpec]) -> None:
    """Parts add up to the declared rows, and training and test share no more rows than the data has duplicates."""
    split = _load(entry.spec, 0)
    parts = (split.train, split.valid, split.test)
    total = sum(len(p) for p in parts)
    if entry.spec.rows is not None:
        assert total == entry.spec.rows, f"the parts have {total:,} rows, the spec declares {entry.spec.rows:,}"
    rows: list[set[Any]] = [{row.tobytes() for row in np.ascontiguousarray(p.X)} for p in parts]
    shared = len(rows[0] & rows[2]) / max(len(rows[2]), 1)
    inside = 1.0 - len(rows[2]) / len(split.test)
    assert shared <= 0.02 + 3 * inside + (1.0 - len(rows[0]) / len(split.train)), (
        f"{100 * shared:.1f} % of the test rows are also training rows"
    )


def row_order_predicts_no_label(entry: Entry[DatasetSpec]) -> None:
    """The order of the test rows is independent of their labels."""
    split = _load(entry.spec, 0)
    predictor = predictive_order(split.test.y, split.classes)
    assert not predictor, f"{predictor} predicts the labels of test rows; shuffle them"


def files_are_pinned(entry: Entry[DatasetSpec]) -> None:
    """Every file declares its sha256 and size, and local files match them."""
    if not entry.spec.files:
        raise Skip("it has no files")
    for file in entry.spec.files:
        assert len(file.sha256) == 64, f"{file.path} declares no sha256"
        assert file.size > 0, f"{file.path} declares no size"
    wrong = [item for item in locate(entry.spec) if item.state == "wrong"]
    assert not wrong, f"{wrong[0].where}: {wrong[0].note}"


BASIC = loads
"""The checks after this one are skipped if it fails."""
CHECKS = (
    listing_is_light,
    parameters_round_trip,
    loads,
    keeps_the_contract,
    same_seed_same_split,
    other_seed_other_split,
    parts_are_disjoint,
    row_order_predicts_no_label,
    files_are_pinned,
)
