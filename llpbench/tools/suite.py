"""``suite``: for those who make a suite: write its frozen values, and compare them with what is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import msgspec

from llpbench import __version__
from llpbench.cli.options import complete_suites, plugin_options
from llpbench.cli.printing import say
from llpbench.cli.results import plural
from llpbench.contracts.errors import UsageError
from llpbench.contracts.specs import BagScheme, DatasetSpec, MethodSpec
from llpbench.experiment.suites.file import Frozen, Suite, Values, find_suite, read_suite
from llpbench.experiment.suites.frozen import NONE, check_suite, used_names
from llpbench.plugins.registry import Registry, load_registry
from llpbench.system.files import write_atomically

KINDS = ("methods", "datasets", "schemes")
MARK = "# Frozen values, written by `llpbench suite freeze FILE`. Do not edit below this line."


@click.group("suite", short_help="Make a suite: freeze and check the values in its file.")
def suite_() -> None:
    """For whoever makes a suite: write today's defaults into its file, and see what has changed since.

    To run one: llpbench run --suite NAME. To see what is in it: llpbench show NAME.
    """


@suite_.command(short_help="Write today's defaults into the file of a draft.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@plugin_options
def freeze(file: Path, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Write the parameters of every method, dataset and bag scheme of a suite, at today's defaults, into its FILE.

    Only a draft can be frozen anew. A suite that is published never changes: copy its file to a new version.
    """
    suite, changed = freeze_suite(file, load_registry(plugins, override))
    for line in changed:
        say(line)
    say(f"{file}: {suite.name}, {suite.state}; {plural(len(changed), 'value')} changed", err=True)


@suite_.command(short_help="Say where defaults are others than a suite froze.")
@click.argument("name", shell_complete=complete_suites)
@plugin_options
def check(name: str, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """Compare what suite NAME (or a file) froze with what is installed.

    Exit code 0: all is the same; 1: some defaults are others now, and a run uses the suite's; 2: it cannot be run here.
    """
    registry = load_registry(plugins, override)
    suite, _ = find_suite(name, registry)
    notes = check_suite(suite, registry)
    for note in notes:
        say(note)
    say(f"{suite.name}: {plural(len(notes), 'difference')}; {suite.state}", err=True)
    sys.exit(1 if notes else 0)


def freeze_suite(path: Path, registry: Registry) -> tuple[Suite, list[str]]:
    """Write the installed defaults and versions of rules into the file of a draft; returns it, and the changes.

    Raises:
        UsageError: the suite is published.
    """
    before = read_suite(path)
    if before.published:
        raise UsageError(
            f"suite {before.name} is published ({before.published}): its values never change. Copy the file to a new "
            "version (another name and version, no 'published'), and freeze that."
        )
    frozen = freeze_values(before, registry)
    head = path.read_text(encoding="utf-8").partition(MARK)[0].rstrip()
    if "[frozen" in head:
        raise UsageError(f"{path}: remove [frozen] above the line {MARK!r}.")
    write_atomically(path, f"{head}\n\n{MARK}\n{_toml(frozen)}".encode())
    after = read_suite(path)
    return after, changes(before.frozen, after.frozen)


def freeze_values(suite: Suite, registry: Registry) -> Frozen:
    """The installed defaults of all that a suite names, and the versions of all rules."""
    values = {
        kind: {name: _plain(getattr(registry, kind)[name]) for name in names}
        for kind, names in used_names(suite).items()
    }
    rules = {spec.name: spec.version for spec in registry.rules.specs if registry.rules.entry(spec.name).plugin.builtin}
    return Frozen(by=f"llpbench {__version__}", rules=rules, **values)


def changes(before: Frozen, after: Frozen) -> list[str]:
    """The differences between two sets of frozen values, one line each."""
    old, new = _flat(before), _flat(after)
    lines = [f"+ {key} = {value!r}" for key, value in new.items() if key not in old]
    lines += [f"- {key} = {value!r}" for key, value in old.items() if key not in new]
    return lines + [
        f"~ {key} = {value!r}, was {old[key]!r}" for key, value in new.items() if old.get(key, value) != value
    ]


def _plain(spec: MethodSpec | DatasetSpec | BagScheme) -> Values:
    return {p.name: NONE if p.default is None else p.default for p in spec.params}


def _flat(frozen: Frozen) -> dict[str, bool | int | float | str]:
    flat: dict[str, bool | int | float | str] = {f"rules.{name}": version for name, version in frozen.rules.items()}
    for kind in KINDS:
        for name, values in getattr(frozen, kind).items():
            flat |= {f"{kind}.{name}.{key}": value for key, value in values.items()}
    return flat


def _toml(frozen: Frozen) -> str:
    def table(name: str, values: Mapping[str, bool | int | float | str]) -> Iterator[str]:
        yield f"[{name}]"
        yield from (f"{_key(key)} = {_value(value)}" for key, value in values.items())
        yield ""

    lines = [*table("frozen", {"by": frozen.by}), *table("frozen.rules", frozen.rules)]
    for kind in KINDS:
        for name, values in getattr(frozen, kind).items():
            lines += table(f"frozen.{kind}.{_key(name)}", values)
    return "\n".join(lines)


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() and name.isascii() else _value(name)


def _value(value: bool | int | float | str) -> str:
    if isinstance(value, str | bool):
        return msgspec.json.encode(value).decode()  # JSON's texts and truths are TOML's too
    return repr(value)
