"""Odd but honest requests about a table of one's own: served, or refused with what is wrong; never silent nonsense."""

from __future__ import annotations

import decimal
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import llpbench
from llpbench.contracts.errors import UsageError


def shops(n: int = 400, bags: int = 20) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """A table with a number and a text, its bags in a column; and the labels."""
    rng = np.random.default_rng(0)
    shop = rng.permutation(np.arange(n) % bags)
    age = rng.normal(40, 10, n) + shop
    frame = pd.DataFrame({"age": age, "job": rng.choice(["clerk", "nurse"], n), "shop": shop})
    return frame, pd.Series(rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 5))).astype(int)


def fit(*args: Any, **options: Any) -> llpbench.LLPModel:
    return llpbench.fit(*args, **{"method": "mean-ridge", "halvings": 0, **options})


# -- numbers beside the table ------------------------------------------------------------------------------------------


def test_numpy_seed_equals_python_seed(tmp_path: Path) -> None:
    frame, y = shops()
    sold = y.groupby(frame["shop"]).sum()
    model = fit(frame, "shop", sold, seed=np.int64(3))
    assert np.array_equal(model.predict_proba(frame), fit(frame, "shop", sold, seed=3).predict_proba(frame))
    again = llpbench.load(model.save(tmp_path / "shops.llpmodel"))
    assert np.array_equal(again.predict_proba(frame), model.predict_proba(frame))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"seed": None}, "seed must be an integer, got None"),
        ({"seed": 1.5}, "seed must be an integer, got 1.5"),
        ({"halvings": "two"}, "halvings must be an integer >= 0, got 'two'"),
        ({"validation": None}, r"validation must be between 0 and 1 \(a share of the bags\), got None"),
        ({"count_sd": None}, "count_sd must be a number >= 0, or one for each bag, got None"),
        ({"count_sd": [1.0, 2.0]}, "count_sd must have one value for each of the"),
        ({"count_sd": "much"}, "count_sd must be a number >= 0, or one for each bag, got 'much'"),
    ],
)
def test_fit_rejects_invalid_numbers(option: dict[str, Any], message: str) -> None:
    frame, y = shops()
    with pytest.raises(UsageError, match=message):
        fit(frame, "shop", y.groupby(frame["shop"]).sum(), **option)


def test_compare_and_subgroup_totals_reject_invalid_numbers() -> None:
    frame, y = shops()
    sold = y.groupby(frame["shop"]).sum()
    for option in ({"seed": None}, {"folds": "five"}, {"repeats": 1.5}):
        with pytest.raises(UsageError, match=f"{next(iter(option))} must be"):
            llpbench.compare(frame, "shop", sold, methods="mean-ridge", progress=False, **option)
    for wrong in (-1, 1.5):
        with pytest.raises(UsageError, match=r"halvings must be an integer >= 0"):
            fit(frame, "shop", sold).subgroup_totals(by="job", halvings=wrong)


# -- bags --------------------------------------------------------------------------------------------------------------


def test_bags_may_be_defined_by_two_columns() -> None:
    frame, y = shops()
    region = np.where(frame["shop"] < 10, "north", "south")
    pairs = pd.MultiIndex.from_arrays([region, frame["shop"]])
    counts = y.groupby([region, frame["shop"]]).sum()
    wanted = fit(frame, pairs, counts.to_dict()).predict_proba(frame)
    for given in (counts, counts.to_frame("sold"), counts.sample(frac=1.0, random_state=0)):
        assert np.array_equal(fit(frame, pairs, given).predict_proba(frame), wanted)
    with pytest.raises(UsageError, match=r"no value for bag \('south', 19\)"):
        fit(frame, pairs, counts.drop(("south", 19)))
    by_class = frame.assign(y=y).groupby(["shop", "y"]).size()  # the same form, of bags and classes
    assert fit(frame, "shop", by_class).classes_.tolist() == [0, 1]


