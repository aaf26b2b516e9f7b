"""``list`` and ``show``: what is registered, what it takes, and what it still needs."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from llpbench.cli.options import Names, Numbers, plugin_options
from llpbench.cli.printing import say
from llpbench.plugins.options import format_scalar
from llpbench.plugins.overview import KINDS

if TYPE_CHECKING:
    from llpbench.contracts.specs import DataFile, DatasetSpec, Param
    from llpbench.plugins.registry import Entry, Registry

_WIDE = 120
_SUITES = "suites"


@click.command("list", short_help="Methods, datasets, metrics, bag schemes, selection rules, executors, suites.")
@click.argument("kind", required=False, type=click.Choice((*KINDS, _SUITES)))
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plugin_options
def list_(kind: str | None, as_json: bool, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """List what is registered, who brought it, and which plugins are broken."""
    from llpbench.cli.suite import list_suites
    from llpbench.plugins.registry import load_registry

    registry = load_registry(plugins, override)
    kinds = [name for name in KINDS if kind in (None, name)]
    suites = list_suites(registry) if kind in (None, _SUITES) else {}
    if as_json:
        content: dict[str, Any] = {name: [_facts(e) for e in getattr(registry, name)] for name in kinds}
        content |= {_SUITES: [{"name": name, "title": title} for name, title in suites.items()]} if suites else {}
        content["broken"] = [
            {"plugin": b.name, "distribution": b.distribution, "error": b.error} for b in registry.broken
        ]
        content["conflicts"] = registry.conflicts
        click.echo(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())
        return
    for name in kinds:
        say(name, bold=True)
        width = max([18, *(len(entry.spec.name) + 2 for entry in getattr(registry, name))])
        for entry in getattr(registry, name):
            origin = "" if entry.plugin.builtin else f"  [{entry.plugin.origin}]"
            say(f"  {entry.spec.name:<{width}}{entry.spec.summary}{origin}")
            need = _needs(entry)
            if need:
                say(f"  {'':<{width}}{need}", fg="yellow")
    if suites:
        say(_SUITES, bold=True)
        for name, title in suites.items():
            say(f"  {name:<{max(18, *(len(n) + 2 for n in suites))}}{title}")
    report_troubles(registry)


@click.command(short_help="A method's parameters, a dataset's facts, the contents of a suite.")
@click.argument("name", type=str, shell_complete=lambda c, p, i: Names("methods").shell_complete(c, p, i))
@click.option("-b", "--bags", type=Numbers(int), help="Of a dataset: the bag card for these bag sizes.")
@click.option("--schemes", type=Names("schemes"), help="Of a dataset: the bag card for these ways of forming bags.")
@click.option("--split", type=click.Choice(["rows", "bags"]), help="Of a dataset: the bag card for this split.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder with the data files (or LLPBENCH_DATA).")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plugin_options
def show(
    name: str,
    bags: list[int] | None,
    schemes: list[str] | None,
    split: str | None,
    data: str | None,
    as_json: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Show everything about one method, dataset, metric, bag scheme, selection rule, executor or suite.

    A part of a suite is named as in a run: SUITE/PART.

    With --bags, --schemes or --split it shows what the bags of a dataset are like (seed 0; the data is loaded):
    how many, of which sizes, how their proportions and features differ, and which rows are left out.
    """
    from llpbench.contracts.errors import UnknownNameError
    from llpbench.experiment.suites.file import suite_files
    from llpbench.plugins.registry import load_registry

    registry = load_registry(plugins, override)
    asked = {key: value for key, value in (("bags", bags), ("schemes", schemes), ("split", split)) if value}
    if asked:
        _show_cards(registry, name, asked, data or "", as_json)
        return
    shelves = [getattr(registry, kind) for kind in KINDS]
    found = [shelf.entry(name) for shelf in shelves if name in shelf.entries]
    if not found:
        suites = suite_files(registry)
        if name.partition("/")[0] in suites or name.endswith(".toml") or ".toml/" in name:
            _show_suite(registry, name, as_json)
            return
        known = [*suites, *(n for shelf in shelves for n in shelf.entries)]
        raise UnknownNameError("name", name, known)
    for entry in found:
        if as_json:
            click.echo(msgspec.json.format(msgspec.json.encode(_facts(entry)), indent=1).decode())
        else:
            _print_entry(entry)


