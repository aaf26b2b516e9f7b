"""Suites: frozen grids by name. Their cells are those of ordinary runs, and a changed default is never unnoticed."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from cli_runner import llpbench
from helpers import make_result, quick
from hypothesis import given
from hypothesis import strategies as st
from plugin_install import SOURCES, with_plugins

from llpbench.board.content.facts import SuiteAbout
from llpbench.board.content.folder import Content
from llpbench.board.content.lines import seal
from llpbench.board.publish import refresh_suites
from llpbench.cli.suite import list_suites, methods_by_role
from llpbench.contracts.errors import PluginError, UsageError
from llpbench.contracts.specs import MethodSpec, Param
from llpbench.execution.suite_run import plan_suite_run
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.suites.coverage import coverage, own_coverage, suite_coverage
from llpbench.experiment.suites.file import Suite, find_suite, read_suite, suite_files
from llpbench.experiment.suites.frozen import Drift, check_suite, drifts, with_frozen
from llpbench.experiment.suites.plan import Limits, all_cells, plan_suite
from llpbench.plugins.loading import Plugin
from llpbench.plugins.registry import Entry, Registry, load_registry
from llpbench.tools.suite import changes, freeze_suite

REGISTRY = load_registry()
SMALL = "synthetic[rows=400;dim=4]"
DRAFT = f"""
name = "draft-1"
version = "1"
title = "Generated data"
citation = "draft-1"
protocol = 2
methods = ["mean-ridge", "bag-logistic", "best-feature", "supervised"]

[parts.random]
title = "Random bags"

[[parts.random.blocks]]
title = "two sizes"
datasets = ["{SMALL}", "synthetic[rows=500;dim=4]"]
bags = [4, 8]
seeds = 2

[[parts.random.blocks]]
title = "more seeds"
datasets = ["{SMALL}"]
bags = [4, 8]
seeds = "2-3"
methods = ["mean-ridge"]

[parts.mixed]
title = "Mixed bags"

[[parts.mixed.blocks]]
title = "mixtures"
datasets = ["{SMALL}"]
schemes = ["cluster-dirichlet"]
bags = [8]
noise = ["none", "high"]
seeds = 1
"""


@pytest.fixture
def registry() -> Registry:
    return REGISTRY


@pytest.fixture
def draft(tmp_path: Path, registry: Registry) -> Path:
    """The file of a suite, frozen at today's defaults."""
    path = tmp_path / "draft-1.toml"
    path.write_text(DRAFT)
    freeze_suite(path, registry)
    return path


def changed(registry: Registry, name: str, change: Callable[[MethodSpec], MethodSpec]) -> Registry:
    """A registry in which one method is another."""
    entry = registry.methods.entry(name)
    methods = replace(registry.methods, entries=dict(registry.methods.entries))
    methods.entries[name] = Entry(change(entry.spec), entry.plugin)
    return replace(registry, methods=methods)


def with_default(spec: MethodSpec, name: str, default: float) -> MethodSpec:
    params = tuple(replace(p, default=default) if p.name == name else p for p in spec.params)
    return replace(spec, params=params)


# -- cells -------------------------------------------------------------------------------------------------------------


def test_suite_cells_equal_cells_of_ordinary_runs(draft: Path, registry: Registry) -> None:
    suite = read_suite(draft)
    (mixed,) = plan_suite(suite, registry, Limits(part="mixed"))
    spec = RunSettings(
        methods=suite.methods, datasets=[SMALL], schemes=["cluster-dirichlet"], bags=[8], noise=["none", "high"],
        seeds=1,
    )  # fmt: skip
    assert mixed.cells == plan_cells(spec, registry)
    assert [plan.cell.id for plan in mixed.cells] == [plan.cell.id for plan in plan_cells(spec, registry)]
    assert {plan.method_name for plan in mixed.cells} == set(suite.methods)


