"""Comparing methods without labels: the score of held-out counts, folds, ties, failures, the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import quick
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import binom, t

import llpbench
from llpbench.cli import main
from llpbench.contracts.errors import LLPBenchError, UsageError
from llpbench.experiment.count_laws import log_mass
from llpbench.owndata.compare import choose_methods, fold_numbers, predict_constant, run_trial
from llpbench.owndata.comparison import CONSTANT, MethodScores, beyond_chance, break_tie, summarise
from llpbench.owndata.judging.held_out import best_spread, sum_predictions
from llpbench.owndata.reading.bagged_table import BaggedTable, read_bagged_table
from llpbench.plugins.registry import load_registry

# -- the score ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.floats(0.0, 1.0), st.floats(0.01, 30))
@quick
def test_probabilities_of_all_counts_sum_to_one(size: int, share: float, sd: float) -> None:
    counts = np.arange(size + 1.0)
    logs = log_mass(counts, np.full(size + 1, share * size), np.full(size + 1, sd), np.full(size + 1, float(size)))
    assert np.exp(logs).sum() == pytest.approx(1.0, abs=1e-9)
    far = log_mass(counts, np.full(size + 1, share * size), np.full(size + 1, sd), None)
    assert np.isfinite(far).all()
    assert (far <= logs + 1e-9).all()


def test_likelihood_of_equal_rows_is_close_to_binomial() -> None:
    sizes, p = np.full(101, 100), 0.3
    held = sum_predictions(
        np.tile([1 - p, p], (10100, 1)), np.repeat(np.arange(101), 100), np.arange(101.0)[:, None], sizes, 0
    )
    middle = slice(20, 41)
    np.testing.assert_allclose(
        held.log_likelihoods(0.0)[middle], binom.logpmf(np.arange(101), 100, p)[middle], atol=0.09
    )


def test_two_classes_equal_one_count_and_spread_ignores_bags_of_one_row() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(60)
    both = np.column_stack([1 - p, p])
    counts = rng.integers(0, 4, 20).astype(float)[:, None]
    bag, sizes = np.repeat(np.arange(20), 3), np.full(20, 3)
    one = sum_predictions(both, bag, counts, sizes, 0.0)
    two = sum_predictions(both, bag, np.hstack([3 - counts, counts]), sizes, 0.0)
    np.testing.assert_allclose(one.log_likelihoods(0.01), two.log_likelihoods(0.01))
    sd = np.sqrt(np.bincount(bag, p * (1 - p)) + 6 * 0.01)
    wanted = log_mass(counts[:, 0], np.bincount(bag, p), sd, np.full(20, 3.0))
    np.testing.assert_allclose(one.log_likelihoods(0.01), wanted)
    np.testing.assert_allclose(one.errors(), np.abs(np.bincount(bag, p) - counts[:, 0]) / 3)
    alone = sum_predictions(both, np.arange(60), rng.integers(0, 2, 60).astype(float)[:, None], np.ones(60, int), 0.0)
    np.testing.assert_allclose(alone.log_likelihoods(0.0), alone.log_likelihoods(0.2))


@pytest.mark.parametrize(("size", "effect"), [(4, 0.0), (30, 0.0), (30, 0.7)])
def test_true_probabilities_have_the_highest_likelihood(size: int, effect: float) -> None:
    rng = np.random.default_rng(0)
    n = 1500
    bag, sizes = np.repeat(np.arange(n), size), np.full(n, size)
    z = 1.5 * rng.normal(size=n * size) - 0.5
    y = rng.random(n * size) < expit(z + effect * rng.normal(size=n)[bag])
    counts = np.bincount(bag, y)[:, None]

    def held(p: np.ndarray) -> Any:
        return sum_predictions(np.column_stack([1 - p, p]), bag, counts, sizes, 0.0)

    truth = held(expit(z))
    spread = best_spread(truth)
    assert spread == pytest.approx(0.012, abs=0.006) if effect else spread < 0.001
    worse = {
        "constant": np.full(len(z), y.mean()),
        "too sure": expit(2 * z),
        "too flat": expit(z / 2),
        "noisy": expit(z + rng.normal(size=len(z))),
        "too high": expit(z + 0.5),
    }
    for name, p in worse.items():
        gain = truth.log_likelihoods() - held(p).log_likelihoods()
        assert gain.mean() > 2 * gain.std() / np.sqrt(n), name


# -- folds -------------------------------------------------------------------------------------------------------------


@given(st.integers(2, 300), st.integers(2, 10), st.integers(0, 5))
@quick
def test_fold_sizes_differ_by_at_most_one(n: int, folds: int, seed: int) -> None:
    folds = min(folds, n)
    sizes = np.bincount(fold_numbers(n, folds, seed), minlength=folds)
    assert sizes.sum() == n
    assert np.ptp(sizes) <= 1


def small(n: int = 240, bags: int = 40, seed: int = 0, strength: float = 3.0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.normal(size=n), "shop": rng.permutation(np.arange(n) % bags)}
    )
    y = rng.random(n) < expit(strength * frame["a"])
    return frame, y.groupby(frame["shop"]).sum()


def test_every_bag_is_held_out_once_per_repeat() -> None:
    frame, sold = small()
    table = read_bagged_table(frame, "shop", sold, None)
    seen: list[tuple[set[Any], set[Any]]] = []

    def predict(train: BaggedTable, test: BaggedTable, seed: int) -> np.ndarray:
        seen.append((set(train.bags.ids), set(test.bags.ids)))
        assert sorted([*train.rows, *test.rows]) == list(range(240))
        share = (test.counts[:, 0] / test.bags.sizes)[test.bags.numbers]  # the answer, if bags are matched rightly
        return np.column_stack([1 - share, share])

    cuts = [fold_numbers(40, 4, seed) for seed in range(2)]
    trial = run_trial("sees all", predict, table, cuts, 0, lambda line: None)
    assert trial.errors.shape == (2, 40)
    assert np.abs(trial.errors).max() < 1e-12
    for train, test in seen:
        assert train | test == set(range(40))
        assert not train & test
    assert sorted(bag for _, test in seen[:4] for bag in test) == list(range(40))
    constant = run_trial(CONSTANT, predict_constant, table, cuts, 0, lambda line: None)
    assert constant.errors.mean() > 0.05


# -- the result --------------------------------------------------------------------------------------------------------


def trial(name: str, logs: np.ndarray, seconds: float = 1.0, *, better: bool = True) -> MethodScores:
    return MethodScores(name, logs[None], np.abs(logs)[None], (seconds,), better=better and name != CONSTANT)


def test_differences_are_paired_and_ties_are_reported() -> None:
    rng = np.random.default_rng(0)
    hard = 3 * rng.normal(size=50)  # what makes a bag hard is common to all methods
    good, near, far = hard + 1.0, hard + 0.99 + 0.1 * rng.normal(size=50), hard + 0.5 + 0.1 * rng.normal(size=50)
    trials = [
        trial("far", far),
        trial("near", near, 0.1),
        trial("good", good),
        MethodScores("bad", good[:0], good[:0], (), "no"),
    ]
    found = summarise(trials, trial(CONSTANT, hard), ids=list(range(50)), folds=5, repeats=1)
    lines = found.table.set_index("method")
    assert lines.index.tolist() == ["good", "near", "far", CONSTANT, "bad"]
    assert lines["tied"].tolist() == [True, True, False, False, False]
    np.testing.assert_allclose(lines.loc["far", "behind"], (good - far).mean())
    np.testing.assert_allclose(lines.loc["far", "behind_se"], (good - far).std(ddof=1) / np.sqrt(50))
    np.testing.assert_allclose(lines.loc["far", "gain"], (far - hard).mean())
    assert np.isnan(lines.loc["bad", "gain"])
    assert found.recommended == "good"
    assert "takes 1 s per fit. near is tied with it by held-out counts" in found.verdict
    assert found.notes == ("bad failed: no",)
    np.testing.assert_allclose(found.bags["near"], near - hard)
    assert json.loads(json.dumps(found.to_dict()))["methods"][4]["gain"] is None
    text, page = str(found), found._repr_html_()
    for name in ("good", "near", "far", "bad", CONSTANT):
        assert name in text
        assert name in page
    assert found.verdict in text


def test_no_method_is_recommended_unless_better_than_a_constant() -> None:
    rng = np.random.default_rng(0)
    base, logs = rng.normal(size=12), rng.normal(size=12)
    nothing = trial("m", logs, better=False)
    found = summarise([nothing], trial(CONSTANT, base), ids=list(range(12)), folds=4, repeats=1)
    assert found.recommended is None
    assert not found.table["tied"].any()  # one method is not tied
    assert "No method explains held-out counts significantly better than a constant" in found.verdict
    assert "only 12 bags" in found.verdict
    none = summarise(
        [MethodScores("m", base[:0], base[:0], (), "no")], trial(CONSTANT, base), ids=[*"ab"], folds=2, repeats=1
    )
    assert none.recommended is None
    assert "No method could be fitted" in none.verdict


def line(method: str, agreement: float, seconds: float) -> dict[str, Any]:
    return {"method": method, "agreement": agreement, "seconds": seconds}


def test_ties_are_broken_by_agreement_then_time_then_gain() -> None:
    assert break_tie([line("first", 0.8, 1.0), line("second", 0.85, 0.1)]) == "first"  # nothing speaks against it
    assert break_tie([line("unsure", 0.4, 1.0), line("sure", 0.8, 5.0)]) == "sure"
    assert break_tie([line("slow", 0.8, 60.0), line("fast", 0.8, 2.0)]) == "fast"
    assert break_tie([line("slow", 0.8, 60.0), line("unsure", 0.2, 2.0)]) == "slow"
    assert break_tie([line("random bags", np.nan, 1.0), line("other", np.nan, 1.0)]) == "random bags"


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=20))
@quick
def test_beyond_chance_is_a_t_interval(values: list[float]) -> None:
    x = np.array(values)
    low, _ = t.interval(0.95, len(x) - 1, x.mean(), max(x.std(ddof=1) / np.sqrt(len(x)), 1e-300))
    if abs(low) > 1e-9:
        assert beyond_chance(x) == (low > 0)


# -- the whole ---------------------------------------------------------------------------------------------------------

PLUGIN = """
import numpy as np
from llpbench import MethodSpec, Param, Skip, hookimpl

