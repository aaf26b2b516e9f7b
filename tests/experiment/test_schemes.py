"""Bag schemes that are not random: groups, mixtures of clusters or classes, and the bags a dataset brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import Column, DatasetError, UsageError
from llpbench.contracts.errors import UnknownNameError
from llpbench.contracts.specs import NO_BAG, BagScheme
from llpbench.experiment.grid import plan_cells, unused_sizes
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.schemes import (
    check_groups,
    cluster_dirichlet_bags,
    group_bags,
    mixture_bags,
    own_bags,
    proportion_dirichlet_bags,
)
from llpbench.plugins.registry import load_registry

COLUMNS = (Column("number", "numeric"), Column("colour", "category", 3), Column("size", "numeric"))
REGISTRY = load_registry()


def table(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    colour = np.eye(4)[rng.integers(0, 4, n)][:, :3]  # every fourth row has a colour that is not known
    numbers = [rng.normal(size=(n, 1)), colour, rng.integers(0, 3, (n, 1)) / 2]
    return np.hstack(numbers).astype(np.float32)


def grouped(X: np.ndarray, columns: str, **options: Any) -> np.ndarray:
    return group_bags(X, 0, columns=COLUMNS, rng=np.random.default_rng(0), columns_=columns, **options)


@quick
@given(
    n=st.integers(1, 300),
    seed=st.integers(0, 99),
    columns=st.sampled_from(["colour", "size", "colour+size", "size+ colour", "number", "number+size"]),
    limits=st.tuples(st.integers(1, 40), st.integers(0, 60)),
)
def test_group_by_makes_a_bag_of_every_value_within_the_limits(
    n: int, seed: int, columns: str, limits: tuple[int, int]
) -> None:
    X, least, most = table(n, seed), limits[0], sum(limits)
    values = {"number": X[:, :1], "colour": X[:, 1:4], "size": X[:, 4:]}
    keys = [tuple(np.concatenate([values[name.strip()][i] for name in columns.split("+")])) for i in range(n)]
    bag_of = grouped(X, columns, least=least, most=most)
    sizes = {key: keys.count(key) for key in keys}
    for key in sizes:
        bags = {int(bag_of[i]) for i in range(n) if keys[i] == key}
        assert len(bags) == 1  # never cut
        assert (bags == {NO_BAG}) == (not least <= sizes[key] <= most)
    there = bag_of[bag_of != NO_BAG]
    assert len(set(there)) == sum(least <= size <= most for size in sizes.values())  # never joined
    assert set(there) == set(range(len(set(there))))


def test_group_by_rejects_invalid_options() -> None:
    X = table(20)
    with pytest.raises(UnknownNameError, match=r"'color'.*Did you mean 'colour'.*colour, number, size"):
        grouped(X, "size+color")
    with pytest.raises(UsageError, match="needs the columns"):
        check_groups(" + ", 1, 2)
    with pytest.raises(UsageError, match="least must not exceed most"):
        grouped(X, "colour", least=9, most=5)
    for given_, words in (({}, "needs the columns"), ({"columns": "a", "least": 9, "most": 5}, "must not exceed")):
        with pytest.raises(UsageError, match=words):
            REGISTRY.schemes["group-by"].resolve(given_)


@quick
@given(
    groups=st.lists(st.integers(0, 4), min_size=1, max_size=200),
    size=st.integers(1, 60),
    total=st.sampled_from([1e-3, 0.3, 1.0, 10.0, 1e5]),
    seed=st.integers(0, 99),
)
def test_mixture_bags_use_every_row_once_and_only_the_last_is_smaller(
    groups: list[int], size: int, total: float, seed: int
) -> None:
    bag_of = mixture_bags(np.array(groups), size, total, np.random.default_rng(seed))
    sizes = np.bincount(bag_of)
    assert len(sizes) == -(-len(groups) // size)
    assert (sizes[:-1] == size).all()
    assert sizes[-1] == len(groups) - size * (len(sizes) - 1)


def test_class_shares_follow_the_dirichlet() -> None:
    """Mean ``p``, variance ``p (1 - p) / (concentration + 1)``: of early bags, before rows run short."""
    labels = (np.arange(60_000) % 10 < 3).astype(int)
    for concentration in (3.0, 10.0, 100.0):
        bag_of = proportion_dirichlet_bags(
            np.empty((60_000, 0)),
            100,
            columns=(),
            rng=np.random.default_rng(5),
            labels=labels,
            concentration=concentration,
        )
        shares = np.bincount(bag_of, labels) / 100
        early, wanted = shares[:300], 0.3 * 0.7 / (concentration + 1)
        assert shares.mean() == pytest.approx(0.3)  # every row is in a bag
        assert abs(early.mean() - 0.3) < 4 * np.sqrt(wanted / 300)
        assert early.var() == pytest.approx(wanted, rel=0.35)  # four standard errors of a variance of 300


def test_mixtures_of_several_classes_have_the_overall_shares_in_the_mean() -> None:
    labels = np.repeat([0, 1, 2], [3000, 6000, 21_000])
    early = np.zeros(3)
    for seed in range(40):
        bag_of = mixture_bags(labels, 50, 5.0, np.random.default_rng(seed))
        early += np.bincount(labels[bag_of < 20], minlength=3) / (40 * 20 * 50)
    np.testing.assert_allclose(early, [0.1, 0.2, 0.7], atol=4 * np.sqrt(0.25 / 6 / 800))


def test_clusters_are_mixed_by_the_total() -> None:
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(4), 500)
    X = (rng.normal(size=(2000, 3)) * 0.1 + 10 * cluster[:, None]).astype(np.float32)
    pure = {}
    for total in (0.05, 1000.0):
        bag_of = cluster_dirichlet_bags(X, 50, columns=(), rng=np.random.default_rng(1), clusters=4, total=total)
        shares = np.array([np.bincount(cluster[bag_of == b], minlength=4) / 50 for b in range(20)])
        pure[total] = float(shares.max(axis=1).mean())
    assert pure[0.05] > 0.85
    assert pure[1000.0] < 0.4


@quick
@given(bags=st.lists(st.integers(-1, 6), min_size=1, max_size=60), seed=st.integers(0, 9))
def test_own_bags_are_unchanged_by_default(bags: list[int], seed: int) -> None:
    own = np.array(bags)
    found = own_bags(np.zeros((len(bags), 1)), 0, columns=(), rng=np.random.default_rng(seed), bag_of=own)
    assert ((found == NO_BAG) == (own == NO_BAG)).all()
    pairs = {(a, b) for a, b in zip(found.tolist(), bags, strict=True) if b != NO_BAG}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_own_bags_above_most_are_cut() -> None:
    own = np.zeros(10, int)
    found = own_bags(np.zeros((10, 1)), 0, columns=(), rng=np.random.default_rng(0), bag_of=own, most=4)
    assert sorted(np.bincount(found)) == [3, 3, 4]
    with pytest.raises(DatasetError, match="natural bags"):
        own_bags(np.zeros((3, 1)), 0, columns=(), rng=np.random.default_rng(0), bag_of=None)


def test_scheme_that_sizes_its_bags_is_planned_once_with_a_note() -> None:
    spec = RunSettings(
        methods=["mean-ridge", "supervised"],
        datasets=["synthetic"],
        bags=[8, 64],
        seeds=1,
        schemes=["random", "group-by[columns=x0]"],
    )
    planned = plan_cells(spec, REGISTRY)
    sizes = [(p.cell.scheme, p.cell.bag_size, p.cell.bags_name) for p in planned if not p.oracle]
    assert sizes == [("random", 8, "bag 8"), ("random", 64, "bag 64"), ("group-by", 0, "group-by")]
    assert sum(p.oracle for p in planned) == 1
    assert unused_sizes(spec, planned) == ["group-by sizes its bags itself: --bags is ignored for it"]
    # A size that is too large for the data is no matter to it.
    huge = RunSettings(methods=["mean-ridge"], datasets=["adult"], bags=[10**9], schemes=["group-by[columns=sex]"])
    assert len(plan_cells(huge, REGISTRY)) == 3


def test_schemes_declare_labels_and_sizes() -> None:
    declared = {e.spec.name: (e.spec.uses_labels, e.spec.sizes_itself) for e in REGISTRY.schemes if e.plugin.builtin}
    assert [name for name, (labels, _) in declared.items() if labels] == ["proportion-dirichlet"]
    assert sorted(name for name, (_, itself) in declared.items() if itself) == ["group-by", "margins", "own-bags"]
    assert not BagScheme(name="x", factory="a:b").uses_labels
