"""Tuning: what is searched, that test rows are never looked at, and that no trial is lost or doubled."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from cli_runner import llpbench
from helpers import PATIENCE, bags_of, make_cell, make_part, make_plan, quick
from hypothesis import given
from hypothesis import strategies as st

from llpbench import MethodSpec, Param, UsageError
from llpbench.api import plan_run
from llpbench.contracts.errors import StoreError
from llpbench.contracts.executor import Outcome
from llpbench.contracts.job import Job, Prune
from llpbench.execution.driver import Driver
from llpbench.execution.worker import failures_recorded_in, run_job, run_job_here
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.judge import Pruned
from llpbench.experiment.monitor import HarnessMonitor
from llpbench.experiment.rules import make_rules
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.tuned import History, Setting, Trial, TunedParams, read_chosen
from llpbench.plugins.registry import load_registry
from llpbench.results.blank import blank_result
from llpbench.results.store import Store
from llpbench.tuning.pruning import FIRST_REPORTS, FIRST_TRIALS, cut_where_given_up, pruning_limits
from llpbench.tuning.request import plan_tune
from llpbench.tuning.results import TuneResults
from llpbench.tuning.searches import Search, plan_searches
from llpbench.tuning.settings import TuneSettings
from llpbench.tuning.space import NUMBER, Dimension, narrowed, ranges_of, search_space, start_values
from llpbench.tuning.study import Journal, import_optuna
from llpbench.tuning.trials import Trials, write_searches
from llpbench.tuning.verb import run_request

PLUGIN = Path(__file__).parents[1] / "support" / "tunable" / "tunable.py"
REGISTRY = load_registry([PLUGIN])
HIGHER_IS_BETTER = {spec.name: spec.higher_is_better for spec in REGISTRY.rules.specs}


class Inline:
    """An executor that runs cells in this process, for tests that are about the search."""

    slots = 1

    def __init__(self) -> None:
        self.ran: list[Job] = []
        self._done: list[Outcome] = []

    def submit(self, job: Job) -> None:
        self.ran.append(job)
        result = blank_result(job, "failed")
        with failures_recorded_in(result):
            result = run_job_here(job)
        Store(Path(job.out)).write(result)
        self._done.append(Outcome(job, "finished"))

    def wait(self, seconds: float) -> list[Outcome]:
        done, self._done = self._done, []
        return done

    def close(self) -> None:
        pass


def request(*methods: str, trials: int = 8, rules: tuple[str, ...] = ("bags",), **how: Any) -> TuneSettings:
    grid: dict[str, Any] = {"methods": methods, "datasets": "halves", "bags": 4}
    return TuneSettings(**grid, trials=trials, rule=rules, plugins=PLUGIN, timeout=600, memory=4096, **how)


def search(out: Path, spec: TuneSettings) -> tuple[list[Search], Inline]:
    store, executor = Store(out), Inline()
    store.plan([], "test", "0")
    searches = plan_searches(spec, REGISTRY, Journal(out))
    work = Trials(searches, store, REGISTRY, spec, on_trial=lambda *_: None, request="test", version="0")
    try:
        Driver(store, REGISTRY, executor, ()).run(work)
    finally:
        work.release()
    write_searches(store, searches)
    return searches, executor


def without_seconds(history: History) -> Any:
    content = msgspec.to_builtins(history)
    for trial in content["trials"]:
        trial["seconds"] = 0.0
    return content


# -- the space ---------------------------------------------------------------------------------------------------------


def test_search_space_of_a_method() -> None:
    spec = MethodSpec(
        name="m",
        factory="m:M",
        params=(
            Param("rate", 0.1, low=1e-4, high=1.0, log=True),
            Param("layers", 2, low=1, high=8),
            Param("soft", False),
            Param("kind", "a", choices=("a", "b")),
            Param("weight", "auto", low=0.0, high=5.0, choices=("auto",), kind="float"),
            Param("penalty", None, low=1e-3, high=1e3, log=True),
            Param("zero", 1.0, low=0.0, high=2.0, log=True),
            Param("free", 1.0),
            Param("text", "x"),
            Param("budget", 10, low=1, high=99, tune=False),
            Param("patience", 10, low=1, high=99),
        ),
    )
    assert search_space(spec, fixed=["layers"]) == (
        Dimension("rate", (), 1e-4, 1.0, log=True),
        Dimension("soft", (False, True)),
        Dimension("kind", ("a", "b")),
        Dimension("weight", ("auto",), 0.0, 5.0),
        Dimension("penalty", (None,), 1e-3, 1e3, log=True),
        Dimension("zero", (), 0.0, 2.0),
    )
    assert start_values(search_space(spec), spec.resolve({"weight": 2.0})) == {
        "rate": 0.1, "layers": 2, "soft": False, "kind": "a", "weight": NUMBER, f"weight ({NUMBER})": 2.0,
        "penalty": None, "zero": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize("name", [e.spec.name for e in REGISTRY.methods if e.plugin.builtin])
def test_search_spaces_contain_defaults_and_only_valid_values(name: str) -> None:
    optuna = import_optuna()
    spec = REGISTRY.methods[name]
    space = search_space(spec)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial(start_values(space, spec.resolve({})))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drawn = []
        for _ in range(20):
            trial = study.ask()
            drawn.append({d.name: d.suggest(trial) for d in space})
    assert spec.resolve(drawn[0]) == spec.resolve({})
    for values in drawn:
        assert spec.resolve(values) == {**spec.resolve({}), **values}
    for d in space:
        assert len({repr(values[d.name]) for values in drawn}) > 1
        assert d.describe()
    assert not {"patience", "mlp", "engine"} & {d.name for d in space}


SPACE = (
    Dimension("rate", (), 1e-4, 1.0, log=True),
    Dimension("kind", ("a", "b", "c")),
    Dimension("weight", ("auto",), 0.0, 5.0),
    Dimension("layers", (), 1, 8, integer=True),
)
START = {"rate": 0.1, "kind": "a", "weight": "auto", "layers": 2}


def test_ranges_narrow_the_search_space() -> None:
    ranges = {
        "rate": [1e-2, 0.5],
        "kind": ["b", "a"],
        "unknown": [1, 2],
        "m": {"rate": [0.1, 0.2], "weight": ["auto", 1, 2]},
    }
    assert narrowed(SPACE, {}, START) == SPACE
    assert narrowed(SPACE, ranges_of(ranges, "other"), START) == (
        Dimension("rate", (), 1e-2, 0.5, log=True),
        Dimension("kind", ("b", "a")),
    )
    assert narrowed(SPACE, ranges_of(ranges, "m"), START) == (
        Dimension("rate", (), 0.1, 0.2, log=True),
        Dimension("kind", ("b", "a")),
        Dimension("weight", ("auto",), 1.0, 2.0),
    )


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"rate": [1e-5, 0.5]}, "must be within"),
        ({"rate": [0.5, 0.5]}, "must be within"),
        ({"rate": [0.2, 0.5]}, "must contain 0.1"),
        ({"kind": ["b", "c"]}, "must contain 'a'"),
        ({"weight": [1, 2]}, "must contain 'auto'"),
        ({"kind": ["a", "d"]}, "expected choices or two ends"),
        ({"kind": [0, 1]}, "must be within"),
        ({"rate": [0.05, 0.1, 0.5]}, "two ends"),
        ({"layers": [1, True]}, "two ends"),
        ({"rate": []}, "two ends"),
        ({"rate": 0.1}, "two ends"),
    ],
)
def test_invalid_range_is_rejected(ranges: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        narrowed(SPACE, ranges, START)


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"slop": [0, 1]}, "parameter in ranges 'slop'.*'slope'"),
        ({"tilt": {"slop": [0, 1]}}, "parameter of tilt in ranges 'slop'.*'slope'"),
        ({"tillt": {"slope": [0, 1]}}, "method in ranges 'tillt'.*'tilt'"),
    ],
)
def test_range_of_unknown_name_is_rejected(tmp_path: Path, ranges: dict[str, Any], words: str) -> None:
    Store(tmp_path).plan([], "test", "0")
    with pytest.raises(UsageError, match=words):
        plan_searches(request("tilt", ranges=ranges), REGISTRY, Journal(tmp_path))


def test_ranges_bound_the_draws_and_define_another_study(tmp_path: Path) -> None:
    (whole,), _ = search(tmp_path, request("tilt", trials=2))
    (part,), _ = search(tmp_path, request("tilt", trials=8, ranges={"slope": [-0.5, 0.5]}))
    assert part.name != whole.name
    trials = part.history().trials
    assert all(set(t.params) == {"slope"} and abs(t.params["slope"]) <= 0.5 for t in trials)  # type: ignore[arg-type]
    assert trials[0].params == {"slope": 0.0}
    assert part.history().space == {"slope": "numbers from -0.5 to 0.5"}


def test_direction_of_rules_matches_selection() -> None:
    bags, labels = bags_of(make_part(40), 4)
    of_folds = {spec.name: {} for spec in REGISTRY.rules.specs if spec.cross_validated}
    rules = make_rules(bags, labels, cross_validated=of_folds)
    assert {rule.name: rule.higher_is_better for rule in rules} == HIGHER_IS_BETTER


# -- pruning -----------------------------------------------------------------------------------------------------------

VALUE = st.one_of(st.none(), st.floats(-5, 5))
VALUES = st.lists(VALUE, max_size=12)
LIMITS = st.lists(VALUE, max_size=6).map(tuple)


@quick
@given(st.lists(VALUES, max_size=9), st.booleans())
def test_pruning_limits_are_medians_of_the_best_so_far(histories: list[list[float | None]], higher: bool) -> None:
    limits = pruning_limits(histories, higher)
    known = [[v for v in h if v is not None] for h in histories if any(v is not None for v in h)]
    if len(known) < FIRST_TRIALS:
        assert limits == ()
        return
    assert len(limits) >= max(map(len, known))
    assert all(limit is None for limit in limits[:FIRST_REPORTS])
    if len(limits) > FIRST_REPORTS:
        final = statistics.median(max(h) if higher else min(h) for h in known)
        assert limits[-1] == final
        steps = [b for b in limits if b is not None]
        assert steps == sorted(steps, reverse=not higher)


def test_pruning_limits_of_an_example() -> None:
    early = [[float(10 * t + r) for r in range(7)] for t in range(4)]
    assert pruning_limits([*early, [25.0]], higher_is_better=True) == (None,) * 5 + (25.0, 25.0)
    assert pruning_limits([*early, [3.0]], higher_is_better=False) == (None,) * 5 + (10.0, 10.0)
    assert pruning_limits(early, higher_is_better=True) == ()


def watched(*prune: Prune) -> HarnessMonitor:
    bags, labels = bags_of(make_part(40), 4)
    return HarnessMonitor(
        rules=make_rules(bags, labels), valid=bags, test_rows=None, train_labels=labels, classes=2, prune=prune
    )


def test_lagging_trial_is_pruned_at_its_first_lagging_report() -> None:
    def predict(X: np.ndarray) -> np.ndarray:
        return np.full(len(X), 0.5)

    free = watched()
    for _ in range(9):
        free.report(predict)
    reached = free.winner(free.rules[0]).value
    assert reached is not None
    limits = (None, None, None, reached, reached - 1e-9)
    monitor = watched(Prune(rule="bags", limits=limits))
    for _ in range(4):
        monitor.report(predict)  # as good as the limit is good enough
    with pytest.raises(Pruned, match=r"report 4 .* rule bags .* median"):
        monitor.report(predict)
    later = watched(Prune(rule="bags", limits=(None, reached - 1e-9)))
    later.report(predict)
    with pytest.raises(Pruned):
        later.report(predict)
    assert not issubclass(Pruned, Exception)  # a method that catches everything does not catch this


def test_shared_trial_is_pruned_only_if_it_lags_under_all_rules() -> None:
    def predict(X: np.ndarray) -> np.ndarray:
        return np.full(len(X), 0.5)

    free = watched()
    free.report(predict)
    reached = {rule.name: free.winner(rule).value for rule in free.rules if rule.name in ("bags", "instances")}
    assert None not in reached.values()
    step = {name: 1e-9 if HIGHER_IS_BETTER[name] else -1e-9 for name in reached}
    good = {name: Prune(rule=name, limits=(value,)) for name, value in reached.items()}
    poor = {name: Prune(rule=name, limits=(value + step[name],)) for name, value in reached.items()}
    for pair in ((good["bags"], poor["instances"]), (poor["bags"], good["instances"]), tuple(good.values())):
        watched(*pair).report(predict)
    with pytest.raises(Pruned, match=r"rule bags .* and under rule instances .* median") as pruned:
        watched(poor["bags"], poor["instances"]).report(predict)
    assert pruned.value.rule == "bags and instances"


@quick
@given(st.lists(st.fixed_dictionaries({"bags": VALUE, "instances": VALUE}), max_size=8), LIMITS, LIMITS)
def test_stored_trial_is_cut_where_it_would_be_pruned(
    history: list[dict[str, float | None]], low: tuple[float | None, ...], high: tuple[float | None, ...]
) -> None:
    result = blank_result(Job(cell=make_cell(), method_name="", dataset_name="", out=""), "ok")
    result.history = history
    limits = {"bags": low, "instances": high}

    def lags(rule: str, number: int) -> bool:
        seen = [v for report in history[: number + 1] if (v := report[rule]) is not None]
        limit = limits[rule][min(number, len(limits[rule]) - 1)] if limits[rule] else None
        if not seen or limit is None:
            return False
        return max(seen) < limit if HIGHER_IS_BETTER[rule] else min(seen) > limit

    for rules in (("bags",), ("instances",), ("bags", "instances")):
        at = next((n for n in range(len(history)) if all(lags(rule, n) for rule in rules)), None)
        cut = cut_where_given_up(result, [Prune(rule=r, limits=limits[r]) for r in rules], HIGHER_IS_BETTER)
        assert cut.status == ("ok" if at is None else "pruned")
        assert len(cut.history) == (len(history) if at is None else at + 1)
        assert at is None or set(cut.selected) == set(rules)
    assert cut_where_given_up(result, (), HIGHER_IS_BETTER) is result


# -- the search --------------------------------------------------------------------------------------------------------


def test_tune_finds_better_parameters(tmp_path: Path) -> None:
    searches, executor = search(tmp_path, request("tilt", "plain", rules=("bags", "instances"), trials=12))
    by_name = {(s.method.name, s.setting.rule): s.history() for s in searches}
    assert len(by_name) == 4
    for (method, rule), history in by_name.items():
        assert [t.number for t in history.trials] == list(range(12 if method == "tilt" else 1))
        assert history.best is not None
        assert history.first is not None
        assert history.first.value is not None
        assert history.best.value is not None
        sign = 1 if HIGHER_IS_BETTER[rule] else -1
        assert sign * history.best.value >= sign * history.first.value  # the defaults are a trial: never worse
    tilt = by_name["tilt", "bags"]
    assert tilt.trials[0].params == {"slope": 0.0, "offset": None, "flip": False}
    assert tilt.best.value < tilt.first.value - 0.01
    # Random draws come first, and with the same seeds for both rules: these cells are shared.
    other = by_name["tilt", "instances"]
    assert [t.params for t in tilt.trials[:10]] == [t.params for t in other.trials[:10]]
    assert len({job.cell.id for job in executor.ran}) == len(executor.ran)
    shared = {c for t in tilt.trials for c in t.cells} & {c for t in other.trials for c in t.cells}
    assert len(shared) >= 10
    # The published files say the same.
    for s in searches:
        path = next((tmp_path / "studies").glob(f"*{s.study.key}.json"))
        assert msgspec.json.decode(path.read_bytes(), type=History) == s.history()
    chosen = {(c.setting.cell.method, c.setting.rule): c for c in read_chosen(tmp_path)}
    assert chosen["tilt", "bags"].params == tilt.best.params
    assert chosen["tilt", "bags"].seconds == pytest.approx(sum(t.seconds for t in tilt.trials))
    assert chosen["tilt", "bags"].default_value == tilt.first.value
    assert chosen["plain", "bags"].params == {}


def test_tuning_cell_contains_nothing_about_test_rows(tmp_path: Path) -> None:
    search(tmp_path, request("tilt", trials=3))
    results = Store(tmp_path).results()
    assert len(results) == 3
    for result in results:
        assert result.cell.tuning
        assert result.rows["test"] == 0
        assert {name for chosen in result.selected.values() for name in chosen.metrics} == {"bag_error"}
        assert result.selected["bags"].value is not None
    assert not list((tmp_path / "predictions").iterdir())


def test_history_does_not_depend_on_test_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = request("tilt", rules=("bags", "instances"), trials=12)
    sound, _ = search(tmp_path / "sound", spec)
    (plan,) = plan_cells(RunSettings(methods=["tilt"], datasets=["halves"], bags=[4], seeds=1), REGISTRY)
    job = Job(cell=plan.cell, method_name="", dataset_name="", out=str(tmp_path / "cell"), plugins=(str(PLUGIN),))
    selected = run_job(job).selected
    for spoil in ("labels", "everything"):
        monkeypatch.setenv("SPOIL_TEST", spoil)
        spoilt, _ = search(tmp_path / spoil, spec)
        assert [without_seconds(s.history()) for s in sound] == [without_seconds(s.history()) for s in spoilt]
        # The check can fail: the result of an ordinary cell depends on test rows.
        looked = run_job(job)
        assert looked.selected != selected or looked.status == "failed"


def test_pruned_trials_are_recorded(tmp_path: Path) -> None:
    spec = request("tilt[epochs=20]", trials=14)
    (pruned,), executor = search(tmp_path / "pruned", spec)
    trials = pruned.history().trials
    assert {t.status for t in trials} == {"ok", "pruned"}
    assert trials[0].status == "ok"
    for t in trials:
        result = Store(tmp_path / "pruned").read(t.cells[0])
        assert result is not None
        assert result.status == t.status
        assert t.reports == len(result.history)
        if t.status == "pruned":
            assert FIRST_REPORTS < t.reports < 20
            assert "median of finished trials" in t.reason
            assert result.notes["pruned_by"] == "bags"
    assert all(job.prune == () for job in executor.ran[:FIRST_TRIALS])
    (whole,), _ = search(tmp_path / "whole", request("tilt[epochs=20]", trials=14, prune=False))
    assert {t.status for t in whole.history().trials} == {"ok"}


def test_cell_pruned_under_one_rule_is_rerun_for_another(tmp_path: Path) -> None:
    search(tmp_path, request("tilt[epochs=20]", trials=9, sampler="random"))
    (other,), executor = search(tmp_path, request("tilt[epochs=20]", trials=9, sampler="random", rules=("instances",)))
    (alone,), _ = search(
        tmp_path / "alone", request("tilt[epochs=20]", trials=9, sampler="random", rules=("instances",))
    )
    assert without_seconds(other.history()) == without_seconds(alone.history())
    assert 0 < len(executor.ran) < 9


def test_shared_trials_serve_several_rules(tmp_path: Path) -> None:
    shared = request("tilt[epochs=20]", trials=12, rules=("bags", "instances"), shared=True, sampler="random")
    searches, executor = search(tmp_path / "shared", shared)
    by_rule = {s.setting.rule: s.history() for s in searches}
    bags, instances = by_rule["bags"], by_rule["instances"]
    assert len(executor.ran) == 12  # each cell once, whatever it is read by
    for a, b in zip(bags.trials, instances.trials, strict=True):
        assert (a.params, a.cells, a.status, a.seconds) == (b.params, b.cells, b.status, b.seconds)
    assert bags.shared == instances.shared == ["bags", "instances"]
    # The choice of each rule is the best trial under it, read from the cells themselves.
    store = Store(tmp_path / "shared")
    for rule, history in by_rule.items():
        results = [(t, store.read(t.cells[0])) for t in history.trials]
        values = {t.number: r.selected[rule].value for t, r in results if r is not None and r.status == "ok"}
        sign = -1 if HIGHER_IS_BETTER[rule] else 1
        best = history.best
        assert best is not None
        assert best.number == min(values, key=lambda n: (sign * values[n], n))
        chosen = {c.setting.rule: c for c in read_chosen(tmp_path / "shared")}[rule]
        assert chosen.params == {"epochs": 20, **best.params}
        found = TunedParams(tmp_path / "shared", rule)(searches[0].setting.cell, {"epochs": 20})
        assert found is not None
        assert found.params == chosen.params
    # What is given up lags under both, and what a study of one rule alone would choose is not lost by sharing.
    pruned = [store.read(t.cells[0]) for t in bags.trials if t.status == "pruned"]
    assert pruned
    assert all(r is not None and r.notes["pruned_by"] == "bags and instances" for r in pruned)
    for rule, history in by_rule.items():
        alone = request("tilt[epochs=20]", trials=12, rules=(rule,), sampler="random", prune=False)
        (whole,), _ = search(tmp_path / rule, alone)
        assert whole.history().shared == []
        assert whole.name != history.study
        assert whole.history().best == msgspec.structs.replace(history.best, seconds=whole.history().best.seconds)


def test_shared_trials_need_several_rules_and_random_draws() -> None:
    with pytest.raises(UsageError, match=r"'tpe' follows the values of one rule.*--sampler random"):
        request("tilt", rules=("bags", "instances"), shared=True, sampler="tpe")
    with pytest.raises(UsageError, match=r"at least two rules, got bags.*--rule all"):
        request("tilt", rules=("bags",), shared=True, sampler="random")


def test_run_file_may_define_a_search(tmp_path: Path) -> None:
    file = tmp_path / "protocol.toml"
    grid = 'methods = ["tilt"]\ndatasets = ["halves"]\nbags = [4]\nseeds = 2\n'
    file.write_text(f'{grid}[search]\ntrials = 3\nrule = ["instances", "bags"]\nshared = true\nper_seed = true\n')
    spec = plan_tune({"out": "tuned", "config": file, "plugins": [PLUGIN]}).settings
    assert (spec.methods, spec.seeds, spec.rule) == (["tilt"], 2, ["instances", "bags"])
    assert (spec.trials, spec.shared, spec.per_seed, spec.sampler, spec.prune) == (3, True, True, "random", True)
    flags = {"trials": 5, "rule": ["bags"], "shared": False, "seeds": 1, "out": "tuned"}
    spec = plan_tune({**flags, "config": file, "plugins": [PLUGIN]}).settings
    assert (spec.trials, spec.rule, spec.sampler, spec.seeds, spec.per_seed) == (5, ["bags"], "tpe", 1, True)
    # The same file is a grid for run, which leaves the search aside.
    assert [plan.cell.bag_size for plan in plan_run({"config": file, "plugins": [PLUGIN]}).planned] == [4, 4]
    assert plan_tune({"methods": ["tilt"], "out": "tuned", "plugins": [PLUGIN]}).settings.seeds == 1
    for wrong, words in (
        ("[search]\ntrails = 3", "key in the table search .*'trails'.*Did you mean 'trials'"),
        ("search = 3", "search must be a table"),
        ('[search]\ntrials = "many"', "trials"),
        ("[search]\ntrials = 0", "at least 1"),
        ('[search]\nrule = "bagz"', "bagz"),
    ):
        file.write_text(f"{grid}{wrong}\n")
        with pytest.raises(UsageError, match=words):
            plan_tune({"out": "tuned", "config": file, "plugins": [PLUGIN]})


@pytest.mark.parametrize(
    ("tuning", "words"),
    [(False, "holds cells of a run; a search needs"), (True, "holds trials of a search; a run needs")],
)
def test_folder_cannot_mix_trials_and_runs(tmp_path: Path, tuning: bool, words: str) -> None:
    """A run file names one folder, and serves both commands."""
    file, store, there = tmp_path / "run.toml", Store(tmp_path / "mine"), make_plan(make_cell(tuning=tuning))
    file.write_text(f'methods = ["tilt"]\ndatasets = ["halves"]\nbags = [4]\nout = "{store.root}"\n')
    store.plan([there], "llpbench any", "0")
    asked = (plan_run if tuning else plan_tune)({"config": file, "plugins": [PLUGIN], "progress": False})
    with pytest.raises(StoreError, match=rf"{words} a folder of its own.*--out"):
        asked.run()
    assert list(store.manifest().planned.values()) == [there]
    assert store.manifest().commands == ["llpbench any"]


@pytest.mark.parametrize(
    ("search", "run"),
    [("results/mine", "results/mine-run"), ("tuned/mine", "results/mine"), ("tuned", "results/tuned")],
)
def test_suggested_run_uses_another_folder(search: str, run: str) -> None:
    by_bags: Any = SimpleNamespace(rule=SimpleNamespace(name="bags"))
    words = shlex.split(str(run_request({"config": "mine.toml"}, 0, TuneResults(Path(search), [by_bags]))))
    assert words == ["llpbench", "run", "--config", "mine.toml", "--params", search, "--out", run]


def test_more_trials_continue_the_study(tmp_path: Path) -> None:
    (first,), _ = search(tmp_path / "a", request("tilt", trials=5))
    (second,), executor = search(tmp_path / "a", request("tilt", trials=12))
    (whole,), _ = search(tmp_path / "b", request("tilt", trials=12))
    assert first.name == second.name
    assert len(executor.ran) == 7
    assert without_seconds(second.history()) == without_seconds(whole.history())
    (less,), executor = search(tmp_path / "a", request("tilt", trials=5))
    assert executor.ran == []
    assert len(less.history().trials) == 12


def test_seeds_are_averaged_or_tuned_separately(tmp_path: Path) -> None:
    (together,), _ = search(tmp_path / "a", request("tilt", trials=3, seeds=2))
    own, _ = search(tmp_path / "b", request("tilt", trials=3, seeds=2, per_seed=True, sampler="random"))
    assert together.setting.seeds == [0, 1]
    assert [s.setting.seeds for s in own] == [[0], [1]]
    pairs = zip(*(s.history().trials for s in own), strict=True)
    for both, (a, b) in zip(together.history().trials, pairs, strict=True):
        assert both.params == a.params == b.params
        assert both.value == pytest.approx((a.value + b.value) / 2)
        assert both.cells == [*a.cells, *b.cells]
    tuned = TunedParams(tmp_path / "b", "bags")
    for seed in (0, 1):
        cell = msgspec.structs.replace(own[0].setting.cell, seed=seed)
        best = own[seed].history().best
        assert best is not None
        found = tuned(cell, {})
        assert found is not None
        assert found.params == best.params
    assert tuned.overlapping == {}
    with pytest.raises(UsageError, match="for seed 2"):
        tuned(msgspec.structs.replace(own[0].setting.cell, seed=2), {})


def test_failures_are_recorded_and_unsupported_settings_run_once(tmp_path: Path) -> None:
    searches, _ = search(tmp_path, request("fragile", "declines", trials=8))
    fragile, declines = (s.history() for s in searches)
    assert {t.status for t in fragile.trials} == {"ok", "failed"}
    assert all("no slope below zero" in t.reason for t in fragile.trials if t.status == "failed")
    assert len(fragile.trials) == 8
    assert fragile.best is not None
    assert [(t.status, t.reason) for t in declines.trials] == [("skipped", "never on these bags")]
    assert declines.best is None
    assert [c.setting.cell.method for c in read_chosen(tmp_path)] == ["fragile"]


# -- using what was chosen ---------------------------------------------------------------------------------------------


def test_tuned_parameters_are_planned(tmp_path: Path) -> None:
    (tilt,), _ = search(tmp_path, request("tilt", trials=6))
    best = tilt.history().best
    assert best is not None
    run = RunSettings(methods=["tilt", "plain"], datasets=["halves"], bags=[4], seeds=2)
    tuned = TunedParams(tmp_path, "bags")
    plans = plan_cells(run, REGISTRY, tuned)
    assert [p.method_name for p in plans] == ["tilt[params=tuned-bags]", "plain"] * 2
    assert plans[0].cell.params == REGISTRY.methods["tilt"].resolve(best.params)
    assert plans[0].cell.preset == "tuned-bags"
    assert plans[0].tuning_seconds == pytest.approx(tilt.history().seconds)
    assert not plans[0].cell.tuning
    assert list(tuned.untuned) == ["plain"]
    assert tuned.overlapping == {1: (0,)}
    assert not {p.cell.id for p in plans if p.cell.method == "tilt"} & {p.cell.id for p in plan_cells(run, REGISTRY)}


@pytest.mark.parametrize(
    ("change", "rule", "words"),
    [
        ({}, "instances", "not tuned by rule instances"),
        ({"bag_size": 8}, "bags", "at bag size 8"),
        ({"noise": "high"}, "bags", "with noise high"),
        ({"feature_noise": 0.1}, "bags", "options of dataset"),
    ],
)
def test_parameters_of_other_settings_are_rejected(
    tmp_path: Path, change: dict[str, Any], rule: str, words: str
) -> None:
    (tilt,), _ = search(tmp_path, request("tilt", trials=1))
    cell = tilt.setting.cell
    with pytest.raises(UsageError, match=words):
        TunedParams(tmp_path, rule)(msgspec.structs.replace(cell, **change), {})
    with pytest.raises(UsageError, match="fixed"):
        TunedParams(tmp_path, "bags")(cell, {"slope": 1.0})
    assert TunedParams(tmp_path, "bags")(cell, {}) is not None


@pytest.mark.parametrize("content", ["", "[]", '{"chosen": 3}', '{"chosen": [{"params": {}}]}', "\x00\xff", '{"a": 1}'])
def test_invalid_file_of_parameters_is_rejected(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tuned.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(StoreError, match="not a valid file of tuned parameters"):
        read_chosen(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        read_chosen(tmp_path / "nothing.json")


def test_study_names_and_cell_ids_are_stable() -> None:
    spec = RunSettings(methods=["dllp"], bags=[8, 512])
    old = {"methods", "datasets", "bags", "seeds", "schemes", "noise", "delta", "feature_noise", "backend", "preset"}
    axes = {k: v for k, v in vars(spec).items() if k in old}
    assert spec.name == f"dllp-adult-{hashlib.sha256(msgspec.json.encode(axes, order='sorted')).hexdigest()[:6]}"
    for change in ({"mechanism": "analytic"}, {"params": "tuned"}, {"params": "x", "params_rule": "instances"}):
        assert spec.replace(**change).name != spec.name
    assert make_cell(tuning=False).id == make_cell().id
    assert make_cell(tuning=True).id != make_cell().id


# -- crashes, company, damage ------------------------------------------------------------------------------------------


def test_trial_of_a_dead_process_is_continued(tmp_path: Path) -> None:
    spec = request("tilt", trials=4)
    Store(tmp_path).plan([], "test", "0")
    (one,) = plan_searches(spec, REGISTRY, Journal(tmp_path))
    begun = [one.study.ask(4) for _ in range(3)]
    assert [b.number for b in begun if b is not None] == [0, 1, 2]
    (two,) = plan_searches(spec, REGISTRY, Journal(tmp_path))
    fourth = two.study.ask(4)
    assert fourth is not None
    assert fourth.number == 3
    assert two.study.ask(4) is None  # all begun, all held
    assert begun[1] is not None
    begun[1].claim._lock.release()  # what the system does when a process dies
    again = two.study.ask(4)
    assert again is not None
    assert (again.number, again.params) == (1, begun[1].params)
    assert two.study.ask(4) is None


@pytest.mark.parametrize(
    "line",
    [b"garbage\n", b"[1]\n", b'{"op_code": 99}\n', b'{"op_code": 4}\n'],
    ids=["text", "list", "unknown", "incomplete"],
)
def test_damaged_journal_is_rejected(tmp_path: Path, line: bytes) -> None:
    search(tmp_path, request("tilt", trials=1))
    journal = tmp_path / "journal.log"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], line, *lines[2:]]))
    before = journal.read_bytes()
    with pytest.raises(StoreError, match=r"journal.log is damaged: .*--out"):
        search(tmp_path, request("tilt", trials=2))
    assert journal.read_bytes() == before


def test_incomplete_last_line_is_removed(tmp_path: Path) -> None:
    search(tmp_path, request("tilt", trials=2))
    journal = tmp_path / "journal.log"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 4, "wor')
    (study,), executor = search(tmp_path, request("tilt", trials=3))
    assert len(executor.ran) == 1
    assert len(study.history().trials) == 3
    assert journal.read_bytes().startswith(whole)


def command(out: str, *more: str) -> list[str]:
    arguments = ["tune", "--plugin", str(PLUGIN), "--methods", "tilt[seconds=0.3]", "--datasets", "halves"]
    return [*arguments, "--bags", "4", "--trials", "7", "--jobs", "1", "--out", out, *more]


def history_of(out: Path) -> History:
    (path,) = (out / "studies").glob("*.json")
    return msgspec.json.decode(path.read_bytes(), type=History)


def test_death_at_any_event_does_not_change_the_history(tmp_path: Path) -> None:
    """The journal cut after each of its lines, also between two parameters of one trial, is continued as it was."""
    asked = request("tilt[seconds=0]", trials=4)
    search(tmp_path / "whole", asked)
    lines = (tmp_path / "whole" / "journal.log").read_bytes().splitlines(keepends=True)
    assert len(lines) > 4 * 3
    for kept in range(len(lines)):
        out = tmp_path / str(kept)
        out.mkdir()
        (out / "journal.log").write_bytes(b"".join(lines[:kept]))
        search(out, asked)
        assert without_seconds(history_of(out)) == without_seconds(history_of(tmp_path / "whole")), kept


@pytest.mark.slow
def test_killed_search_continues_without_loss(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "llpbench", *command("out")], cwd=tmp_path, start_new_session=True
    )
    cells, deadline = tmp_path / "out" / "cells", time.monotonic() + PATIENCE
    while len(list(cells.glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = {p.name: p.stat().st_mtime_ns for p in cells.glob("*.json")}
    assert 3 <= len(kept) < 7
    done = llpbench(*command("out"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert all((cells / name).stat().st_mtime_ns == when for name, when in kept.items())
    assert llpbench(*command("whole"), cwd=tmp_path).returncode == 0
    assert without_seconds(history_of(tmp_path / "out")) == without_seconds(history_of(tmp_path / "whole"))
    assert [t.number for t in history_of(tmp_path / "out").trials] == list(range(7))
    assert len(list(cells.glob("*.json"))) == 7


@pytest.mark.slow
def test_two_processes_share_a_study(tmp_path: Path) -> None:
    runs = [
        subprocess.Popen([sys.executable, "-m", "llpbench", *command("out")], cwd=tmp_path, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    errors = [run.communicate(timeout=PATIENCE)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], errors
    trials = history_of(tmp_path / "out").trials
    assert [t.number for t in trials] == list(range(7))
    assert {t.status for t in trials} == {"ok"}
    assert len({c for t in trials for c in t.cells}) == 7
    lines = b"".join(errors).count(b"tilt[seconds=0.3]  halves")
    assert lines == 7  # each trial was run by one of them
    assert not list((tmp_path / "out" / "claims").iterdir())


@pytest.mark.slow
def test_tune_command(tmp_path: Path) -> None:
    tune = ["tune", "--plugin", str(PLUGIN), "--methods", "tilt", "--datasets", "halves", "--bags", "4"]
    done = llpbench(*tune, "--trials", "4", "--rule", "all", "--jobs", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(r["method"], r["rule"], r["trials"]) for r in rows] == [("tilt", "bags", 4), ("tilt", "instances", 4)]
    assert rows[0]["tuned"] <= rows[0]["default"]
    assert rows[1]["tuned"] >= rows[1]["default"]
    assert all(r["seconds"] > 0 for r in rows)

    run = ["run", "--plugin", str(PLUGIN), "--methods", "tilt,plain", "--datasets", "halves", "--bags", "4"]
    run += ["--seeds", "2", "--jobs", "1", "--out", "out"]
    assert llpbench(*run, cwd=tmp_path).returncode == 0
    for rule in ("bags", "instances"):
        done = llpbench(*run, "--params", "tuned", "--params-rule", rule, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert f"tuning tilt[params=tuned-{rule}] on halves, bag 4: " in done.stdout
        assert "has nothing for plain" in done.stderr
        assert "seed 1 runs with parameters tuned on seed 0" in done.stderr
    results = Store(tmp_path / "out").results()
    labels = {r.method_name for r in results}
    assert labels == {"tilt", "plain", "tilt[params=tuned-bags]", "tilt[params=tuned-instances]"}
    assert all(r.selected["bags"].metrics["auroc"] is not None for r in results)
    assert all((r.tuning_seconds > 0) == ("tuned" in r.method_name) for r in results)

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "optuna.py").write_text("raise ImportError('none here')")
    done = llpbench(*tune, cwd=tmp_path, PYTHONPATH=str(tmp_path / "bin"))
    assert done.returncode == 2
    assert "pip install 'llpbench[tune]'" in done.stderr


def test_earlier_trial_wins_ties() -> None:
    setting = Setting(cell=make_cell(), fixed={}, rule="instances", seeds=[0])
    trials = [
        Trial(number=n, params={}, status=s, value=v)
        for n, (s, v) in enumerate([("ok", 0.5), ("pruned", 0.9), ("ok", 0.7), ("ok", 0.7), ("failed", None)])
    ]
    history = History(
        study="s",
        setting=setting,
        space={},
        sampler="tpe",
        sampler_seed=0,
        wanted=5,
        trials=trials,
        higher_is_better=True,
    )
    assert history.best == trials[2]
    assert history.first == trials[0]


def test_command_suggested_by_tune_runs(tmp_path: Path) -> None:
    """It was ``llpbench run --params tuned``, which answers that no methods are given."""
    grid = ("--methods", "mean-ridge", "--datasets", "synthetic[rows=400;dim=4]", "--bags", "8")
    search = ("--rule", "instances", "--trials", "1", "--seeds", "5-5", "--per-seed", "--quiet", "--out", "my search")
    done = llpbench("tune", *grid, *search, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    words = shlex.split(done.stderr.split("use the parameters with: llpbench ")[1])
    options = ["--seeds", "5-5", "--params", "my search", "--params-rule", "instances"]
    assert words == ["run", *grid, *options]
    planned = llpbench(*words, "--dry-run", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert planned.stdout.rstrip().endswith(
        "mean-ridge[params=tuned-instances] on synthetic[dim=4;rows=400], bag 8, seed 5"
    )
