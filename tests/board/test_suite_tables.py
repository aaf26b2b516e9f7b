"""The tables of a suite: what they hold, and LaTeX that a simple parser accepts."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from helpers import make_result

from llpbench.board.suites.tables import PaperTable, paper_tables, parameters_of, shown_cells
from llpbench.board.suites.text import paper_latex, paper_markdown
from llpbench.contracts.result import CellResult
from llpbench.contracts.specs import Reference
from llpbench.experiment.plan import Planned
from llpbench.experiment.suites.file import Suite, find_suite
from llpbench.experiment.suites.plan import Limits, PlannedBlock, plan_suite
from llpbench.plugins.options import parse_options
from llpbench.plugins.registry import load_registry
from llpbench.report.render import choose

REGISTRY = load_registry()
SUITE: Suite = find_suite("llpbench-2026.1", REGISTRY)[0]


def cells(part: str, **limits: list[int]) -> list[PlannedBlock]:
    return plan_suite(SUITE, REGISTRY, Limits(part=part, **limits))


def result_of(plan: Planned, value: float) -> CellResult:
    made = make_result(plan.cell, value, protocol=2, oracle=plan.oracle)
    made.method_name, made.dataset_name = plan.method_name, plan.dataset_name
    return made


def results_of(blocks: list[PlannedBlock]) -> list[CellResult]:
    """Made-up numbers: a method's place in the suite, and a thousandth for each seed."""
    rank = {name: n for n, name in enumerate(SUITE.methods)}
    return [
        result_of(plan, 0.5 + rank[plan.cell.method] / 100 + plan.cell.seed / 1000)
        for block in blocks
        for plan in block.cells
    ]


def tables_of(
    blocks: list[PlannedBlock],
    own: list[CellResult],
    published: list[CellResult] | None = None,
    rule: str = "bags",
    metric: str = "auroc",
) -> list[PaperTable]:
    shown = shown_cells(blocks, own, published or [])
    results = [*(published or []), *own]
    return paper_tables(SUITE, shown, results, choose(REGISTRY, results, metric, rule, paper=True), REGISTRY)


# -- LaTeX -------------------------------------------------------------------------------------------------------------


def columns_of(layout: str) -> int:
    """How many columns a layout such as ``lrr p{2cm}`` has."""
    return len(re.sub(r"[^lrcp]", "", re.sub(r"p\{[^{}]*\}", "p", layout)))


def check_latex(text: str) -> list[str]:
    """Environments in the order they are opened; every one is closed, braces are balanced, rows fill their tabular."""
    text = re.sub(r"(?<!\\)%.*", "", text)
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", text.replace(r"\\", "  ")):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0
    stack, opened = [], []
    for word, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", text):
        if word == "begin":
            stack.append(name)
            opened.append(name)
        else:
            assert stack.pop() == name
    assert stack == []
    for layout, body in re.findall(
        r"\\begin\{tabular\}\{((?:[^{}]|\{[^{}]*\})*)\}(.*?)\\end\{tabular\}", text, re.DOTALL
    ):
        wanted = columns_of(layout)
        rows = [row for row in body.split(r"\\") if re.sub(r"\\[a-z]+rule(\(lr\))?(\{[0-9-]+\})?", "", row).strip()]
        assert rows
        for row in rows:
            spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row))
            assert len(re.findall(r"(?<!\\)&", row)) + 1 + spans == wanted, row
        for first, last in re.findall(r"\\cmidrule\(lr\)\{(\d+)-(\d+)\}", body):
            assert 2 <= int(first) <= int(last) <= wanted
    for special in ("_", "#"):
        body = re.sub(r"\\label\{[^}]*\}", "", text)
        assert not re.search(rf"(?<!\\){special}", body), special
    return opened


@pytest.mark.parametrize("part", list(SUITE.parts))
def test_latex_of_every_part_is_balanced(part: str) -> None:
    blocks = cells(part)
    own = results_of(blocks)
    tables = tables_of(blocks, own)
    text = paper_latex(SUITE, tables, parameters_of(SUITE, shown_cells(blocks, own, []), tables))
    assert check_latex(text) == ["table*", "adjustbox", "tabular"] * len(tables) + ["table*", "tabular"]
    labels = re.findall(r"\\label\{([^}]*)\}", text)
    assert len(labels) == len(set(labels)) == len(tables) + 1
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == len(tables) + 1


