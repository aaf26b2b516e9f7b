"""``plot``: charts of a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.cli.options import filter_options, folder_argument, plugin_options
from llpbench.cli.printing import say
from llpbench.cli.results import open_store

if TYPE_CHECKING:
    from llpbench.report.filter import Filter


@click.command(short_help="Draw charts of a results folder.")
@folder_argument
@click.option(
    "--kind",
    type=click.Choice(["bags", "curves", "time", "noise"]),
    default="bags",
    show_default=True,
    help="bags: the metric against bag size; curves: values on held-out data by report; time: the metric against "
    "seconds; noise: the metric by noise level.",
)
@click.option("--metric", default="auroc", show_default=True, help="What to draw (not for curves).")
@click.option("--rule", default="bags", show_default=True, help="The selection rule.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A .pdf, .svg or .png file.  [default: FOLDER/KIND.pdf]",
)
@filter_options
@plugin_options
def plot(
    folder: Path | None,
    kind: str,
    metric: str,
    rule: str,
    out: Path | None,
    shown: Filter,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Draw a chart of FOLDER (by default the newest results) with matplotlib, one panel for each setting.

    FOLDER may also be one of `llpbench tune`: its curves are those of the trials.
    """
    from llpbench.plugins.registry import load_registry
    from llpbench.report.charts import save, without_display
    from llpbench.report.results import Results

    store = open_store(folder)
    without_display()
    results = Results(store, list(store.manifest().planned.values()), load_registry(plugins, override)).where(shown)
    path = out or store.root / f"{kind}.pdf"
    save(results.plot(kind, metric, rule), path)
    say(f"wrote {path}")
