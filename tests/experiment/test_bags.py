"""Forming bags: each row in exactly one bag, counts that are sums of labels, and the promised sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from helpers import bags_of, make_part, quick
from hypothesis import example, given
from hypothesis import strategies as st

from llpbench import Bags, Column, DatasetError, random_split
from llpbench.contracts.errors import UnknownNameError
from llpbench.experiment.bags import bag_order, gather
from llpbench.experiment.schemes import feature_bags, own_bags, random_bags, uneven_bags

ROWS, SIZES = st.integers(1, 300), st.integers(1, 60)
COLUMNS = (Column("number", "numeric"), Column("colour", "category", 3), Column("other", "numeric"))
SCHEMES = {
    "random": random_bags,
    "uneven": partial(uneven_bags, spread=0.7),
    "by-column": partial(feature_bags, column="colour"),
}


def test_bags_are_shown_in_one_line() -> None:
    held_out = Bags(np.zeros((6, 3), np.float32), np.array([0, 2, 6]), np.array([[1.0], [3.0]]))
    bags = Bags(np.zeros((1200, 3), np.float32), np.arange(0, 1201, 4), np.ones((300, 1)), validation=held_out)
    assert repr(bags) == "<Bags: 300 bags, 1,200 rows of 3 features, 2 classes, 2 held-out bags>"


def table(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    colour = np.eye(3)[rng.integers(0, 3, n)]
    return np.hstack([rng.normal(size=(n, 1)), colour, rng.normal(size=(n, 1))]).astype(np.float32)


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@quick
@given(n=ROWS, size=SIZES, classes=st.integers(2, 4), seed=st.integers(0, 99))
def test_each_row_is_in_one_bag_and_counts_are_label_sums(
    scheme: Callable[..., np.ndarray], n: int, size: int, classes: int, seed: int
) -> None:
    part = make_part(n, classes, seed)
    columns = (Column("row", "numeric"), Column("colour", "category", 2))
    rng = np.random.default_rng(seed)
    bag_of = scheme(part.X, size, columns=columns, rng=rng)
    bags, labels = gather(part, bag_of, classes=classes, columns=columns, rng=rng)
    rows = bags.X[:, 0].astype(int)
    assert sorted(rows) == list(range(n))
    np.testing.assert_array_equal(part.y[rows], labels)
    assert bags.offsets[0] == 0
    assert bags.offsets[-1] == n
    assert (bags.sizes >= 1).all()
    np.testing.assert_array_equal(np.bincount(bags.bag_of, minlength=len(bags)), bags.sizes)
    for b in range(len(bags)):
        inside = labels[bags.offsets[b] : bags.offsets[b + 1]]
        wanted = [int((inside == 1).sum())] if classes == 2 else [int((inside == c).sum()) for c in range(classes)]
        assert bags.counts[b].tolist() == wanted


@quick
@given(n=ROWS, size=SIZES, seed=st.integers(0, 99))
def test_random_bags_have_the_given_size_and_the_last_is_kept(n: int, size: int, seed: int) -> None:
    bag_of = random_bags(table(n), size, columns=(), rng=np.random.default_rng(seed))
    sizes = np.bincount(bag_of)
    assert len(sizes) == -(-n // size)
    assert (sizes[:-1] == size).all()
    assert sizes[-1] == n - size * (len(sizes) - 1)


@quick
@given(n=ROWS, size=SIZES, spread=st.floats(0, 1), seed=st.integers(0, 99))
@example(n=300, size=2, spread=1.0, seed=0)  # no bag may be empty
def test_uneven_sizes_stay_within_their_spread(n: int, size: int, spread: float, seed: int) -> None:
    bag_of = uneven_bags(table(n), size, columns=(), rng=np.random.default_rng(seed), spread=spread)
    sizes = np.bincount(bag_of)
    assert sizes.sum() == n
    assert (sizes >= 1).all()
    assert (sizes <= size * (1 + spread)).all()
    assert (sizes[:-1] >= size * (1 - spread)).all()  # the last one takes what is left


def test_uneven_sizes_vary_around_the_given_one() -> None:
    sizes = np.bincount(uneven_bags(table(20_000), 20, columns=(), rng=np.random.default_rng(0), spread=0.5))[:-1]
    assert set(sizes) == set(range(10, 31))
    assert abs(sizes.mean() - 20) < 0.7


def test_random_bags_mix_the_rows() -> None:
    bag_of = random_bags(table(1000), 100, columns=(), rng=np.random.default_rng(0))
    assert len(set(bag_of[:100])) == 10  # neighbours are spread over all bags


@quick
@given(n=st.integers(2, 200), size=st.integers(1, 40), seed=st.integers(0, 99))
def test_rows_with_equal_values_share_bags(n: int, size: int, seed: int) -> None:
    X = table(n, seed)
    for column, key in (("colour", X[:, 1:4].argmax(axis=1)), ("number", X[:, 0]), ("other", X[:, 4])):
        bag_of = feature_bags(X, size, columns=COLUMNS, rng=np.random.default_rng(seed), column=column)
        for b in range(bag_of.max()):
            assert key[bag_of == b].max() <= key[bag_of == b + 1].min()
        assert (np.bincount(bag_of)[:-1] == size).all()


def test_ties_are_broken_at_random() -> None:
    X = np.zeros((100, 5), dtype=np.float32)
    one, two = (feature_bags(X, 10, columns=COLUMNS, rng=np.random.default_rng(s), column="number") for s in (0, 1))
    assert (one != two).any()


def test_rows_of_a_cluster_share_bags() -> None:
    rng = np.random.default_rng(0)
    cluster = np.repeat([0, 1, 2], 50)
    X = (rng.normal(size=(150, 4)) * 0.1 + 10 * cluster[:, None]).astype(np.float32)
    bag_of = feature_bags(X, 10, columns=(), rng=rng, clusters=3)
    for b in range(15):
        assert len(set(cluster[bag_of == b])) == 1


def test_unknown_column_gets_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'color'.*Did you mean 'colour'.*colour, number, other"):
        feature_bags(table(9), 3, columns=COLUMNS, rng=np.random.default_rng(0), column="color")


def test_same_seed_gives_the_same_bags_and_another_does_not() -> None:
    part = make_part(200)
    first, again, other = (bags_of(part, 8, seed=s)[0] for s in (0, 0, 1))
    np.testing.assert_array_equal(first.X, again.X)
    assert (first.X != other.X).any()


def test_bags_do_not_depend_on_labels() -> None:
    part = make_part(200)
    flipped = type(part)(part.X, 1 - part.y)
    np.testing.assert_array_equal(bags_of(part, 8)[0].X, bags_of(flipped, 8)[0].X)


def test_order_inside_a_bag_is_random() -> None:
    rows = bags_of(make_part(64), 64)[0].X[:, 0]
    assert rows.tolist() != sorted(rows)
    order, offsets = bag_order(np.zeros(64, dtype=int), 64, np.random.default_rng(0))
    assert order.tolist() != list(range(64))
    assert offsets.tolist() == [0, 64]


@pytest.mark.parametrize("bag_of", [[0.0, 1.0, 1.0], [0, 1], [[0], [1], [1]]])
def test_invalid_output_of_a_scheme_is_rejected(bag_of: list[object]) -> None:
    with pytest.raises(DatasetError, match="a bag scheme must return 3 integers"):
        bag_order(np.array(bag_of), 3, np.random.default_rng(0))


def test_bag_numbers_may_have_gaps() -> None:
    order, offsets = bag_order(np.array([7, -2, 7, 100]), 4, np.random.default_rng(0))
    assert offsets.tolist() == [0, 1, 3, 4]
    assert order[0] == 1
    assert set(order[1:3]) == {0, 2}
    assert order[3] == 3


@pytest.mark.parametrize("classes", [2, 3])
def test_bags_are_read_only(classes: int) -> None:
    bags, _ = bags_of(make_part(40, classes), 7, classes)
    names = ("X", "offsets", "counts", "sizes", "bag_of", "proportions", "clipped_proportions", "prior")
    for name in names:
        with pytest.raises(ValueError, match="read-only"):
            getattr(bags, name)[...] = 0


@quick
@given(
    counts=st.lists(st.lists(st.floats(-30, 60), min_size=3, max_size=3), min_size=1, max_size=6), binary=st.booleans()
)
def test_clipped_proportions_lie_on_the_simplex(counts: list[list[float]], binary: bool) -> None:
    columns = np.array(counts)[:, :1] if binary else np.array(counts)
    offsets = np.arange(len(counts) + 1) * 20
    bags = Bags(np.zeros((20 * len(counts), 1), np.float32), offsets, columns, classes=2 if binary else 3)
    np.testing.assert_allclose(bags.proportions * 20, columns, atol=1e-12)  # noise and all
    clipped = bags.clipped_proportions
    assert ((clipped >= 0) & (clipped <= 1)).all()
    if binary:
        np.testing.assert_array_equal(clipped, np.clip(columns / 20, 0, 1))
    else:
        np.testing.assert_allclose(clipped.sum(axis=1), 1)


def test_prior_weighs_bags_by_their_size() -> None:
    bags = Bags(np.zeros((5, 1), np.float32), np.array([0, 1, 5]), np.array([[1.0], [0.0]]))
    assert bags.prior.tolist() == [0.2]


@quick
@given(n=st.integers(10, 500), seed=st.integers(0, 99))
def test_split_is_disjoint_complete_and_of_the_given_shares(n: int, seed: int) -> None:
    parts = random_split(n, (0.81, 0.09, 0.10), seed)
    assert sorted(np.concatenate(parts)) == list(range(n))
    assert [len(p) for p in parts[1:]] == [round(0.09 * n), round(0.10 * n)]


@quick
@given(bags=st.lists(st.integers(0, 8), min_size=1, max_size=60), size=st.integers(1, 20), seed=st.integers(0, 9))
def test_own_bags_above_the_size_are_cut_into_equal_parts(bags: list[int], size: int, seed: int) -> None:
    X, own = np.zeros((len(bags), 1), np.float32), np.array(bags)
    found = own_bags(X, size, columns=(), rng=np.random.default_rng(seed), bag_of=own)
    for bag in set(bags):
        parts = np.unique(found[own == bag], return_counts=True)[1]
        assert len(parts) == -(-(own == bag).sum() // size)
        assert parts.max() <= size
        assert np.ptp(parts) <= 1
    assert len(np.unique(found)) == sum(len(np.unique(found[own == bag])) for bag in set(bags))  # parts never mix


def test_own_bags_require_a_dataset_with_natural_bags() -> None:
    with pytest.raises(DatasetError, match="natural bags"):
        own_bags(np.zeros((3, 1), np.float32), 2, columns=(), rng=np.random.default_rng(0), bag_of=None)
