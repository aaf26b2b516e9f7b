"""Tables without repetition, and notes on defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from llpbench.contracts.params import Scalar
from llpbench.plugins.options import format_scalar, parse_options
from llpbench.report.tables import Table

_EQUAL = " (equal)"


def merge_equal_rules(tables: Iterable[Table]) -> list[Table]:
    """Tables without repetition: one for several rules that give the same numbers, and each note once."""
    merged: dict[bytes, Table] = {}
    for table in tables:
        content = msgspec.json.encode([table.about, table.what, table.bounds, [table.row(m) for m in table.methods]])
        same = merged.get(content)
        merged[content] = (
            replace(same, rule=f"{same.rule.removesuffix(_EQUAL)}, {table.rule}{_EQUAL}") if same is not None else table
        )
    seen: set[str] = set()
    found = []
    for table in merged.values():
        found.append(replace(table, notes=[note for note in table.notes if note not in seen]))
        seen.update(table.notes)
    return found


def notes_on_defaults(methods: Iterable[str], defaults: Mapping[str, Mapping[str, Scalar]]) -> list[str]:
    """The defaults of parameters that other rows of the same method vary: ``dllp: lr=0.001 (default)``."""
    methods = list(methods)
    notes = []
    for name in methods:
        varied = [option for other in methods if other.startswith(f"{name}[") for option in parse_options(other)[1]]
        values = [
            f"{p}={format_scalar(defaults[name][p])}" for p in dict.fromkeys(varied) if p in defaults.get(name, ())
        ]
        notes += [f"{name}: {', '.join(values)} (default)"] if values else []
    return notes
