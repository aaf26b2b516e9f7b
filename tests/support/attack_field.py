"""A results folder under attack: an honest result, then a run of many attacks (``attacks/``)."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

ATTACKS = Path(__file__).parent / "attacks"
DATA, METHODS, SLEEPER = (ATTACKS / name for name in ("secret_data.py", "attacks.py", "sleeper.py"))
CELL = ["--datasets", "secret", "--bags", "5", "--seeds", "1"]
RUN = ["run", *(word for plugin in (DATA, METHODS, SLEEPER) for word in ("--plugin", str(plugin))), *CELL]


class Field:
    """A folder with the result of an honest method and everything that an attack may want to reach.

    ``attacks.py`` patches the scorer when it is imported, ``sleeper.py`` if the fork server imports it, and a module in
    the working directory would hide the library ``psutil``.
    """

    def __init__(self, folder: Path, *where: str) -> None:
        self.folder, self.out, self.where = folder, folder / "out", where
        self.dataset = f"secret[file={folder / 'desk' / 'table.csv'}]"
        self.environment = {
            "LLPBENCH_DATA": str(folder / "data"),
            "LLPBENCH_CACHE": str(folder / "cache"),
            "HOME": str(folder / "home"),
            "ATTACK_ON_IMPORT": "1",
            "PYTHONPATH": str(ATTACKS),
            "NO_COLOR": "1",
        }
        (folder / "cache" / "compiled").mkdir(parents=True)
        files = ("data/rows.csv", "cache/made/features.npy", "home/.profile", "leaderboards/board.json", "desk/notes")
        for file in (*files, "desk/table.csv"):
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text("1")
        (folder / "psutil.py").write_text("raise SystemExit(3)")
        done = self.run("mean-ridge")
        assert done.returncode == 0, done.stderr
        self.honest = self.files()
        shutil.copytree(self.out, folder / "earlier")

    def run(self, *methods: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        run = [self.dataset if word == "secret" else word for word in RUN]
        command = [sys.executable, "-P", "-m", "llpbench", *run, "--methods", ",".join(methods), *self.where, *options]
        environment = {**os.environ, **self.environment}
        listening = socket.create_server(("127.0.0.1", 0))
        with listening, tempfile.TemporaryDirectory(prefix="llpbench-cell-1-") as neighbour:
            Path(neighbour, "secret").write_text("a model")
            return subprocess.run(
                [*command, "--out", "out"], cwd=self.folder, env=environment, capture_output=True, text=True
            )

    def attack(self, *kinds: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return self.run(*(f"attack-{kind}[out={self.out}]" for kind in kinds), options=options)

    @cached_property
    def results(self) -> dict[str, dict[str, Any]]:
        """Results by method, read after the attacks."""
        found = [json.loads(path.read_bytes())["result"] for path in (self.out / "cells").glob("*.json")]
        return {result["cell"]["method"].removeprefix("attack-"): result for result in found}

    def files(self) -> dict[str, bytes]:
        kept = [*self.out.glob("cells/*.json"), *self.out.glob("predictions/*.npz")]
        return {path.name: path.read_bytes() for path in kept}
