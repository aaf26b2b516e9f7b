"""``doctor``: is this machine ready, and if not, what to type."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

import click

from llpbench import __version__
from llpbench.cli.listing import report_troubles
from llpbench.cli.options import plugin_options


@click.command(short_help="Check this machine: backends, plugins, data, disk.")
@plugin_options
def doctor(plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Check versions, backends, plugins, data files and folders. Exit code 1 when something is broken."""
    from llpbench.execution.launch import FORK_IS_SAFE
    from llpbench.execution.session import default_memory_mb
    from llpbench.plugins.registry import load_registry
    from llpbench.system.machine import machine, usable_cores, versions

    registry = load_registry(plugins, override)
    facts = machine()
    click.echo(f"llpbench {__version__}, Python {platform.python_version()}, {facts['system']} {facts['architecture']}")
    click.echo(f"machine: {facts['cpu']}, {len(usable_cores())} usable cores, {facts['memory_gb']:g} GB")
    start = "forked from a server with imports done" if FORK_IS_SAFE else "spawned (fork is not safe on this system)"
    click.echo(f"cells: {start}; {default_memory_mb():.0f} MB each at most")
    found = versions("keras", "jax", "tensorflow", "torch", "pgmax", "optuna", "distributed")
    for extra, package in (
        ("jax", "jax"),
        ("tensorflow", "tensorflow"),
        ("torch", "torch"),
        ("pgmax", "pgmax"),
        ("tune", "optuna"),
        ("dask", "distributed"),
    ):
        state = found.get(package) or f'not installed: pip install "llpbench[{extra}]"'
        click.echo(f"  {package:<12}{state}")
    bad = _check_data(registry)
    bad |= _check_folder("results", Path("results"))
    bad |= report_troubles(registry)
    click.echo("something needs attention" if bad else "all well")
    sys.exit(1 if bad else 0)


def _check_data(registry: object) -> bool:
    from llpbench.datafiles.store import locate

    bad = False
    for entry in registry.datasets:  # type: ignore[attr-defined]
        if not entry.spec.files:
            continue
        located = locate(entry.spec)
        wrong = [item for item in located if item.state == "wrong"]
        absent = [item for item in located if item.state == "missing"]
        state = "wrong files" if wrong else "to be fetched on first use" if absent else "ready"
        click.echo(f"  {entry.spec.name:<12}{state}")
        for item in wrong:
            click.secho(f"    {item.where}: {item.note}", fg="red")
        bad |= bool(wrong)
    return bad


def _check_folder(name: str, path: Path) -> bool:
    nearest = path
    while not nearest.exists():
        nearest = nearest.resolve().parent
    if os.access(nearest, os.W_OK):
        return False
    click.secho(f"{name} folder {path} cannot be written; use --out", fg="red")
    return True