def test_the_parser_finds_what_is_broken() -> None:
    good = "\\begin{tabular}{lr}\n\\toprule\na & b \\\\\n\\bottomrule\n\\end{tabular}"
    assert check_latex(good) == ["tabular"]
    for old, new in ((r"\end{tabular}", ""), ("a & b", "a"), ("a & b", "{a & b"), ("a & b", "a_b & c")):
        with pytest.raises(AssertionError):
            check_latex(good.replace(old, new))


# -- what a table holds ------------------------------------------------------------------------------------------------


def test_a_table_for_each_dataset_and_noise_level() -> None:
    found = {}
    for part in SUITE.parts:
        blocks = cells(part)
        found[part] = [" ".join(table.table.about[1:]) for table in tables_of(blocks, results_of(blocks))]
    assert found["random"] == ["adult", "marketing", "criteo[file=train_12768.txt.gz]"]
    assert found["images"] == ["cifar-b", "cifar-s", "cifar10"]
    assert found["natural"] == ["Natural bags"]
    assert found["privacy"] == [
        f"{d} noise {n}" for d in ("adult", "marketing") for n in ("medium (epsilon 10)", "high (epsilon 1)")
    ]


def test_the_caption_names_metric_seeds_rule_and_whose_values_are_published() -> None:
    blocks = cells("images")
    own = results_of(blocks)
    for rule, words in (("bags", "it uses no label"), ("instances", "it uses labels of held-out rows")):
        caption = " ".join(tables_of(blocks, own, rule=rule)[0].sentences)
        assert "AUROC %" in caption
        assert "llpbench-2026.1/images, protocol 2" in caption
        assert "seeds 0, 1, 2." in caption
        assert f"Selection rule: {rule}, version {REGISTRY.rules[rule].version} ({words}" in caption
        assert "published values, selected by rule instances" in caption
        assert ("another rule than ours" in caption) == (rule == "bags")


def test_the_caption_omits_the_further_seeds_of_cheap_methods() -> None:
    blocks = cells("random")
    assert "seeds 0, 1, 2, 3, 4." in " ".join(tables_of(blocks, results_of(blocks))[0].sentences)


def test_published_values_are_not_shown_beside_other_features() -> None:
    blocks = cells("random")
    for table in tables_of(blocks, results_of(blocks)):
        assert len(table.spans) < 2


def test_the_caption_says_how_classes_were_decided_where_that_matters() -> None:
    """F1 of the known rate stood beside published values with other thresholds, and no caption said so."""
    blocks = cells("natural")
    results = results_of(blocks)
    for chosen in (of for result in results for of in result.selected.values()):
        chosen.metrics["f1"] = 0.5
    caption = " ".join(tables_of(blocks, results, metric="f1")[0].sentences)
    assert "decided with the known overall rate" in caption
    assert "classes were decided as their authors did" in caption
    assert "decided" not in " ".join(tables_of(blocks, results_of(blocks))[0].sentences)


def test_the_caption_of_noisy_counts_says_epsilon() -> None:
    blocks = cells("privacy", seeds=[0], bags=[8])
    sentences = {table.sentences[0] for table in tables_of(blocks, results_of(blocks))}
    assert len(sentences) == 4
    assert all("(epsilon 10)" in s if "noise medium" in s else "noise high (epsilon 1)" in s for s in sentences)


def test_published_values_stand_in_columns_of_their_own() -> None:
    blocks = cells("images")
    table = tables_of(blocks, results_of(blocks))[0]
    ours, theirs = table.spans
    assert ours.columns == theirs.columns == [f"bag {n}" for n in (8, 32, 128, 512, 1024, 2048)]
    assert theirs.heading == "Havaldar et al. 2024, rule instances"
    row = [entry.text for entry in table.table.row("dllp")]
    reference = next(r for r in REGISTRY.references() if is_dllp_at_8(r))
    assert row[0] == "55.10 (0.10)"
    assert reference.mean is not None
    assert row[6].startswith(f"{100 * reference.mean:.2f}")
    assert all(entry.text == "" for entry in table.table.row("mean-ridge")[6:])


def is_dllp_at_8(r: Reference) -> bool:
    return (r.dataset, r.method, r.bag_size, r.metric, r.noise) == ("cifar-b", "dllp", 8, "auroc", "none")


