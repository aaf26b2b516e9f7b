"""Options of the command line, made from declared settings."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from llpbench.contracts.errors import LLPBenchError, UsageError
from llpbench.experiment.run_settings import RunSettings
from llpbench.experiment.setting import FilePaths, Names, SettingField, Settings, Switch, described, listed_seeds

F = TypeVar("F", bound=Callable[..., Any])


class SettingType(click.ParamType[Any]):
    """Reads a value on the command line as its setting does; names are completed by the shell."""

    def __init__(self, setting: SettingField[Any, Any]) -> None:
        self.name, self.setting = setting.metavar.lower(), setting

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the value, or say what one looks like."""
        try:
            return self.setting.read(value if isinstance(value, str) else str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Names that continue what is typed after the last comma."""
        if self.setting.name == "suite":
            return complete_suites(ctx, param, incomplete)
        from llpbench.plugins.registry import load_registry

        head, comma, last = incomplete.rpartition(",")
        try:
            entries = getattr(load_registry(), self.setting.names) if self.setting.names else ()
        except LLPBenchError:
            return []
        return [
            CompletionItem(head + comma + entry.spec.name, help=entry.spec.summary)
            for entry in entries
            if entry.spec.name.startswith(last)
        ]


NAMES = SettingType(Names("", []))
"""Several names with commas between them."""
_CLICK_TYPES = {
    "TEXT": click.STRING,
    "INTEGER": click.INT,
    "FLOAT": click.FLOAT,
    "DIRECTORY": click.Path(file_okay=False),
}


_ALL = "llpbench.help_all"


class RareOption(click.Option):
    """An option that ``--help`` leaves out and ``--help-all`` shows."""


class BriefCommand(click.Command):
    """A command with many options: ``--help`` shows the common ones, ``--help-all`` all of them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)

        def show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
            del param
            if value and not ctx.resilient_parsing:
                ctx.meta[_ALL] = True
                click.echo(ctx.get_help())
                ctx.exit()

        text = "Show all options and exit."
        flag = click.Option(
            ["--help-all"], is_flag=True, expose_value=False, is_eager=True, callback=show_all, help=text
        )
        self.params.append(flag)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common options, or all."""
        shown = [p for p in self.get_params(ctx) if ctx.meta.get(_ALL) or not isinstance(p, RareOption)]
        with formatter.section("Options"):
            formatter.write_dl([record for p in shown if (record := p.get_help_record(ctx)) is not None])


def option(setting: SettingField[Any, Any], *, default_text: str = "") -> Callable[[F], F]:
    """The option of a setting; None, or an empty tuple, when it is not given."""
    flags = [f"-{setting.short}"] * bool(setting.short) + [*(setting.flags or "").split(","), setting.name]
    text = f"{setting.help}  [default: {default_text}]" if default_text else described(setting)
    cls = RareOption if setting.rare else click.Option
    if isinstance(setting, Switch):
        return click.option(*flags, cls=cls, is_flag=True, default=None, help=text)
    if setting.repeated:
        files = click.Path(path_type=Path, dir_okay=False) if isinstance(setting, FilePaths) else None
        return click.option(*flags, cls=cls, multiple=True, type=files, metavar=None if files else "NAME", help=text)
    kind = (
        click.Choice(setting.choices) if setting.choices else _CLICK_TYPES.get(setting.metavar) or SettingType(setting)
    )
    return click.option(*flags, cls=cls, type=kind, help=text)


def setting_options(settings: type[Settings], *without: str) -> Callable[[F], F]:
    """The options of a class of settings but for some; ``--help`` lists them in the order of declaration."""

    def decorate(command: F) -> F:
        for name, setting in reversed(settings.declared().items()):
            if setting.flags and name not in without:
                command = option(setting)(command)
        return command

    return decorate


def plugin_options(command: F) -> F:
    """``--plugin`` and ``--plugin-override``."""
    return option(RunSettings.override)(option(RunSettings.plugins)(command))


def remake_options(command: F) -> F:
    """Options for rerunning published cells."""
    for setting in (RunSettings.offline, RunSettings.data):
        command = option(setting)(command)
    for limit in (RunSettings.threads, RunSettings.memory, RunSettings.timeout):
        command = option(limit, default_text="as it was made")(command)
    return command


def complete_suites(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of suites that continue what is typed."""
    del ctx, param
    from llpbench.experiment.suites.file import suite_files
    from llpbench.plugins.registry import load_registry

    try:
        known = suite_files(load_registry())
    except LLPBenchError:
        return []
    return [CompletionItem(name) for name in known if name.startswith(incomplete)]


def folder_argument(command: F) -> F:
    """The results folder, the newest one by default."""
    return click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))(command)


def published_option(command: F) -> F:
    """``--board DIR``: a leaderboard whose published results are read, too."""
    return click.option(
        "--board",
        type=click.Path(path_type=Path, file_okay=False),
        help="With --suite: also read the published results of this leaderboard folder. `leaderboards` falls back to "
        "the board that comes with llpbench.",
    )(command)


def filter_options(command: F) -> F:
    """``--methods``, ``--datasets``, ``--bags`` and ``--seeds`` of what is shown, passed as ``shown``: a ``Filter``."""

    @functools.wraps(command)
    def run(*given: Any, methods: Any, datasets: Any, bags: Any, seeds: Any, **options: Any) -> Any:
        from llpbench.report.filter import Filter

        wanted = listed_seeds(seeds) if seeds else ()
        return command(*given, shown=Filter(methods or (), datasets or (), bags or (), wanted), **options)

    for setting in (RunSettings.seeds, RunSettings.bags, RunSettings.datasets, RunSettings.methods):
        flags = [f"-{setting.short}", setting.flags or ""]
        text = f"Only these {setting.name.replace('bags', 'bag sizes')}."
        run = click.option(*flags, type=SettingType(setting), help=text)(run)
    return run  # type: ignore[return-value]