def test_cell_of_two_blocks_is_planned_once(draft: Path, registry: Registry) -> None:
    blocks = plan_suite(read_suite(draft), registry)
    ids = [plan.cell.id for plan in all_cells(blocks)]
    assert len(ids) == len(set(ids))
    bound = [plan.cell for plan in all_cells(blocks) if plan.oracle]
    assert len(bound) == 4  # two datasets, two seeds; the other part has one of them again
    assert sum(plan.oracle for block in blocks for plan in block.cells) > 4


def names(blocks: list) -> set[str]:  # type: ignore[type-arg]
    return {plan.method_name for block in blocks for plan in block.cells}


def test_suite_cells_can_be_selected(draft: Path, registry: Registry) -> None:
    suite = read_suite(draft)
    taken = plan_suite(suite, registry, Limits(methods=["mean-ridge"], seeds=[2], bags=[8], datasets=[SMALL]))
    assert [(p.cell.seed, p.cell.bag_size, p.method_name) for p in all_cells(taken)] == [(2, 8, "mean-ridge")]
    assert names(plan_suite(suite, registry, Limits(methods=["bag-logistic"]))) == {"bag-logistic"}
    every = plan_suite(suite, registry, Limits(datasets=["synthetic"]))
    assert all_cells(every) == all_cells(plan_suite(suite, registry))
    noisy = plan_suite(suite, registry, Limits(noise=["high"], methods=["mean-ridge"]))
    assert [(p.cell.noise, p.cell.scheme) for p in all_cells(noisy)] == [("high", "cluster-dirichlet")]
    mixed = plan_suite(suite, registry, Limits(schemes=["cluster-dirichlet"]))
    assert all_cells(mixed) == all_cells(plan_suite(suite, registry, Limits(part="mixed")))


def test_own_method_runs_wherever_all_methods_of_the_suite_run(draft: Path, registry: Registry) -> None:
    suite = read_suite(draft)
    mine = plan_suite(suite, registry, Limits(methods=["mean-map", "mean-ridge[penalty=2]"]))
    seeds = {
        (name, block.block.title): {p.cell.seed for p in block.cells if p.method_name == name}
        for name in names(mine)
        for block in mine
    }
    assert seeds["mean-map", "two sizes"] == {0, 1}
    assert seeds["mean-map", "more seeds"] == set()
    assert seeds["mean-ridge[penalty=2]", "more seeds"] == {2, 3}
    assert seeds["mean-map", "mixtures"] == {0}


def test_status_reports_coverage_of_own_methods(draft: Path, registry: Registry) -> None:
    """All of its cells are there, and "0 of 32 cells" of the others' said the opposite."""
    suite = read_suite(draft)
    mine = plan_suite(suite, registry, Limits(methods=["mean-map", "mean-ridge[penalty=2]"]))
    results = [make_result(p.cell, protocol=2, method_name=p.method_name) for p in all_cells(mine)]
    lines = [part.line for part in own_coverage(suite, registry, results)]
    assert lines == [
        "random, mean-map: all 8 cells",
        "mixed, mean-map: all 2 cells",
        "random, mean-ridge[penalty=2]: all 12 cells",
        "mixed, mean-ridge[penalty=2]: all 2 cells",
    ]
    (part,) = own_coverage(suite, registry, results[:1], "random")
    assert part.line == "random, mean-map: 1 of 8 cells; missing synthetic (7)"
    # Further seeds of a method of the suite are none of one's own; a method that is not installed is left out.
    cell = msgspec.structs.replace(all_cells(plan_suite(suite, registry))[0].cell, seed=77)
    further = [make_result(cell), make_result(msgspec.structs.replace(cell, method="elsewhere"))]
    assert own_coverage(suite, registry, further) == []


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(methods=["mean-rigde"]), ["unknown method", "'mean-ridge'"]),
        (Limits(datasets=["synthetik"]), ["dataset of suite draft-1", "'synthetic'"]),
        (Limits(schemes=["cluster-dirichlit"]), ["bag scheme of suite draft-1", "'cluster-dirichlet'"]),
        (Limits(noise=["hihg"]), ["noise level of suite draft-1", "'high'"]),
        (Limits(noise=["high"], schemes=["random"]), ["no cells that match all options"]),
        (Limits(seeds=[0, 7]), ["--seeds 7", "0, 1, 2, 3"]),
        (Limits(bags=[5]), ["--bags 5", "4, 8"]),
        (Limits(part="mixed", seeds=[3]), ["--seeds 3", "draft-1/mixed"]),
        (Limits(methods=["bag-logistic"], seeds=[3]), ["no cells that match all options"]),
        (Limits(part="random2"), ["part of suite draft-1", "'random'"]),
    ],
)
def test_selecting_what_a_suite_lacks_is_an_error(
    draft: Path, registry: Registry, limits: Limits, words: list[str]
) -> None:
    with pytest.raises(UsageError) as error:
        plan_suite(read_suite(draft), registry, limits)
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(
    "settings", [{"epsilon": [3.0]}, {"delta": 1e-6}, {"preset": "paper"}, {"folds": 3}, {"backend": "torch"}]
)
def test_settings_fixed_by_a_suite_are_rejected(draft: Path, registry: Registry, settings: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(settings))} does not go with --suite"):
        plan_suite_run({**settings, "suite": str(draft)}, registry)


