"""Tables of the documentation hold what the published leaderboard holds."""

from __future__ import annotations

from typing import Any

import pytest
from page_runner import ROOT, module_of_docs

from llpbench.experiment.grid import plan_cells
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.registry import load_registry

board_tables = module_of_docs("board_tables")
LINE = "{dataset},{method},{bag},{noise},{seed},{status},{rule},{auroc}\n"


def test_findings_have_tables_of_the_board() -> None:
    assert (ROOT / "docs" / "findings.md").read_text(encoding="utf-8").count("board: ") >= 9


def scores_of(*lines: tuple[str, str, int, int, float], noise: str = "none") -> object:
    """The numbers of a small leaderboard: (dataset, method, bag size, seed, AUROC) each."""
    told = [
        LINE.format(dataset=f'"{dataset}"', method=method, bag=bag, noise=noise, seed=seed, status="ok", rule="bags",
                    auroc=auroc) for dataset, method, bag, seed, auroc in lines
    ]  # fmt: skip
    failed = LINE.format(dataset="toy", method="worst", bag=8, noise=noise, seed=0, status="failed", rule="", auroc="")
    head = "dataset,method,bag_size,noise,seed,status,rule,auroc\n"
    return board_tables.read_scores((head + "".join(told) + failed).encode())


def page_of(mark: str, *labels: str, columns: int = 1) -> str:
    """A page with a marked table of these lines, numbers not yet known."""
    empty = " ? |" * columns
    head = f"| toy |{' n |' * columns}\n|---|{'---|' * columns}\n"
    return (
        f"Words.\n\n<!-- {mark} -->\n{head}" + "".join(f"| {label} |{empty}\n" for label in labels) + "\nMore words.\n"
    )


def lines_of(page: str) -> list[str]:
    return [line for line in page.splitlines() if line.startswith("|")][2:]


def test_means_use_the_seeds_that_all_lines_have() -> None:
    scores = scores_of(
        *[("toy", "quick", 8, seed, value) for seed, value in enumerate((0.80, 0.82, 0.10))],
        *[("toy", "slow", 8, seed, value) for seed, value in enumerate((0.70, 0.90))],
    )
    page = board_tables.filled(page_of("board: toy @ 8 / bags", "`quick`", "`slow`"), scores)
    assert lines_of(page) == ["| `quick` | **81.0** (1.4) |", "| `slow` | 80.0 (14.1) |"]
    assert page.startswith("Words.\n\n<!-- board")
    assert page.endswith("\nMore words.\n")


def test_one_shared_seed_has_no_standard_deviation() -> None:
    given = [("toy", "quick", 8, 0, 0.80), ("toy", "quick", 8, 1, 0.10), ("toy", "slow", 8, 0, 0.70)]
    page = board_tables.filled(page_of("board: toy @ 8 / bags", "`quick`", "`slow`"), scores_of(*given))
    assert lines_of(page) == ["| `quick` | **80.0** |", "| `slow` | 70.0 |"]


def test_docstring_example_separates_noise_levels() -> None:
    """Columns of a line may rest on other seeds, and no column says which."""
    assert "/ none," not in board_tables.__doc__


def test_controls_and_bounds_are_never_bold() -> None:
    given = [("toy", "mine", 8, 0.7), ("toy", "mine", 32, 0.6), ("toy", "lucky", 8, 0.8), ("toy", "lucky", 32, 0.5)]
    given.append(("toy", "truth", 1, 0.995))
    scores = scores_of(*[(d, m, bag, seed, value) for d, m, bag, value in given for seed in (0, 1)])
    labels = ("`mine`", "control `lucky`", "bound `truth`", "the paper's")
    page = board_tables.filled(page_of("board: toy @ 8,32 / bags", *labels, columns=2), scores)
    assert lines_of(page) == [
        "| `mine` | **70.0** (.0) | **60.0** (.0) |",
        "| control `lucky` | 80.0 (.0) | 50.0 (.0) |",
        "| bound `truth` | 99.5 (.0) | |",
        "| the paper's | ? | ? |",
    ]
    part = board_tables.filled(page_of("part of board: toy @ 8,32 / bags", "`mine`", columns=2), scores)
    assert lines_of(part) == ["| `mine` | 70.0 (.0) | 60.0 (.0) |"]


