"""MixBag: what is mixed, its target and tolerance, and the loss on each backend."""

from __future__ import annotations

import numpy as np
import pytest
from backends import close, each_backend, figures
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import Bags, QuietMonitor, Skip
from llpbench_methods.mixbag.method import MixBag
from llpbench_methods.mixbag.mixing import MixedBags, mix, mixed_targets
from llpbench_methods.nets.batches import BagBatches, Plan


def test_target_and_tolerance_have_the_published_form() -> None:
    target, tolerance = mixed_targets(np.array([[0.25]]), np.array([[0.6]]), np.array([3]), np.array([5]), 2.576)
    close(target, [[3 / 8 * 0.25 + 5 / 8 * 0.6]], 1e-12)
    wanted = 2.576 * (3 / 8 * np.sqrt(0.25 * 0.75 / 3) + 5 / 8 * np.sqrt(0.6 * 0.4 / 5))
    close(tolerance, [[wanted]], 1e-12)


def rows_of_bags(plan: Plan) -> dict[int, np.ndarray]:
    """Rows of each bag of a plan, by the bag's number."""
    found = {}
    for t in range(plan.n_batches):
        for k, number in enumerate(plan.bags[t]):
            if number >= 0:
                found[int(number)] = plan.rows[t][plan.bag_of[t] == k]
    return found


@st.composite
def bags_to_mix(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    sizes = draw(st.lists(st.integers(1, 20), min_size=2, max_size=25))
    classes = draw(st.sampled_from([1, 3]))
    seed = draw(st.integers(0, 10**6))
    return np.array(sizes), np.random.default_rng(seed).random((len(sizes), classes)), seed


@quick
@given(bags_to_mix(), st.sampled_from([0.0, 0.5, 1.0]))
def test_mixed_bags_have_rows_of_two_bags_and_their_shares(
    case: tuple[np.ndarray, np.ndarray, int], share: float
) -> None:
    sizes, proportions, seed = case
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    bag_of = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(seed)
    plans = BagBatches(sizes, 32).plans(rng)
    mixed = mix(plans, offsets, proportions, rng, share=share, width=2.0)
    assert isinstance(mixed, MixedBags)
    assert len(mixed.proportions) == sum(int((p.bags[: p.n_batches] >= 0).sum()) for p in plans)
    start = 0
    for before, after in zip(plans, mixed.plan_list, strict=True):
        assert after.rows.shape == before.rows.shape  # shapes stay, so nothing is compiled again
        assert after.n_batches == before.n_batches
        firsts = before.bags[: before.n_batches][before.bags[: before.n_batches] >= 0]
        rows = rows_of_bags(after)
        assert sorted(rows) == list(range(start, start + len(firsts)))
        for number, first in zip(range(start, start + len(firsts)), firsts, strict=True):
            found = rows[number]
            assert len(set(found.tolist())) == len(found) > 0
            counted = np.bincount(bag_of[found], minlength=len(sizes))
            assert counted[first] > 0
            others = np.flatnonzero(counted)[np.flatnonzero(counted) != first]
            n1, n2 = int(counted[first]), len(found) - int(counted[first])
            if share == 0.0 or sizes[first] == 1:
                assert n1 == sizes[first]
            if not n2:
                assert n1 == sizes[first]
                assert (mixed.tolerances[number] == 0).all()
                assert (mixed.proportions[number] == proportions[first]).all()
                continue
            (partner,) = others
            assert n2 == min(sizes[first] - n1, sizes[partner])
            target, tolerance = mixed_targets(
                proportions[[first]], proportions[[partner]], np.array([n1]), np.array([n2]), 2.0
            )
            close(mixed.proportions[number], target[0], 1e-12)
            close(mixed.tolerances[number], tolerance[0], 1e-12)
        start += len(firsts)


def test_half_of_the_bags_are_mixed_with_any_number_of_rows() -> None:
    sizes = np.full(400, 8)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rng = np.random.default_rng(0)
    kept = np.zeros(9, int)
    for _ in range(10):
        mixed = mix(BagBatches(sizes, 64).plans(rng), offsets, rng.random((400, 1)), rng, share=0.5, width=1.0)
        for plan in mixed.plan_list:
            for rows in rows_of_bags(plan).values():
                kept[int((rows // 8 == rows[0] // 8).sum())] += 1
    assert abs(kept[8] / 4000 - 0.5) < 0.05
    assert (np.abs(kept[1:8] / 4000 - 0.5 / 7) < 0.03).all()


def test_labels_of_mixed_bags_are_within_the_tolerance_at_the_stated_rate() -> None:
    rng = np.random.default_rng(0)
    sizes = np.full(300, 64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    y = rng.random(offsets[-1]) < np.repeat(rng.random(300), 64)
    proportions = np.add.reduceat(y, offsets[:-1])[:, None] / 64
    within = []
    for _ in range(5):
        mixed = mix(BagBatches(sizes, 512).plans(rng), offsets, proportions, rng, share=1.0, width=2.576)
        for plan in mixed.plan_list:
            for number, rows in rows_of_bags(plan).items():
                within.append(abs(y[rows].mean() - mixed.proportions[number, 0]) <= mixed.tolerances[number, 0] + 1e-9)
    assert np.mean(within) >= 0.99


@pytest.mark.slow
@each_backend
def test_loss(backend: str) -> None:
    got = figures(backend)["losses.mixbag"]
    close(got["no_tolerance"][0], 0.7709698346)
    close(got["no_tolerance"][1], [0.0637124592, 0.0810129606, 0.0761533859, 0.0340233648])
    for part in (0, 1):
        close(got["outside"][part], got["no_tolerance"][part])
        close(got["within"][part], 0.0)  # |.568 - .25| is below the tolerance
    close(got["multiclass"], got["multiclass_numpy"])
    close(got["uneven"], got["uneven_numpy"])


@pytest.mark.slow
@each_backend
def test_without_mixing_it_is_dllp_but_for_the_draw_of_batches(backend: str) -> None:
    assert figures(backend)["losses.mixbag"]["share_0_learns"] > 0.9


def test_single_bag_is_declined() -> None:
    bags = Bags(np.zeros((4, 2), np.float32), np.array([0, 4]), np.array([[1.0]]))
    with pytest.raises(Skip, match="got one"):
        MixBag().fit(bags, monitor=QuietMonitor(), seed=0)