@hookimpl
def llpbench_methods():
    names = ["Breaks", "Declines", "Guesses"]
    return [MethodSpec(name=n.lower(), factory=f"three:{n}", scores="probability") for n in names]

class Guesses:
    def fit(self, bags, *, monitor, seed):
        self.rate_ = float(bags.prior[0])
        return self
    def predict_scores(self, X):
        return np.full(len(X), self.rate_)

class Breaks(Guesses):
    def fit(self, bags, *, monitor, seed):
        raise RuntimeError("broken on purpose")

class Declines(Guesses):
    def fit(self, bags, *, monitor, seed):
        raise Skip("not today")
"""


@pytest.mark.slow
def test_compare_continues_after_a_method_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "three.py").write_text(PLUGIN)
    frame, sold = small()
    told: list[str] = []
    found = llpbench.compare(
        frame,
        "shop",
        sold,
        methods="breaks,mean-ridge,mean-ridge[penalty=10],declines,guesses",
        plugins=[tmp_path / "three.py"],
        progress=told.append,
    )
    lines = found.table.set_index("method")
    assert set(lines.index) == {"breaks", "mean-ridge", "mean-ridge[penalty=10]", "declines", "guesses", CONSTANT}
    assert "RuntimeError: broken on purpose" in lines.loc["breaks", "reason"]
    assert "does not support these bags: not today" in lines.loc["declines", "reason"]
    assert found.recommended in ("mean-ridge", "mean-ridge[penalty=10]")
    assert lines.loc["mean-ridge", "gain"] > 2 * lines.loc["mean-ridge", "gain_se"]
    assert not lines.loc["guesses", "tied"]
    assert lines.loc["guesses", "gain"] == pytest.approx(0.0, abs=0.02)
    assert (found.folds, found.repeats, len(found.bags)) == (5, 1, 40)
    assert sum(line.startswith("mean-ridge: fit") for line in told) == 5
    assert sum(line.startswith("breaks: failed") for line in told) == 1
    again = llpbench.compare(frame, "shop", sold, methods=["mean-ridge"], progress=False)
    assert again.table.loc[0, "gain"] == lines.loc["mean-ridge", "gain"]
    assert capsys.readouterr().err == ""


def test_compare_judges_shrunk_predictions() -> None:
    """As fit does: what fits disagree about is shrunk, and does not count as better than a constant."""
    frame, sold = small()
    table = read_bagged_table(frame, "shop", sold, None)

    def predict(train: BaggedTable, test: BaggedTable, seed: int) -> np.ndarray:
        p = expit(3 * test.features["a"].to_numpy())
        return np.column_stack([1 - p, p])

    cuts = [fold_numbers(40, 4, 0)]
    raw, agreed, doubtful = (
        run_trial("m", predict, table, cuts, 0, lambda line: None, agree)
        for agree in (None, lambda: None, lambda: 0.02)
    )
    assert agreed.better
    assert not doubtful.better
    means = [scores.log_likelihoods.mean() for scores in (doubtful, agreed, raw)]
    assert means[0] < means[1] - 0.2
    assert means[1] == pytest.approx(means[2], abs=0.05)


def test_compare_recommends_nothing_for_uninformative_columns() -> None:
    frame, sold = small(strength=0.0)
    found = llpbench.compare(frame, "shop", sold, methods="mean-ridge", progress=False)
    assert found.recommended is None


@pytest.mark.slow
def test_compare_supports_several_classes_few_bags_and_bounds() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=240)
    X = 3 * np.eye(3)[y] + rng.normal(size=(240, 3))
    bag = np.arange(240) % 6
    counts = pd.DataFrame(np.eye(3)[y]).groupby(bag).sum().set_axis(["u", "v", "w"], axis=1).astype(object)
    counts.loc[3, "u"] = "<20"
    counts.loc[3, "v"] = "<25"
    counts.loc[5] = np.nan
    found = llpbench.compare(X, bag, counts, methods="mean-ridge", folds=20, progress=False)
    assert (found.folds, found.repeats, len(found.bags)) == (5, 3, 5)
    assert np.isfinite(found.table.loc[0, "gain"])
    assert "1 of 6 bags are unknown" in found.notes[0]
    assert "1 of 6 bags are known only within bounds" in found.notes[1]


def test_compare_accepts_proportions_of_small_bags() -> None:
    rng = np.random.default_rng(0)
    bags, x = np.repeat(np.arange(60), 3), rng.normal(size=180)
    shares = {b: 0.33 * (b % 2) for b in range(60)}  # a third, rounded: 0.99 of a row
    found = llpbench.compare(pd.DataFrame({"x": x}), bags, proportions=shares, methods="mean-ridge", progress=False)
    assert list(found.table["reason"]) == ["", ""]
    assert np.isfinite(found.table["gain"]).all()


def test_compare_runs_quick_methods_by_default() -> None:
    registry = load_registry()
    names = {c.name for c in choose_methods(registry, None, 2)}
    assert names == {entry.spec.name for entry in registry.methods if entry.spec.quick and "binary" in entry.spec.tasks}
    assert "mean-ridge" in names
    assert "average[members=quick]" in {c.label for c in choose_methods(registry, None, 2)}  # the default of fit
    specs = [registry.methods[name] for name in names]
    assert not any(spec.oracle or spec.control for spec in specs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"methods": "mean-rigde"}, "Did you mean 'mean-ridge'"),
        ({"methods": "supervised"}, "it is an upper bound"),
        ({"methods": "mean-ridge[x=1]"}, "unknown parameter"),
        ({"methods": []}, "methods is empty"),
        ({"folds": 1}, "folds must be an integer >= 2"),
        ({"repeats": 0}, "repeats must be an integer >= 1"),
        ({"bag_of": [0] * 120 + [1] * 120, "counts": [3, 4]}, "needs at least 4 bags"),
        ({"bag_of": "store"}, "unknown column of the table: 'store'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_compare_rejects_invalid_arguments(change: dict[str, Any], message: str) -> None:
    frame, sold = small()
    request = {"X": frame, "bag_of": "shop", "counts": sold, "methods": "mean-ridge", "progress": False, **change}
    with pytest.raises(LLPBenchError, match=re.escape(message)):
        llpbench.compare(**request)


# -- the command -------------------------------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["compare", *arguments])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.mark.slow
def test_compare_command_reads_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame, sold = small()
    frame.assign(sold=frame["shop"].map(sold), id=range(240)).to_csv("rows.csv", index=False)
    frame.to_csv("plain.tsv", sep="\t", index=False)
    sold.rename("n").reset_index().to_csv("wide.csv", index=False)
    sizes = frame["shop"].value_counts().sort_index()
    long = pd.concat([sold, sizes - sold], keys=["yes", "no"], names=["class"]).rename("n").reset_index()
    long.to_csv("long.csv", index=False)
    wanted = llpbench.compare(frame, "shop", sold, methods="mean-ridge", folds=2, progress=False).table.loc[0, "gain"]
    forms = [
        ["rows.csv", "--count", "sold", "--drop", "id"],
        ["plain.tsv", "--counts-file", "wide.csv"],
        ["plain.tsv", "--counts-file", "wide.csv", "--count", "n"],
        ["plain.tsv", "--counts-file", "long.csv"],
    ]
    for form in forms:
        code, out, err = run(capsys, *form, "--bag", "shop", "--methods", "mean-ridge", "--folds", "2", "--json")
        assert (code, err) == (0, ""), form
        assert json.loads(out)["methods"][0]["gain"] == pytest.approx(wanted), form
    code, out, err = run(capsys, *forms[0], "--bag", "shop", "--methods", "mean-ridge", "--folds", "5")
    assert code == 0
    assert "Use mean-ridge" in out
    assert "mean-ridge: fit 5 of 5" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--bag", "shp", "--count", "sold"], "unknown column of rows.csv: 'shp'. Did you mean 'shop'"),
        (["--bag", "shop", "--count", "sodl"], "unknown column of rows.csv: 'sodl'. Did you mean 'sold'"),
        (["--bag", "shop", "--count", "sold", "--drop", "x"], "unknown column of rows.csv: 'x'"),
        (["--bag", "shop"], "give either --count or --proportion"),
        (["--bag", "shop", "--count", "sold", "--proportion", "sold"], "give either --count or --proportion"),
        (["--bag", "shop", "--proportion", "sold"], "between 0 and 1, got"),
        (["--bag", "shop", "--counts-file", "absent.csv"], "absent.csv cannot be read"),
    ],
    ids=" ".join,
)
def test_compare_command_reports_usage_errors(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    frame, sold = small()
    frame.assign(sold=frame["shop"].map(sold)).to_csv("rows.csv", index=False)
    code, _, err = run(capsys, "rows.csv", "--methods", "mean-ridge", *arguments)
    assert code == 2
    assert message in err


def test_compare_accepts_counts_within_bounds() -> None:
    frame, sold = small()
    with pytest.raises(UsageError, match="unknown for every bag"):
        llpbench.compare(frame, "shop", sold * np.nan, methods="mean-ridge", progress=False)
