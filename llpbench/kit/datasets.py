"""What is demanded of a dataset. The first line of each docstring is the demand as ``llpbench check`` prints it."""

from __future__ import annotations

from typing import Any

import numpy as np

from llpbench.contracts.data import Split
from llpbench.contracts.errors import DataUnavailableError, Skip
from llpbench.contracts.specs import DatasetSpec
from llpbench.data.store import DataStore, locate
from llpbench.experiment.metrics import auroc
from llpbench.experiment.split import check_split, loader_seeds
from llpbench.kit.methods import listing_is_light
from llpbench.plugins.options import format_scalar
from llpbench.plugins.registry import Entry, Registry

_UNLIKELY = 5.0
"""Standard deviations that shuffled rows stray by less than once in a million."""


def _load(spec: DatasetSpec, seed: int) -> Split:
    try:
        split: Split = spec.load()(DataStore(spec), **loader_seeds(spec, seed, seed), **spec.resolve({}))
    except DataUnavailableError as error:
        raise Skip(f"its files are not to be had here: {str(error).splitlines()[0]}") from None
    return split


def _same(first: Split, second: Split) -> bool:
    pairs = [(getattr(first, n), getattr(second, n)) for n in ("train", "valid", "test")]
    return all(np.array_equal(a.X, b.X) and np.array_equal(a.y, b.y) for a, b in pairs)


def parameters_round_trip(entry: Entry[DatasetSpec], registry: Registry) -> None:
    """Every option's default can be typed and read back."""
    del registry
    for p in entry.spec.params:
        assert p.parse(format_scalar(p.default)) == p.default, f"{p.name} does not read back"


def keeps_the_contract(entry: Entry[DatasetSpec], registry: Registry) -> None:
    """Three parts of equal width, finite values, labels from 0 to C - 1, columns that fit the features."""
    del registry
    split = _load(entry.spec, 0)
    check_split(split, entry.spec)
    for part in (split.train, split.valid, split.test):
        assert part.X.dtype == np.float32 or part.X.dtype == np.uint8, f"features are {part.X.dtype}, not float32"
        assert len(np.unique(part.y)) == split.classes, "a class is absent from a part"


def same_seed_same_split(entry: Entry[DatasetSpec], registry: Registry) -> None:
    """The same seed loads the same split, byte for byte."""
    del registry
    assert _same(_load(entry.spec, 1), _load(entry.spec, 1)), "two loads with one seed differ"


def other_seed_other_split(entry: Entry[DatasetSpec], registry: Registry) -> None:
    """Another seed gives another split."""
    del registry
    assert not _same(_load(entry.spec, 1), _load(entry.spec, 2)), "seeds 1 and 2 load the same split"


def parts_are_disjoint(entry: Entry[DatasetSpec], registry: Registry) -> None:
    """Parts add up to the declared rows, and rows do not repeat across parts more than the data itself repeats."""
    del registry
    split = _load(entry.spec, 0)
    parts = (split.train, split.valid, split.test)
    total = sum(len(p) for p in parts)
    if entry.spec.rows is not None:
        assert total == entry.spec.rows, f"parts hold {total:,} rows, the spec says {entry.spec.rows:,}"
    rows: list[set[Any]] = [{row.tobytes() for row in np.ascontiguousarray(p.X)} for p in parts]
    shared = len(rows[0] & rows[2]) / max(len(rows[2]), 1)
    inside = 1.0 - len(rows[2]) / len(split.test)
    assert shared <= 0.02 + 3 * inside + (1.0 - len(rows[0]) / len(split.train)), (
        f"{100 * shared:.1f} % of the test rows are training rows too"
    )


def order_tells_no_label(entry: Entry[DatasetSpec], registry: Registry) -> None:
    """The order of the test rows tells nothing about their labels."""
    del registry
    split = _load(entry.spec, 0)
    labels = split.test.y
    place = np.arange(len(labels), dtype=np.float64)
    for label in range(split.classes):
        inside = labels == label
        mine, others = int(inside.sum()), int((~inside).sum())
        if mine and others:
            spread = np.sqrt((len(labels) + 1) / (12 * mine * others))
            assert abs(auroc(inside.astype(int), place) - 0.5) < _UNLIKELY * spread, (
                f"class {label} is found at one end of the test rows; shuffle them"
            )
    shares = np.bincount(labels, minlength=split.classes) / len(labels)
    pairs, chance = len(labels) - 1, float((shares**2).sum())
    alike = int((labels[1:] == labels[:-1]).sum())
    assert abs(alike - pairs * chance) < _UNLIKELY * np.sqrt(pairs * chance * (1.0 - chance)) + 1.0, (
        f"{alike:,} of {pairs:,} neighbouring test rows have the same label, where shuffled ones have "
        f"{pairs * chance:,.0f}; shuffle them"
    )


def files_are_pinned(entry: Entry[DatasetSpec], registry: Registry) -> None:
    """Every file declares its sha256 and size; files that are here match."""
    del registry
    if not entry.spec.files:
        raise Skip("it has no files")
    for file in entry.spec.files:
        assert len(file.sha256) == 64, f"{file.path} declares no sha256"
        assert file.size > 0, f"{file.path} declares no size"
    wrong = [item for item in locate(entry.spec) if item.state == "wrong"]
    assert not wrong, f"{wrong[0].where}: {wrong[0].note}"


CHECKS = (
    listing_is_light,
    parameters_round_trip,
    keeps_the_contract,
    same_seed_same_split,
    other_seed_other_split,
    parts_are_disjoint,
    order_tells_no_label,
    files_are_pinned,
)
