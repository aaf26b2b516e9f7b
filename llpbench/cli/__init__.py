"""The command line. Verbs are imported when they are called, so ``--help`` stays fast."""

from __future__ import annotations

import errno
import importlib
import sys
from collections.abc import Sequence

import click

from llpbench import __version__
from llpbench.contracts.errors import DataUnavailableError, ExecutorError, LLPBenchError, printable

_VERBS = {
    "run": "llpbench.cli.run:run",
    "list": "llpbench.cli.listing:list_",
    "show": "llpbench.cli.listing:show",
    "status": "llpbench.cli.status:status",
    "table": "llpbench.cli.results:table",
    "plot": "llpbench.cli.plot:plot",
    "logs": "llpbench.cli.status:logs",
}


_SECTIONS = {
    "Run": ("run", "tune", "status", "rerun"),
    "Look at results": ("table", "plot", "versus", "report", "results", "logs", "cite"),
    "Your own data": ("compare", "disclosure"),
    "Extend": ("new", "check", "plugins", "suite"),
    "Publish": ("leaderboard",),
    "What is here": ("list", "show", "data", "doctor", "config", "cache", "completion"),
}
"""Verbs by what they are for, in the order of ``--help``; verbs of other plugins follow."""
_OTHERS = "Plugins"


class _Verbs(click.Group):
    """Built-in verbs by import path; verbs of plugins after them."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        self.commands.setdefault(name or cmd.name or "", cmd)  # the satellites of llpbench are loaded first

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._add_plugin_verbs()
        return [*_VERBS, *sorted(set(super().list_commands(ctx)) - set(_VERBS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _VERBS:
            module, attribute = _VERBS[cmd_name].split(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            return command
        self._add_plugin_verbs()
        return super().get_command(ctx, cmd_name)

    def _add_plugin_verbs(self) -> None:
        from llpbench.plugins.registry import load_registry

        load_registry().add_commands(self)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs in sections."""
        known = {name: command for name in self.list_commands(ctx) if (command := self.get_command(ctx, name))}
        sections = {title: [name for name in names if name in known] for title, names in _SECTIONS.items()}
        sections[_OTHERS] = [name for name in known if not any(name in names for names in sections.values())]
        width = max(map(len, known))
        for title, names in sections.items():
            if names:
                with formatter.section(title):
                    limit = formatter.width - 6 - width
                    formatter.write_dl([(f"{n:<{width}}", known[n].get_short_help_str(limit)) for n in names])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        from llpbench.contracts.errors import UnknownNameError

        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise UnknownNameError("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="llpbench")
def cli() -> None:
    """Benchmark methods that learn from label proportions.

    \b
    llpbench run --methods bp,dllp --bags 8,512   run a grid and print its table
    llpbench list                                 methods, datasets and suites
    llpbench show dllp                            parameters of a method
    """  # noqa: D301 - \b tells click to leave the lines as they are


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point: errors are printed as sentences; exit 2 for a request that cannot be served."""
    try:
        sys.exit(cli.main(args=argv, prog_name="llpbench", standalone_mode=False) or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        click.echo(f"error: {printable(error.format_message(), lines=True)}{hint}", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except LLPBenchError as error:
        click.echo(f"error: {printable(str(error), lines=True)}", err=True)
        sys.exit(1 if isinstance(error, DataUnavailableError | ExecutorError) else 2)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        click.echo(f"error: the file name is too long: {printable(str(error.filename))[:100]}...", err=True)
        sys.exit(2)
