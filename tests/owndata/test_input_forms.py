"""Tables and counts in the forms in which people have them: all of them give the model of the plain form."""

from __future__ import annotations

import datetime as dt
import itertools
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import llpbench
from llpbench.contracts.errors import LLPBenchError, UsageError
from llpbench.data.encoding.dates import Dates, parts_of
from llpbench.owndata.reading import forms
from llpbench.owndata.reading.bag_counts import read_counts
from llpbench.owndata.reading.bag_ids import read_bag_ids
from llpbench.owndata.reading.bagged_table import read_bagged_table
from llpbench.owndata.reading.censored import fill_in, tighten, truncated_moments
from llpbench.owndata.reading.count_forms import read_value
from llpbench.owndata.reading.files import read_table
from llpbench.owndata.reading.frames import FrameEncoder, fit_encoder

pl = pytest.importorskip("polars")


def numbers(n: int = 300, bags: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, bags and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7)
    return X, rng.permutation(np.arange(n) % bags), (X[:, 0] + 0.3 * rng.normal(size=n) > 0.1).astype(int)


def probabilities(X: Any, *args: Any, **options: Any) -> np.ndarray:
    return llpbench.fit(X, *args, **{"method": "mean-ridge", **options}).predict_proba(X)


# -- tables ------------------------------------------------------------------------------------------------------------


def test_all_forms_of_numeric_tables_give_the_same_model() -> None:
    X, bag, y = numbers()
    counts = dict(enumerate(np.bincount(bag, y)))
    wanted = probabilities(X, bag, counts)
    named = pd.DataFrame(X, columns=["a", "b", "c"])
    tables = {
        "rows of values": X.tolist(),
        "pandas": named,
        "polars": pl.DataFrame(named.to_dict("list")),
        "lazy polars": pl.DataFrame(named.to_dict("list")).lazy(),
        "csr matrix": sparse.csr_matrix(X),
        "coo array": sparse.coo_array(X),
        "nullable": named.astype("Float64"),
    }
    for name, form in tables.items():
        assert np.array_equal(probabilities(form, bag, counts), wanted), name
    for ids in (pl.Series("bag", bag), pd.Series(bag), bag.tolist()):
        assert np.array_equal(probabilities(X, ids, counts), wanted)


def test_polars_table_equals_pandas_table(monkeypatch: pytest.MonkeyPatch) -> None:
    X, bag, y = numbers()
    rng = np.random.default_rng(1)
    days = [dt.date(2024, 1, 1) + dt.timedelta(int(d)) for d in rng.integers(0, 400, len(X))]
    columns: dict[str, list[Any]] = {
        "number": [None if i % 7 == 0 else float(v) for i, v in enumerate(X[:, 0])],
        "whole": [None if i % 5 == 0 else i % 11 for i in range(len(X))],
        "text": [None if i % 9 == 0 else "abc"[i % 3] for i in range(len(X))],
        "flag": [None if i % 8 == 0 else bool(i % 2) for i in range(len(X))],
        "day": [None if i % 6 == 0 else day for i, day in enumerate(days)],
        "time": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=int(h)) for h in rng.integers(0, 9000, len(X))],
        "length": [dt.timedelta(minutes=int(m)) for m in rng.integers(0, 900, len(X))],
    }
    frame = pl.DataFrame(columns).with_columns(pl.col("text").cast(pl.Categorical).alias("category"))
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    read = forms.as_frame(frame)
    monkeypatch.undo()
    plain = pd.DataFrame(columns).assign(category=columns["text"])
    counts = dict(enumerate(np.bincount(bag, y)))
    encoders = [fit_encoder(table, np.arange(200)) for table in (read, plain)]
    assert encoders[0] == encoders[1]
    assert np.array_equal(encoders[0].transform(frame), encoders[1].transform(plain))
    assert np.array_equal(probabilities(frame, bag, counts), probabilities(plain, bag, counts))
    by_name = frame.with_columns(pl.Series("bag", bag), pl.Series("n", np.bincount(bag, y)[bag]))
    assert np.array_equal(probabilities(by_name, "bag", "n"), probabilities(plain, bag, counts))


