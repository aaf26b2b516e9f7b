"""``leaderboard inputs`` and ``leaderboard score``: for methods that are too large to be run here."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from llpbench.board.verbs.options import FOLDER
from llpbench.cli.options import Names, Numbers, Seeds, together
from llpbench.cli.printing import say

if TYPE_CHECKING:
    from llpbench.plugins.registry import Registry

data_options = together(
    click.option("--data", type=click.Path(file_okay=False), help="Folder with the data files (or LLPBENCH_DATA)."),
    click.option("--offline", is_flag=True, help="Never ask the network for data."),
)
"""Where data comes from."""


@click.command(short_help="Bags and rows as files, for methods that cannot be run here.")
@click.option("-d", "--datasets", type=Names("datasets"), required=True, help="Datasets, e.g. adult,marketing.")
@click.option("-b", "--bags", type=Numbers(int), help="Bag sizes.  [default: 8,32,128,512,1024,2048]")
@click.option("-s", "--seeds", type=Seeds(), default="3", show_default=True, help="How many seeds, or which.")
@click.option("--schemes", type=Names("schemes"), help="Ways of forming bags.  [default: random]")
@click.option("--noise", type=Names(), help="Privacy noise on counts: none,medium,high.  [default: none]")
@click.option("--split", type=click.Choice(["rows", "bags"]), help="What is split.  [default: rows]")
@click.option("-o", "--out", type=FOLDER, required=True, help="Folder to write; a new one.")
@data_options
def inputs(
    datasets: list[str],
    bags: list[int] | None,
    seeds: int | list[int],
    schemes: list[str] | None,
    noise: list[str] | None,
    split: str | None,
    out: Path,
    data: str | None,
    offline: bool,
) -> None:
    """Write what a method is given in each setting, and a submission.json to be filled in.

    \b
    inputs/SETTING.npz    X, bag_of, counts, count_sd, classes of the training bags; valid_... of the held-back
                          ones; test_X, the rows to be scored. No label is in it.
    submission.json       fill in the method and the seconds of each cell
    predictions/          put SETTING.npz here with the array test (scores of the rows of test_X), and hand it in
    """  # noqa: D301 - \b tells click to leave the lines as they are
    from llpbench.board.accept.inputs import settings, write_inputs
    from llpbench.execution.session import context_of
    from llpbench.experiment.grid import RunSpec
    from llpbench.plugins.registry import load_registry

    given = {"bags": bags, "schemes": schemes, "noise": noise, "split": split}
    axes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    spec = RunSpec(methods=["none"], datasets=datasets, seeds=seeds, **axes)
    registry = load_registry()
    wanted = settings(spec, registry)
    fetch((cell.dataset for cell in wanted), registry, data, offline)
    context = context_of(data, offline, (), (), predictions=False)
    for number, path in enumerate(write_inputs(out, wanted, registry, context), 1):
        say(f"{number}/{len(wanted)} {path}")
    say(f"fill in {out / 'submission.json'} and put scores into {out / 'predictions'} (docs/submitting.md)")


@click.command(short_help="Score predictions that were handed in; nothing is published.")
@click.argument("folder", type=FOLDER)
@data_options
def score(folder: Path, data: str | None, offline: bool) -> None:
    """Make the split of every cell of FOLDER again, hold the predictions to it and print what they score.

    FOLDER holds a submission.json and its predictions. `llpbench leaderboard add FOLDER` publishes the same numbers,
    marked as predictions only. Exit code 1: some were refused.
    """
    from llpbench.board.accept.handed_in import checked_submission
    from llpbench.board.accept.predictions import score_submission
    from llpbench.board.validate import Unsound, short_line
    from llpbench.contracts.cell import setting_name
    from llpbench.contracts.result import PREDICTIONS_ONLY
    from llpbench.execution.session import context_of
    from llpbench.plugins.registry import load_registry

    registry = load_registry()
    submission = checked_submission(folder, registry)
    about = submission.method
    fetch((cell.dataset for cell in submission.cells), registry, data, offline)
    say(f"{about.name}: {about.title} ({about.who})")
    say(f"{PREDICTIONS_ONLY}; selected by {about.rule!r}, as told")
    context, refused = context_of(data, offline, (), (), predictions=False), 0
    for told, scored in score_submission(folder, submission, registry, context):
        noise = "" if told.noise == "none" else f", noise {told.noise}"
        if isinstance(scored, Unsound):
            refused += 1
            where = setting_name(told.dataset, told.bag_size)
            click.echo(f"refused {where}, seed {told.seed}{noise}: {short_line(str(scored))}", err=True)
            continue
        result = scored.result
        where = f"{setting_name(result.dataset_name, told.bag_size)}, seed {told.seed}{noise}"
        for rule, chosen in result.selected.items():
            values = ", ".join(f"{name} {value:.4f}" for name, value in chosen.metrics.items() if value is not None)
            say(f"{result.id} {where}, rule {rule}: {values}")
    say(f"{len(submission.cells) - refused} of {len(submission.cells)} cells scored")
    sys.exit(1 if refused else 0)


def fetch(datasets: Iterable[str], registry: Registry, data: str | None, offline: bool) -> None:
    """Have the files of known datasets; unknown ones are refused later, with their cell."""
    from llpbench.report.progress import fetch_files

    for name in dict.fromkeys(datasets):
        if name in registry.datasets.entries:
            fetch_files(registry.datasets[name], Path(data) if data else None, offline=offline, quiet=True)
