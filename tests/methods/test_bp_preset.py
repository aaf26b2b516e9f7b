"""The paper's values as a preset, and the built-in run files: all of them load, resolve and plan."""

from __future__ import annotations

from pathlib import Path

import pytest

import llpbench_methods
from llpbench import UsageError
from llpbench.execution.settings import combine, read_run_file, run_files
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.options import parse_options
from llpbench.plugins.registry import load_registry
from llpbench_methods.bp.preset import paper, rows

REGISTRY = load_registry()
RUNS = sorted((Path(llpbench_methods.__file__).parent / "runs").glob("*.toml"))
LATER = {"criteo", "cifar-b", "cifar-s", "cifar10"}


@pytest.mark.parametrize(("dataset", "bag_size"), rows())
def test_every_row_resolves(dataset, bag_size):
    values = paper(dataset, bag_size)
    resolved = REGISTRY.methods["bp"].resolve(values)
    assert {name: resolved[name] for name in values} == values
    tuned = {"lambda_s", "lambda_b", "lambda_a", "lr", "weight_decay", "k", "tau", "delta_d", "rounds"}
    assert tuned < set(values)
    assert (values["edge_rule"], values["agg_reduction"], values["mlp"]) == ("sum", "sum", "paper")


def test_rows_are_those_of_the_paper():
    six = [8, 32, 128, 512, 1024, 2048]
    sizes = {name: [b for d, b in rows() if d == name] for name, _ in rows()}
    assert sizes == {"adult": six, "marketing": six, "criteo": [8, 32, 128], "cifar-b": six, "cifar-s": six}
    assert paper("adult", 128)["lambda_b"] == 0.3422
    assert paper("marketing", 1024)["tau"] == 0.03077
    assert paper("criteo", 8)["rounds"] == 200


def test_paper_preset_names_missing_rows():
    with pytest.raises(UsageError, match="adult, marketing, criteo, cifar-b, cifar-s"):
        paper("synthetic", 8)
    with pytest.raises(UsageError, match="8, 32, 128"):
        paper("criteo", 512)


def test_preset_reaches_the_cells():
    content = read_run_file(run_files(REGISTRY)["paper-preset"])
    spec = combine(content, {}, RunSettings)
    planned = plan_cells(spec, REGISTRY)
    assert len(planned) == 2 * 6 * 3
    assert {plan.cell.dataset for plan in planned} == {"adult", "marketing"}
    for plan in planned:
        expected = paper(plan.cell.dataset, plan.cell.bag_size)
        assert {name: plan.cell.params[name] for name in expected} == expected


def test_run_files_are_found():
    assert {path.stem for path in RUNS} <= set(run_files(REGISTRY))
    assert len(RUNS) >= 20


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_run_file_plans(path):
    first = path.read_text().splitlines()[0]
    assert first.startswith("# ")
    assert "aper" in first
    content = read_run_file(path)
    names = [parse_options(label)[0] for label in content["datasets"]]
    assert set(names) <= {e.spec.name for e in REGISTRY.datasets} | LATER
    missing = {name for name in names if name not in {e.spec.name for e in REGISTRY.datasets}}
    if missing:
        # A dataset to come: the rest of the file must hold on one that is there.
        content["datasets"] = ["synthetic"]
    spec = combine(content, {}, RunSettings)
    planned = plan_cells(spec, REGISTRY)
    assert planned
    assert {plan.cell.method for plan in planned} == {parse_options(label)[0] for label in spec.methods}