def test_times_are_valid_bag_ids() -> None:
    frame, y = shops()
    day = (pd.Timestamp("2024-01-01") + pd.to_timedelta(frame.pop("shop"), "D")).astype("datetime64[ns]")
    counts = y.groupby(day).sum()
    wanted = fit(frame, day, counts).predict_proba(frame)
    assert np.array_equal(fit(frame, day.to_numpy(), counts).predict_proba(frame), wanted)


def test_counts_by_order_are_rejected_for_ordered_categories() -> None:
    frame, y = shops()
    sizes = ["low", "mid", "high"]  # sorted: high, low, mid
    size = pd.Series(pd.Categorical.from_codes(frame.pop("shop") % 3, sizes, ordered=True))
    counts = y.groupby(size, observed=True).sum()
    with pytest.raises(UsageError, match="categories with another order"):
        fit(frame, size, counts.to_numpy())
    wanted = fit(frame, size, counts.to_dict()).predict_proba(frame)
    assert np.array_equal(fit(frame, size, counts).predict_proba(frame), wanted)
    texts = size.astype(str)
    assert np.array_equal(
        fit(frame, texts, counts.sort_index(key=lambda i: i.astype(str)).to_numpy()).predict_proba(frame), wanted
    )
    alphabetical = texts.astype("category")
    assert np.array_equal(fit(frame, alphabetical, y.groupby(texts).sum().to_numpy()).predict_proba(frame), wanted)


def test_series_in_another_order_is_rejected() -> None:
    frame, y = shops()
    sold = y.groupby(frame["shop"]).sum()
    X, shop = frame[["age", "job"]], frame["shop"]
    mixed = shop.sample(frac=1.0, random_state=0)
    with pytest.raises(UsageError, match=r"bag_of has the rows of the table in another order.*bag_of\.loc\[X\.index\]"):
        fit(X, mixed, sold)
    model = fit(X, mixed.loc[X.index], sold)
    assert np.array_equal(model.predict_proba(X), fit(X, shop, sold).predict_proba(X))
    fit(X.loc[mixed.index], mixed, sold)
    fit(X.loc[mixed.index][["age"]].to_numpy(), mixed, sold)  # an array has no names of rows
    fit(X, mixed.to_numpy(), sold)
    with pytest.raises(UsageError, match="by has the rows of the table in another order"):
        model.subgroup_totals(by=X["job"].loc[mixed.index])


def test_multi_index_rows_are_matched_by_position() -> None:
    """A name of two parts and one of one part are never the same, and pandas cannot compare them."""
    frame, y = shops()
    sold = y.groupby(frame["shop"]).sum()
    X, shop = frame[["age", "job"]], frame["shop"]
    parts = pd.MultiIndex.from_arrays([shop, np.arange(len(shop))])
    wanted = fit(X, shop, sold).predict_proba(X)
    assert np.array_equal(fit(X.set_index(parts), shop, sold).predict_proba(X), wanted)
    assert np.array_equal(fit(X, shop.set_axis(parts), sold).predict_proba(X), wanted)
    with pytest.raises(UsageError, match="bag_of has the rows of the table in another order"):
        fit(X.set_index(parts), shop.set_axis(parts)[::-1], sold)


@pytest.mark.parametrize(
    ("bag_of", "message"),
    [
        (2, "bag_of must be the bag of each of the 400 rows, or the name of a column"),
        (pd.DataFrame(np.zeros((400, 2))), "got a table of 2 columns.*MultiIndex"),
        (["shop", "job"], "got 2 values.*MultiIndex"),
    ],
)
def test_invalid_bag_of_is_rejected(bag_of: Any, message: str) -> None:
    frame, y = shops()
    with pytest.raises(UsageError, match=message):
        fit(frame, bag_of, y.groupby(frame["shop"]).sum())


