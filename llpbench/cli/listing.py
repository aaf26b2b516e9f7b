"""``list`` and ``show``: what is registered, its parameters, and what it requires."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from llpbench.cli.options import SettingType, plugin_options
from llpbench.cli.printing import print_json, say, say_wrapped
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.options import format_scalar
from llpbench.plugins.registry import KINDS

if TYPE_CHECKING:
    from llpbench.contracts.specs import DatasetSpec, Param
    from llpbench.plugins.registry import Entry, Registry

_SUITES, _RUNS = "suites", "runs"


@click.command("list", short_help="List methods, datasets, metrics, schemes, rules, suites, run files.")
@click.argument("kind", required=False, type=click.Choice((*KINDS, _SUITES, _RUNS)))
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plugin_options
def list_(kind: str | None, as_json: bool, plugins: tuple[Path, ...], override: tuple[str, ...]) -> None:
    """List what is registered, which plugin provides it, and which plugins are broken."""
    from llpbench.cli.suite import list_suites
    from llpbench.plugins.registry import load_registry

    registry = load_registry(plugins, override)
    if kind == _RUNS:
        _list_run_files(registry, as_json)
        return
    kinds = [name for name in KINDS if kind in (None, name)]
    suites = list_suites(registry) if kind in (None, _SUITES) else {}
    if as_json:
        content: dict[str, Any] = {name: [_facts(e) for e in getattr(registry, name)] for name in kinds}
        content |= {_SUITES: [{"name": name, "title": title} for name, title in suites.items()]} if suites else {}
        broken = [{"plugin": b.name, "distribution": b.distribution, "error": b.error} for b in registry.broken]
        print_json({**content, "broken": broken, "conflicts": registry.conflicts})
        return
    for name in kinds:
        say(name, bold=True)
        width = max([18, *(len(entry.spec.name) + 2 for entry in getattr(registry, name))])
        for entry in getattr(registry, name):
            origin = "" if entry.plugin.builtin else f"  [{entry.plugin.origin}]"
            say_wrapped(f"  {entry.spec.name:<{width}}", f"{entry.spec.summary}{origin}")
            if need := _needs(entry):
                say_wrapped(f"  {'':<{width}}", need, fg="yellow")
    if suites:
        say(_SUITES, bold=True)
        for name, title in suites.items():
            say_wrapped(f"  {name:<{max(18, *(len(n) + 2 for n in suites))}}", title)
    report_troubles(registry)


def _list_run_files(registry: Registry, as_json: bool) -> None:
    """Print the run files of installed packages: their names and the comments that they begin with."""
    from llpbench.execution.settings import run_files

    found = {name: _first_comment(path) for name, path in run_files(registry).items()}
    if as_json:
        print_json({_RUNS: [{"name": name, "title": title} for name, title in found.items()]})
        return
    width = max(18, *(len(name) + 2 for name in found))
    for name, title in found.items():
        say_wrapped(f"  {name:<{width}}", title)


def _first_comment(path: Path) -> str:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


@click.command(short_help="Show a method's parameters, a dataset's facts or the contents of a suite.")
@click.argument("name", type=str, shell_complete=SettingType(RunSettings.methods).shell_complete)
@click.option(
    "-b", "--bags", type=SettingType(RunSettings.bags), help="Of a dataset: the bag card for these bag sizes."
)
@click.option(
    "--schemes",
    type=SettingType(RunSettings.schemes),
    help="Of a dataset: the bag card for these ways of forming bags.",
)
@click.option("--split", type=click.Choice(["rows", "bags"]), help="Of a dataset: the bag card for this split.")
@click.option("--bounds", is_flag=True, help="With the bag card: the AUROC that as many labelled rows as bags give.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder with the data files (or LLPBENCH_DATA).")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@plugin_options
def show(
    name: str,
    bags: list[int] | None,
    schemes: list[str] | None,
    split: str | None,
    bounds: bool,
    data: str | None,
    as_json: bool,
    plugins: tuple[Path, ...],
    override: tuple[str, ...],
) -> None:
    """Show everything about one method, dataset, metric, bag scheme, selection rule, executor or suite.

    Name a part of a suite as in a run: SUITE/PART.

    With --bags, --schemes or --split, the data is loaded and the bags of a dataset are described (seed 0): their number
    and sizes, how their proportions and features differ, and which rows are left out.
    """
    from llpbench.contracts.errors import UnknownNameError
    from llpbench.experiment.suites.file import suite_files
    from llpbench.plugins.registry import load_registry

    registry = load_registry(plugins, override)
    asked = {key: value for key, value in (("bags", bags), ("schemes", schemes), ("split", split)) if value}
    if asked:
        _show_cards(registry, name, asked, bounds, data or "", as_json)
        return
    catalogs = [getattr(registry, kind) for kind in KINDS]
    found = [catalog.entry(name) for catalog in catalogs if name in catalog.entries]
    if not found:
        suites = suite_files(registry)
        if name.partition("/")[0] in suites or name.endswith(".toml") or ".toml/" in name:
            _show_suite(registry, name, as_json)
            return
        known = [*suites, *(n for catalog in catalogs for n in catalog.entries)]
        raise UnknownNameError("name", name, known)
    for entry in found:
        print_json(_facts(entry)) if as_json else _print_entry(entry)


def _show_suite(registry: Registry, name: str, as_json: bool) -> None:
    from llpbench.cli.suite import print_suite
    from llpbench.experiment.suites.file import find_suite

    if not as_json:
        print_suite(name, registry)
        return
    suite, part = find_suite(name, registry)
    print_json(msgspec.structs.replace(suite, parts={of: suite.parts[of] for of in suite.part_names(part)}))


def _show_cards(
    registry: Registry, dataset: str, asked: dict[str, Any], bounds: bool, data: str, as_json: bool
) -> None:
    """Print the bag card of each requested setting of a dataset."""
    from llpbench.contracts.cell import setting_name
    from llpbench.experiment.bag_card import survey_bags
    from llpbench.experiment.label_bounds import as_many_labels
    from llpbench.report.cards import card_words, grouping_lines

    surveyed = survey_bags(RunSettings(methods=["-"], datasets=[dataset], seeds=1, **asked), registry, data=data)
    shown = []
    for plan, formed, card, groupings in surveyed:
        reached = as_many_labels(formed, plan.cell, registry) if bounds else {}
        facts = {
            "dataset": plan.dataset_name,
            "bag_size": plan.cell.bag_size,
            "scheme": plan.cell.scheme_name,
            "card": card,
            **({"groupings": groupings} if groupings else {}),
        }
        shown.append({**facts, "as_many_labels": reached} if bounds else facts)
        if not as_json:
            say(setting_name(plan.dataset_name, plan.cell.bag_size), bold=True, nl=False)
            words = [f"AUROC {100 * value:.1f} % of {bound} with as many labels" for bound, value in reached.items()]
            say(f"  {'; '.join([card_words(card, len(groupings)), *words])}")
            for line in grouping_lines(groupings):
                say(f"  {line}")
    if as_json:
        print_json(shown)


def _facts(entry: Entry[Any]) -> dict[str, Any]:
    need = _needs(entry)
    facts = {**msgspec.to_builtins(entry.spec), "plugin": entry.plugin.name, "distribution": entry.plugin.origin}
    return {**facts, "available": not need or need.startswith("on "), **({"needs": need} if need else {})}


def _needs(entry: Entry[Any]) -> str:
    """What must still be installed, with the command that installs it; empty if nothing is missing."""
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
    spec = entry.spec
    say(spec.name, bold=True)
    say_wrapped("  ", spec.summary)
    for key, value in _lines(entry):
        if value:
            say_wrapped(f"  {key:<10}", value)
    if spec.params:
        say("\n  parameters")
        width = max(len(p.name) for p in spec.params) + 2
        for p in spec.params:
            _print_param(p, width)
        example = spec.params[0]
        say(f"\n  set them in brackets: {spec.name}[{example.name}={format_scalar(example.default) or '...'}]")


def _lines(entry: Entry[Any]) -> Iterator[tuple[str, str]]:
    """What ``show`` prints of a spec; lines without a value are left out."""
    from llpbench.contracts.specs import BagScheme, DatasetSpec, MethodSpec, MetricSpec, RuleSpec

    spec = entry.spec
    if isinstance(spec, MethodSpec):
        yield "tasks", ", ".join(spec.tasks)
        yield "inputs", ", ".join(spec.inputs)
        yield "backends", ", ".join(spec.backends) or "none"
        yield "bound", "receives the training labels: not an LLP method" * spec.oracle
    if isinstance(spec, DatasetSpec):
        yield from _dataset_lines(spec)
    if isinstance(spec, BagScheme):
        yield "sizes", "its own: --bags is ignored" if spec.sizes_itself else "those of --bags"
        yield "labels", "it uses them to form bags: which rows share a bag depends on them" * spec.uses_labels
    if isinstance(spec, MetricSpec | RuleSpec):
        yield "better", "higher" if spec.higher_is_better else "lower"
    if isinstance(spec, MetricSpec):
        yield "shown as", f"{spec.title}{', in percent' if spec.percent else ''}"
        yield "tasks", ", ".join(spec.tasks)
    if isinstance(spec, RuleSpec):
        yield "version", str(spec.version)
        yield "labels", "it uses labels of held-out rows, which a user does not have" * spec.uses_labels
        yield "applied", "only to cells that were run with --folds" * spec.cross_validated
        yield "shown", f"only if named: --rule {spec.name}" * spec.on_request
    yield "from", f"{entry.plugin.origin} (plugin {entry.plugin.name})"
    yield "citation", spec.citation
    if isinstance(spec, MethodSpec):
        yield "paper", spec.paper
        yield "code", spec.code
        yield "presets", ", ".join(name for name, _ in spec.presets)
    yield "missing", _needs(entry)


def _print_param(p: Param, width: int) -> None:
    """Print name, default and range in one line and the meaning below; a long default has its own line."""
    head, default = f"    {p.name:<{width}}", format_scalar(p.default)
    if len(default) > 14:
        say(f"{head}{default}")
    told = f"{p.describe_range()}{' (log scale)' if p.log else ''}"
    say_wrapped(f"{'':<{len(head)}}" if len(default) > 14 else f"{head}{default:<10}  ", told)
    if p.doc:
        say_wrapped(f"{'':<{len(head)}}", p.doc)


def _dataset_lines(spec: DatasetSpec) -> Iterator[tuple[str, str]]:
    from llpbench.data.sources import origins

    yield "classes", str(spec.classes)
    yield "kind", spec.kind
    yield "rows", f"{spec.rows:,}" if spec.rows else ""
    yield "columns", str(spec.columns or "")
    yield "balance", _balance(spec.balance) if spec.balance else ""
    yield "split", spec.split
    yield "licence", spec.licence
    yield "source", spec.homepage
    for file in spec.files:
        yield "file", f"{file.path}  {file.size:,} bytes  sha256 {file.sha256}"
        found = [f"from {origin.title}" for form in (file, *file.forms) for origin in origins(form)]
        yield from (("", source) for source in found or ["it has no source: provide it yourself"])


def _balance(shares: tuple[float, ...]) -> str:
    if len(shares) == 2:
        return f"{100 * shares[1]:.2f} % positive"
    return "equal shares" if len(set(shares)) == 1 else " / ".join(f"{100 * share:.1f}" for share in shares) + " %"


def report_troubles(registry: Registry) -> None:
    """Print broken plugins and conflicts."""
    for plugin in registry.broken:
        say(f"broken plugin {plugin.name} ({plugin.distribution}): {plugin.error}", fg="red")
    for conflict in registry.conflicts:
        say(f"conflict: {conflict}", fg="red")
