"""The plugins printed in the pages on writing methods and datasets pass the kit as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_runner import llpbench

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [
    (page, block)
    for page in ("writing-a-method.md", "writing-a-dataset.md")
    for block in re.findall(r"```python\n(# (\w+)\.py\n.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)
]


def test_the_pages_hold_the_plugins_they_promise() -> None:
    assert [name for _, (_, name) in PAGES] == ["sorted_bags", "torch_dllp", "circles"]


@pytest.mark.slow
@pytest.mark.parametrize("block", [block for _, block in PAGES], ids=[name for _, (_, name) in PAGES])
def test_a_printed_plugin_passes_the_kit(tmp_path: Path, block: tuple[str, str]) -> None:
    code, name = block
    (tmp_path / f"{name}.py").write_text(code)
    done = llpbench("check", f"{name}.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 failed" in done.stdout
