"""``doctor``: check this machine, and say how to fix what is broken."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from llpbench.cli.options import plugin_options
from llpbench.cli.printing import print_json, say


@click.command(short_help="Check this machine: requirements, backends, plugins, data, disk.")
@click.option("--imports/--no-imports", default=True, show_default=True, help="Import backends, engines and plugins.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plugin_options
def doctor(imports: bool, as_json: bool, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Check versions, backends, plugins, data files and folders. Exit code 1 if something is broken.

    Backends and all modules of methods and datasets are imported in separate processes with a time limit, so that a
    broken installation is found here and not in a cell.
    """
    from llpbench.kit.diagnosis import diagnose
    from llpbench.plugins.registry import load_registry

    live = sys.stderr.isatty()

    def show(step: str = "") -> None:
        if live:
            click.echo(f"\r\x1b[K{f'checking {step} ...' if step else ''}", err=True, nl=False)

    report = diagnose(load_registry(plugins, override), imports=imports, on_step=show)
    show()
    if as_json:
        print_json(report)
    else:
        _print(report)
    sys.exit(1 if report["problems"] else 0)


def _print(report: dict[str, Any]) -> None:
    from llpbench.kit.diagnosis import python_line

    facts, cells = report["machine"], report["cells"]
    say(python_line(report))
    say(f"machine: {facts['cpu']}, {facts['usable_cores']} usable cores, {facts['memory_gb']:g} GB")
    forked = cells["start"] == "fork"
    start = "forked from a server with preloaded imports" if forked else "spawned (fork is not safe on this system)"
    say(f"cells: {start}; {cells['memory_mb']} MB each at most")
    say(f"process of a method: {report['method_process']}")
    say(f"requirements: {len(report['requirements'])} checked")
    for item in report["packages"]:
        say(f"  {item['name']:<14}{item['version']:<12}{item['state']}")
    say("plugins")
    for plugin in report["plugins"]:
        say(f"  {plugin['plugin']:<14}{plugin['from']:<24}{plugin['code'].split(' ')[0]}")
    for item in report["modules"]:
        say(f"  {item['package']}: {item['fine']} modules import")
        for module, missing in item["absent"].items():
            say(f"    {module} needs {missing}, which is not installed")
    say("data")
    for item in report["data"]:
        size = f" ({item['to_fetch_bytes'] / 1e6:,.1f} MB)" if item["to_fetch_bytes"] else ""
        say(f"  {item['name']:<14}{item['state']}{size}")
        for path, reason in item["cannot_be_fetched"].items():
            say(f"    {path}: {reason}")
    for problem in report["problems"]:
        say(problem, fg="red")
    say("problems were found" if report["problems"] else "no problems")
