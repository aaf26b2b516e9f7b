"""``llpbench.disclosure``: the posterior, arithmetic, noise, calibration, and the report."""

from __future__ import annotations

import json
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.special import expit

import llpbench
from llpbench import Disclosure, LLPWarning, UsageError
from llpbench.cli import main
from llpbench.experiment.privacy import count_noise_sd
from llpbench.owndata.disclosure import determined_labels
from llpbench.owndata.reading.margins import form_tables

SEEDS = st.integers(0, 9999)


def people(n: int = 1600, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Rows, and labels that follow a logistic regression on their columns."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["clerk", "farmer", "nurse"], n),
            "score": rng.normal(size=n),
        }
    )
    odds = 0.05 * (table["age"] - 50) + 2.0 * table["score"] + (table["job"] == "nurse") - 1.0
    return table, pd.Series(rng.random(n) < expit(odds), name="ill").astype(int)


def dealt(y: pd.Series, size: int, times: int, seed: int = 0) -> list[tuple[np.ndarray, pd.Series]]:
    """Exact counts of random groups."""
    rng = np.random.default_rng(seed)
    groups = [rng.permutation(len(y)) // size for _ in range(times)]
    return [(group, y.groupby(group).sum()) for group in groups]


def overall(found: Disclosure) -> pd.DataFrame:
    return found.table[found.table["grouping"] == ""].set_index("release")


# -- the attack --------------------------------------------------------------------------------------------------------


@quick
@given(seed=SEEDS)
def test_posterior_without_features_is_the_share_of_possible_labellings(seed: int) -> None:
    """Groups that form a tree, where belief propagation is exact."""
    y = np.random.default_rng(seed).integers(0, 2, 9)
    first = np.repeat([0, 1, 2], 3)
    second = [None, None, "a", "a", None, "b", "b", None, None]  # joins the groups of the first table
    counts = pd.Series(y).groupby(first).sum(), {"a": y[2:4].sum(), "b": y[5:7].sum()}
    frame = pd.DataFrame({"x": range(9)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LLPWarning)
        given_ = [(first, counts[0]), (second, counts[1])]
        found = llpbench.disclosure(frame, given_, truth=y, features=False, epsilon=None)
    labels = np.array(list(product([0, 1], repeat=9)))
    sums = np.stack([labels[:, rows].sum(axis=1) for rows in ([0, 1, 2], [3, 4, 5], [6, 7, 8], [2, 3], [5, 6])])
    possible = labels[(sums == [[c] for c in (*counts[0], counts[1]["a"], counts[1]["b"])]).all(axis=0)]
    wanted = possible.mean(axis=0)
    np.testing.assert_allclose(found.rows["probability"], np.maximum(wanted, 1 - wanted), atol=2e-3)
    sure = (wanted == 0) | (wanted == 1)
    assert overall(found).loc["as published", "certain_99"] == sure.sum()
    assert not found.rows["by_arithmetic"][~sure].any()


def test_three_random_tables_reveal_every_label_and_noise_prevents_it() -> None:
    table, y = people()
    found = llpbench.disclosure(table, dealt(y, 8, 3), truth=y, epsilon=[10, 1], draws=1)
    lines = overall(found)
    assert lines.loc["as published", ["certain_99", "right", "converged"]].tolist() == [1600, 1600, 1]
    assert lines.loc["columns alone", "certain_99"] < 800
    certain = lines.loc[["as published", "epsilon 10", "epsilon 1"], "certain_99"].to_numpy()
    assert (np.diff(certain) < 0).all()
    assert lines.loc["epsilon 1", "noise_sd"] == count_noise_sd(1.0, 1e-5, "analytic", 3**0.5)
    assert found.rows["right"].all()


def test_labels_said_to_be_certain_are_right_as_often() -> None:
    table, y = people(8000, seed=1)
    found = llpbench.disclosure(table, dealt(y, 8, 1), truth=y, epsilon=[10], draws=1)
    for release in ("columns alone", "as published", "epsilon 10"):
        line = overall(found).loc[release]
        assert line["certain_99"] > 200
        assert line["right_90"] / line["certain_90"] > 0.93
        assert line["right_99"] / line["certain_99"] > 0.985
        assert line["right_99.9"] >= 0.995 * line["certain_99.9"]


def test_noisy_counts_of_many_small_groups_make_no_label_certain() -> None:
    """A regression that is scaled by the noisy counts it was fitted to is certain of wrong labels."""
    table, y = people(3000)
    rng = np.random.default_rng(0)
    for name in ("street", "doctor"):
        table[name] = [f"{name} {k}" for k in rng.integers(0, 350, len(table))]
    line = overall(llpbench.disclosure(table, tables="street,doctor", truth=y, epsilon=[1], draws=1)).loc["epsilon 1"]
    assert line["certain_99"] < 100
    assert line["right_90"] >= 0.85 * line["certain_90"]


def test_groups_add_up_to_all_rows() -> None:
    table, y = people(400)
    found = llpbench.disclosure(table.assign(y=y), tables="job,age:4+job", truth="y", draws=2)
    numbers = [name for name in found.table.columns if name[:4] in ("rows", "cert", "righ", "by_a")]
    for _, lines in found.table.groupby("release"):
        for name in ("job", "age:4+job"):
            groups = lines.loc[lines["grouping"] == name, numbers].sum()
            np.testing.assert_allclose(groups, lines.loc[lines["grouping"] == "", numbers].iloc[0].astype(float))


def test_several_classes_are_attacked() -> None:
    rng = np.random.default_rng(0)
    kind = pd.Series(rng.choice(["a", "b", "c"], 600))
    table = pd.DataFrame({"x": rng.normal(size=600) + 3.0 * (kind == "a"), "group": np.arange(600) // 3})
    counts = pd.crosstab(table["group"], kind)
    found = llpbench.disclosure(table[["x"]], [(table["group"], counts)], truth=kind, epsilon=[1], draws=1)
    lines = overall(found)
    full = (counts == 3).any(axis=1).sum()
    assert lines.loc["as published", "by_arithmetic"] == 3 * full
    assert lines.loc["as published", "right"] > lines.loc["epsilon 1", "right"]
    assert found.classes == ("a", "b", "c")


# -- arithmetic --------------------------------------------------------------------------------------------------------


@quick
@given(seed=SEEDS, classes=st.integers(2, 3), loose=st.booleans())
def test_labels_determined_by_arithmetic_are_those_of_all_labellings(seed: int, classes: int, loose: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 6
    incidence = np.concatenate([np.eye(k)[rng.integers(0, k, n)].T for k in (3, 2)])
    incidence = incidence[incidence.any(axis=1)]
    truth = np.eye(classes)[rng.integers(0, classes, n)]
    low = high = incidence @ truth
    if loose:
        low, high = low - (rng.random(low.shape) < 0.3), high + (rng.random(low.shape) < 0.3)
    if changed := seed % 5 == 0:
        low = high = rng.permuted(low)
    every = np.eye(classes)[list(product(range(classes), repeat=n))]
    sums = np.einsum("bi,lic->lbc", incidence, every)
    possible = every[((sums >= low) & (sums <= high)).all(axis=(1, 2))].argmax(axis=2)
    found = determined_labels(csr_matrix(incidence), low, high)
    if found is None:
        assert changed
        assert not len(possible)
    elif len(possible):
        told = found >= 0
        assert (possible[:, told] == found[told]).all()
        full = (high == 0).sum(axis=1) == classes - 1
        assert told[(incidence[full] > 0).any(axis=0)].all()


def test_only_exact_counts_determine_labels() -> None:
    table, y = people(60)
    by_job = y.groupby(table["job"]).sum()
    table["job"] = table["job"].where(y == 1, "none")
    by_job = y.groupby(table["job"]).sum().astype(object)
    assert by_job["none"] == 0
    for counts, sd, determined in ((by_job, 0.0, 60), (by_job.replace(0, "<3"), 0.0, (y == 1).sum()), (by_job, 1.0, 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LLPWarning)
            found = llpbench.disclosure(table, [counts], count_sd=sd, epsilon=None)
        assert found.rows["by_arithmetic"].sum() == determined


def test_contradictory_counts_are_reported() -> None:
    table = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    counts = [pd.Series([2, 0], pd.Index([0, 1], name=name)) for name in "ab"]
    counts[1][:] = [0, 2]
    with pytest.warns(LLPWarning) as told:
        found = llpbench.disclosure(table, counts, features=False, epsilon=None)
    assert any("no labels agree with all counts" in str(each.message) for each in told)
    assert not found.rows["by_arithmetic"].any()


# -- tables formed from labels -----------------------------------------------------------------------------------------


@quick
@given(seed=SEEDS, bands=st.integers(2, 9))
def test_formed_tables_have_the_counts_of_their_groups(seed: int, bands: int) -> None:
    table, y = people(80, seed)
    table.loc[:4, "job"], table.loc[3:6, "score"] = None, np.nan
    formed = form_tables(table, f"job,score:{bands}+job", y)
    assert [groups.name for groups, _ in formed] == ["job", f"score:{bands}+job"]
    for groups, counts in formed:
        pd.testing.assert_series_equal(
            counts[1], y.groupby(groups.to_numpy()).sum(), check_names=False, check_dtype=False
        )
        pd.testing.assert_series_equal(
            counts.sum(axis=1), groups.value_counts(sort=False).sort_index(), check_names=False
        )
    assert (formed[0][0] == table["job"].fillna("missing")).all()
    assert formed[1][0].str.split(" + ", regex=False).str[0].nunique() == bands + 1


# -- arguments and reports ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"counts": None}, "give either counts"),
        ({"tables": "job"}, "give either counts"),
        ({"counts": None, "tables": "job"}, "pass truth"),
        ({"counts": None, "tables": "jobs", "truth": "y"}, "unknown column of the table: 'jobs'"),
        ({"counts": None, "tables": "job:3", "truth": "y"}, "cannot be cut into bands"),
        ({"counts": None, "tables": "age:1", "truth": "y"}, "tables='age:1': age:1 needs at least 2 bands"),
        ({"truth": "z"}, "unknown column of the table: 'z'"),
        ({"truth": [1, 0]}, "a label for each of the 60 rows, got 2"),
        ({"truth": [None, *[1] * 59]}, "missing for 1 rows"),
        ({"truth": ["yes"] * 60}, "the true labels contain yes, but the classes of the tables are 0, 1"),
        ({"epsilon": [0]}, "nor a positive epsilon"),
        ({"draws": 0}, "draws must be an integer >= 1"),
        ({"features": ["height"]}, "unknown column of the table: 'height'"),
        ({"counts": []}, "empty list"),
    ],
)
def test_invalid_arguments_are_rejected(change: dict[str, Any], said: str) -> None:
    table, y = people(60)
    given_ = {"counts": [y.groupby(table["job"]).sum()], **change}
    with pytest.raises(UsageError, match=said.replace("(", "\\(")):
        llpbench.disclosure(table.assign(y=y), **given_)


def test_reports_state_numbers_and_limits(tmp_path: Path) -> None:
    table, y = people(400)
    table["job"] = table["job"].where(y == 1, "<b>none</b>")
    found = llpbench.disclosure(table, [y.groupby(table["job"]).sum()], truth=y, epsilon=[1], draws=1)
    number = f"{int((found.rows['probability'] >= 0.99).sum())} of 400"
    page = found.to_html(tmp_path / "page.html").read_text()
    for text in (str(found), page):
        assert number in text
        assert "not a proof of privacy" in text
    assert "<b>none" in str(found)
    assert "<b>none" not in page
    assert "&lt;b&gt;none" in page
    assert "<iframe" in found._repr_html_()


def test_verb_forms_tables_or_reads_published_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    table, y = people(200)
    table.assign(ill=y).to_csv("people.csv", index=False)
    y.groupby(table["job"]).sum().rename("n").reset_index().to_csv("jobs.csv", index=False)

    def run(*options: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["disclosure", "people.csv", "--label", "ill", *options])
        assert not ended.value.code
        return capsys.readouterr().out

    given_ = (["--tables", "job"], ["--counts-file", "jobs.csv"])
    told = [json.loads(run(*options, "--epsilon", "none", "--json")) for options in given_]
    assert told[0]["table"][-1]["rows"] == told[1]["table"][-1]["rows"]
    assert [line["certain_90"] for line in told[0]["table"]] == [line["certain_90"] for line in told[1]["table"]]
    assert "Rows whose label is certain" in run("--tables", "job,age:3", "--html", "page.html")
    assert "<!doctype html>" in Path("page.html").read_text()