def _show_suite(registry: Registry, name: str, as_json: bool) -> None:
    """Print what a suite has, or the part of it that is named."""
    from llpbench.cli.suite import print_suite
    from llpbench.experiment.suites.file import find_suite

    if not as_json:
        print_suite(name, registry)
        return
    suite, part = find_suite(name, registry)
    shown = msgspec.structs.replace(suite, parts={of: suite.parts[of] for of in suite.part_names(part)})
    click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=1).decode())


def _show_cards(registry: Registry, dataset: str, asked: dict[str, Any], data: str, as_json: bool) -> None:
    """Print a line for each setting of a dataset that was asked for."""
    from llpbench.contracts.cell import setting_name
    from llpbench.experiment.grid import RunSpec
    from llpbench.experiment.survey import survey_bags
    from llpbench.report.cards import card_words

    spec = RunSpec(methods=["-"], datasets=[dataset], seeds=1, **asked)
    found = survey_bags(spec, registry, data=data)
    if as_json:
        settings = [
            {"dataset": plan.dataset_name, "bag_size": plan.cell.bag_size, "scheme": plan.cell.scheme, "card": card}
            for plan, card in found
        ]
        click.echo(msgspec.json.format(msgspec.json.encode(settings), indent=1).decode())
        return
    for plan, card in found:
        say(setting_name(plan.dataset_name, plan.cell.bag_size), bold=True, nl=False)
        say(f"  {card_words(card)}")


def _facts(entry: Entry[Any]) -> dict[str, Any]:
    """All that a spec says, as plain data."""
    facts = msgspec.to_builtins(entry.spec)
    facts["plugin"] = entry.plugin.name
    facts["distribution"] = entry.plugin.origin
    need = _needs(entry)
    facts["available"] = not need or need.startswith("on ")
    if need:
        facts["needs"] = need
    return dict(facts)


def _needs(entry: Entry[Any]) -> str:
    """What must still be installed, with the line that brings it; empty when nothing is missing."""
    from llpbench.contracts.specs import DatasetSpec, MethodSpec
    from llpbench.plugins.registry import install_hint, missing_modules

    if not isinstance(entry.spec, MethodSpec | DatasetSpec):
        return ""
    missing = missing_modules(entry.spec)
    if missing:
        return f"needs {', '.join(missing)}: {install_hint(entry.plugin, missing)}"
    backends = getattr(entry.spec, "backends", ())
    absent = [backend for backend in backends if missing_modules(entry.spec, backend)]
    if not absent:
        return ""
    if len(absent) == len(backends):
        return f"needs {' or '.join(backends)}: {install_hint(entry.plugin, absent[:1])}"
    return f"on {', '.join(absent)} only after: {install_hint(entry.plugin, absent)}"


