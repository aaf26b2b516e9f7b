"""``completion``: the script that lets a shell complete verbs, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print the completion script of a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes verbs, options, methods and datasets.

    \b
    bash:  eval "$(llpbench completion bash)"      (in ~/.bashrc)
    zsh:   eval "$(llpbench completion zsh)"       (in ~/.zshrc)
    fish:  llpbench completion fish | source
    """  # noqa: D301
    from llpbench.cli import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "llpbench", "_LLPBENCH_COMPLETE").source())