def test_bounds_of_split_bags_belong_to_their_bag_size() -> None:
    """It stood with the number of other test rows: those of the split by rows."""
    name = "toy, group-by[columns=a], split=bags"
    given = [("toy", "truth", 1, 0.91), (name, "truth", 8, 0.85), (name, "truth", 32, 0.86)]
    given += [(name, "mine", 8, 0.80), (name, "mine", 32, 0.70), (f"{name}, 5 folds", "mine", 8, 0.81)]
    scores = scores_of(*[(d, m, bag, seed, value) for d, m, bag, value in given for seed in (0, 1)])
    page = page_of(f"board: {name} @ 8,32 / bags", "`mine`", "bound `truth`", columns=2)
    assert lines_of(board_tables.filled(page, scores)) == [
        "| `mine` | **80.0** (.0) | **70.0** (.0) |",
        "| bound `truth` | 85.0 (.0) | 86.0 (.0) |",
    ]
    folds = page_of(f"board: {name}, 5 folds @ 8 / bags", "`mine`", "bound `truth`")
    assert lines_of(board_tables.filled(folds, scores))[1] == "| bound `truth` | 85.0 (.0) |"


def test_bounds_use_the_same_feature_noise() -> None:
    given = [("toy", "truth", 1, 0.91), ("toy, feature noise 0.1", "truth", 1, 0.82)]
    given.append(("toy, own-bags, feature noise 0.1", "mine", 0, 0.80))
    scores = scores_of(*[(d, m, bag, seed, value) for d, m, bag, value in given for seed in (0, 1)])
    page = page_of("board: toy, own-bags, feature noise 0.1 @ 0 / bags", "`mine`", "bound `truth`")
    assert lines_of(board_tables.filled(page, scores))[1] == "| bound `truth` | 82.0 (.0) |"


GROUPS = {"schemes": ["group-by[columns=education]"]}


@pytest.mark.parametrize(
    "settings",
    [{}, GROUPS, {"feature_noise": [0.1]}, {"folds": 2}, {"split": "bags"}, {"split": "bags", "folds": 2, **GROUPS}],
)
def test_bounds_are_found_at_the_cells_of_a_run(settings: dict[str, Any]) -> None:
    """The name and the bag size of a bound are those of the plan, not a convention of the page."""
    spec = RunSettings(methods=["mean-ridge", "supervised"], bags=[8], seeds=1, **settings)
    mine, bound = plan_cells(spec, load_registry())
    at = board_tables.Column(mine.dataset_name, str(mine.cell.bag_size), "bags", "none")
    assert board_tables._of_bound(at)[:2] == (bound.dataset_name, str(bound.cell.bag_size))


def test_star_averages_datasets_that_all_lines_have() -> None:
    given = [("toy[set=a]", "mine", 0.7), ("toy[set=b]", "mine", 0.9), ("toy[set=c]", "mine", 0.1)]
    given += [("toy[set=a]", "other", 0.6), ("toy[set=b]", "other", 0.7)]
    scores = scores_of(*[(dataset, m, 0, seed, value) for dataset, m, value in given for seed in (0, 1)])
    page = board_tables.filled(page_of("board: toy[set=*] @ 0 / bags", "`mine`", "`other`"), scores)
    assert lines_of(page) == ["| `mine` | **80.0** |", "| `other` | 65.0 |"]


def test_star_uses_shared_seeds_of_each_dataset() -> None:
    given = [("toy[set=a]", m, 0, seed, 0.7) for m in ("mine", "other") for seed in (0, 1, 2)]
    given += [("toy[set=b]", "mine", 0, 0, 0.9), ("toy[set=b]", "mine", 0, 5, 0.1), ("toy[set=b]", "other", 0, 0, 0.8)]
    mark = page_of("board: toy[set=*] @ 0 / bags", "`mine`", "`other`")
    page = board_tables.filled(mark, scores_of(*given))
    assert lines_of(page) == ["| `mine` | **80.0** |", "| `other` | 75.0 |"]


