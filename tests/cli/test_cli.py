"""The command line as a newcomer meets it: help, lists, tables, and a typo in every argument."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from cli_runner import FAULTY, llpbench, table
from click.testing import CliRunner
from helpers import make_cell, make_plan, make_result

import llpbench.cli.run as run_verb
from llpbench import UsageError
from llpbench import run as llpbench_run
from llpbench import tune as llpbench_tune
from llpbench.cli import cli
from llpbench.cli.run import run
from llpbench.cli.status import rerun_text, status
from llpbench.contracts.result import PROTOCOL
from llpbench.execution.local import cells_at_once
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import given_settings
from llpbench.results.request import Command, Request
from llpbench.results.store import Store
from llpbench.tuning.settings import NOT_FOR_SEARCHES, TuneSettings
from llpbench.tuning.verb import tune

SMALL = "synthetic[rows=400;dim=4]"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run: two methods, the second on a small grid of its own parameter, and a bound's stand-in."""
    folder = tmp_path_factory.mktemp("cli")
    done = llpbench(
        "run", "--methods", "mean-ridge,mean-ridge[gamma=0;1]", "--datasets", SMALL, "--bags", "4,16", "--seeds", "2",
        "--noise", "none,high", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return next((folder / "results").iterdir())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--methods", "dlpl"], ["unknown method 'dlpl'", "Did you mean 'dllp'", "mean-ridge"]),
        (["run", "--methods", "dllp", "--datasets", "adlt"], ["unknown dataset 'adlt'", "'adult'"]),
        (["run", "--methods", "dllp[lrr=1]"], ["unknown parameter of dllp", "'lrr'", "'lr'"]),
        (["run", "--methods", "dllp[lr=fast]"], ["'lr'", "a number", "'fast'"]),
        (["run", "--methods", "dllp[lr=-1]"], ["'lr'", "-1"]),
        (["run", "--methods", "dllp[lr=1e-3,epochs=3]"], ["';' separates"]),
        (["run", "--methods", "dllp[lr=1e-3"], ["brackets"]),
        (["run", "--methods", "dllp", "--datasets", "synthetic[size=3]"], ["unknown parameter of synthetic", "rows"]),
        (["run", "--methods", "dllp", "--bags", "0"], ["bag size 0"]),
        (["run", "--methods", "dllp", "--bags", "-8"], ["bag size -8"]),
        (["run", "--methods", "dllp", "--bags", "8,many"], ["whole numbers"]),
        (["run", "--methods", "dllp", "--bags", "100000"], ["larger than adult", "48,842"]),
        (["run", "--methods", "dllp", "--seeds", "0"], ["at least one seed"]),
        (["run", "--methods", "dllp", "--noise", "loud"], ["'loud'", "medium"]),
        (["run", "--methods", "dllp", "--epsilon", "-1"], ["positive epsilon"]),
        (["run", "--methods", "dllp", "--noise", "high", "--delta", "2"], ["--delta"]),
        (["run", "--methods", "dllp", "--feature-noise", "-0.1"], ["standard deviation"]),
        (["run", "--methods", "dllp", "--backend", "theano"], ["'theano'", "jax"]),
        (["run", "--methods", "dllp", "--schemes", "rnadom"], ["unknown bag scheme", "'random'"]),
        (["run", "--methods", "dllp", "--executor", "moon"], ["unknown executor 'moon'", "local"]),
        (["run", "--methods", "dllp", "--jobs", "1000"], ["--jobs 1000", "cores"]),
        (["run", "--methods", "dllp", "--threads", "1000"], ["--threads 1000", "cores"]),
        (["run", "--methods", "dllp", "--timeout", "soon"], ["'soon'", "30m"]),
        (["run", "--methods", "dllp", "--memory", "lots"], ["'lots'", "8GB"]),
        (["run", "--methods", "dllp", "--rerun", "some"], ["missing", "failed", "stale", "all"]),
        (["run", "--methods", "dllp", "--config", "nowhere.toml"], ["nowhere.toml"]),
        (["run", "--methods", "dllp", "--plugin", "nowhere.py"], ["nowhere.py"]),
        (["run"], ["no methods given", "--methods"]),
        (["rnu"], ["unknown command 'rnu'", "'run'"]),
        (["show", "dlpl"], ["'dlpl'", "'dllp'"]),
        (["table", "nowhere"], ["not a results folder"]),
        (["status", "nowhere"], ["not a results folder"]),
        (["table"], ["no results under results/"]),
        (["data", "check", "adlt"], ["unknown dataset 'adlt'"]),
    ],
)
def test_unknown_names_are_reported_with_suggestions(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    done = llpbench(*arguments, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    for word in words:
        assert word in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "arguments",
    [["show", "{}.toml"], ["check", "{}.py"], ["status", "{}"], ["compare", "{}.csv", "--bag", "a", "--count", "b"]],
)
def test_file_name_that_is_too_long_is_an_error(tmp_path: Path, arguments: list[str]) -> None:
    done = llpbench(*(word.format("x" * 300) for word in arguments), cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_help_is_brief_and_help_all_complete(tmp_path: Path) -> None:
    for verb, settings in (("run", RunSettings), ("tune", TuneSettings)):
        brief, every = (llpbench(verb, flag, cwd=tmp_path).stdout for flag in ("--help", "--help-all"))
        rare = [setting for setting in settings.declared().values() if setting.rare]
        assert not [s.name for s in rare if f"  {s.flags} " in brief]
        shown = [s for s in rare if verb == "run" or s.name not in NOT_FOR_SEARCHES]
        assert all((s.flags or "").split("/")[0] in every for s in shown)
        assert brief.count("\n  -") <= 24 < every.count("\n  -")


def test_main_help_lists_every_verb_in_80_columns(tmp_path: Path) -> None:
    said = llpbench("--help", cwd=tmp_path).stdout
    assert max(map(len, said.splitlines())) <= 80
    verbs = {line.split()[0] for line in said.splitlines() if re.match(r"  [a-z]+ {2,}", line)}
    assert verbs == set(cli.list_commands(click.Context(cli)))
    assert "\nPlugins:" not in said


def test_errors_have_one_form(tmp_path: Path) -> None:
    for arguments in (
        ["run", "--bags", "x"],
        ["run", "--nope"],
        ["table", "--format", "pdf"],
        ["data", "get"],
        ["nope"],
    ):
        done = llpbench(*arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert re.match(r"error: .+\n\Z", done.stderr), done.stderr


def test_large_run_is_announced_and_confirmed_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_verb, "LARGE_RUN", 1)
    monkeypatch.setattr(run_verb, "_on_a_terminal", lambda: True)
    asked: list[str] = []

    def refuse(question: str, **_: Any) -> None:
        asked.append(question)
        raise click.Abort

    monkeypatch.setattr(click, "confirm", refuse)
    command = ["run", "-m", "mean-ridge", "-d", SMALL, "-b", "8", "-s", "2", "-o", "out"]
    done = llpbench(*command, cwd=tmp_path)
    assert (done.returncode, asked) == (130, ["Start?"])
    assert "2 cells would run (2 seeds), 0 are kept" in done.stderr
    assert not (tmp_path / "out").exists()
    assert llpbench(*command, "--yes", cwd=tmp_path).returncode == 0
    assert llpbench(*command[:-4], "-s", "5", "-o", "out", cwd=tmp_path).returncode == 130
    assert re.search(r"3 cells .*, 2 are kept; at \d+\.\d s each", llpbench(*command, "-s", "5", cwd=tmp_path).stderr)


def test_unknown_method_names_the_file_that_registers_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text('from llpbench import hookimpl\nname = "my-own"\n')
    done = llpbench("run", "-m", "my-own", cwd=tmp_path)
    assert done.returncode == 2
    assert "add --plugin own.py" in done.stderr


def test_unquoted_brackets_are_explained(tmp_path: Path) -> None:
    done = llpbench("run", "-m", "dllp:lr=1e-3", cwd=tmp_path)
    assert "given in quoted brackets: 'dllp[option=value;value]'" in done.stderr
    for name in ("dllp[lr=1e-3", "dllp[lr=1e-3],["):
        done = llpbench("run", "-m", name, cwd=tmp_path)
        assert "In a shell, quote brackets and semicolons: 'dllp[lr=1e-3;1e-2]'." in done.stderr


def test_wrong_column_of_a_csv_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("age,sick,shop\n" + "1,0,a\n2,1,b\n" * 50)
    for options, message in (
        ("label=sik", "unknown column of own.csv: 'sik'. Did you mean 'sick'"),
        ("label=sick;bag=store", "unknown column of own.csv: 'store'"),
        ("bag=shop", "set label=NAME. Columns of own.csv: age, sick, shop"),
    ):
        done = llpbench("run", "-m", "mean-ridge", "-d", f"csv[path=own.csv;{options}]", cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("verb", ["run", "list", "show", "status", "table", "data", "doctor", "completion"])
def test_every_verb_has_help(tmp_path: Path, verb: str) -> None:
    done = llpbench(verb, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "Usage: llpbench" in done.stdout


def test_run_prints_the_table_and_the_results_folder(tmp_path: Path) -> None:
    done = llpbench("run", "--methods", "mean-ridge", "--datasets", SMALL, "--bags", "4", "--seeds", "2", cwd=tmp_path)
    assert done.returncode == 0
    assert "selection rule: bags, instances (equal)" in done.stdout  # mean-ridge reports once
    assert "2 cells, 0 already done" in done.stderr
    assert "results: results/mean-ridge-synthetic-" in done.stderr
    again = llpbench("run", "--methods", "mean-ridge", "--datasets", SMALL, "--bags", "4", "--seeds", "2", cwd=tmp_path)
    assert "2 cells, 2 already done" in again.stderr
    assert again.stdout == done.stdout


def test_quiet_and_json(tmp_path: Path) -> None:
    command = ["run", "--methods", "mean-ridge", "--datasets", SMALL, "--bags", "4", "--seeds", "1", "--out", "out"]
    quiet = llpbench(*command, "--quiet", cwd=tmp_path)
    assert quiet.stderr.strip() == "results: out"
    rows = json.loads(llpbench(*command, "--json", cwd=tmp_path).stdout)
    assert rows == table(tmp_path / "out")
    wanted = {"dataset", "method", "bag_size", "noise", "rule", "metric", "mean", "sd", "seeds", "status"}
    assert all(wanted <= set(row) for row in rows)


@pytest.mark.slow
def test_table_formats_agree(finished: Path) -> None:
    rows = table(finished)
    assert {r["method"] for r in rows} == {"mean-ridge", "mean-ridge[gamma=0]", "mean-ridge[gamma=1]"}
    assert {r["noise"] for r in rows} == {"none", "high"}
    assert all(r["seeds"] == 2 and r["status"] == "ok" for r in rows)
    shown = f"{rows[0]['mean']:.2f} ({rows[0]['sd']:.2f})"
    for fmt in ("terminal", "markdown", "latex"):
        assert shown in llpbench("table", str(finished), "--format", fmt, cwd=finished).stdout
    csv = llpbench("table", str(finished), "--format", "csv", cwd=finished).stdout.splitlines()
    assert len(csv) == len(rows) + 1
    assert f"{rows[0]['mean']}" in csv[1]
    only = table(finished, "--rule", "bags")
    assert {r["rule"] for r in only} == {"bags"}
    assert len(only) * 2 == len(rows)


def test_table_explains_missing_rules_and_published_values(finished: Path) -> None:
    done = llpbench("table", str(finished), "--rule", "bags-cv", "--paper", cwd=finished)
    assert "no result has values under the rule bags-cv: llpbench run --folds K computes them" in done.stderr
    assert "no published values are known" in done.stderr
    assert llpbench("table", str(finished), "--rule", "counts", cwd=finished).stderr == ""


def test_table_accepts_known_metrics_and_rejects_unknown_ones(finished: Path) -> None:
    for metric in ("log_loss", "accuracy", "average_precision", "bag_error", "fit_seconds", "peak_memory_mb"):
        assert all(row["mean"] is not None for row in table(finished, "--metric", metric))
    done = llpbench("table", str(finished), "--metric", "auc", cwd=finished)
    assert done.returncode == 2
    assert "'auroc'" in done.stderr


def test_newest_results_are_the_default(finished: Path) -> None:
    done = llpbench("status", cwd=finished.parents[1])
    assert finished.name in done.stdout
    assert "24 ok" in done.stdout


def asked(verb: Any = "run", python: bool = False, **settings: Any) -> Request:
    return Request(verb=verb, settings=settings, python=python)


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (asked(methods=["a", "b[x=1;2]"], bags=[8, 512]), "llpbench run --methods 'a,b[x=1;2]' --bags 8,512"),
        (asked(seeds=[3]), "llpbench run --seeds 3-3"),
        (asked(seeds=3, feature_noise=[0.05]), "llpbench run --seeds 3 --feature-noise 0.05"),
        (asked(offline=True, predictions=False), "llpbench run --offline --no-predictions"),
        (asked(plugins=["a b.py", "c.py"]), "llpbench run --plugin 'a b.py' --plugin c.py"),
        (asked(timeout=90.0, out="x y"), "llpbench run --timeout 90 --out 'x y'"),
        (asked("tune", prune=False, shared=False), "llpbench tune --no-prune --no-shared"),
        (asked(python=True, methods="a", bags=[8]), "llpbench.run(methods='a', bags=[8])"),
        (asked("tune", True, ranges={"lr": [1, 2]}), "llpbench.tune(ranges={'lr': [1, 2]})"),
    ],
)
def test_requests_are_rendered_as_commands_that_parse_to_the_same_settings(request_: Request, text: str) -> None:
    assert str(request_) == text
    if not request_.python:
        command = {"run": run, "tune": tune}[request_.verb]
        parsed = command.make_context(request_.verb, shlex.split(text)[2:]).params
        known = {name: value for name, value in parsed.items() if name in TuneSettings.declared()}
        assert given_settings(known, TuneSettings) == request_.settings


def test_status_advises_how_to_run_failed_cells_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for before in (asked(methods=["guess"]), asked(methods=["guess"], rerun="stale", out="elsewhere")):
        store.plan([make_plan()], before, "0.1.0")
        store.write(make_result(status="failed", reason="because"))
        shown = CliRunner().invoke(status, [str(tmp_path)]).stdout
        assert f"again with: {before.replace(out=str(tmp_path), rerun='failed')}\n" in shown
        assert "other command" not in shown or before.settings["out"] == "elsewhere"


def test_status_prints_commands_of_older_manifests_unchanged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.plan([make_plan()], "llpbench run -m guess 'by hand", "0.1.0")
    assert "continue with: llpbench run -m guess 'by hand\n" in CliRunner().invoke(status, [str(tmp_path)]).stdout
    store.write(make_result(status="failed", reason="because"))
    shown = CliRunner().invoke(status, [str(tmp_path)]).stdout
    assert "again with: llpbench run -m guess 'by hand (with --rerun failed)\n" in shown
    assert json.loads(CliRunner().invoke(status, [str(tmp_path), "--json"]).stdout)["commands"] == [
        "llpbench run -m guess 'by hand"
    ]


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (asked("tune", methods=["guess"], out="x y/t"), "llpbench tune --methods guess --out 'x y/t-again'"),
        (asked("tune", methods=["guess"]), "llpbench tune --methods guess --out tuned-again"),
        (asked("tune", True, methods="guess"), "llpbench.tune(methods='guess', out='tuned-again')"),
        (asked("tune", out="."), f"llpbench tune --out {shlex.quote(f'{Path().resolve()}-again')}"),
        ("llpbench tune -m guess", "llpbench tune -m guess (with another --out)"),
    ],
)
def test_rerun_text_of_a_search_uses_another_folder(command: Command, text: str) -> None:
    """A search takes no --rerun: failed trials are not repeated, and studies of other code are rejected."""
    assert rerun_text(command, "failed") == rerun_text(command, "stale") == text