def test_other_dataframes_are_converted_with_to_pandas() -> None:
    class Other:
        def to_pandas(self) -> pd.DataFrame:
            return pd.DataFrame({"a": [1.0, 2.0]})

    assert forms.as_frame(Other()).equals(pd.DataFrame({"a": [1.0, 2.0]}))


def test_too_large_sparse_matrix_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    X, bag, y = numbers()
    monkeypatch.setattr(forms, "MOST_DENSE_BYTES", X.nbytes - 1)
    with pytest.raises(UsageError, match=r"sparse matrix of 300 x 3.*GiB.*TruncatedSVD"):
        probabilities(sparse.csr_matrix(X), bag, dict(enumerate(np.bincount(bag, y))))
    huge = sparse.csr_matrix((10**7, 10**6), dtype=np.float32)
    with pytest.raises(UsageError, match="10,000,000 x 1,000,000"):
        forms.as_frame(huge)


# -- dates -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.none() | st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)), min_size=1, max_size=20))
@quick
def test_date_features_match_the_calendar(times: list[dt.datetime | None]) -> None:
    values = np.array(times, dtype="datetime64[s]")
    found = parts_of(Dates("when", values))
    for i, time in enumerate(times):
        if time is None:
            assert all(np.isnan(part[i]) for part in found.values())
            continue
        second = time.replace(microsecond=0)
        assert found["year"][i] == second.year
        assert found["month"][i] == second.month
        assert found["day of year"][i] == second.timetuple().tm_yday
        assert found["day of week"][i] == second.weekday()
        assert found["hour"][i] == pytest.approx(second.hour + second.minute / 60 + second.second / 3600)


