"""Form the bags of a cell, count labels, and add the noise of the cell.

``split=rows``  the parts are those of the dataset, and bags are formed within each of them.
``split=bags``  bags are formed from the rows of all three parts, and each goes as a whole to training, validation or
                test: the test bags are groups of which the model has seen no row. Not with several groupings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from llpbench.contracts.cell import Cell, JoinedScheme
from llpbench.contracts.data import Bags, FloatArray, IntArray, Part, Split, read_only
from llpbench.contracts.errors import DatasetError
from llpbench.contracts.job import Job
from llpbench.contracts.specs import NO_BAG, BagScheme
from llpbench.experiment.bags import Groupings, checked_groupings, gather_groupings
from llpbench.experiment.privacy import add_count_noise, count_noise_sd, count_sensitivity, epsilon_of
from llpbench.experiment.seeds import secret_rng
from llpbench.experiment.split import bags_seed, without_test
from llpbench.plugins.options import format_options
from llpbench.plugins.registry import Registry

PARTS = ("train", "valid", "test")
Number = Callable[[Part, str], Groupings]
"""The groupings of a part (whose name is the second argument)."""


@dataclass(frozen=True)
class Formed:
    """The bags of a cell. Everything except ``bags`` is for the judge only.

    Attributes:
        split: the parts that the bags were formed from; with ``split=bags`` not those of the dataset.
        bags: training bags with their validation bags; counts have the noise of the cell.
        train_labels: labels of the training rows in bag order; ``valid_labels`` likewise.
        test_bag_of: the bag of each test row (or ``NO_BAG``), (n,) or (n, groupings); empty without test rows.
        left_out: share of the training rows (with ``split=bags`` of all rows) without a bag.
    """

    split: Split
    bags: Bags
    train_labels: IntArray
    valid_labels: IntArray
    test_bag_of: IntArray
    left_out: float


def form_bags(job: Job, split: Split, registry: Registry) -> Formed:
    """Put the rows of a cell into bags, count labels, and add the noise of the cell to the counts."""
    cell = job.cell
    rng = np.random.default_rng(bags_seed(cell))
    number = _bound_schemes(cell, registry, split, rng)
    left_out = 0.0
    if cell.split == "bags":
        split, left_out = split_by_bags(split, number, rng)
        split = without_test(split) if cell.tuning else split
        number = _numbers_there
    shape: dict[str, Any] = {"classes": split.classes, "columns": split.columns, "rng": rng}
    train_of = number(split.train, "training")
    train, train_labels = gather_groupings(split.train, train_of, **shape)
    valid, valid_labels = gather_groupings(split.valid, number(split.valid, "validation"), **shape)
    test_of = _stacked(number(split.test, "test")) if len(split.test) else np.empty(0, np.int64)
    sensitivity = count_sensitivity(split.classes, len(train_of))
    sd = count_noise_sd(epsilon_of(cell.noise), cell.delta, cell.mechanism, sensitivity)
    known = {"bags": bags_seed(cell), "noise": cell.noise, "delta": cell.delta}
    noise_rng = secret_rng("noise", (train_labels, valid_labels), **known)
    valid = _noisy(valid, sd, noise_rng)
    bags = replace(_noisy(train, sd, noise_rng), validation=valid)
    if cell.split != "bags":
        left_out = float(np.mean(np.all([numbers == NO_BAG for numbers in train_of.values()], axis=0)))
    return Formed(split, bags, train_labels, valid_labels, test_of, left_out)


def _noisy(bags: Bags, sd: float, rng: np.random.Generator) -> Bags:
    """The bags with noise on every count."""
    counts = read_only(add_count_noise(bags.counts, sd, rng))
    overlap = bags.overlap and replace(bags.overlap, count_sd=read_only(np.full(len(bags), sd)))
    return replace(bags, counts=counts, count_sd=sd, overlap=overlap)


def _stacked(groupings: Groupings) -> IntArray:
    """(n,) bag of each row, or (n, groupings) with numbers that no two groupings share."""
    if len(groupings) == 1:
        return next(iter(groupings.values()))
    columns: list[IntArray] = []
    first = 0
    for numbers in groupings.values():
        columns.append(np.where(numbers == NO_BAG, NO_BAG, numbers + first))
        first += int(numbers.max()) + 1
    return np.stack(columns, axis=1)


def uses_labels(cell: Cell, registry: Registry) -> bool:
    """Whether a scheme of the cell uses labels to form bags."""
    return any(registry.schemes[each.scheme].uses_labels for each in cell.schemes)


def _bound_schemes(cell: Cell, registry: Registry, split: Split, rng: np.random.Generator) -> Number:
    """The schemes of a cell as a function of a part: all their groupings, in order."""
    bound = [_bound_scheme(cell, each, registry.schemes[each.scheme], split, rng) for each in cell.schemes]
    if len(bound) == 1:
        return bound[0]

    def number(part: Part, name: str) -> Groupings:
        found: Groupings = {}
        for each, scheme in zip(cell.schemes, bound, strict=True):
            spec = registry.schemes[each.scheme]
            title = format_options(spec.name, spec.changed(each.scheme_options))
            for own, numbers in scheme(part, name).items():
                base = f"{title} {own}".strip()
                taken = sum(known.split("#")[0] == base for known in found)
                found[f"{base}#{taken + 1}" if taken else base] = numbers
        return found

    return number


def _bound_scheme(cell: Cell, each: JoinedScheme, spec: BagScheme, split: Split, rng: np.random.Generator) -> Number:
    """A scheme as a function of a part. It is given labels only if it declares that it uses them."""
    if cell.bag_size > len(split.train) and not spec.sizes_itself:
        raise DatasetError(
            f"bag size {cell.bag_size} is larger than the {len(split.train):,} training rows of {cell.dataset}"
        )
    assign = spec.load()
    options = {f"{name}_" if name == "columns" else name: value for name, value in each.scheme_options.items()}

    def number(part: Part, name: str) -> Groupings:
        told = {"bag_of": part.bag_of} if spec.own else {}
        told |= {"labels": read_only(part.y.copy())} if spec.uses_labels else {}
        found = assign(part.X, cell.bag_size, columns=split.columns, rng=rng, **told, **options)
        groupings = checked_groupings(found, len(part))
        for own, numbers in groupings.items():
            if name != "test" and not (numbers != NO_BAG).any():  # test rows are scored one by one, bags or not
                raise DatasetError(
                    f"the bag scheme {each.scheme} forms no bag from the {len(part):,} {name} rows of {cell.dataset}"
                    f"{f' by {own}' if own else ''}: no group is within its limits ({_limits(each)})"
                )
        return groupings

    return number


def _limits(each: JoinedScheme) -> str:
    return ", ".join(f"{name}={value}" for name, value in each.scheme_options.items()) or "none"


def _numbers_there(part: Part, name: str) -> Groupings:
    del name
    assert part.bag_of is not None
    return {"": part.bag_of}


def split_by_bags(split: Split, number: Number, rng: np.random.Generator) -> tuple[Split, float]:
    """Form bags from all rows and assign them to the three parts in about the dataset's shares.

    Features stay encoded with statistics of the dataset's own training rows, which do not depend on labels.

    Returns:
        The parts, each with the bag of its rows, and the share of rows that are left out.
    """
    parts = [split.train, split.valid, split.test]
    pooled = Part(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        _joined([part.bag_of for part in parts]),
    )
    groupings = number(pooled, "pooled")
    if len(groupings) > 1:
        raise DatasetError(f"split=bags needs a single grouping of the rows, got {len(groupings)} (use split=rows)")
    (bag_of,) = groupings.values()
    bags, place, sizes = np.unique(bag_of[bag_of != NO_BAG], return_inverse=True, return_counts=True)
    if len(bags) < len(PARTS):
        raise DatasetError(
            f"split=bags assigns whole bags to training, validation and test and needs at least {len(PARTS)} bags, "
            f"got {len(bags)} (split=rows splits rows instead)"
        )
    part_of_bag = deal_bags(sizes, [len(part) for part in parts], rng)
    part_of = np.full(len(pooled), NO_BAG)
    part_of[bag_of != NO_BAG] = part_of_bag[place.reshape(-1)]
    train, valid, test = (_rows_of(pooled, bag_of, np.flatnonzero(part_of == p)) for p in range(len(PARTS)))
    return replace(split, train=train, valid=valid, test=test), float(np.mean(bag_of == NO_BAG))


def deal_bags(sizes: IntArray, shares: list[int], rng: np.random.Generator) -> IntArray:
    """The part of each bag: in random order, each goes to the part that has the least of its share of the rows so far.

    Every part gets a bag if there are at least as many bags as parts, and shares are exact up to about a bag.
    """
    part_of = np.empty(len(sizes), dtype=np.int64)
    filled = np.zeros(len(shares))
    for bag in rng.permutation(len(sizes)):
        part_of[bag] = np.argmin(filled)
        filled[part_of[bag]] += sizes[bag] / max(shares[part_of[bag]], 1)
    return part_of


def _joined(numbers: list[IntArray | None]) -> IntArray | None:
    known = [each for each in numbers if each is not None]
    return np.concatenate(known) if len(known) == len(numbers) else None


def _rows_of(pooled: Part, bag_of: IntArray, rows: IntArray) -> Part:
    X: FloatArray = read_only(pooled.X[rows])
    return Part(X, pooled.y[rows], bag_of[rows])
