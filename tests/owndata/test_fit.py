"""A method on a user's own table: forms of bags and counts, what is selected, probabilities, and refusals."""

from __future__ import annotations

import re
import shlex
import threading
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from cli_runner import llpbench as run_llpbench
from helpers import bags_of, make_part, quick
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit, softmax

import llpbench
from llpbench.contracts.data import Bags, Part
from llpbench.contracts.errors import LLPBenchError, MethodError, UsageError
from llpbench.contracts.specs import MethodSpec
from llpbench.data.encoding.encoder import CategoryColumn
from llpbench.experiment.metrics import auroc
from llpbench.experiment.monitor import HarnessMonitor, MethodView
from llpbench.experiment.rules import bag_means, make_rules
from llpbench.owndata.fitting import fit_and_choose, hold_out
from llpbench.owndata.judging.predictor import calibrate
from llpbench.owndata.reading.forms import as_frame
from llpbench.owndata.reading.frames import FrameEncoder, fit_encoder

ROOT = Path(__file__).resolve().parents[2]


def table(n: int = 900, bags: int = 60, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A table with a number, a text with gaps, a number with gaps, and its bags; and the labels."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "job": rng.choice(np.array(["a", "b", None], dtype=object), n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.exponential(1, n)),
            "shop": rng.permutation(np.arange(n) % bags),
        }
    )
    y = rng.random(n) < expit((frame["age"] - 40) / 4 + 2.0 * (frame["job"] == "a") - 0.5)
    return frame, y.to_numpy().astype(int)


def fit(frame: pd.DataFrame, *args: Any, **options: Any) -> llpbench.LLPModel:
    return llpbench.fit(frame, *args, **{"method": "mean-ridge", **options})


# -- habits ------------------------------------------------------------------------------------------------------------


def test_fit_predicts_rows_without_labels() -> None:
    frame, y = table()
    model = fit(frame, "shop", pd.Series(y).groupby(frame["shop"]).sum())
    p = model.predict_proba(frame)
    assert p.shape == (len(frame), 2)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert auroc(y, p[:, 1]) > 0.85
    assert model.classes_.tolist() == [0, 1]
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["age", "job", "income"]
    assert np.array_equal(model.predict(frame), (p[:, 1] > 0.5).astype(int))
    assert np.array_equal(model.decision_function(frame) > 0, p[:, 1] > 0.5)
    assert np.isfinite(model.selected_["bag_error"])
    assert "mean-ridge" in repr(model)
    other = frame[["income", "shop", "age", "job"]].assign(unused=1)
    assert np.array_equal(model.predict_proba(other), p)  # columns are found by name


def test_all_forms_of_counts_are_read_alike() -> None:
    frame, y = table()
    X, shop = frame.drop(columns="shop"), frame["shop"].map("shop {:03d}".format)
    per_bag = pd.Series(y).groupby(shop).sum()
    sizes = shop.value_counts().sort_index()
    per_row = per_bag.loc[shop]
    whole = X.assign(shop=shop, sold=per_row.to_numpy())
    forms = {
        "mapping": fit(X, shop, dict(per_bag)),
        "shuffled series": fit(X, shop, per_bag.sample(frac=1, random_state=1)),
        "sorted array": fit(X, shop.tolist(), per_bag.to_numpy()),
        "per row": fit(X, shop.to_numpy(), per_row.to_numpy()),
        "column names": fit(whole, "shop", "sold"),
        "proportions": fit(X, shop, proportions=per_bag / sizes),
        "two columns": fit(X, shop, pd.DataFrame({0: sizes - per_bag, 1: per_bag})),
    }
    wanted = forms["mapping"].predict_proba(X)
    for name, model in forms.items():
        np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-9, err_msg=name)
    order = np.random.default_rng(2).permutation(len(X))
    turned = fit(X.iloc[order], shop.iloc[order], dict(per_bag))
    np.testing.assert_allclose(turned.predict_proba(X), wanted, rtol=1e-5)


