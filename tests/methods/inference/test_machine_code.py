"""Where the machine code of compiled functions is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FUNCTION = """
from llpbench_methods.inference.compiled.jit import njit

@njit
def one_more(x):
    return x + 1
"""
MOVE = """
import os
from function import one_more

os.environ["LLPBENCH_CACHE"] = "of-the-cell"
assert one_more(1) == 2
print(sum(one_more.stats.cache_hits.values()))
"""


def test_machine_code_is_kept_in_the_cache_of_the_process_that_compiles(tmp_path: Path) -> None:
    """Cells have a cache of their own, and are forked from a process that has imported the functions."""
    (tmp_path / "function.py").write_text(FUNCTION)
    environment = {**os.environ, "LLPBENCH_CACHE": "of-the-server", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", MOVE]
    hits = [subprocess.check_output(command, cwd=tmp_path, env=environment, text=True).strip() for _ in range(2)]
    assert hits == ["0", "1"]
    assert list(tmp_path.glob("of-the-cell/compiled/numba/**/*.nbi"))
    assert not (tmp_path / "of-the-server").exists()
