"""A forger's workshop: honest folders of a real run, and tools that edit them and seal them again properly."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from board_samples import rule_version, set_metrics, shared
from cli_runner import llpbench

from llpbench.board.publish import add_results
from llpbench.board.built.build import built_files, differences
from llpbench.board.checks.audit import audit
from llpbench.board.content.folder import Content, raw_files, read_folder, write_files
from llpbench.board.content.lines import seal
from llpbench.contracts.errors import StoreError
from llpbench.contracts.result import PROTOCOL, CellResult
from llpbench.experiment.scoring import digest_of_labels
from llpbench.results.sealing import decode_result, encode_result

DATA = "synthetic[rows=600]"
GRID = ("--datasets", DATA, "--bags", "8", "--quiet")
VICTIM, WITNESS = "mean-ridge", "best-feature"
Arrays = dict[str, np.ndarray]


def make_honest(folder: Path) -> None:
    """``run`` and ``tuned-run`` with their ``tuned``, as the current protocol makes them."""
    for arguments in (
        ("run", "--methods", f"{VICTIM},{WITNESS}", *GRID, "--seeds", "2", "--noise", "none,high", "--out", "run"),
        ("tune", "--methods", VICTIM, *GRID, "--trials", "2", "--seeds", "2", "--per-seed", "--out", "tuned"),
        ("run", "--methods", VICTIM, *GRID, "--seeds", "2", "--params", "tuned", "--out", "tuned-run"),
    ):
        done = llpbench(*arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
    for name in ("run", "tuned-run"):
        bring_up_to_date(folder / name)


def bring_up_to_date(run: Path) -> None:
    """State what the current protocol asks for in results that do not; give every fit a curve of three reports."""
    for path in (run / "cells").glob("*.json"):
        result = decode_result(path.read_bytes())
        if result.status == "ok":
            _complete(run, result)
        path.write_bytes(encode_result(result))


def _complete(run: Path, result: CellResult) -> None:
    if result.protocol != PROTOCOL:
        result.protocol = PROTOCOL
        result.rules = {rule: rule_version(rule) for rule in result.selected}
        labels = read_arrays(run, result)["labels"]
        result.digests = {"test_labels": digest_of_labels(labels), "features": "0" * 64}
    if not result.code:
        made_by = dict.fromkeys(("harness", "method", "dataset"), "llpbench")
        made_by["method"] = next((name for name in result.versions if name.startswith("llpbench-")), "llpbench")
        result.code = {k: f"release {name} {result.versions[name]} sha256:{'0' * 32}" for k, name in made_by.items()}
    if len(result.history) == 1:
        (last,) = result.history
        poor = dict.fromkeys(last)
        poor |= {"bags": (last["bags"] or 0.0) + 0.2, "instances": (last["instances"] or 0.0) - 0.2}
        result.history = [poor, last, poor]
        for chosen in result.selected.values():
            chosen.report = 1


def read_arrays(run: Path, result: CellResult) -> Arrays:
    with np.load(run / "predictions" / f"{result.id}.npz") as arrays:
        return dict(arrays)


@dataclass
class Bench:
    """A copy of the honest folders that may be spoiled: ``run`` is not published yet, the witness's cells are."""

    root: Path
    run_name: str = "run"

    @property
    def run(self) -> Path:
        return self.root / self.run_name

    def result(self, method: str = VICTIM, seed: int = 0, noise: str = "none") -> CellResult:
        for path in sorted((self.run / "cells").glob("*.json")):
            found = decode_result(path.read_bytes())
            if (found.cell.method, found.cell.seed, found.cell.noise) == (method, seed, noise):
                return found
        raise AssertionError((method, seed, noise))

    def save(self, result: CellResult) -> None:
        """Seal a result with the project's own seal; a cell that changed gets its own id, and a place in the plan."""
        old = result.id
        result.id = result.cell.id
        (self.run / "cells" / f"{result.id}.json").write_bytes(encode_result(result))
        if result.id != old:
            predictions = self.run / "predictions"
            shutil.copy(predictions / f"{old}.npz", predictions / f"{result.id}.npz")

            def move(plan: dict[str, Any]) -> None:
                entry = plan["planned"].pop(old)
                plan["planned"][result.id] = {**entry, "cell": msgspec.to_builtins(result.cell)}

            self.edit_manifest(move)

    def edit_manifest(self, edit: Callable[[dict[str, Any]], object]) -> None:
        path = self.run / "manifest.json"
        content = json.loads(path.read_text())
        edit(content)
        path.write_text(json.dumps(content))

    def arrays(self, result: CellResult) -> Arrays:
        return read_arrays(self.run, result)

    def save_arrays(self, result: CellResult, arrays: Arrays) -> None:
        out = io.BytesIO()
        np.savez_compressed(out, **arrays)  # type: ignore[arg-type]
        (self.run / "predictions" / f"{result.id}.npz").write_bytes(out.getvalue())

    def rescore(self, result: CellResult, arrays: Arrays) -> None:
        """Make every metric, row count and digest fit other predictions: a careful forger."""
        set_metrics(result, arrays["labels"], arrays)
        result.rows = {**result.rows, "test": len(arrays["labels"])}
        self.save_arrays(result, arrays)

    def board_of(self, *methods: str) -> Content:
        """What is published of these methods."""
        honest = self.root / "honest"
        if not honest.exists():
            shutil.copytree(self.root / "run", honest)
        content = Content()
        manifest = json.loads((honest / "manifest.json").read_text())
        kept = {i: p for i, p in manifest["planned"].items() if p["cell"]["method"] in methods}
        (honest / "manifest.json").write_text(json.dumps({**manifest, "planned": kept}))
        report = add_results(honest, content, shared())
        (honest / "manifest.json").write_text(json.dumps(manifest))
        assert not report.refused, report.refused
        assert report.added
        return content


def publish(bench: Bench, content: Content, **how: Any) -> dict[str, str]:
    """Add the run; what is refused, with the reason."""
    return dict(add_results(bench.run, content, shared(), **how).refused)


def write_board(folder: Path, content: Content) -> None:
    """All files of a leaderboard, sealed and built with the project's own tools: what a forger would do."""
    for cell_id, line in content.lines.items():
        content.lines[cell_id] = seal(line.result, line.source)
    write_files(folder, {**raw_files(content), **built_files(content)})


def check_board(folder: Path) -> list[str]:
    """What ``leaderboard check`` says of a folder."""
    try:
        content = read_folder(folder)
    except StoreError as error:
        return [str(error)]
    return [*audit(content, shared()).problems, *differences(folder, content)]
