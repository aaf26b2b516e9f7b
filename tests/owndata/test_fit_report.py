"""``fit`` knows when it has learned nothing: warnings, shrunk probabilities, the report of a model."""

from __future__ import annotations

import os
import re
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import t

import llpbench
from llpbench import LLPWarning, UsageError
from llpbench.contracts.data import FloatArray
from llpbench.experiment.metrics import auroc
from llpbench.owndata.judging.assessment import _widen, interval_of_mean
from llpbench.owndata.judging.facts import find_warnings
from llpbench.owndata.model_file import Header, write_model


def table(bags: int = 60, size: int = 20, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    n = bags * size
    frame = pd.DataFrame({"age": rng.normal(size=n), "job": rng.choice(["a", "b"], n), "noise": rng.normal(size=n)})
    y = rng.random(n) < expit(2.0 * frame["age"] + 1.5 * (frame["job"] == "a") - 0.7)
    return frame.assign(bag=np.arange(n) % bags), y.to_numpy().astype(int)


def fit(frame: pd.DataFrame, y: np.ndarray, **options: Any) -> tuple[llpbench.LLPModel, list[str]]:
    """Fit on the counts of the column ``bag``; the model and what was warned of."""
    counts = pd.Series(y).groupby(frame["bag"].to_numpy()).sum()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LLPWarning)
        model = llpbench.fit(frame, "bag", counts, **{"method": "mean-ridge", **options})
    assert all(issubclass(warning.category, LLPWarning) for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)  # they point at the line that called fit
    return model, [str(warning.message) for warning in caught]


def log_loss(y: np.ndarray, p: FloatArray) -> float:
    return float(-np.log(np.where(y == 1, p, 1 - p)).mean())


# -- warnings ----------------------------------------------------------------------------------------------------------


def test_good_fit_has_no_warnings_and_no_shrinkage() -> None:
    frame, y = table(120, 20)
    model, told = fit(frame, y)
    assert told == []
    raw = model._predictor.probabilities(model._header.encoder.transform(frame))[:, 1]
    p = model.predict_proba(frame)[:, 1]
    assert np.abs(p - raw).mean() < 0.03
    assert auroc(y, p) == pytest.approx(auroc(y, raw))
    assert p.mean() == pytest.approx(y.mean(), abs=1e-6)
    facts = model._header.facts
    assert facts is not None
    assert facts.score.slope > 0.8
    assert "Better than a constant" in str(model.report())


@pytest.mark.parametrize("seed", range(3))
def test_useless_fit_warns_and_is_shrunk_to_a_constant(seed: int) -> None:
    """Days with luck of their own, and columns that have nothing to do with it."""
    rng = np.random.default_rng(seed)
    frame, _ = table(80, 25, seed=seed)
    frame = frame.assign(**{f"more {i}": rng.normal(size=len(frame)) for i in range(12)})
    luck = rng.normal(0, 2.0, 80)[frame["bag"]]
    y = (rng.random(len(frame)) < expit(luck - 1)).astype(int)
    model, told = fit(frame, y)
    assert any("not clearly better than a constant" in text for text in told)
    assert any("reasons that no column explains" in text for text in told)
    constant = log_loss(y, np.full(len(y), y.mean()))
    assert log_loss(y, model.predict_proba(frame)[:, 1]) < constant + 0.02
    report = str(model.report())
    assert "Not clearly better" in report
    assert all(text.removeprefix("mean-ridge: ")[:60] in " ".join(report.split()) for text in told)


def test_few_bags_give_a_warning() -> None:
    frame, y = table(6, 40)
    assert any("there are only 6 bags" in text for text in fit(frame, y)[1])
    assert not any("there are only" in text for text in fit(*table(12, 40))[1])


def test_interval_of_the_reduction_is_students_and_covers_splits() -> None:
    values = np.random.default_rng(0).normal(0.1, 0.05, 8)
    low, high = interval_of_mean(values, 0)
    one = SimpleNamespace(bags=8, saved=(low, high))
    found = _widen(low, high, [one])  # type: ignore[list-item]
    wanted = t.interval(0.9, 7, values.mean(), values.std(ddof=1) / np.sqrt(8))
    np.testing.assert_allclose(found, wanted, atol=0.1 * (wanted[1] - wanted[0]))
    other = SimpleNamespace(bags=8, saved=(low + 0.1, high + 0.1))
    wider = _widen(low + 0.05, high + 0.05, [one, other])  # type: ignore[list-item]
    assert wider[0] < low < high + 0.1 < wider[1]