def test_date_features_that_vary_in_training_rows_are_kept() -> None:
    when = pd.to_datetime(["2024-03-01", "2024-03-02", None, "2025-03-02"])
    encoder = fit_encoder(pd.DataFrame({"when": when}), np.arange(3))
    assert [c.name for c in encoder.described()] == ["when: day of year", "when: day of week", "when is missing"]
    X = encoder.transform(pd.DataFrame({"when": when}))
    assert X[:3].tolist() == [[-1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    again = msgspec.json.decode(msgspec.json.encode(encoder), type=FrameEncoder)
    assert again == encoder
    same = fit_encoder(pd.DataFrame({"when": when[:1]}), np.arange(1))
    assert [c.name for c in same.described()] == ["when: year"]
    assert same.transform(pd.DataFrame({"when": [None]})).tolist() == [[0.0]]
    zoned = pd.DataFrame({"when": pd.to_datetime(["2024-03-01 23:30"]).tz_localize("America/New_York")})
    local = zoned.assign(when=pd.to_datetime(["2024-03-01 23:30"]))
    fitted = fit_encoder(pd.DataFrame({"when": pd.date_range("2024", periods=99, freq="5h")}), np.arange(99))
    assert np.array_equal(fitted.transform(zoned), fitted.transform(local))
    in_polars = pl.DataFrame({"when": [dt.datetime(2024, 3, 1, 23, 30)]})
    in_polars = in_polars.with_columns(pl.col("when").dt.replace_time_zone("America/New_York"))
    assert np.array_equal(fitted.transform(in_polars), fitted.transform(local))
    with pytest.raises(UsageError, match="expected dates"):
        fitted.transform(pd.DataFrame({"when": ["2024-03-01"]}))
    texts = fit_encoder(pd.DataFrame({"when": ["a", "b"]}), np.arange(2))
    with pytest.raises(UsageError, match="expected texts or categories"):
        texts.transform(local)


def test_model_with_dates_is_saved_and_loaded(tmp_path: Path) -> None:
    X, bag, y = numbers()
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(X)) * 5, unit="h")
    table = pd.DataFrame(X).set_axis(["a", "b", "c"], axis=1).assign(when=when)
    model = llpbench.fit(table, bag, dict(enumerate(np.bincount(bag, y))), method="mean-ridge")
    again = llpbench.load(model.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.n_features_in_ == 4


# -- counts ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_all_forms_of_counts_give_the_same_model() -> None:
    X, bag, y = numbers()
    ids = np.array([f"bag {b:02d}" for b in bag])
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(shop=ids)
    yes = pd.Series(y).groupby(ids).sum()
    sizes = pd.Series(ids).value_counts().sort_index()
    wide = pd.DataFrame({"no": sizes - yes, "yes": yes})
    long = wide.rename_axis("shop").reset_index().melt("shop", var_name="class", value_name="n")
    classes = {"classes": ["no", "yes"]}
    wanted = probabilities(table, "shop", dict(yes), **classes)
    several: dict[str, tuple[Any, dict[str, Any]]] = {
        "wide by index": (wide, {}),
        "wide by column": (wide.rename_axis("shop").reset_index(), {}),
        "wide in another order": (wide[["yes", "no"]], classes),
        "wide in polars": (pl.DataFrame(wide.rename_axis("shop").reset_index().to_dict("list")), {}),
        "one column by bag": (yes.rename("n").rename_axis("bag").reset_index(), classes),
        "long": (long.sample(frac=1, random_state=0), {}),
        "long without zeros": (long[long["n"] > 0], {}),
        "long in polars": (pl.DataFrame(long.to_dict("list")), {}),
        "series by bag and class": (long.set_index(["shop", "class"])["n"], {}),
        "grouped": (pd.Series(np.array(["no", "yes"])[y]).groupby([ids, np.array(["no", "yes"])[y]]).size(), {}),
        "text": (yes.astype(str), classes),
        "array of text": (yes.astype(str).to_numpy(), classes),
        "list of text": (yes.astype(str).tolist(), classes),
        "pair of classes": ({b: [sizes[b] - yes[b], yes[b]] for b in yes.index}, classes),
        "bounds that meet": (yes.map("{0}-{0}".format), classes),
        "one class within what the other leaves": (wide.astype(object).assign(no=">=0"), {}),
        "one class unknown": (wide.astype(float).assign(no=np.nan), {}),
    }
    for name, (counts, options) in several.items():
        found = probabilities(table, "shop", counts, **options)
        assert np.array_equal(found, wanted), name
    shares = wide.div(sizes, axis=0)
    found = probabilities(table, "shop", proportions=shares.rename_axis("shop").reset_index())
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_long_counts_are_ordered_by_classes() -> None:
    ids = read_bag_ids(["x", "x", "y", "y", "y"], 5)
    long = pd.DataFrame({"bag": ["y", "x", "y", "x"], "label": [2, 10, 10, 1], "n": [2, 1, 1, 1]})
    found = read_counts(long, ids, proportions=False, count_sd=0.0, classes=None)
    assert found.classes == [1, 2, 10]
    assert found.counts.tolist() == [[1, 0, 1], [0, 2, 1]]
    found = read_counts(long, ids, proportions=False, count_sd=0.0, classes=[10, 2, 1, 7])
    assert found.counts.tolist() == [[1, 0, 1, 0], [1, 2, 0, 0]]


@pytest.mark.parametrize(
    ("value", "counts", "proportions"),
    [
        (3, (3, 3), (3, 3)),
        ("<5", (0, 4), (0, 5)),
        ("< 4.5", (0, 4), (0, 4.5)),
        ("<=5", (0, 5), (0, 5)),
        ("≤5", (0, 5), (0, 5)),
        (">5", (6, np.inf), (5, np.inf)),
        ("≥ 5", (5, np.inf), (5, np.inf)),
        ("20+", (20, np.inf), (20, np.inf)),
        ("5-10", (5, 10), (5, 10)),
        ("5 – 10", (5, 10), (5, 10)),
        ("0.1..0.2", (0.1, 0.2), (0.1, 0.2)),
        ("1,234", (1234, 1234), (1234, 1234)),
        (" 7 ", (7, 7), (7, 7)),
        ((2, 6), (2, 6), (2, 6)),
        ((None, 6), (0, 6), (0, 6)),
        (pd.Interval(2, 6, closed="left"), (2, 5), (2, 6)),
        (pd.Interval(2, 6, closed="right"), (3, 6), (2, 6)),
        (None, None, None),
        (np.nan, None, None),
        (pd.NA, None, None),
        ("", None, None),
        ("n/a", None, None),
    ],
)
def test_values_are_read_as_bounds(value: Any, counts: Any, proportions: Any) -> None:
    assert read_value(value, "counts") == counts
    assert read_value(value, "proportions") == proportions


def test_pairs_in_a_mapping_are_bounds_or_two_classes() -> None:
    ids = read_bag_ids(["a"] * 10 + ["b"] * 10, 20)

    def counts(given: Any) -> Any:
        return read_counts(given, ids, proportions=False, count_sd=0.0, classes=None)

    assert counts({"a": (4, 6), "b": (9, 1)}).counts.tolist() == [[6], [1]]
    bounded = counts({"a": (4, 6), "b": 1})
    assert 4 < bounded.counts[0, 0] < 6
    assert bounded.bounded.tolist() == [True, False]
    assert counts({"a": [(0, 3), 8], "b": [9, 1]}).counts.tolist() == [[8], [1]]


# -- counts that are not known, or within bounds -----------------------------------------------------------------------


def test_bags_with_unknown_counts_are_left_out() -> None:
    X, bag, y = numbers()
    counts = pd.Series(np.bincount(bag, y))
    known = bag != 7
    wanted = llpbench.fit(X[known], bag[known], counts.drop(7), method="mean-ridge").predict_proba(X)
    for given_ in (
        counts.where(counts.index != 7),
        {**counts, 7: None},
        counts.astype(str).where(counts.index != 7, ""),
    ):
        with pytest.warns(llpbench.LLPWarning, match=r"counts of 1 of 30 bags are unknown: their 10 rows"):
            model = llpbench.fit(X, bag, given_, method="mean-ridge")
        assert np.array_equal(model.predict_proba(X), wanted)


def test_subgroup_totals_need_all_counts_or_none() -> None:
    X, bag, y = numbers()
    counts = pd.Series(np.bincount(bag, y))
    model = llpbench.fit(X, bag, counts, method="mean-ridge")
    group = np.arange(len(X)) % 2
    with pytest.raises(UsageError, match="counts of some bags are missing"):
        model.subgroup_totals(X, group, bag_of=bag, counts=counts.where(counts.index != 7))
    assert len(model.subgroup_totals(X, group, bag_of=bag, counts=counts)) == 2


def everything_within(low: list[int], high: list[int], total: int) -> np.ndarray:
    """All counts within bounds that add up to a total."""
    ranges = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
    return np.array([k for k in itertools.product(*ranges) if sum(k) == total])


bounds = st.integers(2, 4).flatmap(
    lambda c: st.tuples(
        st.lists(st.integers(0, 4), min_size=c, max_size=c), st.lists(st.integers(0, 5), min_size=c, max_size=c)
    )
)


@given(bounds, st.integers(0, 12))
@quick
def test_tighten_matches_enumeration(given_: tuple[list[int], list[int]], total: int) -> None:
    low, width = given_
    high = [min(a + w, total) for a, w in zip(low, width, strict=True)]
    found = everything_within(low, high, total)
    tight = tighten(np.array([low], float), np.array([high], float), np.array([float(total)]))
    if not len(found):
        return
    open_ = np.array(low) < np.array(high)
    assert np.array_equal(tight[0][0][open_], found.min(axis=0)[open_])
    assert np.array_equal(tight[1][0][open_], found.max(axis=0)[open_])


@given(bounds, st.lists(st.floats(0.05, 20), min_size=4, max_size=4), st.integers(0, 12))
@quick
def test_imputed_counts_match_enumeration(given_: tuple[list[int], list[int]], alpha: list[float], total: int) -> None:
    low, width = given_
    high = [a + w for a, w in zip(low, width, strict=True)]
    found = everything_within(low, high, total)
    if not len(found):
        return
    a = np.array(alpha[: len(low)])
    p = np.array([stats.dirichlet_multinomial(a, total).pmf(k) for k in found])
    mean = p @ found / p.sum()
    variance = p @ (found - mean) ** 2 / p.sum()
    got = truncated_moments(np.array(low, float), np.array(high, float), float(total), a)
    np.testing.assert_allclose(got[0], mean, atol=1e-7)
    np.testing.assert_allclose(got[1], variance, atol=1e-7)


@pytest.mark.parametrize("effect", [0.0, 0.8])
def test_imputation_preserves_the_overall_share(effect: float) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(15, 40, 2000)
    counts = rng.binomial(sizes, 1 / (1 + np.exp(1.5 - effect * rng.normal(size=2000))))
    low = np.where(counts < 5, 0, counts)
    high = np.where(counts < 5, 4, counts)
    both = np.column_stack([sizes - high, low]), np.column_stack([sizes - low, high])
    counts_in, sd_in = fill_in(both[0].astype(float), both[1].astype(float), sizes)
    np.testing.assert_allclose(counts_in.sum(axis=1), sizes)
    assert (counts_in[:, 1] >= low).all()
    assert (counts_in[:, 1] <= high).all()
    assert counts_in[:, 1].sum() == pytest.approx(counts.sum(), rel=0.02)
    left = counts >= 5
    assert counts[left].sum() / sizes[left].sum() > 1.2 * counts.sum() / sizes.sum()
    hidden = counts < 5
    sd = np.sqrt(np.mean((counts_in[:, 1] - counts)[hidden] ** 2))
    assert sd == pytest.approx(np.sqrt(np.mean(sd_in[hidden, 1] ** 2)), rel=0.1)


def test_bounds_raise_count_sd_with_a_warning() -> None:
    X, bag, y = numbers()
    counts = pd.Series(np.bincount(bag, y))
    given_ = counts.astype(str).where(counts >= 4, "<4")
    table = read_bagged_table(X, bag, given_, None, count_sd=0.3)
    assert 0.3 < table.count_sd < 1.5
    (note,) = table.notes
    assert re.search(rf"counts of {(counts < 4).sum()} of 30 bags are known only within bounds", note)
    exact = counts >= 4
    assert table.counts[exact, 0].tolist() == counts[exact].tolist()
    assert (table.counts[~exact, 0] < 4).all()
    with pytest.warns(llpbench.LLPWarning, match="known only within bounds"):
        p = probabilities(X, bag, given_)
    assert np.corrcoef(p[:, 1], probabilities(X, bag, dict(counts))[:, 1])[0, 1] > 0.95


def test_uninformative_bounds_count_as_unknown() -> None:
    ids = read_bag_ids(["a"] * 10 + ["b"] * 10 + ["c"] * 10, 30)
    for nothing in (">=0", "<=10", "0-12", None):
        found = read_counts(["3", nothing, "<9"], ids, proportions=False, count_sd=0.0, classes=None)
        assert found.known.tolist() == [True, False, True]
        assert found.bounded.tolist() == [False, False, True]
        assert np.isnan(found.counts[1, 0])
    alone = read_counts(
        [3.0, "<9"], read_bag_ids([0] * 10 + [1] * 10, 20), proportions=False, count_sd=0.0, classes=None
    )
    assert found.sd == alone.sd


# -- refusals ----------------------------------------------------------------------------------------------------------

X, BAG, Y = numbers(60, 6)
COUNTS = pd.Series(np.bincount(BAG, Y))
LONG = pd.DataFrame({"bag": [0, 0, 1], "class": ["u", "v", "u"], "n": [4, 6, 10]})
WIDE = pd.DataFrame({"bag": range(6), "u": 10 - COUNTS, "v": COUNTS})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": "sold"}, "unknown column of the table: 'sold'"),
        ({"counts": COUNTS.drop(3)}, "no value for bag 3. Use NaN for an unknown count"),
        ({"counts": pd.concat([COUNTS, pd.Series([1], index=[9])])}, "no rows for bag 9"),
        ({"counts": COUNTS.replace(COUNTS[2], 11)}, "between 0 and its 10 rows, got 11"),
        ({"counts": None, "proportions": COUNTS / 5}, "between 0 and 1, got"),
        ({"counts": COUNTS.astype(str).replace(str(COUNTS[2]), "few")}, "counts must be numbers, got 'few'"),
        ({"counts": COUNTS.astype(str).replace(str(COUNTS[2]), ">10")}, "between 0 and its 10 rows, got 11"),
        ({"counts": COUNTS.astype(str).replace(str(COUNTS[2]), "5-3")}, "empty interval '5-3'"),
        ({"counts": pd.concat([LONG, LONG[:1]])}, "several lines for bag 0 and class 'u'"),
        ({"counts": LONG}, "no value for bag 2, 3, 4"),
        ({"counts": LONG, "classes": ["u", "w"]}, "contains the class 'v', which is not one of classes ('u', 'w')"),
        ({"counts": LONG[LONG["class"] == "u"]}, "lines for only one class ('u')"),
        ({"counts": pd.concat([WIDE, WIDE[:1]])}, "several lines for bag 0. A wide table has one line per bag"),
        ({"counts": WIDE, "classes": ["u", "w"]}, "has the columns ['u', 'v'], but classes is ['u', 'w']"),
        ({"counts": WIDE.assign(u=9)}, "add up to"),
        ({"counts": WIDE.assign(u="<2", v="<2")}, "within the bounds of bag 0 add up to its 10 rows"),
        ({"counts": WIDE.drop(columns=["u", "v"])}, "has no column"),
        ({"counts": {b: [1, 2] if b else [1, 2, 7] for b in range(6)}}, "equally many numbers for every bag"),
        ({"counts": [object()] * 6}, "must be numbers"),
        ({"X": X[:, 0]}, "rows and columns"),
        ({"X": pd.Series(X[:, 0])}, "got one column of 60 values"),
        ({"X": X.astype(complex)}, "Complex data not supported"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_forms_are_rejected(change: dict[str, Any], message: str) -> None:
    request = {"X": X, "bag_of": BAG, "counts": COUNTS, "method": "mean-ridge", **change}
    with pytest.raises(LLPBenchError, match=re.escape(message)):
        llpbench.fit(**request)


# -- files -------------------------------------------------------------------------------------------------------------


def test_read_table_supports_csv_tsv_and_parquet(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1.5, 2.0], "b": ["x", None], "n": ["<5", "7"], "day": ["2024-01-31", None]})
    wanted = table.assign(day=pd.to_datetime(table["day"]))
    for name, separator in (("t.csv", ","), ("t.tsv", "\t"), ("semicolon.csv", ";"), ("t.csv.gz", ",")):
        table.to_csv(tmp_path / name, sep=separator, index=False)
        read = read_table(tmp_path / name)
        pd.testing.assert_frame_equal(read, wanted, check_dtype=False)
        assert read["day"].dtype.kind == "M"
    with pytest.raises(UsageError, match=r"unknown file type of .*t\.xlsx: '\.xlsx'"):
        read_table(tmp_path / "t.xlsx")
    with pytest.raises(UsageError, match="cannot be read as a table"):
        read_table(tmp_path / "absent.csv")
    (tmp_path / "empty.csv").write_text("a,b\n")
    with pytest.raises(UsageError, match="has no rows"):
        read_table(tmp_path / "empty.csv")


@pytest.mark.parametrize("correlation", [0.02, 0.2])
def test_suppressed_counts_of_two_classes_keep_the_overall_share(correlation: float) -> None:
    """Counts below 5 of bags of many sizes: the likelihood of their intervals knows the share within a point or so."""
    rng = np.random.default_rng(0)
    sizes = rng.geometric(1 / 14, 600) + 4.0
    strength = 1 / correlation - 1
    counts = rng.binomial(sizes.astype(int), rng.beta(0.24 * strength, 0.76 * strength, 600)).astype(float)
    low, high = np.where(counts < 5, 0.0, counts), np.where(counts < 5, 4.0, counts)
    filled, _ = fill_in(np.column_stack([sizes - high, low]), np.column_stack([sizes - low, high]), sizes)
    assert filled[:, 1].sum() / sizes.sum() == pytest.approx(counts.sum() / sizes.sum(), abs=0.012)
    assert np.array_equal(filled[counts >= 5, 1], counts[counts >= 5])
