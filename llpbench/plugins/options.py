"""Names with options: ``dllp``, ``adult[encoding=ordinal]``, ``dllp[lr=1e-3;1e-2;epochs=20]``.

Items are separated by ``;``. An item with ``=`` sets a parameter, one without is a further value of the last parameter,
so the third example is a grid of two settings. Commas outside brackets separate names.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from llpbench.contracts.errors import UsageError
from llpbench.contracts.specs import BagScheme, DatasetSpec, ExecutorSpec, MethodSpec, Scalar

Spec = MethodSpec | DatasetSpec | BagScheme | ExecutorSpec

JOIN = "&"
"""Joins bag schemes whose groupings are of the same rows: ``group-by[columns=a]&group-by[columns=b]``."""
QUOTING = "In a shell, quote brackets and semicolons: 'dllp[lr=1e-3;1e-2]'."
_ITEM = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)\Z", re.DOTALL)


def split_list(text: str) -> list[str]:
    """Split at commas outside brackets; empty items are dropped."""
    items, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if depth < 0 or depth > 1:
            raise UsageError(f"unbalanced brackets in {text!r}.")
        if character == "," and depth == 0:
            items.append(text[start:i])
            start = i + 1
    if depth:
        raise UsageError(f"unbalanced brackets in {text!r}. {QUOTING}")
    return [item.strip() for item in [*items, text[start:]] if item.strip()]


def split_joined(text: str) -> list[str]:
    """The bag schemes that a text joins by ``&`` outside brackets."""
    found = [part.strip() for part in re.split(rf"{JOIN}(?![^\[]*\])", text)]
    if not all(found):
        raise UsageError(f"--schemes {text!r}: expected a bag scheme on either side of {JOIN}.")
    return found


def parse_options(text: str) -> tuple[str, dict[str, list[str]]]:
    """The name and, for each option, the texts of its values."""
    name, bracket, rest = text.strip().partition("[")
    name = name.rstrip()
    if not bracket:
        return name, {}
    if not rest.endswith("]"):
        raise UsageError(f"{text!r}: the options must end with ']', as in {name}[option=value]. {QUOTING}")
    options: dict[str, list[str]] = {}
    current = ""
    for item in rest[:-1].split(";"):
        if not item.strip():
            continue
        match = _ITEM.match(item.strip())
        if match:
            current = match[1]
            if current in options:
                raise UsageError(f"{text!r} sets {current!r} twice; write several values as {current}=1;2.")
            options[current] = [match[2].strip()]
        elif current:
            options[current].append(item.strip())
        else:
            raise UsageError(f"{text!r}: expected option=value, got {item.strip()!r}.")
    return name, options


def expand(spec: Spec, options: Mapping[str, list[str]]) -> list[dict[str, Scalar]]:
    """Every combination of the given values, checked against the declared parameters."""
    names = list(options)
    values = []
    for name in names:
        try:
            values.append([spec.param(name).parse(text) for text in options[name]])
        except UsageError as error:
            comma = any("," in text for text in options[name])
            hint = f" (inside brackets, ';' separates: {spec.name}[a=1;b=2])" if comma else ""
            raise UsageError(f"{spec.name}: {error}{hint}") from None
    return [dict(zip(names, combination, strict=True)) for combination in itertools.product(*values)]


def format_options(name: str, given: Mapping[str, Scalar]) -> str:
    """A name with the options that differ from the defaults, always in the same form."""
    if not given:
        return name
    return f"{name}[{';'.join(f'{key}={format_scalar(value)}' for key, value in sorted(given.items()))}]"


def format_scalar(value: Scalar) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return "none" if value is None else str(value)
