"""The bags of a cell: what is split, who is told labels, and what a method's process is handed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from helpers import make_part, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import Column, DatasetError
from llpbench.contracts.bag_card import BagCard
from llpbench.contracts.cell import Cell
from llpbench.contracts.data import Part, Split
from llpbench.contracts.job import Job, MethodFacts
from llpbench.contracts.specs import NO_BAG, BagScheme
from llpbench.execution import method_process
from llpbench.experiment import bag_card, fit_cell, forming
from llpbench.experiment.forming import deal_bags, form_bags, split_by_bags
from llpbench.plugins.registry import load_registry
from llpbench.results.blank import blank_result

REGISTRY = load_registry()


def job(**changes: Any) -> Job:
    facts: dict[str, Any] = {"dataset": "synthetic", "method": "mean-ridge", "bag_size": 8, "seed": 0}
    facts["dataset_options"] = REGISTRY.datasets["synthetic"].resolve({"rows": 600, "dim": 3})
    return Job(cell=Cell(**{**facts, **changes}), method_name="", dataset_name="", out="unused")


def a_split(n: int = 120, own: bool = False, classes: int = 2) -> Split:
    """Rows that can be told apart by column 0; with own bags of about a dozen rows each."""
    part = make_part(n, classes)
    cuts = np.split(np.arange(n), [n // 2, 3 * n // 4])
    bags = np.random.default_rng(1).integers(0, max(1, n // 12), n) if own else None
    parts = [Part(part.X[rows], part.y[rows], None if bags is None else bags[rows]) for rows in cuts]
    columns = (Column("row", "numeric"), Column("a", "numeric"), Column("b", "numeric"))
    return Split(*parts, classes=classes, columns=columns)


def rows_of(X: np.ndarray) -> list[int]:
    return [int(row) for row in X[:, 0]]


@quick
@given(
    sizes=st.lists(st.integers(1, 50), min_size=3, max_size=80),
    shares=st.tuples(st.integers(1, 90), st.integers(1, 90), st.integers(1, 90)),
    seed=st.integers(0, 99),
)
def test_every_part_gets_bags_in_about_its_share(sizes: list[int], shares: tuple[int, int, int], seed: int) -> None:
    part_of = deal_bags(np.array(sizes), list(shares), np.random.default_rng(seed))
    assert set(part_of) == {0, 1, 2}
    got = np.bincount(part_of, sizes)
    over = got / sum(sizes) - np.array(shares) / sum(shares)
    assert (over <= max(sizes) / sum(sizes) + 1e-9).all()


@pytest.mark.parametrize("scheme", ["random", "random-uneven", "own-bags", "proportion-dirichlet", "group-by"])
@quick
@given(n=st.integers(60, 240), seed=st.integers(0, 50))
def test_split_by_bags_never_cuts_a_bag(scheme: str, n: int, seed: int) -> None:
    split = a_split(n, own=True)
    given_ = {"columns": "row", "least": 1} if scheme == "group-by" else {}
    options = REGISTRY.schemes[scheme].resolve(given_)
    size = 0 if REGISTRY.schemes[scheme].sizes_itself else 8
    cell = job(split="bags", scheme=scheme, scheme_options=options, bag_size=size, seed=seed)
    seen: list[np.ndarray] = []

    def listening(pooled: Part, name: str) -> dict[str, np.ndarray]:
        groupings = number(pooled, name)
        seen.extend(groupings.values())
        return groupings

    rng = np.random.default_rng(seed)
    number = forming._bound_schemes(cell.cell, REGISTRY, split, rng)
    dealt, left_out = split_by_bags(split, listening, rng)
    bag_of_row = {row: int(bag) for row, bag in zip(range(n), seen[0], strict=True)}
    parts = [dealt.train, dealt.valid, dealt.test]
    rows = [row for part in parts for row in rows_of(part.X)]
    assert sorted(rows) == [row for row in range(n) if bag_of_row[row] != NO_BAG]
    assert left_out == np.mean(seen[0] == NO_BAG)
    held = [{bag_of_row[row] for row in rows_of(part.X)} for part in parts]
    assert all(held)
    assert not held[0] & held[1] | held[0] & held[2] | held[1] & held[2]
    labels = {
        row: label
        for part in (split.train, split.valid, split.test)
        for row, label in zip(rows_of(part.X), part.y, strict=True)
    }
    for part in parts:
        assert [labels[row] for row in rows_of(part.X)] == part.y.tolist()


def test_bags_of_a_cell_are_those_that_were_dealt() -> None:
    formed = form_bags(job(split="bags"), a_split(), REGISTRY)
    assert formed.bags.validation is not None
    train, valid, test = (rows_of(X) for X in (formed.bags.X, formed.bags.validation.X, formed.split.test.X))
    assert sorted(train + valid + test) == list(range(120))
    assert (formed.bags.sizes == 8).all()
    assert (np.bincount(formed.test_bag_of)[np.unique(formed.test_bag_of)] == 8).all()
    tuning = form_bags(job(split="bags", tuning=True), a_split(), REGISTRY)
    assert len(tuning.split.test) == len(tuning.test_bag_of) == 0
    np.testing.assert_array_equal(tuning.bags.X, formed.bags.X)


def test_split_by_rows_keeps_the_parts_and_puts_test_rows_into_bags_too() -> None:
    split = a_split()
    formed = form_bags(job(), split, REGISTRY)
    assert formed.split is split
    assert sorted(rows_of(formed.bags.X)) == rows_of(split.train.X)
    assert sorted(np.bincount(formed.test_bag_of)) == [6, 8, 8, 8]


def test_own_bags_cut_by_the_dataset_are_rejoined() -> None:
    split = a_split(own=True)
    scheme = {"scheme": "own-bags", "scheme_options": {"most": 0}, "bag_size": 0}
    inside = form_bags(job(**scheme), split, REGISTRY)
    whole = form_bags(job(**scheme, split="bags"), split, REGISTRY)
    assert whole.bags.validation is not None
    everywhere = np.concatenate([part.bag_of for part in (split.train, split.valid, split.test)])
    sizes = np.bincount(everywhere)
    for row in (rows_of(whole.bags.X[a:b]) for a, b in zip(whole.bags.offsets, whole.bags.offsets[1:], strict=False)):
        assert len({everywhere[i] for i in row}) == 1
        assert len(row) == sizes[everywhere[row[0]]]
    assert len(inside.bags) > len(whole.bags)  # each part has rows of nearly every bag
    with pytest.raises(DatasetError, match="natural bags"):
        form_bags(job(**scheme, split="bags"), a_split(), REGISTRY)


def test_rows_without_a_bag_are_left_out_and_reported() -> None:
    split = a_split()
    options = REGISTRY.schemes["group-by"].resolve({"columns": "row", "least": 1})
    cell = {"scheme": "group-by", "scheme_options": options, "bag_size": 0}
    X = split.train.X.copy()
    X[:20, 0] = -1.0  # one group of twenty rows, the other rows are groups of their own
    split = replace(split, train=replace(split.train, X=X))
    limited = {**cell, "scheme_options": {**options, "least": 1, "most": 5}}
    formed = form_bags(job(**limited), split, REGISTRY)
    assert formed.left_out == pytest.approx(20 / 60)
    assert len(formed.bags.X) == len(formed.train_labels) == 40
    with pytest.raises(DatasetError, match=r"forms no bag from the 60 training rows.*least=21"):
        form_bags(job(**{**cell, "scheme_options": {**options, "least": 21}}), split, REGISTRY)
    with pytest.raises(DatasetError, match="at least 3 bags, got 1"):
        form_bags(job(**{**cell, "scheme_options": {**options, "least": 20}}, split="bags"), split, REGISTRY)


def spying_scheme(X: np.ndarray, bag_size: int, *, columns: Any, rng: Any, **told: Any) -> np.ndarray:
    SPIED.append(told)
    return np.arange(len(X)) // bag_size


SPIED: list[dict[str, Any]] = []


@pytest.mark.parametrize("uses_labels", [False, True])
def test_only_schemes_with_uses_labels_receive_labels(uses_labels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = BagScheme(name="spy", factory=f"{__name__}:spying_scheme", uses_labels=uses_labels)
    monkeypatch.setattr(BagScheme, "load", lambda _: spying_scheme)
    SPIED.clear()
    split = a_split()
    number = forming._bound_scheme(job().cell, job().cell.schemes[0], spec, split, np.random.default_rng(0))
    number(split.train, "training")
    (told,) = SPIED
    assert set(told) == ({"labels"} if uses_labels else set())
    if uses_labels:
        np.testing.assert_array_equal(told["labels"], split.train.y)
        with pytest.raises(ValueError, match="read-only"):
            told["labels"][0] = 1


@pytest.mark.parametrize("scheme", ["random", "proportion-dirichlet"])
@pytest.mark.parametrize("split", ["rows", "bags"])
def test_method_process_receives_no_bag_card(scheme: str, split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    marked = BagCard(123_457, 7, 0.123456789, (1.0,) * 5, 0.987654321, 7.7777777, 6.6666666)
    monkeypatch.setattr(bag_card, "make_card", lambda *_, **__: marked)
    options = REGISTRY.schemes[scheme].resolve({})
    a_job = job(scheme=scheme, scheme_options=options, noise="high", split=split)
    result = blank_result(a_job, "ok")
    data = fit_cell.prepare_cell(a_job, REGISTRY, result)
    assert result.card == marked
    handed: dict[str, np.ndarray] = {}
    share = method_process.share

    def listening(arrays: dict[str, np.ndarray]) -> Any:
        handed.update(arrays)
        return share(arrays)

    monkeypatch.setattr(method_process, "share", listening)
    with method_process._shared(data, MethodFacts(), last=True) as (material, _):
        words = msgspec.msgpack.encode(material)
    parts = ("X", "offsets", "counts")
    assert set(handed) == {"test.X", *(f"{part}.{name}" for part in ("train", "valid") for name in parts)}
    everything = words + b"".join(np.ascontiguousarray(array).tobytes() for array in handed.values())
    for number in (marked.left_out, marked.proportion_sd, marked.spread, marked.separation):
        assert np.float64(number).tobytes() not in everything
        assert np.float64(number).byteswap().tobytes() not in everything
    # Rows of X are as they were, so no column was added that tells of labels, and their order inside bags is random.
    assert handed["train.X"].shape[1] == 3
    facts = {"arrays", "classes", "count_sd", "columns", "groupings", "overlapping", "last"}
    assert set(material.__struct_fields__) == facts


def test_order_in_bags_formed_by_labels_is_random() -> None:
    options = REGISTRY.schemes["proportion-dirichlet"].resolve({"concentration": 3.0})
    cell = job(scheme="proportion-dirichlet", scheme_options=options, bag_size=50)
    formed = form_bags(cell, a_split(4000), REGISTRY)
    place = np.arange(len(formed.train_labels)) % 50
    first, second = (formed.train_labels[(place < 25) == half].mean() for half in (True, False))
    assert abs(first - second) < 4 * np.sqrt(0.5 / len(formed.train_labels))
