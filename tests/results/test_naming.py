"""Display names of datasets with their bags."""

from __future__ import annotations

import pytest

from llpbench.results.naming import dataset_title


@pytest.mark.parametrize(
    ("label", "title"),
    [
        ("adult[encoding=ordinal]", "Adult (ordinal)"),
        ("synthetic[dim=6;rows=1500]", "Synthetic (dim 6, rows 1500)"),
        ("adult, group-by[columns=education+marital_status;most=9]", "Adult by education + marital status"),
        ("adult, margins", "Adult, all one-way tables"),
        ("adult, margins[columns=education]", "Adult, table by education"),
        ("adult, margins[columns=education,age:6]", "Adult, tables by education and age:6"),
        ("adult, margins[columns=a,b,c,d,e,f,g]", "Adult, seven one-way tables"),
        ("adult, margins[columns=a,b,c,d+e]", "Adult, four tables"),
        ("adult, random[times=3]", "Adult, three random groupings"),
        ("flights, own-bags&margins[columns=carrier,origin]", "Flights with own bags and tables by carrier and origin"),
        ("toy, random[times=x]", "toy, random[times=x]"),
    ],
)
def test_title_names_bags_in_words(label: str, title: str) -> None:
    assert dataset_title(label) == title