def test_rank_columns_rank_methods_by_dataset_and_seed() -> None:
    """Ranks of means over seeds are others: here ``even`` has the higher mean on both datasets, and half the firsts."""
    given = [("toy[set=a]", "even", (0.8, 0.8)), ("toy[set=a]", "odd", (0.9, 0.1)), ("toy[set=a]", "low", (0.95, 0.95))]
    given += [("toy[set=b]", "even", (0.8, 0.8)), ("toy[set=b]", "odd", (0.9, 0.9)), ("toy[set=c]", "odd", (0.9, 0.9))]
    given += [("toy[set=b]", "low", (0.1, 0.1))]
    scores = scores_of(*[(d, m, 0, seed, v) for d, m, values in given for seed, v in enumerate(values)])
    mark = page_of("board: toy[set=*] @ 0 / bags / none / rank", "`even`", "`odd`", "control `low`")
    assert lines_of(board_tables.filled(mark, scores)) == [
        "| `even` | 1.8 |",
        "| `odd` | **1.2** |",
        "| control `low` | ? |",
    ]


def test_f1_is_a_share() -> None:
    lines = [
        f"toy,{method},8,none,{seed},ok,bags,0.5,{f1}\n" for method, f1 in (("a", 0.25), ("b", 0.5)) for seed in (0, 1)
    ]
    scores = board_tables.read_scores(
        ("dataset,method,bag_size,noise,seed,status,rule,auroc,f1\n" + "".join(lines)).encode()
    )
    page = board_tables.filled(page_of("board: toy @ 8 / bags / none / f1", "`a`", "`b`"), scores)
    assert lines_of(page) == ["| `a` | .250 (.000) |", "| `b` | **.500** (.000) |"]


def test_rank_tables_equal_the_standings_of_the_page() -> None:
    def standing(block: str, *rows: tuple[str, float, bool | None]) -> dict[str, Any]:
        told = [{"method": m, "rank": rank, "low": 1.0, "high": 2.96, "separated": apart} for m, rank, apart in rows]
        return {"block": block, "rule": "bags", "metric": "auroc", "rows": told}

    ranks = [
        {**standing("all", ("wrong", 1.0, None)), "metric": "f1"},
        standing("all", ("a", 1.04, None), ("b", 2.0, False), ("c", 3.0, True)),
        standing("random", ("b", 1.5, None), ("a", 1.6, False)),
    ]
    page = page_of("ranks of board: all,random / bags", "`gone`", columns=2)
    assert lines_of(board_tables.filled(page, {}, ranks)) == [
        "| `a` | **1.0** (1.0 to 3.0) | 1.6 (1.0 to 3.0) ≈ |",
        "| `b` | 2.0 (1.0 to 3.0) ≈ | **1.5** (1.0 to 3.0) |",
        "| `c` | 3.0 (1.0 to 3.0) |  |",
    ]
    untested = [{"block": "all", "rule": "bags", "metric": "auroc", "rows": [{"method": "a", "rank": 1.0}]}]
    page = page_of("ranks of board: all / bags", "`gone`")
    assert lines_of(board_tables.filled(page, {}, untested)) == ["| `a` | **1.0** |"]
    with pytest.raises(ValueError, match="no ranks of all by instances"):
        board_tables.filled(page_of("ranks of board: all / instances", "`a`"), {}, ranks)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("board: toy @ 32 / bags", "the leaderboard has no Column.dataset='toy', bag_size='32'"),
        ("board: toy @ 8 / bags / high", "noise='high'"),
        ("board: toy @ 8,32 / bags", "1 columns stand below a comment that names 2"),
    ],
)
def test_comments_that_do_not_match_the_board_raise(mark: str, words: str) -> None:
    scores = scores_of(("toy", "mine", 8, 0, 0.7), ("toy", "mine", 8, 1, 0.7))
    with pytest.raises(ValueError, match=words):
        board_tables.filled(page_of(mark, "`mine`"), scores)
