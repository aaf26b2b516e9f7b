"""The published bag sets: names, splits, rows in their places, held-out parts, and the published results."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from llpbench import Numbers, Split
from llpbench.contracts.errors import DataUnavailableError, UnknownNameError
from llpbench.data.store import DataStore
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.registry import load_registry
from llpbench.results.metric_style import MetricStyle
from llpbench.results.references import published_on, references_of
from llpbench_datasets.landscape import LANDSCAPE, llpbench_references
from llpbench_datasets.landscape.load import (
    PUBLISHED,
    bag_numbers,
    held_out,
    load,
    published_seeds,
    published_split,
    rows_in_place,
)
from llpbench_datasets.landscape.names import NAMES, USUAL, VARIANTS
from llpbench_datasets.landscape.results import METHODS
from llpbench_datasets.tables import LabelledTable

ROWS = 48_842
RESULTS = list(csv.DictReader((PUBLISHED / "results.csv").read_text(encoding="ascii").splitlines()))


def real(run: int = 0, **options: Any) -> Split:
    try:
        return load(DataStore(LANDSCAPE), seed=run + 1000, run=run, **options)
    except DataUnavailableError as error:
        pytest.skip(str(error))


def table() -> LabelledTable:
    try:
        return rows_in_place(DataStore(LANDSCAPE))
    except DataUnavailableError as error:
        pytest.skip(str(error))


def test_names_are_those_of_the_stored_sets() -> None:
    with np.load(PUBLISHED / "bags.npz") as stored:
        assert set(NAMES) == set(stored.files) - {"rows"}
        assert_array_equal(np.sort(stored["rows"]), np.arange(ROWS))
    assert len(NAMES) == 52
    assert [sum(name.startswith(variant) for name in NAMES) for variant in VARIANTS] == [7, 15, 15, 15]
    number = {"small": 5, "large": 10, "extra-large": 20, "extra-extra-large": 25, "massive": 30}
    for name in NAMES:
        size = name.split("-", 1)[1].split("-fol")[0].split("-equal")[0].split("-not")[0]
        assert_array_equal(np.unique(bag_numbers(name)), np.arange(number[size]))


def test_misspelt_set_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="hard-small-equal-mixed-cluster-kmeans-5"):
        LANDSCAPE.resolve({"set": "hard-small-equal-mixd-cluster-kmeans-5"})


@pytest.mark.parametrize("run", [0, 1, 29, 30, 104])
def test_split_is_that_of_scikit_learn(run: int) -> None:
    from sklearn.model_selection import ShuffleSplit

    seeds = published_seeds()
    assert len(seeds) == 30
    seed = seeds[run] if run < 30 else run
    train, test = published_split(ROWS, run)
    expected = next(ShuffleSplit(n_splits=1, test_size=0.25, random_state=seed).split(np.zeros((ROWS, 1))))
    assert_array_equal(train, expected[0])
    assert_array_equal(test, expected[1])


def test_published_accuracies_of_a_constant_are_ours() -> None:
    """Where a published method calls every row negative, its accuracy is the share of negative test rows.

    So labels, their places and the splits are those of the published runs, to the last digit that is kept.
    """
    labels = table().labels
    negative = [1.0 - labels[published_split(ROWS, run)[1]].mean() for run in range(30)]
    silent = [line for line in RESULTS if float(line["f1"]) == 0.0 and float(line["f1_sd"]) == 0.0]
    assert len(silent) > 20
    for line in silent:
        assert float(line["accuracy"]) == pytest.approx(np.mean(negative), abs=6e-5)
        assert float(line["accuracy_sd"]) == pytest.approx(np.std(negative, ddof=1), abs=6e-5)


def test_features_lie_in_the_places_of_the_bags() -> None:
    """Bags that depend on features differ in them far more than chance allows; bags that depend on nothing do not."""
    rows = table()
    numbers = np.stack([c.values for c in rows.columns if isinstance(c, Numbers) and c.name != "fnlwgt"], axis=1)
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)

    def spread(name: str) -> float:
        """Variance of bag means over what random bags would have (1), worst column."""
        bag_of = bag_numbers(name)
        sizes = np.bincount(bag_of)
        means = np.stack([np.bincount(bag_of, column) / sizes for column in numbers.T], axis=1)
        return float((sizes[:, None] * means**2).sum(axis=0).max() / (len(sizes) - 1))

    assert spread("naive-large-equal-None-cluster-None-None") < 5
    assert spread("simple-large-equal-close-global-cluster-None-None") > 20
    for name in NAMES:
        if name.startswith(("intermediate", "hard")):
            assert spread(name) > 50, name


def test_proportions_follow_the_variant() -> None:
    labels = table().labels
    rate = labels.mean()

    def spread(name: str) -> float:
        """Variance of the bags' proportions over the binomial one (1 for random bags)."""
        bag_of = bag_numbers(name)
        sizes = np.bincount(bag_of)
        counts = np.bincount(bag_of, labels)
        return float(((counts - sizes * rate) ** 2 / sizes).sum() / (rate * (1 - rate) * (len(sizes) - 1)))

    for name in NAMES:
        assert spread(name) < 2.5 if name.startswith("naive") else spread(name) > 50, name


