"""Small real tables that are shipped with the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from llpbench.contracts.errors import UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

_FOLDER = Path(__file__).parent / "tables"


def example_table(name: str = "penguins") -> pd.DataFrame:
    """A small real table with labels; drop the labels and fit to their counts.

    Args:
        name: ``penguins``: 344 penguins of three species near Palmer Station, Antarctica, 2007 to 2009, measured by
            Kristen Gorman, published as "palmerpenguins" by Allison Horst, Alison Hill and Kristen Gorman (CC0).
    """
    import pandas as pd

    known = sorted(path.stem for path in _FOLDER.glob("*.csv"))
    if name not in known:
        raise UnknownNameError("example table:", name, known)
    return pd.read_csv(_FOLDER / f"{name}.csv")
