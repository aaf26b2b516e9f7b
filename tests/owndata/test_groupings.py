"""Several tables of counts about the rows of one table: reading them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench.contracts.errors import UsageError
from llpbench.owndata.reading.groupings import Grouping, describe_totals, describe_uncovered, read_groupings


def people(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """A table of rows, and their labels."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "job": rng.choice(["clerk", "farmer", "nurse"], n),
            "age": rng.integers(20, 60, n),
            "sex": rng.choice([0, 1], n),
        }
    )
    table["band"] = pd.cut(table["age"], [0, 30, 40, 60])
    return table, pd.Series(rng.random(n) < 0.2 + 0.3 * table["sex"], name="y").astype(int)


def assert_true_counts(found: Grouping, table: pd.DataFrame, columns: list[str], y: pd.Series) -> None:
    """The groups are those of pandas, and so are their counts."""
    wanted = y.groupby([table[c] for c in columns], observed=True).agg(["sum", "size"])
    assert set(found.keys) == set(wanted.index.tolist())
    for number, key in enumerate(found.keys):
        own = found.numbers == number
        assert own.sum() == found.sizes[number] == wanted["size"][key]
        assert found.counts.counts[number, 0] == y[own].sum() == wanted["sum"][key]


@quick
@given(st.integers(0, 10_000), st.lists(st.sampled_from(["job", "sex", "band"]), min_size=1, max_size=3, unique=True))
def test_every_form_of_a_table_has_the_groups_and_counts_of_pandas(seed: int, columns: list[str]) -> None:
    table, y = people(60, seed)
    counts = y.groupby([table[c] for c in columns], observed=True).sum()
    counts = counts.sample(frac=1.0, random_state=seed)  # the order of lines does not matter
    sizes = table.groupby(columns, observed=True).size().reindex(counts.index)
    classes = pd.DataFrame({"no": sizes - counts, "yes": counts})
    long = classes.rename_axis("class", axis=1).stack().rename("n")
    forms = [
        counts,
        classes,
        long,
        counts.rename("n").reset_index(),
        long.reset_index(),
        (columns, dict(counts.items())),
        (columns, counts),
        (pd.MultiIndex.from_frame(table[columns]) if len(columns) > 1 else table[columns[0]], dict(counts.items())),
    ]
    for found in read_groupings(table, forms, classes=["no", "yes"], to_learn=False):
        assert_true_counts(found, table, columns, y)


def test_rows_without_a_line_or_an_id_are_in_no_group() -> None:
    table, y = people()
    table.loc[:9, "job"] = None
    by_job = y.groupby(table["job"]).sum().drop("nurse")
    by_sex = y.groupby(table["sex"]).sum()
    first, second = read_groupings(table, [by_job, by_sex])
    assert (first.numbers[table["job"].isna() | (table["job"] == "nurse")] == -1).all()
    assert describe_uncovered([second]) == ""
    assert f"{(first.numbers < 0).sum()} in none by job." in describe_uncovered([first, second])
    assert "no group of any table are not used" in describe_uncovered([first])


def test_missing_and_censored_counts_and_noise_are_read_for_each_table() -> None:
    table, y = people()
    by_job = y.groupby(table["job"]).sum().astype(object)
    by_job["clerk"], by_job["nurse"] = None, "<50"
    first, second = read_groupings(
        table, [by_job, y.groupby(table["sex"]).sum()], count_sd=[{"clerk": 0, "farmer": 2.0, "nurse": 0}, 3.0]
    )
    place = first.keys.index("nurse")
    assert first.counts.within.high[place, 1] == 49
    assert not first.counts.known[first.keys.index("clerk")]
    assert first.counts.within.sd.tolist() == [0.0, 2.0, 0.0]
    assert second.counts.within.sd.tolist() == [3.0, 3.0]


