"""Printing the outcome of ``leaderboard verify``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from llpbench.board.reproduce.verify import FreshTest, Verification


def tell_verification(report: Verification) -> None:
    """Print the outcome of every cell, then counts, then doubts."""
    from llpbench.board.reproduce.verify import place_of
    from llpbench.cli.results import plural

    for result, verdict in report.remade:
        where = f"{result.method_name} on {place_of(result)}, seed {result.cell.seed}"
        click.echo(f"{verdict.word:<8} {result.id}  {where}")
        if verdict.changed and verdict.word != "equal":
            click.echo(f"         changed since it was made: {', '.join(verdict.changed)}")
    for result, now in report.failures:
        where = f"{result.method_name} on {place_of(result)}, seed {result.cell.seed}"
        click.echo(f"{'fails' if now.status == result.status else now.status:<8} {result.id}  {where}: {result.status}")
    for test in report.fresh:
        click.echo(_fresh_line(test))
    words = Counter(verdict.word for _, verdict in report.remade)
    click.echo(
        f"reproduced: {words['equal']} equal to the bit, {words['close']} within tolerance, {words['DIFFERS']} differ"
    )
    changes = [line.removeprefix("the ") for _, verdict in report.remade for line in verdict.changed]
    changed = Counter(line.partition(" ")[0] for line in changes)
    if changed:
        told = ", ".join(f"{what} ({plural(n, 'cell')})" for what, n in changed.items())
        click.echo(f"changed since they were made: {told}")
    if report.no_data:
        sets = ", ".join(sorted({result.dataset_name for result in report.no_data}))
        click.echo(f"skipped, data not available: {plural(len(report.no_data), 'cell')} of {sets}", err=True)
    for result in report.too_large:
        needs = plural(int(result.limits["threads"]), "thread")
        click.echo(
            f"skipped: cell {result.id} ({result.method_name}) needs {needs}, more than this machine has cores; "
            "--threads N uses fewer",
            err=True,
        )
    if report.failures:
        same = sum(now.status == result.status for result, now in report.failures)
        click.echo(f"published failures: {same} of {len(report.failures)} fail again")
    for note in report.notes:
        click.echo(f"note: {note}")
    if report.fresh:
        agree = sum(not test.doubt for test in report.fresh)
        click.echo(f"fresh seeds: {agree} of {plural(len(report.fresh), 'comparison')} agree")
    for doubt in report.doubts:
        click.echo(f"doubt: {doubt}", err=True)


def _fresh_line(test: FreshTest) -> str:
    ours, theirs = (sum(values) / len(values) for values in (test.published, test.fresh))
    judged = "not judged" if test.p is None else f"p {test.p:.2g}"
    return (
        f"{'DOUBT' if test.doubt else 'agrees':<8} {test.method} on {test.place}, rule {test.rule}: published "
        f"{ours:.2f} ({len(test.published)} seeds), fresh {theirs:.2f} ({len(test.fresh)}), {judged}"
    )
