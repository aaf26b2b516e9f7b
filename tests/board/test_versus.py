"""``versus``: results of a folder against published ones, in tables, files and on a page."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from statistics import fmean, stdev

import pytest
from board_samples import content_of, grid, published, shared
from cli_runner import llpbench
from helpers import make_cell, make_plan
from hypothesis import given, settings
from hypothesis import strategies as st

from llpbench.board.built.own_page import PUBLISHED, YOURS, check_same_protocol, own_page, published_beside
from llpbench.board.content.folder import Content, raw_files, write_files
from llpbench.board.page import render_page
from llpbench.board.schema import Board
from llpbench.board.versus import Comparison, compare, panels_of, tables_of
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import CellResult
from llpbench.report.filter import Filter
from llpbench.results.metric_style import MetricStyle
from llpbench.results.shared import Roles
from llpbench.results.store import Store


def ids(results: list[CellResult]) -> set[str]:
    return {r.id for r in results}


def beside(theirs: list[CellResult], ours: list[CellResult]) -> set[str]:
    return set(published_beside(content_of(theirs).lines.values(), ours))


def test_only_cells_of_the_same_columns_and_seeds_are_taken() -> None:
    ours = grid({"mine": [0.9, 0.8]})
    here = grid({"known": [0.7, 0.7]})
    elsewhere = [*grid({"known": [0.7]}, bag_size=32), *grid({"known": [0.7]}, dataset="other")]
    elsewhere += grid({"known": [0.7]}, noise="high")
    later = [
        published(0.7, make_cell(method="known", seed=2))
    ]  # a seed that is not ours would take us out of the ranks
    assert beside([*here, *elsewhere, *later], ours) == ids(here)


def test_a_method_of_ours_is_shown_as_we_have_it_and_bounds_belong_to_their_rows() -> None:
    ours = grid({"mine": [0.9, 0.8], "known": [0.1, 0.2]})
    theirs = grid({"known": [0.7, 0.7], "third": [0.6, 0.6]})
    bounds = [published(0.95, make_cell(method="oracle", seed=s, bag_size=1), oracle=True) for s in range(3)]
    assert beside([*theirs, *bounds], ours) == ids(theirs[2:]) | ids(bounds[:2])


def test_another_protocol_or_version_of_a_rule_is_refused_in_words() -> None:
    ours, theirs = [published(0.9, protocol=2, rules={"bags": 2})], [published(0.9, protocol=1)]
    with pytest.raises(StoreError, match="results of protocol 2 with a leaderboard of protocol 1"):
        check_same_protocol(theirs, ours)
    with pytest.raises(StoreError, match="rule bags version 2 with a leaderboard of rule bags version 1"):
        check_same_protocol([published(0.9, protocol=2, rules={"bags": 1})], ours)
    check_same_protocol([published(0.9, protocol=2, rules={"bags": 2, "other": 1})], ours)


def folder_of(path: Path, results: list[CellResult]) -> Store:
    store = Store(path)
    store.plan([make_plan(r.cell) for r in results], "llpbench run", "0.1.0")
    for result in results:
        store.write(result)
    return store


def test_rows_say_whose_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = folder_of(tmp_path / "mine", grid({"mine": [0.9, 0.8]}))
    boards: list[Board] = []
    monkeypatch.setattr(
        "llpbench.board.built.own_page.render_page", lambda board: boards.append(board) or render_page(board)
    )
    published_rows: Content = content_of(grid({"known": [0.7, 0.7, 0.7]}))
    page = own_page(store, shared(), published_rows)
    assert "beside the leaderboard" in page
    own_page(store, shared())
    with_them, alone = boards
    rows = with_them.datasets[0].rows
    assert {row.method: row.whose for row in rows} == {"mine": YOURS, "known": PUBLISHED}
    assert [o.seeds for o in with_them.overall if (o.metric, o.rule) == ("auroc", "bags")] == [[0, 1]]
    assert {row.method: row.whose for row in alone.datasets[0].rows} == {"mine": ""}
    assert not with_them.about.files  # no built file lies beside the page


AUROC = MetricStyle("auroc", words="AUROC")


def against(
    folder: Path,
    ours: list[CellResult],
    theirs: list[CellResult],
    wanted: Filter | None = None,
    metric: MetricStyle = AUROC,
    controls: frozenset[str] = frozenset(),
) -> dict[tuple[str, str], Comparison]:
    content = content_of(theirs)
    found = compare(folder_of(folder, ours), content, wanted or Filter(), metric, "bags", Roles(controls))
    return {(c.method, c.rival): c for c in found}


SHARES = st.lists(st.tuples(st.floats(0.5, 0.9), st.floats(0.5, 0.9)), min_size=2, max_size=5)


@settings(deadline=None, max_examples=25)
@given(SHARES)
def test_the_interval_is_students_corrected_for_overlapping_splits(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[float, float]]
) -> None:
    """An independent computation with scipy; 30 test and 100 training rows, as ``published`` has them."""
    from scipy import stats

    mine, known = (list(side) for side in zip(*pairs, strict=True))
    folder = tmp_path_factory.mktemp("versus") / "mine"
    found = against(folder, grid({"mine": mine}), grid({"known": known}))["mine", "known"]
    differences = [100 * (a - b) for a, b in pairs]
    n = len(pairs)
    error = stdev(differences) * math.sqrt(1 / n + 30 / 100)
    mean = fmean(differences)
    assert found.seeds == tuple(range(n))
    assert (found.own, found.other) == (pytest.approx(100 * fmean(mine)), pytest.approx(100 * fmean(known)))
    assert found.difference.mean == pytest.approx(mean, abs=1e-9)
    low, high = stats.t.interval(0.95, n - 1, mean, error) if error > 1e-9 else (mean, mean)
    assert (found.difference.low, found.difference.high) == (
        pytest.approx(low, abs=1e-6),
        pytest.approx(high, abs=1e-6),
    )
    if error > 1e-6:
        assert found.p == pytest.approx(2 * stats.t.sf(abs(mean) / error, n - 1), abs=1e-9)


def test_only_seeds_that_both_have_are_paired_and_only_with_the_same_test_rows(tmp_path: Path) -> None:
    ours = [published(0.9, make_cell(method="mine", seed=s), digests={"test_labels": "a" * 16}) for s in range(4)]
    theirs = [
        published(
            0.5 + s / 100, make_cell(method="known", seed=s), digests={"test_labels": ("a" if s < 3 else "b") * 16}
        )
        for s in (1, 2, 3, 9)
    ]
    found = against(tmp_path / "mine", ours, theirs)["mine", "known"]
    assert found.seeds == (1, 2)
    assert found.other == pytest.approx(51.5)


def test_verdicts_are_corrected_for_the_number_of_methods_and_controls_apart(tmp_path: Path) -> None:
    ours = grid({"mine": [0.90, 0.905, 0.91]})
    theirs = grid({"a": [0.89, 0.9, 0.90], "b": [0.91, 0.9, 0.91], "c": [0.5, 0.6, 0.4], "low": [0.6, 0.61, 0.6]})
    found = against(tmp_path / "mine", ours, theirs, controls=frozenset({"low"}))
    alone = {
        rival: against(tmp_path / rival, ours, [r for r in theirs if r.cell.method == rival])["mine", rival]
        for rival in "abc"
    }
    raw = sorted((alone[rival].p or 0.0, rival) for rival in "abc")
    expected, least = {}, 0.0
    for place, (p, rival) in enumerate(raw):
        least = expected[rival] = max(least, min(1.0, p * (3 - place)))
    assert {rival: found["mine", rival].p for rival in "abc"} == pytest.approx(expected)
    control = found["mine", "low"]
    assert (control.role, control.verdict, control.p) == ("control", "better", control.difference.p)
    assert all((c.verdict == "unclear") == ((c.p or 0.0) > 0.05) for c in found.values())
    assert list(panels_of(list(found.values()))) == ["Toy, bag 8"]


def test_lower_values_are_better_where_the_metric_says_so(tmp_path: Path) -> None:
    seconds = MetricStyle("fit_seconds", higher_is_better=False, percent=False, cost=True)
    ours = [published(0.9, make_cell(method="mine", seed=s), fit_seconds=1.0 + s / 100) for s in range(3)]
    theirs = [published(0.9, make_cell(method="known", seed=s), fit_seconds=5.0 + s / 100) for s in range(3)]
    found = against(tmp_path / "mine", ours, theirs, metric=seconds)["mine", "known"]
    assert found.difference.mean == pytest.approx(-4.0)
    assert found.verdict == "better"


def test_a_folder_of_published_methods_compares_each_with_the_others(tmp_path: Path) -> None:
    theirs = grid({"known": [0.7, 0.7], "third": [0.6, 0.6]})
    assert set(against(tmp_path / "all", grid({"known": [0.9, 0.8]}), theirs)) == {("known", "third")}
    new = grid({"known": [0.9, 0.8], "mine": [0.9, 0.8]})
    assert set(against(tmp_path / "new", new, theirs)) == {("mine", "known"), ("mine", "third")}


def test_filters_choose_settings_seeds_and_published_methods(tmp_path: Path) -> None:
    sizes = {8: [0.9, 0.8, 0.7], 32: [0.6, 0.7, 0.8]}
    ours = [r for size, values in sizes.items() for r in grid({"mine": values}, bag_size=size)]
    theirs = [r for size in sizes for r in grid({"known": [0.5] * 3, "third": [0.4] * 3}, bag_size=size)]
    content, store = content_of(theirs), folder_of(tmp_path / "mine", ours)
    wanted = Filter(methods=["third"], bags=[32], seeds=[0, 2])
    (one,) = compare(store, content, wanted, AUROC, "bags", Roles())
    assert (one.rival, one.setting.bag_size, one.seeds, one.own) == ("third", 32, (0, 2), pytest.approx(70.0))
    assert compare(store, content, Filter(datasets=["other"]), AUROC, "bags", Roles()) == []
    both = compare(store, content, Filter(), AUROC, "bags", Roles())
    summary, *each = tables_of(both, AUROC, "bags")
    assert [len(t.methods) for t in (summary, *each)] == [2, 2, 2]
    assert summary.entries["third", "settings"].text == "2"
    assert summary.about == ("mine", "2 settings of 1 source")


def test_sources_have_equal_weight_in_the_mean_difference(tmp_path: Path) -> None:
    values = {("toy", 8): 0.6, ("toy", 32): 0.7, ("other", 8): 0.9}
    ours = [r for (data, size), v in values.items() for r in grid({"mine": [v, v]}, size, dataset=data)]
    theirs = [r for data, size in values for r in grid({"known": [0.5] * 2}, size, dataset=data)]
    found = compare(folder_of(tmp_path, ours), content_of(theirs), Filter(), AUROC, "bags", Roles())
    summary = tables_of(found, AUROC, "bags")[0]
    assert summary.about == ("mine", "3 settings of 2 sources")
    assert summary.entries["known", "mean"].text == "+27.50"


def board_of(folder: Path, results: list[CellResult]) -> None:
    write_files(folder, raw_files(content_of(results)))


def test_the_command_prints_tables_and_writes_every_format(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder_of(tmp_path / "results" / "mine", grid({"mine": [0.9, 0.8]}))
    board_of(tmp_path / "leaderboards", grid({"their-own": [0.7, 0.7]}))
    endings = ("md", "tex", "csv", "json", "html", "bib", "pdf", "svg")
    out = [word for ending in endings for word in ("-o", f"made.{ending}")]
    done = llpbench("versus", "results/mine", *out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "their-own" in done.stdout
    made = {ending: (tmp_path / f"made.{ending}").read_bytes() for ending in endings}
    assert b"| their-own" in made["md"]
    assert rb"\toprule" in made["tex"]
    assert b"their-own" in made["html"]
    assert made["bib"].startswith(b"@software{llpbench")
    assert (made["pdf"][:5], b"their-own" in made["svg"] or b"<path" in made["svg"]) == (b"%PDF-", True)
    (line,) = json.loads(made["json"])
    (row,) = csv.DictReader(made["csv"].decode().splitlines())
    assert (row["rival"], row["seeds"], float(row["difference"])) == ("their-own", "0 1", line["difference"])
    assert llpbench("versus", "results/mine", "-o", "made.doc", cwd=tmp_path).returncode == 2


def test_where_a_board_of_ones_own_has_nothing_the_shipped_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder that ``leaderboard add`` makes has one's own cells alone."""
    mine = grid({"mine": [0.9, 0.8]})
    folder_of(tmp_path / "mine", mine)
    board_of(tmp_path / "leaderboards", mine)
    shipped = tmp_path / "with a space"
    board_of(shipped, grid({"their-own": [0.7, 0.7]}))
    monkeypatch.setattr("llpbench.board.content.shipped.shipped_board", lambda: shipped)
    done = llpbench("versus", "mine", cwd=tmp_path)
    assert done.returncode == 2
    assert "leaderboards has no other methods on the same datasets" in done.stderr
    assert f"--board '{shipped}'" in done.stderr
    assert "their-own" in llpbench("versus", "mine", "--board", str(shipped), cwd=tmp_path).stdout
