"""The pages about the paper hold what results/paper.csv holds, and claims are judged by the stated rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from page_runner import ROOT, module_of_docs

import llpbench
import llpbench_methods
from llpbench import Cell, CellResult
from llpbench.contracts.result import Selected
from llpbench.plugins.registry import load_registry

tables = module_of_docs("paper_tables")
PAGES = ("paper.md", "ablations.md")
CLAIMS = tables.tomllib.loads(tables.CLAIMS.read_text(encoding="utf-8"))["claim"]


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_those_of_the_results(name: str) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert tables.MARK.search(page)
    assert tables.filled(page, tables.read_lines()) == page, f"run: python docs/paper_tables.py write docs/{name}"


ADULT = "adult[encoding=ordinal]"


def line(method: str, seed: int, auroc: float, **other: object) -> dict[str, str]:
    facts: dict[str, object] = {
        "element": "e", "method": method, "dataset": ADULT, "bag_size": 8, "noise": "none", "feature_noise": "0",
        "seed": seed, "rule": "bags", "stage": "", "selected": "yes", "auroc": auroc,
    }  # fmt: skip
    return {name: str((facts | other).get(name, "")) for name in tables.FIELDS}


def test_differences_are_paired_by_seed_and_averaged_over_settings() -> None:
    lines = [line("bp", s, 0.8 + 0.1 * s) for s in range(3)] + [line("dllp", s, 0.79 + 0.1 * s) for s in range(4)]
    lines += [line("bp", s, 0.9 + 0.01 * s, bag_size=32) for s in (0, 2)]
    lines += [line("dllp", s, 0.9, bag_size=32) for s in (0, 2)]
    claim: dict[str, Any] = {"a": "bp", "b": "dllp", "where": "adult[encoding=ordinal] @ 8,32,128"}
    found = tables.difference(claim, tables.Numbers(lines))
    assert found == pytest.approx((1.0, 0.5, 2, 3))  # 1 without spread, and 0 and 2: a standard error of 1
    than = tables.difference(
        {**claim, "where": "adult[encoding=ordinal] @ 8", "than": "adult[encoding=ordinal] @ 32"}, tables.Numbers(lines)
    )
    assert than == pytest.approx((0.0, 1.0, 2, 2))
    assert tables.difference({**claim, "where": "adult[encoding=ordinal] @ 128"}, tables.Numbers(lines)) is None


def test_sides_have_options_and_stages_of_their_own() -> None:
    lines = [line("bp", s, 0.7 + 0.01 * s, stage="iteration-1", selected="") for s in range(2)]
    lines += [line("bp", s, 0.8 + 0.01 * s, stage="iteration-2") for s in range(2)]
    lines += [line("bp[kernel=rbf]", s, 0.6, noise="high") for s in range(2)]
    numbers = tables.Numbers(lines)
    claim = {"a": "bp; stage=iteration-2", "b": "bp; stage=iteration-1", "where": "adult[encoding=ordinal] @ 8"}
    assert tables.difference(claim, numbers).mean == pytest.approx(10)
    claim = {"a": "bp", "b": "bp[kernel=rbf;mode=sum]; noise=high", "where": "adult[encoding=ordinal] @ 8"}
    assert tables.difference(claim, numbers).mean == pytest.approx(20.5)  # the selected stage, defaults left out


@pytest.mark.parametrize(
    ("kind", "mean", "error", "printed", "words"),
    [
        ("above", 2.0, 0.5, 2.0, "reproduced"),
        ("above", 0.9, 0.04, 2.0, "not reproduced"),  # positive, but less than half of the paper's
        ("above", 0.9, 0.5, 2.0, "cannot be judged"),
        ("above", 0.2, 0.01, None, "not reproduced"),
        ("above", -3.0, 1.0, 2.0, "not reproduced"),
        ("no gain", -3.0, 1.0, None, "reproduced"),
        ("no gain", 2.0, 0.5, None, "not reproduced"),
        ("level", 0.5, 0.2, None, "reproduced"),
        ("level", -0.5, 0.3, None, "cannot be judged"),
        ("level", -2.5, 0.5, None, "not reproduced"),
    ],
)
def test_verdicts_follow_the_stated_rules(
    kind: str, mean: float, error: float, printed: float | None, words: str
) -> None:
    assert tables.verdict(kind, tables.Spread(mean, error, 1, 1), printed).words == words


def test_values_of_missing_cells_are_a_dash() -> None:
    page = (
        f"<!-- values: {ADULT} @ 8,32 -->\n| m | 8 | 32 |\n|---|---|---|\n| `bp` | ? | ? |\n| `bp` (paper) | ? | ? |\n"
    )
    shown = tables.filled(page, [line("bp", 0, 0.9), line("bp", 1, 0.92)]).splitlines()
    assert shown[-2:] == ["|`bp`|91.0 (1.4)|–|", "|`bp` (paper)|89.5|87.8|"]
    with pytest.raises(ValueError, match="names 1"):
        tables.filled(page.replace("8,32", "8", 1), [])


def test_claims_name_run_files_methods_and_datasets_that_exist() -> None:
    runs = {path.stem for path in (Path(llpbench_methods.__file__).parent / "runs").glob("*.toml")}
    later, known = {"criteo", "cifar-b", "cifar-s", "cifar10"}, {spec.name for spec in load_registry().datasets.specs}
    for claim in CLAIMS:
        assert claim["group"] in ("main", "pairs", "elements")
        assert claim["run"] in {*runs, ""}
        if "verdict" in claim:
            continue
        assert claim["kind"] in ("above", "level", "no gain")
        for place in tables.places_of(claim["where"]):
            assert tables.parse_options(place.dataset)[0] in known | later
        for side in (claim["a"], claim["b"]):
            method = side.split("; ")[0].replace("tuned-RULE", "tuned-bags")
            assert method == "paper" or tables.label_of(method)


def test_collecting_a_folder_twice_replaces_it(tmp_path: Path) -> None:
    out, into = tmp_path / "mine", tmp_path / "paper.csv"
    run = llpbench.run("mean-ridge", datasets="synthetic[rows=600]", bags=[8], seeds=2, out=str(out), progress=False)
    for _ in range(2):
        tables.collect([str(out)], into)
    found = tables.read_lines(into)
    assert len(found) == 2 * len(tables.RULES)
    assert {one["element"] for one in found} == {"mine"}
    expected = {one.cell.seed: 100 * (one.selected["bags"].metrics["auroc"] or 0) for one in run.results}
    got = tables.Numbers(found).seeds("mean-ridge", tables.Place("synthetic[rows=600]", 8))
    assert got == pytest.approx(expected, abs=1e-3)


def test_stages_of_a_cell_have_lines_of_their_own() -> None:
    def chosen(report: int, stage: str) -> Selected:
        return Selected(report=report, stage=stage, metrics={"auroc": 0.5 + report / 10})

    stages = {stage: {"bags": chosen(report, stage)} for stage, report in (("iteration-1", 2), ("iteration-2", 4))}
    result = CellResult(
        id="", cell=Cell(dataset="adult", method="bp", bag_size=8, seed=3, feature_noise=0.1), status="ok",
        method_name="bp", dataset_name="adult, feature noise 0.1", selected={"bags": chosen(2, "iteration-1")},
        stages=stages, pseudo_labels={"iteration-1": 0.75}, notes={"iteration-2 bp converged": False},
        phases={"bp": 1.234}, fit_seconds=5.0,
    )  # fmt: skip
    first, second = tables.lines_of_cell("e", result)
    shown = ("dataset", "feature_noise", "stage", "selected", "auroc", "pseudo_labels", "bp", "settled")
    assert [first[name] for name in shown] == ["adult", "0.1", "iteration-1", "yes", "0.700000", "0.750000", "1.23", ""]
    assert [second[name] for name in shown] == ["adult", "0.1", "iteration-2", "", "0.900000", "", "1.23", "no"]
    only = msgspec.structs.replace(result, stages={})
    assert [one["stage"] for one in tables.lines_of_cell("e", only)] == ["iteration-1"]
