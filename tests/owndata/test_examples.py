"""The table that comes with the package, and what the pages say of it."""

from __future__ import annotations

import pandas as pd
import pytest

import llpbench
from llpbench import UnknownNameError


def test_fit_learns_penguins_from_counts() -> None:
    birds = llpbench.example_table("penguins")
    assert birds.shape == (344, 8)
    colony = birds["island"] + " " + birds["year"].astype(str)
    counts = pd.crosstab(colony, birds["species"])
    assert len(counts) == 9
    measured = birds.drop(columns=["species", "island", "year"])
    with pytest.warns(llpbench.LLPWarning, match="there are only 9 bags"):
        model = llpbench.fit(measured, colony, counts, method="mean-ridge")
    assert (model.predict(measured) == birds["species"]).mean() > 0.9
    totals = model.subgroup_totals(by="sex", halvings=0)["total"]
    assert totals.groupby("class").sum().round(2).tolist() == [152, 68, 124]


def test_unknown_example_table_is_rejected() -> None:
    with pytest.raises(UnknownNameError, match=r"'penguin'. Did you mean 'penguins'"):
        llpbench.example_table("penguin")