def test_similar_bags_give_a_warning() -> None:
    frame, y = table(40, 20)
    same = frame.assign(bag=np.argsort(np.argsort(y, kind="stable"), kind="stable") % 40)  # dealt out by label
    assert any("proportions of the bags hardly differ" in text for text in fit(same, y)[1])
    rows = np.tile(np.random.default_rng(0).normal(size=(20, 2)), (40, 1))  # every bag has the same rows
    twins = pd.DataFrame(rows, columns=["a", "b"]).assign(bag=np.repeat(np.arange(40), 20))
    assert any("features of the bags hardly differ" in text for text in fit(twins, y)[1])


def test_warnings_follow_from_the_facts() -> None:
    model, told = fit(*table(6, 40))
    facts = model._header.facts
    assert facts is not None
    assert told == [f"mean-ridge: {text}" for text in find_warnings(facts.card, facts.score)]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([0] * 6, "contain only one class (0)"),
        ([20] * 6, "contain only one class (1)"),
        (np.array([[20, 0, 0]] * 6), "contain only one class (0)"),
    ],
)
def test_counts_of_one_class_are_rejected(counts: Any, message: str) -> None:
    frame, _ = table(6, 20)
    with pytest.raises(UsageError, match=re.escape(message)):
        llpbench.fit(frame, "bag", counts, method="mean-ridge")
    with pytest.raises(UsageError, match="halvings must be an integer >= 0"):
        llpbench.fit(frame, "bag", [10] * 6, method="mean-ridge", halvings=-1)


# -- the report --------------------------------------------------------------------------------------------------------


def test_report_contains_all_sections() -> None:
    frame, y = table(80, 25)
    model, _ = fit(frame, y)
    report = model.report()
    assert report is model.report()  # made once
    assert report.effects is not None
    assert [effect.column for effect in report.effects] == ["age", "job", "noise"]
    assert report.effects[0].loss > 5 * abs(report.effects[2].loss)
    text = str(report)
    for part in ("Verdict", "On held-out bags", "The bags", "80, 2,000", "Importance of columns", "known"):
        assert part in text
    assert "Warnings" not in text
    assert max(map(len, text.splitlines())) <= 110


