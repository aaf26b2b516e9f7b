"""Arguments of ``fit``, ``compare``, ``save`` and ``load`` that are read like settings of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from llpbench.contracts.errors import UnknownNameError, UsageError
from llpbench.experiment.setting import FilePaths, KeyValues, Location, Names, Settings, Text
from llpbench.owndata.reading.count_forms import looks_like_counts

if TYPE_CHECKING:
    import pandas as pd

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


def check_column(name: str, frame: pd.DataFrame) -> str:
    """The name of a column, if the table has it."""
    if name not in frame.columns:
        raise UnknownNameError("column of the table:", name, map(str, frame.columns))
    return name


def are_names(values: Any, frame: pd.DataFrame) -> bool:
    """Whether values are names of columns: a list of texts, unless these are counts (``["<5", "7"]``)."""
    if not isinstance(values, list | tuple) or not values or not all(isinstance(name, str) for name in values):
        return False
    return any(name in frame.columns for name in values) or not looks_like_counts(values)