def test_marks_are_for_methods_alone() -> None:
    blocks = cells("images")
    table = tables_of(blocks, results_of(blocks))[0]
    assert list(table.groups) == ["methods", "controls", "bounds"]
    assert table.groups["controls"] == ["best-feature", "random-labels", "shuffled-counts"]
    assert table.groups["bounds"] == ["supervised"]
    marked = {m: {e.mark for e in table.table.row(m)[:6]} for m in table.table.methods}
    assert marked["mixbag"] == {"best"}  # the last method has the highest made-up number
    assert marked["dsq"] == {"second"}
    assert {m for m, marks in marked.items() if marks != {""}} == {"mixbag", "dsq"}


def test_averaged_sets_are_one_column() -> None:
    blocks = cells("natural")
    (table,) = tables_of(blocks, results_of(blocks))
    assert table.spans[0].columns == [f"({n})" for n in range(1, 9)]
    legend = next(sentence for sentence in table.sentences if sentence.startswith("Columns: "))
    assert "(7) landscape, every fourth set (the mean of 13; seeds 0, 1); (8) landscape, the other sets" in legend
    ridge = [entry.text for entry in table.table.row("mean-ridge")]
    assert ridge[6] == ridge[7] == "52.05 (0.07)"
    assert table.table.row("dllp")[7].text == ""


def test_a_mean_over_sets_needs_all_of_them() -> None:
    blocks = cells("natural")
    own = results_of(blocks)
    landscape = [r for r in own if r.cell.dataset == "landscape" and r.cell.method == "dllp" and r.cell.seed == 1]
    own.remove(landscape[0])
    (table,) = tables_of(blocks, own)
    assert table.table.row("dllp")[6].text.startswith("55.00 [1/2")


def test_other_methods_and_other_settings_of_ones_own_are_shown() -> None:
    blocks = cells("random")
    published = results_of(blocks)
    plans = {plan.method_name: plan for plan in blocks[0].cells if plan.cell.seed == 1}
    mine = [
        result_of(
            msgspec.structs.replace(
                plans["dllp"], cell=msgspec.structs.replace(plans["dllp"].cell, method=method, params={"lr": 0.5}),
                method_name=name,
            ),
            0.9,
        )
        for method, name in (("mine", "mine"), ("dllp", "dllp[lr=0.5]"))
    ]  # fmt: skip
    size = plans["dllp"].cell.bag_size
    table = tables_of(blocks, mine, published)[1 if plans["dllp"].cell.dataset == "marketing" else 0]
    methods = table.groups["methods"]
    assert methods[-1] == "mine"
    assert methods[methods.index("dllp") + 1] == "dllp[lr=0.5]"
    column = [8, 32, 128, 512, 1024, 2048].index(size)
    assert table.table.row("mine")[column].text.startswith("90.00 [1/5")
    elsewhere = msgspec.structs.replace(mine[0].cell, bag_size=64)
    (first, *_) = tables_of(blocks, [make_result(elsewhere, protocol=2)], published)
    assert "mine" not in first.table.methods
    assert "dllp[lr=0.5]" not in tables_of(blocks, [], [*published, *mine])[0].table.methods


def test_results_of_another_protocol_and_absent_methods_are_left_out() -> None:
    blocks = cells("privacy", seeds=[0])
    own = [r for r in results_of(blocks) if r.cell.method in ("dllp", "mixbag")]
    (first, *_) = tables_of(blocks, own)
    assert first.table.methods == ["dllp", "mixbag"]
    frozen = "bp-field[relaxed=auto]"  # the suite's value is not the default any more
    assert f"no result yet: {frozen}, " in first.table.notes[0]
    for r in own:
        r.protocol = 1
    assert tables_of(blocks, own) == []


def test_the_appendix_has_all_parameters_of_all_methods(tmp_path: Path) -> None:
    blocks = cells("privacy", seeds=[0])
    own = results_of(blocks)
    tables = tables_of(blocks, own)
    parameters = parameters_of(SUITE, shown_cells(blocks, own, []), tables)
    assert [parse_options(name)[0] for name in parameters] == SUITE.methods
    for name, values in parameters.items():
        spec = REGISTRY.methods[parse_options(name)[0]]
        assert set(values) == {p.name for p in spec.params if p.name in values or not p.omit_default}
    text = paper_markdown(SUITE, tables, parameters)
    assert f"lr = {parameters['dllp']['lr']}, " in text
    assert text.count("\n| dllp ") == len(tables) + 1
