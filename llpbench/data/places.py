"""Where llpbench looks and where it writes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from llpbench.data.cache import cache_root
from llpbench.system.environment import CACHE, DATA


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A folder: what for, where, whether it is there, and how to have another one."""

    name: str
    path: str
    exists: bool
    change: str


def places() -> list[Place]:
    """The folders that commands use, seen from where one is now."""
    data = DATA.value
    found = [
        ("data", Path(data).expanduser().absolute() if data else None, f"--data DIR or {DATA.name}"),
        ("cache", cache_root(), CACHE.name),
        ("results", Path("results").absolute(), "llpbench run --out DIR"),
        ("searches", Path("tuned").absolute(), "llpbench tune --out DIR"),
    ]
    return [
        Place(name=name, path=str(path or ""), exists=path is not None and path.is_dir(), change=change)
        for name, path, change in found
    ]
