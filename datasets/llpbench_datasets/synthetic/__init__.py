"""Generated data with a known signal, for tests and scaling experiments; no files needed."""

from __future__ import annotations

from llpbench import DatasetSpec, Param, hookimpl

SYNTHETIC = DatasetSpec(
    name="synthetic",
    factory="llpbench_datasets.synthetic.load:load",
    summary="generated: one Gaussian cluster per class, with equidistant centres",
    params=(
        Param("rows", 10_000, low=10, high=1e9, log=True, doc="total number of rows"),
        Param("dim", 20, low=1, high=1e6, log=True, doc="number of features; at least the number of classes minus one"),
        Param("classes", 2, low=2, high=1000, doc="number of classes; two give a binary task"),
        Param(
            "separation",
            2.0,
            low=0.0,
            high=100.0,
            doc="distance between class centres in standard deviations; at 0 there is nothing to learn",
        ),
        Param(
            "positive_rate",
            None,
            low=0.001,
            high=0.999,
            kind="float",
            doc="share of class 1, the rest divided equally among the other classes; by default all shares are equal",
        ),
    ),
    split="random 80 / 10 / 10 %",
)


@hookimpl
def llpbench_datasets() -> list[DatasetSpec]:
    """The dataset ``synthetic``."""
    return [SYNTHETIC]