def test_empty_groups_are_ignored_if_their_count_may_be_0() -> None:
    table, y = people()
    by_job = y.groupby(table["job"]).sum()
    for nothing in (0, None, "<5"):
        found = read_groupings(
            table, [pd.concat([by_job.astype(object), pd.Series({"pilot": nothing})]).rename_axis("job")]
        )
        assert "pilot" not in found[0].keys
    noisy = pd.concat([by_job, pd.Series({"pilot": 3})]).rename_axis("job")
    assert len(read_groupings(table, [noisy], count_sd=5.0)[0].keys) == 3


def test_one_table_names_the_classes_of_all() -> None:
    table, y = people()
    named = pd.crosstab(table["job"], y.map({0: "no", 1: "yes"}))[["yes", "no"]]
    found = read_groupings(table, [y.groupby(table["sex"]).sum(), named])
    assert [grouping.counts.classes for grouping in found] == [["yes", "no"]] * 2


JOB = pd.Series({"clerk": 1, "farmer": 2}).rename_axis("job")


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ([], {}, "counts is an empty list"),
        ("job", {}, "without bag_of, counts must be a list of tables"),
        ([JOB, 3], {}, "table 2 of counts must be a Series or DataFrame.*got int"),
        ([JOB.rename_axis(None)], {}, "table 1 of counts has an index without names"),
        ([JOB.rename_axis("jobs")], {}, "column in the index of table 1 of counts: 'jobs'. Did you mean 'job'"),
        ([JOB, ("jobs", {"clerk": 1})], {}, "column in table 2 of counts: 'jobs'"),
        ([pd.concat([JOB, JOB]).rename_axis("job")], {}, "by job.*several lines for 'clerk'"),
        ([pd.Series({"pilot": 2}).rename_axis("job")], {}, "counts by job: no rows of the table are in bag 'pilot'"),
        (
            [pd.Series({"clerk": 1, "pilot": 2}).rename_axis("job")],
            {},
            "counts by job: no rows.*'pilot'. The table of rows has",
        ),
        ([pd.Series({"clerk": 1, "farmer": 4000}).rename_axis("job")], {}, "counts by job: the count of bag 'farmer'"),
        ([pd.Series({"clerk": None}).rename_axis("job")], {}, "counts by job: counts is unknown for every bag"),
        ([JOB], {"count_sd": [1.0, 2.0]}, "count_sd has 2 entries for 1 tables"),
        ([JOB, JOB], {"count_sd": {"clerk": 1.0}}, "count_sd must be one number for all 2 tables, or a list"),
        ([JOB], {"count_sd": [{"clerk": 1.0}]}, "counts by job: count_sd does not match the bags"),
        (
            [(["job", "sex"], {("clerk", 0): (1, 2, 3)})],
            {"classes": ["x", "y"]},
            r"counts by job\+sex: counts has 3 classes",
        ),
    ],
)
def test_errors_name_the_table(counts: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_groupings(people()[0], counts, **options)


def test_totals_that_differ_by_more_than_rounding_and_noise_are_described() -> None:
    table, y = people(4000)
    sexes, bands = y.groupby(table["sex"]).sum(), y.groupby([table["job"], table["band"]], observed=True).sum()
    rounded = (bands / 10).round() * 10
    shares = y.groupby([table["job"], table["band"]], observed=True).mean().round(2)
    more = bands.copy()
    more.iloc[0] += 40
    assert describe_totals(read_groupings(table, [sexes, bands])) == ""
    assert describe_totals(read_groupings(table, [sexes, rounded])) == ""
    assert describe_totals(read_groupings(table, [y.groupby(table["sex"]).mean(), shares], proportions=True)) == ""
    assert describe_totals(read_groupings(table, [sexes, more], count_sd=[0.0, 5.0])) == ""
    assert describe_totals(read_groupings(table, [sexes, more.iloc[1:]])) == ""  # the others may be of any class
    found = describe_totals(read_groupings(table, [sexes, more]))
    assert f"at least {y.sum() + 40:,} by job+band, at most {y.sum():,} by sex" in found
