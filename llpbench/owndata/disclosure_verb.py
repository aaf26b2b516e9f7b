"""``disclosure``: how many labels of single rows published tables of counts give away."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from llpbench.cli.interrupt import exit_on_interrupt
from llpbench.cli.options import NAMES
from llpbench.cli.printing import print_json, say
from llpbench.contracts.errors import LLPWarning, UsageError


@click.command(short_help="Attack published tables of counts: which labels of rows do they reveal?")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--label", metavar="COLUMN", help="Column with the true labels, which the attack does not see.")
@click.option("--tables", metavar="TABLES", help="Tables to form from the labels, e.g. education,occupation,age:6+sex.")
@click.option(
    "--counts-file",
    "counts_files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A published table instead: columns of FILE and the counts of their groups; may be repeated.",
)
@click.option("--classes", type=NAMES, help="Names of the classes of counts without names: no,yes.")
@click.option("--drop", type=NAMES, help="Columns to leave out.")
@click.option("--features/--no-features", default=True, help="Whether the attacker knows the columns of FILE.")
@click.option("--epsilon", type=NAMES, default="10,1", show_default=True, help="Noise to try on the counts, or none.")
@click.option("--delta", type=float, default=1e-5, show_default=True, help="Delta of the noise.")
@click.option("--draws", type=int, default=3, show_default=True, help="Number of draws of the noise.")
@click.option("--count-sd", type=float, default=0.0, help="Standard deviation of noise in the published counts.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the noise.")
@click.option("--separator", default="", help="Column separator of the files.  [default: detected]")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Also write the report as a page.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def disclosure(
    file: Path,
    label: str | None,
    counts_files: tuple[Path, ...],
    drop: list[str] | None,
    separator: str,
    html: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Attack tables of counts about the rows of FILE (CSV, TSV or Parquet), and count the labels that they reveal.

    Either --label and --tables form the tables from the true labels, or --counts-file gives published ones.
    """
    from llpbench.owndata.disclosure import disclosure as attack
    from llpbench.owndata.reading.files import column_of, read_table

    if bool(counts_files) == bool(options["tables"]):
        raise UsageError("give either --tables (with --label), or --counts-file with published counts.")
    table = read_table(file, separator)
    table = table.drop(columns=[column_of(table, name, file) for name in drop or ()])
    counts = [read_table(path, separator) for path in counts_files] or None
    truth = None if label is None else column_of(table, label, file)
    with exit_on_interrupt(), warnings.catch_warnings():
        warnings.simplefilter("ignore", LLPWarning)  # they are a part of the report
        found = attack(table, counts, truth=truth, **options)
    if html is not None:
        found.to_html(html)
    if as_json:
        print_json(found.to_dict())
    else:
        say(str(found))
