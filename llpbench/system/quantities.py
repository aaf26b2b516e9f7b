"""Amounts with a unit, as people type them: ``30m``, ``8GB``."""

from __future__ import annotations

import re

from llpbench.contracts.errors import UsageError

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MEGABYTES = {"": 1.0, "mb": 1.0, "m": 1.0, "gb": 1024.0, "g": 1024.0, "tb": 1024.0**2, "kb": 1 / 1024}


def _parse(text: str, units: dict[str, float], example: str) -> float:
    """A positive amount in the base unit."""
    match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    try:
        amount = float(match[1]) * units[match[2]] if match else 0.0
    except (KeyError, ValueError):
        amount = 0.0
    if not 0 < amount < float("inf"):
        raise UsageError(f"{text!r} is not a positive amount such as {example}.")
    return amount


def parse_duration(text: str) -> float:
    """Seconds."""
    return _parse(text, _SECONDS, "90, 30m or 2h")


def parse_memory(text: str) -> float:
    """MiB."""
    return _parse(text, _MEGABYTES, "500MB or 8GB")


def format_bytes(number: int) -> str:
    """``12 B``, ``3.4 MB``, in powers of a thousand as disks are sold."""
    amount, units = float(number), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 999.95 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{number} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def shown(value: object) -> str:
    """A value as in Python, shortened, for messages."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
