"""The environment variables that llpbench reads."""

from __future__ import annotations

import os
from typing import NamedTuple


class Variable(NamedTuple):
    """An environment variable and what it does."""

    name: str
    meaning: str

    @property
    def value(self) -> str | None:
        """Its current value; None if it is not set."""
        return os.environ.get(self.name)


DATA = Variable("LLPBENCH_DATA", "folder with data files, looked at before the cache (--data wins over it)")
CACHE = Variable("LLPBENCH_CACHE", "folder of the cache, instead of the platform's place for caches")
OFFLINE = Variable("LLPBENCH_OFFLINE", "1: never download data (as --offline)")
PLUGINS = Variable("LLPBENCH_PLUGINS", "load only these installed plugins: a,b")
BLOCK = Variable("LLPBENCH_BLOCK", "leave these installed plugins out: a,b")
STRICT = Variable("LLPBENCH_STRICT", "1: a broken plugin is an error, not a warning (for continuous integration)")

VARIABLES = (DATA, CACHE, OFFLINE, PLUGINS, BLOCK, STRICT)
"""All variables, in the order in which ``llpbench config`` shows them."""