def test_parts_of_a_run() -> None:
    split = real(run=3)
    assert len(split.train) + len(split.valid) == 36_631
    assert abs(len(split.valid) - 36_631 / 5) <= 15  # rounded in each of 30 bags
    rows, (_, test) = table(), published_split(ROWS, 3)
    assert_array_equal(split.test.y, rows.labels[test])
    assert_array_equal(split.test.bag_of, bag_numbers(USUAL)[test])
    age = next(c for c in rows.columns if c.name == "age")
    assert isinstance(age, Numbers)
    assert np.corrcoef(split.test.X[:, 0], age.values[test])[0, 1] > 0.999


def test_validation_bags_are_parts_of_training_bags() -> None:
    split = real(run=1, set="simple-small-not-equal-far-global-cluster-None-None")
    assert split.train.bag_of is not None
    assert split.valid.bag_of is not None
    train, valid = np.bincount(split.train.bag_of), np.bincount(split.valid.bag_of)
    assert len(train) == len(valid) == 5
    assert np.abs(valid - 0.2 * (train + valid)).max() <= 0.5
    few = real(run=1, set="simple-small-not-equal-far-global-cluster-None-None", validation=0.02)
    assert abs(len(few.valid) - 0.02 * 36_631) <= 3
    assert_array_equal(few.test.X.shape, split.test.X.shape)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=200), st.integers(0, 2**31))
def test_share_of_each_bag_is_held_out(bags: list[int], seed: int) -> None:
    bag_of = np.array([*bags, *bags])  # places beyond the given rows are left alone
    rows = np.random.default_rng(seed).permutation(len(bags))
    train, valid = held_out(rows, bag_of, 0.2, seed)
    assert_array_equal(np.sort(np.concatenate([train, valid])), np.sort(rows))
    for bag in set(bags):
        total = int((bag_of[rows] == bag).sum())
        assert int((bag_of[valid] == bag).sum()) == round(0.2 * total)


def test_seed_selects_the_published_run() -> None:
    """Through the harness: seed 7 of a plan is tested on the rows of run 7."""
    from llpbench.contracts.job import Job
    from llpbench.experiment.split import load_split, split_seed

    registry = load_registry()
    spec = RunSettings(methods=["mean-ridge"], datasets=["landscape"], bags=[ROWS], seeds=[7])
    (plan,) = plan_cells(spec, registry)
    assert plan.cell.scheme == "own-bags"
    job = Job(cell=plan.cell, method_name="", dataset_name="", out="unused")
    try:
        split = load_split(job, LANDSCAPE)
    except DataUnavailableError as error:
        pytest.skip(str(error))
    assert_array_equal(split.test.y, table().labels[published_split(ROWS, 7)[1]])
    direct = load(DataStore(LANDSCAPE), seed=split_seed(plan.cell), run=7)
    assert_array_equal(split.valid.X, direct.valid.X)


def test_published_results_are_shown_beside_ours() -> None:
    references = llpbench_references()
    assert len(references) == 52 * 8 * 3 * 2
    name = "simple-large-equal-far-global-cluster-None-None"
    spec = RunSettings(methods=["dllp"], datasets=["landscape", f"landscape[set={name}]"], bags=[ROWS], seeds=1)
    for plan in plan_cells(spec, load_registry()):
        known = references_of(references, plan.dataset_name)
        assert len(known) == 8 * 3 * 2
        lines = published_on(known, plan.dataset_name, "bags", MetricStyle("f1"))
        assert [line.split(":")[0] for line in lines] == [
            "The Complex Landscape (abs)",
            "The Complex Landscape (hypergeo)",
        ]
        assert all(line.count(",") == 7 for line in lines)


def test_published_means() -> None:
    """Means over all sets as they are known, selected without labels."""
    found: dict[str, list[float]] = {}
    for line in RESULTS:
        if line["selection"] == "abs":
            found.setdefault(line["method"], []).append(float(line["f1"]))
    assert {name: round(float(np.mean(values)), 3) for name, values in found.items()} == {
        "mm": 0.444, "lmm": 0.404, "amm": 0.448, "kdd-lr": 0.291,
        "dllp": 0.031, "mixbag": 0.258, "llp-vat": 0.290, "llpfc": 0.463,
    }  # fmt: skip
    assert np.mean(np.max(list(found.values()), axis=0)) == pytest.approx(0.555, abs=5e-4)


def test_published_methods_have_the_names_that_rows_have() -> None:
    """An option that is the default is not in a row's name: the published mean map found no row."""
    registry = load_registry()
    for name in filter(None, METHODS.values()):
        (plan,) = plan_cells(
            RunSettings(methods=[name], datasets=["landscape"], schemes=["own-bags"], seeds=1), registry
        )
        assert plan.method_name == name