def test_classes_are_named_by_the_columns_of_counts() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=900)
    X = np.eye(3)[y] * 2 + rng.normal(size=(900, 3))
    bag = np.arange(900) % 90
    counts = pd.DataFrame(np.eye(3)[y]).groupby(bag).sum().set_axis(["low", "mid", "top"], axis=1)
    model = fit(X, bag, counts)
    p = model.predict_proba(X)
    assert model.classes_.tolist() == ["low", "mid", "top"]
    assert not hasattr(model, "feature_names_in_")
    assert p.shape == (900, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(model.predict(X) == np.array(["low", "mid", "top"])[y]) > 0.75
    np.testing.assert_allclose(np.exp(model.decision_function(X)), p, rtol=1e-9)
    named = pd.DataFrame(X, columns=["a", "b", "c"]).assign(bag=bag, **counts.loc[bag].reset_index(drop=True))
    again = fit(named, "bag", ["low", "mid", "top"])
    assert again.classes_.tolist() == ["low", "mid", "top"]
    np.testing.assert_allclose(again.predict_proba(X), p, rtol=1e-9)


def test_impossible_counts_are_accepted_with_count_sd() -> None:
    frame, y = table()
    counts = pd.Series(y).groupby(frame["shop"]).sum() + np.random.default_rng(0).normal(0, 12, 60)
    with pytest.raises(UsageError, match="count_sd"):
        fit(frame, "shop", counts)
    assert auroc(y, fit(frame, "shop", counts, count_sd=12.0).predict_proba(frame)[:, 1]) > 0.6


def test_same_seed_gives_the_same_model() -> None:
    frame, y = table()
    counts = pd.Series(y).groupby(frame["shop"]).sum()
    first, again, other = (fit(frame, "shop", counts, seed=s).predict_proba(frame) for s in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


# -- what is selected --------------------------------------------------------------------------------------------------


class Zigzag:
    """Reports linear models, good ones and bad ones, in two stages; ends on a bad one."""

    def __init__(self, patience: int = 3) -> None:
        self.patience = patience

    def fit(self, bags: Bags, *, monitor: Any, seed: int) -> Zigzag:
        rng = np.random.default_rng(seed)
        means = np.add.reduceat(bags.X, bags.offsets[:-1]) / bags.sizes[:, None]
        good = np.linalg.lstsq(means - means.mean(axis=0), bags.proportions[:, 0] - bags.prior[0], rcond=None)[0]
        for stage in ("one", "two"):
            for _ in range(12):
                self.w_ = 8 * good + rng.normal(size=len(good))
                monitor.report(self.predict_scores, stage=stage)
                if monitor.should_stop:
                    break
        monitor.pseudo_labels(np.zeros(len(bags.X)))
        self.w_ = np.zeros_like(good)
        return self

    def predict_scores(self, X: Any) -> Any:
        return X @ self.w_


class Restorable(Zigzag):
    def state(self) -> dict[str, Any]:
        return {"w": self.w_}

    def restore(self, state: Any) -> Restorable:
        self.w_ = state["w"]
        return self


class Uncopied(Zigzag):
    def __init__(self, patience: int = 3) -> None:
        super().__init__(patience)
        self.lock = threading.Lock()


def spec_of(method: type[Zigzag]) -> MethodSpec:
    return MethodSpec(name=method.__name__.lower(), factory=f"{__name__}:{method.__name__}")


def own_bags(seed: int = 0) -> tuple[Bags, np.ndarray, np.ndarray]:
    """Training bags with held-out bags inside, and the labels of both."""
    rng = np.random.default_rng(seed)
    parts = []
    for n in (600, 200):
        y = rng.integers(2, size=n)
        parts.append(Part((rng.normal(size=(n, 3)) + y[:, None]).astype(np.float32), y))
    (train, labels), (valid, valid_labels) = (bags_of(part, 8, seed=seed) for part in parts)
    return Bags(train.X, train.offsets, train.counts, validation=valid), labels, valid_labels


@pytest.mark.parametrize("method", [Zigzag, Restorable])
@pytest.mark.parametrize("seed", range(5))
def test_fit_returns_the_model_of_the_selected_report(method: type[Zigzag], seed: int) -> None:
    bags, labels, valid_labels = own_bags(seed)
    assert bags.validation is not None
    chosen, monitor = fit_and_choose(spec_of(method), {"patience": 3}, bags, seed)
    run = HarnessMonitor(
        rules=make_rules(bags.validation, valid_labels),
        valid=bags.validation,
        test_rows=bags.X,
        train_labels=labels,
        classes=2,
        patience=3,
    )
    method(patience=3).fit(bags, monitor=MethodView(run), seed=seed)
    best, best_in_run = monitor.winner(monitor.rules[0]), run.winner(run.rules[0])
    assert best.value == best_in_run.value
    assert best.stage == best_in_run.stage
    assert np.array_equal(chosen.predict_scores(bags.X), best_in_run.scores)
    assert chosen.w_.any()  # not the model that the fit ended on
    assert [rule.name for rule in monitor.rules] == ["bags"]
    assert monitor.pseudo == {}


def test_fit_raises_if_the_best_model_cannot_be_restored() -> None:
    with pytest.raises(MethodError, match=r"not the one of its best report.*state\(\).*restore"):
        fit_and_choose(spec_of(Uncopied), {"patience": 3}, own_bags()[0], 0)


@given(n=st.integers(2, 500), share=st.floats(0.001, 0.999), seed=st.integers(0, 99))
@quick
def test_hold_out_takes_a_share_and_never_all_bags(n: int, share: float, seed: int) -> None:
    train, held = hold_out(n, share, seed)
    assert sorted([*train, *held]) == list(range(n))
    assert len(train) >= 1
    assert len(held) == min(max(round(share * n), 1), n - 1)


# -- probabilities -----------------------------------------------------------------------------------------------------

PLUGIN = """
import numpy as np
from llpbench import MethodSpec, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="plain-score", factory="plain_score:Plain", tasks=("binary", "multiclass"))]

class Plain:
    def fit(self, bags, *, monitor, seed):
        means = np.add.reduceat(bags.X, bags.offsets[:-1]) / bags.sizes[:, None]
        A, b = means - means.mean(axis=0), bags.proportions - bags.proportions.mean(axis=0)
        self.w_ = 100 * np.linalg.solve(A.T @ A + np.eye(A.shape[1]), A.T @ b)
        return self
    def predict_scores(self, X):
        scores = X @ self.w_ - 500
        return scores[:, 0] if scores.shape[1] == 1 else scores
"""


def test_scores_are_calibrated_and_stateless_methods_cannot_be_saved(tmp_path: Path) -> None:
    (tmp_path / "plain_score.py").write_text(PLUGIN)
    frame, y = table()
    options = {"method": "plain-score", "plugins": [tmp_path / "plain_score.py"]}
    model = fit(frame, "shop", pd.Series(y).groupby(frame["shop"]).sum(), **options)
    p = model.predict_proba(frame)[:, 1]
    assert abs(p.mean() - y.mean()) < 0.02
    assert p.std() > 0.05
    scores = model.method_.predict_scores(model._header.encoder.transform(frame))
    assert scores.max() < 0  # as log-odds these would say that nobody is positive
    assert np.array_equal(np.argsort(scores, kind="stable"), np.argsort(model.decision_function(frame), kind="stable"))
    with pytest.raises(MethodError, match=r"plain-score cannot be saved: implement state\(\).*restore\(state\)"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
def test_calibration_recovers_slope_and_shift(classes: int) -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(40_000, classes)) * 1.5
    truth = softmax(logits, axis=1)
    y = (truth.cumsum(axis=1) < rng.random((40_000, 1))).sum(axis=1)
    scores = 7.0 * (logits[:, 1] - logits[:, 0]) + 40 if classes == 2 else 7.0 * logits
    numbered = Part(np.arange(40_000, dtype=np.float32)[:, None], y)
    (train, _), (held, _) = (
        bags_of(Part(numbered.X[s], numbered.y[s]), 2, classes) for s in (slice(30_000), slice(30_000, None))
    )
    of_train, of_held = (scores[bags.X[:, 0].astype(int)] for bags in (train, held))
    found = calibrate(of_train, train, of_held, held)
    p = softmax(found.logits(scores), axis=1)
    np.testing.assert_allclose(p.mean(axis=0), np.bincount(y) / len(y), atol=1e-4)
    assert np.abs(p - truth).mean() < 0.02
    # brute force: no other slope does better on the held-out bags
    target = held.clipped_proportions if classes > 2 else np.hstack([1 - held.clipped_proportions] * 2)
    if classes == 2:
        target[:, 1] = held.clipped_proportions[:, 0]

    def loss(factor: float) -> float:
        z = msgspec.structs.replace(found, slope=found.slope * factor)
        shift = np.zeros(classes)
        for _ in range(300):
            mean = softmax(z.logits(scores) + shift, axis=1).mean(axis=0)
            shift += np.log(np.bincount(y) / len(y)) - np.log(mean)
        means = bag_means(softmax(z.logits(of_held) + shift, axis=1), held)
        prior = 0.5 * np.log(found.slope * factor) ** 2
        return float(-(held.sizes * (target * np.log(means)).sum(axis=1)).sum() + prior)

    assert loss(1.0) <= min(loss(0.9), loss(1.1)) + 1e-3


def test_calibration_on_one_bag_keeps_slope_near_one() -> None:
    part = make_part(64)
    (train, _), (held, _) = bags_of(part, 8), bags_of(Part(part.X[:8], part.y[:8]), 8)
    found = calibrate(part.X[:, 1], train, part.X[:8, 1], held)
    assert 0.05 < found.slope < 20
    constant = calibrate(np.ones(64), train, np.ones(8), held)
    np.testing.assert_allclose(softmax(constant.logits(np.ones(3)), axis=1)[:, 1], part.y.mean(), atol=0.05)


# -- the encoder -------------------------------------------------------------------------------------------------------


@given(
    values=st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=20),
    gaps=st.sets(st.integers(0, 3)),
    levels=st.lists(st.sampled_from(["x", "y", "z", None]), min_size=4, max_size=20),
)
@quick
def test_encoder_matches_its_definition(values: list[float], gaps: set[int], levels: list[str | None]) -> None:
    n = min(len(values), len(levels))
    assume(any(level is not None for level in levels[:n]))  # a column of nothing is read as numbers, see below
    numbers = np.array([np.nan if i in gaps else values[i] for i in range(n)])
    frame = pd.DataFrame({"number": numbers, "level": pd.Series(levels[:n], dtype=object)})
    rows = np.arange(max(n // 2, 1))
    encoder = fit_encoder(frame, rows)
    again = msgspec.json.decode(msgspec.json.encode(encoder), type=FrameEncoder)
    assert again == encoder
    X = again.transform(frame)
    assert X.shape == (n, encoder.width) == (n, sum(c.width for c in encoder.described()))
    known = numbers[rows][~np.isnan(numbers[rows])]
    if len(known) and known.std() > 1e-3:
        wanted = np.nan_to_num(np.clip((numbers - known.mean()) / known.std(), -4, 4))
        np.testing.assert_allclose(X[:, 0], wanted, rtol=1e-5, atol=1e-6)
    gap_column = len(known) < len(rows)
    if gap_column:
        assert np.array_equal(X[:, 1], np.isnan(numbers))
    block = X[:, 1 + gap_column :]
    seen = {levels[i] for i in rows}
    assert block.shape[1] == len(seen)
    assert block.sum(axis=1).tolist() == [float(levels[i] in seen) for i in range(n)]
    same = np.array([[levels[i] == levels[j] for j in range(n)] for i in range(n)])
    assert np.array_equal((block @ block.T)[block.any(axis=1)], same[block.any(axis=1)])


def test_empty_column_is_numeric_and_missing() -> None:
    frame = pd.DataFrame({"level": pd.Series([None] * 4, dtype=object)})
    encoder = fit_encoder(frame, np.arange(2))
    assert encoder.transform(frame).tolist() == [[0.0, 1.0]] * 4


def test_encoder_keeps_the_most_frequent_levels() -> None:
    texts = [f"often {i}" for i in range(150)] * 2 + [f"once {i:04d}" for i in range(500)]
    encoder = fit_encoder(pd.DataFrame({"text": texts}), np.arange(len(texts)))
    (column,) = encoder.columns
    assert isinstance(column, CategoryColumn)
    assert len(column.levels) == 200
    assert sum(str(level).startswith("often") for level in column.levels) == 150
    (described,) = encoder.described()
    assert described.width == encoder.width == 201  # one more, which all other values share
    X = encoder.transform(pd.DataFrame({"text": ["often 7", "once 0499", "never seen", None]}))
    assert X.sum(axis=1).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert X[:, 200].tolist() == [0.0, 1.0, 1.0, 1.0]


def test_column_types_are_inferred() -> None:
    frame = pd.DataFrame(
        {
            "flag": [True, False, True],
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "objects": np.array([1, 2.5, None], dtype=object),
            "codes": pd.Categorical([3, 1, 3]),
            "mixed": np.array([1, "a", 1.0], dtype=object),
        }
    )
    encoder = fit_encoder(frame, np.arange(3))
    kinds = [type(column).__name__ for column in encoder.columns]
    assert kinds == ["NumberColumn", "NumberColumn", "NumberColumn", "CategoryColumn", "CategoryColumn"]
    assert encoder.columns[3].levels == ("1", "3")  # type: ignore[union-attr]
    assert encoder.columns[4].levels == ("1", "a")  # type: ignore[union-attr]
    assert np.isfinite(encoder.transform(frame)).all()
    embedding = np.random.default_rng(0).normal(size=(5, 3))
    plain = fit_encoder(as_frame(embedding), np.arange(5), "none")
    assert plain.described() == ()
    assert np.array_equal(plain.transform(embedding), embedding.astype(np.float32))


# -- refusals ----------------------------------------------------------------------------------------------------------

FRAME, LABELS = table(120, 6)
COUNTS = pd.Series(LABELS).groupby(FRAME["shop"]).sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "supervised"}, "supervised needs the label of every row"),
        ({"method": "meanridge"}, "Did you mean 'mean-ridge'"),
        ({"method": 3}, "method: expected a text, got 3"),
        ({"params": 3}, "params: expected values by name, got 3"),
        ({"classes": "ab"}, "classes: expected a list of the names of the classes, got 'ab'"),
        ({"plugins": [1]}, "plugins: expected a path or a list of paths, got [1]"),
        ({"X": np.zeros((120, 100_000))}, "X has 100,000 columns; at most 10,000 are supported"),
        ({"params": {"gama": 1}}, "unknown parameter of mean-ridge: 'gama'. Did you mean 'gamma'"),
        ({"params": {"choice": "x"}}, "value of parameter 'choice'"),
        ({"backend": "torch"}, "mean-ridge has no networks; remove backend='torch'"),
        ({"method": "dllp", "backend": "theano"}, "unknown backend of dllp: 'theano'"),
        ({"counts": None}, "either counts or proportions"),
        ({"proportions": COUNTS}, "either counts or proportions"),
        ({"bag_of": "store"}, "unknown column of the table: 'store'. Available: age, income, job, shop."),
        ({"bag_of": [1, 2]}, "each of the 120 rows, got 2 values"),
        ({"bag_of": [None] * 120}, "missing for 120 rows"),
        ({"bag_of": [[1]] * 120}, "must be hashable"),
        ({"counts": {0: 1, 1: 1}}, "counts does not match the bags: no value for bag 2, 3, 4"),
        ({"counts": {**COUNTS, "x": 1}}, "no rows for bag 'x'"),
        ({"counts": [1, 2, 3]}, "each of the 6 bags, got 3 values (120 rows)"),
        ({"counts": FRAME["age"]}, "the same for all rows of a bag, but differs in bag"),
        ({"counts": COUNTS + 100}, "got 113 (bags affected: 6)"),
        ({"counts": COUNTS / 20}, "look like proportions"),
        ({"counts": ["a"] * 6}, "unknown column of the table: 'a'"),
        ({"counts": COUNTS * np.nan}, "counts is unknown for every bag"),
        ({"counts": COUNTS * np.inf}, "counts contains infinite values"),
        ({"counts": COUNTS * 0}, "contain only one class (0)"),
        ({"counts": None, "proportions": COUNTS * 0.0 + 1.0}, "contain only one class (1)"),
        ({"counts": np.ones((6, 3))}, "must add up to 20, got 3"),
        ({"counts": None, "proportions": COUNTS}, "between 0 and 1, got"),
        ({"classes": ["only"]}, "counts has 2 classes, but classes is ['only']"),
        ({"count_sd": -1.0}, "must be a number >= 0, or one for each bag, got -1"),
        ({"validation": 0.0}, "between 0 and 1"),
        ({"bag_of": [1] * 120, "counts": [60]}, "at least two bags are needed"),
        ({"encoding": "ordinal"}, "must be 'table' or 'none'"),
        ({"encoding": "none"}, "column 'job': expected numbers"),
        ({"X": np.zeros(120)}, "rows and columns"),
        ({"X": FRAME.assign(age=np.inf)}, "column 'age' contains 120 infinite values"),
        (
            {"X": FRAME.assign(age=pd.Timestamp("2024-01-01")), "encoding": "none"},
            "expected numbers, got datetime64",
        ),
        ({"X": FRAME[["shop"]]}, "no feature column"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_fit_rejects_invalid_arguments(change: dict[str, Any], message: str) -> None:
    request = {"X": FRAME, "bag_of": "shop", "counts": COUNTS, "method": "mean-ridge", **change}
    with pytest.raises(LLPBenchError, match=re.escape(message)):
        llpbench.fit(**request)


def test_ambiguous_order_of_bags_requires_a_mapping() -> None:
    X, ids = np.arange(8.0)[:, None], [3, 1, 2, 0, 7, 5, 6, 4]
    y = np.array([0, 1, 0, 1, 1, 1, 0, 0])
    with pytest.raises(UsageError, match="pass a mapping"):
        fit(X, ids, y)
    fit(X, ids, dict(zip(ids, y, strict=True)))
    mixed = ["a", 1, "a", 1, "b", "b", "b", 1]
    with pytest.raises(UsageError, match="cannot be sorted"):
        fit(X, mixed, [1, 1, 2])
    fit(X, mixed, {"a": 1, 1: 1, "b": 2})


@pytest.mark.parametrize("order", ["sorted ids", "shuffled ids", "names as ids"])
def test_count_columns_work_for_bags_of_one_row(order: str) -> None:
    """A column has one value for each row: no other way to read it, whatever the ids and the table's index."""
    rng = np.random.default_rng(0)
    n = 60
    y = rng.integers(2, size=n)
    ids = {
        "sorted ids": np.arange(n),
        "shuffled ids": rng.permutation(n),
        "names as ids": np.array([f"person {i:02d}" for i in rng.permutation(n)]),
    }[order]
    X = pd.DataFrame({"a": y + rng.normal(size=n), "b": rng.normal(size=n)})
    wanted = fit(X, ids, dict(zip(ids, y, strict=True))).predict_proba(X)
    table = X.assign(who=ids, sold=y, not_sold=1 - y, share=y.astype(float))
    forms = {
        "counts": fit(table.drop(columns=["not_sold", "share"]), "who", "sold"),
        "counts of both classes": fit(table.drop(columns="share"), "who", ["not_sold", "sold"]),
        "proportions": fit(table.drop(columns=["not_sold", "sold"]), "who", proportions="share"),
    }
    for name, model in forms.items():
        assert np.array_equal(model.predict_proba(X), wanted), name


def test_predict_requires_the_fitted_columns() -> None:
    model = fit(FRAME, "shop", COUNTS)
    with pytest.raises(UsageError, match=r"lacks the column 'age'.*Its columns: job, income"):
        model.predict(FRAME[["job", "income"]])
    with pytest.raises(UsageError, match="expected a table of 3 columns, got 2"):
        model.predict(np.zeros((4, 2)))
    with pytest.raises(UsageError, match=r"column 'age': expected numbers, got"):
        model.predict(FRAME.assign(age="old"))


# -- the page ----------------------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_docs_page_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(block, "own-data.md", "exec"), names)
    assert auroc(names["bought"].to_numpy().astype(int), names["model"].predict_proba(names["table"])[:, 1]) > 0.85
    names["table"].assign(y=names["bought"]).to_csv("data.csv", index=False)
    both, own = (shlex.split(line) for line in re.findall(r"```sh\nllpbench (run .*?)\n", PAGE))
    (compared,) = (shlex.split(line) for line in re.findall(r"```sh\nllpbench (compare .*?)\n```", PAGE))
    recommended = run_llpbench(*compared, cwd=tmp_path)
    assert recommended.returncode == 0, recommended.stderr
    assert f"Use {names['found'].recommended}" in recommended.stdout
    planned = run_llpbench(*both, "--dry-run", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert re.search(r"bp-count on csv\[label=y;path=data\.csv#[0-9a-f]{16}\], bag 64, seed 2", planned.stdout)
    done = run_llpbench(*own, "--seeds", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "own-bags" in done.stdout