def _print_entry(entry: Entry[Any]) -> None:
    from llpbench.contracts.specs import BagScheme, DatasetSpec, MethodSpec, MetricSpec, RuleSpec

    spec = entry.spec
    say(spec.name, bold=True, nl=False)
    say(f"  {spec.summary}")
    facts: list[tuple[str, str]] = []
    if isinstance(spec, MethodSpec):
        facts += [("tasks", ", ".join(spec.tasks)), ("inputs", ", ".join(spec.inputs))]
        facts += [("backends", ", ".join(spec.backends) or "none")]
        facts += [("bound", "is given the training labels: not an LLP method")] if spec.oracle else []
    if isinstance(spec, DatasetSpec):
        facts += _dataset_facts(spec)
    if isinstance(spec, BagScheme):
        facts += [("sizes", "its own: --bags is not used" if spec.sizes_itself else "those of --bags")]
        facts += [("labels", "it uses them to form bags: which rows share a bag tells of them")] * spec.uses_labels
    if isinstance(spec, MetricSpec | RuleSpec):
        facts += [("better", "higher" if spec.higher_is_better else "lower")]
    if isinstance(spec, MetricSpec):
        facts += [
            ("shown as", f"{spec.title}{', in percent' if spec.percent else ''}"),
            ("tasks", ", ".join(spec.tasks)),
        ]
    if isinstance(spec, RuleSpec):
        facts += [("version", str(spec.version))]
        facts += [("labels", "it looks at labels of held-back rows, which a user does not have")] * spec.uses_labels
        facts += [("applied", "to cells that were run with --folds only")] * spec.cross_validated
        facts += [("shown", f"where it is named: --rule {spec.name}")] * spec.on_request
    facts += [("from", f"{entry.plugin.origin} (plugin {entry.plugin.name})")]
    facts += [("citation", spec.citation)] if spec.citation else []
    if isinstance(spec, MethodSpec):
        facts += [(what, address) for what, address in (("paper", spec.paper), ("code", spec.code)) if address]
        facts += [("presets", ", ".join(name for name, _ in spec.presets))] if spec.presets else []
    need = _needs(entry)
    facts += [("missing", need)] if need else []
    for key, value in facts:
        say(f"  {key:<10}{value}")
    if spec.params:
        say("\n  parameters")
        width = max(len(p.name) for p in spec.params) + 2
        for p in spec.params:
            _print_param(p, width)
        example = spec.params[0]
        say(f"\n  set them in brackets: {spec.name}[{example.name}={format_scalar(example.default) or '...'}]")


def _print_param(p: Param, width: int) -> None:
    """A parameter: name, default and range in one line, its meaning below; a long default has a line of its own."""
    indent = f"    {'':<{width}}{'':<10}"
    default = format_scalar(p.default)
    told = f"{p.describe_range()}{' (log scale)' if p.log else ''}"
    ranges = textwrap.wrap(told, _WIDE - len(indent), break_long_words=False, break_on_hyphens=False)
    if len(default) < 10:
        say(f"    {p.name:<{width}}{default:<10}{ranges.pop(0)}")
    else:
        say(f"    {p.name:<{width}}{default}")
    for line in (*ranges, *([p.doc] if p.doc else [])):
        say(f"{indent}{line}")


def _dataset_facts(spec: DatasetSpec) -> list[tuple[str, str]]:
    """What is declared of a dataset; nothing is read, and the network is not asked."""
    facts = [("classes", str(spec.classes)), ("kind", spec.kind)]
    facts += [("rows", f"{spec.rows:,}")] if spec.rows else []
    facts += [("columns", str(spec.columns))] if spec.columns else []
    facts += [("balance", _balance(spec.balance))] if spec.balance else []
    facts += [("split", spec.split)] if spec.split else []
    facts += [("licence", spec.licence)] if spec.licence else []
    facts += [("source", spec.homepage)] if spec.homepage else []
    for file in spec.files:
        facts.append(("file", f"{file.path}  {file.size:,} bytes  sha256 {file.sha256}"))
        facts += [("", place) for place in _places(file)]
    return facts


def _balance(shares: tuple[float, ...]) -> str:
    """Shares of the classes: of class 1 for two classes, of all for more."""
    if len(shares) == 2:
        return f"{100 * shares[1]:.2f} % positive"
    return "equal shares" if len(set(shares)) == 1 else " / ".join(f"{100 * share:.1f}" for share in shares) + " %"


def _places(file: DataFile) -> list[str]:
    """Where a file comes from, in the order in which it is tried."""
    from llpbench.data.sources import origins
    from llpbench.data.store import has_source

    places = [f"from {origin.title}" for form in (file, *file.forms) for origin in origins(form)]
    return places if has_source(file) else ["no source gives it: bring it yourself"]


def report_troubles(registry: Registry) -> bool:
    """Print broken plugins and conflicts; returns whether there are any."""
    for plugin in registry.broken:
        say(f"broken plugin {plugin.name} ({plugin.distribution}): {plugin.error}", fg="red")
    for conflict in registry.conflicts:
        say(f"conflict: {conflict}", fg="red")
    return bool(registry.broken or registry.conflicts)
