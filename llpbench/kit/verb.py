"""``check``: check that plugins meet the contract."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.cli.keywords import Keywords, chosen, keyword_option
from llpbench.cli.options import SettingType, plugin_options
from llpbench.cli.printing import say
from llpbench.contracts.errors import printable
from llpbench.experiment.run_settings import RunSettings

if TYPE_CHECKING:
    from llpbench.kit.kit import Check, CheckResult

_COLOUR = {"passed": "green", "failed": "red", "skipped": "yellow", "exempt": "yellow"}


@click.command(short_help="Check that methods and datasets meet the plugin contract.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--backend", default="jax", show_default=True, help="Backend of the networks of methods.")
@keyword_option("checks")
@click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first check that fails.")
@click.option(
    "--timeout",
    type=SettingType(RunSettings.timeout),
    default="10m",
    show_default=True,
    help="Time after which a check fails.",
)
@plugin_options
def check(
    names: tuple[str, ...],
    backend: str,
    matching: Keywords,
    exitfirst: bool,
    timeout: float,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Run every check of the conformance kit on each NAME: a method, a dataset or a plugin file (mymethod.py).

    Options in brackets replace the defaults: 'criteo[features=hashed]'.

    Prints each check with its result, and how many passed, failed and were skipped. The exit code is 1 if one failed.
    """
    from llpbench.kit.kit import checks_of, run_checks

    os.environ["KERAS_BACKEND"] = backend
    checks = chosen(checks_of(names, backend=backend, plugins=plugins, override=override), str, matching, "checks")
    progress = _Progress(len(checks))
    results = run_checks(checks, progress.finished, on_start=progress.started, timeout=timeout, exitfirst=exitfirst)
    counts = Counter(result.outcome for result in results)
    ran = counts["passed"] + counts["failed"] + counts["exempt"]
    words = [f"{ran} checks ran", f"{counts['passed']} passed", f"{counts['failed']} failed"]
    words += [f"{counts['exempt']} exempt", f"{counts['skipped']} skipped"]
    words += [f"{len(checks) - len(results)} not run"] if len(results) < len(checks) else []
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


class _Progress:
    """Prints each check as it ends, with its seconds; on a terminal also the one that runs."""

    def __init__(self, total: int) -> None:
        self.total, self.number, self.began = total, 0, 0.0
        self.live = sys.stderr.isatty()

    def started(self, check: Check) -> None:
        """Show which check runs."""
        self.number, self.began = self.number + 1, time.monotonic()
        if self.live:
            say(f"[{self.number}/{self.total}] {check}", err=True, nl=False)

    def finished(self, result: CheckResult) -> None:
        """Print how the check ended."""
        if self.live:
            click.echo("\r\x1b[K", err=True, nl=False)
        if result.outcome == "skipped" and result.reason == f"{result.check.needs} failed":
            return  # one cause, one report
        seconds = time.monotonic() - self.began
        reason = f"\n         {result.reason}" if result.reason else ""
        reason += f"\n         at {result.failed_at}" if result.failed_at else ""
        say(f"{result.outcome:<9}", fg=_COLOUR[result.outcome], nl=False)
        say(f"{result.check}: {result.check.summary}{f' ({seconds:.0f} s)' if seconds >= 1 else ''}{reason}")