def test_percentages_are_proportions() -> None:
    frame, y = shops()
    share = y.groupby(frame["shop"]).mean()
    wanted = fit(frame, "shop", proportions=share).predict_proba(frame)
    texts = [f"{100 * share[shop]:.10f} %" for shop in share.index]
    assert np.allclose(fit(frame, "shop", proportions=pd.Series(texts, share.index)).predict_proba(frame), wanted)
    with pytest.raises(UsageError, match="pass percentages as proportions"):
        fit(frame, "shop", pd.Series(texts, share.index))
    with pytest.raises(UsageError, match="divide them by 100"):
        fit(frame, "shop", proportions=100 * share)


def test_fractional_counts_are_reported() -> None:
    frame, y = shops()
    counts = y.groupby(frame["shop"]).sum() * 0.99
    with pytest.warns(llpbench.LLPWarning, match="counts that are not whole numbers"):
        fit(frame, "shop", counts)
    fit(frame, "shop", counts, count_sd=1.0)  # noise that was added explains them


def test_paths_and_cells_with_lists_are_rejected() -> None:
    frame, y = shops()
    counts = y.groupby(frame["shop"]).sum()
    with pytest.raises(UsageError, match=r"got the path 'shops\.csv'; read it first"):
        fit("shops.csv", "shop", counts)
    with pytest.raises(UsageError, match=r"column 'tags' must have one value in each cell, got a list: \[1, 2\]"):
        fit(frame.assign(tags=[[1, 2]] * len(frame)), "shop", counts)


def test_duplicate_columns_cannot_be_bags_or_counts() -> None:
    frame, y = shops()
    frame["sold"] = frame["shop"].map(y.groupby(frame["shop"]).sum())
    for name in ("shop", "sold"):
        twice = pd.concat([frame, frame[[name]]], axis=1)
        with pytest.raises(UsageError, match=f"several columns named '{name}'"):
            fit(twice, "shop", "sold")


# -- subgroups ---------------------------------------------------------------------------------------------------------


def test_subgroups_may_be_tuples() -> None:
    frame, y = shops()
    model = fit(frame, "shop", y.groupby(frame["shop"]).sum())
    pairs = list(zip(frame["job"], frame["age"] > 50, strict=True))
    totals = model.subgroup_totals(by=pairs, halvings=0)
    assert totals.index.tolist() == sorted(set(pairs))
    assert totals["total"].sum() == pytest.approx(y.sum(), abs=1e-3)
    several = fit(frame, "shop", pd.crosstab(frame["shop"], y + (frame["job"] == "nurse")))
    assert several.subgroup_totals(by=pairs, halvings=0).loc[[(("clerk", True), 0)]]["rows"].tolist() == [
        pairs.count(("clerk", True))
    ]
    for wrong in (3, frame[["job", "shop"]]):
        with pytest.raises(UsageError, match="by must be the name of one column"):
            model.subgroup_totals(by=wrong)


def test_subgroup_totals_accept_counts_of_one_class() -> None:
    frame, y = shops()
    model = fit(frame, "shop", y.groupby(frame["shop"]).sum())
    shop = frame[frame["shop"] == 3]
    for count in (0, len(shop)):  # a day on which nobody bought, or everybody
        totals = model.subgroup_totals(shop, by="job", bag_of="shop", counts={3: count}, halvings=0)
        assert totals["total"].tolist() == pytest.approx((totals["rows"] * (count > 0)).tolist())
    X, bags = frame[["age", "job"]], frame["shop"]
    classifier = llpbench.LLPClassifier("mean-ridge").fit(X, y.groupby(bags).sum(), bag_of=bags)
    rows = bags == 3
    few = [classifier.score(X[rows], {3: count}, bag_of=bags[rows]) for count in (0, int(y[rows].sum()))]
    assert few[0] < few[1] < 0


