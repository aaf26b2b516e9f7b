"""Totals of subgroups: known counts are kept, variances are those of the draw, intervals hold what they promise."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

import llpbench
from llpbench import LLPWarning, UnknownNameError, UsageError
from llpbench.owndata.judging.interval_widths import model_variance, quantile, slope_beyond_chance
from llpbench.owndata.judging.posterior import level_to
from llpbench.owndata.judging.predictor import softmax
from llpbench.owndata.known_bags import KnownBags
from llpbench.owndata.reading.bag_counts import KnownCounts
from llpbench.owndata.reading.bag_ids import read_bag_ids
from llpbench.owndata.subgroups import expected_totals

NO_EFFECT = np.zeros(2)


def election(n: int = 3000, precincts: int = 60, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Voters of precincts that differ in age; the vote depends on age and on union membership."""
    rng = np.random.default_rng(seed)
    precinct = rng.integers(precincts, size=n)
    age = rng.normal(45 + 8 * rng.normal(size=precincts)[precinct], 12)
    union = rng.random(n) < rng.uniform(0.05, 0.95, precincts)[precinct]
    frame = pd.DataFrame({"age": age, "union": np.where(union, "yes", "no"), "precinct": precinct})
    return frame, rng.random(n) < expit((age - 45) / 15 + 1.5 * union - 0.75)


def election_model(seed: int = 0) -> tuple[llpbench.LLPModel, pd.DataFrame, np.ndarray]:
    frame, vote = election(seed=seed)
    counts = pd.Series(vote).groupby(frame["precinct"]).sum()
    return llpbench.fit(frame, "precinct", counts, method="mean-ridge"), frame, vote


def test_subgroup_totals_add_up_to_known_counts() -> None:
    model, frame, vote = election_model()
    totals = model.subgroup_totals(by="union")
    assert totals.index.tolist() == ["no", "yes"]
    assert totals["rows"].tolist() == frame["union"].value_counts()[["no", "yes"]].tolist()
    assert totals["total"].sum() == pytest.approx(vote.sum(), abs=1e-3)
    each = model.subgroup_totals(by="precinct", halvings=0)  # a precinct's own total is its count, without doubt
    np.testing.assert_allclose(each["total"], pd.Series(vote).groupby(frame["precinct"]).sum(), atol=1e-4)
    np.testing.assert_allclose(each["low"], each["high"], atol=1e-3)
    truth = pd.Series(vote).groupby(frame["union"]).sum()
    assert (totals["least"] <= truth).all()
    assert (truth <= totals["most"]).all()
    assert (totals["least"] <= totals["low"]).all()
    assert (totals["high"] <= totals["most"]).all()
    assert (totals["low"] < totals["total"]).all()


def test_subgroup_totals_of_another_table() -> None:
    model, _, _ = election_model()
    other, vote = election(600, 12, seed=5)
    counts = pd.Series(vote).groupby(other["precinct"]).sum()
    plain = model.subgroup_totals(other, "union")
    p = model.predict_proba(other)[:, 1]
    np.testing.assert_allclose(plain["total"], pd.Series(p).groupby(other["union"]).sum())
    kept = model.subgroup_totals(other, "union", bag_of="precinct", counts=counts)
    assert kept["total"].sum() == pytest.approx(vote.sum(), abs=1e-4)
    shares = counts / other["precinct"].value_counts().sort_index()
    same = model.subgroup_totals(other, other["union"].to_numpy(), bag_of=other["precinct"], proportions=shares)
    np.testing.assert_allclose(same["total"], kept["total"], atol=1e-4)
    unknown = model.subgroup_totals(other, "union", bag_of="precinct")  # bags without counts: bag effects count
    np.testing.assert_allclose(unknown["total"], plain["total"])
    assert ((unknown["high"] - unknown["low"]) >= (plain["high"] - plain["low"]) - 1e-9).all()
    noisy = model.subgroup_totals(other, "union", bag_of="precinct", counts=counts, count_sd=1e6)
    np.testing.assert_allclose(noisy["total"], plain["total"], rtol=1e-3)  # counts of no worth change nothing


def test_subgroup_totals_accept_all_forms_of_counts() -> None:
    model, frame, vote = election_model()
    counts = pd.Series(vote).groupby(frame["precinct"]).sum()
    sizes = frame["precinct"].value_counts()
    wanted = model.subgroup_totals(frame, "union", bag_of="precinct", counts=counts, halvings=0)
    per_row = frame.assign(k=frame["precinct"].map(counts), share=frame["precinct"].map(counts / sizes))
    long = counts.rename("k").rename_axis("precinct").reset_index()
    for form in ({"counts": "k"}, {"counts": ["k"]}, {"proportions": "share"}, {"counts": long}):
        found = model.subgroup_totals(per_row, "union", bag_of="precinct", **form, halvings=0)
        pd.testing.assert_frame_equal(found, wanted)
    per_row["k"] = per_row["k"].where(per_row["precinct"] != 7)
    with pytest.raises(UsageError, match="counts of some bags are missing"):
        model.subgroup_totals(per_row, "union", bag_of="precinct", counts="k", halvings=0)


