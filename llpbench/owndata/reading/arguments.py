"""Arguments of ``fit``, ``compare``, ``save`` and ``load`` that are read like settings of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llpbench.contracts.errors import UsageError
from llpbench.experiment.setting import FilePaths, KeyValues, Location, Names, Settings, Text

MOST_COLUMNS = 10_000
"""The most columns, or features, that a table may have: methods need time that grows with their square or cube."""


class Arguments(Settings):
    """Each is read by its own ``read``: ``Arguments.method.read(value)``."""

    method: Text = Text("A registered method.", "")
    methods: Names = Names("Registered methods.", [])
    params: KeyValues = KeyValues("Parameters of a method.", {})
    plugins: FilePaths = FilePaths("Single-file plugins.", [])
    path: Location = Location("A model file.", "")


def read_classes(classes: Any) -> Sequence[Any] | None:
    """The names of the classes."""
    if classes is None or (hasattr(classes, "__iter__") and not isinstance(classes, str | bytes)):
        return None if classes is None else list(classes)
    raise UsageError(f"classes: expected a list of the names of the classes, got {classes!r}.")


def check_width(number: int, what: str) -> None:
    """Raise ``UsageError`` for more columns, or features, than methods can handle."""
    if number > MOST_COLUMNS:
        raise UsageError(
            f"X has {number:,} {what}; at most {MOST_COLUMNS:,} are supported. Reduce them first, for example with "
            "sklearn.decomposition.TruncatedSVD(300)."
        )