def test_subgroup_totals_skip_bags_with_unknown_counts() -> None:
    frame, y = shops()
    sold = y.groupby(frame["shop"]).sum().astype(float)
    sold[[2, 7]] = np.nan
    with pytest.warns(llpbench.LLPWarning, match="are unknown"):
        model = fit(frame, "shop", sold)
    known = ~frame["shop"].isin([2, 7])
    wanted = frame["job"][known].value_counts()[["clerk", "nurse"]].tolist()
    mixed = frame["job"].sample(frac=1.0, random_state=0).to_numpy()
    for by in ("job", frame["job"], frame["job"].tolist(), frame["job"].to_numpy(), frame["job"][known], mixed):
        with pytest.warns(llpbench.LLPWarning, match="40 of 400 rows are in bags with unknown counts"):
            totals = model.subgroup_totals(by=by, halvings=0)
        assert totals["total"].sum() == pytest.approx(sold.sum(), abs=1e-3)
        if by is not mixed:
            assert totals["rows"].tolist() == wanted


def test_bounds_allow_for_rounded_proportions() -> None:
    frame, y = shops(460, 20)  # 23 rows in a bag: hardly any share has two digits only
    shares = y.groupby(frame["shop"]).mean().round(2)
    model = fit(frame, "shop", proportions=shares)
    for by in ("shop", "job"):
        totals, truth = model.subgroup_totals(by=by, halvings=0), y.groupby(frame[by]).sum()
        assert ((totals["least"] <= truth) & (truth <= totals["most"])).all()
        assert (totals[["least", "most"]] % 1 == 0).all(axis=None)
    exact = fit(frame, "shop", proportions=y.groupby(frame["shop"]).mean()).subgroup_totals(by="shop", halvings=0)
    assert exact["least"].tolist() == exact["most"].tolist() == y.groupby(frame["shop"]).sum().tolist()


def test_count_sd_of_proportions_is_in_rows() -> None:
    frame, y = shops()
    shares = y.groupby(frame["shop"]).mean() - 0.3
    with pytest.raises(UsageError, match=r"standard deviation \(in rows, not as a share\) as count_sd"):
        fit(frame, "shop", proportions=shares)


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def test_classifier_drops_count_columns_from_features() -> None:
    frame, y = shops()
    sold = y.groupby(frame["shop"]).sum()
    counted = frame.assign(sold=frame["shop"].map(sold))
    classifier = llpbench.LLPClassifier("mean-ridge").fit(counted, "sold", bag_of="shop")
    assert classifier.feature_names_in_.tolist() == ["age", "job"]
    plain = llpbench.LLPClassifier("mean-ridge").fit(frame, sold, bag_of="shop")
    for table in (counted, frame, frame[["age", "job"]]):
        assert np.array_equal(classifier.predict_proba(table), plain.predict_proba(frame))
    assert classifier.score(counted, "sold", bag_of="shop") == plain.score(frame, sold, bag_of="shop")
    with pytest.raises(ValueError, match=r"unknown column of the table: 'solt'\. Did you mean 'sold'"):
        llpbench.LLPClassifier("mean-ridge").fit(counted, "solt", bag_of="shop")


# -- columns -----------------------------------------------------------------------------------------------------------


def test_integer_column_names_are_matched_by_name() -> None:
    frame, y = shops()
    X = pd.DataFrame({2023: frame["age"], 2024: np.random.default_rng(1).normal(size=len(frame))})
    model = fit(X, frame["shop"], y.groupby(frame["shop"]).sum())
    wanted = model.predict_proba(X)
    assert np.array_equal(model.predict_proba(X[[2024, 2023]]), wanted)
    assert np.array_equal(model.predict_proba(X.assign(shop=frame["shop"])), wanted)
    assert np.array_equal(model.predict_proba(X.to_numpy()), wanted)
    with pytest.raises(UsageError, match="the table lacks the column '2024'"):
        model.predict_proba(X[[2023]].assign(other=1.0))
    plain = fit(X.set_axis([0, 1], axis=1), frame["shop"], y.groupby(frame["shop"]).sum())
    assert np.array_equal(plain.predict_proba(X), wanted)  # places are no names