def test_unknown_suite_is_an_error(tmp_path: Path, registry: Registry) -> None:
    with pytest.raises(UsageError, match=r"unknown suite 'llpbench-2026\.11'.*Did you mean 'llpbench-2026\.1'"):
        find_suite("llpbench-2026.11", registry)
    with pytest.raises(UsageError, match="no such file"):
        find_suite(str(tmp_path / "none.toml"), registry)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "draft-1"', 'name = "draft-2"', "that of the file"),
        ("seeds = 1", "sedes = 1", "sedes"),
        ('methods = ["mean-ridge"]', 'methods = ["mean-rigde"]', "Did you mean 'mean-ridge'"),
        ('schemes = ["cluster-dirichlet"]', "schemes = []", "--schemes is empty"),
        ("protocol = 2", "protocol = 2 2", "line"),
        ("bags = [8]", "bags = []", "need a size"),
    ],
)
def test_invalid_suite_file_is_an_error(
    tmp_path: Path, draft: Path, registry: Registry, old: str, new: str, words: str
) -> None:
    text = draft.read_text()
    assert text.count(old) == 1
    draft.write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=re.escape(words)):
        plan_suite(read_suite(draft), registry)


# -- frozen values -----------------------------------------------------------------------------------------------------


def test_changed_default_is_reported_and_the_frozen_value_is_used(draft: Path, registry: Registry) -> None:
    suite = read_suite(draft)
    before = {plan.cell.id for plan in all_cells(plan_suite(suite, registry))}
    assert check_suite(suite, registry) == []
    moved = changed(registry, "bag-logistic", lambda spec: with_default(spec, "penalty", 7.0))
    (note,) = check_suite(suite, moved)
    assert "bag-logistic: penalty is 3 in the suite, 7 here" in note
    planned = all_cells(plan_suite(suite, moved))
    assert {plan.cell.id for plan in planned} == before
    assert "bag-logistic[penalty=3]" in {plan.method_name for plan in planned}


def test_given_values_override_frozen_ones(draft: Path, registry: Registry) -> None:
    suite = read_suite(draft)
    moved = changed(registry, "bag-logistic", lambda spec: with_default(spec, "penalty", 7.0))
    text = with_frozen(moved.methods, "bag-logistic[penalty=1;2;steps=9]", suite.frozen.methods)
    assert text == "bag-logistic[penalty=1;2;steps=9]"
    text = with_frozen(moved.methods, "bag-logistic[steps=9]", suite.frozen.methods)
    assert text == "bag-logistic[steps=9;penalty=3]"


