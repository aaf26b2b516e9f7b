"""Several groupings of the same rows: the form of the bags, schemes, rules, privacy, cards and cells."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_runner import llpbench
from helpers import make_part, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import Bags, Column, DatasetError, HeldOut, UsageError
from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Part, Split
from llpbench.contracts.job import Job
from llpbench.contracts.protocols import QuietMonitor
from llpbench.contracts.specs import NO_BAG
from llpbench.execution.messages import FitData, arrays_of, bags_from
from llpbench.experiment.bag_card import card_of, grouping_cards
from llpbench.experiment.bags import gather_groupings
from llpbench.experiment.folds import make_folds
from llpbench.experiment.forming import form_bags
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.monitor import fit_method, mean_of_entries
from llpbench.experiment.privacy import count_noise_sd, count_sensitivity
from llpbench.experiment.rules import bag_cross_entropy, bag_means, weighted_cross_entropy
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.schemes import margin_bags, quantile_bands
from llpbench.plugins.options import split_joined
from llpbench.plugins.registry import load_registry
from llpbench.results.store import Store

REGISTRY = load_registry()
COLUMNS = (Column("row", "numeric"), Column("colour", "category", 3), Column("size", "numeric"))
SEEDS = st.integers(0, 9999)


def groupings_of(n: int, seed: int, number: int = 3) -> dict[str, np.ndarray]:
    """Random groupings; in each some rows have no bag."""
    rng = np.random.default_rng(seed)
    return {f"g{k}": rng.integers(NO_BAG, 2 + 3 * k, n) for k in range(number)}


def overlapping(n: int = 40, seed: int = 0, classes: int = 2, number: int = 3) -> tuple[Bags, np.ndarray, Part]:
    part = make_part(n, classes, seed)
    groupings = groupings_of(n, seed, number)
    bags, labels = gather_groupings(part, groupings, classes=classes, columns=(), rng=np.random.default_rng(seed))
    return bags, labels, part


@quick
@given(seed=SEEDS, classes=st.integers(2, 4))
def test_overlapping_bags_have_each_row_once_and_the_counts_of_every_group(seed: int, classes: int) -> None:
    n = 40
    bags, labels, part = overlapping(n, seed, classes)
    groupings = groupings_of(n, seed)
    rows = bags.X[:, 0].astype(int)
    covered = np.any([numbers != NO_BAG for numbers in groupings.values()], axis=0)
    assert sorted(rows) == np.flatnonzero(covered).tolist()
    np.testing.assert_array_equal(labels, part.y[rows])
    found = {}
    for b in range(len(bags)):
        members = frozenset(rows[bags.members[bags.offsets[b] : bags.offsets[b + 1]]].tolist())
        found[bags.groupings[bags.grouping_of[b]], members] = bags.counts[b].tolist()
    wanted = {}
    for name, numbers in groupings.items():
        for group in set(numbers.tolist()) - {NO_BAG}:
            of = np.flatnonzero(numbers == group)
            counts = np.bincount(part.y[of], minlength=classes).astype(float).tolist()
            wanted[name, frozenset(of.tolist())] = counts[1:] if classes == 2 else counts
    assert found == wanted


@quick
@given(seed=SEEDS)
def test_unrolled_bags_are_disjoint_with_the_same_members_and_counts(seed: int) -> None:
    bags, _, _ = overlapping(seed=seed)
    valid = overlapping(seed=seed + 1)[0]
    unrolled = replace(bags, validation=valid).unrolled
    assert unrolled.overlap is None
    assert unrolled.validation is not None
    assert unrolled.validation.overlap is None
    assert len(unrolled.X) == unrolled.offsets[-1]
    np.testing.assert_array_equal(unrolled.X, bags.X[bags.members])
    np.testing.assert_array_equal(unrolled.counts, bags.counts)
    np.testing.assert_array_equal(unrolled.bag_of, bags.bag_of)


def test_bags_of_one_grouping_have_trivial_members() -> None:
    part = make_part(12)
    bags, _ = gather_groupings(part, {"": np.arange(12) // 4}, classes=2, columns=(), rng=np.random.default_rng(0))
    assert bags.overlap is None
    assert bags.unrolled is bags
    assert bags.members.tolist() == list(range(12))
    assert bags.grouping_of.tolist() == [0, 0, 0]
    assert bags.entries(bags.X) is bags.X


def test_prior_comes_from_the_grouping_that_covers_most_rows() -> None:
    part = Part(np.arange(8, dtype=np.float32)[:, None], np.array([1, 1, 1, 0, 0, 0, 0, 0]))
    partial = np.array([0, 0, 0, 0, NO_BAG, NO_BAG, NO_BAG, NO_BAG])
    groupings = {"some": partial, "all": np.arange(8) // 4}
    bags, _ = gather_groupings(part, groupings, classes=2, columns=(), rng=np.random.default_rng(0))
    assert bags.prior[0] == 3 / 8


@quick
@given(seed=SEEDS)
def test_methods_that_do_not_overlap_get_unrolled_bags_and_report_each_row_once(seed: int) -> None:
    bags, _, _ = overlapping(seed=seed)
    seen: list[np.ndarray] = []

    class Listener(QuietMonitor):
        def pseudo_labels(self, probabilities: np.ndarray, *, stage: str = "") -> None:
            seen.append(probabilities)

    class Pseudo:
        def fit(self, bags: Bags, *, monitor: Any, seed: int) -> Pseudo:
            taken.append(bags)
            monitor.pseudo_labels(of_row if bags.overlap else of_row[rows])
            return self

        predict_scores = None

    taken: list[Bags] = []
    rows, of_row = bags.members, np.random.default_rng(seed).random(len(bags.X))
    method: Any = Pseudo()
    for overlapping_ in (False, True):
        fit_method(method, bags, Listener(), seed, overlapping=overlapping_)
    assert taken[0].overlap is None
    assert taken[1] is bags
    np.testing.assert_allclose(seen, [of_row, of_row])


def test_pseudo_labels_of_a_repeated_row_are_averaged() -> None:
    bags, _, _ = overlapping(seed=3)
    values = np.random.default_rng(0).random((len(bags.members), 2))
    wanted = [values[bags.members == row].mean(axis=0) for row in range(len(bags.X))]
    np.testing.assert_allclose(mean_of_entries(values, bags), wanted)


def test_overlapping_bags_cross_the_process_boundary_unchanged() -> None:
    bags = replace(overlapping(seed=5)[0], validation=overlapping(seed=6)[0])
    facts: dict[str, Any] = {"arrays": {}, "classes": 2, "count_sd": 0.0, "columns": ()}
    again = bags_from(arrays_of(bags), FitData(**facts, groupings=bags.groupings))
    for one, two in ((bags, again), (bags.validation, again.validation)):
        assert one is not None
        assert two is not None
        assert one.groupings == two.groupings
        for name in ("X", "members", "offsets", "counts", "grouping_of", "count_sds"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


# -- schemes -----------------------------------------------------------------------------------------------------------


def table(n: int, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    colour, size = rng.integers(0, 4, n), rng.integers(0, 3, n)
    X = np.column_stack([rng.normal(size=n), np.eye(4)[colour][:, :3], size]).astype(np.float32)
    return X, pd.DataFrame({"row": X[:, 0], "colour": colour, "size": size})


@quick
@given(n=st.integers(1, 200), seed=SEEDS, least=st.integers(1, 20))
def test_margins_are_the_groups_of_a_table(n: int, seed: int, least: int) -> None:
    X, frame = table(n, seed)
    text = "colour, size:3, colour+size:3"
    found = margin_bags(X, 0, columns=COLUMNS, rng=np.random.default_rng(0), columns_=text, least=least)
    assert list(found) == ["colour", "size:3", "colour+size:3"]
    for name, keys in (("colour", ["colour"]), ("size:3", ["size"]), ("colour+size:3", ["colour", "size"])):
        groups = {frozenset(rows.index) for _, rows in frame.groupby(keys) if len(rows) >= least}
        bags = {frozenset(np.flatnonzero(found[name] == b).tolist()) for b in set(found[name]) - {NO_BAG}}
        assert bags == groups


@quick
@given(values=st.lists(st.integers(-5, 5), min_size=1, max_size=80), bands=st.integers(2, 9))
def test_bands_are_ordered_keep_ties_together_and_split_what_differs(values: list[int], bands: int) -> None:
    given_ = np.array(values, np.float64)
    found = quantile_bands(given_, bands)
    order = np.argsort(given_, kind="stable")
    assert (np.diff(found[order]) >= 0).all()
    assert all(len(set(found[given_ == value])) == 1 for value in given_)
    assert found.max() < bands
    assert (len(set(found)) > 1) == (len(set(values)) > 1)


def test_star_is_every_column() -> None:
    X, _ = table(50, 0)
    every = margin_bags(X, 0, columns=COLUMNS, rng=np.random.default_rng(0))
    assert list(every) == ["row", "colour", "size"]
    banded = margin_bags(X, 0, columns=COLUMNS, rng=np.random.default_rng(0), columns_="*:4,colour+size")
    assert list(banded) == ["row:4", "colour", "size:4", "colour+size"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("", "expected columns separated by commas"),
        ("education,,sex", "expected columns separated by commas"),
        ("sex,sex", "has sex twice"),
        ("age:1", "at least 2 bands"),
    ],
)
def test_margins_rejects_invalid_columns_before_a_run(columns: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        REGISTRY.schemes["margins"].resolve({"columns": columns})


@pytest.mark.parametrize(("columns", "said"), [("heigth", "unknown column"), ("colour:3", "is a category")])
def test_margins_rejects_columns_that_the_table_does_not_have(columns: str, said: str) -> None:
    X, _ = table(30, 0)
    with pytest.raises(UsageError, match=said):
        margin_bags(X, 0, columns=COLUMNS, rng=np.random.default_rng(0), columns_=columns)


def test_joined_schemes_are_split_outside_brackets() -> None:
    assert split_joined("a[columns=x&y] & b") == ["a[columns=x&y]", "b"]
    with pytest.raises(UsageError, match="on either side of &"):
        split_joined("random&")


# -- cells -------------------------------------------------------------------------------------------------------------


def plan(schemes: str, **given_: Any) -> list[Any]:
    return plan_cells(RunSettings(methods=["mean-ridge"], datasets=["adult"], schemes=schemes, **given_), REGISTRY)


def test_joined_schemes_make_one_cell() -> None:
    (only,) = plan("group-by[columns=education]&random", bags=[8], seeds=1)
    assert only.cell.bag_size == 8
    assert only.cell.scheme_name == "group-by&random"
    assert only.dataset_name == "adult, group-by[columns=education]&random"
    again = {p.cell.id for p in plan("group-by[columns=education;sex]&random[times=1;2]", bags=[8], seeds=1)}
    assert only.cell.id in again
    assert len(again) == 4
    (own,) = plan("group-by[columns=education]&group-by[columns=sex]", bags=[8, 32], seeds=1)
    assert own.cell.bag_size == 0
    (several,) = plan("random[times=3]", bags=[8], seeds=1)
    assert several.dataset_name == "adult, random[times=3]"


def test_one_draw_keeps_the_id_of_a_cell() -> None:
    ids = [[p.cell.id for p in plan(scheme, bags=[8], seeds=1)] for scheme in ("random", "random[times=1]")]
    assert ids[0] == ids[1]


def test_split_by_bags_rejects_several_groupings() -> None:
    with pytest.raises(UsageError, match="several groupings"):
        plan("random&group-by[columns=sex]", split="bags")
    with pytest.raises(DatasetError, match="single grouping"):
        form_bags(job(scheme_options={"times": 2}, split="bags"), a_split(), REGISTRY)


def job(**changes: Any) -> Job:
    facts: dict[str, Any] = {"dataset": "synthetic", "method": "mean-ridge", "bag_size": 8, "seed": 0}
    return Job(cell=Cell(**{**facts, **changes}), method_name="", dataset_name="", out="unused")


def a_split(n: int = 120, classes: int = 2) -> Split:
    part = make_part(n, classes)
    parts = [Part(part.X[rows], part.y[rows]) for rows in np.split(np.arange(n), [n // 2, 3 * n // 4])]
    return Split(*parts, classes=classes)


def test_times_draws_independent_groupings_of_all_rows() -> None:
    formed = form_bags(job(scheme_options={"times": 3}), a_split(), REGISTRY)
    bags = formed.bags
    assert bags.groupings == ("draw 1", "draw 2", "draw 3")
    assert len(bags.X) == 60
    assert bags.sizes.tolist() == [8] * 7 + [4] + [8] * 7 + [4] + [8] * 7 + [4]
    assert len({tuple(bags.members[start : start + 60]) for start in (0, 60, 120)}) == 3
    assert bags.validation is not None
    assert len(bags.validation.X) == 30
    assert formed.test_bag_of.shape == (30, 3)
    assert len(np.unique(formed.test_bag_of)) == 12


@quick
@given(seed=SEEDS, classes=st.integers(2, 3), number=st.integers(1, 4))
def test_sensitivity_is_the_largest_change_of_all_counts(seed: int, classes: int, number: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    part = make_part(n, classes, seed)
    groupings = {f"g{k}": rng.integers(0, 3, n) for k in range(number)}

    def counts(y: np.ndarray) -> np.ndarray:
        shape: dict[str, Any] = {"classes": classes, "columns": (), "rng": np.random.default_rng(0)}
        return gather_groupings(Part(part.X, y), groupings, **shape)[0].counts

    moves = []
    for row in range(n):
        for label in range(classes):
            other = part.y.copy()
            other[row] = label
            moves.append(float(np.linalg.norm(counts(other) - counts(part.y))))
    assert max(moves) == pytest.approx(count_sensitivity(classes, number))


def test_noise_of_a_cell_is_that_of_the_whole_release() -> None:
    formed = form_bags(job(scheme_options={"times": 4}, noise="high"), a_split(), REGISTRY)
    wanted = count_noise_sd(1.0, 1e-5, sensitivity=math.sqrt(4))
    assert formed.bags.count_sd == wanted
    assert (formed.bags.count_sds == wanted).all()
    assert formed.bags.validation is not None
    assert (formed.bags.validation.count_sds == wanted).all()


def test_card_describes_each_grouping_and_the_whole() -> None:
    formed = form_bags(job(scheme_options={"times": 2}), a_split(), REGISTRY)
    whole, each = card_of(formed, uses_labels=False), grouping_cards(formed)
    assert (whole.bags, whole.rows, whole.left_out) == (16, 60, 0.0)
    assert list(each) == ["draw 1", "draw 2"]
    assert [(card.bags, card.rows) for card in each.values()] == [(8, 60)] * 2
    assert all(card.separation is not None for card in each.values())


def test_folds_over_overlapping_bags_keep_the_counts_of_their_rows() -> None:
    train, labels, _ = overlapping(60, 1)
    valid, valid_labels, _ = overlapping(60, 2)
    cell = Cell(dataset="toy", method="x", bag_size=8, seed=0, folds=3)
    folds = list(make_folds(replace(train, validation=valid), labels, valid_labels, cell))
    assert sum(len(fold.bags.validation or ()) for fold in folds) == len(train) + len(valid)
    for fold in folds:
        for bags, of in ((fold.bags, fold.train_labels), (fold.bags.validation, fold.valid_labels)):
            assert bags is not None
            assert len(of) == len(bags.X)
            assert (np.diff(bags.grouping_of) >= 0).all()
            found = np.add.reduceat(of[bags.members] == 1, bags.offsets[:-1])
            np.testing.assert_array_equal(found, bags.counts[:, 0])


@quick
@given(seed=SEEDS)
def test_bags_rule_weighs_groupings_equally(seed: int) -> None:
    bags, _, _ = overlapping(seed=seed)
    p = np.random.default_rng(seed).uniform(0.1, 0.9, len(bags.X))
    shifted = bag_cross_entropy(HeldOut(p, p, bags))
    assert np.isfinite(shifted)
    means = bag_means(p, bags)
    of_groupings = []
    for g in range(len(bags.groupings)):
        inside = bags.grouping_of == g
        of_groupings.append(weighted_cross_entropy(means[inside], bags.clipped_proportions[inside], bags.sizes[inside]))
    from llpbench.experiment.rules import bag_weights

    together = weighted_cross_entropy(means, bags.clipped_proportions, bag_weights(bags))
    assert together == pytest.approx(np.mean(of_groupings))
    b = int(np.random.default_rng(seed).integers(len(bags)))
    assert means[b, 0] == pytest.approx(p[bags.members[bags.offsets[b] : bags.offsets[b + 1]]].mean())


def test_run_with_several_groupings(tmp_path: Path) -> None:
    schemes = "random[times=2],random&by-feature"
    done = llpbench(
        "run", "-m", "mean-ridge,bag-logistic", "-d", "synthetic[rows=600;dim=3]", "--schemes", schemes, "-b", "16",
        "-s", "1", "-o", "found", "--noise", "high", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 groupings, 0.1" in done.stdout
    results = Store(tmp_path / "found").results()
    assert {result.status for result in results} == {"ok"}
    assert {tuple(sorted(result.groupings)) for result in results} == {("draw 1", "draw 2"), ("by-feature", "random")}
    sd = count_noise_sd(1.0, 1e-5, sensitivity=math.sqrt(2))
    assert {result.count_sd for result in results} == {sd}
    assert all(np.isfinite(result.selected["bags"].metrics["auroc"] or np.nan) for result in results)
