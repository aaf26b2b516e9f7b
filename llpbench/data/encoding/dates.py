"""Dates as numbers: the year, and where in the year, the week and the day a time lies.

No number of a date is taken as a category, and none goes round in a circle: December is 12 and January 1. Who knows
better what matters in a date (days since an event, a holiday) makes a column of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from llpbench.contracts.data import FloatArray, IntArray

PartOfDate = Literal["year", "month", "day of year", "day of week", "hour"]


@dataclass(frozen=True)
class Dates:
    """A column of dates: ``datetime64[s]`` values, as a clock on the wall showed them; NaT where one is missing."""

    name: str
    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: IntArray) -> Dates:
        """The given rows, in the given order."""
        return Dates(self.name, self.values[rows])


def parts_of(dates: Dates) -> dict[PartOfDate, FloatArray]:
    """The numbers of each date, NaN where it is missing.

    Year; month, 1 to 12; day of the year, from 1; day of the week, 0 (Monday) to 6; hour with its fraction.
    """
    values = dates.values.astype("datetime64[s]")
    year, month, day = (values.astype(f"datetime64[{unit}]") for unit in "YMD")
    numbers: dict[PartOfDate, NDArray[Any]] = {
        "year": 1970 + year.astype(np.int64),
        "month": 1 + (month - year.astype("datetime64[M]")).astype(np.int64),
        "day of year": 1 + (day - year.astype("datetime64[D]")).astype(np.int64),
        "day of week": (day.astype(np.int64) + 3) % 7,  # 1 January 1970 was a Thursday
        "hour": (values - day.astype("datetime64[s]")).astype(np.int64) / 3600.0,
    }
    absent = np.isnat(values)
    return {part: np.where(absent, np.nan, found) for part, found in numbers.items()}