def test_status_of_a_search_prints_the_command_to_search_again(tmp_path: Path) -> None:
    store, cell = Store(tmp_path / "tuned"), make_cell(tuning=True)
    store.plan([make_plan(cell)], asked("tune", methods=["guess"]), "0.1.0")
    going = f"llpbench tune --methods guess --out {store.root}"
    assert f"\ncontinue with: {going}\n" in CliRunner().invoke(status, [str(store.root)]).stdout
    store.write(make_result(cell, status="failed", reason="because", protocol=PROTOCOL))
    shown = CliRunner().invoke(status, [str(store.root)]).stdout
    assert f"\nfailed trials are not repeated; search again with: {going}-again\n" in shown
    store.plan([make_plan(make_cell(tuning=True, seed=1))], asked("tune", methods=["guess"]), "0.1.0")
    store.write(make_result(cell, 0.5, protocol=1))
    shown = CliRunner().invoke(status, [str(store.root)]).stdout
    assert f"1 cell of another protocol (this is {PROTOCOL}): a search does not continue with them\n" in shown
    assert f"search again with: {going}-again\n" in shown
    assert "continue with:" not in shown


def test_advice_for_a_merged_folder_names_that_folder(tmp_path: Path) -> None:
    """A command of a folder that was merged into this one would fill the former."""
    store = Store(tmp_path / "all")
    for command in (asked(methods=["a"], out="one"), asked(methods=["guess"], bags=[8], out="two")):
        store.plan([make_plan()], command, "0.1.0")
    store.plan([make_plan()], asked(methods=["guess"], out="two"), "0.1.0")
    store.write(make_result(status="failed", reason="because"))
    shown = CliRunner().invoke(status, [str(store.root)]).stdout
    assert f"again with: llpbench run --methods guess --out {store.root} --rerun failed\n" in shown
    assert "this is the last command; 2 other commands wrote to the folder, too" in shown


