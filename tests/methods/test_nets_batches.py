"""Batches: every row once, whole bags, one shape."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llpbench_methods.nets.batches import BagBatches, RowBatches


def check_plan(plan, sizes):
    """Rows of the bags in use, each exactly once, in whole bags; returns the bags that were used."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows, used = [], []
    for b in range(plan.n_batches):
        n_bags = plan.bags.shape[1]
        real = plan.bag_of[b] < n_bags
        bags = plan.bags[b][plan.bags[b] >= 0]
        assert (plan.bags[b][: len(bags)] == bags).all()
        assert real[: real.sum()].all()
        for k, bag in enumerate(bags):
            own = plan.rows[b][plan.bag_of[b] == k]
            assert own.tolist() == list(range(offsets[bag], offsets[bag + 1]))
        assert set(plan.rows[b][~real]) <= set(plan.rows[b][real])
        rows += plan.rows[b][real].tolist()
        used += bags.tolist()
    assert len(rows) == len(set(rows))
    return used


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=80),
    budget=st.integers(1, 128),
    block=st.integers(1, 4),
    seed=st.integers(0, 10),
)
def test_whole_bags_once_each_in_one_shape(sizes, budget, block, seed):
    sizes = np.array(sizes)
    if len(sizes) < block:
        with pytest.raises(ValueError, match="block"):
            BagBatches(sizes, budget, block)
        return
    batches = BagBatches(sizes, budget, block)
    rng = np.random.default_rng(seed)
    shapes = set()
    for _ in range(3):
        plans = batches.plans(rng)
        for one_pass in passes_of(plans, batches):
            used = []
            for plan in one_pass:
                used += check_plan(plan, sizes)
                assert all(np.sum(row >= 0) % block == 0 for row in plan.bags[: plan.n_batches])
            assert len(used) == len(set(used)) == len(sizes) // block * block
        shapes.add(frozenset(shape_of(plan) for plan in batches.plans(rng)))
    assert len(shapes) == 1


def passes_of(plans, batches):
    """The plans of each pass over the bags."""
    n_shapes = len(batches.shapes)
    assert len(plans) == batches.passes * n_shapes
    return [plans[i : i + n_shapes] for i in range(0, len(plans), n_shapes)]


def shape_of(plan):
    return plan.rows.shape, plan.bag_of.shape, plan.bags.shape


def only(plans):
    (plan,) = plans
    return plan


def test_equal_bags_fill_the_budget():
    sizes = np.array([8] * 4945 + [2])
    plan = only(BagBatches(sizes, 1024).plans(np.random.default_rng(0)))
    assert plan.rows.shape[1] == 1024
    assert plan.n_batches == 39
    assert BagBatches(np.array([100] * 50), 1024).shapes[0].rows == 1000


def test_bag_above_the_budget_is_a_batch_of_its_own():
    sizes = np.array([2048] * 19 + [650])
    plans = BagBatches(sizes, 1024).plans(np.random.default_rng(0))
    assert [plan.rows.shape[1] for plan in plans] == [2048, 2048]  # two passes: as many steps as with smaller bags
    assert [plan.n_batches for plan in plans] == [20, 20]
    assert not np.array_equal(plans[0].bags, plans[1].bags)  # each in an order of its own


BAG_SIZES = (8, 32, 128, 512, 1024, 2048)


@pytest.mark.parametrize("rows", [39_562, 20_093])
@pytest.mark.parametrize("block", [1, 4])
def test_steps_between_reports_do_not_depend_on_the_bags(rows, block):
    """A quarter of the steps is what blocks of four bags took before; one pass over bags of 2048 took half."""
    wanted = -(-rows // 1024)
    for size in BAG_SIZES:
        sizes = np.full(rows // size, size)
        sizes = np.append(sizes, rows % size) if rows % size else sizes
        plans = BagBatches(sizes, 1024, block).plans(np.random.default_rng(0))
        steps = sum(plan.n_batches for plan in plans)
        assert abs(steps - wanted) <= 0.1 * wanted, (size, steps)
        bags = min(int((row >= 0).sum()) for plan in plans for row in plan.bags[: plan.n_batches])
        assert bags % block == 0
        assert bags >= block


def test_row_batch_holds_rows_of_many_bags():
    """The signs of EasyLLP's targets cancel over bags: also at 2048 a batch must not be one bag."""
    rows, size = 20_093, 2048
    bag_of = np.arange(rows) // size
    (plan,) = RowBatches(rows, 1024).plans(np.random.default_rng(0))
    assert plan.n_batches == -(-rows // 1024)
    assert min(len(np.unique(bag_of[row])) for row in plan.rows[: plan.n_batches]) >= 8


def test_few_rows_are_not_padded_to_the_budget():
    assert BagBatches(np.array([8, 8, 3]), 1024).shapes[0].rows == 24
    assert BagBatches(np.array([8, 9, 3]), 1024).shapes[0].rows == 128


def test_few_large_bags_do_not_swell_every_batch():
    sizes = np.array([30] * 500 + [40] * 50 + [1500, 2000, 9000])
    batches = BagBatches(sizes, 1024)
    assert [shape.rows for shape in batches.shapes] == [1152, 2048, 9088]
    assert [shape.rows for shape in BagBatches(np.array([2050, 2000, 1990, 700]), 1024).shapes] == [2176]
    plans, *_ = passes_of(batches.plans(np.random.default_rng(0)), batches)
    used = [bag for plan in plans for bag in check_plan(plan, sizes)]
    assert sorted(used) == list(range(len(sizes)))
    padded = sum(plan.n_batches * plan.rows.shape[1] for plan in plans)
    assert padded < 1.2 * sizes.sum()


def test_other_draws_of_uneven_bags_have_the_same_shape():
    shapes = set()
    for seed in range(5):
        rng = np.random.default_rng(seed)
        sizes = rng.poisson(31, 1000) + 1
        shapes.add(shape_of(only(BagBatches(sizes, 1024).plans(rng))))
    assert len(shapes) == 1


def test_epochs_are_shuffled_and_repeatable():
    batches = BagBatches(np.array([4] * 50), 16)
    a, b = np.random.default_rng(1), np.random.default_rng(1)
    first, second = only(batches.plans(a)), only(batches.plans(a))
    assert not np.array_equal(first.rows, second.rows)
    assert np.array_equal(first.rows, only(batches.plans(b)).rows)


@pytest.mark.parametrize(("n", "budget"), [(10, 4), (10, 5), (3, 1024), (1, 1)])
def test_row_batches_hold_every_row_once(n, budget):
    plan = only(RowBatches(n, budget).plans(np.random.default_rng(0)))
    real = plan.bag_of[: plan.n_batches] == 0
    assert sorted(plan.rows[: plan.n_batches][real]) == list(range(n))
    assert (plan.bags[: plan.n_batches] == -1).all()


def test_row_batches_of_a_subset_keep_the_shape():
    rng = np.random.default_rng(0)
    whole = only(RowBatches(100, 16).plans(rng))
    part = only(RowBatches(100, 16, subset=np.arange(0, 100, 3)).plans(rng))
    assert whole.rows.shape == part.rows.shape
    real = part.bag_of[: part.n_batches] == 0
    assert sorted(part.rows[: part.n_batches][real]) == list(range(0, 100, 3))
