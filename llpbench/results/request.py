"""The requests of a results folder as data; commands and calls are rendered from them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Literal

import msgspec

from llpbench.plugins.options import format_scalar

_REPEATED = {"plugins": "--plugin", "override": "--plugin-override"}


class Request(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A verb and the settings that were given to it, without defaults.

    Attributes:
        verb: ``run`` or ``tune``.
        settings: plain values by name, as in a run file.
        python: whether it was a call, not a command.
    """

    verb: Literal["run", "tune"]
    settings: dict[str, Any] = {}
    python: bool = False

    def __str__(self) -> str:
        """The command, or the call, that repeats the request."""
        if self.python:
            return f"llpbench.{self.verb}({', '.join(f'{name}={value!r}' for name, value in self.settings.items())})"
        words = [word for name, value in self.settings.items() for word in _words(name, value)]
        return shlex.join(["llpbench", self.verb, *words])

    def replace(self, **changes: Any) -> Request:
        """The request with other settings; those that become None are removed."""
        settings = {name: value for name, value in {**self.settings, **changes}.items() if value is not None}
        return msgspec.structs.replace(self, settings=settings)

    def into(self, folder: Path) -> Request:
        """The request with ``folder`` for its results; merged folders hold requests for other folders."""
        named = self.settings.get("out")
        same = named is not None and Path(str(named)).resolve() == folder.resolve()
        return self if same else self.replace(out=str(folder))


Command = Request | str
"""A request; folders of before hold the text of the command instead."""


def _words(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if name in _REPEATED:
        items = [value] if isinstance(value, str) else value
        return [word for item in items for word in (_REPEATED[name], str(item))]
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    if name == "seeds" and isinstance(value, list) and len(value) == 1:
        return [flag, f"{value[0]}-{value[0]}"]  # one number alone says how many
    return [flag, ",".join(map(format_scalar, value)) if isinstance(value, list) else format_scalar(value)]