def test_every_setting_is_an_option_an_argument_and_documented() -> None:
    for verb, call, settings in ((run, llpbench_run, RunSettings), (tune, llpbench_tune, TuneSettings)):
        options = {parameter.name for parameter in verb.params}
        arguments = inspect.signature(call).parameters
        assert list(arguments) == list(settings.declared())
        for name, setting in settings.declared().items():
            assert f"{name}: {setting.help.split()[0]}" in (call.__doc__ or "")
            assert name in options or not setting.flags or name in NOT_FOR_SEARCHES


def test_run_rejects_negative_jobs() -> None:
    with pytest.raises(UsageError, match=r"^--jobs -1: give how many cells run at once, or 0 for"):
        cells_at_once(-1, 1)
    assert cells_at_once(0, 1) >= 1


def test_config_file_and_flags(tmp_path: Path) -> None:
    run_file = tmp_path / "run.toml"
    run_file.write_text(f'methods = "mean-ridge"\ndatasets = ["{SMALL}"]\nbags = [4, 8]\nseeds = 1\nout = "here"\n')
    done = llpbench("run", "--config", "run.toml", "--bags", "16", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {row["bag_size"] for row in table(tmp_path / "here")} == {16}
    run_file.write_text('method = "mean-ridge"\n')
    wrong = llpbench("run", "--config", "run.toml", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "'method'" in wrong.stderr
    assert "'methods'" in wrong.stderr
    run_file.write_text('methods = "mean-ridge"\nbags = ["eight"]\n')
    wrong = llpbench("run", "--config", "run.toml", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "bags" in wrong.stderr


def test_dry_run_runs_nothing(tmp_path: Path) -> None:
    done = llpbench("run", "--methods", "mean-ridge,dllp", "--bags", "8", "--seeds", "2", "--dry-run", cwd=tmp_path)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 4
    assert not (tmp_path / "results").exists()


def test_list_and_show_print_all_facts(tmp_path: Path) -> None:
    content = json.loads(llpbench("list", "--json", cwd=tmp_path).stdout)
    assert {"dllp", "mean-ridge", "supervised"} <= {m["name"] for m in content["methods"]}
    assert {"adult", "marketing", "synthetic"} <= {d["name"] for d in content["datasets"]}
    assert content["broken"] == []
    shown = llpbench("show", "adult", cwd=tmp_path).stdout
    for word in ("48,842", "sha256", "CC BY 4.0", "encoding"):
        assert word in shown
    assert "log scale" in llpbench("show", "dllp", cwd=tmp_path).stdout
    shown = llpbench("show", "bp", cwd=tmp_path).stdout
    for line in ("paper     https://openreview.net/", "code      https://github.com/", "presets   paper"):
        assert f"\n  {line}" in shown


def test_show_describes_metrics_rules_and_long_parameters(tmp_path: Path) -> None:
    assert "\n  better    lower\n" in llpbench("show", "brier", cwd=tmp_path).stdout
    assert "only if named: --rule counts" in llpbench("show", "counts", cwd=tmp_path).stdout
    assert "\n  labels    it uses labels" in llpbench("show", "instances", cwd=tmp_path).stdout
    assert "group-by[columns=...]" in llpbench("show", "group-by", cwd=tmp_path).stdout
    lines = llpbench("show", "landscape", cwd=tmp_path, COLUMNS="80").stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("    set "))
    assert "one of" not in lines[start]  # a long default stands alone, and its choices below
    assert lines[start + 1].strip().startswith("one of naive-")
    assert max(map(len, lines[start : start + 9])) <= 80


def test_list_wraps_texts_on_a_terminal_and_not_in_a_pipe(tmp_path: Path) -> None:
    narrow = llpbench("list", cwd=tmp_path, COLUMNS="80").stdout
    assert max(map(len, narrow.splitlines())) <= 80
    assert " ".join(narrow.split()) == " ".join(llpbench("list", cwd=tmp_path).stdout.split())


def test_doctor_reports_no_problems_here(tmp_path: Path) -> None:
    done = llpbench("doctor", "--no-imports", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "no problems" in done.stdout
    assert "cores" in done.stdout


def test_completion_of_names(tmp_path: Path) -> None:
    done = llpbench(
        cwd=tmp_path,
        _LLPBENCH_COMPLETE="bash_complete",
        COMP_WORDS="llpbench run --methods mean-ridge,dl",
        COMP_CWORD="3",
    )
    assert done.stdout.splitlines() == ["plain,mean-ridge,dllp"]
    for shell in ("bash", "zsh", "fish"):
        assert "_LLPBENCH_COMPLETE" in llpbench("completion", shell, cwd=tmp_path).stdout


@pytest.mark.slow
def test_heading_names_the_labels_of_the_bound(tmp_path: Path) -> None:
    done = llpbench(
        "run", "--methods", "supervised[epochs=2],mean-ridge", "--datasets", SMALL, "--bags", "4,8", "--seeds", "1",
        "--out", "out", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    heading = done.stdout.splitlines()[0]
    assert "supervised[epochs=2]" in heading
    assert not any(line.strip().startswith("supervised") for line in done.stdout.splitlines())
    bound = [row for row in table(tmp_path / "out") if row["oracle"] and row["rule"] == "bags"]
    assert [row["bag_size"] for row in bound] == [4, 8]
    assert len(list((tmp_path / "out" / "cells").glob("*.json"))) == 3


def test_missing_engine_skips_cells_with_the_pip_command(tmp_path: Path) -> None:
    plugin = tmp_path / "needy.py"
    plugin.write_text(
        "from llpbench import MethodSpec, hookimpl\n\n@hookimpl\ndef llpbench_methods():\n"
        "    return [MethodSpec(name='needy', factory='needy:Needy', requires=('no_such_module',))]\n"
    )
    listed = llpbench("list", "--plugin", "needy.py", cwd=tmp_path).stdout
    assert "needs no_such_module: pip install no_such_module" in listed
    done = llpbench(
        "run",
        "--plugin",
        "needy.py",
        "--methods",
        "needy",
        "--datasets",
        SMALL,
        "--bags",
        "4",
        "--seeds",
        "1",
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert "skipped: needy needs no_such_module" in done.stderr


@pytest.mark.slow
def test_stale_results_run_again(tmp_path: Path) -> None:
    from llpbench.results.store import Store

    command = ["run", "--plugin", str(FAULTY), "--methods", "faulty-good", "--datasets", SMALL, "--bags", "4,8"]
    command += ["--seeds", "1", "--out", "out"]
    assert llpbench(*command, cwd=tmp_path).returncode == 0
    store = Store(tmp_path / "out")
    old = store.results()[0]
    old.versions = {**old.versions, "numpy": "1.0"}
    store.write(old)
    done = llpbench(*command, "--rerun", "stale", cwd=tmp_path)
    assert "2 cells, 1 already done" in done.stderr
    assert store.results()[0].versions["numpy"] != "1.0"