def test_subgroup_totals_have_one_row_per_class() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    frame = pd.DataFrame(np.eye(3)[y] * 2 + rng.normal(size=(600, 3)), columns=list("abc"))
    frame = frame.assign(bag=np.arange(600) % 40, side=rng.choice(["left", None], 600))
    counts = pd.DataFrame(np.eye(3, dtype=int)[y], columns=["low", "mid", "top"]).groupby(frame["bag"]).sum()
    model = llpbench.fit(frame.drop(columns="side"), "bag", counts, method="mean-ridge")
    totals = model.subgroup_totals(by=frame["side"])
    assert totals.index.names == ["subgroup", "class"]
    assert len(totals) == 6  # rows without a value are a subgroup, the last one
    np.testing.assert_allclose(totals["total"].to_numpy().reshape(2, 3).sum(axis=0), counts.sum(), atol=1e-3)


@given(st.integers(6, 10), st.integers(1, 3), st.integers(0, 99))
@quick
def test_totals_given_a_count_match_enumeration(size: int, groups: int, seed: int) -> None:
    """Against all labellings of a bag with its count: bounds are exact, total and variance close."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(size=size)
    group = rng.integers(groups, size=size)
    count = int(rng.integers(size + 1))
    labellings = np.array([y for y in itertools.product((0, 1), repeat=size) if sum(y) == count])
    weights = np.exp(labellings @ odds)
    weights /= weights.sum()
    in_group = labellings @ np.eye(groups)[group]
    mean = weights @ in_group
    variance = weights @ (in_group - mean) ** 2
    one = read_bag_ids(np.zeros(size, int), size)
    bags = KnownBags(one, KnownCounts.exactly(np.array([[size - count, count]], float)))
    found = expected_totals(np.column_stack([np.zeros(size), odds]), group, groups, bags, NO_EFFECT)
    there = np.isin(np.arange(groups), group)
    np.testing.assert_allclose(found.total[:, 1], mean, atol=1e-9)
    np.testing.assert_allclose(found.variance[:, 1], variance, atol=0.2)
    assert found.total.sum() == pytest.approx(size, abs=1e-5)
    assert np.array_equal(found.least[there, 1], in_group.min(axis=0)[there])
    assert np.array_equal(found.most[there, 1], in_group.max(axis=0)[there])


@given(st.integers(2, 4), st.integers(2, 30), st.integers(0, 99))
@quick
def test_level_to_reaches_totals_with_one_shift(classes: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(rows, classes)) * 2
    counts = np.bincount(rng.integers(classes, size=rows), minlength=classes).astype(float)
    p = level_to(logits, counts)
    np.testing.assert_allclose(p.sum(axis=0), counts, atol=1e-5)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    there = np.flatnonzero(counts > 0)
    if len(there) > 1:  # a shift of all rows alike leaves every ratio of odds as it was; and a common shift cancels
        a, b = there[:2]
        moved = np.log(p[:, a] / p[:, b]) - (logits[:, a] - logits[:, b])
        np.testing.assert_allclose(moved, moved[0], atol=1e-6)
        np.testing.assert_allclose(level_to(logits + rng.normal(size=classes), counts), p, atol=1e-6)


def test_variance_without_bags_is_binomial() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 3))
    p = softmax(logits)
    found = expected_totals(logits, np.arange(50) % 4, 4, None, np.zeros(3))
    for group in range(4):
        own = p[np.arange(50) % 4 == group]
        np.testing.assert_allclose(found.total[group], own.sum(axis=0))
        np.testing.assert_allclose(found.variance[group], (own * (1 - own)).sum(axis=0))


def test_model_variance_from_halves() -> None:
    """A mean of n draws: halves differ by a variance of 4 / n, a quarter of the square is 1 / n."""
    draws = np.random.default_rng(0).normal(size=(4000, 2, 10)).mean(axis=2)
    pairs = [(np.array([a]), np.array([b])) for a, b in draws]
    assert model_variance(pairs)[0] == pytest.approx(1 / 20, rel=0.06)
    normal = quantile(0.9, np.ones(1), np.zeros(1), 1)[0]
    assert normal == pytest.approx(1.645, abs=0.001)
    assert quantile(0.9, np.zeros(1), np.ones(1), 1)[0] == pytest.approx(6.314, abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize("context", [0.0, 0.6])
def test_most_intervals_contain_the_true_total(context: float) -> None:
    """Elections in which unions work differently in each precinct, and in which precincts of unions differ."""
    held = []
    for seed in range(14):
        frame, _ = election(seed=seed)
        rng = np.random.default_rng(seed + 100)
        union, place = (frame["union"] == "yes").to_numpy(), frame["precinct"].to_numpy()
        share = pd.Series(union).groupby(place).mean().to_numpy()
        effect = (1.2 + 0.5 * rng.normal(size=60))[place] * union + context * (share[place] - 0.5)
        vote = rng.random(len(frame)) < expit((frame["age"] - 45) / 15 + effect - 0.7)
        model = llpbench.fit(frame, "precinct", vote.groupby(place).sum(), method="mean-ridge", halvings=1)
        totals = model.subgroup_totals(by="union", halvings=2)
        truth = vote.groupby(frame["union"]).sum()
        held += ((totals["low"] <= truth) & (truth <= totals["high"])).tolist()
    assert 0.8 <= np.mean(held) <= 1.0


def test_totals_warn_if_bags_with_more_rows_of_a_subgroup_differ() -> None:
    """The column is hidden from the model, so that nothing else explains these bags."""
    frame, _ = election()
    union = (frame["union"] == "yes").to_numpy()
    vote = np.random.default_rng(0).random(len(frame)) < expit((frame["age"] - 45) / 8 + 3.0 * union - 1.5)
    hidden, counts = frame.drop(columns="union"), vote.groupby(frame["precinct"]).sum()
    model = llpbench.fit(hidden, "precinct", counts, method="mean-ridge")
    with pytest.warns(LLPWarning, match="more rows of no, yes differ.*only least and most are certain"):
        wide = model.subgroup_totals(by=frame["union"])
    told = model.subgroup_totals(by=frame["union"], halvings=0)
    assert ((wide["high"] - wide["low"]) > 2 * (told["high"] - told["low"])).all()


def test_slopes_within_chance_do_not_widen_intervals() -> None:
    rng = np.random.default_rng(0)
    excess = []
    for _ in range(200):
        x, y = rng.normal(size=(2, 40))
        excess.append(slope_beyond_chance(x, y, np.ones(40)))
    assert 0 < np.count_nonzero(excess) <= 8  # one in a hundred is expected
    x = rng.normal(size=40)
    assert slope_beyond_chance(x, 2 * x + 0.1 * rng.normal(size=40), np.ones(40)) == pytest.approx(2.0, abs=0.2)
    assert slope_beyond_chance(x[:5], 2 * x[:5], np.ones(5)) == 0.0


def test_subgroup_totals_of_loaded_model_warn(tmp_path: Path) -> None:
    model, frame, _ = election_model()
    loaded = llpbench.load(model.save(tmp_path / "m"))
    with pytest.raises(UsageError, match="loaded from a file has no table"):
        loaded.subgroup_totals(by="union")
    with pytest.warns(LLPWarning, match="do not cover the choice of bags: it was loaded from a file"):
        narrow = loaded.subgroup_totals(frame, "union")
    wide = model.subgroup_totals(frame, "union")
    np.testing.assert_allclose(narrow["total"], wide["total"])
    assert ((wide["high"] - wide["low"]) > (narrow["high"] - narrow["low"])).all()


def test_subgroup_totals_reject_invalid_arguments() -> None:
    model, frame, _ = election_model()
    with pytest.raises(UsageError, match="by is missing"):
        model.subgroup_totals(frame)
    with pytest.raises(UnknownNameError, match=r"'unoin'. Did you mean 'union'"):
        model.subgroup_totals(by="unoin")
    with pytest.raises(UnknownNameError, match="'town'"):
        model.subgroup_totals(frame, "union", bag_of="town")
    with pytest.raises(UsageError, match="each of the 3,000 rows, got 2 values"):
        model.subgroup_totals(by=["a", "b"])
    with pytest.raises(UsageError, match="Without bag_of, counts are a list of tables"):
        model.subgroup_totals(frame, "union", counts=[1])
    with pytest.raises(UsageError, match="need X; without X those of the fit"):
        model.subgroup_totals(by="union", bag_of="precinct")
    with pytest.raises(UsageError, match="between 0 and its"):
        model.subgroup_totals(frame, "union", bag_of="precinct", counts=np.full(60, 10_000))
    with pytest.raises(UsageError, match="level must be between 0 and 1"):
        model.subgroup_totals(by="union", level=95)
