"""Run files: saved from options, with plugins and aliases, listed and documented; and the logs of a run."""

from __future__ import annotations

from pathlib import Path

from cli_runner import FAULTY, llpbench

from llpbench.execution.settings import NOT_IN_FILES
from llpbench.experiment.run_settings import RunSettings

ROOT = Path(__file__).resolve().parents[2]
SMALL = "synthetic[rows=400;dim=4]"
PLUGIN = """
from llpbench import MethodSpec, Param, hookimpl

@hookimpl
def llpbench_methods():
    return [MethodSpec(name="of-a-file", factory=f"{__name__}:Never", params=(Param("power", 1.0),))]
"""


def test_saved_run_file_repeats_the_request(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "of_a_file.py").write_text(PLUGIN)
    request = ["run", "-m", "of-a-file[power=1;2],mean-ridge", "-d", f"{SMALL},adult", "-b", "8,16", "-s", "3,5"]
    request += ["--epsilon", "3", "--timeout", "30m", "--plugin", "kept/of_a_file.py"]
    planned = llpbench(*request, "-n", cwd=tmp_path).stdout
    assert len(planned.splitlines()) == 24
    saved = llpbench(*request, "--save", "kept/run.toml", cwd=tmp_path)
    assert saved.returncode == 0, saved.stderr
    assert not (tmp_path / "results").exists()
    assert llpbench("run", "--config", "kept/run.toml", "-n", cwd=tmp_path).stdout == planned
    assert llpbench("run", "--config", "run.toml", "-n", cwd=tmp_path / "kept").stdout == planned
    again = llpbench(*request, "--save", "kept/run.toml", cwd=tmp_path)
    assert again.returncode == 2
    assert "File exists" in again.stderr


def test_aliases_of_a_run_file_are_short_names(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text(
        f'methods = "mean-ridge"\ndatasets = ["small"]\nbags = 8\nseeds = 1\n[aliases]\nsmall = "{SMALL}"\n'
    )
    planned = llpbench("run", "-m", "mean-ridge", "-d", SMALL, "-b", "8", "-s", "1", "-n", cwd=tmp_path).stdout
    assert llpbench("run", "--config", "run.toml", "-n", cwd=tmp_path).stdout == planned
    both = llpbench("run", "--config", "run.toml", "-d", "small,adult", "-n", cwd=tmp_path).stdout
    assert both.startswith(planned)
    assert len(both.splitlines()) == 2
    file.write_text('methods = "mean-ridge"\naliases = 3\n')
    done = llpbench("run", "--config", "run.toml", cwd=tmp_path)
    assert "aliases: expected a table of texts ([aliases]), got 3" in done.stderr


def test_every_key_is_documented() -> None:
    page = (ROOT / "docs" / "run-files.md").read_text()
    for name, setting in RunSettings.declared().items():
        shown, meaning = f"`{setting.shown}`" if setting.shown else "", setting.help.replace("|", "\\|")
        assert (f"| `{name}` | {shown} | {meaning} |" in page) == (name not in NOT_IN_FILES), name


def test_run_files_of_packages_are_listed(tmp_path: Path) -> None:
    said = llpbench("list", "runs", cwd=tmp_path).stdout
    assert "  paper-protocol " in said
    assert "  pairs                     Do similarity pairs matter?" in said


def test_logs_print_what_failed_cells_printed(tmp_path: Path) -> None:
    command = ["run", "--plugin", str(FAULTY), "-m", "faulty-raise,faulty-good", "-d", SMALL, "-b", "8", "-s", "1"]
    assert llpbench(*command, "-o", "out", cwd=tmp_path).returncode == 1
    said = llpbench("logs", "out", cwd=tmp_path).stdout
    assert said.startswith(f"failed  faulty-raise on {SMALL}, bag 8, seed 0  (")
    assert "ValueError: the method is unhappy" in said
    nothing = llpbench("logs", "out", "-k", "faulty-good", cwd=tmp_path)
    assert "none of 1 cell printed anything" in nothing.stderr