@given(st.floats(1e-3, 1e3) | st.integers(1, 1000))
@quick
def test_frozen_numbers_round_trip_exactly(value: float) -> None:
    spec = REGISTRY.methods["bag-logistic"]
    frozen = {"bag-logistic": {p.name: p.default for p in spec.params} | {"penalty": float(value)}}
    text = with_frozen(REGISTRY.methods, "bag-logistic", frozen)  # type: ignore[arg-type]
    (plan,) = plan_cells(RunSettings(methods=[text], datasets=[SMALL], bags=[8], seeds=1), REGISTRY)
    assert plan.cell.params["penalty"] == float(value)


def test_other_parameters_are_rejected(draft: Path, registry: Registry) -> None:
    suite = read_suite(draft)
    new = changed(registry, "mean-ridge", lambda spec: replace(spec, params=(*spec.params, Param("more", 1))))
    with pytest.raises(UsageError, match=r"frozen by llpbench[\s\S]*mean-ridge: it has a new parameter more"):
        check_suite(suite, new)
    gone = changed(registry, "mean-ridge", lambda spec: replace(spec, params=spec.params[1:]))
    with pytest.raises(UsageError, match=f"no parameter {registry.methods['mean-ridge'].params[0].name} any more"):
        plan_suite(suite, gone)
    later = Param("more", 1, omit_default=True)
    assert check_suite(suite, changed(registry, "mean-ridge", lambda s: replace(s, params=(*s.params, later)))) == []


def test_another_protocol_or_rule_is_rejected(draft: Path, registry: Registry) -> None:
    suite = read_suite(draft)
    with pytest.raises(UsageError, match="protocol 1"):
        check_suite(msgspec.structs.replace(suite, protocol=1), registry)
    rules = {**suite.frozen.rules, "bags": 1}
    older = msgspec.structs.replace(suite, frozen=msgspec.structs.replace(suite.frozen, rules=rules))
    with pytest.raises(UsageError, match="version 1 of rule bags"):
        check_suite(older, registry)


