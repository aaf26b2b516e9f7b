"""The two lists of the pack: tables for development, and tables for evaluation only.

Defaults, gates and constants of methods may be chosen on the development list. The evaluation list is run with
everything frozen. The rule looks at the name of a table's source alone, so that tables of one source share a list and a
new table moves no other.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from llpbench_datasets.pack.declared import declared_tables

List = Literal["development", "evaluation"]
KNOWN = {"cps": "adult", "flights": "flights"}
"""Sources that older datasets have too: methods were developed on them, so their tables are for development."""


def list_of(source: str) -> List:
    """The list of the tables of a source: development for one third of the SHA-256 values, and for known sources."""
    if source in KNOWN:
        return "development"
    digest = int(hashlib.sha256(source.encode()).hexdigest(), 16)
    return "development" if digest % 3 == 0 else "evaluation"


def names(wanted: List) -> list[str]:
    """Names of the tables of one list, in alphabetical order."""
    return [name for name, table in declared_tables().items() if list_of(table.source) == wanted]
