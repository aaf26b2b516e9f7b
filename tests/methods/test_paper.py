"""The paper's numbers: complete, in range, and for methods that exist here."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from llpbench import Reference
from llpbench.plugins.options import expand, parse_options
from llpbench.plugins.registry import load_registry
from llpbench.tuning.request import plan_tune
from llpbench.tuning.searches import plan_searches
from llpbench.tuning.study import Journal
from llpbench_methods.paper import llpbench_references

REFERENCES = llpbench_references()


def value(dataset: str, title: str, bag_size: int | None, **where: str) -> Reference:
    (found,) = [
        r
        for r in REFERENCES
        if (r.dataset, r.title, r.bag_size) == (dataset, title, bag_size)
        and all(getattr(r, k) == v for k, v in where.items())
    ]
    return found


def test_values_as_printed() -> None:
    dllp = value("adult[encoding=ordinal]", "DLLP", 2048)
    assert (dllp.mean, dllp.sd, dllp.method) == (pytest.approx(0.6258), pytest.approx(0.0218), "dllp")
    assert value("marketing[encoding=released]", "Ours-Itr-2", 512).mean == pytest.approx(0.8168)
    assert value("adult[encoding=ordinal]", "Instance-MLP", None).bound
    assert value("cifar-b", "Ours-Itr-1", 8, noise="high").mean == pytest.approx(0.9099)
    assert value("cifar10", "DLLP", 32).metric == "accuracy"
    assert value("adult[encoding=ordinal]", "Ours-Itr-1, pseudo-labels", 8).stage == "iteration-1"


def test_missing_paper_values_have_a_reason() -> None:
    assert value("cifar-s", "LLP-VAT", 512).note == "ran out of memory"
    without = [r for r in REFERENCES if r.mean is None]
    assert len(without) == 10
    assert all(r.note for r in without)


def test_every_table_of_the_paper_is_included() -> None:
    tables = Counter(
        (r.metric, r.dataset, r.noise) for r in REFERENCES if not r.bound and r.title.startswith("Ours-Itr-2")
    )
    assert tables["auroc", "adult[encoding=ordinal]", "none"] == 12  # with the max-product variant
    assert tables["auroc", "criteo", "none"] == 3
    assert len({(r.dataset, r.title, r.bag_size, r.noise, r.metric) for r in REFERENCES}) == len(REFERENCES)


def test_values_are_shares_selected_by_labels() -> None:
    for r in REFERENCES:
        assert r.rule == "instances"
        assert r.mean is None or 0.4 < r.mean < 1
        assert r.sd is None or 0 < r.sd < 0.2


def test_paper_protocol_searches_every_method_of_the_main_tables(tmp_path: Path) -> None:
    searched = set()
    for config, trials in (("paper-protocol", 12), ("paper-protocol-baselines", 6)):
        asked = {"config": config, "out": str(tmp_path / config), "datasets": ["adult"], "bags": [8]}
        request = plan_tune(asked)
        spec = request.settings
        assert (spec.shared, spec.per_seed, spec.seed_list) == (True, False, [0])
        assert set(spec.rule) == {"instances", "bags"}
        searches = plan_searches(spec, request.registry, Journal(tmp_path / config))
        assert {search.wanted for search in searches} == {trials}
        for search in searches:
            assert {"lr", "weight_decay", "batch_rows"} <= {d.name for d in search.space}
        searched |= set(spec.methods)
    tables = {
        r.method
        for r in REFERENCES
        if (r.dataset, r.metric, r.noise) == ("adult[encoding=ordinal]", "auroc", "none") and not r.bound
    }
    assert searched == {method for method in tables if "[" not in method}


def test_paper_protocol_has_the_ranges_of_the_paper_for_bp(tmp_path: Path) -> None:
    request = plan_tune({"config": "paper-protocol", "out": str(tmp_path), "methods": ["bp"], "datasets": ["adult"]})
    space = {d.name: d for d in plan_searches(request.settings, request.registry, Journal(tmp_path))[0].space}
    ends = {name: (d.low, d.high) for name, d in space.items()}
    assert ends["lambda_s"] == ends["lambda_b"] == (1e-4, 200)
    assert (ends["k"], ends["tau"], ends["lambda_a"], ends["delta_d"]) == ((1, 30), (0, 1), (0, 10), (1e-4, 1))
    assert (space["delta_d"].words, space["tau"].words, space["lambda_b"].words) == ((None,), ("rate",), ("auto",))


def test_methods_exist_here_with_these_settings() -> None:
    registry = load_registry()
    for label in {r.method for r in REFERENCES}:
        name, options = parse_options(label)
        assert len(expand(registry.methods[name], options)) == 1
