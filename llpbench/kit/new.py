"""``new``: write a working plugin package from a template."""

from __future__ import annotations

import re
import shlex
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import click

from llpbench.cli.printing import say
from llpbench.contracts.errors import StoreError, UsageError

_COMMANDS = {
    "method": "llpbench check {name}\nllpbench run --methods {name},mean-ridge --datasets synthetic --bags 8,64",
    "dataset": "llpbench check {name}\nllpbench run --methods mean-ridge --datasets {name} --bags 8,64",
    "metric": "llpbench run --methods mean-ridge --datasets synthetic --bags 8,64 --metric {name}",
    "scheme": "llpbench run --methods mean-ridge --datasets synthetic --bags 8,64 --schemes {name}",
    "rule": "llpbench run --methods dllp --datasets synthetic --bags 8,64",
}
"""The kinds of plugins, and how each is tried."""
_CHECKED = ("method", "dataset")
_TITLES = {"scheme": "bag scheme", "rule": "selection rule"}


@click.command(short_help="Create a plugin package from a template.")
@click.argument("kind", type=click.Choice(list(_COMMANDS)))
@click.argument("name")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder to write.  [default: llpbench-NAME]")
def new(kind: str, name: str, out: Path | None) -> None:
    """Create a package with an entry point, a small working KIND called NAME, tests and a README.

    Its tests pass once it is installed (`pip install -e llpbench-NAME`). Those of a method or dataset are the checks of
    `llpbench check`.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise UsageError(f"the name {name!r} must be lower-case words joined by '-', e.g. my-{kind}.")
    _check_name_is_free(kind, name)
    folder = out or Path(f"llpbench-{name}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "is not empty" if folder.is_dir() else "is a file"
        raise UsageError(f"{folder} exists and {what}; choose another --out.")
    package = "llpbench_" + name.replace("-", "_")
    commands = _COMMANDS[kind].format(name=name)
    words = {"name": name, "package": package, "kind": _TITLES.get(kind, kind), "commands": commands}
    words |= {"class_name": "".join(map(str.title, name.split("-"))), "function": name.replace("-", "_")}
    parts = ("shared", *["checked"] * (kind in _CHECKED), kind)
    for path, text in (item for part in parts for item in _templates(files("llpbench.kit") / "templates" / part)):
        target = folder / str(path).replace("package", package, 1).removesuffix(".txt")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_fill(text, words), encoding="utf-8")
        except OSError as error:
            raise StoreError(f"cannot write {target}: {error.strerror or error}. Choose another --out.") from None
    say(f"wrote {folder}. Next:\n  pip install -e {shlex.quote(str(folder))}")
    for command in commands.splitlines():
        say(f"  {command}")


def _check_name_is_free(kind: str, name: str) -> None:
    from llpbench.plugins.registry import load_registry

    registry = load_registry()
    known = getattr(registry, f"{kind}s")
    if name in known.entries:
        plugin = known.entries[name].plugin
        raise UsageError(f"the {kind} {name!r} already exists ({plugin.origin}); choose another name.")


def _templates(root: Traversable, inside: str = "") -> list[tuple[str, str]]:
    found = []
    for item in sorted(root.iterdir(), key=lambda i: i.name):
        path = f"{inside}{item.name}"
        if item.is_dir():
            found += _templates(item, f"{path}/")
        elif item.name.endswith(".txt"):
            found.append((path, item.read_text(encoding="utf-8")))
    return found


def _fill(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace("{" + word + "}", value)
    return text
