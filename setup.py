"""Build step that copies the published leaderboard into the package. Everything else is in pyproject.toml.

Cells, descriptions, machines and marks of ``leaderboards/`` go to ``llpbench/board/published/`` in the wheel. Built
files, searches and bootstrap replicates (which are as large as the cells) do not.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

BOARD = Path(__file__).parent / "leaderboards"
PARTS = ("facts.json", "cells/*.jsonl", "datasets/*.json", "machines/*.json", "methods/*.json", "verified/*.jsonl")
INSIDE = Path("llpbench", "board", "published")


class BuildWithBoard(build_py):
    """``build_py`` that also copies the published board; an editable install finds it in the repository."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if not self.editable_mode:
            for source, target in self._board():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What the build writes, the board too."""
        return [*super().get_outputs(include_bytecode), *(str(target) for _, target in self._board())]

    def _board(self) -> list[tuple[Path, Path]]:
        found = sorted(path for part in PARTS for path in BOARD.glob(part))
        return [(path, Path(self.build_lib, INSIDE, path.relative_to(BOARD))) for path in found]


setup(cmdclass={"build_py": BuildWithBoard})