def test_suite_without_frozen_values_is_rejected(tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "draft-1.toml"
    path.write_text(DRAFT)
    with pytest.raises(UsageError, match="llpbench suite freeze FILE"):
        check_suite(read_suite(path), registry)


def test_freeze_keeps_the_rest_of_the_file_and_is_idempotent(draft: Path, registry: Registry) -> None:
    once = draft.read_text()
    assert once.startswith(DRAFT.rstrip())
    assert freeze_suite(draft, registry)[1] == []
    assert draft.read_text() == once
    moved = changed(registry, "bag-logistic", lambda spec: with_default(spec, "penalty", 7.0))
    suite, lines = freeze_suite(draft, moved)
    assert lines == ["~ methods.bag-logistic.penalty = 7.0, was 3.0"]
    assert drifts(suite, registry) == [Drift("method", "bag-logistic", {"penalty": (7.0, 3.0)})]


def test_freeze_rejects_published_suites(draft: Path, registry: Registry) -> None:
    draft.write_text(draft.read_text().replace('version = "1"', 'version = "1"\npublished = "2026-01-01"'))
    with pytest.raises(UsageError, match="its values never change"):
        freeze_suite(draft, registry)


def test_duplicate_suite_name_affects_only_suites(
    draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: Registry
) -> None:
    package = types.ModuleType("twice")
    package.__path__ = [str(tmp_path / "twice")]
    (tmp_path / "twice" / "suites").mkdir(parents=True)
    (tmp_path / "twice" / "suites" / "llpbench-2026.1.toml").write_text("")
    monkeypatch.setitem(sys.modules, "twice", package)
    both = replace(registry, plugins=[*registry.plugins, Plugin("twice", "twice", "1", package)])
    with pytest.raises(PluginError, match=r"'llpbench-2026\.1' is shipped twice"):
        find_suite("llpbench-2026.1", both)
    assert find_suite(str(draft), both)[0].name == "draft-1"
    assert "shipped twice" in next(iter(list_suites(both).values()))


# -- what there is of it -----------------------------------------------------------------------------------------------


def test_coverage_in_one_line_for_each_part(draft: Path, registry: Registry) -> None:
    blocks = plan_suite(read_suite(draft), registry)
    cells = all_cells(blocks)
    assert [part.line for part in coverage(blocks, [])] == [
        "random: 0 of 32 cells; missing synthetic (32)",
        "mixed: 0 of 7 cells; missing synthetic (7)",
    ]
    results = [make_result(plan.cell, protocol=2) for plan in cells if plan.cell.method != "best-feature"]
    results[0] = make_result(cells[0].cell, status="timeout", protocol=2)
    assert [part.line for part in coverage(blocks, results)] == [
        "random: 24 of 32 cells, 1 of them failed; missing synthetic (8), only of best-feature",
        "mixed: 5 of 7 cells; missing synthetic (2), only of best-feature",
    ]
    every = [make_result(plan.cell, protocol=2) for plan in cells]
    assert [part.line for part in coverage(blocks, every)] == ["random: all 32 cells", "mixed: all 7 cells"]
    older = [make_result(plan.cell, protocol=1) for plan in cells]
    assert [part.done for part in coverage(blocks, older)] == [0, 0]


def test_coverage_of_a_leaderboard(registry: Registry) -> None:
    suite, _ = find_suite("llpbench-2026.1", registry)
    content = Content()
    refresh_suites(content, registry)
    assert content.facts.suites == {}  # nothing of it is there: nothing is said
    cells = all_cells(plan_suite(suite, registry, Limits(part="natural", datasets=["flights"])))
    content.lines = {plan.cell.id: seal(make_result(plan.cell, protocol=2), "") for plan in cells}
    content.facts.suites["gone-1"] = SuiteAbout(parts=("random: all 3 cells",))
    refresh_suites(content, registry)
    assert set(content.facts.suites) == {"gone-1", suite.name}
    said = content.facts.suites[suite.name]
    expected = suite_coverage(suite, registry, [line.result for line in content.lines.values()])
    assert (said.state, said.parts) == (suite.state, tuple(part.line for part in expected))
    assert any(line.startswith(f"natural: {len(cells)} of ") for line in said.parts)


PRIVACY = plan_suite(find_suite("llpbench-2026.1", REGISTRY)[0], REGISTRY, Limits(part="privacy", seeds=[0]))


@given(st.data())
@quick
def test_coverage_counts_every_cell_once(data: st.DataObject) -> None:
    blocks, cells = PRIVACY, all_cells(PRIVACY)
    kept = data.draw(st.sets(st.sampled_from([plan.cell.id for plan in cells]), max_size=30))
    (part,) = coverage(blocks, [make_result(p.cell, protocol=2) for p in cells if p.cell.id in kept])
    assert (part.planned, part.done) == (len(cells), len(kept))
    assert sum(part.datasets.values()) == sum(part.methods.values()) == part.planned - part.done


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_run_status_table_and_resume(draft: Path, tmp_path: Path) -> None:
    work = draft.parent
    part = f"{draft.name}/mixed"
    done = llpbench("run", "--suite", part, "-m", "mean-ridge", "-j", "1", "--quiet", cwd=work)
    assert done.returncode == 0, done.stderr
    assert "mixed: 2 of 7 cells; missing synthetic (5)" in done.stdout
    assert "results: results/draft-1" in done.stderr
    again = llpbench("run", "--suite", part, "-m", "mean-ridge,best-feature", "--dry-run", cwd=work)
    assert "2 of 4 cells would run, 2 kept; results in results/draft-1" in again.stderr
    assert "draft-1 is a draft" in again.stderr
    status = llpbench("status", "--suite", draft.name, "results/draft-1", cwd=work)
    assert status.stdout.splitlines() == [
        "random: 0 of 32 cells; missing synthetic (32)",
        "mixed: 2 of 7 cells; missing synthetic (5)",
    ]
    facts = json.loads(llpbench("status", "--suite", draft.name, "--json", cwd=work).stdout)
    assert facts[1]["rivals"] == 4
    assert facts[1]["methods"] == {"bag-logistic": 2, "best-feature": 2, "supervised": 1}
    table = llpbench("table", "--suite", draft.name, "--format", "markdown", cwd=work)
    assert table.returncode == 0, table.stderr
    assert table.stdout.count("| mean-ridge |") == 3  # without noise, with noise, the appendix
    both = llpbench("run", "--suite", part, "--config", "time", cwd=work)
    assert both.returncode == 2
    assert "--suite and --config" in both.stderr


@pytest.mark.slow
def test_python_runs_the_same_cells(draft: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import llpbench as package

    monkeypatch.chdir(draft.parent)
    results = package.run(suite=f"{draft}/mixed", methods="mean-ridge", jobs=1, progress=False)
    suite = read_suite(draft)
    planned = plan_suite(suite, results.registry, Limits(part="mixed", methods=["mean-ridge"]))
    assert [p.cell for p in results.planned] == [p.cell for p in all_cells(planned)]
    assert str(results.folder) == "results/draft-1"


def test_list_show_and_check(draft: Path, tmp_path: Path) -> None:
    listed = llpbench("list", "suites", cwd=tmp_path)
    assert re.search(r"^suites\n  llpbench-2026\.1 ", listed.stdout)
    assert json.loads(llpbench("list", "--json", cwd=tmp_path).stdout)["suites"][0]["name"] == "llpbench-2026.1"
    shown = llpbench("show", draft.name, cwd=draft.parent).stdout
    assert "cells     38" in shown
    assert "controls  best-feature" in shown
    assert "citation  draft-1" in shown
    assert "only mean-ridge" in shown
    typo = llpbench("show", "llpbench-2026.11", cwd=tmp_path)
    assert "Did you mean 'llpbench-2026.1'" in typo.stderr
    assert llpbench("suite", "check", draft.name, cwd=draft.parent).returncode == 0
    draft.write_text(draft.read_text().replace("penalty = 3.0", "penalty = 4.0"))
    drift = llpbench("suite", "check", draft.name, cwd=draft.parent)
    assert (drift.returncode, "penalty is 4 in the suite, 3 here" in drift.stdout) == (1, True)
    frozen = llpbench("suite", "freeze", draft.name, cwd=draft.parent)
    assert "~ methods.bag-logistic.penalty = 3.0, was 4.0" in frozen.stdout


def test_part_is_shown_alone(draft: Path, tmp_path: Path) -> None:
    shown = llpbench("show", f"{draft.name}/mixed", cwd=draft.parent)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("draft-1/mixed\n  Generated data\n")
    assert "cells     7\n" in shown.stdout
    assert "more seeds" not in shown.stdout
    assert "run it: llpbench run --suite draft-1.toml/mixed\n" in shown.stdout
    whole = llpbench("show", draft.name, cwd=draft.parent).stdout
    assert "--suite draft-1.toml\n  a part: --suite draft-1.toml/random\n" in whole
    facts = json.loads(llpbench("show", f"{draft.name}/mixed", "--json", cwd=draft.parent).stdout)
    assert (facts["name"], list(facts["parts"])) == ("draft-1", ["mixed"])
    assert "privacy  " in llpbench("show", "llpbench-2026.1/privacy", cwd=tmp_path).stdout
    typo = llpbench("show", "llpbench-2026.1/privac", cwd=tmp_path)
    assert (typo.returncode, "Did you mean 'privacy'" in typo.stderr) == (2, True)


def test_methods_of_a_part_are_those_that_run_in_it(registry: Registry, tmp_path: Path) -> None:
    path = tmp_path / "draft-1.toml"
    path.write_text(DRAFT.replace("seeds = 1\n", 'seeds = 1\nmethods = ["mean-ridge"]\n'))
    suite = read_suite(path)
    assert methods_by_role(suite, registry, "mixed") == {"methods": ["mean-ridge"], "controls": [], "bounds": []}
    assert methods_by_role(suite, registry)["controls"] == ["best-feature"]


@pytest.mark.parametrize("verb", ["table", "status"])
@pytest.mark.parametrize("name", ["", " "])
def test_empty_name_is_rejected(tmp_path: Path, verb: str, name: str) -> None:
    done = llpbench(verb, "--suite", name, cwd=tmp_path)
    assert done.returncode == 2
    assert "--suite needs the name of a suite" in done.stderr


def test_cite_prints_the_entry_of_the_suites_page(draft: Path, tmp_path: Path) -> None:
    done = llpbench("cite", "llpbench-2026.1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (SOURCES.parents[1] / "docs" / "suites.md").read_text(encoding="utf-8")
    assert f"```text\n{done.stdout}```\n" in page
    assert "version 2026.1, part random, protocol 2" in llpbench("cite", "llpbench-2026.1/random", cwd=tmp_path).stdout
    draft.write_text(draft.read_text().replace('citation = "draft-1"', 'citation = "Doe & Roe (2026)"'))
    own = llpbench("cite", draft.name, cwd=draft.parent).stdout
    assert r"howpublished = {Doe \& Roe (2026)}," in own
    assert "note      = {Suite version 1, a draft, protocol 2, llpbench " in own
    assert "year" not in own
    unknown = llpbench("cite", "llpbench-2026.11", cwd=tmp_path)
    assert (unknown.returncode, "Did you mean 'llpbench-2026.1'" in unknown.stderr) == (2, True)


@pytest.mark.slow
def test_plugin_ships_a_suite(tmp_path: Path) -> None:
    environment = with_plugins("tiny-suite")
    listed = llpbench("list", "suites", cwd=tmp_path, **environment)
    assert "tiny-1" in listed.stdout
    done = llpbench("run", "--suite", "tiny-1", "-j", "1", "--quiet", cwd=tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("random: all 4 cells\n")
    table = llpbench("table", "--suite", "tiny-1", "--format", "csv", cwd=tmp_path, **environment).stdout
    assert "one-column[column=2]" in table  # frozen; the method's default is another now
    assert "one-column[column=1]" in table


# -- the suite of the package ------------------------------------------------------------------------------------------


def built_in(registry: Registry) -> Suite:
    return find_suite("llpbench-2026.1", registry)[0]


def test_frozen_values_are_todays_defaults(registry: Registry) -> None:
    """Fails when a default changes that a suite froze: what to do stands in the message."""
    suite = built_in(registry)
    lines = [drift.words for drift in drifts(suite, registry)]
    advice = (
        "A default changed that llpbench-2026.1 froze. While it is a draft (no 'published' day in its file):\n"
        "  llpbench suite freeze methods/llpbench_methods/suites/llpbench-2026.1.toml\n"
        "Once it is published its file never changes: copy it to the next version, change name and version, empty "
        "'published', freeze the copy, and let this test look at that one."
    )
    assert [line for line in lines if line not in CHANGED] == [], f"{advice}\n" + "\n".join(lines)
    assert set(lines) >= CHANGED


CHANGED = {"method bp-field: relaxed is auto in the suite, evidence here"}
"""Defaults that changed after llpbench-2026.1 was published, for the next suite to freeze."""


PUBLISHED = {
    "llpbench-2026.1": "03bd90ba7725cd707364622f2e1d4e078aa1a4cb424a67bd6c08c9d999f6e40c",
}
"""For every published suite of the package, the sha256 of its file. Lines are added here, never changed."""

RENAMED = {"llpbench-2026.1": [(r"#\n# One name has changed since: .*? are new\.\n", ""), (r"\bbp-field\b", "bp")]}
"""How to undo the renames that a suite's file and docs/suites.md announce: patterns and what stood there before."""


def as_published(name: str, text: str) -> bytes:
    """The file of a suite with every announced rename undone."""
    for pattern, before in RENAMED.get(name, []):
        text, found = re.subn(pattern, before, text, flags=re.DOTALL)
        assert found, f"the rename of {pattern!r} is not in the file: remove it from RENAMED"
    return text.encode()


def test_published_suites_never_change(registry: Registry) -> None:
    for name, path in suite_files(registry).items():
        if read_suite(path).published:
            digest = hashlib.sha256(as_published(name, path.read_text(encoding="utf-8"))).hexdigest()
            assert name in PUBLISHED, f"{name} is published: add its digest to PUBLISHED: {digest}"
            assert digest == PUBLISHED[name], f"{path} was changed after its publication; restore it"
    assert set(PUBLISHED) <= set(suite_files(registry)), "a published suite is gone"


def test_suite_has_the_cells_of_its_page(registry: Registry) -> None:
    blocks = plan_suite(built_in(registry), registry)
    counts = {part.part: part.planned for part in coverage(blocks, [])}
    # 18 methods beside the bound; the bound once for each dataset and seed
    random = 18 * 2 * 6 * 5 + 10 + 4 * 2 * 6 * 5 + 18 * 3 * 3 + 3
    images = 18 * 2 * 6 * 3 + 6 + 18 * 4 * 3 + 3
    natural = 3 * (18 * 2 + 2) + 2 * 3 * (18 * 2 + 1) + 2 * (13 * 19 + 39 * 4)
    privacy = 18 * 2 * 4 * 2 * 3 + 6
    assert counts == {"random": random, "images": images, "natural": natural, "privacy": privacy}
    page = (SOURCES.parents[1] / "docs" / "suites.md").read_text(encoding="utf-8")
    assert f"{len(all_cells(blocks)):,} cells" in page


def test_landscape_parts_cover_all_bag_sets(registry: Registry) -> None:
    sets = registry.datasets["landscape"].param("set").choices
    quarter, rest = (
        [text.partition("=")[2].rstrip("]") for text in block.datasets]
        for _, block in built_in(registry).blocks("natural")
        if block.average
    )
    assert quarter == list(sets[::4])
    assert sorted([*quarter, *rest]) == sorted(sets)


def test_every_part_has_all_methods(registry: Registry) -> None:
    suite = built_in(registry)
    for part in suite.parts:
        assert any(not block.methods for _, block in suite.blocks(part))


def test_changes_lists_differences_of_frozen_values(registry: Registry) -> None:
    frozen = built_in(registry).frozen
    assert changes(frozen, frozen) == []
    without = msgspec.structs.replace(frozen, methods={k: v for k, v in frozen.methods.items() if k != "dllp"})
    assert all(line.startswith("+ methods.dllp.") for line in changes(without, frozen))
    assert len(changes(without, frozen)) == len(frozen.methods["dllp"])


def test_part_has_a_key_of_its_own_in_a_bibliography(tmp_path: Path) -> None:
    whole, part = (
        llpbench("cite", name, cwd=tmp_path).stdout for name in ("llpbench-2026.1", "llpbench-2026.1/random")
    )
    assert whole.startswith("@misc{llpbench-2026.1,")
    assert part.startswith("@misc{llpbench-2026.1-random,")


def test_dataset_of_another_part_is_found_there(tmp_path: Path) -> None:
    done = llpbench("run", "--suite", "llpbench-2026.1/random", "--datasets", "flights", "--dry-run", cwd=tmp_path)
    assert (done.returncode, "It is in part natural." in done.stderr) == (2, True)


def test_invalid_suite_path_is_printed_in_full(tmp_path: Path) -> None:
    done = llpbench("cite", str(tmp_path / "mine"), cwd=tmp_path)
    assert (done.returncode, f"unknown suite '{tmp_path / 'mine'}'" in done.stderr) == (2, True), done.stderr


def test_table_falls_back_to_published_results_and_fails_without_any(tmp_path: Path) -> None:
    done = llpbench("status", "--suite", "llpbench-2026.1/random", cwd=tmp_path)
    assert (done.returncode, "published ones are shown" in done.stderr) == (0, True)
    assert done.stdout.startswith("random: all ")
    (tmp_path / "empty").mkdir()
    nothing = llpbench("table", "--suite", "llpbench-2026.1/random", "--board", "empty", cwd=tmp_path)
    assert (nothing.returncode, "empty is not a leaderboards folder" in nothing.stderr) == (2, True)
