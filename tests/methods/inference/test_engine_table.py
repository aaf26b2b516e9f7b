"""An engine is one entry: what derives from it, and a plugin file that adds one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import llpbench_process
from helpers import PATIENCE

from llpbench_methods.bp.params import BPSettings, bp_params
from llpbench_methods.bp_field.params import FieldSettings, field_params
from llpbench_methods.inference import EngineSpec, add_engine, all_engines, engine_spec, marginals

PLUGIN = Path(__file__).parent / "engine_plugin.py"


def test_choices_are_the_engines_and_bp_has_those_of_pairs() -> None:
    (param,) = (p for p in field_params() if p.name == "engine")
    assert param.choices == tuple(engine.name for engine in all_engines())
    assert all(engine.summary in param.doc for engine in all_engines())
    assert param.default == FieldSettings().engine == "count"
    (pairs,) = (p for p in bp_params() if p.name == "engine")
    assert pairs.choices == tuple(engine.name for engine in all_engines() if not engine.counting)
    assert pairs.default == BPSettings().engine == "pairwise"


def test_engines_say_how_they_differ() -> None:
    assert {e.name for e in all_engines() if e.counting} == {"count", "reference-count"}
    assert {e.name for e in all_engines() if e.multiclass} == {"count", "reference-count"}
    assert {e.name for e in all_engines() if e.threads} == {"count", "pairwise"}


def test_name_belongs_to_one_engine() -> None:
    add_engine(engine_spec("count"))  # the same again
    with pytest.raises(ValueError, match="another engine is already named 'count'"):
        add_engine(EngineSpec("count", "somewhere:start"))
    with pytest.raises(ValueError, match="module:function"):
        add_engine(EngineSpec("other", "somewhere"))
    with pytest.raises(ValueError, match="unknown engine 'nobody': choose from count, pairwise"):
        marginals(None, "nobody")  # type: ignore[arg-type]


def test_engine_of_a_plugin_leaves_other_cells_alone() -> None:
    code = (
        "import sys; from pathlib import Path; from llpbench.plugins.registry import load_registry\n"
        "before = load_registry().methods['bp-field']; after = load_registry([Path(sys.argv[1])]).methods['bp-field']\n"
        "assert before.resolve({}) == after.resolve({})\n"
        "print(set(after.param('engine').choices) - set(before.param('engine').choices))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(PLUGIN)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout.strip() == "{'mine'}", done.stderr


@pytest.mark.slow
def test_engine_of_a_plugin_runs_end_to_end(tmp_path: Path) -> None:
    methods = ",".join(f"bp-field[engine={name};iterations=1;epochs=2]" for name in ("mine", "reference-count"))
    arguments = ("run", "--methods", methods, "--datasets", "synthetic[rows=400]", "--bags", "8", "--seeds", "1")
    refused = llpbench_process(*arguments, "--out", "none", cwd=tmp_path)  # a process: engines stay registered
    assert refused.returncode == 2
    assert "mine" in refused.stderr
    done = llpbench_process(*arguments, "--plugin", str(PLUGIN), "--out", "out", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    results = [json.loads(path.read_text())["result"] for path in sorted((tmp_path / "out" / "cells").glob("*.json"))]
    found = {result["cell"]["params"]["engine"]: result for result in results}
    assert set(found) == {"mine", "reference-count"}
    assert found["mine"]["status"] == "ok"
    for part in ("selected", "history", "notes"):
        assert found["mine"][part] == found["reference-count"][part]
