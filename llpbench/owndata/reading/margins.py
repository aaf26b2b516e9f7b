"""Tables of counts formed from labelled rows, in the syntax of the scheme ``margins``: ``education,age:6+sex``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from llpbench.contracts.data import Column
from llpbench.contracts.errors import UsageError
from llpbench.experiment.schemes import USUAL_BANDS, bands_of, check_margins, margin_names, quantile_bands
from llpbench.owndata.reading.arguments import check_column
from llpbench.owndata.reading.frames import is_numeric

if TYPE_CHECKING:
    import pandas as pd

_MISSING = "missing"


def form_tables(frame: pd.DataFrame, text: str, labels: pd.Series[Any]) -> list[tuple[pd.Series[Any], pd.DataFrame]]:
    """The tables as pairs of the group of each row and the counts of each class (groups x classes).

    Args:
        frame: the rows.
        text: columns separated by commas and crossed by ``+``; ``age:6`` cuts a number into six quantile bands, ``*``
            stands for every column.
        labels: the label of each row.
    """
    import pandas as pd

    check_margins(text, shown="tables={!r}")
    columns = [Column(str(name), "numeric" if is_numeric(frame[name]) else "category") for name in frame.columns]
    found = []
    for name in margin_names(text, columns):
        keys = [_groups(frame, part.strip()) for part in name.split("+")]
        groups = np.array([" + ".join(key) for key in zip(*keys, strict=True)], object)
        counts = pd.crosstab(groups, labels.to_numpy())
        found.append((pd.Series(groups, index=frame.index, name=name), counts))
    return found


def _groups(frame: pd.DataFrame, name: str) -> list[str]:
    """The name of each row's group by one column: its value, or its band."""
    base, bands = (name, 0) if name in frame.columns else bands_of(name)
    values = frame[check_column(base, frame)]
    if not is_numeric(values):
        if bands:
            raise UsageError(f"tables: {base} is not a number and cannot be cut into bands ({name}).")
        return list(values.astype(object).where(values.notna(), _MISSING).astype(str))
    known = values.notna().to_numpy()
    numbers = values[known].to_numpy(np.float64)
    band = quantile_bands(numbers, bands or USUAL_BANDS)
    spans = [(numbers[band == b].min(), numbers[band == b].max()) for b in range(int(band.max(initial=-1)) + 1)]
    names = np.array([f"{low:g}" if low == high else f"{low:g} to {high:g}" for low, high in spans], object)
    groups = np.full(len(values), _MISSING, object)
    groups[known] = names[band]
    return groups.tolist()
