"""The worth of bags in labelled rows: curves of a bound, read at a number of labels and backwards."""

from __future__ import annotations

import math
from itertools import pairwise, product

import msgspec
import numpy as np
import pytest
from helpers import make_cell, make_plan, make_result
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from llpbench.contracts.bag_card import BagCard
from llpbench.report.render import Wanted
from llpbench.report.tables import build_tables
from llpbench.results.metric_style import MetricStyle
from llpbench.results.table import Row
from llpbench.results.worth import LabelCurve, isotonic, label_curves
from llpbench.tools.worth import worth_tables

VALUES = st.lists(st.floats(0, 1).map(lambda v: round(v, 3)), min_size=1, max_size=6)


def row(method: str, mean: float, labels: int | None = None, **others: object) -> Row:
    bound = {"params": {"labels": labels, "method": "average"}, "oracle": True} if labels else {}
    facts = {"dataset": "toy", "bag_size": 8, "noise": "none", "rule": "bags", "metric": "auroc", "unit": "%"}
    counts = {"sd": None, "seeds": 1, "planned": 1, "status": "ok"}
    return msgspec.convert(
        {**facts, **counts, "method": method, "base_method": method, "mean": mean} | bound | others, Row
    )


@given(VALUES)
def test_isotonic_is_the_nearest_rising_sequence(values: list[float]) -> None:
    found = isotonic(np.array(values))
    assert np.all(np.diff(found) >= 0)
    # The nearest one is constant on blocks, each at the mean of its values: compare with all ways to cut.
    n = len(values)
    best = math.inf
    for cuts in product([False, True], repeat=n - 1):
        edges = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), n]
        means = [np.mean(values[a:b]) for a, b in pairwise(edges)]
        if np.all(np.diff(means) >= 0):
            fitted = np.repeat(means, np.diff(edges))
            best = min(best, float(np.sum((fitted - values) ** 2)))
    assert_allclose(np.sum((found - values) ** 2), best, atol=1e-12)


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=5), st.booleans(), st.floats(0, 1))
def test_worth_is_the_inverse_of_the_curve(steps: list[float], higher: bool, share: float) -> None:
    values = np.cumsum(steps) * (1 if higher else -1)
    curve = LabelCurve.of({4.0**k: v for k, v in enumerate(values)}, higher_is_better=higher)
    labels = math.exp(share * math.log(curve.labels[-1]))
    value = curve.at(labels)
    assert value is not None
    assert_allclose(curve.worth(value), labels, rtol=1e-6)


def test_worth_outside_the_curve_says_so() -> None:
    curve = LabelCurve.of({8: 70.0, 1024: 90.0})
    assert [curve.worth_words(v) for v in (69.0, 80.0, 91.0)] == ["< 8", "91", "> 1,024"]
    assert curve.at(7) is None
    assert curve.at(1025) is None


@pytest.mark.parametrize(("higher", "wanted"), [(True, (60.0, 72.5, 72.5)), (False, (200 / 3, 200 / 3, 200 / 3))])
def test_curve_is_never_worse_for_more_labels(higher: bool, wanted: tuple[float, ...]) -> None:
    rows = [row("few-labels", v, m) for m, v in ((2, 60.0), (8, 75.0), (32, 70.0))]
    if not higher:
        rows[1] = row("few-labels", 70.0, 8)
    curves = label_curves([*rows, row("supervised", 99.0, oracle=True)], higher_is_better=higher)
    assert list(curves) == ["few-labels"]
    assert_allclose(curves["few-labels"].values, wanted)


def test_bounds_with_other_options_have_their_own_curves() -> None:
    options = {"method": "mean-ridge", "labels": "8"}
    rows = [row("few-labels", 70.0, 8), row("few-labels", 60.0, 8, options=options)]
    assert set(label_curves(rows)) == {"few-labels", "few-labels[method=mean-ridge]"}


def test_table_reads_the_bound_at_the_number_of_bags() -> None:
    card = BagCard(bags=16, rows=128, left_out=0.0, sizes=(8.0,) * 5, proportion_sd=0.1, spread=1.0, separation=1.0)
    rows = [row("guess", 75.0, card=card), *(row("few-labels", v, m) for m, v in ((4, 70.0), (64, 80.0)))]
    (table,) = build_tables(rows, MetricStyle("auroc", words="AUROC"))
    assert table.bounds == ["few-labels, as many labels as bags 75.00"]
    bounds = [row(f"few-labels[labels={m}]", v, m) for m, v in ((4, 70.0), (64, 80.0))]
    (table,) = build_tables([row("guess", 75.0), *bounds], MetricStyle("auroc", words="AUROC"))
    assert table.bounds == ["few-labels[labels=4] 70.00", "few-labels[labels=64] 80.00"]


def test_table_of_worth_reads_every_method_backwards() -> None:
    bound = [make_cell(method="few-labels", bag_size=1, params={"labels": m}) for m in (4, 64)]
    guess = make_cell()
    plans = [make_plan(cell, method_name=f"few-labels[labels={cell.params['labels']}]", oracle=True) for cell in bound]
    card = BagCard(bags=16, rows=128, left_out=0.0, sizes=(8.0,) * 5, proportion_sd=0.1, spread=1.0, separation=1.0)
    results = [make_result(cell, value, oracle=True) for cell, value in zip(bound, (0.7, 0.8), strict=True)]
    wanted = Wanted(MetricStyle("auroc", words="AUROC"), ["bags"])
    (table,) = worth_tables(None, [*plans, make_plan(guess)], [*results, make_result(guess, 0.75, card=card)], wanted)
    assert table.columns == {8: "bag 8 (16 bags)"}
    assert [entry.text for entry in table.row("guess")] == ["16"]
    assert table.what == "labelled rows with which few-labels has the same AUROC"