class Tags(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def test_report_page_is_self_contained_and_escaped(tmp_path: Path) -> None:
    evil = "<script>alert('x')</script>"
    frame, y = table(8, 30)
    model, _ = fit(frame.rename(columns={"age": evil}), y, classes=["<b>no</b>", "yes & more"])
    page = model.report().to_html(tmp_path / "sub" / "report.html")
    text = page.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert tags.open == []
    assert evil in tags.said  # as text
    assert "yes & more" in tags.said
    assert not {"script", "b" if "<b>no" in text else "script", "img", "link", "iframe"} & {tag for tag, _ in tags.seen}
    assert not any(name in attributes for _, attributes in tags.seen for name in ("src", "href", "onload", "onclick"))
    assert "http" not in text
    assert "prefers-color-scheme: dark" in text
    assert "only 8 bags" in tags.said
    assert sum(tag == "circle" for tag, _ in tags.seen) == 8


def test_report_of_loaded_model_has_no_column_importances(tmp_path: Path) -> None:
    frame, y = table(8, 30)
    model, told = fit(frame, y)
    loaded = llpbench.load(model.save(tmp_path / "m"))
    kept, whole = loaded.report(), model.report()
    assert kept.facts == whole.facts
    assert kept.effects is None
    assert "a model file does not contain" in str(kept)
    assert "a model file does not contain" in kept.html()
    assert told
    assert str(kept).split("Importance of columns")[0] == str(whole).split("Importance of columns")[0]
    assert np.array_equal(loaded.predict_proba(frame), model.predict_proba(frame))


def test_model_file_of_version_2_predicts_without_shrinkage(tmp_path: Path) -> None:
    frame, y = table()
    model, _ = fit(frame, y)
    facts = {name: getattr(model._header, name) for name in Header.__struct_fields__}
    old = Header(**{**facts, "version": 2, "shrinkage": None, "facts": None})
    write_model(tmp_path / "old", old, model.method_.state())
    loaded = llpbench.load(tmp_path / "old")
    raw = model._predictor.probabilities(model._header.encoder.transform(frame))
    assert np.array_equal(loaded.predict_proba(frame), raw)
    assert np.array_equal(loaded.decision_function(frame) > 0, raw[:, 1] > 0.5)
    assert "has no report" in str(loaded.report())
    assert "has no report" in loaded.report().html()
    totals = loaded.subgroup_totals(frame, "job", halvings=0)
    np.testing.assert_allclose(totals["total"], pd.Series(raw[:, 1]).groupby(frame["job"]).sum())


def test_one_held_out_bag_gives_no_column_importances() -> None:
    frame, y = table(6, 40)
    model, _ = fit(frame, y, halvings=0)
    assert model.report().effects is None
    assert "scored on one bag" in str(model.report())


# -- flights -----------------------------------------------------------------------------------------------------------

FLIGHTS = Path(os.environ.get("LLPBENCH_DATA", "")) / "flights" / "flights.csv.zip"


@pytest.mark.slow
@pytest.mark.skipif(not FLIGHTS.is_file(), reason="the flights of New York are not in LLPBENCH_DATA")
@pytest.mark.parametrize("seed", [200, 201])  # settings were chosen on others
def test_flights_by_day_are_shrunk_to_a_constant(seed: int) -> None:
    """The right answer is a constant and a warning; the method by itself, though it knows of bag effects, is worse."""
    columns = ["hour", "carrier", "origin", "dest", "distance", "sched_dep_time", "sched_arr_time"]
    flights = pd.read_csv(FLIGHTS, usecols=[*columns, "month", "day", "arr_delay"])
    flights = flights[flights["arr_delay"].notna()].sample(20_000, random_state=seed)
    late = (flights["arr_delay"] > 15).to_numpy().astype(int)
    day = (flights["month"] * 100 + flights["day"]).to_numpy()
    days = np.unique(day)
    test = np.isin(day, np.random.default_rng(seed).choice(days, len(days) // 4, replace=False))
    model, told = fit(flights.loc[~test, columns].assign(bag=day[~test]), late[~test], seed=seed)
    assert "not clearly better than a constant" in told[0]
    assert any("reasons that no column explains" in text for text in told)
    rows = flights.loc[test, columns]
    constant = log_loss(late[test], np.full(test.sum(), late[~test].mean()))
    raw = model._predictor.probabilities(model._header.encoder.transform(rows))[:, 1]
    assert log_loss(late[test], np.clip(raw, 1e-15, 1 - 1e-15)) > constant + 0.02
    assert log_loss(late[test], model.predict_proba(rows)[:, 1]) < constant + 0.01


def test_notebooks_show_models_and_reports_with_escaped_names() -> None:
    frame, y = table(8, 30)
    model, _ = fit(frame, y, classes=["<b>no</b>", "yes"])
    for shown in (model._repr_html_(), model.report()._repr_html_()):
        tags = Tags()
        tags.feed(shown)
        assert tags.open == []
        assert "<b>no" not in shown
    assert "only 8 bags" in model._repr_html_()
    assert "srcdoc" in model.report()._repr_html_()


def test_report_of_a_worthless_model_draws_no_bars() -> None:
    frame, y = table(40, 20)
    model, told = fit(frame, np.random.default_rng(0).permutation(y), halvings=1)
    report = model.report()
    assert any("not clearly better" in text for text in told)
    assert not report.is_better
    assert "█" not in str(report)
    assert 'class="bar"' not in report.html()


def test_plot_draws_what_the_report_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    frame, y = table()
    model, _ = fit(frame, y)
    loaded = llpbench.load(model.save(tmp_path / "m"))
    titles = [axes.get_title() for axes in model.report().plot().axes]
    assert titles == ["Known proportions", "Held-out bags", "Importance of columns"]
    assert [axes.get_title() for axes in loaded.report().plot().axes] == titles[1:2]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"pip install 'llpbench\[plot\]'"):
        model.report().plot()