def test_pyarrow_columns_equal_pandas_columns() -> None:
    pa = pytest.importorskip("pyarrow")
    frame, y = shops()
    sold = y.groupby(frame["shop"]).sum()
    price = [None if i % 5 == 0 else decimal.Decimal(i % 7) / 2 for i in range(len(frame))]
    stay = pd.Series(pd.to_timedelta(frame["age"].round(), "h"))
    plain = frame.assign(price=[np.nan if p is None else float(p) for p in price], stay=stay)
    arrow = frame.assign(
        price=pd.Series(price, dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        stay=stay.astype(pd.ArrowDtype(pa.duration("s"))),
    )
    assert np.array_equal(fit(arrow, "shop", sold).predict_proba(arrow), fit(plain, "shop", sold).predict_proba(plain))


def test_column_equal_to_the_counts_gives_a_warning() -> None:
    frame, y = shops()
    sold, share = y.groupby(frame["shop"]).sum(), y.groupby(frame["shop"]).mean()
    for values in (sold, share, 20 - sold):
        merged = frame.assign(known=frame["shop"].map(values))
        with pytest.warns(llpbench.LLPWarning, match="column 'known' contains the counts of the bags"):
            fit(merged, "shop", sold)
        found = llpbench.compare(merged, "shop", sold, methods="best-feature", folds=2, repeats=1, progress=False)
        assert "column 'known' contains the counts" in str(found)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*holds the counts")
        fit(frame.assign(size=20, mean=frame["shop"].map(sold) + 0.5), "shop", sold)
        fit(frame.assign(known=frame["shop"].map(sold)), "shop", "known")


def test_label_left_in_the_table_gives_a_warning() -> None:
    frame, y = shops()
    sold = y.groupby(frame["shop"]).sum()
    for values in (y, y.astype(int), np.where(y, "yes", "no"), 1 - y.astype(int)):
        with pytest.warns(llpbench.LLPWarning, match="column 'bought' looks like the label"):
            fit(frame.assign(bought=values), "shop", sold)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*looks like the label")
        fit(frame.assign(other=y.sample(frac=1, random_state=0).to_numpy()), "shop", sold)


def test_too_large_numbers_are_rejected_without_encoding() -> None:
    frame, y = shops()
    X = frame[["age"]].to_numpy() * 1e300
    with pytest.raises(UsageError, match="column '0' has numbers beyond 3e38"):
        fit(X, frame["shop"].to_numpy(), y.groupby(frame["shop"]).sum(), encoding="none")


def test_bounds_of_proportions_above_one_are_rejected() -> None:
    frame, y = shops()
    shares = y.groupby(frame["shop"]).mean().astype(str)
    with pytest.raises(UsageError, match="the proportion of bag 3 must be between 0 and 1, got 5"):
        fit(frame, "shop", proportions={**shares, 3: "<5"})
    with pytest.warns(llpbench.LLPWarning, match="known only within bounds"):
        fit(frame, "shop", proportions={**shares, 3: "<0.5", 4: ">0.1"})


# -- classes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "kept"),
    [
        ([0, "sold"], [0, "sold"]),
        ([1, "1"], [1, "1"]),
        ([np.nan, "sold"], ["nan", "sold"]),
        ([False, True], [False, True]),
    ],
)
def test_class_names_keep_their_type_when_saved(classes: list[Any], kept: list[Any], tmp_path: Path) -> None:
    frame, y = shops()
    model = fit(frame, "shop", y.groupby(frame["shop"]).sum(), classes=classes)
    again = llpbench.load(model.save(tmp_path / "shops.llpmodel"))
    for one in (model, again):
        assert one.classes_.tolist() == kept
        assert [type(name) for name in one.classes_.tolist()] == [type(name) for name in kept]
        assert set(one.predict(frame).tolist()) == set(kept)
