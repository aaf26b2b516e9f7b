"""What tables call a method and a noise level: what must be said to tell it from others, and no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from llpbench.contracts.cell import USUAL, USUAL_BACKENDS
from llpbench.contracts.errors import UsageError
from llpbench.experiment.plan import Planned
from llpbench.plugins.options import parse_options


def home_backends(planned: Iterable[Planned]) -> dict[str, str]:
    """The backend that a method's name stands for: that of most of its cells, the usual one where several have as many.

    Cells of other backends are named with theirs. So one cell more does not rename all others.
    """
    counts: dict[str, Counter[str]] = {}
    for plan in planned:
        counts.setdefault(plan.method_name, Counter())[plan.cell.backend] += 1
    return {
        name: min(found, key=lambda backend: (-found[backend], backend not in USUAL_BACKENDS, backend))
        for name, found in counts.items()
    }


def method_name(label: str, settings_of: str, backend: str) -> str:
    """A method as tables show it; the last two where they are needed to tell it from others."""
    return label + (f" (settings of {settings_of})" if settings_of else "") + (f" ({backend})" if backend else "")


def named_options(label: str) -> dict[str, str]:
    """The options of a name as a user types it; none where nobody could have typed it."""
    try:
        return {key: ";".join(values) for key, values in parse_options(label)[1].items()}
    except UsageError:
        return {}


def unusual_noise(mechanism: str, delta: float | None) -> list[str]:
    """What is not usual about the noise on counts, in words; nothing without noise."""
    words = [mechanism] if mechanism not in ("", USUAL.mechanism) else []
    return words + ([f"delta {delta:g}"] if delta not in (None, USUAL.delta) else [])
