"""Compare the frozen values of a suite with the installed defaults.

A method's defaults are part of a suite. If a default changes later, the method is given the suite's value, so that the
cells stay those of the suite; the name of the method then shows the difference, and a note says so. If a method has
parameters that it did not have, or lacks some, no value gives the same cell, and the suite cannot be run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from llpbench.contracts.errors import UsageError
from llpbench.contracts.result import PROTOCOL
from llpbench.contracts.specs import BagScheme, DatasetSpec, MethodSpec, Param, Scalar
from llpbench.experiment.suites.file import Suite, Values, base_name
from llpbench.plugins.options import JOIN, expand, format_scalar, parse_options, split_joined
from llpbench.plugins.registry import Catalog, Registry

S = TypeVar("S", MethodSpec, DatasetSpec, BagScheme)
NONE = "none"
"""Stands for None in a frozen value: TOML has no null."""


@dataclass(frozen=True)
class Drift:
    """How an installed method, dataset or bag scheme differs from the frozen values of a suite.

    Attributes:
        kind: ``method``, ``dataset``, ``bag scheme``.
        changed: for each parameter whose default has changed, the frozen value and the default.
        gone: frozen values that are not accepted any more, each with the reason.
        new: new parameters that are part of its cells.
    """

    kind: str
    name: str
    changed: dict[str, tuple[Scalar, Scalar]] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    @property
    def fatal(self) -> bool:
        """Whether no values give the cells of the suite."""
        return bool(self.gone or self.new)

    @property
    def words(self) -> str:
        """One line that says what differs."""
        said = [f"{name} is {format_scalar(then)} in the suite, {format_scalar(now)} here"
                for name, (then, now) in self.changed.items()]  # fmt: skip
        said += self.gone
        said += [f"it has a new parameter {name}" for name in self.new]
        return f"{self.kind} {self.name}: {'; '.join(said)}"


def drifts(suite: Suite, registry: Registry) -> list[Drift]:
    """All differences between a suite's frozen values and what is installed.

    Raises:
        UsageError: a name of the suite is not installed, or was never frozen.
    """
    found = []
    for kind, names in used_names(suite).items():
        catalog = getattr(registry, kind)
        frozen: dict[str, Values] = getattr(suite.frozen, kind)
        for name in names:
            if name not in frozen:
                raise UsageError(
                    f"suite {suite.name} has no frozen values of {catalog.kind} {name!r}; "
                    "its author writes them with: llpbench suite freeze FILE"
                )
            drift = _drift(catalog, name, frozen[name])
            found += [drift] if drift.changed or drift.fatal else []
    return found


def check_suite(suite: Suite, registry: Registry) -> list[str]:
    """Check that the cells of a suite can be made here; returns notes about defaults that have changed since.

    Raises:
        UsageError: another protocol, another version of a rule, or methods with other parameters.
    """
    problems = []
    if suite.protocol != PROTOCOL:
        problems.append(f"it needs protocol {suite.protocol}, and this llpbench has protocol {PROTOCOL}")
    for name, version in suite.frozen.rules.items():
        now = registry.rules[name].version
        problems += [f"it needs version {version} of rule {name}, and this is {now}"] if now != version else []
    found = drifts(suite, registry)
    problems += [drift.words for drift in found if drift.fatal]
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        made = f" (it was frozen by {suite.frozen.by})" if suite.frozen.by else ""
        raise UsageError(
            f"suite {suite.name} cannot be run with what is installed{made}:\n{lines}\n"
            "Install the versions it was made for, or use a newer suite (docs/suites.md)."
        )
    return [f"{drift.words}: other defaults than {suite.name} froze; the suite's values are used" for drift in found]


def with_frozen(catalog: Catalog[S], text: str, frozen: Mapping[str, Values]) -> str:
    """A name with the frozen values of options that it does not give and whose defaults have changed.

    If no default has changed, it is the text itself, so that cells and names are those of an ordinary run.
    """
    if len(parts := split_joined(text)) > 1:
        return JOIN.join(with_frozen(catalog, part, frozen) for part in parts)
    name, options = parse_options(text)
    if name not in frozen:
        return text
    spec = catalog[name]
    wanted = {p: then for p, (then, _) in _drift(catalog, name, frozen[name]).changed.items() if p not in options}
    if not wanted:
        return text
    options = {**options, **{p: [format_scalar(value)] for p, value in wanted.items()}}
    full = f"{name}[{';'.join('='.join([p, ';'.join(values)]) for p, values in options.items())}]"
    if any(given[p] != value for given in expand(spec, parse_options(full)[1]) for p, value in wanted.items()):
        raise UsageError(f"the frozen values of {catalog.kind} {name} cannot be written as {full!r}.")
    return full


def used_names(suite: Suite) -> dict[str, list[str]]:
    """The registered names that a suite uses, by kind."""
    blocks = [block for _, block in suite.blocks()]
    return {
        "methods": list(dict.fromkeys(base_name(text) for text in suite.methods)),
        "datasets": list(dict.fromkeys(base_name(text) for block in blocks for text in block.datasets)),
        "schemes": list(
            dict.fromkeys(base_name(part) for block in blocks for text in block.schemes for part in split_joined(text))
        ),
    }


def _drift(catalog: Catalog[S], name: str, frozen: Values) -> Drift:
    spec = catalog[name]
    drift = Drift(catalog.kind, name)
    declared = {p.name: p for p in spec.params}
    for key, value in frozen.items():
        if key not in declared:
            drift.gone.append(f"it has no parameter {key} any more")
            continue
        try:
            then = _thaw(declared[key], value)
        except UsageError as error:
            drift.gone.append(str(error).rstrip("."))
            continue
        if then != declared[key].default:
            drift.changed[key] = (then, declared[key].default)
    drift.new.extend(p.name for p in spec.params if p.name not in frozen and not p.omit_default)
    return drift


def _thaw(param: Param, value: bool | int | float | str) -> Scalar:
    if value == NONE and NONE not in param.choices and param.default is None:
        return None
    return param.check(value)
