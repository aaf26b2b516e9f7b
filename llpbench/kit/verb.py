"""``check``: check that plugins meet the contract."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.cli.options import plugin_options
from llpbench.cli.printing import say
from llpbench.contracts.errors import printable

if TYPE_CHECKING:
    from llpbench.kit.kit import CheckResult

_COLOUR = {"passed": "green", "failed": "red", "skipped": "yellow", "exempt": "yellow"}


@click.command(short_help="Check that methods and datasets meet the plugin contract.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--backend", default="jax", show_default=True, help="Backend of the networks of methods.")
@plugin_options
def check(names: tuple[str, ...], backend: str, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Run every check of the conformance kit on each NAME: a method, a dataset or a plugin file (mymethod.py).

    Options in brackets replace the defaults: 'criteo[features=hashed]'.

    Prints each check with its result, and how many passed, failed and were skipped. The exit code is 1 if one failed.
    """
    from llpbench.kit.kit import checks_of, run_checks

    os.environ["KERAS_BACKEND"] = backend
    checks = checks_of(names, backend=backend, plugins=plugins, override=override)
    results = run_checks(checks, _print)
    counts = Counter(result.outcome for result in results)
    ran = counts["passed"] + counts["failed"] + counts["exempt"]
    words = [f"{ran} checks ran", f"{counts['passed']} passed", f"{counts['failed']} failed"]
    words += [f"{counts['exempt']} exempt", f"{counts['skipped']} skipped"]
    say(", ".join(words))
    if counts["failed"]:
        say(f"full tracebacks: {_write_tracebacks(results)}")
    sys.exit(1 if counts["failed"] else 0)


def _write_tracebacks(results: list[CheckResult]) -> str:
    """Write the tracebacks of failed checks to a temporary file; return its path."""
    texts = [f"{r.check}: {r.check.summary}\n{r.traceback}" for r in results if r.outcome == "failed"]
    with tempfile.NamedTemporaryFile("w", prefix="llpbench-check-", suffix=".txt", delete=False) as file:
        file.write(printable("\n".join(texts), lines=True))
    return file.name


def _print(result: CheckResult) -> None:
    reason = f"\n         {result.reason}" if result.reason else ""
    reason += f"\n         at {result.failed_at}" if result.failed_at else ""
    say(f"{result.outcome:<9}", fg=_COLOUR[result.outcome], nl=False)
    say(f"{result.check}: {result.check.summary}{reason}")
