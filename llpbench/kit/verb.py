"""``check``: hold a plugin to the contract."""

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
    from llpbench.kit.kit import Verdict

_COLOUR = {"passed": "green", "failed": "red", "skipped": "yellow", "exempt": "yellow"}


@click.command(short_help="Hold methods and datasets to the contract.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--backend", default="jax", show_default=True, help="Backend of the networks of methods.")
@plugin_options
def check(names: tuple[str, ...], backend: str, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Run every check of the conformance kit on each NAME: a method, a dataset, or a plugin file (mymethod.py).

    Options in brackets are checked instead of the defaults: 'criteo[features=hashed]'.

    Prints each demand with its verdict and how many ran, were skipped and failed. Exit code 1 when one failed.
    """
    from llpbench.kit.kit import checks_of, run_checks

    os.environ["KERAS_BACKEND"] = backend
    checks = checks_of(names, backend=backend, plugins=plugins, override=override)
    verdicts = run_checks(checks, _print)
    counts = Counter(verdict.outcome for verdict in verdicts)
    ran = counts["passed"] + counts["failed"] + counts["exempt"]
    words = [f"{ran} checks ran", f"{counts['passed']} passed", f"{counts['failed']} failed"]
    words += [f"{counts['exempt']} exempt", f"{counts['skipped']} skipped"]
    say(", ".join(words))
    if counts["failed"]:
        say(f"full tracebacks: {_write_tracebacks(verdicts)}")
    sys.exit(1 if counts["failed"] else 0)


def _write_tracebacks(verdicts: list[Verdict]) -> str:
    """Keep the tracebacks of what failed in one temporary file; its path."""
    texts = [f"{v.check}: {v.check.demand}\n{v.traceback}" for v in verdicts if v.outcome == "failed"]
    with tempfile.NamedTemporaryFile("w", prefix="llpbench-check-", suffix=".txt", delete=False) as file:
        file.write(printable("\n".join(texts), lines=True))
    return file.name


def _print(verdict: Verdict) -> None:
    reason = f"\n         {verdict.reason}" if verdict.reason else ""
    reason += f"\n         at {verdict.failed_at}" if verdict.failed_at else ""
    say(f"{verdict.outcome:<9}", fg=_COLOUR[verdict.outcome], nl=False)
    say(f"{verdict.check}: {verdict.check.demand}{reason}")
