"""Read the flights with the weather at their airport and hour, draw rows, deal whole bags to the parts.

A row is a flight that arrived; what is known when a ticket is bought, and the weather, are its features. Times of the
day are minutes after midnight. Weather that is not recorded counts as the mean of the training rows and is marked
(``fill_gaps``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from llpbench import Categories, Files, IntArray, Numbers, Split
from llpbench_datasets.dealing import deal_rows
from llpbench_datasets.encoding import encode_parts
from llpbench_datasets.flights import FILES
from llpbench_datasets.tables import LabelledTable, cached_table

if TYPE_CHECKING:
    import pandas as pd

SHARES = (0.75, 0.10, 0.15)
LATE = 15
"""Minutes after which an arrival is late."""
PLACES = ("carrier", "origin", "dest")
WEATHER = ("temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib")
AFTER_DEPARTURE = ("dep_time", "dep_delay", "arr_time", "air_time")
"""Columns that are known only after departure and determine the label almost completely."""
_HOUR = ["origin", "month", "day", "hour"]
_DECIMALS = 4
"""Decimals of weather that are kept: one form of the file writes 10.357019999999999 where the other has 10.35702."""


def load(
    files: Files,
    *,
    seed: int,
    bags: str = "day",
    rows: int = 60_000,
    departure: bool = False,
    encoding: str = "onehot",
) -> Split:
    """Load flights: 75 % of the bags for training, 10 % for validation, 15 % for the test.

    Args:
        files: the dataset's files.
        seed: seed of the draw of rows and of the split.
        bags: what makes a bag, or ``"none"``.
        rows: rows to draw; 0 takes all.
        departure: keep what is known after departure.
        encoding: ``"onehot"`` or ``"ordinal"``.
    """
    paths = [files.path(file.path) for file in FILES]
    table = cached_table(files.cache, [file.sha256 for file in FILES], lambda: read(*paths))
    if 0 < rows < len(table):
        table = table.take(np.sort(np.random.default_rng([seed, 1]).permutation(len(table))[:rows]))
    bag_of = bag_numbers(table, bags)
    dropped = {"date"} | (set() if departure else set(AFTER_DEPARTURE)) | ({"dest"} if bags == "destination" else set())
    for name in dropped:  # a destination that makes a bag is in one part only: it would be no feature of the others
        table = table.without(name)
    parts = deal_rows(len(table), bag_of, SHARES, seed)
    return encode_parts(fill_gaps(table, parts[0]), parts, encoding, bag_of=bag_of)


def fill_gaps(table: LabelledTable, train: IntArray) -> LabelledTable:
    """The table with the mean of the known training values in place of missing numbers.

    A column that lacks values in training rows is followed by one that is 1 where the number was missing, else 0. Both
    are standardised afterwards like any other number: a gust, of which three in four are missing, weighs more than
    ``TableEncoder`` would let it, which scales by known values and leaves marks at 0 and 1.
    """
    columns: list[Numbers | Categories] = []
    for column in table.columns:
        if isinstance(column, Categories):
            columns.append(column)
            continue
        absent = np.isnan(column.values)
        values = column.values[train]
        known = values[~absent[train]]
        mean = float(known.mean()) if len(known) else 0.0
        columns.append(Numbers(column.name, np.where(absent, mean, column.values)))
        if absent[train].any():
            columns.append(Numbers(f"{column.name} is missing", absent.astype(np.float64)))
    return LabelledTable(tuple(columns), table.labels)


def bag_numbers(table: LabelledTable, bags: str) -> IntArray | None:
    """The bag of each row; None where bags are to be drawn."""
    code = {c.name: c.codes.astype(np.int64) for c in table.columns if isinstance(c, Categories)}
    match bags:
        case "day":
            return code["date"]
        case "airport-month":
            return 12 * code["origin"] + code["month"]
        case "carrier-month":
            return 12 * code["carrier"] + code["month"]
        case "destination":
            return code["dest"]
    return None


def read(flights: Path, weather: Path) -> LabelledTable:
    """The flights that arrived, each with the weather at its airport in the hour of its scheduled departure.

    Both files may be compressed (``.zip``, ``.gz``). Where an hour is recorded twice (the clock is set back), the first
    record is taken.
    """
    import pandas as pd

    wanted = ["month", "day", "hour", "minute", "sched_arr_time", "distance", "arr_delay", *PLACES, *AFTER_DEPARTURE]
    found = pd.read_csv(flights, usecols=wanted)
    found = found[found["arr_delay"].notna()].reset_index(drop=True)
    hours = pd.read_csv(weather, usecols=[*_HOUR, *WEATHER]).drop_duplicates(_HOUR)
    found = found.merge(hours, on=_HOUR, how="left", validate="many_to_one")
    date = found["month"].map("{:02d}".format) + "-" + found["day"].map("{:02d}".format)
    columns: list[Numbers | Categories] = [_categories("date", date)]
    columns.append(_categories("month", found["month"].map("{:02d}".format)))
    columns += [_categories(name, found[name]) for name in PLACES]
    columns += [_number("sched_dep_time", 60 * found["hour"] + found["minute"])]
    columns += [_number("sched_arr_time", _minutes(found["sched_arr_time"])), _number("distance", found["distance"])]
    columns += [_number(name, found[name].round(_DECIMALS)) for name in WEATHER]
    clock = {"dep_time", "arr_time"}
    columns += [_number(n, _minutes(found[n]) if n in clock else found[n]) for n in AFTER_DEPARTURE]
    return LabelledTable(tuple(columns), np.asarray(found["arr_delay"] > LATE, np.int64))


def _minutes(clock: pd.Series[float]) -> pd.Series[float]:
    """Minutes after midnight of times written as 1745."""
    return clock // 100 * 60 + clock % 100


def _number(name: str, values: pd.Series[float]) -> Numbers:
    return Numbers(name, values.to_numpy(np.float64))


def _categories(name: str, texts: pd.Series[str]) -> Categories:
    return Categories.from_texts(name, texts.tolist())
