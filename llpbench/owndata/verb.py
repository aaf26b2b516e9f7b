"""``compare``: compare methods on your own table, with counts of bags but no labels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from llpbench.cli.interrupt import exit_on_interrupt
from llpbench.cli.options import NAMES, SettingType
from llpbench.cli.printing import say
from llpbench.contracts.errors import UsageError
from llpbench.experiment.run_settings import RunSettings


@click.command(short_help="Compare methods on your own table: bags and counts, no labels.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--bag", metavar="COLUMN", help="Column with the bag of each row.")
@click.option("--count", type=NAMES, help="Column with the bag's count of class 1, or one column per class: a,b,c.")
@click.option("--proportion", type=NAMES, help="The same with shares of the bag's rows instead of counts.")
@click.option(
    "--counts-file",
    "counts_files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A second file with the counts: one line per bag, or the columns BAG, class and count. Without --bag, a table "
    "of counts by the columns that it shares with FILE; may be repeated.",
)
@click.option("--drop", type=NAMES, help="Columns to leave out of the features.")
@click.option(
    "-m",
    "--methods",
    type=SettingType(RunSettings.methods),
    help="Methods, e.g. mean-ridge,dllp[lr=0.01].  [default: quick ones]",
)
@click.option("--count-sd", type=float, default=0.0, help="Standard deviation of noise in the counts.")
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True, help="Number of folds.")
@click.option(
    "--repeats", type=click.IntRange(min=1), help="Number of partitions into folds.  [default: 1, below 30 bags 3]"
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of folds and fits.")
@click.option("--backend", default="", help="Backend of the networks: jax, tensorflow or torch.  [default: jax]")
@click.option("--separator", default="", help="Column separator of the files.  [default: detected]")
@click.option("--quiet", is_flag=True, help="Print the table only, without progress.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A plugin in a single Python file; may be repeated.",
)
def compare(
    file: Path,
    bag: str | None,
    count: list[str] | None,
    proportion: list[str] | None,
    counts_files: tuple[Path, ...],
    drop: list[str] | None,
    separator: str,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare methods by cross-validation over the bags of FILE (CSV, TSV or Parquet).

    Each method is fitted on some bags and scored by how well it explains the counts of the others. No labels of rows
    are needed. Counts may be missing, or known within bounds ("<5").
    """
    from llpbench.owndata.compare import compare as run_comparison
    from llpbench.owndata.reading.files import column_of, read_table

    if bag is None and not counts_files:
        raise UsageError("give --bag with the bag of each row, or --counts-file with a table of counts by its columns.")
    if bag is not None and len(counts_files) > 1:
        raise UsageError("--bag takes one --counts-file; several tables of counts name the columns they group by.")
    if (count and proportion) or not (count or proportion or counts_files):
        raise UsageError("give either --count or --proportion, or --counts-file with the counts of each bag.")
    what, columns = ("proportions", proportion) if proportion else ("counts", count)
    table = read_table(file, separator)
    values: Any = []
    if not counts_files:
        values = [column_of(table, name, file) for name in columns or ()]
    else:
        for path in counts_files:
            found = read_table(path, separator)
            keys = [bag] if bag is not None else [name for name in found if name in table]
            found = found[[column_of(found, name, path) for name in [*keys, *(columns or found.columns)]]]
            values.append(found.loc[:, ~found.columns.duplicated()])
        values = values[0] if bag is not None else values
    table = table.drop(columns=[column_of(table, name, file) for name in drop or ()])
    progress: Any = False if quiet or as_json else lambda line: say(line, err=True)
    with exit_on_interrupt():
        bag_of = None if bag is None else column_of(table, bag, file)
        comparison = run_comparison(table, bag_of, **{what: values}, progress=progress, **options)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(comparison.to_dict()), indent=1).decode())
    else:
        say(str(comparison))
    sys.exit(0 if comparison.table["reason"].eq("").all() else 1)
