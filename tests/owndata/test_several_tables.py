"""Several tables of counts about the same rows, from ``fit`` to the command line."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_runner import llpbench as run
from helpers import quick
from hypothesis import given, settings
from hypothesis import strategies as st

import llpbench
from llpbench.contracts.errors import LLPWarning, UsageError
from llpbench.owndata.compare import fold_numbers
from llpbench.owndata.fitting import hold_out
from llpbench.owndata.reading.bagged_table import read_bagged_table

FAST: dict[str, Any] = {"method": "bag-logistic", "halvings": 1}


def people(n: int = 1500, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """A table of rows whose labels depend on its columns, and the labels."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "farmer", "nurse", "pilot"], n),
            "region": rng.integers(0, 6, n),
            "age": rng.integers(20, 60, n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    table["band"] = table["age"] // 10 * 10
    odds = 0.1 * (table["age"] - 40) + 1.5 * (table["job"] == "nurse") - (table["sex"] == "f") + 0.3 * table["region"]
    return table, pd.Series((rng.random(n) < 1 / (1 + np.exp(1 - odds))).astype(int), name="y")


def tables_of(table: pd.DataFrame, y: pd.Series) -> list[pd.Series]:
    """Counts by job, by region, and by age and sex."""
    return [y.groupby([table[c] for c in by]).sum() for by in (["job"], ["region"], ["band", "sex"])]


def auroc(y: pd.Series, p: np.ndarray) -> float:
    from llpbench.experiment.metrics import auroc as metric

    return metric(y.to_numpy(), p[:, 1])


def test_several_tables_tell_more_than_one_and_are_met_by_the_rows_of_the_fit(tmp_path: Path) -> None:
    table, y = people()
    counts = tables_of(table, y)
    model = llpbench.fit(table, counts=counts, **FAST)
    p = model.predict_proba()
    one = llpbench.fit(table, counts=counts[:1], **FAST)
    new, labels = people(seed=1)
    assert auroc(labels, model.predict_proba(new)) > 0.75 > auroc(labels, one.predict_proba(new)) + 0.1
    for by, own in zip((["job"], ["region"], ["band", "sex"]), counts, strict=True):
        sums = pd.Series(p[:, 1]).groupby([table[c] for c in by]).sum()
        np.testing.assert_allclose(sums, own, atol=1.0)
    assert (model.labels_ == model.classes_[p.argmax(axis=1)]).all()
    np.testing.assert_allclose(model.predict_proba(table, counts=counts), p)
    again = llpbench.load(model.save(tmp_path / "several.llpmodel"))
    np.testing.assert_allclose(again.predict_proba(table, counts=counts), p)
    assert "bags, rows                 18, 1,500" in str(model.report())


def test_a_list_of_one_table_equals_bag_of() -> None:
    table, y = people()
    by_region, ages = (y.groupby(table[name]).sum() for name in ("region", "age"))
    named = llpbench.fit(table, "region", by_region, **FAST).predict_proba()
    assert np.array_equal(llpbench.fit(table, counts=[by_region], **FAST).predict_proba(), named)
    assert np.array_equal(llpbench.fit(table, counts=by_region, **FAST).predict_proba(), named)
    some = ages.iloc[3:]  # rows without a line are not used, as those of unknown counts
    unknown = ages.astype(float).where(ages.index.isin(some.index))
    wanted = llpbench.fit(table, "age", unknown, **FAST).predict_proba()
    np.testing.assert_array_equal(llpbench.fit(table, counts=[some], **FAST).predict_proba(), wanted)


@pytest.mark.slow  # compiles belief propagation
def test_three_random_tables_of_small_groups_decode_every_label() -> None:
    """The table of decoding: groups of 8, three counts per row, and log-odds of features."""
    rng = np.random.default_rng(0)
    n = 2048
    X = rng.normal(size=(n, 4))
    y = pd.Series((rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 0] - X[:, 1]))).astype(int))
    bags = [rng.permutation(n) // 8 for _ in range(3)]
    model = llpbench.fit(X, counts=[(bag, y.groupby(bag).sum()) for bag in bags], **{**FAST, "halvings": 0})
    assert (model.labels_ == y).all()


def test_three_classes_with_missing_censored_and_noisy_counts() -> None:
    table, y = people()
    y = y + 2 * (table["age"] > 50) * (1 - y)
    job, region = (pd.crosstab(table[name], y).astype(object) for name in ("job", "region"))
    job.loc["clerk"], job.loc["pilot", 2] = None, "<200"
    region = region + np.random.default_rng(0).normal(0, 3, region.shape)
    bands = pd.crosstab([table["band"], table["sex"]], y)
    with pytest.warns(LLPWarning, match="by job of 1 of 4 bags are unknown"):
        model = llpbench.fit(table, counts=[job, region, bands], count_sd=[0, 3.0, 0], **FAST)
    p = model.predict_proba()
    assert p.shape == (len(table), 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.labels_ == y).mean() > (y == y.mode()[0]).mean() + 0.1


def test_totals_that_disagree_and_rows_in_no_group_are_warned_of() -> None:
    table, y = people()
    first, second, third = tables_of(table, y)
    with pytest.warns(LLPWarning, match="disagree about the total of class 1.* by job"):
        llpbench.fit(table, counts=[first + 20, second, third], **FAST)
    table = table.assign(job=table["job"].where(table.index > 4), region=table["region"].where(table.index > 4))
    first, second, _ = tables_of(table, y)
    with pytest.warns(LLPWarning, match=r"5 in none by job, 5 in none by region"):
        model = llpbench.fit(table, counts=[first, second], **FAST)
    assert np.isfinite(model.predict_proba()).all()
    assert len(model.labels_) == len(table)


@settings(quick, max_examples=5)
@given(st.integers(0, 10_000))
def test_bounds_of_subgroups_hold_and_tables_determine_their_own_groups(seed: int) -> None:
    table, y = people(120, seed)
    model = llpbench.fit(table, counts=tables_of(table, y), **{**FAST, "halvings": 0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LLPWarning)
        own = model.subgroup_totals(by="job", halvings=0)
        found = [model.subgroup_totals(by=name, halvings=0) for name in ("sex", "age")]
    np.testing.assert_array_equal(own["least"], y.groupby(table["job"]).sum())
    np.testing.assert_array_equal(own["most"], own["least"])
    for name, totals in zip(("sex", "age"), found, strict=True):
        true = y.groupby(table[name]).sum()
        assert ((totals["least"] <= true) & (true <= totals["most"])).all()
        assert ((totals["least"] <= totals["total"]) & (totals["total"] <= totals["most"])).all()


@quick
@given(st.lists(st.integers(1, 12), min_size=2, max_size=6), st.floats(0.05, 0.9), st.integers(0, 99))
def test_each_grouping_is_held_out_and_folded_in_proportion(sizes: list[int], share: float, seed: int) -> None:
    grouping_of = np.repeat(np.arange(len(sizes)), sizes)
    train, held = hold_out(len(grouping_of), share, seed, grouping_of)
    assert sorted([*train, *held]) == list(range(len(grouping_of)))
    fold = fold_numbers(len(grouping_of), 3, seed, grouping_of)
    for g, size in enumerate(sizes):
        wanted = len(held) * size / len(grouping_of)
        assert abs((grouping_of[held] == g).sum() - wanted) < 2
        assert np.ptp(np.bincount(fold[grouping_of == g], minlength=3)) <= 1


def test_predictions_for_held_out_groups_have_the_total_that_the_others_imply() -> None:
    table, y = people()
    memory = llpbench.fit(table, counts=tables_of(table, y), **FAST)._memory
    assert memory is not None
    for part in (memory.main, *memory.halves[0]):
        judged, grouping = part.at([0.0, 1.0]), part.bags.grouping_of
        for g in np.unique(grouping):
            sums = (part.bags.sizes[:, None] * judged.means)[:, grouping == g].sum(axis=1)
            np.testing.assert_allclose(sums[:, 1], part.bags.counts[grouping == g].sum())


def test_taking_bags_keeps_their_rows_and_counts() -> None:
    table, y = people(60)
    read = read_bagged_table(table, None, tables_of(table, y), None)
    part = read.take(np.array([1, 5, 6, 12])).take(np.array([0, 2, 3]))  # bags 1, 6 and 12
    for place, b in enumerate((1, 6, 12)):
        inside = read.rows[read.bags.entries(np.arange(len(read.rows)))[read.bags.numbers == b]]
        again = part.rows[part.bags.entries(np.arange(len(part.rows)))[part.bags.numbers == place]]
        assert sorted(inside) == sorted(again)
        assert y[inside].sum() == part.counts[place, 0]
        assert part.bags.ids[place] == read.bags.ids[b]


def test_compare_and_the_command_line_take_several_tables(tmp_path: Path) -> None:
    table, y = people(600)
    counts = tables_of(table, y)
    found = llpbench.compare(table, counts=counts, methods="bag-logistic,mean-ridge", repeats=1, progress=False)
    assert found.recommended in ("bag-logistic", "mean-ridge")
    assert "band+sex=20,f" in found.bags.index
    table.to_csv(tmp_path / "people.csv", index=False)
    files: list[str] = []
    for number, each in enumerate(counts):
        each.rename("n").reset_index().to_csv(tmp_path / f"{number}.csv", index=False)
        files += ["--counts-file", f"{number}.csv"]
    done = run("compare", "people.csv", *files, "--methods", "bag-logistic", "--repeats", "1", "--quiet", cwd=tmp_path)
    assert done.returncode == 0
    assert "18 bags in 5 folds" in done.stdout


def test_classifier_takes_several_tables() -> None:
    table, y = people()
    counts = tables_of(table, y)
    classifier = llpbench.LLPClassifier("bag-logistic").fit(table, counts=counts)
    model = llpbench.fit(table, counts=counts, method="bag-logistic")
    assert np.array_equal(classifier.predict_proba(), model.predict_proba())
    np.testing.assert_allclose(classifier.predict_proba(table, counts=counts), model.predict_proba())
    new, labels = people(seed=1)
    worse = [each * 0 + each.mean() for each in tables_of(new, labels)]
    assert classifier.score(new, counts=tables_of(new, labels)) > classifier.score(new, counts=worse)
    with pytest.raises(ValueError, match="replaces y and bag_of"):
        classifier.fit(table, y, counts=counts)
    with pytest.raises(ValueError, match="counts is an empty list"):
        classifier.fit(table, counts=[])


def test_counts_without_bag_of_must_be_tables() -> None:
    table, _ = people(50)
    for counts in ([1, 2, 3], "age", np.zeros(50)):
        with pytest.raises(UsageError, match=r"[wW]ithout bag_of, counts"):
            llpbench.fit(table, counts=counts)
