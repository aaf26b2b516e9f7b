"""``data``: where the files of datasets are, fetching and checking them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.cli.options import F, Names, plugin_options

if TYPE_CHECKING:
    from llpbench.registry import Registry
    from llpbench.specs import DatasetSpec


@click.group(short_help="Fetch and check the files of datasets.")
def data() -> None:
    """Where dataset files come from, in order: --data or LLPBENCH_DATA, the cache, upstream, a package registry.

    Every file is checked against its sha256, whatever its source.
    """


def _chosen(registry: Registry, names: list[str] | None) -> list[DatasetSpec]:
    if names:
        return [registry.datasets[name] for name in names]
    return [entry.spec for entry in registry.datasets if entry.spec.files]


def _options(command: F) -> F:
    folder = click.option("--data", "data_dir", type=click.Path(path_type=Path, file_okay=False), help="Data folder.")
    names = click.argument("datasets", required=False, type=Names("datasets"))
    return names(folder(plugin_options(command)))


@data.command("list", short_help="Files, sizes, and where they are.")
@_options
def list_(
    datasets: list[str] | None, data_dir: Path | None, plugins: tuple[Path, ...], override: tuple[str, ...]
) -> None:
    """List the files of DATASETS (comma-separated; all by default)."""
    from llpbench.download import locate
    from llpbench.registry import load_registry

    for spec in _chosen(load_registry(plugins, override), datasets):
        click.secho(spec.name, bold=True)
        for item in locate(spec, data_dir):
            where = str(item.where) if item.state == "ok" else item.state
            click.echo(f"  {item.file.path:<40}{item.file.size / 1e6:>9.1f} MB  {where}")


@data.command(short_help="Verify every file against its checksum.")
@_options
def check(
    datasets: list[str] | None, data_dir: Path | None, plugins: tuple[Path, ...], override: tuple[str, ...]
) -> None:
    """Read the files of DATASETS again and compare their sha256; exit code 1 when one is missing or wrong."""
    from llpbench.download import locate
    from llpbench.registry import load_registry

    bad = False
    for spec in _chosen(load_registry(plugins, override), datasets):
        for item in locate(spec, data_dir, rehash=True):
            good = item.state == "ok"
            bad |= not good
            note = "" if good else f"  {item.note}"
            click.secho(f"{item.state:<8}{item.file.path}  {item.where}{note}", fg=None if good else "red")
    sys.exit(1 if bad else 0)


@data.command(short_help="Fetch files now instead of on first use.")
@_options
@click.option("--offline", is_flag=True, help="Look in the data folder and the cache only.")
def fetch(
    datasets: list[str] | None,
    data_dir: Path | None,
    offline: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Make sure of all files of DATASETS (comma-separated; all by default)."""
    from llpbench.registry import load_registry

    for spec in _chosen(load_registry(plugins, override), datasets):
        for path in fetch_files(spec, data_dir, offline=offline):
            click.echo(f"{spec.name}: {path}")


def fetch_files(spec: DatasetSpec, data_dir: Path | None, *, offline: bool, quiet: bool = False) -> list[Path]:
    """Fetch with a progress bar on a terminal."""
    from llpbench import download

    if quiet or not sys.stderr.isatty() or all(i.state == "ok" for i in download.locate(spec, data_dir)):
        return download.fetch(spec, data_dir, offline=offline)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, int] = {}

        def heard(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)  # type: ignore[arg-type]

        return download.fetch(spec, data_dir, offline=offline, progress=heard)
